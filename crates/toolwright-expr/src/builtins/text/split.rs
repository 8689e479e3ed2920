//! Taking texts apart and putting them together.

use super::class::is_space;
use super::{SearchFrom, parts_of, receiver, slice_of};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::ops;
use crate::ops::sequence::ITEM;
use crate::value::{Text, Value};

/// The ends of a text that are stripped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Left,
    Right,
    Both,
}

pub(super) fn strip(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    ends: Ends,
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
    if ends != Ends::Right {
        rest = rest.trim_start_matches(cut);
    }
    if ends != Ends::Left {
        rest = rest.trim_end_matches(cut);
    }
    slice_of(eval, &text, rest)
}

/// Separator and bound of a split.
fn split_arguments(args: Args, name: &str) -> Result<(Option<Text>, usize), Error> {
    let [sep, maxsplit] = args.bind(name, ["sep", "maxsplit"], 0)?;
    let most = maxsplit.map_or(Ok(-1), |most| ops::index(&most))?;
    let sep = match sep {
        None | Some(Value::None) => None,
        Some(Value::Str(sep)) if sep.is_empty() => return Err(Error::value("empty separator")),
        Some(Value::Str(sep)) => Some(sep),
        Some(other) => return Err(Error::type_(format!("must be str or None, not {}", other.type_name()))),
    };
    Ok((sep, usize::try_from(most).unwrap_or(usize::MAX)))
}

pub(super) fn split(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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

pub(super) fn rsplit(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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

pub(super) fn splitlines(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
    let [keep] = args.bind("splitlines", ["keepends"], 0)?;
    let keep = keep.is_some_and(|keep| ops::truth(&keep));
    let text = receiver(value);
    eval.fuel.spend(text.len() as u64 >> 5)?;
    parts_of(eval, lines(&text).map(|(line, with_end)| if keep { with_end } else { line }))
}

/// The lines of a text, without and with what ends them.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(is_line_end).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        let mark = if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(0, char::len_utf8) };
        let (with_end, next) = rest.split_at(end + mark);
        rest = next;
        Some((line, with_end))
    })
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(super) fn partition(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    from: SearchFrom,
) -> Result<Value, Error> {
    let sep = match args.one(name)? {
        Value::Str(sep) => sep,
        other => return Err(Error::type_(format!("must be str, not {}", other.type_name()))),
    };
    if sep.is_empty() {
        return Err(Error::value("empty separator"));
    }
    let text = receiver(value);
    eval.fuel.allocate(text.len() + 3 * ITEM)?;
    let found = match from {
        SearchFrom::Start => text.split_once(sep.as_str()),
        SearchFrom::End => text.rsplit_once(sep.as_str()),
    };
    let parts = match found {
        Some((before, after)) => [Value::str(before), Value::Str(sep), Value::str(after)],
        None => {
            let empty = Value::Str(Text::empty());
            match from {
                SearchFrom::Start => [Value::Str(text), empty.clone(), empty],
                SearchFrom::End => [empty.clone(), empty, Value::Str(text)],
            }
        }
    };
    Ok(Value::tuple(parts.to_vec()))
}

pub(super) fn join(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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
