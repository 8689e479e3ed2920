//! The questions that are open while the model works: an approval, or a form of a tool. They are shown below
//! the conversation and answered by keys, or by whole lines where there are no keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;
use toolwright::approval::Decision;

use super::Ui;
use crate::chat::approval::{KEYS, Question};
use crate::chat::editor::{Done, Editor};
use crate::chat::form::FormEditor;
use crate::lines::{BOLD, DIM, PLAIN, StyledLine, YELLOW, cut};
use crate::prompt::printable;

/// How many lines of what is wrong with edited arguments are shown.
const MOST_TOLD: usize = 6;

/// What a question has come to.
pub(super) enum PromptOutcome {
    Choice,
    Editing(Editor, Option<String>),
    Reason(Editor),
}

impl Ui {
    /// The rows of a question or a form, and where the cursor is in them.
    pub(super) fn asking_rows(&self, width: usize) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        if self.questions.is_empty() {
            let form = self.forms.front().map(|form| form.rows(width));
            return form.map_or_else(Default::default, |(rows, cursor)| (rows, Some(cursor)));
        }
        let (mut rows, (lines, (row, column))) = match &self.asking {
            PromptOutcome::Choice => {
                let offered: Vec<_> = KEYS.iter().filter(|key| self.offers(key.0)).map(|key| key.2).collect();
                return (
                    StyledLine::new(BOLD, "Allow it? ").and(PLAIN, offered.join("  ")).wrap(width),
                    None,
                );
            }
            PromptOutcome::Editing(editor, problem) => {
                let mut rows = Vec::new();
                for line in problem.iter().flat_map(|problem| problem.lines()).take(MOST_TOLD) {
                    rows.extend(StyledLine::new(YELLOW, line).wrap(width));
                }
                let keys = "Enter takes them, Alt+Enter is a new line, Esc goes back";
                rows.push(StyledLine::new(DIM, cut(keys, width)));
                (rows, editor.rows("arguments: ", width))
            }
            PromptOutcome::Reason(editor) => {
                (Vec::new(), editor.rows("why not (Enter for no reason, Esc to go back): ", width))
            }
        };
        let cursor = (rows.len() + row, column);
        rows.extend(lines);
        (rows, Some(cursor))
    }

    pub(super) fn form_key(&mut self, key: KeyEvent) {
        if let Some(word) = self.forms.front_mut().and_then(|form| form.key(key)) {
            self.forms.pop_front();
            self.say(DIM, format!("  {word}"));
            self.show_form();
        }
    }

    /// An answer as a line of its own. A choice is its letter or its word only: a sentence does not count as
    /// consent.
    pub(super) fn typed_answer(&mut self, line: &str) {
        let press = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let line = line.trim();
        if self.questions.is_empty() {
            line.chars().for_each(|c| self.form_key(press(KeyCode::Char(c))));
            self.form_key(press(KeyCode::Enter));
        } else if let PromptOutcome::Editing(editor, _) | PromptOutcome::Reason(editor) = &mut self.asking {
            // An empty line takes the arguments as they are.
            if !line.is_empty() {
                editor.prefill(line);
            }
            self.question_key(press(KeyCode::Enter));
        } else {
            let line = line.to_lowercase();
            let meant = KEYS.iter().find(|(key, word, ..)| line == *word || line.chars().eq([*key]));
            if let Some((key, ..)) = meant {
                self.question_key(press(KeyCode::Char(*key)));
            }
        }
        self.ask_plainly();
    }

    /// Asks where no rows are drawn below the conversation.
    pub(super) fn ask_plainly(&mut self) {
        if self.interactive {
            return;
        }
        let (rows, _) = self.asking_rows(usize::MAX / 2);
        rows.iter().for_each(|row| self.screen.console.say(row.text()));
    }

    /// True when a person's answer is waited for.
    pub fn is_asking(&self) -> bool {
        !self.questions.is_empty() || !self.forms.is_empty()
    }

    /// True when this key is an answer to the open question.
    fn offers(&self, key: char) -> bool {
        self.questions.front().is_some_and(|question| question.keys.contains(&key))
    }

    /// True when the question was answered with "always" before, and may be again.
    pub(super) fn is_always(&self, question: &Question) -> bool {
        question.keys.contains(&'a') && self.always.contains(&question.rule)
    }

    pub(super) fn question_key(&mut self, key: KeyEvent) {
        let none = |_: &str| None;
        let choice = match key.code {
            KeyCode::Char(c) => Some(c.to_ascii_lowercase()).filter(|key| self.offers(*key)),
            _ => None,
        };
        if key.code == KeyCode::Esc {
            self.asking = PromptOutcome::Choice;
            return;
        }
        match &mut self.asking {
            PromptOutcome::Choice => match choice {
                Some('y') => self.decide(Decision::Approve, "yes"),
                Some('a') => {
                    let rule =
                        self.questions.front().map(|question| question.rule.clone()).unwrap_or_default();
                    self.decide_always(rule);
                }
                Some('e') => {
                    let mut editor = Editor::default();
                    let arguments = self.questions.front().map(|question| &question.arguments);
                    editor.prefill(&serde_json::to_string_pretty(&arguments).unwrap_or_default());
                    self.asking = PromptOutcome::Editing(editor, None);
                }
                Some('n') => self.asking = PromptOutcome::Reason(Editor::default()),
                Some('p') => self.decide(Decision::Escalate, "passed on"),
                Some('q') => {
                    let reason = "the user ended the run".to_owned();
                    self.decide(Decision::Terminate { reason }, "quit");
                }
                _ => {}
            },
            PromptOutcome::Editing(editor, problem) => match editor.key(key, &none) {
                Done::Submit(text) => match read_arguments(&text, self.questions.front()) {
                    Ok(arguments) => self.decide(Decision::Modify { arguments }, "edited"),
                    Err(wrong) => {
                        *problem = Some(wrong);
                        editor.prefill(&text);
                    }
                },
                Done::Interrupt | Done::Leave => self.asking = PromptOutcome::Choice,
                Done::No | Done::Redraw | Done::Suspend => {}
            },
            PromptOutcome::Reason(editor) => match editor.key(key, &none) {
                Done::Submit(text) => {
                    let reason = match text.trim() {
                        "" => "the user said no".to_owned(),
                        reason => format!("the user said no: {reason}"),
                    };
                    self.decide(Decision::reject(reason), "no");
                }
                Done::Interrupt | Done::Leave => self.asking = PromptOutcome::Choice,
                Done::No | Done::Redraw | Done::Suspend => {}
            },
        }
    }

    /// Takes away the forms nobody waits for any more: their calls were stopped, or took too long.
    pub(super) fn drop_forms(&mut self) {
        let asked = self.forms.front().is_some_and(FormEditor::is_over);
        self.forms.retain(|form| !form.is_over());
        if asked {
            self.say(DIM, "  no longer asked");
            self.show_form();
        }
    }

    pub(super) fn show_form(&mut self) {
        let Some(form) = self.forms.front() else { return };
        let mut lines = vec![StyledLine::new(BOLD, form.heading.as_str())];
        lines.extend(
            form.message.lines().map(|line| StyledLine::new(YELLOW, format!("    {line}")).hanging(4)),
        );
        self.screen.commit(&lines);
    }

    pub(super) fn show_question(&mut self) {
        let Some(question) = self.questions.front() else { return };
        let mut lines = vec![StyledLine::new(BOLD, "The model wants to call:")];
        lines.extend(
            question.shown.lines().map(|line| StyledLine::new(YELLOW, format!("    {line}")).hanging(6)),
        );
        lines.extend(
            question.reason.as_ref().map(|reason| StyledLine::new(DIM, format!("    ({reason})")).hanging(4)),
        );
        if question.keys.contains(&'a') {
            let rule = format!("    always, for this chat: {}", printable(&question.rule));
            lines.push(StyledLine::new(DIM, rule).hanging(4));
        }
        self.screen.commit(&lines);
    }

    /// Approves the open question, and others like it from now on.
    fn decide_always(&mut self, rule: String) {
        let shown = format!("always: {}", printable(&rule));
        self.always.insert(rule);
        self.decide(Decision::Approve, &shown);
    }

    fn decide(&mut self, decision: Decision, word: &str) {
        let Some(question) = self.questions.pop_front() else { return };
        self.asking = PromptOutcome::Choice;
        self.say(DIM, format!("  {word}"));
        // The call may have been stopped meanwhile.
        let _ = question.answer.send(decision);
        // What is always allowed now may be asked about already.
        while self.questions.front().is_some_and(|next| self.is_always(next)) {
            let next = self.questions.pop_front();
            let _ = next.map(|next| next.answer.send(Decision::Approve));
        }
        self.show_question();
    }
}

/// Arguments as they were typed, or what is wrong with them: a call is not to be lost by a slip.
fn read_arguments(text: &str, question: Option<&Question>) -> Result<Value, String> {
    let arguments: Value =
        serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))?;
    if !arguments.is_object() {
        return Err("the arguments are an object".to_owned());
    }
    let valid = question.map_or(Ok(()), |question| question.validator.validate(arguments.clone()));
    valid.map_err(|error| printable(error.message()))?;
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::input::InputEvent;
    use crate::chat::ui::{News, Wish};
    use crate::console::{Console, Output};
    use tokio::sync::oneshot;
    use toolwright::approval::Validator;

    #[test]
    fn a_line_answers_only_a_question_that_is_open_and_only_as_a_word() {
        let mut ui = Ui::new(&Console::new(Output::Text), false, None);
        assert_eq!(ui.key(InputEvent::Line("yes".to_owned())), Wish::Nothing);
        let (answer, mut decided) = oneshot::channel();
        ui.news(News::Question(Question {
            shown: "remember(note='one')".to_owned(),
            reason: None,
            rule: "remember".to_owned(),
            arguments: serde_json::json!({"note": "one"}),
            validator: Validator::default(),
            keys: vec!['y', 'n'],
            answer,
        }));
        for line in ["absolutely not", "you must be joking", "yes, but", "", "quit", "a", "e", "p"] {
            ui.key(InputEvent::Line(line.to_owned()));
            assert!(decided.try_recv().is_err(), "`{line}` was taken for an answer");
        }
        ui.key(InputEvent::Line(" Yes ".to_owned()));
        assert!(matches!(decided.try_recv(), Ok(Decision::Approve)));
        assert_eq!(ui.waiting, ["yes"]);
    }

    #[test]
    fn only_what_is_offered_answers_a_question() {
        let mut ui = Ui::new(&Console::new(Output::Text), false, None);
        let ask = |ui: &mut Ui, keys: &[char]| {
            let (answer, decided) = oneshot::channel();
            let arguments = serde_json::json!({});
            let (shown, what) = ("greet()".to_owned(), "greet {}".to_owned());
            ui.news(News::Question(Question {
                shown,
                reason: None,
                rule: what,
                arguments,
                validator: Validator::default(),
                keys: keys.into(),
                answer,
            }));
            decided
        };
        let offered = |ui: &Ui| ui.asking_rows(200).0.iter().map(StyledLine::text).collect::<String>();
        let mut decided = ask(&mut ui, &['n', 'p']);
        assert_eq!(offered(&ui), "Allow it? [n]o  [p]ass it on");
        for line in ["yes", "always", "edit", "quit", "pass"] {
            assert!(decided.try_recv().is_err());
            ui.key(InputEvent::Line(line.to_owned()));
        }
        assert!(matches!(decided.try_recv(), Ok(Decision::Escalate)));
        let mut decided = ask(&mut ui, &['y', 'a']);
        ui.key(InputEvent::Line("always".to_owned()));
        assert!(matches!(decided.try_recv(), Ok(Decision::Approve)));
        // What is always allowed is asked about where it cannot be allowed.
        assert!(ask(&mut ui, &['n']).try_recv().is_err());
    }
}
