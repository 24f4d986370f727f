//! Prompt suggestions: after a turn the model is asked, on the side, what the person may want to say next. It is shown faintly
//! in the empty prompt; Tab or → puts it there, and typing makes it go away.
//!
//! It costs a request a turn, so it is asked for only where settings say so.

use loci_core::permission::Mode;
use loci_engine::turn::Outcome;
use loci_engine::{Command, SideTask, TurnReport};

use super::{App, Effect};
use crate::key::{Key, KeyCode};

/// What it is asked for by.
pub(super) const SUGGESTION_REQUEST: &str = "suggestion";
/// How many turns there were at least: before, nobody knows what follows.
const LEAST_TURNS: usize = 2;
/// A longer one is no suggestion.
const MOST_LETTERS: usize = 200;

impl App {
    /// Asks what may come next, where that is wanted and makes sense.
    pub(super) fn ask_suggestion(&mut self, report: &TurnReport) -> Option<Effect> {
        self.prompt.suggest(None);
        let is_good = matches!(report.outcome, Outcome::Completed) && report.round_trips > 0;
        let is_idle = !self.queue.is_waiting() && self.prompt.is_empty();
        let is_wanted = self.options.has_suggestions.unwrap_or(self.interface.has_suggestions);
        let is_wanted = is_wanted && !self.is_spoken();
        let is_time = self.n_turns >= LEAST_TURNS && self.session.mode != Mode::Plan;
        (is_good && is_idle && is_wanted && is_time).then(|| {
            let request = SUGGESTION_REQUEST.to_owned();
            Effect::Send(Command::AskOnTheSide { request, task: SideTask::Suggestion })
        })
    }

    /// Shows a suggestion, unless somebody is at work again; that there is none concerns nobody.
    pub(super) fn show_suggestion(&mut self, outcome: Result<String, String>) {
        let text = outcome.unwrap_or_default();
        let text = text.trim().trim_matches(['"', '`']);
        let is_short = !text.is_empty() && !text.contains('\n') && text.chars().count() <= MOST_LETTERS;
        if is_short && self.work.is_none() && self.prompt.is_empty() {
            self.prompt.suggest(Some(text.to_owned()));
        }
    }

    /// Takes a key that puts a suggestion into the prompt; false where there is none, or the key is another.
    pub(super) fn accept_suggestion(&mut self, key: Key) -> bool {
        let is_accepting = key == Key::plain(KeyCode::Tab) || key == Key::plain(KeyCode::Right);
        is_accepting && self.prompt.accept_suggestion()
    }
}
