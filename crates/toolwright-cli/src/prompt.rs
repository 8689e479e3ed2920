//! Asking the person at the terminal.

use serde_json::{Map, Value};
use toolwright::approval::{
    ApprovalRequest, Choice, Decision, Form, FormAuthor, FormBody, FormReply, Notice, Person, call_text,
};
use toolwright_core::text::{is_hidden, visible};

use crate::console::Console;
use crate::form_fields::Field;
use crate::keyboard::Dialogue;

/// The most lines somebody may write.
const MAX_LINES: usize = 10_000;

/// The person at the terminal, asked one question at a time. Once a chat reads the keys, the chat asks in its
/// place: MCP servers are given their person before it runs.
pub struct Terminal(Console);

impl Terminal {
    pub fn new(console: &Console) -> Self {
        Terminal(console.clone())
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        let shown = match &request.view.call {
            Some(view) => view.content.clone(),
            None => call_text(request.call),
        };
        let shown = printable(&shown).replace('\n', "\n    ");
        let reason = request.reason.as_deref().map(|reason| format!("{}\n\n", printable(reason)));
        let question = format!("\nThe model wants to call:\n\n    {shown}\n\n{}", reason.unwrap_or_default());
        let offered: Vec<_> = KEYS.into_iter().filter(|key| request.offers(key.3)).collect();
        let answer = self.0.ask(move |dialogue| ask(dialogue, &question, &offered)).await;
        answer.unwrap_or_else(|| Decision::reject("nobody answered"))
    }
}

impl Person for Terminal {
    async fn approve(&self, request: &ApprovalRequest<'_>) -> Decision {
        match self.0.chat_person() {
            Some(chat) => chat.approve(request).await,
            None => self.decide(request).await,
        }
    }

    async fn answer(&self, form: &Form) -> FormReply {
        if let Some(chat) = self.0.chat_person() {
            return chat.answer(form).await;
        }
        let form = form.clone();
        let reply = self.0.ask(move |dialogue| Some(fill_in(dialogue, &form))).await;
        reply.unwrap_or(FormReply::Cancelled)
    }

    async fn notify(&self, notice: &Notice) {
        if let Some(chat) = self.0.chat_person() {
            return chat.notify(notice).await;
        }
        let message = printable(&notice.message).replace('\n', "\n    ");
        let title = printable(&notice.title).replace('\n', " ");
        self.0.say(format_args!("\n{title}\n\n    {message}\n"));
    }
}

/// An answer that can be typed: its letter, its word, how it is offered, and what it comes to.
type AnswerKey = (&'static str, &'static str, &'static str, Choice);

const KEYS: [AnswerKey; 4] = [
    ("y", "yes", "[y]es", Choice::Approve),
    ("n", "no", "[n]o", Choice::Reject),
    ("p", "pass", "[p]ass it on", Choice::Escalate),
    ("q", "quit", "[q]uit the run", Choice::Terminate),
];

fn ask(dialogue: &Dialogue, question: &str, offered: &[AnswerKey]) -> Option<Decision> {
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

/// Shows something and asks until the answer is one of these letters or words; its number. `None` when nobody
/// answers.
pub fn pick(dialogue: &Dialogue, shown: &str, question: &str, answers: &[(&str, &str)]) -> Option<usize> {
    dialogue.print(shown, 4);
    loop {
        let line = dialogue.line(question)?.to_lowercase();
        if let Some(at) = answers.iter().position(|(letter, word)| line == *letter || line == *word) {
            return Some(at);
        }
    }
}

/// A word as a shell would read it back, with nothing invisible in it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => visible(&format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// Shows a form, and has it filled in.
fn fill_in(dialogue: &Dialogue, form: &Form) -> FormReply {
    let message = printable(&form.message);
    if form.body == FormBody::Text {
        dialogue.say(format_args!("\n{message}\n(an empty line ends it)"));
        let lines = std::iter::from_fn(|| dialogue.line("").filter(|line| !line.is_empty()));
        let text = lines.take(MAX_LINES).collect::<Vec<_>>().join("\n");
        return FormReply::Accepted(Map::from_iter([("text".to_owned(), text.into())]));
    }
    let message = message.replace('\n', "\n    ");
    dialogue.say(format_args!("\n{}\n\n    {message}\n", heading(form)));
    let FormBody::Page(url) = &form.body else { return fields(dialogue, &form.schema()) };
    dialogue.say(format_args!("It wants you to open this page:\n\n    {}\n", printable(url)));
    match dialogue.line("Will you open it? [y]es, [n]o: ").as_deref() {
        Some("y" | "yes") => FormReply::Accepted(Map::new()),
        Some(_) => FormReply::Declined,
        None => FormReply::Cancelled,
    }
}

/// The line above a form: who asks.
pub fn heading(form: &Form) -> String {
    match &form.author {
        FormAuthor::Server(server) => format!("The server `{}` asks:", printable(server)),
        _ => "The model asks:".to_owned(),
    }
}

/// Asks whether to answer, then field by field. Ending the input gives no answer.
fn fields(dialogue: &Dialogue, schema: &Value) -> FormReply {
    match dialogue.line("Answer it? [y]es, [n]o: ").as_deref() {
        Some("y" | "yes") => {}
        Some(_) => return FormReply::Declined,
        None => return FormReply::Cancelled,
    }
    let fields = Field::all(schema);
    if !fields.is_empty() {
        dialogue.say("(an empty line takes the default, or leaves a field out; Ctrl-D gives no answer)");
    }
    let mut content = Map::new();
    for field in &fields {
        let Some(value) = one_field(dialogue, field) else { return FormReply::Cancelled };
        content.extend(value.map(|value| (field.name.clone(), value)));
    }
    FormReply::Accepted(content)
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

/// True for a joiner where writing needs one: inside Persian and Indic words, between the parts of an emoji.
/// Elsewhere it only makes two texts look the same.
pub fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let joined = |c: Option<char>| c.is_some_and(|c| c >= '\u{600}' && (c == '\u{fe0f}' || !is_hidden(c)));
    matches!(c, '\u{200c}' | '\u{200d}') && joined(before) && joined(after)
}

/// What a tool gave, on a terminal: it may have colours, and cannot move the cursor, reach the clipboard or
/// hide itself.
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
                if let Some(codes) = without_conceal(codes) {
                    out.extend(["\x1b[", codes.as_str()]);
                } else {
                    // Without its codes it would reset everything; the rest still begins with its `m`.
                    out.push_str(&printable(&rest.get(1..).unwrap_or_default().replace("\r\n", "\n")));
                    continue;
                }
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

/// The codes of a colour sequence without the one that hides text; `None` when nothing else is there. The
/// numbers behind 38, 48 and 58 are colours; where they are cut off, nothing is left of that code.
fn without_conceal(codes: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    let mut rest = codes.split(';');
    while let Some(code) = rest.next() {
        match code.parse::<u64>() {
            Ok(8) => {}
            Ok(38 | 48 | 58) => {
                let kind = rest.next().unwrap_or_default();
                let most = match kind.parse::<u64>() {
                    Ok(5) => 1,
                    Ok(2) => 3,
                    _ => continue,
                };
                let colour: Vec<&str> = rest.by_ref().take(most).collect();
                if colour.len() == most {
                    kept.extend([code, kind]);
                    kept.extend(colour);
                }
            }
            // An empty code is a reset.
            Ok(_) => kept.push(code),
            Err(_) if code.is_empty() => kept.push(code),
            Err(_) => {}
        }
    }
    (!kept.is_empty()).then(|| kept.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_unless_every_shell_reads_it_as_it_is() {
        for plain in ["npx", "@scope/server", "--port=80", "http://127.0.0.1:80/mcp", "a,b"] {
            assert_eq!(quoted(plain), plain);
        }
        for (word, shown) in [
            ("what?.jsonl", "'what?.jsonl'"),
            ("a&b", "'a&b'"),
            ("http://x/?a=1&b=2", "'http://x/?a=1&b=2'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), shown);
        }
    }

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

    /// F22.
    #[test]
    fn a_sequence_of_colours_hides_no_text() {
        assert_eq!(coloured("a\x1b[8mb"), "ab\x1b[0m");
        assert_eq!(coloured("\x1b[08;31mb"), "\x1b[31mb\x1b[0m");
        assert_eq!(coloured("\x1b[38;5;8;008;1mb"), "\x1b[38;5;8;1mb\x1b[0m");
        assert_eq!(coloured("\x1b[48;2;1;2;8mb"), "\x1b[48;2;1;2;8mb\x1b[0m");
        assert_eq!(coloured("\x1b[38;8mb"), "b\x1b[0m");
        assert_eq!(coloured("\x1b[38;5mb"), "b\x1b[0m");
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
