//! Byte strings, and the codecs between them and texts.

use super::{METHODS, PRIVATE, receiver, text_argument};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::ops;
use crate::value::{Text, Value};

pub(super) fn bytes(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [source, encoding, errors] = args.bind("bytes", ["source", "encoding", "errors"], 0)?;
    for (name, given) in [("encoding", &encoding), ("errors", &errors)] {
        match given {
            None | Some(Value::Str(_)) => {}
            Some(other) => {
                let kind = other.type_name();
                return Err(Error::type_(format!("bytes() argument '{name}' must be str, not {kind}")));
            }
        }
    }
    if (encoding.is_some() || errors.is_some()) && !matches!(source, Some(Value::Str(_))) {
        return Err(Error::type_("encoding without a string argument"));
    }
    match source {
        None => Ok(Value::bytes(Vec::new())),
        Some(Value::Str(text)) => match encoding {
            Some(encoding) => encode_with(eval, &text, Some(encoding), errors),
            None => Err(Error::type_("string argument without an encoding")),
        },
        Some(value @ Value::Bytes(_)) => Ok(value),
        Some(length @ (Value::Int(_) | Value::Bool(_) | Value::Big(_))) => {
            let length = usize::try_from(ops::index(&length)?).map_err(|_| Error::value("negative count"))?;
            eval.fuel.allocate(length)?;
            Ok(Value::bytes(vec![0; length]))
        }
        Some(other) => bytes_of(eval, &other).map(Value::bytes),
    }
}

/// The bytes whose numbers are the items of a value.
pub(crate) fn bytes_of(eval: &mut Eval<'_>, items: &Value) -> Result<Vec<u8>, Error> {
    let items = eval.collect_value(items)?;
    eval.fuel.allocate(items.len())?;
    let byte = |item: &Value| {
        u8::try_from(ops::index(item)?).map_err(|_| Error::value("bytes must be in range(0, 256)"))
    };
    items.iter().map(byte).collect()
}

pub(super) fn encode(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [encoding, errors] = args.bind("encode", ["encoding", "errors"], 0)?;
    encode_with(eval, &receiver(value), encoding, errors)
}

/// The encoding and what to do with errors. Types are looked at before names, as Python does.
fn how<'e>(encoding: &Option<Value>, errors: &'e Option<Value>) -> Result<(u32, &'e str), Error> {
    if let Some(other) = errors.as_ref().filter(|errors| !matches!(errors, Value::Str(_))) {
        return Err(Error::type_(format!("errors must be str, not {}", other.type_name())));
    }
    Ok((codec(encoding)?, error_mode(errors)?))
}

/// Encodings by their usual names; everything else is an error that says so.
fn codec(encoding: &Option<Value>) -> Result<u32, Error> {
    let name = match encoding {
        None => return Ok(0x11_0000),
        Some(Value::Str(name)) => name.to_ascii_lowercase().replace(['_', ' '], "-"),
        Some(other) => return Err(Error::type_(format!("encoding must be str, not {}", other.type_name()))),
    };
    match name.as_str() {
        "utf-8" | "utf8" | "u8" => Ok(0x11_0000),
        "ascii" | "us-ascii" => Ok(0x80),
        "latin-1" | "latin1" | "iso-8859-1" | "l1" => Ok(0x100),
        _ => Err(Error::value(format!("unknown encoding: {name}"))
            .with_class("LookupError")
            .with_hint("known encodings: utf-8, ascii, latin-1")),
    }
}

fn error_mode(errors: &Option<Value>) -> Result<&str, Error> {
    match errors {
        None => Ok("strict"),
        Some(Value::Str(mode)) => match mode.as_str() {
            mode @ ("strict" | "ignore" | "replace" | "backslashreplace" | "xmlcharrefreplace") => Ok(mode),
            other => {
                Err(Error::value(format!("unknown error handler name '{other}'")).with_class("LookupError"))
            }
        },
        Some(_) => Err(Error::type_("errors must be str")),
    }
}

fn encode_with(
    eval: &mut Eval<'_>,
    text: &Text,
    encoding: Option<Value>,
    errors: Option<Value>,
) -> Result<Value, Error> {
    let (bound, mode) = how(&encoding, &errors)?;
    if bound > 0x10_ffff {
        eval.fuel.allocate(text.len())?;
        return Ok(Value::bytes(text.as_bytes()));
    }
    eval.fuel.allocate(text.chars_len() * 10)?;
    let mut bytes = Vec::with_capacity(text.chars_len());
    for (at, c) in text.chars().enumerate() {
        let code = c as u32;
        match (u8::try_from(code), mode) {
            (Ok(byte), _) if code < bound => bytes.push(byte),
            (_, "ignore") => {}
            (_, "replace") => bytes.push(b'?'),
            (_, "xmlcharrefreplace") => bytes.extend(format!("&#{code};").bytes()),
            (_, "backslashreplace") => bytes.extend(match code {
                0..=0xff => format!("\\x{code:02x}").into_bytes(),
                0x100..=0xffff => format!("\\u{code:04x}").into_bytes(),
                _ => format!("\\U{code:08x}").into_bytes(),
            }),
            _ => {
                let name = if bound == 0x80 { "ascii" } else { "latin-1" };
                return Err(Error::value(format!(
                    "'{name}' codec can't encode character U+{code:04X} in position {at}: ordinal not in range({bound})"
                ))
                .with_class("UnicodeEncodeError"));
            }
        }
    }
    Ok(Value::bytes(bytes))
}

pub(super) fn decode(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [encoding, errors] = args.bind("decode", ["encoding", "errors"], 0)?;
    decode_with(eval, value, encoding, errors)
}

pub(super) fn decode_with(
    eval: &mut Eval<'_>,
    value: &Value,
    encoding: Option<Value>,
    errors: Option<Value>,
) -> Result<Value, Error> {
    let Value::Bytes(bytes) = value else { return Ok(Value::None) };
    let (bound, mode) = how(&encoding, &errors)?;
    eval.fuel.allocate(bytes.len().saturating_mul(4))?;
    if bound > 0x10_ffff
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Ok(Value::str(text));
    }
    let mut out = String::with_capacity(bytes.len());
    let chunks = bytes.utf8_chunks();
    if bound <= 0x10_ffff {
        for byte in bytes.iter() {
            if u32::from(*byte) < bound {
                out.push(char::from(*byte))
            } else {
                bad_byte(&mut out, &[*byte], mode, "ascii")?
            }
        }
        return Ok(Value::str(out));
    }
    for chunk in chunks {
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            bad_byte(&mut out, chunk.invalid(), mode, "utf-8")?;
        }
    }
    Ok(Value::str(out))
}

fn bad_byte(out: &mut String, bytes: &[u8], mode: &str, codec: &str) -> Result<(), Error> {
    match mode {
        "ignore" => {}
        "replace" => out.push('\u{fffd}'),
        "backslashreplace" => bytes.iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}"))),
        _ => {
            return Err(Error::value(format!(
                "'{codec}' codec can't decode byte 0x{:02x}",
                bytes.first().copied().unwrap_or(0)
            ))
            .with_class("UnicodeDecodeError"));
        }
    }
    Ok(())
}

pub(super) fn hex(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [sep, each] = args.bind("hex", ["sep", "bytes_per_sep"], 0)?;
    let Value::Bytes(bytes) = value else { return Ok(Value::None) };
    let sep = match sep {
        None => None,
        Some(Value::Str(sep)) if sep.is_ascii() && sep.len() == 1 => sep.chars().next(),
        Some(Value::Bytes(sep)) if sep.len() == 1 => sep.first().map(|byte| char::from(*byte)),
        Some(Value::Str(_) | Value::Bytes(_)) => return Err(Error::value("sep must be one ASCII character")),
        Some(other) => {
            return Err(Error::type_(format!("sep must be str or bytes, not {}", other.type_name())));
        }
    };
    let each = each.map_or(Ok(1), |each| ops::index(&each))?;
    let group = usize::try_from(each.unsigned_abs()).unwrap_or(usize::MAX);
    eval.fuel.allocate(bytes.len().saturating_mul(3))?;
    let mut out = String::with_capacity(bytes.len() * 3);
    for (at, byte) in bytes.iter().enumerate() {
        // Groups are counted from the right, or from the left when the number is negative.
        let before = if each < 0 { at } else { bytes.len() - at };
        if let Some(sep) = sep.filter(|_| at > 0 && group > 0 && before % group == 0) {
            out.push(sep);
        }
        out.push_str(&format!("{byte:02x}"));
    }
    Ok(Value::str(out))
}

pub(super) fn fromhex(eval: &mut Eval<'_>, _: &Value, args: Args) -> Result<Value, Error> {
    let text = text_argument(&args.one("fromhex")?, "fromhex")?;
    eval.fuel.allocate(text.len())?;
    let digits: Vec<char> = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bad = || Error::value("non-hexadecimal number found in fromhex() arg");
    let bytes: Result<Vec<u8>, Error> = digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => match (high.to_digit(16), low.to_digit(16)) {
                (Some(high), Some(low)) => Ok((high * 16 + low) as u8),
                _ => Err(bad()),
            },
            _ => Err(bad()),
        })
        .collect();
    bytes.map(Value::bytes)
}

pub(super) fn ascii_case(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    change: fn(&[u8]) -> Vec<u8>,
) -> Result<Value, Error> {
    args.none(name)?;
    let Value::Bytes(bytes) = value else { return Ok(Value::None) };
    eval.fuel.allocate(bytes.len())?;
    Ok(Value::bytes(change(bytes)))
}

/// Runs a text method on bytes by reading each byte as a character, and back. Bytes outside ASCII become
/// characters that are neither letters nor blanks, so that case and blanks mean ASCII only.
pub(super) fn as_text(eval: &mut Eval<'_>, value: &Value, args: Args, name: &str) -> Result<Value, Error> {
    let widened = widen_bytes(eval, value)?;
    let mut converted = Args { named: args.named, ..Args::default() };
    for (place, arg) in args.positional.into_iter().enumerate() {
        converted.positional.push(match &arg {
            // A single byte may be searched for by its number.
            Value::Int(_) | Value::Bool(_) | Value::Big(_)
                if place == 0 && matches!(name, "find" | "rfind" | "index" | "rindex" | "count") =>
            {
                let byte = arg.as_i64().and_then(|number| u8::try_from(number).ok());
                let byte = byte.ok_or_else(|| Error::value("byte must be in range(0, 256)"))?;
                let one = Value::bytes([byte]);
                widen_bytes(eval, &one)?
            }
            Value::Tuple(items) => {
                Value::tuple(items.iter().map(|item| widen_bytes(eval, item)).collect::<Result<Vec<_>, _>>()?)
            }
            Value::Bytes(_) | Value::Str(_) if !matches!(name, "splitlines" | "join") => {
                widen_bytes(eval, &arg)?
            }
            _ if name == "join" => {
                let items = eval.collect_value(&arg)?;
                Value::list(items.iter().map(|item| widen_bytes(eval, item)).collect::<Result<Vec<_>, _>>()?)
            }
            _ => arg,
        });
    }
    let Some(method) = METHODS.iter().find(|method| method.name == name) else { return Ok(Value::None) };
    let result = (method.call)(eval, &widened, converted)?;
    narrow(eval, &result)
}

fn widen_bytes(eval: &mut Eval<'_>, value: &Value) -> Result<Value, Error> {
    let Value::Bytes(bytes) = value else {
        return Err(Error::type_(format!("a bytes-like object is required, not '{}'", value.type_name())));
    };
    eval.fuel.allocate(bytes.len() * 3)?;
    let wide = |byte: &u8| match byte.is_ascii() {
        true => char::from(*byte),
        false => char::from_u32(PRIVATE + u32::from(*byte)).unwrap_or('?'),
    };
    Ok(Value::str(bytes.iter().map(wide).collect::<String>()))
}

fn narrow(eval: &mut Eval<'_>, value: &Value) -> Result<Value, Error> {
    match value {
        Value::Str(text) => {
            eval.fuel.allocate(text.len())?;
            Ok(Value::bytes(text.chars().map(|c| c as u32 as u8).collect::<Vec<u8>>()))
        }
        Value::Tuple(items) => {
            Ok(Value::tuple(items.iter().map(|item| narrow(eval, item)).collect::<Result<Vec<_>, _>>()?))
        }
        Value::List(items) => {
            let items = items.snapshot();
            Ok(Value::list(items.iter().map(|item| narrow(eval, item)).collect::<Result<Vec<_>, _>>()?))
        }
        other => Ok(other.clone()),
    }
}
