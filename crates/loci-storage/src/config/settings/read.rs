//! Reading a settings file without being made to wait, or to read without end.

use std::io::{self, Read};
use std::path::Path;

use loci_stdx::open_regular;

/// The most of a file that is read.
pub const FILE_LIMIT: usize = 2 * 1024 * 1024;

/// A problem and what to do about it.
pub(super) type Problem = (String, String);

/// A file's text, and what is wrong with it as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileText {
    pub(super) text: String,
    pub(super) problem: Option<Problem>,
}

/// Reads a file; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<FileText>, Problem> {
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "let yourself read the file; none of its rules count now",
            _ => "put a readable file there, or remove it",
        };
        (format!("cannot be read: {error}"), hint.to_owned())
    };
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) if is_irregular(&error) => {
            return Err((
                "not a regular file".to_owned(),
                "put a regular file there, or remove it".to_owned(),
            ));
        }
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let is_cut = bytes.len() > FILE_LIMIT;
    bytes.truncate(FILE_LIMIT);
    Ok(Some(decode(bytes, is_cut)))
}

fn decode(bytes: Vec<u8>, is_cut: bool) -> FileText {
    let (text, is_text) = match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), is_cut),
    };
    let problem = match (is_cut, is_text) {
        (true, _) => Some(("larger than 2 MiB; only the first 2 MiB are read", "make the file smaller")),
        (_, false) => Some(("not UTF-8; the letters that are not are replaced", "save the file as UTF-8")),
        _ => None,
    };
    FileText { text, problem: problem.map(|(problem, hint)| (problem.to_owned(), hint.to_owned())) }
}

fn is_irregular(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
