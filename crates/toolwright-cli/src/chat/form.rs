//! A form of a model or a server, filled in field by field below the conversation.

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use toolwright::approval::{Form, FormBody, FormReply};

use super::editor::{Done, Editor};
use crate::form_fields::Field;
use crate::lines::{DIM, PLAIN, StyledLine, YELLOW, cut};
use crate::prompt::{heading, printable};

/// A form that is being filled in.
pub struct FormEditor {
    /// Who asks.
    pub heading: String,
    pub message: String,
    fields: Vec<Field>,
    /// What Enter does where there is nothing to fill in.
    agree: &'static str,
    given: Map<String, Value>,
    /// Which field is asked for.
    at: usize,
    editor: Editor,
    problem: Option<String>,
    reply: Option<oneshot::Sender<FormReply>>,
}

impl FormEditor {
    pub fn new(form: &Form, reply: oneshot::Sender<FormReply>) -> Self {
        let mut message = printable(&form.message);
        let mut agree = "Enter agrees";
        if let FormBody::Page(url) = &form.body {
            message = format!("{message}\nIt wants you to open this page: {}", printable(url));
            agree = "Enter agrees to open it";
        }
        FormEditor {
            heading: heading(form),
            message,
            fields: Field::all(&form.schema()),
            agree,
            given: Map::new(),
            at: 0,
            editor: Editor::default(),
            problem: None,
            reply: Some(reply),
        }
    }

    /// True when nobody waits for the answer any more.
    pub fn is_over(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// The rows that ask for the field, and where the cursor is.
    pub fn rows(&self, width: usize) -> (Vec<StyledLine>, (usize, usize)) {
        let field = self.fields.get(self.at);
        let enter = match field {
            Some(_) => "Enter takes the default, or leaves a field out",
            None => self.agree,
        };
        let mut above =
            vec![StyledLine::new(DIM, cut(&format!("{enter}; Ctrl-C declines, Esc gives no answer"), width))];
        let problem = self.problem.as_ref().map(|problem| StyledLine::new(YELLOW, problem.as_str()));
        above.extend(problem.iter().flat_map(|problem| problem.wrap(width)));
        let title = field.map(|field| cut(&field.title(), width / 2)).unwrap_or_default();
        // What is said of a field may be long, so it stands in rows of its own.
        if let Some(about) = field.map(Field::about).filter(|about| !about.is_empty()) {
            above.extend(
                about.lines().flat_map(|line| StyledLine::new(PLAIN, format!("{title}{line}")).wrap(width)),
            );
        }
        let (rows, (row, column)) = self.editor.rows(&format!("{title}: "), width);
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
        if key.code == KeyCode::Esc {
            return Some(self.end(FormReply::Cancelled, "not answered"));
        }
        match self.editor.key(key, &|_: &str| None) {
            Done::No | Done::Redraw | Done::Suspend => None,
            Done::Interrupt | Done::Leave => Some(self.end(FormReply::Declined, "declined")),
            Done::Submit(text) => {
                self.editor.prefill("");
                if let Some(field) = self.fields.get(self.at) {
                    match field.read(text.trim()) {
                        Ok(value) => {
                            self.problem = None;
                            self.given.extend(value.map(|value| (field.name.clone(), value)));
                        }
                        Err(problem) => {
                            self.problem = Some(problem);
                            return None;
                        }
                    }
                }
                self.at += 1;
                if self.at < self.fields.len() {
                    return None;
                }
                let given = std::mem::take(&mut self.given);
                Some(self.end(FormReply::Accepted(given), "answered"))
            }
        }
    }

    fn end(&mut self, reply: FormReply, word: &'static str) -> &'static str {
        // The call may have been stopped meanwhile.
        if let Some(sender) = self.reply.take() {
            let _ = sender.send(reply);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyModifiers;
    use serde_json::json;
    use toolwright::approval::FormAuthor;

    fn form() -> (FormEditor, oneshot::Receiver<FormReply>) {
        let (sender, answer) = oneshot::channel();
        let properties = json!({"colour": {"type": "string"}, "count": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": properties});
        let form = Form::new(FormAuthor::Model, "Which?\u{1b}[2J", FormBody::Fields(schema));
        (FormEditor::new(&form, sender), answer)
    }

    fn typed(form: &mut FormEditor, text: &str) -> Option<&'static str> {
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
        assert!(form.rows(80).0.iter().any(|line| line.text().contains("a whole number is wanted")));
        assert_eq!(typed(&mut form, "3"), Some("answered"));
        let wanted = json!({"colour": "red", "count": 3});
        assert_eq!(answer.try_recv(), Ok(FormReply::Accepted(wanted.as_object().unwrap().clone())));
    }

    #[test]
    fn a_form_can_be_declined() {
        let (mut form, mut answer) = form();
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(form.key(key), Some("declined"));
        assert_eq!(answer.try_recv(), Ok(FormReply::Declined));
    }

    #[test]
    fn a_servers_form_says_who_asks_and_a_page_is_agreed_to() {
        let server = |body: FormBody| {
            let (sender, answer) = oneshot::channel();
            let form = Form::new(FormAuthor::Server("files".to_owned()), "Sure?", body);
            (FormEditor::new(&form, sender), answer)
        };
        let (mut form, mut answer) = server(FormBody::Page("https://example.com/pay".to_owned()));
        assert_eq!(form.heading, "The server `files` asks:");
        assert!(form.message.contains("https://example.com/pay"));
        assert!(form.rows(80).0[0].text().contains("Enter agrees to open it"));
        assert_eq!(typed(&mut form, ""), Some("answered"));
        assert_eq!(answer.try_recv(), Ok(FormReply::Accepted(Map::new())));
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let (mut form, mut answer) = server(FormBody::Fields(schema.clone()));
        assert_eq!(typed(&mut form, ""), None, "it is needed");
        assert_eq!(form.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), Some("not answered"));
        assert_eq!(answer.try_recv(), Ok(FormReply::Cancelled));
        let (form, answer) = server(FormBody::Fields(schema));
        assert!(!form.is_over());
        drop(answer);
        assert!(form.is_over(), "nobody waits for it");
    }
}
