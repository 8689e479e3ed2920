//! Documents as blocks ([`toolwright_documents`]), and reading them in a process of its own.
//!
//! A file from elsewhere is read by a worker: this program, started again with nothing but the descriptor of
//! the file. Its memory, its time and what it returns are bounded, and with the feature `sandbox` the kernel
//! refuses it every file, socket and process. When it crashes or reaches a bound, the pages before are kept
//! and the place is named.
//!
//! A program that reads documents this way calls [`main_if_worker`] first thing in `main`.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub use toolwright_documents::*;
pub use toolwright_worker::WorkerLimits;
use toolwright_worker::{Command, Connection, Event, Failure, Worker, WorkerError, limit_this_process};

/// The arguments under which this program is a worker for documents.
const ARGUMENTS: [&str; 2] = ["__worker", "documents"];

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

/// Becomes a worker if this process was started as one, and never returns then. Otherwise returns at once.
pub fn main_if_worker() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.by_ref().take(ARGUMENTS.len()).eq(ARGUMENTS) && arguments.next().is_none() {
        // Whatever goes wrong here, the other side sees that the connection ends.
        let code = i32::from(work().is_err());
        std::process::exit(code);
    }
}

fn work() -> io::Result<()> {
    let mut connection = Connection::from_stdin()?;
    let (_, arguments, files) = connection.call()?;
    let call: ReadCall = serde_json::from_value(arguments)?;
    let limits = WorkerLimits {
        memory: call.memory,
        processor: Duration::from_secs(call.processor),
        ..WorkerLimits::default()
    };
    limit_this_process(&limits)?;
    let mut bytes = Vec::new();
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

/// Takes files, sockets and processes away from this process.
fn seal() -> Containment {
    #[cfg(feature = "sandbox")]
    {
        match toolwright_sandbox::only_compute() {
            Ok(()) => Containment { sealed: true, missing: None },
            Err(error) => Containment { sealed: false, missing: Some(format!("seccomp: {error}")) },
        }
    }
    #[cfg(not(feature = "sandbox"))]
    {
        Containment { sealed: false, missing: Some("this build has no sandbox".to_owned()) }
    }
}

fn give(connection: &mut Connection, page: &Page) -> io::Result<()> {
    let figures: Vec<&[u8]> = page.figures.iter().map(|figure| figure.data.as_slice()).collect();
    connection.output(serde_json::to_value(page)?, &figures)
}

/// Reads an open file in a worker. `on_page` is called with the number of each page as it arrives.
pub fn read_in_worker(
    file: &File,
    options: &ReadOptions,
    limits: WorkerLimits,
    on_page: &mut dyn FnMut(u32),
) -> Result<(Document, Containment), DocumentError> {
    let mut assembler = Assembler::new();
    let mut containment = Containment::default();
    let outcome = pages_of_worker(file, options, limits, &mut containment, &mut |page| {
        on_page(page.number);
        assembler.add(page);
    });
    Ok((assembler.finish(outcome)?, containment))
}

fn pages_of_worker(
    file: &File,
    options: &ReadOptions,
    limits: WorkerLimits,
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
    let mut worker = Worker::start(&command, limits, "read", call, &[file]).map_err(failed)?;
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
