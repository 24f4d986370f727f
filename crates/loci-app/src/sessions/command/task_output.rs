//! What a background task printed, as far as people want to see it.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use loci_stdx::open_regular;

use crate::user_error::UserError;

/// The most of the end of an output that is read.
const MOST_BYTES: u64 = 64 * 1024;

/// Returns the end of what a task printed; a file that is not there yet is empty.
pub fn task_output(file: &Path) -> Result<String, UserError> {
    let failed = |error: std::io::Error| {
        UserError::new(format!("What it printed cannot be read: `{}`: {error}", file.display()))
    };
    let mut opened = match open_regular(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(failed(error)),
    };
    let size = opened.metadata().map_err(failed)?.len();
    let first = size.saturating_sub(MOST_BYTES);
    opened.seek(SeekFrom::Start(first)).map_err(failed)?;
    let mut bytes = Vec::new();
    opened.take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match first {
        0 => text,
        _ => text.split_once('\n').map_or(text.clone(), |(_, whole)| whole.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_a_long_output_begins_with_a_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        assert_eq!(task_output(&file).unwrap(), "", "not there yet");
        std::fs::write(&file, "short\n").unwrap();
        assert_eq!(task_output(&file).unwrap(), "short\n");
        let line = format!("{}\n", "x".repeat(999));
        std::fs::write(&file, line.repeat(200)).unwrap();
        let text = task_output(&file).unwrap();
        assert!(text.len() < 65 * 1024 && text.lines().all(|line| line.len() == 999));
    }
}
