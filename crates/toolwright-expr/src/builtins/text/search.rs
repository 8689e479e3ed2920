//! Finding, counting and replacing.

use super::{SearchFrom, receiver};
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::ops;
use crate::ops::sequence::char_range;
use crate::value::{Text, Value};

pub(super) fn replace(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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

pub(super) fn find(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    from: SearchFrom,
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
    let found = match from {
        SearchFrom::Start => part.find(sub.as_str()),
        SearchFrom::End => part.rfind(sub.as_str()),
    };
    Ok(found.map(|at| {
        let before = part.get(..at).unwrap_or_default();
        let characters = if text.is_ascii() { before.len() } else { before.chars().count() };
        (offset + characters) as i64
    }))
}

pub(super) fn count(eval: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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

pub(super) fn affix(
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
