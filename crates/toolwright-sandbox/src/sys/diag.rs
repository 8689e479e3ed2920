//! The kernel's list of local sockets, with the files they are bound to (`NETLINK_SOCK_DIAG`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::{check, own, read, write_all};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_ALL: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
const SHOW_NAME_AND_FILE: u32 = 1 | 2;
const NAME: u16 = 0;
const FILE: u16 = 1;
/// Of a message and of what follows it here.
const HEADER: usize = 16;
/// The most bytes of answers that are read.
const MOST: usize = 64 << 20;

/// A local socket that is bound to a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// As it was said when it was bound.
    pub(crate) name: Vec<u8>,
    /// Major and minor number of the file system.
    pub(crate) device: (u32, u32),
    /// The lower half of the inode's number.
    pub(crate) inode: u32,
    /// Nobody else can connect to it.
    pub(crate) connected: bool,
}

/// Every socket of this network namespace that is bound to a file.
pub(crate) fn local_sockets() -> io::Result<Vec<Local>> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers only.
    let line = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
    let line = check(line.into()).map(own)?;
    let patience = libc::timeval { tv_sec: 10, tv_usec: 0 };
    let (value, size) = ((&raw const patience).cast(), size_of::<libc::timeval>() as libc::socklen_t);
    // SAFETY: the pointer is to a `timeval`, whose size is given.
    let set = unsafe { libc::setsockopt(line.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, size) };
    check(set.into())?;
    write_all(line.as_fd(), &request())?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut buffer = vec![0; 256 << 10];
    while bytes < MOST {
        let count = read(line.as_fd(), &mut buffer)?;
        bytes += count.max(HEADER);
        if take(buffer.get(..count).unwrap_or_default(), &mut found)? {
            return Ok(found);
        }
    }
    Err(io::Error::from_raw_os_error(libc::EMSGSIZE))
}

fn request() -> Vec<u8> {
    let mut words = Vec::with_capacity(40);
    words.extend(40u32.to_ne_bytes());
    words.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    words.extend(REQUEST_ALL.to_ne_bytes());
    words.extend([0; 8]); // sequence and sender
    words.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    words.extend(u32::MAX.to_ne_bytes()); // in any state
    words.extend(0u32.to_ne_bytes());
    words.extend(SHOW_NAME_AND_FILE.to_ne_bytes());
    words.extend([0; 8]); // no cookie
    words
}

/// Takes the sockets of one answer; true at the end of all.
fn take(mut answer: &[u8], found: &mut Vec<Local>) -> io::Result<bool> {
    while let Some(length) = word(answer, 0) {
        let broken = || io::Error::from_raw_os_error(libc::EPROTO);
        let message = answer.get(..length as usize).filter(|one| one.len() >= HEADER).ok_or_else(broken)?;
        match half(message, 4).map(i32::from) {
            Some(libc::NLMSG_DONE) => return Ok(true),
            Some(libc::NLMSG_ERROR) => {
                let code = word(message, HEADER).map_or(libc::EPROTO, |code| (code as i32).saturating_neg());
                return Err(io::Error::from_raw_os_error(code));
            }
            _ => found.extend(socket(message)),
        }
        answer = answer.get(padded(length as usize)..).unwrap_or_default();
    }
    Ok(false)
}

fn socket(message: &[u8]) -> Option<Local> {
    let connected = i32::from(*message.get(HEADER + 2)?) == 1;
    let (mut name, mut file) = (Vec::new(), None);
    let mut rest = message.get(2 * HEADER..)?;
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let value = rest.get(4..usize::from(length))?;
        match kind {
            NAME => name = value.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
            FILE => file = Some((word(value, 0)?, word(value, 4)?)),
            _ => {}
        }
        rest = rest.get(padded(length.into())..).unwrap_or_default();
    }
    let (inode, device) = file?;
    Some(Local { name, device: (device >> 20, device & 0xf_ffff), inode, connected })
}

fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_socket_is_listed_with_its_file() {
        let path = std::env::temp_dir().join(format!("toolwright-diag-{:x}", super::super::random_u64()));
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino() as u32;
        let found = local_sockets().unwrap();
        let own = found.iter().find(|one| one.name == path.as_os_str().as_encoded_bytes()).unwrap();
        assert_eq!((own.inode, own.connected), (inode, false));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn broken_answers_are_errors() {
        for answer in
            [&[1, 0, 0, 0][..], &[255, 255, 0, 0, 0, 0], &[16, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
        {
            assert!(take(answer, &mut Vec::new()).is_err(), "{answer:?}");
        }
    }
}
