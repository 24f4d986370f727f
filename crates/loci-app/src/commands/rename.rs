//! `/rename [name]`: what the session is called.

use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot};
use loci_stdx::single_line;

/// The most letters of a name.
const MOST_LETTERS: usize = 200;

/// Carries the command out.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    let name = single_line(argument, MOST_LETTERS);
    if name.trim().is_empty() {
        return LocalOutcome::text(match &session.title {
            Some(title) => {
                format!("The session is called `{title}`. Say `/rename NAME` to call it otherwise")
            }
            None => "The session has no name. Say `/rename NAME` to give it one".to_owned(),
        });
    }
    let when = if session.has_messages { "" } else { "; that is kept with the first prompt" };
    LocalOutcome::text(format!("The session is called `{name}` now{when}")).with(LocalEffect::Rename(name))
}
