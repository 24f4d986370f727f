//! A command of the person that suggests files, in the place of the index (the setting `fileSuggestion`).
//!
//! It gets `{"query":"…"}` on its standard input and prints a path a line; the first lines count. It has five seconds,
//! and is ended with all that it started when they are over. Its environment is that of commands: without keys.

use std::path::Path;
use std::time::Duration;

use loci_stdx::{CommandFailure, CommandLimits};

use crate::interface::helper_command::{HelperCommand, HelperSandboxes};

/// How long the command has.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many of its lines count.
const LINES: usize = 15;
/// More output than this is not read.
const OUTPUT_LIMIT: u64 = 64 * 1024;

/// Asks the command, and returns its paths, or a sentence that says why there are none.
pub fn suggest(
    command: &HelperCommand,
    sandboxes: &HelperSandboxes,
    cwd: &Path,
    vars: &[(String, String)],
    query: &str,
) -> Result<Vec<String>, String> {
    let failed = |why: String| format!("The command of `fileSuggestion` {why}: `{}`", command.line);
    let mut shell = sandboxes
        .shell(command, &command.line, cwd, vars)
        .map_err(|why| failed(format!("could not be started ({why})")))?;
    shell.command.env("CLAUDE_PROJECT_DIR", cwd);
    let question = serde_json::json!({ "query": query }).to_string();
    let limits = CommandLimits { patience: PATIENCE, output: OUTPUT_LIMIT };
    let output = shell.run(question.as_bytes(), limits).map_err(|failure| match failure {
        CommandFailure::NotFound => failed("could not be started (there is no `sh`)".to_owned()),
        CommandFailure::Start(error) => failed(format!("could not be started ({error})")),
        CommandFailure::Read => failed("could not be read".to_owned()),
        CommandFailure::TimedOut => failed(format!("took longer than {} seconds", PATIENCE.as_secs())),
    })?;
    let text = String::from_utf8_lossy(&output.bytes);
    let paths: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES).map(str::to_owned).collect();
    match output.status {
        Some(status) if paths.is_empty() && status.code().is_some_and(|code| code != 0) => {
            Err(failed(format!("failed ({status})")))
        }
        _ => Ok(paths),
    }
}
