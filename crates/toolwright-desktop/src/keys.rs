//! Names of keys, as X, xdotool and models write them, and the keysyms they stand for.

use toolwright_core::ToolError;
use toolwright_core::text::clip;

/// What X calls the absence of a symbol.
pub(crate) const NO_SYMBOL: u32 = 0;
pub(crate) const RETURN: u32 = 0xff0d;
pub(crate) const TAB: u32 = 0xff09;
pub(crate) const SHIFT: u32 = 0xffe1;
pub(crate) const CAPS_LOCK: u32 = 0xffe5;

/// The most keys of one combination.
const MOST_KEYS: usize = 8;
/// The most combinations of one text.
const MOST_COMBINATIONS: usize = 100;

/// Other names for keys, in lower case, and X's own name; those of Inspect, OpenAI and Gemini are here.
const ALIASES: [(&str, &str); 66] = [
    ("enter", "Return"),
    ("return", "Return"),
    ("esc", "Escape"),
    ("escape", "Escape"),
    ("backspace", "BackSpace"),
    ("back", "BackSpace"),
    ("delete", "Delete"),
    ("del", "Delete"),
    ("insert", "Insert"),
    ("ins", "Insert"),
    ("tab", "Tab"),
    ("space", "space"),
    ("spacebar", "space"),
    (" ", "space"),
    ("pageup", "Prior"),
    ("page_up", "Prior"),
    ("pgup", "Prior"),
    ("pagedown", "Next"),
    ("page_down", "Next"),
    ("pgdn", "Next"),
    ("pgdown", "Next"),
    ("home", "Home"),
    ("end", "End"),
    ("up", "Up"),
    ("down", "Down"),
    ("left", "Left"),
    ("right", "Right"),
    ("arrowup", "Up"),
    ("arrowdown", "Down"),
    ("arrowleft", "Left"),
    ("arrowright", "Right"),
    ("cmd", "super"),
    ("command", "super"),
    ("meta", "super"),
    ("win", "super"),
    ("windows", "super"),
    ("super", "super"),
    ("ctl", "ctrl"),
    ("ctrl", "ctrl"),
    ("control", "ctrl"),
    ("controlormeta", "ctrl"),
    ("opt", "alt"),
    ("option", "alt"),
    ("alt", "alt"),
    ("shift", "shift"),
    ("altgr", "ISO_Level3_Shift"),
    ("capslock", "Caps_Lock"),
    ("caps_lock", "Caps_Lock"),
    ("numlock", "Num_Lock"),
    ("scrolllock", "Scroll_Lock"),
    ("printscreen", "Print"),
    ("prtsc", "Print"),
    ("contextmenu", "Menu"),
    ("plus", "plus"),
    ("minus", "minus"),
    (",", "comma"),
    (".", "period"),
    ("/", "slash"),
    (";", "semicolon"),
    ("'", "apostrophe"),
    ("[", "bracketleft"),
    ("]", "bracketright"),
    ("\\", "backslash"),
    ("-", "minus"),
    ("=", "equal"),
    ("`", "grave"),
];

/// Names of X and xdotool, and their keysyms. Letters and digits stand for themselves.
const NAMES: [(&str, u32); 134] = [
    ("shift", 0xffe1),
    ("ctrl", 0xffe3),
    ("alt", 0xffe9),
    ("super", 0xffeb),
    ("BackSpace", 0xff08),
    ("Tab", TAB),
    ("Linefeed", 0xff0a),
    ("Clear", 0xff0b),
    ("Return", RETURN),
    ("Pause", 0xff13),
    ("Scroll_Lock", 0xff14),
    ("Sys_Req", 0xff15),
    ("Escape", 0xff1b),
    ("Multi_key", 0xff20),
    ("Home", 0xff50),
    ("Left", 0xff51),
    ("Up", 0xff52),
    ("Right", 0xff53),
    ("Down", 0xff54),
    ("Prior", 0xff55),
    ("Page_Up", 0xff55),
    ("Next", 0xff56),
    ("Page_Down", 0xff56),
    ("End", 0xff57),
    ("Begin", 0xff58),
    ("Select", 0xff60),
    ("Print", 0xff61),
    ("Execute", 0xff62),
    ("Insert", 0xff63),
    ("Undo", 0xff65),
    ("Redo", 0xff66),
    ("Menu", 0xff67),
    ("Find", 0xff68),
    ("Cancel", 0xff69),
    ("Help", 0xff6a),
    ("Break", 0xff6b),
    ("Mode_switch", 0xff7e),
    ("Num_Lock", 0xff7f),
    ("KP_Space", 0xff80),
    ("KP_Tab", 0xff89),
    ("KP_Enter", 0xff8d),
    ("KP_Home", 0xff95),
    ("KP_Left", 0xff96),
    ("KP_Up", 0xff97),
    ("KP_Right", 0xff98),
    ("KP_Down", 0xff99),
    ("KP_Prior", 0xff9a),
    ("KP_Next", 0xff9b),
    ("KP_End", 0xff9c),
    ("KP_Begin", 0xff9d),
    ("KP_Insert", 0xff9e),
    ("KP_Delete", 0xff9f),
    ("KP_Multiply", 0xffaa),
    ("KP_Add", 0xffab),
    ("KP_Separator", 0xffac),
    ("KP_Subtract", 0xffad),
    ("KP_Decimal", 0xffae),
    ("KP_Divide", 0xffaf),
    ("KP_0", 0xffb0),
    ("KP_1", 0xffb1),
    ("KP_2", 0xffb2),
    ("KP_3", 0xffb3),
    ("KP_4", 0xffb4),
    ("KP_5", 0xffb5),
    ("KP_6", 0xffb6),
    ("KP_7", 0xffb7),
    ("KP_8", 0xffb8),
    ("KP_9", 0xffb9),
    ("KP_Equal", 0xffbd),
    ("Shift_L", SHIFT),
    ("Shift_R", 0xffe2),
    ("Control_L", 0xffe3),
    ("Control_R", 0xffe4),
    ("Caps_Lock", CAPS_LOCK),
    ("Shift_Lock", 0xffe6),
    ("Meta_L", 0xffe7),
    ("Meta_R", 0xffe8),
    ("Alt_L", 0xffe9),
    ("Alt_R", 0xffea),
    ("Super_L", 0xffeb),
    ("Super_R", 0xffec),
    ("Hyper_L", 0xffed),
    ("Hyper_R", 0xffee),
    ("Delete", 0xffff),
    ("ISO_Level3_Shift", 0xfe03),
    ("ISO_Left_Tab", 0xfe20),
    ("space", 0x20),
    ("exclam", 0x21),
    ("quotedbl", 0x22),
    ("numbersign", 0x23),
    ("dollar", 0x24),
    ("percent", 0x25),
    ("ampersand", 0x26),
    ("apostrophe", 0x27),
    ("parenleft", 0x28),
    ("parenright", 0x29),
    ("asterisk", 0x2a),
    ("plus", 0x2b),
    ("comma", 0x2c),
    ("minus", 0x2d),
    ("period", 0x2e),
    ("slash", 0x2f),
    ("colon", 0x3a),
    ("semicolon", 0x3b),
    ("less", 0x3c),
    ("equal", 0x3d),
    ("greater", 0x3e),
    ("question", 0x3f),
    ("at", 0x40),
    ("bracketleft", 0x5b),
    ("backslash", 0x5c),
    ("bracketright", 0x5d),
    ("asciicircum", 0x5e),
    ("underscore", 0x5f),
    ("grave", 0x60),
    ("braceleft", 0x7b),
    ("bar", 0x7c),
    ("braceright", 0x7d),
    ("asciitilde", 0x7e),
    ("EuroSign", 0x20ac),
    ("XF86AudioLowerVolume", 0x1008_ff11),
    ("XF86AudioMute", 0x1008_ff12),
    ("XF86AudioRaiseVolume", 0x1008_ff13),
    ("XF86AudioPlay", 0x1008_ff14),
    ("XF86AudioStop", 0x1008_ff15),
    ("XF86AudioPrev", 0x1008_ff16),
    ("XF86AudioNext", 0x1008_ff17),
    ("XF86HomePage", 0x1008_ff18),
    ("XF86Search", 0x1008_ff1b),
    ("XF86Back", 0x1008_ff26),
    ("XF86Forward", 0x1008_ff27),
    ("XF86Reload", 0x1008_ff29),
    ("XF86Copy", 0x1008_ff57),
    ("XF86Paste", 0x1008_ff6d),
];

/// Combinations of keys, one after the other: `ctrl+s`, or `ctrl+k ctrl+c`.
pub(crate) fn combinations(text: &str) -> Result<Vec<Vec<u32>>, ToolError> {
    let normal = normalized(text);
    let combinations: Vec<&str> = normal.split(' ').filter(|combination| !combination.is_empty()).collect();
    if combinations.is_empty() || combinations.len() > MOST_COMBINATIONS {
        return Err(ToolError::invalid(format!("`text` must name 1 to {MOST_COMBINATIONS} keys")));
    }
    combinations.into_iter().map(combination).collect()
}

/// The keysyms of one combination that is already in X's names.
fn combination(text: &str) -> Result<Vec<u32>, ToolError> {
    let names: Vec<&str> = text.split('+').collect();
    if names.len() > MOST_KEYS {
        return Err(ToolError::invalid(format!("a combination has at most {MOST_KEYS} keys")));
    }
    names.into_iter().map(keysym).collect()
}

/// Names as X writes them. This is how Inspect reads them: names in any case, and single letters in lower
/// case inside of combinations.
pub(crate) fn normalized(text: &str) -> String {
    if text == " " {
        return "space".to_owned();
    }
    let combinations = text.split(' ').filter(|combination| !combination.is_empty());
    let normal = combinations.map(|combination| {
        // A plus sign at the end is a key of its own: `ctrl++`, or `+` alone.
        let (names, plus) = match combination.strip_suffix('+') {
            Some(before) => (before.strip_suffix('+').unwrap_or(before), true),
            None => (combination, false),
        };
        let mut names: Vec<&str> = names.split('+').filter(|name| !name.is_empty()).collect();
        names.extend(plus.then_some("plus"));
        let several = names.len() > 1;
        let names: Vec<String> = names.into_iter().map(|name| own_name(name, several)).collect();
        names.join("+")
    });
    normal.collect::<Vec<_>>().join(" ")
}

fn own_name(name: &str, several: bool) -> String {
    let lower = name.to_lowercase();
    if let Some((_, own)) = ALIASES.iter().find(|(alias, _)| *alias == lower) {
        return (*own).to_owned();
    }
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(_), None) if several => lower,
        (Some('f' | 'F'), Some(digit)) if digit.is_ascii_digit() => name.to_uppercase(),
        _ => name.to_owned(),
    }
}

/// The keysym of a name: of X, one character, `U20AC` or `F1` to `F35`.
fn keysym(name: &str) -> Result<u32, ToolError> {
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return of_char(letter).ok_or_else(|| unknown(name));
    }
    let named = NAMES.iter().find(|(known, _)| *known == name);
    let named = named.or_else(|| NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)));
    if let Some((_, symbol)) = named {
        return Ok(*symbol);
    }
    let function = name.strip_prefix(['F', 'f']).and_then(|number| number.parse::<u32>().ok());
    if let Some(number @ 1..=35) = function {
        return Ok(0xffbd + number);
    }
    let code = name.strip_prefix("U+").or_else(|| name.strip_prefix('U')).filter(|code| code.len() >= 4);
    let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
    code.and_then(char::from_u32).and_then(of_char).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> ToolError {
    let error = ToolError::invalid(format!("there is no key `{}`", clip(name, 40).escape_debug()));
    let near = NAMES.iter().filter(|(known, _)| {
        let start = name.get(..3).unwrap_or(name).to_lowercase();
        known.to_lowercase().starts_with(&start)
    });
    let near: Vec<&str> = near.map(|(known, _)| *known).take(5).collect();
    error.hint(match near.is_empty() {
        true => "keys have the names of X, such as `Return`, `Page_Up`, `F5` or `ctrl+s`".to_owned(),
        false => format!("near: {}", near.join(", ")),
    })
}

/// The keysym of a character. Only line ends and tabs of the control characters are on a keyboard.
pub(crate) fn of_char(letter: char) -> Option<u32> {
    match letter {
        '\n' | '\r' => Some(RETURN),
        '\t' => Some(TAB),
        letter if letter.is_control() => None,
        letter if (letter as u32) < 0x100 => Some(letter as u32),
        letter => Some(0x0100_0000 | letter as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_as_inspect_does() {
        for (given, normal) in [
            ("ctrl+S", "ctrl+s"),
            ("cmd+c", "super+c"),
            ("A", "A"),
            ("a", "a"),
            ("ctrl+,", "ctrl+comma"),
            ("shift+arrowleft", "shift+Left"),
            ("Bogus", "Bogus"),
            ("printscreen", "Print"),
            ("enter", "Return"),
            ("PageDown", "Next"),
            ("ctl+ALT+delete", "ctrl+alt+Delete"),
            ("ctrl++", "ctrl+plus"),
            ("+", "plus"),
            (" ", "space"),
            ("ctrl+k  ctrl+c", "ctrl+k ctrl+c"),
            ("f5", "F5"),
        ] {
            assert_eq!(normalized(given), normal, "{given}");
        }
    }

    #[test]
    fn names_of_xdotool_become_keysyms_and_others_are_errors() {
        for (given, symbols) in [
            ("ctrl+s", vec![0xffe3, 0x73]),
            ("Return", vec![RETURN]),
            ("F12", vec![0xffc9]),
            ("KP_Enter", vec![0xff8d]),
            ("Page_Up", vec![0xff55]),
            ("EuroSign", vec![0x20ac]),
            ("U20AC", vec![0x0100_20ac]),
            ("ß", vec![0xdf]),
            ("super+Left", vec![0xffeb, 0xff51]),
            ("XF86Back", vec![0x1008_ff26]),
        ] {
            assert_eq!(combinations(given).unwrap(), [symbols], "{given}");
        }
        assert_eq!(combinations("ctrl+k ctrl+c").unwrap().len(), 2);
        for wrong in ["", "Bogus_Key", "ctrl+\u{7}", "F36", "a+b+c+d+e+f+g+h+i"] {
            assert!(combinations(wrong).is_err(), "{wrong}");
        }
        let error = combinations("Pageup_").unwrap_err();
        assert!(error.hint_text().unwrap().contains("Page_Up"), "{error}");
    }

    #[test]
    fn every_alias_leads_to_a_key() {
        for (alias, _) in ALIASES {
            assert!(combinations(alias).is_ok(), "{alias}");
        }
    }
}
