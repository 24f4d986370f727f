//! Append-only files of lines, in which a torn tail costs one line and never the next.
//!
//! What must stay true:
//!
//! 1. Lines given in one call go out in one `write` on an `O_APPEND` handle, so lines of several writers
//!    do not mix. Only a short write makes a second call.
//! 2. Nothing is ever cut off. If the file does not end with `\n` (a crash, a full disk, another writer
//!    that died), the next append starts with one, in the same `write`: the torn line stays alone. Where what is torn
//!    is the beginning of what is to be appended, as when a full disk took only a part of it, the rest is appended
//!    and nothing is torn any more.
//! 3. Lines go to the file the path leads to. Before each append and after each sync the path is looked
//!    at. A file that was removed is put back with everything it held, for the open handle still has it; one
//!    that was replaced is opened anew. Either way the caller is told.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use memchr::{memrchr, memrchr_iter};

use crate::dirs::{create_private_dir_all, parent_of, sync_dir};
use crate::same_file::is_at_path;

/// An open append-only file.
#[derive(Debug)]
pub struct AppendFile {
    path: PathBuf,
    mode: u32,
    file: File,
    /// Whether the directory entry may still be lost in a power cut.
    is_entry_unsynced: bool,
}

/// Whether the handle was still attached to its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// The path leads to the same file as before.
    Kept,
    /// The file had been removed, and was put back with all it held.
    Restored,
    /// The file had been replaced: what was appended earlier is not in the file now open.
    Renewed,
}

/// Why lines may not be in the file.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The file could not be opened or created.
    #[error("Failed to open file: `{}`", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The lines were not written, or not in full.
    #[error("Failed to append to file: `{}`", path.display())]
    Append {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The lines are written but may not survive a power cut.
    #[error("Failed to sync file: `{}`", path.display())]
    Sync {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl AppendFile {
    /// The mode for files that only the user may read.
    pub const PRIVATE: u32 = 0o600;

    /// Opens `path`, creating it with `mode` (less the umask) and missing parents with 0700.
    pub fn open(path: &Path, mode: u32) -> Result<Self, AppendError> {
        let file = open(path, mode).map_err(|source| AppendError::Open { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), mode, file, is_entry_unsynced: true })
    }

    /// Appends whole lines; a missing last `\n` is added, nothing is appended for no bytes.
    pub fn append_lines(&mut self, lines: &[u8]) -> Result<Attachment, AppendError> {
        let attachment = self.reattach()?;
        if !lines.is_empty() {
            let appended = self.append(lines);
            appended.map_err(|source| AppendError::Append { path: self.path.clone(), source })?;
        }
        Ok(attachment)
    }

    /// Makes what was appended survive a power cut, then looks whether the path still leads here.
    pub fn sync(&mut self) -> Result<Attachment, AppendError> {
        self.sync_all().map_err(|source| AppendError::Sync { path: self.path.clone(), source })?;
        self.reattach()
    }

    /// Puts the file back, or opens it anew, if its path no longer leads to it.
    pub fn reattach(&mut self) -> Result<Attachment, AppendError> {
        // A path that cannot be examined is opened anew, which tells why or mends it.
        if is_at_path(&self.file, &self.path).unwrap_or(false) {
            return Ok(Attachment::Kept);
        }
        let failed = |source| AppendError::Open { path: self.path.clone(), source };
        let is_restored = restore(&mut self.file, &self.path, self.mode).map_err(failed)?;
        *self = Self::open(&self.path, self.mode)?;
        Ok(if is_restored { Attachment::Restored } else { Attachment::Renewed })
    }

    /// Returns the path given to [`AppendFile::open`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let is_whole = lines.ends_with(b"\n");
        match (has_torn_tail(&mut self.file)?, is_whole) {
            (false, true) => write_whole(&mut self.file, lines),
            (is_torn, _) => {
                let n_there = if is_torn { n_there_already(&mut self.file, lines)? } else { 0 };
                let before: &[u8] = if is_torn && n_there == 0 { b"\n" } else { b"" };
                let after: &[u8] = if is_whole { b"" } else { b"\n" };
                write_whole(&mut self.file, &[before, &lines[n_there..], after].concat())
            }
        }
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if self.is_entry_unsynced {
            sync_dir(parent_of(&self.path))?;
            self.is_entry_unsynced = false;
        }
        Ok(())
    }
}

fn open(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_private_dir_all(parent_of(path))?;
            options.open(path)
        }
        result => result,
    }
}

/// Puts what a removed file held back at its path, whole or not at all; false when something is there already.
fn restore(file: &mut File, path: &Path, mode: u32) -> io::Result<bool> {
    if fs::exists(path)? {
        return Ok(false);
    }
    create_private_dir_all(parent_of(path))?;
    let mut copy = temporary_beside(path, mode)?;
    file.seek(SeekFrom::Start(0))?;
    io::copy(file, &mut copy)?;
    copy.as_file().sync_data()?;
    match copy.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(failure) if failure.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failure) => Err(failure.error),
    }
}

fn temporary_beside(path: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tmp-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder.tempfile_in(parent_of(path))
}

/// Tells whether the file ends within a line; asked each time, since other writers die as well.
fn has_torn_tail<F: Read + Seek>(file: &mut F) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    // Reading nothing means that the file was cut to nothing meanwhile.
    Ok(file.read(&mut last)? == 1 && last != *b"\n")
}

/// Returns how much of `lines` a file that ends within a line already ends with.
fn n_there_already<F: Read + Seek>(file: &mut F, lines: &[u8]) -> io::Result<usize> {
    let size = file.seek(SeekFrom::End(0))?;
    let n_read = size.min(lines.len() as u64);
    file.seek(SeekFrom::Start(size - n_read))?;
    let mut tail = Vec::new();
    file.take(n_read).read_to_end(&mut tail)?;
    let start = match memrchr(b'\n', &tail) {
        Some(newline) => newline + 1,
        None if n_read == size => 0,
        // What is torn is longer than what is to be appended.
        None => return Ok(0),
    };
    let (before, torn) = tail.split_at(start);
    let starts = memrchr_iter(b'\n', lines).map(|newline| newline + 1).chain([0]);
    // A line that lacks nothing but its end may have been meant twice.
    let is_part =
        |at: &usize| lines[*at..].strip_prefix(torn).is_some_and(|rest| !rest.is_empty() && rest[0] != b'\n');
    let mut starts = starts.filter(|at| is_part(at) && before.ends_with(&lines[..*at]));
    Ok(starts.next().map_or(0, |at| at + torn.len()))
}

/// Writes with one call where the system lets us; the rest of a short write follows at once.
fn write_whole<W: Write>(writer: &mut W, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match writer.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n_written) => bytes = &bytes[n_written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
