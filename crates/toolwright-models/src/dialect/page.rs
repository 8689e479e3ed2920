//! The reference page about dialects, made from the code.

use std::fmt::Write as _;

use super::{Change, Dialect, adapt, ignored_by_gemini, place};

/// The reference page about dialects, in Markdown.
pub fn reference() -> String {
    let sample = serde_json::json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "pattern": "^[a-z/]+$"},
            "limit": {"type": "integer", "minimum": 1, "default": 10},
            "mode": {"oneOf": [{"const": "fast"}, {"const": "deep"}]},
        },
        "required": ["path"],
    });
    let mut page = format!(
        "# Schema dialects\n\n\
         One schema, in the subset that each vendor's strict mode takes. Whatever makes the vendor accept something the tool\n\
         refuses, or refuse something it takes, is reported; a property test compares both schemas on generated values.\n\
         This page is generated from the code. The sample:\n\n```json\n{sample:#}\n```\n"
    );
    let dialects = [
        (
            "Anthropic, Bedrock (Claude)",
            Dialect::AnthropicStrict,
            "Not among the subset: limits of numbers, lengths and lists, \
          `pattern`, other formats than the usual ten, recursion. What is left out is described. At most 20 \
          tools with 24 optional parameters and 16 unions are sent this way in one request. A tool that takes a map (properties \
          of any name) is sent without `strict`.",
        ),
        (
            "OpenAI",
            Dialect::OpenAiStrict,
            "Every property is required and no others are allowed, so a tool with optional \
          parameters is sent without `strict`. Not among the subset: `allOf`, `oneOf`, `not`, `if`, `dependent*`, \
          `patternProperties`, maps, and a union at the root; nor more than 10 levels, 5000 properties or 1000 values of \
          `enum`.",
        ),
    ];
    for (title, dialect, words) in dialects {
        let _ = write!(page, "\n## {title}\n\n{words}\n\n");
        match adapt(&sample, dialect) {
            Ok(adapted) => {
                let _ = write!(page, "```json\n{:#}\n```\n\n", adapted.schema);
                list(&mut page, &adapted.changes);
            }
            Err(error) => {
                let _ = writeln!(page, "{error}");
            }
        }
    }
    page.push_str(
        "\n## Gemini\n\nThe schema is sent as it is (`parametersJsonSchema`), and calls are validated (`VALIDATED`) in strict mode. \
         Keywords it reads past:\n\n",
    );
    list(&mut page, &ignored_by_gemini(&sample));
    page
}

fn list(page: &mut String, changes: &[Change]) {
    for change in changes {
        let _ = writeln!(page, "- `{}`: {}", place(&change.at), change.what);
    }
}
