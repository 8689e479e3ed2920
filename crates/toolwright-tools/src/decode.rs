//! From bytes to text by the name of an encoding.

use encoding_rs::{Encoding, UTF_8};
use toolwright_core::{ErrorKind, ToolError};

/// The text in the named encoding, and the encoding's usual name.
pub(crate) fn as_named(bytes: &[u8], name: &str) -> Result<(String, &'static str), ToolError> {
    let plain = name.trim().to_ascii_lowercase().replace('_', "-");
    if matches!(plain.as_str(), "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1") {
        // Every byte is the character of its number. The web's table of names has Windows-1252 here.
        return Ok((encoding_rs::mem::decode_latin1(bytes).into_owned(), "latin-1"));
    }
    if matches!(plain.as_str(), "ascii" | "us-ascii") {
        return match std::str::from_utf8(bytes) {
            Ok(text) if text.is_ascii() => Ok((text.to_owned(), "ascii")),
            _ => Err(undecodable("ascii")),
        };
    }
    // Python writes `utf8` and `cp1252`, and `utf-16` for either order.
    let label = plain.strip_prefix("cp").filter(|digits| digits.starts_with("125"));
    let label = label.map_or(plain.clone(), |digits| format!("windows-{digits}"));
    let Some(encoding) = Encoding::for_label(label.as_bytes()) else {
        let message = format!("`{}` is not the name of an encoding", name.escape_debug());
        return Err(ToolError::invalid(message).hint("for example utf-8, latin-1, utf-16 or shift_jis"));
    };
    let (text, used, broken) = encoding.decode(bytes);
    if broken {
        return Err(undecodable(used.name()));
    }
    Ok((text.into_owned(), if used == UTF_8 { "utf-8" } else { used.name() }))
}

fn undecodable(name: &str) -> ToolError {
    ToolError::of(ErrorKind::UnicodeDecode, format!("the file is not text in {name}"))
        .hint("leave `encoding` out, or try latin-1, which fits any bytes")
}

/// The text in the encoding it seems to have: what its byte order mark says, UTF-8, or else one character for
/// each byte.
pub(crate) fn guess(bytes: &[u8]) -> (String, &'static str) {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        let (text, broken) = encoding.decode_without_bom_handling(bytes.get(length..).unwrap_or_default());
        if !broken {
            return (text.into_owned(), if encoding == UTF_8 { "utf-8-sig" } else { "utf-16" });
        }
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() && !text.is_empty() => (text.to_owned(), "ascii"),
        Ok(text) => (text.to_owned(), "utf-8"),
        Err(_) => (encoding_rs::mem::decode_latin1(bytes).into_owned(), "latin-1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_go_by_the_names_people_use() {
        for (name, bytes, wanted) in [
            ("utf-8", "é".as_bytes(), ("é", "utf-8")),
            ("UTF8", "é".as_bytes(), ("é", "utf-8")),
            ("latin-1", b"\xe9\x80", ("é\u{80}", "latin-1")),
            ("ISO_8859_1", b"\xe9", ("é", "latin-1")),
            ("cp1252", b"\x80", ("€", "windows-1252")),
            ("utf-16", b"\xff\xfea\0", ("a", "UTF-16LE")),
            ("utf-16be", b"\0a", ("a", "UTF-16BE")),
            ("ascii", b"a", ("a", "ascii")),
        ] {
            let (text, encoding) = as_named(bytes, name).unwrap();
            assert_eq!((text.as_str(), encoding), wanted, "{name}");
        }
        assert_eq!(as_named(b"\xff", "utf-8").unwrap_err().kind(), ErrorKind::UnicodeDecode);
        assert_eq!(as_named(b"\xff", "ascii").unwrap_err().kind(), ErrorKind::UnicodeDecode);
        assert_eq!(as_named(b"", "klingon").unwrap_err().kind(), ErrorKind::Parsing);
        assert_eq!((guess(b"").1, guess(b"a").1, guess(b"\xff").1), ("utf-8", "ascii", "latin-1"));
        for (bytes, wanted) in [
            (b"\xef\xbb\xbfhi".as_slice(), ("hi", "utf-8-sig")),
            (b"\xff\xfeh\0i\0", ("hi", "utf-16")),
            (b"\xfe\xff\0h\0i", ("hi", "utf-16")),
            (b"\xff\xfeh", ("\u{ff}\u{fe}h", "latin-1")),
        ] {
            let (text, encoding) = guess(bytes);
            assert_eq!((text.as_str(), encoding), wanted);
        }
    }
}
