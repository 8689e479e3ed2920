//! Contents by their hash: readable by their owner alone, bounded, and shared by all that refer to them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::failpoint;

/// The largest contents that are kept.
pub(crate) const MAX_BLOB: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    pub(crate) fn in_folder(folder: PathBuf) -> Self {
        Blobs { folder }
    }

    /// Keeps what can be read from `input`; `None` when it is too large.
    pub(crate) fn put(&self, mut input: impl Read) -> io::Result<Option<String>> {
        private_folder(&self.folder)?;
        let temporary = self.folder.join(format!("new-{}", crate::store::unique_id()));
        failpoint::pass();
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let kept = self.take(&mut input, &mut file).and_then(|hash| match hash {
            Some(hash) => self.name(&temporary, &hash).map(|()| Some(hash)),
            None => Ok(None),
        });
        if !matches!(kept, Ok(Some(_))) {
            let _ = fs::remove_file(&temporary);
        }
        kept
    }

    fn take(&self, input: &mut impl Read, file: &mut File) -> io::Result<Option<String>> {
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut size = 0_u64;
        loop {
            let count = input.read(&mut buffer)?;
            let piece = buffer.get(..count).unwrap_or_default();
            size += piece.len() as u64;
            if size > MAX_BLOB {
                return Ok(None);
            }
            if piece.is_empty() {
                return Ok(Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()));
            }
            hash.update(piece);
            file.write_all(piece)?;
        }
    }

    fn name(&self, temporary: &Path, hash: &str) -> io::Result<()> {
        let path = self.path(hash)?;
        if let Ok(file) = OpenOptions::new().write(true).open(&path) {
            // A sweep leaves alone what was used a short time ago.
            file.set_modified(SystemTime::now())?;
            return fs::remove_file(temporary);
        }
        if let Some(parent) = path.parent() {
            private_folder(parent)?;
        }
        failpoint::pass();
        fs::rename(temporary, path)
    }

    fn path(&self, hash: &str) -> io::Result<PathBuf> {
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (head, tail) = hash.split_at_checked(2).filter(|_| is_hash).ok_or(io::ErrorKind::InvalidData)?;
        Ok(self.folder.join(head).join(tail))
    }

    pub(crate) fn open(&self, hash: &str) -> io::Result<File> {
        File::open(self.path(hash)?)
    }

    /// Every blob: its hash, size and last use.
    pub(crate) fn list(&self) -> Vec<(String, u64, SystemTime)> {
        let mut found = Vec::new();
        for folder in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let Ok(about) = file.metadata() else { continue };
                let hash = format!("{}{}", folder.file_name().display(), file.file_name().display());
                found.push((hash, about.len(), about.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
            }
        }
        found
    }

    pub(crate) fn remove(&self, hash: &str) -> io::Result<()> {
        fs::remove_file(self.path(hash)?)
    }
}

/// Makes a folder, and those around it, that only its owner can use.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
