//! Reading in a process of its own: this program, started again with nothing but the descriptor or the bytes
//! of the file. Its memory, its time and what it returns are bounded. When it crashes or reaches a bound, the
//! pages before are kept and the place is named.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub use toolwright_worker::WorkerLimits;
use toolwright_worker::{Command, Connection, Event, Failure, Worker, WorkerError, limit_this_process};

use crate::{Assembler, Document, DocumentError, DocumentErrorKind, Info, Page, ReadOptions, read_pages};

/// The arguments under which this program is a worker for documents.
const ARGUMENTS: [&str; 2] = ["__worker", "documents"];

/// Set by a program that becomes a worker when it is started as one.
static CAN_START: AtomicBool = AtomicBool::new(false);

/// A call of the worker.
#[derive(Serialize, Deserialize)]
struct ReadCall {
    options: ReadOptions,
    memory: u64,
    processor: u64,
}

/// What a worker says of itself beside the document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containment {
    /// Whether the kernel refused the worker files, sockets and processes.
    pub sealed: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ReadResult {
    info: Info,
    containment: Containment,
}

/// Where the bytes of a document are.
#[derive(Debug, Clone, Copy)]
pub enum DocumentSource<'a> {
    /// In an open file, whose descriptor is handed over.
    File(&'a File),
    /// In memory.
    Bytes(&'a [u8]),
}

/// Becomes a worker if this process was started as one, and never returns then. Otherwise returns at once.
///
/// `seal` takes files, sockets and processes away from this process before it looks at a document.
pub fn main_if_worker_sealed_by(seal: impl FnOnce() -> Containment) {
    CAN_START.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    if arguments.by_ref().take(ARGUMENTS.len()).eq(ARGUMENTS) && arguments.next().is_none() {
        // Whatever goes wrong here, the other side sees that the connection ends.
        let code = i32::from(work(seal).is_err());
        std::process::exit(code);
    }
}

/// Whether this program becomes a worker when it is started as one.
pub fn can_start_worker() -> bool {
    CAN_START.load(Ordering::Relaxed)
}

fn work(seal: impl FnOnce() -> Containment) -> io::Result<()> {
    let mut connection = Connection::from_stdin()?;
    let (_, arguments, files, mut attached) = connection.call_with_bytes()?;
    let call: ReadCall = serde_json::from_value(arguments)?;
    let limits = WorkerLimits {
        memory: call.memory,
        processor: Duration::from_secs(call.processor),
        ..WorkerLimits::default()
    };
    limit_this_process(&limits)?;
    let mut bytes = attached.pop().unwrap_or_default();
    for file in files {
        // One byte more than is read, so that the reader can say that there is more.
        file.take(call.options.limits.bytes as u64 + 1).read_to_end(&mut bytes)?;
    }
    let containment = seal();
    let mut failed = None;
    let outcome = read_pages(bytes, &call.options, &mut |page| match give(&mut connection, &page) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    match (outcome, failed) {
        (_, Some(error)) => Err(error),
        (Ok(info), None) => connection.result(serde_json::to_value(ReadResult { info, containment })?),
        (Err(error), None) => connection.error(Failure {
            kind: error.kind().name().to_owned(),
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
        }),
    }
}

fn give(connection: &mut Connection, page: &Page) -> io::Result<()> {
    let figures: Vec<&[u8]> = page.figures.iter().map(|figure| figure.data.as_slice()).collect();
    connection.output(serde_json::to_value(page)?, &figures)
}

/// Reads a document in a worker, which is killed soon after `stop` begins to say yes. `on_page` is called
/// with the number of each page as it arrives.
pub fn read_in_worker(
    source: DocumentSource<'_>,
    options: &ReadOptions,
    limits: WorkerLimits,
    stop: Option<Box<dyn Fn() -> bool + Send>>,
    on_page: &mut dyn FnMut(u32),
) -> Result<(Document, Containment), DocumentError> {
    let mut assembler = Assembler::new();
    let mut containment = Containment::default();
    let outcome = pages_of_worker(source, options, limits, stop, &mut containment, &mut |page| {
        on_page(page.number);
        assembler.add(page);
    });
    Ok((assembler.finish(outcome)?, containment))
}

fn pages_of_worker(
    source: DocumentSource<'_>,
    options: &ReadOptions,
    limits: WorkerLimits,
    stop: Option<Box<dyn Fn() -> bool + Send>>,
    containment: &mut Containment,
    sink: &mut dyn FnMut(Page),
) -> Result<Info, DocumentError> {
    let reader = |error: &dyn std::fmt::Display| {
        DocumentError::new(DocumentErrorKind::Reader, error.to_string().replace("the worker", "the reader"))
    };
    let command = Command::this_program(ARGUMENTS).map_err(|error| reader(&error))?;
    let call = ReadCall {
        options: options.clone(),
        memory: limits.memory,
        processor: limits.processor.as_secs().max(1),
    };
    let call = serde_json::to_value(call).map_err(|error| reader(&error))?;
    let failed = |error: WorkerError| match error {
        WorkerError::Failed(failure) => {
            let error = DocumentError::new(DocumentErrorKind::from_name(&failure.kind), failure.message);
            match failure.hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            }
        }
        WorkerError::Io(error) => reader(&format!("the worker could not be started or reached: {error}")),
        other => reader(&other),
    };
    let (file, bytes) = match source {
        DocumentSource::File(file) => (Some(file), None),
        DocumentSource::Bytes(bytes) => (None, Some(bytes)),
    };
    let (files, attachments) = (file.as_slice(), bytes.as_slice());
    let mut worker =
        Worker::start_with(&command, limits, "read", call, files, attachments).map_err(failed)?;
    if let Some(stop) = stop {
        worker.stop_when(stop);
    }
    loop {
        match worker.next_event().map_err(failed)? {
            Event::Output(page, attachments) => {
                sink(page_of(page, attachments).map_err(|error| reader(&error))?)
            }
            Event::Result(value) => {
                let result: ReadResult = serde_json::from_value(value).map_err(|error| reader(&error))?;
                *containment = result.containment;
                return Ok(result.info);
            }
            _ => {}
        }
    }
}

fn page_of(value: Json, attachments: Vec<Vec<u8>>) -> Result<Page, serde_json::Error> {
    let mut page: Page = serde_json::from_value(value)?;
    for (figure, data) in page.figures.iter_mut().zip(attachments) {
        figure.data = data;
    }
    Ok(page)
}
