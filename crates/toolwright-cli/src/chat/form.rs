//! What a tool asks the person: a form, filled in line by line below the conversation.

use crossterm::event::KeyEvent;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use toolwright::tools::{Answer, Notice, Person, Question};
use toolwright::{BoxFuture, ToolContext};

use super::editor::{Done, Editor};
use super::ui::News;
use crate::lines::{DIM, Line, YELLOW};
use crate::prompt::{field_label, field_value, printable};

/// The person at the chat.
pub struct AtChat(pub mpsc::UnboundedSender<News>);

impl Person for AtChat {
    fn ask<'a>(&'a self, _: &'a ToolContext, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (sender, answer) = oneshot::channel();
            match self.0.send(News::Form(Form::new(question, sender))) {
                Ok(()) => answer.await.unwrap_or(Answer::Cancelled),
                Err(_) => Answer::Cancelled,
            }
        })
    }

    fn tell<'a>(&'a self, _: &'a ToolContext, notice: &'a Notice) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let _ = self.0.send(News::Notice(notice.clone()));
        })
    }
}

/// A form that is being filled in.
pub struct Form {
    pub message: String,
    fields: Vec<(String, Value)>,
    given: Map<String, Value>,
    /// Which field is asked for.
    at: usize,
    editor: Editor,
    problem: bool,
    answer: Option<oneshot::Sender<Answer>>,
}

impl Form {
    fn new(question: &Question, answer: oneshot::Sender<Answer>) -> Self {
        let fields =
            question.schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        Form {
            message: printable(&question.message),
            fields: fields.into_iter().collect(),
            given: Map::new(),
            at: 0,
            editor: Editor::default(),
            problem: false,
            answer: Some(answer),
        }
    }

    /// The rows that ask for the field, and where the cursor is.
    pub fn rows(&self, width: usize) -> (Vec<Line>, (usize, usize)) {
        let mut above = vec![Line::new(DIM, "Enter leaves a field out, Ctrl-C declines")];
        if self.problem {
            above.push(Line::new(YELLOW, "That does not fit here."));
        }
        let label =
            self.fields.get(self.at).map(|(name, field)| field_label(name, field)).unwrap_or_default();
        let (rows, (row, column)) = self.editor.rows(&label, width);
        let cursor = (above.len() + row, column);
        above.extend(rows);
        (above, cursor)
    }

    /// What is pasted goes into the field.
    pub fn paste(&mut self, text: &str) {
        self.editor.paste(text);
    }

    /// Takes a key. What the form came to, in a word, once it is done.
    pub fn key(&mut self, key: KeyEvent) -> Option<&'static str> {
        match self.editor.key(key, &|_: &str| None) {
            Done::No | Done::Redraw | Done::Suspend => None,
            Done::Interrupt | Done::Leave => Some(self.end(Answer::Declined, "declined")),
            Done::Submit(text) => {
                self.editor.prefill("");
                let (name, field) = self.fields.get(self.at)?;
                let value = field_value(field, text.trim());
                self.problem = value.is_none();
                match value {
                    None => return None,
                    Some(Value::Null) => {}
                    Some(value) => drop(self.given.insert(name.clone(), value)),
                }
                self.at += 1;
                if self.at < self.fields.len() {
                    return None;
                }
                let given = std::mem::take(&mut self.given);
                Some(self.end(Answer::Given(given), "answered"))
            }
        }
    }

    fn end(&mut self, answer: Answer, word: &'static str) -> &'static str {
        // The call may have been stopped meanwhile.
        if let Some(sender) = self.answer.take() {
            let _ = sender.send(answer);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyModifiers};
    use serde_json::json;

    fn form() -> (Form, oneshot::Receiver<Answer>) {
        let (sender, answer) = oneshot::channel();
        let properties = json!({"colour": {"type": "string"}, "count": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": properties});
        let question = Question { message: "Which?\u{1b}[2J".to_owned(), schema };
        (Form::new(&question, sender), answer)
    }

    fn typed(form: &mut Form, text: &str) -> Option<&'static str> {
        for c in text.chars() {
            form.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
        form.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE))
    }

    #[test]
    fn fields_are_asked_for_until_they_fit() {
        let (mut form, mut answer) = form();
        assert!(!form.message.contains('\u{1b}'));
        assert_eq!(typed(&mut form, "red"), None);
        assert_eq!(typed(&mut form, "many"), None);
        assert!(form.rows(80).0.iter().any(|line| line.text().contains("does not fit")));
        assert_eq!(typed(&mut form, "3"), Some("answered"));
        let wanted = json!({"colour": "red", "count": 3});
        assert_eq!(answer.try_recv(), Ok(Answer::Given(wanted.as_object().unwrap().clone())));
    }

    #[test]
    fn a_form_can_be_declined() {
        let (mut form, mut answer) = form();
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(form.key(key), Some("declined"));
        assert_eq!(answer.try_recv(), Ok(Answer::Declined));
    }
}
