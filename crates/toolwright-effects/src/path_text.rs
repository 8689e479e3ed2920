//! Paths as text, without loss. A path need not be UTF-8; one that is not is written as a NUL, which no path
//! can hold, and the hexadecimal form of its bytes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// For `#[serde(with)]` on one path.
pub mod one {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Text(path).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(PathText::deserialize(deserializer)?.0)
    }
}

/// For `#[serde(with)]` on a path that may be absent.
pub mod maybe {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Text).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<PathText>::deserialize(deserializer)?.map(|path| path.0))
    }
}

/// For `#[serde(with)]` on a list of paths.
pub mod many {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| Text(path)))
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<PathText>::deserialize(deserializer)?.into_iter().map(|path| path.0).collect())
    }
}

struct Text<'a>(&'a Path);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => {
                let hex = self.0.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}"));
                serializer.serialize_str(&format!("\0{}", hex.collect::<String>()))
            }
        }
    }
}

struct PathText(PathBuf);

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Some(hex) = text.strip_prefix('\0') else { return Ok(PathText(text.into())) };
        let bytes = hex.as_bytes().chunks(2).map(|pair| {
            let digits = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
            let pair = std::str::from_utf8(pair).ok().filter(|_| digits)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        let bytes =
            bytes.ok_or_else(|| serde::de::Error::custom("the bytes of a path are in hexadecimal"))?;
        Ok(PathText(OsString::from_vec(bytes).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Paths {
        #[serde(with = "one")]
        one: PathBuf,
        #[serde(with = "maybe")]
        maybe: Option<PathBuf>,
        #[serde(with = "many")]
        many: Vec<PathBuf>,
    }

    #[test]
    fn every_path_survives_the_way() {
        let odd = || PathBuf::from(OsString::from_vec(b"/q\xff/\xc3".to_vec()));
        let paths = Paths { one: odd(), maybe: Some(odd()), many: vec!["/é".into(), odd()] };
        let text = serde_json::to_string(&paths).unwrap();
        let hex = "\\u00002f71ff2fc3";
        assert_eq!(text, format!(r#"{{"one":"{hex}","maybe":"{hex}","many":["/é","{hex}"]}}"#));
        assert_eq!(serde_json::from_str::<Paths>(&text).unwrap(), paths);
        for bad in [r#""\u00007""#, r#""\u0000xy""#, r#""\u0000+1""#, r#""\u0000é""#, "1"] {
            let text = format!(r#"{{"one":{bad},"maybe":null,"many":[]}}"#);
            assert!(serde_json::from_str::<Paths>(&text).is_err(), "{bad}");
        }
    }
}
