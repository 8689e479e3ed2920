//! What a tool or a server asks the person: a form, filled in field by field below the conversation.

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use toolwright::mcp::{ElicitReply, Elicitation, Elicitor};
use toolwright::tools::{Answer, Notice, Person, Question};
use toolwright::{BoxFuture, ToolContext};

use super::editor::{Done, Editor};
use super::ui::News;
use crate::fields::Field;
use crate::lines::{DIM, Line, PLAIN, YELLOW, cut};
use crate::prompt::printable;

/// The person at the chat.
pub struct AtChat(pub mpsc::UnboundedSender<News>);

impl AtChat {
    async fn fill_in(&self, form: impl FnOnce(oneshot::Sender<Answer>) -> Form) -> Answer {
        let (sender, answer) = oneshot::channel();
        match self.0.send(News::Form(form(sender))) {
            Ok(()) => answer.await.unwrap_or(Answer::Cancelled),
            Err(_) => Answer::Cancelled,
        }
    }
}

impl Person for AtChat {
    fn ask<'a>(&'a self, _: &'a ToolContext, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(self.fill_in(|answer| Form::of_model(question, answer)))
    }

    fn tell<'a>(&'a self, _: &'a ToolContext, notice: &'a Notice) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let _ = self.0.send(News::Notice(notice.clone()));
        })
    }
}

impl Elicitor for AtChat {
    fn elicit<'a>(&'a self, request: &'a Elicitation) -> BoxFuture<'a, ElicitReply> {
        Box::pin(async move {
            match self.fill_in(|answer| Form::of_server(request, answer)).await {
                Answer::Given(content) => ElicitReply::Accept(content),
                Answer::Declined => ElicitReply::Decline,
                Answer::Cancelled => ElicitReply::Cancel,
            }
        })
    }
}

/// A form that is being filled in.
pub struct Form {
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
    answer: Option<oneshot::Sender<Answer>>,
}

impl Form {
    fn of_model(question: &Question, answer: oneshot::Sender<Answer>) -> Self {
        let heading = "The model asks:".to_owned();
        Form::new(heading, printable(&question.message), Field::all(&question.schema), answer)
    }

    fn of_server(request: &Elicitation, answer: oneshot::Sender<Answer>) -> Self {
        let heading = format!("The server `{}` asks:", printable(&request.server));
        let message = printable(&request.message);
        match &request.url {
            None => Form::new(heading, message, Field::all(&request.schema), answer),
            Some(url) => {
                let message = format!("{message}\nIt wants you to open this page: {}", printable(url));
                Form { agree: "Enter agrees to open it", ..Form::new(heading, message, Vec::new(), answer) }
            }
        }
    }

    fn new(heading: String, message: String, fields: Vec<Field>, answer: oneshot::Sender<Answer>) -> Self {
        Form {
            heading,
            message,
            fields,
            agree: "Enter agrees",
            given: Map::new(),
            at: 0,
            editor: Editor::default(),
            problem: None,
            answer: Some(answer),
        }
    }

    /// True when nobody waits for the answer any more.
    pub fn is_over(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// The rows that ask for the field, and where the cursor is.
    pub fn rows(&self, width: usize) -> (Vec<Line>, (usize, usize)) {
        let field = self.fields.get(self.at);
        let enter = match field {
            Some(_) => "Enter takes the default, or leaves a field out",
            None => self.agree,
        };
        let mut above =
            vec![Line::new(DIM, cut(&format!("{enter}; Ctrl-C declines, Esc gives no answer"), width))];
        let problem = self.problem.as_ref().map(|problem| Line::new(YELLOW, problem.as_str()));
        above.extend(problem.iter().flat_map(|problem| problem.wrap(width)));
        let title = field.map(|field| cut(&field.title(), width / 2)).unwrap_or_default();
        // What is said of a field may be long, so it stands in rows of its own.
        if let Some(about) = field.map(Field::about).filter(|about| !about.is_empty()) {
            above.extend(
                about.lines().flat_map(|line| Line::new(PLAIN, format!("{title}{line}")).wrap(width)),
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
            return Some(self.end(Answer::Cancelled, "not answered"));
        }
        match self.editor.key(key, &|_: &str| None) {
            Done::No | Done::Redraw | Done::Suspend => None,
            Done::Interrupt | Done::Leave => Some(self.end(Answer::Declined, "declined")),
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
    use crossterm::event::KeyModifiers;
    use serde_json::json;

    fn form() -> (Form, oneshot::Receiver<Answer>) {
        let (sender, answer) = oneshot::channel();
        let properties = json!({"colour": {"type": "string"}, "count": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": properties});
        let question = Question { message: "Which?\u{1b}[2J".to_owned(), schema };
        (Form::of_model(&question, sender), answer)
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
        assert!(form.rows(80).0.iter().any(|line| line.text().contains("a whole number is wanted")));
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

    #[test]
    fn a_servers_form_says_who_asks_and_a_page_is_agreed_to() {
        let server = |schema: Value, url: Option<&str>| {
            let (sender, answer) = oneshot::channel();
            let request = Elicitation {
                server: "files".to_owned(),
                message: "Sure?".to_owned(),
                schema,
                url: url.map(str::to_owned),
            };
            (Form::of_server(&request, sender), answer)
        };
        let (mut form, mut answer) = server(json!({"type": "object"}), Some("https://example.com/pay"));
        assert_eq!(form.heading, "The server `files` asks:");
        assert!(form.message.contains("https://example.com/pay"));
        assert!(form.rows(80).0[0].text().contains("Enter agrees to open it"));
        assert_eq!(typed(&mut form, ""), Some("answered"));
        assert_eq!(answer.try_recv(), Ok(Answer::Given(Map::new())));
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let (mut form, mut answer) = server(schema.clone(), None);
        assert_eq!(typed(&mut form, ""), None, "it is needed");
        assert_eq!(form.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)), Some("not answered"));
        assert_eq!(answer.try_recv(), Ok(Answer::Cancelled));
        let (form, answer) = server(schema, None);
        assert!(!form.is_over());
        drop(answer);
        assert!(form.is_over(), "nobody waits for it");
    }
}
