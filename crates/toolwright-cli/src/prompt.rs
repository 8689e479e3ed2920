//! Asking the person at the terminal.

use serde_json::{Map, Value};
use toolwright::mcp::{ElicitReply, Elicitation, Elicitor};
use toolwright::text::is_hidden;
use toolwright::tools::{Answer, Notice, Person, Question};
use toolwright::{ApprovalRequest, Approver, BoxFuture, Choice, Decision, ToolContext, call_text};

use crate::console::Console;
use crate::fields::Field;
use crate::keyboard::Dialogue;

/// The most lines somebody may write.
const MAX_LINES: usize = 10_000;

/// Asks on the terminal, one question at a time.
#[derive(Clone)]
pub struct Terminal(Console);

impl Terminal {
    /// The terminal, when there is somebody at it.
    pub fn of(console: &Console) -> Option<Self> {
        console.has_person().then(|| Terminal(console.clone()))
    }
}

impl Approver for Terminal {
    fn name(&self) -> &str {
        "human"
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> BoxFuture<'a, Decision> {
        let shown = match &request.view.call {
            Some(view) => view.content.clone(),
            None => call_text(request.call),
        };
        let shown = printable(&shown).replace('\n', "\n    ");
        let reason = request.reason.as_deref().map(|reason| format!("{}\n\n", printable(reason)));
        let question = format!("\nThe model wants to call:\n\n    {shown}\n\n{}", reason.unwrap_or_default());
        let offered: Vec<_> = KEYS.into_iter().filter(|key| request.offers(key.3)).collect();
        Box::pin(async move {
            let answer = self.0.ask(move |dialogue| ask(dialogue, &question, &offered)).await;
            answer.unwrap_or_else(|| Decision::reject("nobody answered"))
        })
    }
}

/// An answer that can be typed: its letter, its word, how it is offered, and what it comes to.
type Key = (&'static str, &'static str, &'static str, Choice);

const KEYS: [Key; 4] = [
    ("y", "yes", "[y]es", Choice::Approve),
    ("n", "no", "[n]o", Choice::Reject),
    ("p", "pass", "[p]ass it on", Choice::Escalate),
    ("q", "quit", "[q]uit the run", Choice::Terminate),
];

fn ask(dialogue: &Dialogue, question: &str, offered: &[Key]) -> Option<Decision> {
    let choices: Vec<_> = offered.iter().map(|key| key.2).collect();
    let choices = format!("Allow it? {}: ", choices.join(", "));
    dialogue.print(question, 2);
    loop {
        dialogue.print(&choices, 0);
        let answer = dialogue.line("")?.to_lowercase();
        let Some(key) = offered.iter().find(|key| answer == key.0 || answer == key.1) else { continue };
        return Some(match key.3 {
            Choice::Approve => Decision::Approve,
            Choice::Escalate => Decision::Escalate,
            Choice::Terminate => Decision::Terminate { reason: "the user ended the run".to_owned() },
            // Arguments cannot be changed here, and nobody is offered to.
            Choice::Reject | Choice::Modify => Decision::reject("the user said no"),
        });
    }
}

/// Shows something and asks until the answer is yes or no; `None` when nobody answers.
pub fn yes_or_no(dialogue: &Dialogue, shown: &str, choices: &str) -> Option<bool> {
    dialogue.print(shown, 4);
    loop {
        match dialogue.line(choices)?.to_lowercase().as_str() {
            "y" | "yes" => return Some(true),
            "n" | "no" => return Some(false),
            _ => {}
        }
    }
}

impl Elicitor for Terminal {
    fn elicit<'a>(&'a self, request: &'a Elicitation) -> BoxFuture<'a, ElicitReply> {
        let request = request.clone();
        Box::pin(async move {
            let answer = self.0.ask(move |dialogue| Some(fill_in(dialogue, &request))).await;
            answer.unwrap_or(ElicitReply::Cancel)
        })
    }
}

impl Person for Terminal {
    fn ask<'a>(&'a self, _: &'a ToolContext, question: &'a Question) -> BoxFuture<'a, Answer> {
        let question = question.clone();
        Box::pin(async move {
            let filled = self.0.ask(move |dialogue| {
                let message = printable(&question.message).replace('\n', "\n    ");
                dialogue.say(format_args!("\nThe model asks:\n\n    {message}\n"));
                Some(form(dialogue, &question.schema))
            });
            match filled.await {
                Some(ElicitReply::Accept(form)) => Answer::Given(form),
                Some(ElicitReply::Decline) => Answer::Declined,
                Some(ElicitReply::Cancel) | None => Answer::Cancelled,
            }
        })
    }

    fn read<'a>(&'a self, _: &'a ToolContext, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        let prompt = printable(prompt);
        Box::pin(self.0.ask(move |dialogue| {
            dialogue.say(format_args!("\n{prompt}\n(an empty line ends it)"));
            let lines = std::iter::from_fn(|| dialogue.line("").filter(|line| !line.is_empty()));
            Some(lines.take(MAX_LINES).collect::<Vec<_>>().join("\n"))
        }))
    }

    fn tell<'a>(&'a self, _: &'a ToolContext, notice: &'a Notice) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let message = printable(&notice.message).replace('\n', "\n    ");
            let title = printable(&notice.title).replace('\n', " ");
            self.0.say(format_args!("\n{title}\n\n    {message}\n"));
        })
    }
}

/// Shows what a server asks, and has it answered.
fn fill_in(dialogue: &Dialogue, request: &Elicitation) -> ElicitReply {
    let server = printable(&request.server);
    let message = printable(&request.message).replace('\n', "\n    ");
    dialogue.say(format_args!("\nThe server `{server}` asks:\n\n    {message}\n"));
    let Some(url) = &request.url else { return form(dialogue, &request.schema) };
    dialogue.say(format_args!("It wants you to open this page:\n\n    {}\n", printable(url)));
    match dialogue.line("Will you open it? [y]es, [n]o: ").as_deref() {
        Some("y" | "yes") => ElicitReply::Accept(Map::new()),
        Some(_) => ElicitReply::Decline,
        None => ElicitReply::Cancel,
    }
}

/// Asks whether to answer, then field by field. Ending the input gives no answer.
fn form(dialogue: &Dialogue, schema: &Value) -> ElicitReply {
    match dialogue.line("Answer it? [y]es, [n]o: ").as_deref() {
        Some("y" | "yes") => {}
        Some(_) => return ElicitReply::Decline,
        None => return ElicitReply::Cancel,
    }
    let fields = Field::all(schema);
    if !fields.is_empty() {
        dialogue.say("(an empty line takes the default, or leaves a field out; Ctrl-D gives no answer)");
    }
    let mut content = Map::new();
    for field in &fields {
        let Some(value) = one_field(dialogue, field) else { return ElicitReply::Cancel };
        content.extend(value.map(|value| (field.name.clone(), value)));
    }
    ElicitReply::Accept(content)
}

/// Asks for one field until the answer fits; `None` when nobody answers.
fn one_field(dialogue: &Dialogue, field: &Field) -> Option<Option<Value>> {
    let label = format!("{}{}: ", field.title(), field.about());
    loop {
        match field.read(&dialogue.line(&label)?) {
            Ok(value) => return Some(value),
            Err(problem) => dialogue.say(problem),
        }
    }
}

/// What a model wrote cannot move the cursor or hide itself.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    let mut before = None;
    while let Some(c) = signs.next() {
        match c {
            // The last one asks for the coloured form of a sign.
            '\n' | '\t' | '\u{fe0f}' => out.push(c),
            c if is_hidden(c) && !joins(before, c, signs.peek().copied()) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
        before = Some(c);
    }
    out
}

/// True for a joiner where writing needs one: inside Persian and Indic words, between the parts of an emoji. Elsewhere it
/// only makes two texts look the same.
pub fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let joined = |c: Option<char>| c.is_some_and(|c| c >= '\u{600}' && (c == '\u{fe0f}' || !is_hidden(c)));
    matches!(c, '\u{200c}' | '\u{200d}') && joined(before) && joined(after)
}

/// What a tool gave, on a terminal: it may have colours, and cannot move the cursor, reach the clipboard or hide itself.
pub fn coloured(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split("\x1b[");
    out.push_str(&printable(&pieces.next().unwrap_or_default().replace("\r\n", "\n")));
    let mut is_coloured = false;
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(piece.len());
        match piece.split_at_checked(end) {
            Some((codes, rest)) if rest.starts_with('m') => {
                is_coloured = true;
                out.extend(["\x1b[", codes]);
                out.push_str(&printable(&rest.replace("\r\n", "\n")));
            }
            _ => out.push_str(&printable(&format!("\x1b[{}", piece.replace("\r\n", "\n")))),
        }
    }
    if is_coloured {
        let end = out.trim_end_matches('\n').len();
        out.insert_str(end, "\x1b[0m");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Output;

    #[tokio::test]
    async fn nothing_is_asked_in_lines_once_a_chat_reads_all_keys() {
        let console = Console::new(Output::Text);
        assert_eq!(console.ask(|_| Some(1)).await, Some(1));
        console.give_keys_to_chat();
        assert_eq!(console.ask(|_| Some(1)).await, None);
    }

    #[test]
    fn colours_are_kept_and_nothing_else() {
        assert_eq!(coloured("plain\r\n\ttext"), "plain\n\ttext");
        assert_eq!(coloured("\x1b[1;31mred\x1b[m ok"), "\x1b[1;31mred\x1b[m ok\x1b[0m");
        assert_eq!(coloured("\x1b]52;c;aGk=\x07\x1b[2Jx\x1b["), "\\u{1b}]52;c;aGk=\\u{7}\\u{1b}[2Jx\\u{1b}[");
        assert_eq!(coloured("\x1b[31"), "\\u{1b}[31");
    }

    #[test]
    fn escape_sequences_and_invisible_characters_are_shown() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\nd");
        assert_eq!(printable("a\u{2060}b\u{e0041}⚠\u{fe0f}"), "a\\u{2060}b\\u{e0041}⚠\u{fe0f}");
        for kept in ["می\u{200c}خواهم", "क्\u{200d}ष", "👨\u{200d}👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥"]
        {
            assert_eq!(printable(kept), kept);
        }
        assert_eq!(printable("a\u{200d}b 語\u{200d}"), "a\\u{200d}b 語\\u{200d}");
    }
}
