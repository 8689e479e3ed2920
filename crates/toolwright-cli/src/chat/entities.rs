//! Characters that are written by their names or numbers, as in HTML: `&lt;`, `&#39;`.

use crate::prompt::printable;

/// The names of HTML 4 and their characters. Those that cannot be seen are left as they were written.
const NAMED: &str = "\
    quot\" amp& lt< gt> nbsp\u{a0} iexcl¡ cent¢ pound£ curren¤ yen¥ brvbar¦ sect§ uml¨ copy© ordfª laquo« not¬ \
    reg® macr¯ deg° plusmn± sup2² sup3³ acute´ microµ para¶ middot· cedil¸ sup1¹ ordmº raquo» frac14¼ frac12½ \
    frac34¾ iquest¿ AgraveÀ AacuteÁ AcircÂ AtildeÃ AumlÄ AringÅ AEligÆ CcedilÇ EgraveÈ EacuteÉ EcircÊ EumlË \
    IgraveÌ IacuteÍ IcircÎ IumlÏ ETHÐ NtildeÑ OgraveÒ OacuteÓ OcircÔ OtildeÕ OumlÖ times× OslashØ UgraveÙ \
    UacuteÚ UcircÛ UumlÜ YacuteÝ THORNÞ szligß agraveà aacuteá acircâ atildeã aumlä aringå aeligæ ccedilç \
    egraveè eacuteé ecircê eumlë igraveì iacuteí icircî iumlï ethð ntildeñ ograveò oacuteó ocircô otildeõ oumlö \
    divide÷ oslashø ugraveù uacuteú ucircû uumlü yacuteý thornþ yumlÿ OEligŒ oeligœ ScaronŠ scaronš YumlŸ fnofƒ \
    circˆ tilde˜ AlphaΑ BetaΒ GammaΓ DeltaΔ EpsilonΕ ZetaΖ EtaΗ ThetaΘ IotaΙ KappaΚ LambdaΛ MuΜ NuΝ XiΞ OmicronΟ \
    PiΠ RhoΡ SigmaΣ TauΤ UpsilonΥ PhiΦ ChiΧ PsiΨ OmegaΩ alphaα betaβ gammaγ deltaδ epsilonε zetaζ etaη thetaθ \
    iotaι kappaκ lambdaλ muμ nuν xiξ omicronο piπ rhoρ sigmafς sigmaσ tauτ upsilonυ phiφ chiχ psiψ omegaω \
    thetasymϑ upsihϒ pivϖ ensp\u{2002} emsp\u{2003} thinsp\u{2009} ndash– mdash— lsquo‘ rsquo’ sbquo‚ ldquo“ \
    rdquo” bdquo„ dagger† Dagger‡ bull• hellip… permil‰ prime′ Prime″ lsaquo‹ rsaquo› oline‾ frasl⁄ euro€ imageℑ \
    weierp℘ realℜ trade™ alefsymℵ larr← uarr↑ rarr→ darr↓ harr↔ crarr↵ lArr⇐ uArr⇑ rArr⇒ dArr⇓ hArr⇔ forall∀ \
    part∂ exist∃ empty∅ nabla∇ isin∈ notin∉ ni∋ prod∏ sum∑ minus− lowast∗ radic√ prop∝ infin∞ ang∠ and∧ or∨ cap∩ \
    cup∪ int∫ there4∴ sim∼ cong≅ asymp≈ ne≠ equiv≡ le≤ ge≥ sub⊂ sup⊃ nsub⊄ sube⊆ supe⊇ oplus⊕ otimes⊗ perp⊥ \
    sdot⋅ lceil⌈ rceil⌉ lfloor⌊ rfloor⌋ lang〈 rang〉 loz◊ spades♠ clubs♣ hearts♥ diams♦ apos'";

/// The longest reference that is looked for.
const LONGEST: usize = 12;

/// The character that the text begins with, when it is written so, and what follows.
pub fn character(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('&')?;
    let end = inside.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let (name, rest) = (inside.get(..end)?, inside.get(end + 1..)?);
    let number = |digits: &str, base: u32| {
        let most = if base == 16 { 6 } else { 7 };
        let fits = (1..=most).contains(&digits.len()) && digits.chars().all(|c| c.is_digit(base));
        let code = u32::from_str_radix(digits, base).ok().filter(|_| fits)?;
        Some(char::from_u32(code).filter(|c| *c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
    };
    let found = match name.strip_prefix('#') {
        Some(code) => match code.strip_prefix(['x', 'X']) {
            Some(digits) => number(digits, 16)?,
            None => number(code, 10)?,
        },
        None => NAMED.split(' ').find_map(|word| {
            word.strip_prefix(name)?.chars().next().filter(|c| word.len() == name.len() + c.len_utf8())
        })?,
    };
    // Whatever it is, it stays within its line.
    let shown =
        if found.is_whitespace() { " ".to_owned() } else { printable(found.encode_utf8(&mut [0; 4])) };
    Some((shown, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_known_by_name_and_number() {
        for (text, want) in [
            ("&lt;b>", Some(("<", "b>"))),
            ("&Auml;&auml;", Some(("Ä", "&auml;"))),
            ("&sup2;", Some(("²", ""))),
            ("&sup;", Some(("⊃", ""))),
            ("&su;", None),
            ("&;", None),
            ("&amp", None),
            ("&nosuchname;", None),
            ("&nbsp;x", Some((" ", "x"))),
            ("&#39;s", Some(("'", "s"))),
            ("&#x1F600;", Some(("😀", ""))),
            ("&#0;&#xD800;", Some(("\u{fffd}", "&#xD800;"))),
            ("&#xD800;", Some(("\u{fffd}", ""))),
            ("&#12345678;", None),
            ("&#+1;", None),
            ("&#x;", None),
            // None of them reaches the terminal as it is.
            ("&#27;[2J", Some(("\\u{1b}", "[2J"))),
            ("&#10;", Some((" ", ""))),
            ("&#x202e;", Some(("\\u{202e}", ""))),
        ] {
            assert_eq!(character(text).as_ref().map(|(found, rest)| (found.as_str(), *rest)), want, "{text}");
        }
    }
}
