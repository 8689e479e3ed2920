//! This process's standard streams, read and written without a helper thread where they are pipes or sockets, which
//! is how every MCP client connects them. A round trip through tokio's own `stdin` and `stdout` crosses threads four
//! times.

use tokio::io::{AsyncRead, AsyncWrite};

type Input = Box<dyn AsyncRead + Unpin + Send>;
type Output = Box<dyn AsyncWrite + Unpin + Send>;

#[cfg(not(unix))]
pub(super) fn open() -> std::io::Result<(Input, Output)> {
    Ok((Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())))
}

#[cfg(unix)]
pub(super) fn open() -> std::io::Result<(Input, Output)> {
    use std::os::fd::AsFd as _;

    let input = kind(std::io::stdin().as_fd());
    let output = kind(std::io::stdout().as_fd());
    // Making a stream wait-free changes it for everybody who shares it, and stderr must keep waiting.
    let shared = matches!(
        (&output, kind(std::io::stderr().as_fd())),
        (Some(output), Some(errors)) if output.place == errors.place
    );
    let plain_output = || -> Output { Box::new(tokio::io::stdout()) };
    let input: Input = match input {
        Some(stream) => stream.reader()?,
        None => Box::new(tokio::io::stdin()),
    };
    let output = match output {
        Some(stream) if !shared => stream.writer()?,
        _ => plain_output(),
    };
    Ok((input, output))
}

#[cfg(unix)]
struct Stream {
    file: std::fs::File,
    is_pipe: bool,
    /// Device and number, which two descriptors of one stream share.
    place: (u64, u64),
}

/// The stream behind a descriptor, when it is a pipe or a socket.
#[cfg(unix)]
fn kind(stream: std::os::fd::BorrowedFd<'_>) -> Option<Stream> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let file = std::fs::File::from(stream.try_clone_to_owned().ok()?);
    let about = file.metadata().ok()?;
    let is_pipe = about.file_type().is_fifo();
    (is_pipe || about.file_type().is_socket()).then(|| Stream {
        file,
        is_pipe,
        place: (about.dev(), about.ino()),
    })
}

#[cfg(unix)]
impl Stream {
    fn socket(self) -> std::io::Result<tokio::net::UnixStream> {
        let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(self.file));
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket)
    }

    fn reader(self) -> std::io::Result<Input> {
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
