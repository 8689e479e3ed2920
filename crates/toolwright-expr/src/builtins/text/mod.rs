//! Functions and methods of texts and byte strings. Positions count characters, as in Python, and every
//! result that can be longer than its input is paid for before it is built.

mod bytes;
mod case;
mod class;
mod layout;
mod search;
mod split;

pub(crate) use self::class::{is_space, to_ascii_digits};
pub(crate) use self::split::lines;

pub(crate) use self::bytes::bytes_of;
use self::bytes::{as_text, ascii_case, bytes, decode, decode_with, encode, fromhex, hex};
use self::case::{capitalize, cased, casefold, is_title, swapcase, title};
use self::class::{every, is_alnum, is_alpha, is_decimal, is_digit, is_numeric, istitle};
use self::layout::{PadSide, expandtabs, maketrans, pad, translate, zfill};
use self::search::{affix, count, find, replace};
use self::split::{Ends, join, partition, rsplit, split, splitlines, strip};
use super::{Builtin, Constructor, Method, constructor, function, method, type_method};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::ops;
use crate::types::Type;
use crate::value::{Text, Value};

/// The end from which a text is searched.
#[derive(Clone, Copy)]
enum SearchFrom {
    Start,
    End,
}

pub(crate) static FUNCTIONS: &[Builtin] = &[
    function("chr", "chr(n)", "The character with the given number.", chr),
    function("ord", "ord(c)", "The number of a character.", ord),
    function("shell_quote", "shell_quote(text)", "The text as one word of a shell command.", shell_quote),
    function("repr", "repr(x)", "The value as it is written in code.", |eval, args| {
        crate::repr::repr(&args.one("repr")?, &mut eval.fuel).map(Value::str)
    }),
    function("format", "format(x, spec='')", "The value as text, laid out as `spec` says.", |eval, args| {
        let [value, spec] = args.bind("format", ["/value", "/spec"], 1)?;
        let spec = spec.unwrap_or_else(|| Value::Str(Text::empty()));
        let Value::Str(spec) = &spec else { return Err(Error::type_("format() argument 2 must be str")) };
        crate::format::value(&value.unwrap_or(Value::None), spec, &mut eval.fuel).map(Value::str)
    }),
];

pub(crate) static CONSTRUCTORS: &[Constructor] = &[
    constructor(Type::STR, "str(x='')", "The value as text; with an encoding, bytes decoded.", str),
    constructor(Type::BYTES, "bytes(x=b'', encoding=None)", "Bytes from numbers, a length or a text.", bytes),
];

pub(crate) static METHODS: &[Method] = &[
    method("upper", "s.upper()", "All letters upper case.", |e, s, a| {
        cased(e, s, a, "upper", str::to_uppercase)
    }),
    method("lower", "s.lower()", "All letters lower case.", |e, s, a| {
        cased(e, s, a, "lower", str::to_lowercase)
    }),
    method("title", "s.title()", "Each word with a capital.", |e, s, a| cased(e, s, a, "title", title)),
    method("capitalize", "s.capitalize()", "The first letter upper case, the rest lower.", |e, s, a| {
        cased(e, s, a, "capitalize", capitalize)
    }),
    method("swapcase", "s.swapcase()", "Upper and lower case exchanged.", |e, s, a| {
        cased(e, s, a, "swapcase", swapcase)
    }),
    method("casefold", "s.casefold()", "Lower case for comparing without regard to case.", |e, s, a| {
        cased(e, s, a, "casefold", casefold)
    }),
    method("strip", "s.strip(chars=None)", "Blanks (or `chars`) cut from both ends.", |e, s, a| {
        strip(e, s, a, "strip", Ends::Both)
    }),
    method("trim", "s.trim()", "The same as `s.strip()`; not in Python.", |e, s, a| {
        a.none("trim")?;
        strip(e, s, Args::default(), "trim", Ends::Both)
    }),
    method("lstrip", "s.lstrip(chars=None)", "Cut from the start.", |e, s, a| {
        strip(e, s, a, "lstrip", Ends::Left)
    }),
    method("rstrip", "s.rstrip(chars=None)", "Cut from the end.", |e, s, a| {
        strip(e, s, a, "rstrip", Ends::Right)
    }),
    method("split", "s.split(sep=None, maxsplit=-1)", "A list of the parts between separators.", split),
    method("rsplit", "s.rsplit(sep=None, maxsplit=-1)", "As `split`, counting from the end.", rsplit),
    method("splitlines", "s.splitlines(keepends=False)", "A list of the lines.", splitlines),
    method(
        "partition",
        "s.partition(sep)",
        "The parts before, at and after the first separator.",
        |e, s, a| partition(e, s, a, "partition", SearchFrom::Start),
    ),
    method(
        "rpartition",
        "s.rpartition(sep)",
        "The parts before, at and after the last separator.",
        |e, s, a| partition(e, s, a, "rpartition", SearchFrom::End),
    ),
    method("join", "s.join(items)", "The texts in `items` with `s` between them.", join),
    method("replace", "s.replace(old, new, count=-1)", "Every `old` replaced by `new`.", replace),
    method("find", "s.find(sub, start=0, end=None)", "Where `sub` begins, or -1.", |e, s, a| {
        Ok(Value::Int(find(e, s, a, "find", SearchFrom::Start)?.unwrap_or(-1)))
    }),
    method("rfind", "s.rfind(sub, start=0, end=None)", "Where the last `sub` begins, or -1.", |e, s, a| {
        Ok(Value::Int(find(e, s, a, "rfind", SearchFrom::End)?.unwrap_or(-1)))
    }),
    method("index", "s.index(sub, start=0, end=None)", "As `find`, but missing is an error.", |e, s, a| {
        find(e, s, a, "index", SearchFrom::Start)?
            .map(Value::Int)
            .ok_or_else(|| Error::value("substring not found"))
    }),
    method(
        "rindex",
        "s.rindex(sub, start=0, end=None)",
        "As `rfind`, but missing is an error.",
        |e, s, a| {
            find(e, s, a, "rindex", SearchFrom::End)?
                .map(Value::Int)
                .ok_or_else(|| Error::value("substring not found"))
        },
    ),
    method("count", "s.count(sub, start=0, end=None)", "How often `sub` occurs.", count),
    method(
        "startswith",
        "s.startswith(prefix, start=0, end=None)",
        "Whether it begins so; a tuple offers several.",
        |e, s, a| affix(e, s, a, "startswith", |text, part| text.starts_with(part)),
    ),
    method(
        "endswith",
        "s.endswith(suffix, start=0, end=None)",
        "Whether it ends so; a tuple offers several.",
        |e, s, a| affix(e, s, a, "endswith", |text, part| text.ends_with(part)),
    ),
    method("removeprefix", "s.removeprefix(prefix)", "Without the prefix, if it is there.", |e, s, a| {
        let prefix = text_argument(&a.one("removeprefix")?, "removeprefix")?;
        let text = receiver(s);
        slice_of(e, &text, text.strip_prefix(prefix.as_str()).unwrap_or(&text))
    }),
    method("removesuffix", "s.removesuffix(suffix)", "Without the suffix, if it is there.", |e, s, a| {
        let suffix = text_argument(&a.one("removesuffix")?, "removesuffix")?;
        let text = receiver(s);
        slice_of(e, &text, text.strip_suffix(suffix.as_str()).unwrap_or(&text))
    }),
    method("zfill", "s.zfill(width)", "Zeros put in front, after a sign.", zfill),
    method("ljust", "s.ljust(width, fill=' ')", "Filled up at the end.", |e, s, a| {
        pad(e, s, a, "ljust", PadSide::Right)
    }),
    method("rjust", "s.rjust(width, fill=' ')", "Filled up at the start.", |e, s, a| {
        pad(e, s, a, "rjust", PadSide::Left)
    }),
    method("center", "s.center(width, fill=' ')", "Filled up at both ends.", |e, s, a| {
        pad(e, s, a, "center", PadSide::Both)
    }),
    method("expandtabs", "s.expandtabs(tabsize=8)", "Tabs replaced by spaces.", expandtabs),
    method("format", "s.format(*values, **named)", "Fields in braces replaced by values.", |e, s, a| {
        crate::format::braces(e, &receiver(s), a)
    }),
    method(
        "format_map",
        "s.format_map(mapping)",
        "Fields in braces replaced by values of a dict.",
        |e, s, a| crate::format::braces_from(e, &receiver(s), a.one("format_map")?),
    ),
    method("encode", "s.encode(encoding='utf-8', errors='strict')", "The text as bytes.", encode),
    method("translate", "s.translate(table)", "Characters replaced as a dict of numbers says.", translate),
    type_method("maketrans", "str.maketrans(x, y=None, z='')", "A table for `translate`.", maketrans),
    method("isalnum", "s.isalnum()", "Whether all are letters or digits.", |_, s, a| {
        every(s, a, "isalnum", is_alnum)
    }),
    method("isalpha", "s.isalpha()", "Whether all are letters.", |_, s, a| every(s, a, "isalpha", is_alpha)),
    method("isascii", "s.isascii()", "Whether all are ASCII.", |_, s, a| {
        a.none("isascii")?;
        Ok(Value::Bool(receiver(s).is_ascii()))
    }),
    method("isdecimal", "s.isdecimal()", "Whether all are decimal digits.", |_, s, a| {
        every(s, a, "isdecimal", is_decimal)
    }),
    method("isdigit", "s.isdigit()", "Whether all are digits, superscripts included.", |_, s, a| {
        every(s, a, "isdigit", is_digit)
    }),
    method("isnumeric", "s.isnumeric()", "Whether all are numbers of any kind.", |_, s, a| {
        every(s, a, "isnumeric", is_numeric)
    }),
    method("isspace", "s.isspace()", "Whether all are blanks.", |_, s, a| every(s, a, "isspace", is_space)),
    method("isprintable", "s.isprintable()", "Whether `repr` would show all as they are.", |_, s, a| {
        a.none("isprintable")?;
        Ok(Value::Bool(receiver(s).chars().all(crate::repr::is_printable)))
    }),
    method("isidentifier", "s.isidentifier()", "Whether it could be a name.", |_, s, a| {
        a.none("isidentifier")?;
        let text = receiver(s);
        let mut chars = text.chars();
        let starts = chars.next().is_some_and(crate::lexer::is_name_start);
        Ok(Value::Bool(starts && chars.all(crate::lexer::is_name_part)))
    }),
    method("islower", "s.islower()", "Whether all letters are lower case.", |_, s, a| {
        a.none("islower")?;
        let text = receiver(s);
        Ok(Value::Bool(
            text.chars().any(char::is_lowercase) && !text.chars().any(|c| c.is_uppercase() || is_title(c)),
        ))
    }),
    method("isupper", "s.isupper()", "Whether all letters are upper case.", |_, s, a| {
        a.none("isupper")?;
        let text = receiver(s);
        Ok(Value::Bool(
            text.chars().any(char::is_uppercase) && !text.chars().any(|c| c.is_lowercase() || is_title(c)),
        ))
    }),
    method("istitle", "s.istitle()", "Whether each word begins with a capital.", istitle),
];

pub(crate) static BYTES_METHODS: &[Method] = &[
    method("decode", "b.decode(encoding='utf-8', errors='strict')", "The bytes as text.", decode),
    method("hex", "b.hex(sep='', bytes_per_sep=1)", "The bytes in base 16.", hex),
    type_method("fromhex", "bytes.fromhex(text)", "Bytes from base 16.", fromhex),
    method("upper", "b.upper()", "ASCII letters upper case.", |e, b, a| {
        ascii_case(e, b, a, "upper", <[u8]>::to_ascii_uppercase)
    }),
    method("lower", "b.lower()", "ASCII letters lower case.", |e, b, a| {
        ascii_case(e, b, a, "lower", <[u8]>::to_ascii_lowercase)
    }),
    method("startswith", "b.startswith(prefix)", "Whether the bytes begin so.", |e, b, a| {
        as_text(e, b, a, "startswith")
    }),
    method("endswith", "b.endswith(suffix)", "Whether the bytes end so.", |e, b, a| {
        as_text(e, b, a, "endswith")
    }),
    method("find", "b.find(sub, start=0, end=None)", "Where `sub` begins, or -1.", |e, b, a| {
        as_text(e, b, a, "find")
    }),
    method("rfind", "b.rfind(sub, start=0, end=None)", "Where the last `sub` begins, or -1.", |e, b, a| {
        as_text(e, b, a, "rfind")
    }),
    method("index", "b.index(sub, start=0, end=None)", "As `find`, but missing is an error.", |e, b, a| {
        as_text(e, b, a, "index")
    }),
    method(
        "rindex",
        "b.rindex(sub, start=0, end=None)",
        "As `rfind`, but missing is an error.",
        |e, b, a| as_text(e, b, a, "rindex"),
    ),
    method("count", "b.count(sub, start=0, end=None)", "How often `sub` occurs.", |e, b, a| {
        as_text(e, b, a, "count")
    }),
    method("replace", "b.replace(old, new, count=-1)", "Every `old` replaced by `new`.", |e, b, a| {
        as_text(e, b, a, "replace")
    }),
    method(
        "split",
        "b.split(sep=None, maxsplit=-1)",
        "A list of the parts between separators.",
        |e, b, a| as_text(e, b, a, "split"),
    ),
    method("rsplit", "b.rsplit(sep=None, maxsplit=-1)", "As `split`, counting from the end.", |e, b, a| {
        as_text(e, b, a, "rsplit")
    }),
    method("splitlines", "b.splitlines(keepends=False)", "A list of the lines.", |e, b, a| {
        as_text(e, b, a, "splitlines")
    }),
    method(
        "partition",
        "b.partition(sep)",
        "The parts before, at and after the first separator.",
        |e, b, a| as_text(e, b, a, "partition"),
    ),
    method(
        "rpartition",
        "b.rpartition(sep)",
        "The parts before, at and after the last separator.",
        |e, b, a| as_text(e, b, a, "rpartition"),
    ),
    method("strip", "b.strip(chars=None)", "Blanks (or `chars`) cut from both ends.", |e, b, a| {
        as_text(e, b, a, "strip")
    }),
    method("lstrip", "b.lstrip(chars=None)", "Cut from the start.", |e, b, a| as_text(e, b, a, "lstrip")),
    method("rstrip", "b.rstrip(chars=None)", "Cut from the end.", |e, b, a| as_text(e, b, a, "rstrip")),
    method("join", "b.join(items)", "The byte strings in `items` with `b` between them.", |e, b, a| {
        as_text(e, b, a, "join")
    }),
    method("removeprefix", "b.removeprefix(prefix)", "Without the prefix, if it is there.", |e, b, a| {
        as_text(e, b, a, "removeprefix")
    }),
    method("removesuffix", "b.removesuffix(suffix)", "Without the suffix, if it is there.", |e, b, a| {
        as_text(e, b, a, "removesuffix")
    }),
    method("ljust", "b.ljust(width, fill=b' ')", "Filled up at the end.", |e, b, a| {
        as_text(e, b, a, "ljust")
    }),
    method("rjust", "b.rjust(width, fill=b' ')", "Filled up at the start.", |e, b, a| {
        as_text(e, b, a, "rjust")
    }),
    method("center", "b.center(width, fill=b' ')", "Filled up at both ends.", |e, b, a| {
        as_text(e, b, a, "center")
    }),
    method("zfill", "b.zfill(width)", "Zeros put in front, after a sign.", |e, b, a| {
        as_text(e, b, a, "zfill")
    }),
    method("expandtabs", "b.expandtabs(tabsize=8)", "Tabs replaced by spaces.", |e, b, a| {
        as_text(e, b, a, "expandtabs")
    }),
    method("title", "b.title()", "Each word with a capital.", |e, b, a| as_text(e, b, a, "title")),
    method("capitalize", "b.capitalize()", "The first letter upper case, the rest lower.", |e, b, a| {
        as_text(e, b, a, "capitalize")
    }),
    method("swapcase", "b.swapcase()", "Upper and lower case exchanged.", |e, b, a| {
        as_text(e, b, a, "swapcase")
    }),
    method("isalnum", "b.isalnum()", "Whether all are letters or digits.", |e, b, a| {
        as_text(e, b, a, "isalnum")
    }),
    method("isalpha", "b.isalpha()", "Whether all are letters.", |e, b, a| as_text(e, b, a, "isalpha")),
    method("isascii", "b.isascii()", "Whether all are ASCII.", |e, b, a| as_text(e, b, a, "isascii")),
    method("isdigit", "b.isdigit()", "Whether all are digits.", |e, b, a| as_text(e, b, a, "isdigit")),
    method("islower", "b.islower()", "Whether all letters are lower case.", |e, b, a| {
        as_text(e, b, a, "islower")
    }),
    method("isupper", "b.isupper()", "Whether all letters are upper case.", |e, b, a| {
        as_text(e, b, a, "isupper")
    }),
    method("isspace", "b.isspace()", "Whether all are blanks.", |e, b, a| as_text(e, b, a, "isspace")),
    method("istitle", "b.istitle()", "Whether each word begins with a capital.", |e, b, a| {
        as_text(e, b, a, "istitle")
    }),
];

/// The text a method was called on. The table only puts these methods on texts.
fn receiver(value: &Value) -> Text {
    match value {
        Value::Str(text) => text.clone(),
        _ => Text::empty(),
    }
}

fn text_argument(value: &Value, method: &str) -> Result<Text, Error> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        other => Err(Error::type_(format!("{method}() argument must be str, not {}", other.type_name()))),
    }
}

/// A part of a text as a value; the whole text is shared rather than copied.
fn slice_of(eval: &mut Eval<'_>, whole: &Text, part: &str) -> Result<Value, Error> {
    if part.len() == whole.len() {
        return Ok(Value::Str(whole.clone()));
    }
    eval.fuel.allocate(part.len())?;
    Ok(Value::str(part))
}

fn parts_of<'t>(eval: &mut Eval<'_>, parts: impl Iterator<Item = &'t str>) -> Result<Value, Error> {
    let mut items = Vec::new();
    for part in parts {
        eval.fuel.allocate(part.len())?;
        eval.push(&mut items, Value::str(part))?;
    }
    Ok(Value::list(items))
}

/// As Python's `shlex.quote`: plain words stay as they are, everything else stands in single quotes.
fn shell_quote(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let text = match args.one("shell_quote")? {
        Value::Str(text) => text,
        other => {
            let message = format!("shell_quote() takes text, not {}", other.type_name());
            return Err(Error::type_(message).with_hint("make it text with `str(...)`"));
        }
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return Ok(Value::Str(text));
    }
    let quotes = text.matches('\'').count();
    eval.fuel.allocate(text.len() + 4 * quotes + 2)?;
    Ok(Value::str(format!("'{}'", text.replace('\'', "'\"'\"'"))))
}

fn chr(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    eval.fuel.allocate(4)?;
    let code = ops::index(&args.one("chr")?)?;
    if i32::try_from(code).is_err() {
        return Err(Error::overflow("signed integer is out of the range of a C int"));
    }
    let code = u32::try_from(code).ok().filter(|code| *code <= 0x10_ffff);
    let code = code.ok_or_else(|| Error::value("chr() arg not in range(0x110000)"))?;
    match char::from_u32(code) {
        Some(c) => Ok(Value::Str(Text::one(c))),
        None => Err(Error::value(format!("U+{code:04X} is half of a surrogate pair, not a character"))),
    }
}

fn ord(_: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    match args.one("ord")? {
        Value::Str(text) if text.chars_len() == 1 => {
            Ok(Value::Int(text.chars().next().map_or(0, |c| i64::from(c as u32))))
        }
        Value::Bytes(bytes) if bytes.len() == 1 => {
            Ok(Value::Int(bytes.first().map_or(0, |byte| i64::from(*byte))))
        }
        Value::Str(text) => Err(Error::type_(format!(
            "ord() expected a character, but string of length {} found",
            text.chars_len()
        ))),
        other => {
            Err(Error::type_(format!("ord() expected string of length 1, but {} found", other.type_name())))
        }
    }
}

fn str(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [value, encoding, errors] = args.bind("str", ["object", "encoding", "errors"], 0)?;
    let Some(value) = value else { return Ok(Value::Str(Text::empty())) };
    if encoding.is_some() || errors.is_some() {
        let Value::Bytes(_) = value else {
            return Err(Error::type_(format!(
                "decoding to str: need a bytes-like object, {} found",
                value.type_name()
            )));
        };
        return decode_with(eval, &value, encoding, errors);
    }
    match &value {
        Value::Str(_) => Ok(value),
        _ => crate::repr::text(&value, &mut eval.fuel).map(Value::str),
    }
}

/// Where bytes outside ASCII go: characters for private use.
const PRIVATE: u32 = 0xe000;
