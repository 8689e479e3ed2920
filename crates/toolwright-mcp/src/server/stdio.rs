//! This process's standard streams, read and written without a helper thread where they are pipes or sockets,
//! as MCP clients connect them. A round trip through tokio's own `stdin` and `stdout` crosses threads four
//! times.

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

type StdinReader = Box<dyn AsyncRead + Unpin + Send>;
type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// The standard streams of this process.
pub(super) struct StdStreams {
    pub(super) input: StdinReader,
    pub(super) output: Output,
    /// Ends when nobody can read stdout any more.
    pub(super) reader_gone: Pin<Box<dyn Future<Output = ()> + Send>>,
}

#[cfg(not(unix))]
pub(super) fn open() -> std::io::Result<StdStreams> {
    Ok(StdStreams {
        input: Box::new(tokio::io::stdin()),
        output: Box::new(tokio::io::stdout()),
        reader_gone: Box::pin(std::future::pending()),
    })
}

#[cfg(unix)]
pub(super) fn open() -> std::io::Result<StdStreams> {
    use std::os::fd::AsFd as _;

    let input = kind(std::io::stdin().as_fd());
    let output = kind(std::io::stdout().as_fd());
    // `O_NONBLOCK` holds for all descriptors of a stream, and stderr must keep blocking.
    let shared = matches!(
        (&output, kind(std::io::stderr().as_fd())),
        (Some(output), Some(errors)) if output.place == errors.place
    );
    let watched = output.as_ref().and_then(|stream| stream.file.try_clone().ok());
    let plain_output = || -> Output { Box::new(tokio::io::stdout()) };
    Ok(StdStreams {
        input: match input {
            Some(stream) => stream.reader()?,
            None => Box::new(tokio::io::stdin()),
        },
        output: match output {
            Some(stream) if !shared => stream.writer()?,
            _ => plain_output(),
        },
        reader_gone: Box::pin(reader_gone(watched)),
    })
}

/// Waits until the other end of a pipe or socket is closed. It is polled, and only after the client has
/// closed its side: an event source would have to tell the two ways of a socket apart.
#[cfg(unix)]
async fn reader_gone(stream: Option<std::fs::File>) {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
    let Some(stream) = stream else { return std::future::pending().await };
    while !is_hung_up(&stream) {
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(unix)]
fn is_hung_up(stream: &std::fs::File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok_and(|_| {
        polled.iter().any(|polled| polled.revents().intersects(PollFlags::ERR | PollFlags::HUP))
    })
}

#[cfg(unix)]
struct DirectStream {
    file: std::fs::File,
    is_pipe: bool,
    /// Device and number, which two descriptors of one stream share.
    place: (u64, u64),
}

/// The stream behind a descriptor, when it is a pipe or a socket.
#[cfg(unix)]
fn kind(stream: std::os::fd::BorrowedFd<'_>) -> Option<DirectStream> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let file = std::fs::File::from(stream.try_clone_to_owned().ok()?);
    let about = file.metadata().ok()?;
    let is_pipe = about.file_type().is_fifo();
    (is_pipe || about.file_type().is_socket()).then(|| DirectStream {
        file,
        is_pipe,
        place: (about.dev(), about.ino()),
    })
}

#[cfg(unix)]
impl DirectStream {
    fn socket(self) -> std::io::Result<tokio::net::UnixStream> {
        let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(self.file));
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket)
    }

    fn reader(self) -> std::io::Result<StdinReader> {
        Ok(match self.is_pipe {
            true => Box::new(tokio::net::unix::pipe::Receiver::from_file(self.file)?),
            false => Box::new(self.socket()?),
        })
    }

    fn writer(self) -> std::io::Result<Output> {
        Ok(match self.is_pipe {
            true => Box::new(tokio::net::unix::pipe::Sender::from_file(self.file)?),
            false => Box::new(self.socket()?),
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn closed_reader_is_seen_on_pipes_and_sockets() {
        use std::os::fd::OwnedFd;
        let (reader, writer) = std::io::pipe().unwrap();
        let writer = std::fs::File::from(OwnedFd::from(writer));
        assert!(!is_hung_up(&writer));
        drop(reader);
        assert!(is_hung_up(&writer));
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let ours = std::fs::File::from(OwnedFd::from(ours));
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!is_hung_up(&ours), "it still reads");
        drop(theirs);
        assert!(is_hung_up(&ours));
    }
}
