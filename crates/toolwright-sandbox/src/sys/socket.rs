//! Unix socket pairs that carry bytes and descriptors between the runtime and its launcher.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::{check, own};

/// The most descriptors one message may carry.
pub(crate) const MAX_FDS: usize = 4;

/// Room for the control data of `MAX_FDS` descriptors, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; 64]);

/// Two connected sockets that keep message bounds.
pub(crate) fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    pair(libc::SOCK_SEQPACKET)
}

/// Two connected sockets that carry a stream.
pub(crate) fn stream_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    pair(libc::SOCK_STREAM)
}

fn pair(kind: i32) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the pointer is to two integers.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) };
    check(made.into())?;
    let [left, right] = ends;
    Ok((own(left.into()), own(right.into())))
}

/// Sends bytes, and descriptors beside them. A closed peer is an error, never a signal.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    if fds.len() > MAX_FDS {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let numbers: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([MaybeUninit::zeroed(); 64]);
    // SAFETY: `msghdr` is plain data, for which all zeroes is a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !numbers.is_empty() {
        let length = size_of_val(numbers.as_slice()) as u32;
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: pure arithmetic on a length.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as _;
        // SAFETY: the control buffer is 64 aligned bytes and `CMSG_SPACE` of four descriptors is 32, so the
        // header and its data lie inside it.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(length) as _;
            std::ptr::copy_nonoverlapping(
                numbers.as_ptr().cast::<u8>(),
                libc::CMSG_DATA(header),
                length as usize,
            );
        }
    }
    loop {
        // SAFETY: `message` points at live buffers of the lengths it states.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        match check(sent as libc::c_long) {
            Ok(sent) => return Ok(sent as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Receives one message and the descriptors beside it. Zero bytes means that the peer is gone.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control([MaybeUninit::zeroed(); 64]);
    // SAFETY: `msghdr` is plain data, for which all zeroes is a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: pure arithmetic on a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE((MAX_FDS * size_of::<RawFd>()) as u32) } as _;
    let count = loop {
        // SAFETY: `message` points at live, writable buffers of the lengths it states.
        let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match check(count as libc::c_long) {
            Ok(count) => break count as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let mut fds = Vec::new();
    // SAFETY: the kernel filled the control buffer and its length; the macros walk inside it.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let length = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for at in 0..length / size_of::<RawFd>() {
                    fds.push(own(data.add(at).read_unaligned().into()));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    Ok((count, fds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_arrive_with_the_bytes() {
        let (left, right) = packet_pair().unwrap();
        let (read_end, write_end) = crate::sys::pipe().unwrap();
        send(left.as_fd(), b"hello", &[write_end.as_fd()]).unwrap();
        drop(write_end);
        let mut buffer = [0; 16];
        let (count, fds) = receive(right.as_fd(), &mut buffer).unwrap();
        assert_eq!((&buffer[..count], fds.len()), (&b"hello"[..], 1));
        crate::sys::write_all(fds[0].as_fd(), b"through").unwrap();
        drop(fds);
        let count = crate::sys::read(read_end.as_fd(), &mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"through");
        assert_eq!(crate::sys::read(read_end.as_fd(), &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_message_that_does_not_fit_is_an_error() {
        let (left, right) = packet_pair().unwrap();
        send(left.as_fd(), &[1; 100], &[]).unwrap();
        assert!(receive(right.as_fd(), &mut [0; 10]).is_err());
    }
}
