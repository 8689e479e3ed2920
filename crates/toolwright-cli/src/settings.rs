//! The person's own settings: `config.yaml` in the program's folder among the user's settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use serde_json::{Map, Value};
use toolwright::lang::read_data;
use toolwright_core::nearest;

use crate::chat::display;
use crate::report::Usage;
use crate::runs;
use crate::toolbox::Profile;

/// The largest file that is read.
const MOST: u64 = 1 << 20;

/// What the file may say.
const KEYS: &[&str] = &["model", "profile", "system", "display", "aliases"];

/// The person's settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The model where the command line, the file of tools and the environment name none.
    pub model: Option<String>,
    /// The built-in tools that are offered where no file is used.
    pub profile: Option<Profile>,
    /// The instructions of `ask` and `chat`.
    pub system: Option<String>,
    /// What a chat shows.
    pub display: BTreeMap<String, bool>,
    /// Short names of models.
    pub aliases: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the person's settings; the defaults where there is no file.
    pub fn read() -> anyhow::Result<Self> {
        let Some(path) = file() else { return Ok(Self::default()) };
        match std::fs::metadata(&path) {
            Ok(found) if found.len() > MOST => {
                return Err(Usage::new(format!("`{}` has more than 1 MiB", path.display())).into());
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(&path, &error)),
        }
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        let name = path.display().to_string();
        let value = read_data(&name, &text).map_err(|error| Usage::new(error.to_string()))?;
        match value {
            Value::Null => Ok(Self::default()),
            value => Ok(Self::of(&value).map_err(|problem| wrong(&name, problem))?),
        }
    }

    fn of(value: &Value) -> Result<Self, SettingProblem> {
        let map = value.as_object().ok_or_else(|| SettingProblem::new("it must hold `name: value` lines"))?;
        known(map, KEYS, "setting")?;
        let text = |key: &str| match map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            Some(other) => Err(SettingProblem::new(format!("`{key}` must be text, got {other}"))),
        };
        let section = |key: &str| match map.get(key) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(section)) => Ok(section.clone()),
            Some(other) => {
                Err(SettingProblem::new(format!("`{key}` must hold `name: value` lines, got {other}")))
            }
        };
        let profile = text("profile")?.map(|name| {
            Profile::from_str(&name, false).map_err(|_| {
                let names: Vec<String> = Profile::value_variants().iter().map(|one| one.name()).collect();
                SettingProblem::new(format!("unknown profile `{name}`"))
                    .hint(format!("the profiles are {}", names.join(", ")))
            })
        });
        let display = section("display")?;
        known(&display, display::NAMES, "display setting")?;
        let on = |(key, value): (String, Value)| match value.as_bool() {
            Some(on) => Ok((key, on)),
            None => Err(SettingProblem::new(format!("`display.{key}` must be true or false, got {value}"))),
        };
        let model = |(key, value): (String, Value)| match value.as_str().filter(|name| name.contains('/')) {
            Some(name) => Ok((key, name.to_owned())),
            None => {
                let problem =
                    SettingProblem::new(format!("`aliases.{key}` must be vendor/model, got {value}"));
                Err(problem)
            }
        };
        Ok(Settings {
            model: text("model")?,
            profile: profile.transpose()?,
            system: match map.get("system") {
                // An empty text gives no instructions.
                Some(Value::String(text)) => Some(text.clone()),
                _ => text("system")?,
            },
            display: display.into_iter().map(on).collect::<Result<_, _>>()?,
            aliases: section("aliases")?.into_iter().map(model).collect::<Result<_, _>>()?,
        })
    }
}

/// Where the settings are.
pub fn file() -> Option<PathBuf> {
    Some(runs::settings()?.join("config.yaml"))
}

#[derive(Debug)]
struct SettingProblem {
    message: String,
    hint: Option<String>,
}

impl SettingProblem {
    fn new(message: impl Into<String>) -> Self {
        SettingProblem { message: message.into(), hint: None }
    }

    fn hint(self, hint: String) -> Self {
        SettingProblem { hint: Some(hint), ..self }
    }
}

fn known(map: &Map<String, Value>, names: &[&str], what: &str) -> Result<(), SettingProblem> {
    let Some(key) = map.keys().find(|key| !names.contains(&key.as_str())) else { return Ok(()) };
    let problem = SettingProblem::new(format!("unknown {what} `{key}`"));
    Err(match nearest(key, names.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint(format!("the names are {}", names.join(", "))),
    })
}

fn wrong(name: &str, problem: SettingProblem) -> anyhow::Error {
    let error = Usage::new(format!("`{name}`: {}", problem.message));
    match problem.hint {
        Some(hint) => error.hint(hint).into(),
        None => error.into(),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    Usage::new(format!("cannot read `{}`: {error}", path.display())).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_read_and_every_mistake_is_named() {
        let settings = Settings::of(&json!({
            "model": "fast", "profile": "code", "system": "", "display": {"show_reasoning": true},
            "aliases": {"fast": "groq/llama-3.3-70b-versatile"}
        }))
        .unwrap();
        assert_eq!((settings.profile, settings.system.as_deref()), (Some(Profile::Code), Some("")));
        for (value, message, hint) in [
            (json!({"modle": "x/y"}), "unknown setting `modle`", "did you mean `model`?"),
            (json!({"profile": "coding"}), "unknown profile `coding`", "the profiles are default, code"),
            (json!({"display": {"reasoning": true}}), "unknown display setting", ""),
            (json!({"display": {"stream": "maybe"}}), "`display.stream` must be true or false", ""),
            (json!({"aliases": {"x": "y"}}), "`aliases.x` must be vendor/model", ""),
            (json!({"model": 3}), "`model` must be text, got 3", ""),
            (json!([1]), "it must hold", ""),
        ] {
            let problem = Settings::of(&value).unwrap_err();
            assert!(problem.message.contains(message), "{problem:?}");
            assert!(problem.hint.as_deref().unwrap_or_default().contains(hint), "{problem:?}");
        }
    }
}
