//! Functions and methods of texts and byte strings. Positions count characters, as in Python, and every
//! result that can be longer than its input is paid for before it is built.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::{Builtin, Constructor, Method, constructor, function, method, type_method};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::ops::sequence::{ITEM, char_range};
use crate::ops::{self};
use crate::types::Type;
use crate::value::{Dict, DictMap, Text, Value};

pub(crate) static FUNCTIONS: &[Builtin] = &[
    function("chr", "chr(n)", "The character with the given number.", chr),
    function("ord", "ord(c)", "The number of a character.", ord),
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
        strip(e, s, a, "strip", true, true)
    }),
    method("trim", "s.trim()", "The same as `s.strip()`; not in Python.", |e, s, a| {
        a.none("trim")?;
        strip(e, s, Args::default(), "trim", true, true)
    }),
    method("lstrip", "s.lstrip(chars=None)", "Cut from the start.", |e, s, a| {
        strip(e, s, a, "lstrip", true, false)
    }),
    method("rstrip", "s.rstrip(chars=None)", "Cut from the end.", |e, s, a| {
        strip(e, s, a, "rstrip", false, true)
    }),
    method("split", "s.split(sep=None, maxsplit=-1)", "A list of the parts between separators.", split),
    method("rsplit", "s.rsplit(sep=None, maxsplit=-1)", "As `split`, counting from the end.", rsplit),
    method("splitlines", "s.splitlines(keepends=False)", "A list of the lines.", splitlines),
    method(
        "partition",
        "s.partition(sep)",
        "The parts before, at and after the first separator.",
        |e, s, a| partition(e, s, a, "partition", false),
    ),
    method(
        "rpartition",
        "s.rpartition(sep)",
        "The parts before, at and after the last separator.",
        |e, s, a| partition(e, s, a, "rpartition", true),
    ),
    method("join", "s.join(items)", "The texts in `items` with `s` between them.", join),
    method("replace", "s.replace(old, new, count=-1)", "Every `old` replaced by `new`.", replace),
    method("find", "s.find(sub, start=0, end=None)", "Where `sub` begins, or -1.", |e, s, a| {
        Ok(Value::Int(find(e, s, a, "find", false)?.unwrap_or(-1)))
    }),
    method("rfind", "s.rfind(sub, start=0, end=None)", "Where the last `sub` begins, or -1.", |e, s, a| {
        Ok(Value::Int(find(e, s, a, "rfind", true)?.unwrap_or(-1)))
    }),
    method("index", "s.index(sub, start=0, end=None)", "As `find`, but missing is an error.", |e, s, a| {
        find(e, s, a, "index", false)?.map(Value::Int).ok_or_else(|| Error::value("substring not found"))
    }),
    method(
        "rindex",
        "s.rindex(sub, start=0, end=None)",
        "As `rfind`, but missing is an error.",
        |e, s, a| {
            find(e, s, a, "rindex", true)?.map(Value::Int).ok_or_else(|| Error::value("substring not found"))
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
        pad(e, s, a, "ljust", Side::Right)
    }),
    method("rjust", "s.rjust(width, fill=' ')", "Filled up at the start.", |e, s, a| {
        pad(e, s, a, "rjust", Side::Left)
    }),
    method("center", "s.center(width, fill=' ')", "Filled up at both ends.", |e, s, a| {
        pad(e, s, a, "center", Side::Both)
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
    method("hex", "b.hex()", "The bytes in base 16.", |e, b, a| {
        a.none("hex")?;
        let Value::Bytes(bytes) = b else { return Ok(Value::None) };
        e.fuel.allocate(bytes.len() * 2)?;
        Ok(Value::str(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
    }),
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

fn cased(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    change: fn(&str) -> String,
) -> Result<Value, Error> {
    args.none(name)?;
    let text = receiver(value);
    // The longest expansion turns one character into three.
    eval.fuel.allocate(text.len() * 3)?;
    Ok(Value::str(change(&text)))
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase())
        } else {
            push_title(&mut out, c)
        }
        inside = is_cased(c);
    }
    out
}

fn capitalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    if let Some(first) = chars.next() {
        push_title(&mut out, first);
    }
    out.push_str(&chars.as_str().to_lowercase());
    out
}

/// The title-case form: upper case, except for the digraphs and ligatures that have a form between.
fn push_title(out: &mut String, c: char) {
    match c {
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        '\u{10d0}'..='\u{10ff}' => out.push(c),
        _ => {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            for rest in upper {
                if c == 'ŉ' { out.push(rest) } else { out.extend(rest.to_lowercase()) }
            }
        }
    }
}

fn is_title(c: char) -> bool {
    get_general_category(c) == GeneralCategory::TitlecaseLetter
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || is_title(c)
}

fn swapcase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() { out.extend(c.to_lowercase()) } else { out.extend(c.to_uppercase()) }
    }
    out
}

fn casefold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'ı' => out.push(c),
            'ẞ' => out.push_str("ss"),
            _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
            _ => c.to_uppercase().for_each(|upper| out.extend(upper.to_lowercase())),
        }
    }
    out
}

fn strip(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    left: bool,
    right: bool,
) -> Result<Value, Error> {
    let [chars] = args.bind(name, ["/chars"], 0)?;
    let text = receiver(value);
    let chars = match chars {
        None | Some(Value::None) => None,
        Some(Value::Str(chars)) => Some(chars),
        Some(_) => return Err(Error::type_(format!("{name} arg must be None or str"))),
    };
    if let Some(chars) = &chars {
        eval.fuel.spend((text.len() as u64).saturating_mul(chars.len() as u64) >> 5)?;
    }
    let cut = |c: char| match &chars {
        None => is_space(c),
        Some(chars) => chars.contains(c),
    };
    let mut rest = &*text;
    if left {
        rest = rest.trim_start_matches(cut);
    }
    if right {
        rest = rest.trim_end_matches(cut);
    }
    slice_of(eval, &text, rest)
}

/// Separator and bound of a split.
fn split_arguments(args: Args, name: &str) -> Result<(Option<Text>, usize), Error> {
    let [sep, maxsplit] = args.bind(name, ["sep", "maxsplit"], 0)?;
    let sep = match sep {
        None | Some(Value::None) => None,
        Some(Value::Str(sep)) if sep.is_empty() => return Err(Error::value("empty separator")),
        Some(Value::Str(sep)) => Some(sep),
        Some(other) => return Err(Error::type_(format!("must be str or None, not {}", other.type_name()))),
    };
    let most = maxsplit.map_or(Ok(-1), |most| ops::index(&most))?;
    Ok((sep, usize::try_from(most).unwrap_or(usize::MAX)))
}

fn split(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let (sep, most) = split_arguments(args, "split")?;
    let text = receiver(value);
    eval.fuel.spend(text.len() as u64 >> 5)?;
    match sep {
        Some(sep) => parts_of(eval, text.splitn(most.saturating_add(1), sep.as_str())),
        None => {
            let mut rest = text.trim_start_matches(is_space);
            let mut left = most;
            parts_of(
                eval,
                std::iter::from_fn(|| {
                    if rest.is_empty() {
                        return None;
                    }
                    if left == 0 {
                        return Some(std::mem::take(&mut rest));
                    }
                    left -= 1;
                    let end = rest.find(is_space).unwrap_or(rest.len());
                    let (part, after) = rest.split_at(end);
                    rest = after.trim_start_matches(is_space);
                    Some(part)
                }),
            )
        }
    }
}

fn rsplit(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let (sep, most) = split_arguments(args, "rsplit")?;
    let text = receiver(value);
    eval.fuel.spend(text.len() as u64 >> 5)?;
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = &*text;
    match &sep {
        Some(sep) => {
            eval.fuel.allocate(text.len() * 16 / sep.len().max(1))?;
            while parts.len() < most {
                let Some((before, after)) = rest.rsplit_once(sep.as_str()) else { break };
                parts.push(after);
                rest = before;
            }
            parts.push(rest);
        }
        None => {
            eval.fuel.allocate(text.len() * 8)?;
            rest = rest.trim_end_matches(is_space);
            while !rest.is_empty() {
                if parts.len() == most {
                    parts.push(rest);
                    break;
                }
                let start = rest
                    .char_indices()
                    .rev()
                    .find(|(_, c)| is_space(*c))
                    .map_or(0, |(at, c)| at + c.len_utf8());
                let (before, part) = rest.split_at(start);
                parts.push(part);
                rest = before.trim_end_matches(is_space);
            }
        }
    }
    parts_of(eval, parts.into_iter().rev())
}

fn splitlines(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [keep] = args.bind("splitlines", ["keepends"], 0)?;
    let keep = keep.is_some_and(|keep| ops::truth(&keep));
    let text = receiver(value);
    eval.fuel.spend(text.len() as u64 >> 5)?;
    let mut rest = &*text;
    parts_of(
        eval,
        std::iter::from_fn(|| {
            if rest.is_empty() {
                return None;
            }
            let end = rest.find(is_line_end).unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            let mark =
                if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(0, char::len_utf8) };
            let (with_end, next) = rest.split_at(end + mark);
            rest = next;
            Some(if keep { with_end } else { line })
        }),
    )
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn partition(eval: &mut Eval<'_>, value: &Value, args: Args, name: &str, last: bool) -> Result<Value, Error> {
    let sep = match args.one(name)? {
        Value::Str(sep) => sep,
        other => return Err(Error::type_(format!("must be str, not {}", other.type_name()))),
    };
    if sep.is_empty() {
        return Err(Error::value("empty separator"));
    }
    let text = receiver(value);
    eval.fuel.allocate(text.len() + 3 * ITEM)?;
    let found = if last { text.rsplit_once(sep.as_str()) } else { text.split_once(sep.as_str()) };
    let parts = match found {
        Some((before, after)) => [Value::str(before), Value::Str(sep), Value::str(after)],
        None => {
            let empty = Value::Str(Text::empty());
            if last {
                [empty.clone(), empty, Value::Str(text)]
            } else {
                [Value::Str(text), empty.clone(), empty]
            }
        }
    };
    Ok(Value::tuple(parts.to_vec()))
}

fn join(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let separator = receiver(value);
    let items = args.one("join")?;
    let items = match crate::iter::Iter::over(&items) {
        Ok(_) => eval.collect_value(&items)?,
        Err(_) => return Err(Error::type_("can only join an iterable")),
    };
    let mut length = separator.len().saturating_mul(items.len().saturating_sub(1));
    for (index, item) in items.iter().enumerate() {
        match item {
            Value::Str(text) => length = length.saturating_add(text.len()),
            other => {
                return Err(Error::type_(format!(
                    "sequence item {index}: expected str instance, {} found",
                    other.type_name()
                ))
                .with_hint("turn the items into text first: str(x) for x in ..."));
            }
        }
    }
    eval.fuel.allocate(length)?;
    let mut out = String::with_capacity(length);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&separator);
        }
        out.push_str(item.as_str().unwrap_or_default());
    }
    Ok(Value::str(out))
}

fn replace(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [old, new, count] = args.bind("replace", ["/old", "/new", "/count"], 2)?;
    let (old, new) = match (old, new) {
        (Some(Value::Str(old)), Some(Value::Str(new))) => (old, new),
        (old, new) => {
            let (place, wrong) = if matches!(old, Some(Value::Str(_))) { (2, new) } else { (1, old) };
            let wrong = wrong.map_or("NoneType", |value| value.type_name());
            return Err(Error::type_(format!("replace() argument {place} must be str, not {wrong}")));
        }
    };
    let most = usize::try_from(count.map_or(Ok(-1), |count| ops::index(&count))?).unwrap_or(usize::MAX);
    let text = receiver(value);
    eval.fuel.spend(text.len() as u64 >> 5)?;
    // One character is found by looking; longer texts need the search that never goes back.
    let mut chars = old.chars();
    let single = chars.next().filter(|_| chars.next().is_none());
    let found = match single {
        Some(only) => text.matches(only).count(),
        None if old.is_empty() => text.chars_len() + 1,
        None => text.matches(old.as_str()).count(),
    };
    let hits = found.min(most);
    if hits == 0 {
        return Ok(Value::Str(text));
    }
    let length = text.len().saturating_add(hits.saturating_mul(new.len())).saturating_sub(hits * old.len());
    eval.fuel.allocate(length)?;
    Ok(Value::str(match single {
        Some(only) => text.replacen(only, &new, hits),
        None => text.replacen(old.as_str(), &new, hits),
    }))
}

/// The part of a text between two optional positions, with the character its start has.
fn window(text: &Text, start: Option<Value>, end: Option<Value>) -> Result<Option<(&str, usize)>, Error> {
    let length = i64::try_from(text.chars_len()).unwrap_or(i64::MAX);
    let place = |value: Option<Value>, default: i64| -> Result<i64, Error> {
        let at = match value {
            None | Some(Value::None) => return Ok(default),
            Some(Value::Big(number)) => {
                if num_traits::Signed::is_negative(&*number) {
                    i64::MIN
                } else {
                    i64::MAX
                }
            }
            Some(Value::Int(_) | Value::Bool(_)) => ops::index(&value.unwrap_or(Value::None))?,
            Some(_) => {
                return Err(Error::type_(
                    "slice indices must be integers or None or have an __index__ method",
                ));
            }
        };
        Ok(if at < 0 { at.saturating_add(length).max(0) } else { at })
    };
    let start = place(start, 0)?;
    let end = place(end, length)?.min(length);
    if start > end {
        return Ok(None);
    }
    let (start, count) = (start as usize, (end - start) as usize);
    Ok(Some((char_range(text, start, count), start)))
}

fn find(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    last: bool,
) -> Result<Option<i64>, Error> {
    let [sub, start, end] = args.bind(name, ["/sub", "/start", "/end"], 1)?;
    let Some(Value::Str(sub)) = sub else {
        return Err(Error::type_(format!(
            "must be str, not {}",
            sub.map_or("NoneType", |sub| sub.type_name())
        )));
    };
    let text = receiver(value);
    eval.fuel.spend(text.len() as u64 >> 5)?;
    let Some((part, offset)) = window(&text, start, end)? else { return Ok(None) };
    let found = if last { part.rfind(sub.as_str()) } else { part.find(sub.as_str()) };
    Ok(found.map(|at| {
        let before = part.get(..at).unwrap_or_default();
        let characters = if text.is_ascii() { before.len() } else { before.chars().count() };
        (offset + characters) as i64
    }))
}

fn count(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [sub, start, end] = args.bind("count", ["/sub", "/start", "/end"], 1)?;
    let Some(Value::Str(sub)) = sub else {
        return Err(Error::type_(format!(
            "must be str, not {}",
            sub.map_or("NoneType", |sub| sub.type_name())
        )));
    };
    let text = receiver(value);
    eval.fuel.spend(text.len() as u64 >> 5)?;
    let count = match window(&text, start, end)? {
        None => 0,
        Some((part, _)) if sub.is_empty() => part.chars().count() + 1,
        Some((part, _)) => part.matches(sub.as_str()).count(),
    };
    Ok(Value::Int(count as i64))
}

fn affix(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    test: fn(&str, &str) -> bool,
) -> Result<Value, Error> {
    let [wanted, start, end] = args.bind(name, ["/prefix", "/start", "/end"], 1)?;
    let text = receiver(value);
    let part = window(&text, start, end)?.map(|(part, _)| part);
    let wrong = |other: &Value| {
        Error::type_(format!("{name} first arg must be str or a tuple of str, not {}", other.type_name()))
    };
    match wanted {
        Some(Value::Str(wanted)) => Ok(Value::Bool(part.is_some_and(|part| test(part, &wanted)))),
        Some(Value::Tuple(options)) => {
            for option in options.iter() {
                eval.fuel.spend(1)?;
                let Value::Str(option) = option else { return Err(wrong(option)) };
                if part.is_some_and(|part| test(part, option)) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        other => Err(wrong(&other.unwrap_or(Value::None))),
    }
}

fn zfill(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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

enum Side {
    Left,
    Right,
    Both,
}

fn pad(eval: &mut Eval<'_>, value: &Value, args: Args, name: &str, side: Side) -> Result<Value, Error> {
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
        Side::Left => missing,
        Side::Right => 0,
        // An odd rest goes left when the width is odd too, as Python has it.
        Side::Both => missing / 2 + (missing & width & 1),
    };
    let mut out = String::with_capacity(text.len() + missing * fill.len_utf8());
    out.extend(std::iter::repeat_n(fill, left));
    out.push_str(&text);
    out.extend(std::iter::repeat_n(fill, missing - left));
    Ok(Value::str(out))
}

fn expandtabs(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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

fn translate(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let table = args.one("translate")?;
    let Value::Dict(table) = &table else {
        return Err(Error::type_(format!("'{}' object is not subscriptable", table.type_name())));
    };
    let text = receiver(value);
    let mut out = String::new();
    for c in text.chars() {
        eval.fuel.spend(1)?;
        let key = ops::key(&Value::Int(i64::from(c as u32)), &mut eval.fuel)?;
        match table.find(&key) {
            None => {
                eval.fuel.allocate(0)?;
                out.push(c);
            }
            Some(Value::None) => {}
            Some(Value::Str(text)) => {
                eval.fuel.allocate(text.len())?;
                out.push_str(&text);
            }
            Some(Value::Int(code)) => {
                let c = u32::try_from(code).ok().and_then(char::from_u32);
                out.push(c.ok_or_else(|| Error::value("character mapping must be in range(0x110000)"))?);
            }
            Some(_) => return Err(Error::type_("character mapping must return integer, None or str")),
        }
    }
    Ok(Value::str(out))
}

fn maketrans(eval: &mut Eval<'_>, _: &Value, args: Args) -> Result<Value, Error> {
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

fn every(value: &Value, args: Args, name: &str, test: fn(char) -> bool) -> Result<Value, Error> {
    args.none(name)?;
    let text = receiver(value);
    Ok(Value::Bool(!text.is_empty() && text.chars().all(test)))
}

fn istitle(_: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    args.none("istitle")?;
    let (mut cased, mut previous_cased) = (false, false);
    for c in receiver(value).chars() {
        if c.is_uppercase() || is_title(c) {
            if previous_cased {
                return Ok(Value::Bool(false));
            }
            (cased, previous_cased) = (true, true);
        } else if c.is_lowercase() {
            if !previous_cased {
                return Ok(Value::Bool(false));
            }
            cased = true;
        } else {
            previous_cased = false;
        }
    }
    Ok(Value::Bool(cased))
}

/// Python's idea of a blank, which includes four control characters Unicode leaves out.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

fn is_alpha(c: char) -> bool {
    use GeneralCategory::{LowercaseLetter, ModifierLetter, OtherLetter, TitlecaseLetter, UppercaseLetter};
    c.is_ascii_alphabetic()
        || !c.is_ascii()
            && matches!(
                get_general_category(c),
                LowercaseLetter | ModifierLetter | OtherLetter | TitlecaseLetter | UppercaseLetter
            )
}

fn is_decimal(c: char) -> bool {
    c.is_ascii_digit() || !c.is_ascii() && get_general_category(c) == GeneralCategory::DecimalNumber
}

fn is_digit(c: char) -> bool {
    is_decimal(c)
        || matches!(c,
            '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{1369}'..='\u{1371}' | '\u{19da}' | '\u{2070}'
            | '\u{2074}'..='\u{2079}' | '\u{2080}'..='\u{2089}' | '\u{2460}'..='\u{2468}'
            | '\u{2474}'..='\u{247c}' | '\u{2488}'..='\u{2490}' | '\u{24ea}' | '\u{24f5}'..='\u{24fd}'
            | '\u{24ff}' | '\u{2776}'..='\u{277e}' | '\u{2780}'..='\u{2788}' | '\u{278a}'..='\u{2792}'
            | '\u{10a40}'..='\u{10a43}' | '\u{10e60}'..='\u{10e68}' | '\u{11052}'..='\u{1105a}'
            | '\u{1f100}'..='\u{1f10a}')
}

fn is_numeric(c: char) -> bool {
    is_digit(c)
        || matches!(get_general_category(c), GeneralCategory::LetterNumber | GeneralCategory::OtherNumber)
        || "〇一二三四五六七八九十百千万亿億兆零壹贰叁肆伍陆柒捌玖拾佰仟萬両兩壱弐参弍弎".contains(c)
}

fn is_alnum(c: char) -> bool {
    is_alpha(c) || is_numeric(c)
}

/// Digits of other scripts as ASCII, so that numbers written with them can be read.
pub(crate) fn to_ascii_digits(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            _ if c.is_ascii() || !is_decimal(c) => c,
            // Decimal digits come in blocks of ten that end below a multiple of ten or sixteen.
            _ => {
                let zero = (0..10)
                    .take_while(|back| char::from_u32(c as u32 - back).is_some_and(is_decimal))
                    .count()
                    - 1;
                char::from_digit(u32::try_from(zero).unwrap_or(0), 10).unwrap_or(c)
            }
        })
        .collect()
}

fn chr(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    eval.fuel.allocate(4)?;
    let code = ops::index(&args.one("chr")?)?;
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

fn bytes(eval: &mut Eval<'_>, args: Args) -> Result<Value, Error> {
    let [source, encoding, errors] = args.bind("bytes", ["source", "encoding", "errors"], 0)?;
    match source {
        None => Ok(Value::bytes(Vec::new())),
        Some(Value::Str(text)) => match encoding {
            Some(encoding) => encode_with(eval, &text, Some(encoding), errors),
            None => Err(Error::type_("string argument without an encoding")),
        },
        Some(value @ Value::Bytes(_)) => Ok(value),
        Some(Value::Int(length)) => {
            let length = usize::try_from(length).map_err(|_| Error::value("negative count"))?;
            eval.fuel.allocate(length)?;
            Ok(Value::bytes(vec![0; length]))
        }
        Some(other) => {
            let items = eval.collect_value(&other)?;
            eval.fuel.allocate(items.len())?;
            let bytes: Result<Vec<u8>, Error> = items
                .iter()
                .map(|item| {
                    u8::try_from(ops::index(item)?)
                        .map_err(|_| Error::value("bytes must be in range(0, 256)"))
                })
                .collect();
            bytes.map(Value::bytes)
        }
    }
}

fn encode(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [encoding, errors] = args.bind("encode", ["encoding", "errors"], 0)?;
    encode_with(eval, &receiver(value), encoding, errors)
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
        Some(other) => Err(Error::type_(format!("errors must be str, not {}", other.type_name()))),
    }
}

fn encode_with(
    eval: &mut Eval<'_>,
    text: &Text,
    encoding: Option<Value>,
    errors: Option<Value>,
) -> Result<Value, Error> {
    let bound = codec(&encoding)?;
    let mode = error_mode(&errors)?;
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

fn decode(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [encoding, errors] = args.bind("decode", ["encoding", "errors"], 0)?;
    decode_with(eval, value, encoding, errors)
}

fn decode_with(
    eval: &mut Eval<'_>,
    value: &Value,
    encoding: Option<Value>,
    errors: Option<Value>,
) -> Result<Value, Error> {
    let Value::Bytes(bytes) = value else { return Ok(Value::None) };
    let bound = codec(&encoding)?;
    let mode = error_mode(&errors)?;
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

fn fromhex(eval: &mut Eval<'_>, _: &Value, args: Args) -> Result<Value, Error> {
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

fn ascii_case(
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
fn as_text(eval: &mut Eval<'_>, value: &Value, args: Args, name: &str) -> Result<Value, Error> {
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
            Value::Bytes(_) | Value::Str(_) if name != "splitlines" => widen_bytes(eval, &arg)?,
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

/// Where bytes outside ASCII go: characters for private use.
const PRIVATE: u32 = 0xe000;

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
