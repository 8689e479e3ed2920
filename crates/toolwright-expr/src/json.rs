//! JSON both ways: the functions programs call, which follow Python's `json` module, and the conversion to
//! and from `serde_json`, which refuses rather than loses what JSON cannot hold.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use serde_json::Number as JsonNumber;
use serde_json::Value as Json;

use crate::error::{Error, LimitKind};
use crate::eval::Eval;
use crate::fuel::{EvalLimits, Fuel};
use crate::ops::DICT_ENTRY;
use crate::ops::sequence::ITEM;
use crate::value::{Dict, DictMap, Key, ObjectData, Value};

/// The largest document that is made of any value, as it is in memory: about 4,000,000 numbers, or 300,000
/// objects of two fields.
const LOSSY_BYTES: u64 = 128 << 20;
/// More steps than a document of that size takes.
const LOSSY_STEPS: u64 = 64_000_000;

/// Deepest nesting of JSON that is read or written.
const MAX_DEPTH: u32 = 200;

impl Value {
    /// The value of a JSON document.
    pub fn from_json(json: &Json) -> Value {
        match json {
            Json::Null => Value::None,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => from_number(number),
            Json::String(text) => Value::str(text.as_str()),
            Json::Array(items) => Value::list(items.iter().map(Value::from_json).collect()),
            Json::Object(fields) => {
                let entries =
                    fields.iter().map(|(key, value)| (Key::text(key.as_str()), Value::from_json(value)));
                Value::Dict(Dict::new(entries.collect::<DictMap>()))
            }
        }
    }

    /// The value as a JSON document. Tuples and sets become arrays, structs objects.
    ///
    /// # Errors
    /// When the value holds something JSON cannot: NaN, infinity, bytes, functions, integers beyond 64 bits,
    /// keys that are not text, or more than 200 levels.
    pub fn to_json(&self) -> Result<Json, Error> {
        let limits = EvalLimits { depth: MAX_DEPTH, ..EvalLimits::default() };
        to_json(self, &mut Rest::Refused, &mut Fuel::new(&limits))
    }

    /// The value as a JSON document, in which iterators are lists, and what JSON lacks is text, as is what is
    /// over 200 levels deep: only that, and nothing around it. `limits` are what all its iterators together
    /// may spend, and until when.
    ///
    /// # Errors
    /// When an iterator fails or they reach a limit, or the document takes more than 128 MiB of memory
    /// ([`LimitKind::Output`]). A list that holds another many times is small, and its document is not.
    pub fn to_lossy_json(&self, limits: &EvalLimits) -> Result<Json, Error> {
        let (cancel, deadline) = (limits.cancel.clone(), limits.deadline);
        let own = EvalLimits {
            depth: MAX_DEPTH,
            steps: LOSSY_STEPS,
            bytes: LOSSY_BYTES,
            cancel,
            deadline,
            ..EvalLimits::default()
        };
        let mut rest = Rest::AsText(Iterators { limits, eval: None, failed: false });
        to_json(self, &mut rest, &mut Fuel::new(&own)).map_err(|error| match (error.limit(), rest) {
            (Some(_), Rest::AsText(Iterators { failed: true, .. })) => error,
            (Some(LimitKind::Steps | LimitKind::Bytes), _) => {
                Error::limited(LimitKind::Output, "the document takes more than 128 MiB of memory")
            }
            _ => error,
        })
    }

    /// Reads JSON as `parse_json` of the language does: integers have any size, and numbers beyond the floats
    /// are infinite.
    ///
    /// # Errors
    /// When the text is no JSON, which says where, or holds more than the limits allow.
    pub fn parse_json(text: &str, limits: &EvalLimits) -> Result<Value, Error> {
        parse(text, &mut Fuel::new(limits))
    }

    /// The value as JSON text on one line, integers of any size included.
    ///
    /// # Errors
    /// As [`to_json`](Self::to_json), but for the integers; they have up to 4300 digits.
    pub fn json_text(&self) -> Result<String, Error> {
        let limits = EvalLimits { depth: MAX_DEPTH, ..EvalLimits::default() };
        let fuel = &mut Fuel::new(&limits);
        let mut printer = Printer { out: String::new(), style: JsonStyle::Strict, level: 0, fuel };
        printer.value(self)?;
        Ok(printer.out)
    }
}

/// Like [`Value::from_json`], but consumes the document: long texts are moved rather than copied.
impl From<Json> for Value {
    fn from(json: Json) -> Value {
        match json {
            Json::String(text) => Value::str(text),
            Json::Array(items) => Value::list(items.into_iter().map(Value::from).collect()),
            Json::Object(fields) => {
                let entries = fields.into_iter().map(|(key, value)| (Key::text(key), Value::from(value)));
                Value::Dict(Dict::new(entries.collect::<DictMap>()))
            }
            scalar => Value::from_json(&scalar),
        }
    }
}

fn from_number(number: &JsonNumber) -> Value {
    if let Some(small) = number.as_i64() {
        return Value::Int(small);
    }
    if let Some(large) = number.as_u64() {
        return Value::integer(BigInt::from(large));
    }
    // Only with serde_json's arbitrary precision can an integer get here.
    let text = number.to_string();
    match BigInt::parse_bytes(text.as_bytes(), 10) {
        Some(integer) if text.len() <= crate::lexer::MAX_TEXT_DIGITS => Value::integer(integer),
        _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// What becomes of that which JSON lacks.
enum Rest<'l> {
    Refused,
    AsText(Iterators<'l>),
}

/// The iterators of a document: one evaluation runs them all, so that they share what it may spend.
struct Iterators<'l> {
    limits: &'l EvalLimits,
    /// There once it is needed, which is hardly ever.
    eval: Option<Box<Eval<'l>>>,
    failed: bool,
}

impl Iterators<'_> {
    fn list(&mut self, iterator: &Value) -> Result<Vec<Value>, Error> {
        let eval = match &mut self.eval {
            Some(eval) => eval,
            none => none.insert(Box::new(crate::program::bare(self.limits)?)),
        };
        let listed = eval.collect_value(iterator);
        self.failed = listed.is_err();
        listed
    }
}

fn to_json(value: &Value, rest: &mut Rest<'_>, fuel: &mut Fuel<'_>) -> Result<Json, Error> {
    fuel.spend(1)?;
    Ok(match value {
        Value::None => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => Json::Number(JsonNumber::from(*number)),
        Value::Big(number) => match number.to_u64() {
            Some(number) => Json::Number(JsonNumber::from(number)),
            None => rest.of(value, fuel, || {
                Error::overflow("an integer beyond 64 bits does not fit JSON")
                    .with_hint("send it as text: str(n)")
            })?,
        },
        Value::Float(number) => match JsonNumber::from_f64(*number) {
            Some(number) => Json::Number(number),
            None => rest.of(value, fuel, || {
                Error::value(format!("JSON has no number for {}", crate::repr::float(*number)))
                    .with_hint("send it as text: str(x)")
            })?,
        },
        Value::Str(text) => {
            fuel.allocate(text.len())?;
            Json::String(text.as_str().to_owned())
        }
        Value::List(list) => array(&list.snapshot(), rest, fuel)?,
        Value::Tuple(items) => array(items, rest, fuel)?,
        Value::Set(set) => array(&crate::iter::set_order(&set.snapshot()), rest, fuel)?,
        Value::Dict(dict) => {
            let map = dict.snapshot();
            fuel.allocate_many(map.len(), DICT_ENTRY)?;
            let mut fields = serde_json::Map::with_capacity(map.len());
            deeper(rest, fuel, |rest, fuel| {
                for (key, value) in map.iter() {
                    let key = match key_text(&key.value, fuel) {
                        Err(error) if matches!(rest, Rest::Refused) || error.limit().is_some() => {
                            return Err(error);
                        }
                        Err(_) => crate::repr::text(&key.value, fuel)?,
                        Ok(key) => key,
                    };
                    fields.insert(key, to_json(value, rest, fuel)?);
                }
                Ok(Json::Object(fields))
            })?
        }
        Value::Object(object) => match object.data() {
            ObjectData::Struct(all) => {
                let mut fields = serde_json::Map::new();
                deeper(rest, fuel, |rest, fuel| {
                    for (name, value) in all {
                        fuel.allocate(DICT_ENTRY)?;
                        fields.insert(name.to_string(), to_json(value, rest, fuel)?);
                    }
                    Ok(Json::Object(fields))
                })?
            }
            ObjectData::View(kind, dict) => {
                let entries = dict.entries();
                let items: Vec<Value> = entries
                    .into_iter()
                    .map(|(key, value)| match kind {
                        crate::value::ViewKind::Keys => key,
                        crate::value::ViewKind::Values => value,
                        crate::value::ViewKind::Items => Value::tuple(vec![key, value]),
                    })
                    .collect();
                array(&items, rest, fuel)?
            }
            ObjectData::Yaml(..) => Json::String(crate::repr::text(value, fuel)?),
            ObjectData::Iter(..) | ObjectData::Generator(_) => deeper(rest, fuel, |rest, fuel| match rest {
                Rest::Refused => Err(not_json(value)),
                Rest::AsText(iterators) => items_of(&iterators.list(value)?, rest, fuel),
            })?,
            _ => rest.of(value, fuel, || not_json(value))?,
        },
        Value::Range(range) => {
            let count = range.count();
            fuel.allocate_many(usize::try_from(count).unwrap_or(usize::MAX), 32)?;
            Json::Array((0..count).map(|at| Json::Number(JsonNumber::from(range.at(at)))).collect())
        }
        Value::Bytes(_) | Value::Ellipsis | Value::Type(_) | Value::Builtin(_) | Value::Unbound => {
            rest.of(value, fuel, || not_json(value))?
        }
    })
}

impl Rest<'_> {
    fn of(&self, value: &Value, fuel: &mut Fuel<'_>, problem: impl FnOnce() -> Error) -> Result<Json, Error> {
        match self {
            Rest::Refused => Err(problem()),
            Rest::AsText(_) => crate::repr::text(value, fuel).map(Json::String),
        }
    }
}

fn array(items: &[Value], rest: &mut Rest<'_>, fuel: &mut Fuel<'_>) -> Result<Json, Error> {
    deeper(rest, fuel, |rest, fuel| items_of(items, rest, fuel))
}

fn items_of(items: &[Value], rest: &mut Rest<'_>, fuel: &mut Fuel<'_>) -> Result<Json, Error> {
    fuel.allocate_many(items.len(), size_of::<Json>())?;
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        all.push(to_json(item, rest, fuel)?);
    }
    Ok(Json::Array(all))
}

fn deeper<'l>(
    rest: &mut Rest<'l>,
    fuel: &mut Fuel<'_>,
    work: impl FnOnce(&mut Rest<'l>, &mut Fuel<'_>) -> Result<Json, Error>,
) -> Result<Json, Error> {
    match fuel.enter() {
        Err(_) if matches!(rest, Rest::AsText(_)) => return Ok(Json::String("...".to_owned())),
        entered => entered?,
    }
    let result = work(rest, fuel)?;
    fuel.leave();
    Ok(result)
}

#[cold]
fn not_json(value: &Value) -> Error {
    Error::type_(format!("a value of type '{}' does not fit JSON", value.type_name()))
}

/// Keys as Python's `json` writes them.
fn key_text(key: &Value, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    match key {
        Value::Str(text) => {
            fuel.allocate(text.len())?;
            Ok(text.as_str().to_owned())
        }
        Value::None => Ok("null".to_owned()),
        Value::Bool(true) => Ok("true".to_owned()),
        Value::Bool(false) => Ok("false".to_owned()),
        Value::Float(number) => Ok(float_text(*number)),
        Value::Int(_) | Value::Big(_) => crate::repr::repr(key, fuel),
        _ => {
            Err(Error::type_(format!("keys must be str, int, float, bool or None, not {}", key.type_name())))
        }
    }
}

fn float_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else {
        crate::repr::float(number)
    }
}

/// JSON text as Python's `json.dumps` writes it, non-ASCII kept; what JSON lacks is written as text.
pub(crate) fn print(value: &Value, pretty: bool, fuel: &mut Fuel<'_>) -> Result<String, Error> {
    let style = if pretty { JsonStyle::Pretty } else { JsonStyle::Python };
    let mut printer = Printer { out: String::new(), style, level: 0, fuel };
    printer.value(value)?;
    Ok(printer.out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonStyle {
    /// As `json.dumps` writes it.
    Python,
    /// The same with each value on a line of its own.
    Pretty,
    /// No blanks, and nothing that JSON lacks.
    Strict,
}

struct Printer<'p, 'f> {
    out: String,
    style: JsonStyle,
    level: usize,
    fuel: &'p mut Fuel<'f>,
}

impl Printer<'_, '_> {
    fn push(&mut self, text: &str) -> Result<(), Error> {
        self.fuel.allocate(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn value(&mut self, value: &Value) -> Result<(), Error> {
        self.fuel.spend(1)?;
        match value {
            Value::None => self.push("null"),
            Value::Bool(true) => self.push("true"),
            Value::Bool(false) => self.push("false"),
            Value::Int(_) | Value::Big(_) => {
                let text = crate::repr::repr(value, self.fuel)?;
                self.push(&text)
            }
            Value::Float(number) if self.style != JsonStyle::Strict => self.push(&float_text(*number)),
            Value::Str(text) => self.string(text),
            Value::List(list) => self.array(&list.snapshot()),
            Value::Tuple(items) => self.array(items),
            Value::Set(set) if self.style == JsonStyle::Strict => {
                self.array(&crate::iter::set_order(&set.snapshot()))
            }
            Value::Dict(dict) => {
                let map = dict.snapshot();
                self.group('{', '}', map.iter(), |printer, (key, value)| {
                    let key = key_text(&key.value, printer.fuel)?;
                    printer.name(&key)?;
                    printer.value(value)
                })
            }
            Value::Object(object) => match object.data() {
                ObjectData::Struct(fields) => {
                    self.group('{', '}', fields.iter(), |printer, (name, value)| {
                        printer.name(name)?;
                        printer.value(value)
                    })
                }
                _ => self.as_text(value),
            },
            _ => self.as_text(value),
        }
    }

    /// A value without a JSON type.
    fn as_text(&mut self, value: &Value) -> Result<(), Error> {
        if self.style == JsonStyle::Strict {
            let json = to_json(value, &mut Rest::Refused, self.fuel)?;
            return self.push(&json.to_string());
        }
        let text = crate::repr::text(value, self.fuel)?;
        self.string(&text)
    }

    fn array(&mut self, items: &[Value]) -> Result<(), Error> {
        self.group('[', ']', items.iter(), |printer, item| printer.value(item))
    }

    fn group<T>(
        &mut self,
        open: char,
        close: char,
        items: impl ExactSizeIterator<Item = T>,
        mut print: impl FnMut(&mut Self, T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(open);
        if items.len() == 0 {
            self.out.push(close);
            return Ok(());
        }
        self.fuel.enter()?;
        self.level += 1;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.push(if self.style == JsonStyle::Python { ", " } else { "," })?;
            }
            self.new_line()?;
            print(self, item)?;
        }
        self.level -= 1;
        self.new_line()?;
        self.fuel.leave();
        self.out.push(close);
        Ok(())
    }

    fn new_line(&mut self) -> Result<(), Error> {
        match self.style {
            JsonStyle::Pretty => self.push(&format!("\n{}", "  ".repeat(self.level))),
            JsonStyle::Python | JsonStyle::Strict => Ok(()),
        }
    }

    /// The name of a field and what parts it from its value.
    fn name(&mut self, name: &str) -> Result<(), Error> {
        self.string(name)?;
        self.push(if self.style == JsonStyle::Strict { ":" } else { ": " })
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        self.fuel.allocate(text.len() + 2)?;
        self.out.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            let (plain, special) = rest.split_at(at);
            self.out.push_str(plain);
            let mut chars = special.chars();
            let c = chars.next().unwrap_or(' ');
            rest = chars.as_str();
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\x08' => self.out.push_str("\\b"),
                '\x0c' => self.out.push_str("\\f"),
                '\0'..='\x1f' => {
                    self.fuel.allocate(6)?;
                    self.out.push_str(&format!("\\u{:04x}", c as u32));
                }
                _ => self.out.push(c),
            }
        }
        self.out.push_str(rest);
        self.out.push('"');
        Ok(())
    }
}

/// Reads JSON as Python's `json.loads` does: NaN and Infinity are numbers, integers have any size, a repeated
/// key keeps its last value.
pub(crate) fn parse(text: &str, fuel: &mut Fuel<'_>) -> Result<Value, Error> {
    fuel.spend(text.len() as u64 >> 4)?;
    let mut reader = JsonReader { text, at: 0, depth: 0, fuel };
    reader.blanks();
    let value = reader.value()?;
    reader.blanks();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.wrong("Extra data")),
    }
}

struct JsonReader<'t, 'p, 'f> {
    text: &'t str,
    at: usize,
    depth: u32,
    fuel: &'p mut Fuel<'f>,
}

impl<'t> JsonReader<'t, '_, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    #[cold]
    fn wrong(&self, what: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Error::value(format!("{what}: line {line} column {column} (char {})", before.chars().count()))
    }

    fn value(&mut self) -> Result<Value, Error> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::str),
            Some(b'[') => self.nested(Self::array),
            Some(b'{') => self.nested(Self::object),
            _ => self.word_or_number(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Error>) -> Result<Value, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::limited(
                LimitKind::Depth,
                format!("JSON is nested more than {MAX_DEPTH} deep"),
            ));
        }
        self.at += 1;
        self.blanks();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, Error> {
        self.fuel.allocate(64)?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            self.fuel.allocate(ITEM)?;
            items.push(self.value()?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::list(items));
                }
                _ => return Err(self.wrong("Expecting ',' delimiter")),
            }
            self.blanks();
        }
    }

    fn object(&mut self) -> Result<Value, Error> {
        self.fuel.allocate(128)?;
        let mut map = DictMap::default();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Dict(Dict::new(map)));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.wrong("Expecting property name enclosed in double quotes"));
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.wrong("Expecting ':' delimiter"));
            }
            self.at += 1;
            self.blanks();
            let value = self.value()?;
            self.fuel.allocate(DICT_ENTRY)?;
            map.insert(Key::text(key), value);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Dict(Dict::new(map)));
                }
                _ => return Err(self.wrong("Expecting ',' delimiter")),
            }
            self.blanks();
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(['"', '\\']) else {
                return Err(self.wrong("Unterminated string starting"));
            };
            let plain = rest.get(..end).unwrap_or_default();
            if plain.bytes().any(|byte| byte < 0x20) {
                return Err(self.wrong("Invalid control character"));
            }
            self.fuel.allocate(plain.len())?;
            out.push_str(plain);
            self.at += end + 1;
            if rest.as_bytes().get(end) == Some(&b'"') {
                return Ok(out);
            }
            out.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let mark = self.peek();
        self.at += 1;
        Ok(match mark {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.four_digits()?;
                let code = match first {
                    0xd800..=0xdbff if self.rest().starts_with("\\u") => {
                        self.at += 2;
                        let second = self.four_digits()?;
                        if !(0xdc00..=0xdfff).contains(&second) {
                            return Err(self.wrong("Unpaired surrogate"));
                        }
                        0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    other => other,
                };
                char::from_u32(code).ok_or_else(|| self.wrong("Unpaired surrogate"))?
            }
            _ => return Err(self.wrong("Invalid \\escape")),
        })
    }

    fn four_digits(&mut self) -> Result<u32, Error> {
        let digits =
            self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.wrong("Invalid \\uXXXX escape"))?;
        self.at += 4;
        Ok(code)
    }

    fn word_or_number(&mut self) -> Result<Value, Error> {
        let rest = self.rest();
        let words = [
            ("null", Value::None),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        if let Some((word, value)) = words.into_iter().find(|(word, _)| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(value);
        }
        self.number(rest)
    }

    fn number(&mut self, rest: &str) -> Result<Value, Error> {
        let bytes = rest.as_bytes();
        let digits_from = |start: usize| {
            bytes.get(start..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let sign = usize::from(bytes.first() == Some(&b'-'));
        let whole = digits_from(sign);
        if whole == 0 {
            return Err(self.wrong("Expecting value"));
        }
        // A leading zero stands alone; what follows is then extra data.
        let mut end = sign + if bytes.get(sign) == Some(&b'0') { 1 } else { whole };
        let mut float = false;
        if bytes.get(end) == Some(&b'.') && digits_from(end + 1) > 0 {
            float = true;
            end += 1 + digits_from(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let count = digits_from(end + 1 + sign);
            if count > 0 {
                float = true;
                end += 1 + sign + count;
            }
        }
        let text = rest.get(..end).unwrap_or_default();
        self.at += end;
        if float {
            return Ok(Value::Float(text.parse().unwrap_or(f64::NAN)));
        }
        if let Ok(small) = text.parse::<i64>() {
            return Ok(Value::Int(small));
        }
        if text.len() > crate::lexer::MAX_TEXT_DIGITS {
            return Err(crate::repr::too_many_digits());
        }
        let bits = text.len() as u64 * 4;
        self.fuel.integer(bits)?;
        self.fuel.spend(crate::ops::number::quadratic(bits, bits))?;
        BigInt::parse_bytes(text.as_bytes(), 10)
            .map(Value::integer)
            .ok_or_else(|| self.wrong("Expecting value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_survive_the_round_trip() {
        let json: Json =
            serde_json::from_str(r#"{"b": 1, "a": [true, null, 1.5, "é", 18446744073709551615, -3]}"#)
                .unwrap();
        assert_eq!(Value::from_json(&json).to_json().unwrap(), json);
    }

    #[test]
    fn integers_of_any_size_are_read_and_written() {
        let text = r#"{"b":[123456789012345678901234567890,-3,1.5,true,null],"a":"é\n"}"#;
        let value = Value::parse_json(text, &EvalLimits::default()).unwrap();
        assert_eq!(value.json_text().unwrap(), text);
        let beyond = Value::parse_json("1e400", &EvalLimits::default()).unwrap();
        assert!(beyond.json_text().is_err());
        let error = Value::parse_json("{\n  \"a\": ,}", &EvalLimits::default()).unwrap_err();
        assert_eq!(error.message(), "Expecting value: line 2 column 8 (char 9)");
    }

    #[test]
    fn what_json_lacks_is_an_error_and_not_a_guess() {
        for value in [Value::Float(f64::NAN), Value::bytes(*b"x"), Value::integer(BigInt::from(1u128 << 80))]
        {
            assert!(value.to_json().is_err(), "{value:?}");
        }
    }

    #[test]
    fn only_what_json_lacks_becomes_text() {
        let lossy = |source: &str| {
            let program = crate::Program::compile(source).unwrap();
            program.evaluate(&(), &EvalLimits::default()).unwrap().to_lossy_json(&EvalLimits::default())
        };
        let fits = "'s': struct(a=1), 'r': range(2), 'k': {'x': 1}.keys(), True: 1, 't': {3, 1}";
        let fit = serde_json::json!({"s": {"a": 1}, "r": [0, 1], "k": ["x"], "true": 1, "t": [1, 3]});
        assert_eq!(lossy(&format!("{{{fits}}}")).unwrap(), fit);
        for (more, want) in [
            ("float('inf')", serde_json::json!("inf")),
            ("10 ** 30", serde_json::json!("1000000000000000000000000000000")),
            ("b'x'", serde_json::json!("b'x'")),
            ("{(1, 2): [3]}", serde_json::json!({"(1, 2)": [3]})),
            ("map(str.upper, ['a'])", serde_json::json!(["A"])),
            ("[zip([1], [2]), enumerate('a')]", serde_json::json!([[[1, 2]], [[0, "a"]]])),
            ("(n * n for n in filter(None, [0, 2]))", serde_json::json!([4])),
        ] {
            let mut all = fit.clone();
            all["more"] = want;
            assert_eq!(lossy(&format!("{{{fits}, 'more': {more}}}")).unwrap(), all, "{more}");
        }
        assert_eq!(lossy("(1 // n for n in [0])").unwrap_err().python_class(), "ZeroDivisionError");
        // Small here, and a hundred million numbers as a document.
        let error = lossy("[[[[0] * 100] * 100] * 100] * 100").unwrap_err();
        assert_eq!(error.limit(), Some(LimitKind::Output));
    }

    #[test]
    fn the_iterators_of_a_document_run_on_one_account() {
        let lossy = |source: &str, limits: &EvalLimits| {
            let program = crate::Program::compile(source).unwrap();
            program.evaluate(&(), &EvalLimits::default()).unwrap().to_lossy_json(limits)
        };
        // Each of them is small enough alone.
        let many = "[(n for n in range(1000) if n < 0) for i in range(1000)]";
        let error = lossy(many, &EvalLimits::default()).unwrap_err();
        assert_eq!(error.limit(), Some(LimitKind::Steps));
        assert!(lossy(many, &EvalLimits { steps: 1 << 40, ..EvalLimits::default() }).is_ok());
        let past =
            EvalLimits { steps: 1 << 40, deadline: Some(std::time::Instant::now()), ..EvalLimits::default() };
        assert_eq!(lossy(many, &past).unwrap_err().python_class(), "TimeoutError");
    }

    #[test]
    fn documents_of_ordinary_size_are_made() {
        let made = |item: &str, count: usize| {
            let items = vec![Value::from_json(&serde_json::from_str(item).unwrap()); count];
            let json = Value::list(items).to_lossy_json(&EvalLimits::default()).unwrap();
            assert_eq!(json.as_array().map(Vec::len), Some(count));
        };
        made("1", 1_000_000);
        made("\"some text\"", 250_000);
        made(r#"{"id": 1, "name": "x"}"#, 200_000);
    }

    #[test]
    fn deep_documents_are_refused() {
        let limits = EvalLimits::default();
        let text = "[".repeat(100_000);
        let error = parse(&text, &mut Fuel::new(&limits)).unwrap_err();
        assert_eq!(error.limit(), Some(LimitKind::Depth));
    }
}
