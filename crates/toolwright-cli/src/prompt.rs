//! Asking the person at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use toolwright::{ApprovalRequest, Approver, BoxFuture, Decision, call_text};

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
        let question =
            format!("\nThe model wants to call:\n\n    {}\n\n", printable(&shown).replace('\n', "\n    "));
        Box::pin(async move {
            let answer = tokio::task::spawn_blocking(move || ask(&question)).await;
            answer.unwrap_or_else(|_| Decision::reject("the question could not be asked"))
        })
    }
}

fn ask(question: &str) -> Decision {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    let mut terminal = std::io::stderr().lock();
    let mut shown = write!(terminal, "{question}");
    loop {
        shown = shown.and_then(|()| write!(terminal, "Allow it? [y]es, [n]o, [q]uit the run: "));
        shown = shown.and_then(|()| terminal.flush());
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        if shown.is_err() || !matches!(read, Ok(1..)) {
            return Decision::reject("nobody answered");
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Decision::Approve,
            "n" | "no" => return Decision::reject("the user said no"),
            "q" | "quit" => return Decision::Terminate { reason: "the user ended the run".to_owned() },
            _ => {}
        }
    }
}

/// What a model wrote cannot move the cursor or hide itself.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || hidden => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_invisible_characters_are_shown() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\nd");
    }
}
