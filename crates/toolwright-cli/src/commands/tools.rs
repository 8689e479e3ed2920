//! `toolwright tools`: what there is.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright::Toolset;
use toolwright::lang::Wanted;
use toolwright::mcp::ToolDefinition;
use toolwright::model::dialect::Effect;
use toolwright::model::vendor;
use toolwright::model::wire::{Definition, define};
use toolwright::tool::ToolSpec;

use crate::args::{Format, Tools};
use crate::console::Console;
use crate::opening::{FileChoice, Opening};
use crate::report::Usage;
use crate::{files, prompt, toolbox};

pub async fn run(what: Tools, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let is_file = |name: &&String| name.ends_with(".yaml") || name.ends_with(".yml");
    let (named, patterns): (Vec<String>, Vec<String>) =
        what.which.iter().cloned().partition(|name| is_file(&name));
    let files: Vec<&Path> =
        what.file.iter().map(PathBuf::as_path).chain(named.iter().map(Path::new)).collect();
    let file = match files.as_slice() {
        [] => files::default(console),
        [file] => Some(FileChoice::named(*file)),
        _ => return Err(Usage::new("one file at a time").into()),
    };
    let all = match file {
        Some(file) => {
            let opening = Opening { wanted: Wanted::tools(&patterns), runs: false, ..Opening::default() };
            let opened = opening.open(console, file.parse(console).await?).await?;
            files::tell_of_chat(console, opened.session.loaded());
            opened.tools()?
        }
        None => toolbox::all()?,
    };
    let tools = chosen(all, &patterns)?;
    let mut out = console.stdout();
    let format = what.format.or(json.then_some(Format::Json));
    let Some(format) = format else {
        for entry in tools.iter() {
            let spec = entry.tool.spec();
            let summary = spec.description.lines().next().unwrap_or_default();
            writeln!(out, "{:<16} {}", signature_name(spec), prompt::printable(summary))?;
            for line in parameters(spec) {
                writeln!(out, "    {line}")?;
            }
        }
        return Ok(());
    };
    let definitions = definitions(&tools.specs(), format, what.strict);
    if json && what.format.is_some() {
        let named = tools.specs().into_iter().zip(&definitions);
        let changes = named.flat_map(|(spec, definition)| {
            definition.changes.iter().map(move |change| {
                json!({"tool": spec.name, "at": change.at, "what": change.what, "effect": effect(change.effect)})
            })
        });
        let changes: Vec<Value> = changes.collect();
        let tools: Vec<&Value> = definitions.iter().map(|definition| &definition.json).collect();
        console.line(serde_json::to_string_pretty(&json!({"tools": tools, "changes": changes}))?)?;
        return Ok(());
    }
    for (spec, definition) in tools.specs().iter().zip(&definitions) {
        for change in &definition.changes {
            console.say(format_args!("warning: {}: {}", spec.name, prompt::printable(&change.to_string())));
        }
    }
    let shown = tools.iter().zip(&definitions).map(|(entry, definition)| {
        let mut shown = definition.json.clone();
        // What vendors are sent has no place for it.
        if let Some(members) = shown.as_object_mut().filter(|_| what.format.is_none()) {
            let timeout = entry.tool.policy().timeout;
            members.insert(
                "timeout".to_owned(),
                timeout.map_or(json!("none"), |time| json!(time.as_secs_f64())),
            );
        }
        shown
    });
    let shown: Vec<Value> = shown.collect();
    console.line(serde_json::to_string_pretty(&shown)?)?;
    Ok(())
}

/// The tools that match; it is an error to ask for what is not there.
pub fn chosen(tools: Toolset, patterns: &[String]) -> anyhow::Result<Toolset> {
    if patterns.is_empty() {
        return Ok(tools);
    }
    let names: Vec<String> = tools.names().map(str::to_owned).collect();
    let chosen = tools.filtered(patterns);
    if chosen.is_empty() {
        let error = Usage::new(format!("no tool matches {}", patterns.join(", ")));
        return Err(error.hint(format!("the tools are: {}", names.join(", "))).into());
    }
    Ok(chosen)
}

fn signature_name(spec: &ToolSpec) -> &str {
    &spec.name
}

/// One line per parameter: name, type, default, description.
fn parameters(spec: &ToolSpec) -> Vec<String> {
    let required = spec.parameters.get("required").and_then(Value::as_array);
    let properties = spec.parameters.get("properties").and_then(Value::as_object);
    let line = |(name, schema): (&String, &Value)| {
        let kind = kind(schema);
        let needed = required.is_some_and(|names| names.iter().any(|known| known == name));
        let default = match schema.get("default") {
            Some(value) => format!(", {value} when left out"),
            None if needed => String::new(),
            None => ", optional".to_owned(),
        };
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
        prompt::printable(&format!("{name} ({kind}{default}): {text}"))
    };
    properties.into_iter().flatten().map(line).collect()
}

/// What a value may be: one of a few words, or of a type.
fn kind(schema: &Value) -> String {
    let choices = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
    if let Some(Value::Array(values)) = schema.get("enum") {
        return choices(values);
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => {
            let ways = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
            let mut kinds: Vec<String> = ways.into_iter().flatten().map(kind).collect();
            kinds.dedup();
            if kinds.is_empty() { "any".to_owned() } else { kinds.join(" or ") }
        }
    }
}

fn definitions(specs: &[ToolSpec], format: Format, strict: bool) -> Vec<Definition> {
    let whole = |json: Value| Definition { json, changes: Vec::new() };
    let vendor = match format {
        Format::Json => {
            return specs.iter().map(|spec| whole(serde_json::to_value(spec).unwrap_or_default())).collect();
        }
        Format::Mcp => {
            let of = |spec| whole(serde_json::to_value(ToolDefinition::of(spec)).unwrap_or_default());
            return specs.iter().map(of).collect();
        }
        Format::Anthropic => "anthropic",
        Format::Openai => "openai-chat",
        Format::OpenaiResponses => "openai",
        Format::Gemini => "google",
        Format::Bedrock => "bedrock",
    };
    vendor::find(vendor).map_or_else(Vec::new, |vendor| define(vendor, specs, strict))
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Looser => "looser",
        Effect::Tighter => "tighter",
        Effect::Closed => "closed",
        Effect::Refused => "refused",
        Effect::Told => "told",
    }
}
