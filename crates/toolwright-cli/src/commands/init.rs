//! `toolwright init`: a commented starter file, with what a few questions bring.

use std::io::{BufRead as _, Write as _};

use serde_json::json;
use toolwright::file::{KnownTools, ToolFile};
use toolwright::lang::Source;

use crate::args::Init;
use crate::console::Console;
use crate::prompt::printable;
use crate::trust;
use crate::write_file::{self, FileAccess};

const STARTER: &str = include_str!("starter.yaml");

pub fn run(what: &Init, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let path = what.file.display();
    let asks = !what.yes && !json && console.has_person();
    if what.file.exists() {
        anyhow::bail!(
            "cannot write `{path}`: it is there already; `toolwright init OTHER.yaml` writes another"
        );
    }
    let text = if asks { asked(console)? } else { STARTER.to_owned() };
    write_file::create(&what.file, text.as_bytes(), FileAccess::Inherit)?;
    trust::own(console, &what.file);
    if json {
        return Ok(console.line(json!({"file": path.to_string()}))?);
    }
    console.say(format_args!(
        "wrote {path}; try:\n  toolwright check {path}\n  toolwright call greet name=Ada -f {path}"
    ));
    Ok(())
}

/// The starter file with the answers to a few questions. An empty answer leaves things as they are.
fn asked(console: &Console) -> anyhow::Result<String> {
    let mut text = STARTER.to_owned();
    let mut tools = "greet, longest_lines, read_file".to_owned();
    let commands = loop {
        match question(console, "May tools run commands, in a sandbox? [y/N]")?.to_lowercase().as_str() {
            "y" | "yes" => break true,
            "" | "n" | "no" => break false,
            _ => console.say("write y or n"),
        }
    };
    if commands {
        tools.push_str(", bash");
        text = text.replacen(
            "    - import_tool: read_file\n",
            "    - import_tool: read_file\n    - import_tool: bash\n",
            1,
        );
    }
    let model = loop {
        let model =
            question(console, "Which model should answer, as vendor/model? (Enter: whatever there is)")?;
        if model.is_empty() {
            break model;
        }
        let file = json!({"models": {"default": model}}).to_string();
        let parsed = ToolFile::parse(Source::text("the answer", file));
        if parsed.is_ok_and(|file| file.check(&KnownTools::new()).is_empty()) {
            break model;
        }
        console.say(printable(&format!("`{model}` names no model; write it as vendor/model")));
    };
    let purpose = question(console, "What should it help with? (Enter: anything)")?;
    // JSON text is YAML text too, whatever was typed.
    let quoted = |text: &str| serde_json::to_string(text);
    if !model.is_empty() {
        text.push_str(&format!(
            "\n# What names of models stand for.\nmodels:\n  default: {}\n",
            quoted(&model)?
        ));
    }
    if !purpose.is_empty() || !model.is_empty() {
        let purpose = if purpose.is_empty() {
            "You are a helpful assistant.".to_owned()
        } else {
            // A person writes words, not expressions.
            format!("Help with: {}", purpose.replace("${", "\\${"))
        };
        text.push_str(&format!(
            "\n# `toolwright chat` uses this.\nchat:\n  model_ref: default\n  system_message: {}\n  tools: [{tools}]\n",
            quoted(&purpose)?
        ));
    }
    Ok(text)
}

fn question(console: &Console, text: &str) -> anyhow::Result<String> {
    write!(console.stderr(), "{text} ")?;
    console.stderr().flush()?;
    let mut line = String::new();
    console.stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
