//! Prompt suggestions: after a turn the model is asked, on the side, what the person may want to say next. It is shown faintly
//! in the empty prompt; Tab or → puts it there, and typing makes it go away.
//!
//! It costs a request a turn, so it is asked for only where settings say so.

use loci_core::permission::Mode;
use loci_engine::turn::Outcome;
use loci_engine::{Command, SideTask, TurnReport};

use super::Effect;
use super::session_mirror::SessionMirror;

/// What it is asked for by.
pub(super) const SUGGESTION_REQUEST: &str = "suggestion";
/// How many turns there were at least: before, nobody knows what follows.
const LEAST_TURNS: usize = 2;
/// A longer one is no suggestion.
const MOST_LETTERS: usize = 200;

/// Asks what may come next after a turn, where that makes sense.
pub(super) fn ask_suggestion(report: &TurnReport, session: &SessionMirror) -> Option<Effect> {
    let is_good = matches!(report.outcome, Outcome::Completed) && report.round_trips > 0;
    let is_time = session.n_turns >= LEAST_TURNS && session.mode != Mode::Plan;
    (is_good && is_time).then(|| {
        let request = SUGGESTION_REQUEST.to_owned();
        Effect::Send(Command::AskOnTheSide { request, task: SideTask::Suggestion })
    })
}

/// Returns what may come next, as the model has said it; that there is none concerns nobody.
pub(super) fn suggested(outcome: Result<String, String>) -> Option<String> {
    let text = outcome.unwrap_or_default();
    let text = text.trim().trim_matches(['"', '`']);
    let is_short = !text.is_empty() && !text.contains('\n') && text.chars().count() <= MOST_LETTERS;
    is_short.then(|| text.to_owned())
}
