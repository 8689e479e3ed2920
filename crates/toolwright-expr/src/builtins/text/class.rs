//! What kind of characters a text is made of.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::case::is_title;
use super::receiver;
use crate::error::Error;
use crate::eval::{Args, Eval};
use crate::value::Value;

pub(super) fn every(value: &Value, args: Args, name: &str, test: fn(char) -> bool) -> Result<Value, Error> {
    args.none(name)?;
    let text = receiver(value);
    Ok(Value::Bool(!text.is_empty() && text.chars().all(test)))
}

pub(super) fn istitle(_: &mut Eval<'_>, value: &Value, args: Args) -> Result<Value, Error> {
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

pub(super) fn is_alpha(c: char) -> bool {
    use GeneralCategory::{LowercaseLetter, ModifierLetter, OtherLetter, TitlecaseLetter, UppercaseLetter};
    c.is_ascii_alphabetic()
        || !c.is_ascii()
            && matches!(
                get_general_category(c),
                LowercaseLetter | ModifierLetter | OtherLetter | TitlecaseLetter | UppercaseLetter
            )
}

pub(super) fn is_decimal(c: char) -> bool {
    c.is_ascii_digit() || !c.is_ascii() && get_general_category(c) == GeneralCategory::DecimalNumber
}

pub(super) fn is_digit(c: char) -> bool {
    is_decimal(c)
        || matches!(c,
            '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{1369}'..='\u{1371}' | '\u{19da}' | '\u{2070}'
            | '\u{2074}'..='\u{2079}' | '\u{2080}'..='\u{2089}' | '\u{2460}'..='\u{2468}'
            | '\u{2474}'..='\u{247c}' | '\u{2488}'..='\u{2490}' | '\u{24ea}' | '\u{24f5}'..='\u{24fd}'
            | '\u{24ff}' | '\u{2776}'..='\u{277e}' | '\u{2780}'..='\u{2788}' | '\u{278a}'..='\u{2792}'
            | '\u{10a40}'..='\u{10a43}' | '\u{10e60}'..='\u{10e68}' | '\u{11052}'..='\u{1105a}'
            | '\u{1f100}'..='\u{1f10a}')
}

/// Han characters with a numeric value, as Unicode 15.1 has them; all other numerals have a category of their
/// own.
const HAN_NUMERALS: &str = concat!(
    "㐅㒃㠪㭍一七万三两九二五亖京亿什仟仨伍佰俩倆億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾",
    "廿弌弍弎弐拐拾捌柒洞漆玖百皕秭肆萬貮貳贰鈎钩阡陆陌陸零𠀁𠁤𠃢𠄡𠤪𠦃𠦌𠦜𠫪𠫽𠬙𢎐𢦘𣬛𦉭",
    "\u{f96b}\u{f973}\u{f978}\u{f9b2}\u{f9d1}\u{f9d3}\u{f9fd}\u{2f890}",
);

pub(super) fn is_numeric(c: char) -> bool {
    is_digit(c)
        || matches!(get_general_category(c), GeneralCategory::LetterNumber | GeneralCategory::OtherNumber)
        || HAN_NUMERALS.contains(c)
}

pub(super) fn is_alnum(c: char) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerals_are_those_of_unicode() {
        for c in ['五', '漆', '〇', '½', 'Ⅷ', '٣', '\u{f9d1}'] {
            assert!(is_numeric(c), "{c}");
        }
        for c in ['両', '人', 'a', '-'] {
            assert!(!is_numeric(c), "{c}");
        }
    }
}
