//! `toolwright read`: a document as a model gets it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use toolwright::documents::{
    Document, DocumentError, DocumentErrorKind, FigureDetail, PageRange, ReadLimits, ReadOptions,
    WorkerLimits, read_in_worker, render,
};
use toolwright::tool::{ErrorInfo, ErrorKind};

use crate::args::ReadArgs;
use crate::console::Console;
use crate::prompt::printable;
use crate::report::{Failed, Usage};
use crate::write_file::{self, FileAccess};

/// Work that takes longer than this is reported on a terminal.
const QUIET: Duration = Duration::from_secs(1);

/// How often it is reported.
const STEP: Duration = Duration::from_millis(200);

pub fn run(what: &ReadArgs, console: &Console) -> anyhow::Result<()> {
    let pages = what
        .pages
        .as_deref()
        .map(PageRange::parse)
        .transpose()
        .map_err(|error| Usage::new(error.to_string()))?;
    let shown = what.file.display();
    let file =
        File::open(&what.file).map_err(|error| Usage::new(format!("cannot read `{shown}`: {error}")))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(Usage::new(format!("cannot read `{shown}`: it is a folder")).into());
    }
    let options = ReadOptions {
        name: what.file.file_name().map(|name| name.to_string_lossy().into_owned()),
        pages,
        password: what.password.clone().or_else(|| std::env::var("TOOLWRIGHT_PASSWORD").ok()),
        figures: if what.figures.is_some() { FigureDetail::Encoded } else { FigureDetail::Named },
        page_pictures: what.page_pictures,
        limits: ReadLimits { time: what.timeout, ..ReadLimits::default() },
        ..ReadOptions::default()
    };
    // The reader ends by itself when its time is up; a little later it is killed.
    let limits = WorkerLimits {
        time: what.timeout + Duration::from_secs(5),
        processor: what.timeout + Duration::from_secs(2),
        ..WorkerLimits::default()
    };
    let mut progress = ReadingProgress::new(console);
    let outcome = read_in_worker(&file, &options, limits, &mut |page| progress.page(page));
    progress.clear();
    let (document, containment) = outcome.map_err(|error| failed(&what.file, &error))?;
    let files: HashMap<String, String> = match &what.figures {
        Some(folder) => save(&document, folder)?,
        None => HashMap::new(),
    };
    if console.is_json() {
        let mut value = serde_json::to_value(&document)?;
        for figure in
            value.get_mut("figures").and_then(|figures| figures.as_array_mut()).into_iter().flatten()
        {
            let path = figure.get("id").and_then(|id| id.as_str()).and_then(|id| files.get(id));
            if let (Some(path), Some(figure)) = (path, figure.as_object_mut()) {
                figure.insert("file".to_owned(), json!(path));
            }
        }
        if let Some(object) = value.as_object_mut() {
            object.insert("reader".to_owned(), serde_json::to_value(&containment)?);
        }
        console.line(serde_json::to_string_pretty(&value)?)?;
    } else {
        print(what, &document, console)?;
        for warning in &document.info.warnings {
            console.say(format_args!("warning: {}", printable(warning)));
        }
        if let Some(missing) = &containment.missing {
            console.say(format_args!("warning: the reader ran without its seal: {}", printable(missing)));
        }
    }
    match document.stopped {
        // The pages before are printed; programs that need all of them see the exit code.
        Some(stopped) => {
            let kind = ErrorKind::Limit;
            Err(Failed(ErrorInfo { kind, message: format!("`{shown}`: {stopped}"), hint: None }).into())
        }
        None => Ok(()),
    }
}

fn print(what: &ReadArgs, document: &Document, console: &Console) -> anyhow::Result<()> {
    let text = if what.outline {
        render::outline(document)
    } else {
        let options = render::MarkdownOptions {
            page_marks: what.page_marks,
            furniture: what.furniture,
            hidden: what.hidden,
        };
        render::markdown(document, &options)
    };
    if text.is_empty() {
        let missing = if what.outline { "headings" } else { "text" };
        console.say(format_args!("`{}` has no {missing}", what.file.display()));
    }
    let mut out = console.stdout();
    // On a terminal, what a file holds may not move the cursor or change colors.
    if out.is_terminal() {
        for line in text.lines() {
            writeln!(out, "{}", printable(line))?;
        }
    } else {
        out.write_all(text.as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Writes the figures, each under its name in the text; gives their paths.
fn save(document: &Document, folder: &Path) -> anyhow::Result<HashMap<String, String>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    let mut files = HashMap::new();
    for figure in document.figures.iter().filter(|figure| !figure.data.is_empty()) {
        let ending = figure.media_type.rsplit('/').next().unwrap_or("bin").replace("jpeg", "jpg");
        let path = folder.join(format!("{}.{ending}", figure.id));
        match write_file::create(&path, &figure.data, FileAccess::Inherit) {
            Err(error) if write_file::already_exists(&error) => {
                let message = format!("cannot write `{}`: it is there already", path.display());
                return Err(Usage::new(message).hint("name a new folder after --figures").into());
            }
            outcome => outcome?,
        }
        files.insert(figure.id.clone(), path.display().to_string());
    }
    Ok(files)
}

fn failed(path: &Path, error: &DocumentError) -> anyhow::Error {
    let message = format!("cannot read `{}`: {error}", path.display());
    let hint = match error.kind() {
        DocumentErrorKind::Encrypted if error.to_string().contains("needs a password") => {
            Some("pass it with --password, or in TOOLWRIGHT_PASSWORD".to_owned())
        }
        _ => error.hint().map(str::to_owned),
    };
    let kind = match error.kind() {
        DocumentErrorKind::Range => {
            let usage = Usage::new(message);
            return match hint {
                Some(hint) => usage.hint(hint).into(),
                None => usage.into(),
            };
        }
        DocumentErrorKind::Encrypted => ErrorKind::Permission,
        DocumentErrorKind::Limit => ErrorKind::Limit,
        DocumentErrorKind::Reader => ErrorKind::Unknown,
        _ => ErrorKind::Parsing,
    };
    Failed(ErrorInfo { kind, message, hint }).into()
}

/// One line on a terminal that says how far the reading is.
struct ReadingProgress<'c> {
    console: &'c Console,
    begun: Instant,
    shown: Option<Instant>,
}

impl<'c> ReadingProgress<'c> {
    fn new(console: &'c Console) -> Self {
        ReadingProgress { console, begun: Instant::now(), shown: None }
    }

    fn page(&mut self, page: u32) {
        let due = self.shown.map_or(self.begun.elapsed() > QUIET, |shown| shown.elapsed() > STEP);
        if due && self.console.stderr().is_terminal() {
            let _ = write!(self.console.stderr().lock(), "\r\x1b[Kreading: page {page}");
            self.shown = Some(Instant::now());
        }
    }

    fn clear(&self) {
        if self.shown.is_some() {
            let _ = write!(self.console.stderr().lock(), "\r\x1b[K");
        }
    }
}
