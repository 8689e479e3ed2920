//! Upper, lower and title case.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::receiver;
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::value::Value;

pub(super) fn cased(
    eval: &mut Eval<'_>,
    value: &Value,
    args: Args,
    name: &str,
    change: fn(&str) -> String,
) -> Result<Value, Error> {
    args.none(name)?;
    let text = receiver(value);
    // The longest expansion turns one character into three; there may be two copies for a while.
    eval.fuel.allocate(text.len().saturating_mul(6))?;
    Ok(Value::str(change(&text)))
}

/// Every character beside its lower-case form, which for a sigma depends on where it stands.
fn lowered(text: &str, mut each: impl FnMut(char, &str)) {
    let lower = text.to_lowercase();
    let mut rest = &*lower;
    for c in text.chars() {
        let length = match c {
            'Σ' => 'ς'.len_utf8(),
            _ => c.to_lowercase().map(char::len_utf8).sum(),
        };
        let (own, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        each(c, own);
        rest = after;
    }
}

pub(super) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    lowered(text, |c, lower| {
        if inside {
            out.push_str(lower);
        } else {
            push_title(&mut out, c);
        }
        inside = is_cased(c);
    });
    out
}

pub(super) fn capitalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    lowered(text, |c, lower| if out.is_empty() { push_title(&mut out, c) } else { out.push_str(lower) });
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
        // Greek with an iota below keeps it there.
        '\u{1f80}'..='\u{1faf}' => out.extend(char::from_u32(c as u32 | 8)),
        'ᾳ' | 'ᾼ' => out.push('ᾼ'),
        'ῃ' | 'ῌ' => out.push('ῌ'),
        'ῳ' | 'ῼ' => out.push('ῼ'),
        '\u{1fb2}'..='\u{1ff7}' => {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            out.extend(upper.map(|c| if c == '\u{399}' { '\u{345}' } else { c }));
        }
        _ => {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            for rest in upper {
                if c == 'ŉ' { out.push(rest) } else { out.extend(rest.to_lowercase()) }
            }
        }
    }
}

pub(super) fn is_title(c: char) -> bool {
    get_general_category(c) == GeneralCategory::TitlecaseLetter
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || is_title(c)
}

pub(super) fn swapcase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    lowered(text, |c, lower| {
        if c.is_uppercase() {
            out.push_str(lower);
        } else if c.is_lowercase() {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
    });
    out
}

pub(super) fn casefold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'ı' => out.push(c),
            'ẞ' => out.push_str("ss"),
            // Cherokee had capitals first, so they are what it folds to.
            '\u{13a0}'..='\u{13f5}' => out.push(c),
            '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => out.extend(c.to_uppercase()),
            _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
            _ => c.to_uppercase().for_each(|upper| out.extend(upper.to_lowercase())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sigma_at_the_end_of_a_word_has_its_own_form() {
        assert_eq!(title("ΑΣ ΣΑΣ"), "Ας Σας");
        assert_eq!(capitalize("ΑΣ ΣΑΣ"), "Ας σας");
        assert_eq!(swapcase("ΑΣ ΣΑσ"), "ας σαΣ");
        assert_eq!(swapcase("ǅu"), "ǅU");
    }

    #[test]
    fn folding_is_unicodes() {
        for (text, folded) in
            [("Straße", "strasse"), ("ẞ", "ss"), ("ΣΑΣ", "σασ"), ("ᎠᏸꭰI", "ᎠᏰᎠi"), ("ŉ", "ʼn")]
        {
            assert_eq!(casefold(text), folded, "{text}");
        }
    }
}
