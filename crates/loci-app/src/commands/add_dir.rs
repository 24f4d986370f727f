//! `/add-dir path`: another directory for the session to work in.

use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot};

/// Carries the command out; the engine says what came of it.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    if argument.is_empty() {
        let dirs: Vec<String> =
            session.rulebook.dirs.iter().map(|dir| format!("- `{}`\n", dir.display())).collect();
        return LocalOutcome::text(format!(
            "The session works in:\n\n{}\nSay `/add-dir PATH` to add another\n",
            dirs.concat()
        ));
    }
    if !session.is_interactive {
        return LocalOutcome::error(
            "Directories are added at a terminal, with `--add-dir`, or by the client",
        );
    }
    let path = argument.trim_matches(['"', '\'']);
    LocalOutcome::default().with(LocalEffect::AddDirectory(path.into()))
}
