//! What the sandbox adds to the result of a command: that it did not run, what was refused, what was taken back.
//!
//! These words are ours and not the command's, and stand last.

use loci_sandbox::{Printed, SandboxReport};

use super::result::join;
use super::shell::SandboxPlace;

/// What the model is told that a call may do which the sandbox refused something.
pub const RETRY_OUTSIDE: &str =
    "If it needs that, the same call with dangerouslyDisableSandbox asks the user to run it outside.";

/// The result of a command that never ran.
pub(super) fn not_run(why: &str) -> String {
    format!(
        "The command was not run: its sandbox could not be made: {why}. Nothing has run outside it. `loci sandbox check` \
         says what this machine can do."
    )
}

/// What is known of a command once it has ended.
pub(super) struct Ended<'a> {
    pub(super) printed: Printed<'a>,
    /// What it could not reach, in words.
    pub(super) refused_hosts: Vec<String>,
    /// Whether the call asked to run outside.
    pub(super) wants_outside: bool,
}

/// Returns what may have been refused, where anything may.
pub(super) fn refusals(ended: Ended<'_>, place: &SandboxPlace) -> Option<String> {
    let SandboxPlace { sandbox, dirs } = place;
    let has_failed = ended.printed.has_failed;
    let mut words = sandbox.refusals(dirs, ended.printed);
    // What a program that worked asked of other hosts (is there a newer version?) it could do without.
    let is_missed = has_failed || !words.is_empty();
    words.extend(ended.refused_hosts);
    let is_explained = has_failed || !words.is_empty();
    if is_explained && ended.wants_outside && !sandbox.allows_unsandboxed {
        words.push(
            "dangerouslyDisableSandbox has no effect: sandbox.allowUnsandboxedCommands is false in the settings".to_owned(),
        );
    }
    let told = marked(&words)?;
    match sandbox.allows_unsandboxed && is_missed {
        true => Some(format!("{told}\n{RETRY_OUTSIDE}")),
        false => Some(told),
    }
}

/// Adds what was removed after the command.
pub(super) fn with_removed(note: Option<String>, report: Option<SandboxReport>) -> Option<String> {
    joined(note, removed(report))
}

/// Returns what was removed after a command, where anything was.
fn removed(report: Option<SandboxReport>) -> Option<String> {
    marked(&report?.removed)
}

/// Returns what is said at the end of a command in the background: what was removed, and what it could not reach.
pub(crate) fn of_background(report: Option<SandboxReport>) -> Option<String> {
    let report = report?;
    joined(marked(&report.removed), marked(&report.refused_hosts))
}

fn marked(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| format!("[sandbox] {}", words.join("\n[sandbox] ")))
}

/// Puts one note below another.
pub(super) fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(join(&first, &second)),
        (first, second) => first.or(second),
    }
}
