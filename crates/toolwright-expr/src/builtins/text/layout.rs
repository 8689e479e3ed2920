//! Filling up to a width, tabs, and replacing character by character.

use super::receiver;
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::ops;
use crate::value::{Dict, DictMap, Value};

pub(super) fn zfill(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let width = usize::try_from(ops::index(&args.one("zfill")?)?).unwrap_or(0);
    let text = receiver(value);
    let missing = width.saturating_sub(text.chars_len());
    if missing == 0 {
        return Ok(Value::Str(text));
    }
    eval.fuel.allocate(text.len().saturating_add(missing))?;
    let sign = if text.starts_with(['+', '-']) { 1 } else { 0 };
    let (sign, digits) = text.split_at(sign);
    Ok(Value::str(format!("{sign}{}{digits}", "0".repeat(missing))))
}

pub(super) enum PadSide {
    Left,
    Right,
    Both,
}

pub(super) fn pad(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    side: PadSide,
) -> Result<Value, Error> {
    let [width, fill] = args.bind(name, ["/width", "/fill"], 1)?;
    let width = usize::try_from(ops::index(&width.unwrap_or(Value::None))?).unwrap_or(0);
    let fill = match fill {
        None => ' ',
        Some(Value::Str(fill)) if fill.chars_len() == 1 => fill.chars().next().unwrap_or(' '),
        Some(Value::Str(_)) => {
            return Err(Error::type_("The fill character must be exactly one character long"));
        }
        Some(other) => {
            return Err(Error::type_(format!(
                "The fill character must be a unicode character, not {}",
                other.type_name()
            )));
        }
    };
    let text = receiver(value);
    let missing = width.saturating_sub(text.chars_len());
    if missing == 0 {
        return Ok(Value::Str(text));
    }
    eval.fuel.allocate(text.len().saturating_add(missing.saturating_mul(fill.len_utf8())))?;
    let left = match side {
        PadSide::Left => missing,
        PadSide::Right => 0,
        // An odd rest goes left when the width is odd too, as Python has it.
        PadSide::Both => missing / 2 + (missing & width & 1),
    };
    let mut out = String::with_capacity(text.len() + missing * fill.len_utf8());
    out.extend(std::iter::repeat_n(fill, left));
    out.push_str(&text);
    out.extend(std::iter::repeat_n(fill, missing - left));
    Ok(Value::str(out))
}

pub(super) fn expandtabs(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [size] = args.bind("expandtabs", ["tabsize"], 0)?;
    let size = usize::try_from(size.map_or(Ok(8), |size| ops::index(&size))?).unwrap_or(0);
    let text = receiver(value);
    let tabs = text.matches('\t').count();
    eval.fuel.allocate(text.len().saturating_add(tabs.saturating_mul(size)))?;
    let mut out = String::with_capacity(text.len());
    let mut column = 0usize;
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let spaces = size - column % size;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            _ => {
                out.push(c);
                column += 1;
            }
        }
    }
    Ok(Value::str(out))
}

pub(super) fn translate(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let table = args.one("translate")?;
    let text = receiver(value);
    let mut out = String::new();
    for c in text.chars() {
        eval.fuel.spend(1)?;
        // Anything that has items can be the table; what it lacks stays as it is.
        let found = match ops::sequence::subscript(&table, &Value::Int(i64::from(c as u32)), &mut eval.fuel) {
            Ok(found) => Some(found),
            Err(error) if matches!(error.python_class(), "KeyError" | "IndexError" | "LookupError") => None,
            Err(error) => return Err(error),
        };
        match found {
            None => {
                eval.fuel.allocate(0)?;
                out.push(c);
            }
            Some(Value::None) => {}
            Some(Value::Str(text)) => {
                eval.fuel.allocate(text.len())?;
                out.push_str(&text);
            }
            Some(Value::Bool(flag)) => out.push(char::from(u8::from(flag))),
            Some(Value::Int(code)) => {
                let c = u32::try_from(code).ok().and_then(char::from_u32);
                out.push(c.ok_or_else(|| Error::value("character mapping must be in range(0x110000)"))?);
            }
            Some(_) => return Err(Error::type_("character mapping must return integer, None or str")),
        }
    }
    Ok(Value::str(out))
}

pub(super) fn maketrans(eval: &mut Eval<'_>, _: &Value, args: Args) -> Result<Value, Error> {
    let [x, y, z] = args.bind("maketrans", ["/x", "/y", "/z"], 1)?;
    let mut map = DictMap::default();
    let mut put = |eval: &mut Eval<'_>, c: char, value: Value| -> Result<(), Error> {
        eval.fuel.allocate(ops::DICT_ENTRY)?;
        map.insert(ops::key(&Value::Int(i64::from(c as u32)), &mut eval.fuel)?, value);
        Ok(())
    };
    match (x, y) {
        (Some(Value::Dict(table)), None) => {
            for (key, value) in table.entries() {
                let c = match &key {
                    Value::Int(code) => u32::try_from(*code).ok().and_then(char::from_u32),
                    Value::Str(text) if text.chars_len() == 1 => text.chars().next(),
                    _ => None,
                };
                let c =
                    c.ok_or_else(|| Error::value("string keys in translate table must be of length 1"))?;
                put(eval, c, value)?;
            }
        }
        (Some(Value::Str(from)), Some(Value::Str(to))) => {
            if from.chars_len() != to.chars_len() {
                return Err(Error::value("the first two maketrans arguments must have equal length"));
            }
            for (a, b) in from.chars().zip(to.chars()) {
                put(eval, a, Value::Int(i64::from(b as u32)))?;
            }
            if let Some(Value::Str(gone)) = z {
                for c in gone.chars() {
                    put(eval, c, Value::None)?;
                }
            }
        }
        _ => return Err(Error::type_("maketrans() needs a dict, or two texts of equal length")),
    }
    Ok(Value::Dict(Dict::new(map)))
}
