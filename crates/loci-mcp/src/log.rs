//! The log of a server: what it complains about, and what we noticed of it, in a bounded file of its own.
//!
//! A log is two files, `<name>.log` and, once that is full, `<name>.log.1` with what was before. It is opened when the
//! first line comes, so that a quiet server leaves no file. Times are those of the clock that is passed in.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use loci_stdx::{Clock, create_private_dir_all, read_regular, rfc3339_millis};

/// How long a file may get before it is put aside.
const FILE_LIMIT: u64 = 512 << 10;

/// The log of one server.
pub struct ServerLog {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    /// Guards the open file; held for one write.
    state: Mutex<LogState>,
}

#[derive(Default)]
struct LogState {
    file: Option<File>,
    n_bytes: u64,
    /// Whether the last byte ended a line.
    is_mid_line: bool,
    has_failed: bool,
}

impl ServerLog {
    /// Makes the log of a server; nothing is opened yet.
    pub fn new(dir: &Path, server: &str, clock: Arc<dyn Clock>) -> Self {
        Self { path: log_file(dir, server), clock, state: Mutex::default() }
    }

    /// Adds what the server wrote.
    pub(crate) fn append(&self, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_failed || bytes.is_empty() {
            return;
        }
        let failed = self.write(&mut state, bytes).err();
        if let Some(error) = failed {
            // A log that cannot be written must not cost the server.
            state.has_failed = true;
            tracing::warn!(target: "loci::mcp", %error, "the log `{}` cannot be written", self.path.display());
        }
    }

    /// Adds a line of ours, with the time.
    pub(crate) fn note(&self, text: &str) {
        let mut line = String::new();
        if self.state.lock().unwrap_or_else(PoisonError::into_inner).is_mid_line {
            line.push('\n');
        }
        line.push_str(&format!("[{}] {text}\n", rfc3339_millis(self.clock.now())));
        self.append(line.as_bytes());
    }

    fn write(&self, state: &mut LogState, bytes: &[u8]) -> io::Result<()> {
        if state.n_bytes > FILE_LIMIT {
            state.file = None;
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        let file = match &mut state.file {
            Some(file) => file,
            None => {
                if let Some(dir) = self.path.parent() {
                    create_private_dir_all(dir)?;
                }
                let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
                state.n_bytes = file.metadata()?.len();
                state.file.insert(file)
            }
        };
        file.write_all(bytes)?;
        state.n_bytes += bytes.len() as u64;
        state.is_mid_line = bytes.last() != Some(&b'\n');
        Ok(())
    }
}

/// Returns the file of a server's log.
fn log_file(dir: &Path, server: &str) -> PathBuf {
    let safe: String = server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    dir.join(format!("{}.log", loci_stdx::truncate_chars(&safe, 100)))
}

/// Returns what is kept of a server's log, the oldest first; none when there is nothing.
pub fn read_log(dir: &Path, server: &str) -> io::Result<Option<String>> {
    let path = log_file(dir, server);
    let mut found = false;
    let mut text = Vec::new();
    for path in [path.with_extension("log.1"), path] {
        match read_regular(&path) {
            Ok(bytes) => {
                found = true;
                text.extend(bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found.then(|| String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;

    use super::*;

    #[test]
    fn log_keeps_what_came_last_and_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        assert_eq!(read_log(&logs, "a").unwrap(), None);
        let log = ServerLog::new(&logs, "a/../b", Env::for_test("/h", "/p").clock);
        assert!(!logs.exists(), "a quiet server leaves no file");
        log.append(b"half");
        log.note("noticed");
        let text = read_log(&logs, "a/../b").unwrap().unwrap();
        assert!(text.starts_with("half\n[2026-01-02T") && text.ends_with("] noticed\n"), "{text}");
        let line = [b'x'; 1024];
        for _ in 0..3000 {
            log.append(&line);
        }
        log.note("last");
        let text = read_log(&logs, "a/../b").unwrap().unwrap();
        assert!(text.ends_with("last\n"));
        assert!((text.len() as u64) < 3 * FILE_LIMIT, "{}", text.len());
    }
}
