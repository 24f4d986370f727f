//! The log of what was removed and brought back, for people to read after the fact.

use std::io;
use std::path::Path;

use loci_stdx::AppendFile;
use serde_json::json;

use super::RemoveError;
use crate::layout::ConfigHome;

/// Appends one line and makes it survive a power cut.
pub(crate) fn record(
    home: &ConfigHome,
    time: &str,
    action: &str,
    id: &str,
    file: &Path,
    trash: &Path,
) -> Result<(), RemoveError> {
    let path = home.loci_dir().join("audit.log");
    let line = json!({"time": time, "action": action, "sessionId": id, "file": file, "trash": trash});
    let write = || {
        let mut log = AppendFile::open(&path, AppendFile::PRIVATE)?;
        log.append_lines(line.to_string().as_bytes())?;
        log.sync()
    };
    match write() {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(RemoveError::Disk { action: "write", path: path.clone(), source: io::Error::other(error) })
        }
    }
}
