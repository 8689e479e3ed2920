//! One message per line, with the length of a line bounded before it is kept.

use std::sync::Mutex;
use std::task::Poll;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use toolwright_util::lock;

/// A buffer larger than this is given back once its line has been dealt with.
const KEEP_CAPACITY: usize = 256 * 1024;

/// Replies that are ready at the same time are written together, up to this size.
const WRITE_TOGETHER: usize = 64 * 1024;

/// What came next.
#[derive(Debug, PartialEq)]
pub(crate) enum LineRead<'a> {
    /// A line, without its end.
    Whole(&'a [u8]),
    /// A line over the limit began; the rest of it is skipped.
    TooLong,
    /// Nothing more will come.
    End,
}

/// Reads lines of bounded length.
pub(crate) struct LineReader<R> {
    input: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        LineReader {
            input: BufReader::with_capacity(32 * 1024, input),
            limit,
            line: Vec::new(),
            skipping: false,
        }
    }

    /// True when more input has arrived already.
    pub(crate) fn has_more(&self) -> bool {
        !self.input.buffer().is_empty()
    }

    /// The next line. Line ends may be `\n` or `\r\n`; a byte order mark is not part of the line. Bytes at
    /// the end without a line end are a line too.
    pub(crate) async fn next(&mut self) -> std::io::Result<LineRead<'_>> {
        if self.line.capacity() > KEEP_CAPACITY {
            self.line = Vec::new();
        }
        self.line.clear();
        loop {
            let chunk = self.input.fill_buf().await?;
            if chunk.is_empty() {
                let nothing = self.line.is_empty();
                return Ok(if nothing || self.skipping {
                    LineRead::End
                } else {
                    LineRead::Whole(trim(&self.line))
                });
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = end.and_then(|end| chunk.get(..end)).unwrap_or(chunk);
            let used = part.len() + usize::from(end.is_some());
            if self.skipping {
                self.skipping = end.is_none();
                self.input.consume(used);
                continue;
            }
            if self.line.len() + part.len() > self.limit {
                self.skipping = end.is_none();
                self.input.consume(used);
                self.line = Vec::new();
                return Ok(LineRead::TooLong);
            }
            self.line.extend_from_slice(part);
            self.input.consume(used);
            if end.is_some() {
                return Ok(LineRead::Whole(trim(&self.line)));
            }
        }
    }
}

fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
}

/// Writes lines until no sender is left, or the other side has gone.
pub(crate) async fn write_lines<W: AsyncWrite + Unpin>(
    lines: mpsc::Receiver<Vec<u8>>,
    output: W,
) -> std::io::Result<()> {
    write_lines_and(lines, &Beside::default(), output).await
}

/// Lines for a writer that is polled in the same task, after the code that puts them here. No task is woken
/// for them: through a channel, a task would wake itself, and with it another thread.
#[derive(Default)]
pub(crate) struct Beside(Mutex<Vec<u8>>);

impl Beside {
    /// Takes a line, unless there is much here already.
    pub(crate) fn put(&self, line: Vec<u8>) -> Result<(), Vec<u8>> {
        let mut waiting = lock(&self.0);
        match waiting.len() {
            0 => *waiting = line,
            1..WRITE_TOGETHER => waiting.extend_from_slice(&line),
            _ => return Err(line),
        }
        Ok(())
    }

    fn take(&self) -> Option<Vec<u8>> {
        let waiting = std::mem::take(&mut *lock(&self.0));
        (!waiting.is_empty()).then_some(waiting)
    }
}

/// Like [`write_lines`], with lines from beside. They come first: they are put there only while the channel
/// is empty.
pub(crate) async fn write_lines_and<W: AsyncWrite + Unpin>(
    mut lines: mpsc::Receiver<Vec<u8>>,
    beside: &Beside,
    mut output: W,
) -> std::io::Result<()> {
    loop {
        let next = std::future::poll_fn(|context| match beside.take() {
            Some(line) => Poll::Ready(Some(line)),
            None => lines.poll_recv(context),
        });
        let Some(mut batch) = next.await else { break };
        while batch.len() < WRITE_TOGETHER {
            let Ok(more) = lines.try_recv() else { break };
            batch.extend_from_slice(&more);
        }
        output.write_all(&batch).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<String> {
        let mut reader = LineReader::new(input, limit);
        let mut seen = Vec::new();
        loop {
            match reader.next().await.unwrap() {
                LineRead::Whole(line) => seen.push(String::from_utf8(line.to_vec()).unwrap()),
                LineRead::TooLong => seen.push("<too long>".to_owned()),
                LineRead::End => return seen,
            }
        }
    }

    #[tokio::test]
    async fn lines_end_in_any_of_the_usual_ways() {
        assert_eq!(lines(b"a\r\nb\n\n\xef\xbb\xbfc", 10).await, ["a", "b", "", "c"]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_and_the_next_one_read() {
        let input = format!("ok\n{}\nnext\n{}", "x".repeat(100_000), "y".repeat(100_000));
        assert_eq!(lines(input.as_bytes(), 10).await, ["ok", "<too long>", "next", "<too long>"]);
    }
}
