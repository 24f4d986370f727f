//! The state that user interface and engine share: one flat value, immutable by default.
//!
//! It lives in a store; whoever reads holds a snapshot. Replacing it whole (`/clear`) is safe, because neither
//! the session's identity nor any credential is in it. What must cross a boundary when it changes (a file, the
//! headless stream) is named by [`changes`]; one `on_change` performs that, never a widget. A field comes with the
//! feature that sets it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::permission::{Mode, Rulebook};

/// The shared state of one running loci.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppState {
    /// Which model answers.
    pub model: ModelChoice,
    /// What may run.
    pub permission: PermissionState,
    /// The session as people see it.
    pub session: SessionView,
    /// Settings in force.
    pub settings: Value,
}

/// Which model answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelChoice {
    /// This session's own choice.
    pub session_override: Option<String>,
}

/// What may run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PermissionState {
    /// Mode and rules.
    pub rulebook: Rulebook,
    /// The mode before planning began.
    pub before_plan: Option<Mode>,
    /// Calls that were denied in this turn.
    pub denials: Vec<Denial>,
    /// The last calls that were denied, the newest last.
    pub recent_denials: Vec<Denial>,
}

/// How many denied calls are remembered beyond their turn.
const MOST_DENIALS: usize = 50;

impl PermissionState {
    /// Takes note of a denied call.
    pub fn deny(&mut self, denial: Denial) {
        if self.recent_denials.len() == MOST_DENIALS {
            self.recent_denials.remove(0);
        }
        self.recent_denials.push(denial.clone());
        self.denials.push(denial);
    }
}

/// A denied call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// The model's id for the call.
    pub tool_use_id: String,
    /// Its arguments.
    pub tool_input: Value,
}

/// The session as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionView {
    /// Its title.
    pub title: Option<String>,
}

/// A change that must be carried across a boundary.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Set the session's model override; `None` removes it.
    SessionModel(Option<String>),
    /// Tell the headless stream and the transcript.
    PermissionMode(Mode),
}

/// Names what must be carried across a boundary between two states, in a fixed order.
pub fn changes(new: &AppState, old: &AppState) -> Vec<Change> {
    let mut out = Vec::new();
    if new.model.session_override != old.model.session_override {
        out.push(Change::SessionModel(new.model.session_override.clone()));
    }
    if new.permission.rulebook.mode != old.permission.rulebook.mode {
        out.push(Change::PermissionMode(new.permission.rulebook.mode));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_app_states_have_no_changes() {
        let state = AppState::default();
        assert_eq!(changes(&state, &state.clone()), []);
    }

    #[test]
    fn each_app_state_field_has_its_change() {
        let old = AppState::default();
        for (change, expected) in [
            (
                (|state| state.model.session_override = Some("haiku".to_owned())) as fn(&mut AppState),
                Change::SessionModel(Some("haiku".to_owned())),
            ),
            (|state| state.permission.rulebook.mode = Mode::Plan, Change::PermissionMode(Mode::Plan)),
        ] {
            let mut new = old.clone();
            change(&mut new);
            assert_eq!(changes(&new, &old), std::slice::from_ref(&expected));
            assert_eq!(changes(&old, &new).len(), 1, "{expected:?} has a way back");
        }
    }

    #[test]
    fn going_back_to_the_default_model_removes_the_choice() {
        let mut chosen = AppState::default();
        chosen.model.session_override = Some("opus".to_owned());
        assert_eq!(changes(&AppState::default(), &chosen), [Change::SessionModel(None)]);
    }
}
