//! What the sandbox adds to the result of a command: that it did not run, what was refused, what was taken back.
//!
//! These words are ours and not the command's, and stand last.

use std::path::Path;

use loci_sandbox::SandboxReport;

use super::result::join;
use super::shell::SandboxPlace;

/// The result of a command that never ran.
pub(super) fn not_run(why: &str) -> String {
    format!(
        "The command was not run: its sandbox could not be made: {why}. Nothing has run outside it. `loci sandbox check` \
         says what this machine can do."
    )
}

/// Returns what may have been refused, where anything may.
pub(super) fn refusals(printed: &str, cwd: &Path, place: &SandboxPlace) -> Option<String> {
    let SandboxPlace { sandbox, dirs } = place;
    let mut words = sandbox.refused_paths(dirs, printed, cwd);
    words.extend(sandbox.take_refused_hosts());
    if words.is_empty() {
        return None;
    }
    let retry = if sandbox.allows_unsandboxed {
        "\nIf it needs that, the same call with dangerouslyDisableSandbox asks the user to run it outside."
    } else {
        ""
    };
    Some(format!("[sandbox] {}{retry}", words.join("\n[sandbox] ")))
}

/// Adds what was removed after the command.
pub(super) fn with_removed(note: Option<String>, report: Option<SandboxReport>) -> Option<String> {
    joined(note, removed(report))
}

/// Returns what was removed after a command, where anything was.
pub(crate) fn removed(report: Option<SandboxReport>) -> Option<String> {
    let removed = report.map(|report| report.removed).unwrap_or_default();
    (!removed.is_empty()).then(|| format!("[sandbox] {}", removed.join("\n[sandbox] ")))
}

/// Puts one note below another.
pub(super) fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(join(&first, &second)),
        (first, second) => first.or(second),
    }
}
