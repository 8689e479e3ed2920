//! `toolwright config`: each setting, its value and where that comes from.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::chat::display::Display;
use crate::console::Console;
use crate::models::MODEL_VARIABLE;
use crate::prompt::printable;
use crate::settings::{self, Settings};
use crate::toolbox::{PROFILE_VARIABLE, Profile};
use crate::{policies, runs};

/// A setting as it holds here, in this folder and without options.
struct Setting {
    name: String,
    value: Value,
    origin: String,
}

pub fn run(console: &Console) -> anyhow::Result<()> {
    let settings = Settings::read()?;
    let file = settings::file();
    let shown = file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let all = all(&settings, &shown);
    if console.is_json() {
        let list: Vec<Value> = all
            .into_iter()
            .map(|setting| json!({"name": setting.name, "value": setting.value, "origin": setting.origin}))
            .collect();
        console.line(serde_json::to_string_pretty(&json!({"file": file, "settings": list}))?)?;
        return Ok(());
    }
    let mut out = console.stdout();
    for Setting { name, value, origin } in all {
        let value = match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        writeln!(out, "{name:<30} {:<40} {}", printable(&value).replace('\n', " "), printable(&origin))?;
    }
    match &file {
        Some(path) if path.exists() => console.remark(format_args!("\nsettings file: {}", path.display())),
        Some(path) => console.remark(format_args!("\nsettings file: {} (not there yet)", path.display())),
        None => console.remark("\nno settings file: HOME is not set"),
    }
    Ok(())
}

fn all(settings: &Settings, file: &str) -> Vec<Setting> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let of_file = |value: Option<Value>, default: Value| match value {
        Some(value) => (value, file.to_owned()),
        None => (default, "default".to_owned()),
    };
    let mut all = Vec::new();
    let mut add = |name: &str, (value, origin): (Value, String)| {
        all.push(Setting { name: name.to_owned(), value, origin });
    };
    let model = match (variable(MODEL_VARIABLE), &settings.model) {
        (Some(name), _) => (json!(name), MODEL_VARIABLE.to_owned()),
        (None, Some(name)) => (json!(name), file.to_owned()),
        (None, None) => (Value::Null, "the first key or local server that is found".to_owned()),
    };
    add("model", model);
    let name = |profile: Profile| json!(profile.name());
    let profile = match variable(PROFILE_VARIABLE) {
        Some(set) => (json!(set), PROFILE_VARIABLE.to_owned()),
        None => of_file(settings.profile.map(name), name(Profile::default())),
    };
    add("profile", profile);
    add("system", of_file(settings.system.as_ref().map(|text| json!(text)), json!("the usual instructions")));
    let policy = policies::user_file().filter(|path| path.exists());
    add(
        "policy",
        match policy {
            Some(path) => (json!(path), "your policy.yaml".to_owned()),
            None => (json!("cautious"), "default".to_owned()),
        },
    );
    let mut display = Display::default();
    for (name, on) in display.all() {
        add(&format!("display.{name}"), of_file(settings.display.get(name).map(|on| json!(on)), json!(on)));
    }
    for (alias, model) in &settings.aliases {
        add(&format!("aliases.{alias}"), (json!(model), file.to_owned()));
    }
    let folder = |name: &str| if variable(name).is_some() { name.to_owned() } else { "default".to_owned() };
    add("runs", (json!(runs::folder()), folder("TOOLWRIGHT_RUNS")));
    add("keep_runs", (json!(runs::kept()), folder("TOOLWRIGHT_KEEP_RUNS")));
    all
}
