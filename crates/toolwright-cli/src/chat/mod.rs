//! `toolwright chat`: a conversation in the terminal, as in a shell: what is said stays in the scrollback.
//!
//! `mod.rs` holds the conversation and carries out what is typed; `ui.rs` shows what happens while the model
//! works.

mod approval;
mod blocks;
mod calls;
mod changes;
mod display;
mod editor;
mod entities;
mod form;
mod history;
mod inline;
mod input;
mod markdown;
mod person;
mod picture;
mod picture_support;
mod screen;
mod session;
mod sixel;
mod slash_commands;
mod ui;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use toolwright::Run;
use toolwright::content::Message;
use toolwright::events::{Event, Redactor};
use toolwright::file::{Caller, Sandboxing};
use toolwright::lang::Wanted;
use toolwright::model::{DynModel, ModelDelta, StopReason};
use toolwright::run::{Conversation, RunBuilder, RunEnd};

use crate::args::Chat;
use crate::console::{Console, Delivery};
use crate::opening::{FileChoice, Opening, ParsedFile};
use crate::prompt::printable;
use crate::report::{Usage, counted, hint_of};
use crate::runs::record::{About, make, record, redactor};
use crate::write_file::{self, FileAccess};
use crate::{commands, demo, files, models, prompt, runs};

use crate::lines::{BOLD, DIM, PLAIN, RED, StyledLine};
use changes::Files;
use input::Inputs;
use person::ChatPerson;
use session::SavedChat;
use slash_commands::{ChatCommand, WORDS};
use ui::{News, Ui, Wish};

/// How much that happens beside the conversation may wait to be shown.
const MOST_TOLD: usize = 64;

/// A conversation and everything around it.
struct ChatApp {
    console: Console,
    conversation: Conversation,
    run: Run,
    model: Arc<DynModel>,
    /// Names of models in the file, and what they stand for.
    names: models::Named,
    ui: Ui,
    inputs: Inputs,
    news: mpsc::UnboundedReceiver<News>,
    /// What happens beside the conversation, at any time.
    told: mpsc::Receiver<String>,
    script_name: Option<String>,
    system: Option<String>,
    recorded: Option<String>,
    /// The demo begins anew each time, so it leaves no session.
    demo: bool,
    /// Where the program was started; the demo works elsewhere.
    folder: PathBuf,
    /// Takes secrets out of everything that is written down.
    redactor: Redactor,
    /// What was exported in this conversation, and may be exported again.
    exported: HashSet<PathBuf>,
    /// True once the model was asked something.
    asked: bool,
    /// True when an answer could not be given, or a command not be carried out.
    failed: bool,
    /// Why the last input has no answer, when the model failed at it.
    unanswered: Option<String>,
}

pub async fn run(mut what: Chat, console: &Console) -> anyhow::Result<()> {
    let folder = std::env::current_dir().unwrap_or_default();
    what.file = what.file.or(what.also_file.take());
    let (session, mut file) = sources(console, &mut what)?;
    let demo = file.is_none() && models::demo_answers(console, what.model.as_deref());
    if demo {
        let staged = demo::stage(console, &mut what.record, &mut what.policy, &mut what.sandbox)?;
        file = Some(FileChoice::named(staged));
        what.model = Some(demo::NAME.to_owned());
        what.sandbox.write.push(".".into());
    }
    let parsed = ParsedFile::of(console, file.as_ref()).await?;
    // A chat has the tools that its section names, or all of the file.
    let wanted = match parsed.file.has("chat") {
        true => Wanted::chat(),
        false => Wanted::tools(&what.tools),
    };
    let opening = Opening { wanted, policy: what.policy.as_deref(), yes: what.yes, ..Opening::default() };
    let mut opened = opening.open(console, parsed).await?;
    let loaded = opened.loaded();
    let chat = loaded.and_then(|loaded| loaded.chat()).cloned();
    let names = opened.parsed.models();
    let model: Arc<DynModel> = Arc::from(match (&what.model, &chat) {
        (None, Some(chat)) => models::choose_for(console, &chat.model_ref, &names)?,
        (wanted, _) => models::choose(console, wanted.as_deref(), &names)?,
    });
    loaded.into_iter().for_each(|loaded| files::tell_of_left_out(console, loaded));
    opened.sandboxes(&what.sandbox, Sandboxing::WherePossible).await?;
    let builder = match &chat {
        Some(chat) => {
            commands::tools::chosen(chat.tools.clone(), &what.tools)?;
            opened.session.run_chat(Caller::Model, &files::patterns(&what.tools))
        }
        None => opened.run(Caller::Model, &what.tools)?.0,
    };
    let mut builder = builder.model(model.clone());
    let (sender, news) = mpsc::unbounded_channel();
    let inputs = Inputs::open(console)?;
    if inputs.interactive || inputs.plain {
        let person = Arc::new(ChatPerson(sender.clone()));
        console.ask_in_chat(person.clone());
        builder = builder.person(person);
    }
    let (teller, told) = mpsc::channel(MOST_TOLD);
    if inputs.interactive {
        // What does not fit is left out: a server that never stops is not to fill the memory.
        console.send_notices_to(move |text| match teller.try_send(text.to_owned()) {
            Err(TrySendError::Closed(_)) => Delivery::ChatEnded,
            Ok(()) | Err(TrySendError::Full(_)) => Delivery::Taken,
        });
    }
    let used = opened.used();
    let about = About { command: "chat", file: used.as_ref() };
    let redactor = redactor(opened.session.secrets());
    let (builder, recorded) = record(console, builder, &what.record, &about, opened.session.secrets())?;
    let run = telling(builder, sender).build()?;
    let ui = Ui::new(console, inputs.interactive, inputs.pictures);
    let conversation = Conversation::new(&run);
    let system = chat.as_ref().and_then(|chat| chat.system_message.clone());
    let script_name = opened.path().map(|file| file.display().to_string());
    let mut app = ChatApp {
        console: console.clone(),
        conversation,
        run,
        model,
        names,
        ui,
        inputs,
        news,
        told,
        script_name,
        system,
        recorded,
        demo,
        folder,
        redactor,
        exported: HashSet::new(),
        asked: false,
        failed: false,
        unanswered: None,
    };
    app.begin();
    if let Some(banner) = chat.as_ref().and_then(|chat| chat.user_banner.as_deref()) {
        app.ui.say_markdown(banner);
    }
    let prefill = match session {
        Some(session) => {
            app.take_up(session);
            String::new()
        }
        // It begins a conversation; one that is taken up has begun.
        None => chat.as_ref().and_then(|chat| chat.default_prompt.clone()).unwrap_or_default(),
    };
    let outcome = app.go(prefill).await;
    app.leave(outcome)
}

/// A run that tells what happens in it.
fn telling(builder: RunBuilder, sender: mpsc::UnboundedSender<News>) -> RunBuilder {
    let heard = sender.clone();
    builder
        .on_event(move |event: &Event| {
            let _ = sender.send(News::Event(Box::new(event.kind.clone())));
        })
        .on_delta(move |delta| {
            let _ = match delta {
                ModelDelta::Text(text) => heard.send(News::Text(text.to_owned())),
                ModelDelta::Reasoning(text) => heard.send(News::Reasoning(text.to_owned())),
                _ => Ok(()),
            };
        })
}

/// The session to go on with, and the file of tools.
fn sources(console: &Console, what: &mut Chat) -> anyhow::Result<(Option<SavedChat>, Option<FileChoice>)> {
    if !what.resume {
        return Ok((None, models::file_for(console, what.model.as_deref(), what.file.clone())?));
    }
    let is_session = |path: &Path| path.to_string_lossy().ends_with(session::ENDING);
    // A session may be named as `/save` was told it.
    if let Some(name) = what.file.take_if(|path| !path.exists() && !is_session(path)) {
        what.file = Some(toolwright_core::text::with_ending(&name.to_string_lossy(), session::ENDING).into());
    }
    let named = what.file.as_deref().filter(|path| is_session(path));
    let path = named.map(Path::to_owned).or_else(session::last);
    let Some(path) = path.as_deref().filter(|path| path.exists()) else {
        let which =
            named.map_or("of a chat in this folder".to_owned(), |path| format!("`{}`", path.display()));
        let error = Usage::new(format!("there is no session {which} to resume"));
        return Err(error
            .hint("a chat that is left with /exit writes one; /save NAME writes another")
            .into());
    };
    let session = SavedChat::load(path)?;
    let own = what.file.clone().filter(|_| named.is_none());
    let file = match (own, &session.script_name) {
        (Some(file), _) => Some(FileChoice::named(file)),
        (None, Some(name)) => Some(FileChoice::found(script(path, name)?)),
        (None, None) => models::file_for(console, what.model.as_deref(), None)?,
    };
    Ok((Some(session), file))
}

/// The file of tools that a session names, here or beside the session. Without it the model would have other
/// tools, which nobody asked for.
fn script(session: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let places = [PathBuf::from(name), session.with_file_name(name)];
    places.into_iter().find(|path| path.exists()).ok_or_else(|| {
        let error = Usage::new(format!("the file of tools `{name}` of the session `{}` is not there", session.display()));
        error.hint("bring it back, or write where it is now as `script_name` into the session; `null` there goes on without").into()
    })
}

impl ChatApp {
    /// A conversation in which only the instructions were given.
    fn begin(&mut self) {
        self.back_to(0);
        if let Some(system) = &self.system {
            self.conversation.push(Message::system(system));
        }
    }

    /// Takes the conversation back to its first messages.
    fn back_to(&mut self, count: usize) {
        self.conversation.rewind(count);
        self.unanswered = None;
        let answers = self.conversation.messages().iter();
        let answers = answers.filter(|message| matches!(message, Message::Assistant(_))).count();
        // Those that are gone will not be put on record.
        self.ui.known = self.ui.known.min(answers);
    }

    fn take_up(&mut self, session: SavedChat) {
        let count = session.messages.iter().filter(|message| matches!(message, Message::User { .. })).count();
        self.ui.known =
            session.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        session.messages.into_iter().for_each(|message| self.conversation.push(message));
        self.ui.say(DIM, format!("taking up a conversation of {}", counted(count as u64, "input")));
        let shown = self.said().last().copied().unwrap_or(0);
        self.show_from(shown);
    }

    /// Shows again what was said from a message on.
    fn show_from(&mut self, place: usize) {
        let messages = self.conversation.messages().get(place..).unwrap_or_default();
        for (at, message) in messages.iter().enumerate() {
            match message {
                Message::User { .. } => self.ui.said(&message.text()),
                Message::Assistant(answer) => {
                    self.ui.say_markdown(&message.text());
                    // The results of an answer's calls stand behind it, before anything else is said.
                    let after = messages.get(at + 1..).unwrap_or_default();
                    let results = after.iter().map_while(|message| match message {
                        Message::Tool(result) => Some(result),
                        _ => None,
                    });
                    for call in &answer.tool_calls {
                        self.ui.called(call, results.clone().find(|result| result.call_id == call.id));
                    }
                }
                Message::System { .. } | Message::Tool(_) => {}
            }
        }
    }

    /// Places of the inputs among the messages.
    fn said(&self) -> Vec<usize> {
        let messages = self.conversation.messages().iter().enumerate();
        messages.filter(|(_, message)| matches!(message, Message::User { .. })).map(|(at, _)| at).collect()
    }

    /// Reads and answers until somebody leaves.
    async fn go(&mut self, mut prefill: String) -> anyhow::Result<()> {
        loop {
            let number = self.said().len() + 1;
            if number > 1 && self.ui.display.show_token_usage && !self.ui.spending.is_empty() {
                let line = self.ui.spending.line();
                self.ui.say(DIM, line);
            }
            let name = self.model.name().to_owned();
            self.ui.heading(&format!("#{number}  {name}"), "  /help for commands, Alt+Enter for a new line");
            let models: Vec<String> = self.names.keys().cloned().collect();
            let Some(line) =
                self.ui.read(&mut self.inputs, &mut self.told, &std::mem::take(&mut prefill), &models).await
            else {
                return Ok(());
            };
            if line.trim().is_empty() {
                continue;
            }
            if line.starts_with('/') {
                match slash_commands::parse(&line) {
                    Ok((command, rest)) => match self.command(command, rest) {
                        Ok(ControlFlow::Break(())) => return Ok(()),
                        Ok(ControlFlow::Continue(text)) => prefill = text,
                        Err(error) => {
                            self.failed = true;
                            self.ui.say(RED, printable(&format!("{error:#}")));
                            if let Some(hint) = hint_of(&error) {
                                self.ui.say(DIM, printable(&hint));
                            }
                        }
                    },
                    Err(word) => {
                        self.failed = true;
                        self.ui.say(RED, format!("Unknown command: /{}.", printable(&word)));
                        self.help();
                    }
                }
                continue;
            }
            let folder = std::env::current_dir().unwrap_or_default();
            if self.demo && number == 1 {
                demo::put_draft(&folder)?;
            }
            self.conversation.push(Message::user(line));
            self.asked = true;
            let before = self.ui.display.show_changed_files.then(|| Files::of(&folder));
            let end = self.answer().await;
            for line in before.map(|before| Files::of(&folder).since(&before)).unwrap_or_default() {
                self.ui.say(DIM, line);
            }
            if let Some(end) = end {
                self.ui.say(RED, format!("the conversation is over: {}", crate::runs::story::end_text(&end)));
                return Ok(());
            }
        }
    }

    /// Lets the model answer; gives the end of the run, if it came to one.
    async fn answer(&mut self) -> Option<RunEnd> {
        self.unanswered = None;
        let stopper = self.conversation.stopper();
        let model = self.model.clone();
        let (ui, news, inputs, told) = (&mut self.ui, &mut self.news, &mut self.inputs, &mut self.told);
        ui.begin_answer();
        let mut work = Box::pin(self.conversation.answer(&*model));
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        let mut stopped = false;
        let outcome = loop {
            tokio::select! {
                // Input typed before a question appeared does not answer it, so input is handled before
                // events.
                biased;
                outcome = &mut work => break outcome,
                input = inputs.meanwhile(ui.is_asking()), if !stopped => match ui.key(input) {
                    Wish::Nothing => {}
                    Wish::Stop => {
                        stopped = true;
                        stopper.stop();
                    }
                    Wish::Suspend => ui.suspend(inputs).await,
                },
                Some(news) = news.recv() => ui.news(news),
                Some(text) = told.recv() => ui.tell(&text),
                _ = tick.tick() => ui.draw(),
            }
        };
        drop(work);
        while let Ok(news) = self.news.try_recv() {
            self.ui.news(news);
        }
        self.ui.end_answer();
        if stopped || outcome.is_err() {
            self.ui.take_back();
        }
        match outcome {
            Ok(Some(RunEnd::Cancelled)) => {
                self.ui.say(DIM, "stopped; what there is stays, /rewind takes it back");
                None
            }
            Ok(Some(RunEnd::Done) | None) => {
                if let Some(warning) = self.conversation.last_stop().and_then(StopReason::warning) {
                    self.ui.say(RED, warning);
                }
                None
            }
            Ok(Some(end)) => Some(end),
            Err(error) => {
                let cause =
                    std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                let told = format!("{error}{cause}");
                self.failed = true;
                self.ui.say(RED, printable(&told));
                self.unanswered = Some(told);
                self.ui.say(DIM, "the conversation goes on; /rewind to change the last input");
                None
            }
        }
    }

    /// Carries out a command; what it gives is put into the editor. It may end the chat.
    fn command(&mut self, command: ChatCommand, rest: &str) -> anyhow::Result<ControlFlow<(), String>> {
        match command {
            ChatCommand::Help => self.help(),
            ChatCommand::Rewind => return self.rewind(rest).map(ControlFlow::Continue),
            ChatCommand::Model => self.change_model(rest)?,
            ChatCommand::Display => {
                let text = self.ui.display.command(rest);
                text.lines().for_each(|line| self.ui.say(PLAIN, line));
            }
            ChatCommand::Cost => {
                let text = self.ui.spending.account();
                text.lines().for_each(|line| self.ui.say(PLAIN, line));
            }
            ChatCommand::Export => {
                let path = self.named(rest, ".md")?;
                let text = session::markdown(self.conversation.messages());
                let text = self.redactor.redact_text(&text);
                if self.exported.contains(&path) {
                    write_file::replace(&path, text.as_bytes(), FileAccess::Owner)?;
                } else {
                    write_file::create(&path, text.as_bytes(), FileAccess::Owner).map_err(|error| {
                        if !write_file::already_exists(&error) {
                            return error;
                        }
                        let problem =
                            Usage::new(format!("cannot write `{}`: it is there already", path.display()));
                        problem.hint("take another name, or remove it first").into()
                    })?;
                    self.exported.insert(path.clone());
                }
                self.ui.say(DIM, format!("wrote {}", path.display()));
            }
            ChatCommand::Clear => {
                self.begin();
                self.ui.say(DIM, "a new conversation");
            }
            ChatCommand::Save => {
                let path = self.named(rest, session::ENDING)?;
                self.session().save(&path, &self.redactor)?;
                let name = prompt::quoted(&path.to_string_lossy());
                // The demo's tools are not in the session, and its model answers nobody else.
                let goes_on = match self.demo {
                    false => format!("`toolwright chat {name} --resume` goes on"),
                    true => format!(
                        "`toolwright chat {name} --resume --model VENDOR/MODEL` goes on with another model"
                    ),
                };
                self.ui.say(DIM, printable(&format!("wrote {}; {goes_on}", path.display())));
            }
            ChatCommand::Exit => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(String::new()))
    }

    fn help(&mut self) {
        // The demo begins anew each time.
        let leaves =
            if self.demo { "leaves; /save NAME keeps what was said" } else { "saves the session and leaves" };
        for word in WORDS {
            let names: Vec<String> = word.names.iter().map(|name| format!("/{name}")).collect();
            let left = format!("{} {}", names.join(" "), word.takes);
            let does = if word.command == ChatCommand::Exit { leaves } else { word.does };
            self.ui.line(StyledLine::new(BOLD, format!("{left:<30} ")).and(PLAIN, does).hanging(31));
        }
        for (keys, does) in [
            ("Alt+Enter, Ctrl+J", "a new line; Enter sends"),
            ("Up, Down", "earlier inputs"),
            ("Tab", "completes /commands and @files"),
            ("Ctrl-C", "stops the answer, or clears the line"),
            ("Ctrl-D", leaves),
        ] {
            self.ui.line(StyledLine::new(DIM, format!("{keys:<30} ")).and(DIM, does).hanging(31));
        }
    }

    /// Goes back before an input; gives its text.
    fn rewind(&mut self, rest: &str) -> anyhow::Result<String> {
        let said = self.said();
        let wanted: i64 =
            if rest.is_empty() { -1 } else { rest.parse().context("write a number, such as /rewind -1")? };
        anyhow::ensure!(!said.is_empty(), "nothing was said yet");
        let count = i64::try_from(said.len()).unwrap_or(i64::MAX);
        let number =
            if wanted < 0 { count.saturating_add(wanted).max(0) } else { (wanted - 1).clamp(0, count - 1) };
        let at = said.get(usize::try_from(number).unwrap_or(0)).copied().unwrap_or(0);
        let text = self.conversation.messages().get(at).map(Message::text).unwrap_or_default();
        self.back_to(at);
        self.ui.clear();
        let shown = self.said().last().copied().unwrap_or(0);
        self.show_from(shown);
        self.ui.say(DIM, format!("back before #{}", number + 1));
        Ok(text)
    }

    fn change_model(&mut self, name: &str) -> anyhow::Result<()> {
        if name.is_empty() {
            let current = self.model.name().to_owned();
            self.ui.say(PLAIN, format!("{current} answers"));
            for (name, model) in self.names.clone().iter() {
                self.ui.say(PLAIN, format!("  {name}: {}", model.full_name()));
            }
            return Ok(());
        }
        self.model = Arc::from(models::open(&self.console, name, &self.names)?);
        let now = self.model.name().to_owned();
        self.ui.say(DIM, format!("{now} answers from now on"));
        Ok(())
    }

    /// A file for a command, with its ending. In the demo it stands where the program was started.
    fn named(&self, name: &str, ending: &str) -> anyhow::Result<PathBuf> {
        anyhow::ensure!(!name.is_empty(), "write a name after the command");
        let name = toolwright_core::text::with_ending(name, ending);
        Ok(if self.demo { self.folder.join(name) } else { PathBuf::from(name) })
    }

    fn session(&self) -> SavedChat {
        // The demo makes its file anew each time, in a folder of its own.
        let script_name = self.script_name.clone().filter(|_| !self.demo);
        SavedChat { script_name, messages: self.conversation.messages().to_vec() }
    }

    /// Writes the session that `--resume` takes up; false where there is no folder for data.
    fn save_last(&self) -> anyhow::Result<bool> {
        let Some(path) = session::last() else { return Ok(false) };
        if let Some(folder) = path.parent() {
            make(folder).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        self.session().save(&path, &self.redactor)?;
        Ok(true)
    }

    /// Keeps the session, says what was spent, and ends the run.
    fn leave(mut self, outcome: anyhow::Result<()>) -> anyhow::Result<()> {
        self.told.close();
        while let Ok(text) = self.told.try_recv() {
            self.ui.tell(&text);
        }
        self.ui.close(&self.redactor);
        self.inputs.close();
        let said = |message: &Message| !matches!(message, Message::System { .. });
        let mut saved = Ok(());
        if !self.demo && self.conversation.messages().iter().any(said) {
            match self.save_last().context("the session is not saved") {
                Ok(true) => self.console.say("saved; `toolwright chat --resume` goes on"),
                Ok(false) => self.console.say("not saved: HOME is not set; /save NAME writes a session here"),
                Err(error) => saved = Err(error),
            }
        }
        if !self.ui.spending.is_empty() {
            self.console.say(self.ui.spending.account());
        }
        self.run.finish(match self.unanswered.take() {
            Some(message) => RunEnd::Failed { message },
            None => RunEnd::Done,
        })?;
        match &self.recorded {
            Some(id) if self.asked => {
                self.console.say(format_args!("recorded as {id}: `toolwright view` shows it"))
            }
            // Nobody looks for a conversation in which nothing was said.
            Some(id) => runs::remove(&runs::file(id)?)?,
            None => {}
        }
        outcome.and(saved)?;
        // A person saw it and went on; a program reads the exit code.
        if !self.inputs.interactive {
            anyhow::ensure!(!self.failed, "not every input was answered");
            anyhow::ensure!(!self.ui.unsaved, "not every picture was saved");
        }
        Ok(())
    }
}
