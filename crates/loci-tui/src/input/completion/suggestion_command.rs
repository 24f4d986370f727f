//! A command of the person that suggests files, in the place of the index (the setting `fileSuggestion`).
//!
//! It gets `{"query":"…"}` on its standard input and prints a path a line; the first lines count. It has five seconds,
//! and is ended with all that it started when they are over.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use loci_stdx::{Signal, kill_group, own_group};

/// How long the command has.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many of its lines count.
const LINES: usize = 15;
/// More output than this is not read.
const OUTPUT_LIMIT: u64 = 64 * 1024;

/// Asks the command, and returns its paths, or a sentence that says why there are none.
pub(super) fn suggest(command: &str, cwd: &Path, query: &str) -> Result<Vec<String>, String> {
    let failed = |why: String| format!("The command of `fileSuggestion` {why}: `{command}`");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(cwd).env("CLAUDE_PROJECT_DIR", cwd);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    own_group(&mut shell);
    let mut child = shell.spawn().map_err(|error| failed(format!("could not be started ({error})")))?;
    let question = serde_json::json!({ "query": query }).to_string();
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input may still answer.
        input.write_all(question.as_bytes()).ok();
    }
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map(|output| output.take(OUTPUT_LIMIT).read_to_end(&mut bytes));
        // Nobody listens any more once the time is over.
        sender.send(read.map(|read| read.map(|_| bytes))).ok();
    });
    let answer = receiver.recv_timeout(PATIENCE);
    let status = end(&mut child);
    let bytes = match answer {
        Ok(Some(Ok(bytes))) => bytes,
        Ok(_) => return Err(failed("could not be read".to_owned())),
        Err(_) => return Err(failed(format!("took longer than {} seconds", PATIENCE.as_secs()))),
    };
    let text = String::from_utf8_lossy(&bytes);
    let paths: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES).map(str::to_owned).collect();
    match status {
        Some(status) if paths.is_empty() && status.code().is_some_and(|code| code != 0) => {
            Err(failed(format!("failed ({status})")))
        }
        _ => Ok(paths),
    }
}

/// Waits a moment for the end of a command that has said all it had to say, and ends what is left of it.
fn end(child: &mut Child) -> Option<ExitStatus> {
    for _ in 0..50 {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // It may have ended this very moment.
    kill_group(child.id(), Signal::Kill).ok();
    child.wait().ok()
}
