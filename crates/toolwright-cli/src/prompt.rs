//! Asking the person at the terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use toolwright::mcp::{ElicitReply, Elicitation, Elicitor};
use toolwright::text::is_hidden;
use toolwright::tools::{Answer, Notice, Person, Question};
use toolwright::{ApprovalRequest, Approver, BoxFuture, Choice, Decision, ToolContext, call_text};

use crate::fields::Field;
use crate::{keyboard, lines};

/// The most lines somebody may write.
const MAX_LINES: usize = 10_000;

/// Asks on the terminal, one question at a time.
pub struct Terminal;

impl Terminal {
    /// The terminal, when there is somebody at it.
    pub fn if_there() -> Option<Self> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then_some(Terminal)
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
            let answer = keyboard::ask(move || ask(&question, &offered)).await;
            answer.unwrap_or_else(|_| Decision::reject("the question could not be asked"))
        })
    }
}

/// Waits until no other question is open: those of several calls do not mix. Only what is typed from then on is an answer. `None`
/// when a chat reads what is typed: then it is no answer to anything else, and stays.
fn turn() -> Option<impl Drop> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if keyboard::is_taken() {
        return None;
    }
    keyboard::forget();
    Some(turn)
}

/// An answer that can be typed: its letter, its word, how it is offered, and what it comes to.
type Key = (&'static str, &'static str, &'static str, Choice);

const KEYS: [Key; 4] = [
    ("y", "yes", "[y]es", Choice::Approve),
    ("n", "no", "[n]o", Choice::Reject),
    ("p", "pass", "[p]ass it on", Choice::Escalate),
    ("q", "quit", "[q]uit the run", Choice::Terminate),
];

fn ask(question: &str, offered: &[Key]) -> Decision {
    let nobody = || Decision::reject("nobody answered");
    let Some(_turn) = turn() else { return nobody() };
    let columns = lines::columns(&std::io::stderr()).unwrap_or(usize::MAX / 2);
    let choices: Vec<_> = offered.iter().map(|key| key.2).collect();
    let choices = lines::wrapped(&format!("Allow it? {}: ", choices.join(", ")), columns, 0);
    eprint!("{}", lines::wrapped(question, columns, 2));
    loop {
        let Some(answer) = line(&choices) else { return nobody() };
        let answer = answer.to_lowercase();
        let Some(key) = offered.iter().find(|key| answer == key.0 || answer == key.1) else { continue };
        return match key.3 {
            Choice::Approve => Decision::Approve,
            Choice::Escalate => Decision::Escalate,
            Choice::Terminate => Decision::Terminate { reason: "the user ended the run".to_owned() },
            // Arguments cannot be changed here, and nobody is offered to.
            Choice::Reject | Choice::Modify => Decision::reject("the user said no"),
        };
    }
}

/// Shows something and asks until the answer is yes or no; `None` when nobody answers. Only inside [`keyboard::ask`].
pub fn yes_or_no(shown: &str, choices: &str) -> Option<bool> {
    let _turn = turn()?;
    let columns = lines::columns(&std::io::stderr()).unwrap_or(usize::MAX / 2);
    eprint!("{}", lines::wrapped(shown, columns, 4));
    loop {
        match line(choices)?.to_lowercase().as_str() {
            "y" | "yes" => return Some(true),
            "n" | "no" => return Some(false),
            _ => {}
        }
    }
}

impl Elicitor for Terminal {
    fn elicit<'a>(&'a self, request: &'a Elicitation) -> BoxFuture<'a, ElicitReply> {
        let request = request.clone();
        Box::pin(async move { keyboard::ask(move || fill_in(&request)).await.unwrap_or(ElicitReply::Cancel) })
    }
}

impl Person for Terminal {
    fn ask<'a>(&'a self, _: &'a ToolContext, question: &'a Question) -> BoxFuture<'a, Answer> {
        let question = question.clone();
        Box::pin(async move {
            let filled = keyboard::ask(move || {
                let Some(_turn) = turn() else { return ElicitReply::Cancel };
                eprintln!(
                    "\nThe model asks:\n\n    {}\n",
                    printable(&question.message).replace('\n', "\n    ")
                );
                form(&question.schema)
            });
            match filled.await {
                Ok(ElicitReply::Accept(form)) => Answer::Given(form),
                Ok(ElicitReply::Decline) => Answer::Declined,
                Ok(ElicitReply::Cancel) | Err(_) => Answer::Cancelled,
            }
        })
    }

    fn read<'a>(&'a self, _: &'a ToolContext, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        let prompt = printable(prompt);
        Box::pin(async move {
            let written = keyboard::ask(move || {
                let _turn = turn()?;
                eprintln!("\n{prompt}\n(an empty line ends it)");
                let lines = std::iter::from_fn(|| line("").filter(|line| !line.is_empty()));
                Some(lines.take(MAX_LINES).collect::<Vec<_>>().join("\n"))
            });
            written.await.ok().flatten()
        })
    }

    fn tell<'a>(&'a self, _: &'a ToolContext, notice: &'a Notice) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let message = printable(&notice.message).replace('\n', "\n    ");
            eprintln!("\n{}\n\n    {message}\n", printable(&notice.title).replace('\n', " "));
        })
    }
}

/// Shows what a server asks, and has it answered.
fn fill_in(request: &Elicitation) -> ElicitReply {
    let Some(_turn) = turn() else { return ElicitReply::Cancel };
    let server = printable(&request.server);
    eprintln!(
        "\nThe server `{server}` asks:\n\n    {}\n",
        printable(&request.message).replace('\n', "\n    ")
    );
    let Some(url) = &request.url else { return form(&request.schema) };
    eprintln!("It wants you to open this page:\n\n    {}\n", printable(url));
    match line("Will you open it? [y]es, [n]o: ").as_deref() {
        Some("y" | "yes") => ElicitReply::Accept(Map::new()),
        Some(_) => ElicitReply::Decline,
        None => ElicitReply::Cancel,
    }
}

/// Asks whether to answer, then field by field. Whoever ends the input has not answered.
fn form(schema: &Value) -> ElicitReply {
    match line("Answer it? [y]es, [n]o: ").as_deref() {
        Some("y" | "yes") => {}
        Some(_) => return ElicitReply::Decline,
        None => return ElicitReply::Cancel,
    }
    let fields = Field::all(schema);
    if !fields.is_empty() {
        eprintln!("(an empty line takes the default, or leaves a field out; Ctrl-D gives no answer)");
    }
    let mut content = Map::new();
    for field in &fields {
        let Some(value) = one_field(field) else { return ElicitReply::Cancel };
        content.extend(value.map(|value| (field.name.clone(), value)));
    }
    ElicitReply::Accept(content)
}

/// Asks for one field until the answer fits; `None` when nobody answers.
fn one_field(field: &Field) -> Option<Option<Value>> {
    let label = format!("{}{}: ", field.title(), field.about());
    loop {
        match field.read(&line(&label)?) {
            Ok(value) => return Some(value),
            Err(problem) => eprintln!("{problem}"),
        }
    }
}

/// Asks for a line; `None` when there is nobody any more. Nothing is held meanwhile: others may still write.
fn line(question: &str) -> Option<String> {
    let mut terminal = std::io::stderr();
    write!(terminal, "{question}").and_then(|()| terminal.flush()).ok()?;
    keyboard::line()
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

    #[test]
    fn nobody_is_asked_once_a_chat_reads_what_is_typed() {
        assert!(turn().is_some());
        keyboard::take();
        assert!(turn().is_none());
        assert!(yes_or_no("Shown?", "").is_none());
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
