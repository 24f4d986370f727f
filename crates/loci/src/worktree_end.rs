//! What becomes of the worktree that a session was in when the person leaves the terminal: one in which nothing is new goes
//! with a session that has no name; about any other the person is asked, and it stays unless they say otherwise.

use std::io::{self, IsTerminal};

use loci_app::RunOptions;
use loci_app::sessions::worktree::LeftBehind;
use loci_stdx::{Env, counted};

use crate::print;

/// Looks after the worktree of a session that has ended.
pub(crate) fn settle(env: &Env, options: &RunOptions) {
    let is_named = options.worktree.is_of_named_session();
    let Some(left) = LeftBehind::take(env, options) else { return };
    let removes = match left.is_empty() && !is_named {
        true => true,
        false => is_to_be_removed(&left),
    };
    let name = &left.worktree().name;
    print::print_message(&match removes {
        false => format!("The worktree {name} stays: `loci -w {name}` opens it again."),
        true => match left.remove(env, options) {
            Ok(None) => format!("The worktree {name} is removed."),
            Ok(Some(kept)) => {
                format!("The worktree {name} is removed; what was in it is kept as {kept}, for `git show`.")
            }
            Err(error) => format!("The worktree {name} stays: {error}"),
        },
    });
}

/// Asks the person; without an answer it stays.
fn is_to_be_removed(left: &LeftBehind) -> bool {
    if !io::stdin().is_terminal() || !print::is_stderr_terminal() {
        return false;
    }
    let name = &left.worktree().name;
    let what = match &left.changes {
        Some(changes) if changes.is_empty() => "nothing in it is new".to_owned(),
        Some(changes) => format!(
            "it has {} and {} that are nowhere else",
            counted(changes.n_files as u64, "uncommitted file", "uncommitted files"),
            counted(changes.n_commits as u64, "commit", "commits"),
        ),
        None => "what is in it cannot be told".to_owned(),
    };
    let question =
        format!("The session was in the worktree {name}; {what}.\nKeep it, or remove it? [keep/remove] ");
    let asked = print::ask(&question);
    let mut answer = String::new();
    let is_answered = asked.is_ok() && io::stdin().read_line(&mut answer).is_ok();
    is_answered && matches!(answer.trim().to_lowercase().as_str(), "r" | "remove")
}
