//! The state that user interface and engine share: one flat value, immutable by default.
//!
//! It lives in a store; whoever reads holds a snapshot. Replacing it whole (`/clear`) is safe, because neither
//! the session's identity nor any credential is in it. What must cross a boundary when it changes (a file, the
//! headless stream) is named by [`changes`]; one `on_change` performs that, never a widget.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ids::TaskId;
use crate::permission::{Mode, Rulebook};

/// The shared state of one running loci.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppState {
    /// What is shown and how.
    pub view: ViewState,
    /// Which model answers and how hard it thinks.
    pub model: ModelChoice,
    /// What may run.
    pub permission: PermissionState,
    /// The session as people see it.
    pub session: SessionView,
    /// MCP servers by name, as their status says.
    pub mcp: BTreeMap<String, McpServer>,
    /// Plugins by name.
    pub plugins: BTreeMap<String, PluginState>,
    /// Background tasks.
    pub tasks: BTreeMap<TaskId, TaskView>,
    /// The team this process works in.
    pub team: Option<TeamContext>,
    /// Messages from other agents, oldest first.
    pub inbox: Vec<String>,
    /// Names of running agents and their ids.
    pub agent_names: BTreeMap<String, String>,
    /// Notices for the person, oldest first.
    pub notifications: Vec<Notification>,
    /// Settings in force.
    pub settings: Value,
}

/// What is shown and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewState {
    /// Show everything.
    pub is_verbose: bool,
    /// Show tool output unfolded.
    pub is_expanded: bool,
    /// The status line's text.
    pub status_line: Option<String>,
    /// A tip beside the spinner.
    pub spinner_tip: Option<String>,
}

/// Which model answers and how hard it thinks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelChoice {
    /// The model of the main loop, as in the settings; `None` is the built-in default.
    pub main: Option<String>,
    /// This session's own choice.
    pub session_override: Option<String>,
    /// Whether to think; `None` leaves it to the model's habit.
    pub thinking: Option<bool>,
    /// The effort level.
    pub effort: Option<String>,
    /// Faster answers at a higher price.
    pub is_fast: bool,
}

/// What may run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PermissionState {
    /// Mode and rules.
    pub rulebook: Rulebook,
    /// Calls that were denied.
    pub denials: Vec<Denial>,
    /// Questions waiting for an answer.
    pub open_questions: Vec<String>,
}

/// A denied call.
#[derive(Debug, Clone, PartialEq)]
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
    /// The prompt it was started with.
    pub initial_message: Option<String>,
    /// An answer prepared ahead of the question.
    pub speculation: Option<String>,
}

/// One MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpServer {
    /// `connected`, `failed`, `pending`, …
    pub status: String,
    /// Its tools' names.
    pub tools: Vec<String>,
    /// Its resources' addresses.
    pub resources: Vec<String>,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginState {
    /// In use.
    Enabled,
    /// Installed, switched off.
    Disabled,
    /// Could not be loaded, and why.
    Failed(String),
}

/// A background task as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// What it does.
    pub description: String,
    /// `running`, `completed`, …
    pub status: String,
}

/// The team this process works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamContext {
    /// The team's name.
    pub name: String,
    /// Our name in it.
    pub me: String,
}

/// A notice for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// What it is about; a later one of the same key replaces it.
    pub key: String,
    /// Its text.
    pub text: String,
}

/// A change that must be carried across a boundary.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Write the main model to the user's settings; `None` removes it.
    MainModel(Option<String>),
    /// Set the session's model override; `None` removes it.
    SessionModel(Option<String>),
    /// Tell the headless stream and the transcript.
    PermissionMode(Mode),
    /// Write to the global config.
    Verbose(bool),
    /// Write to the global config.
    ExpandedView(bool),
    /// Clear credential caches and apply the environment again.
    Settings,
}

/// Names what must be carried across a boundary between two states, in a fixed order.
pub fn changes(new: &AppState, old: &AppState) -> Vec<Change> {
    let mut out = Vec::new();
    if new.model.main != old.model.main {
        out.push(Change::MainModel(new.model.main.clone()));
    }
    if new.model.session_override != old.model.session_override {
        out.push(Change::SessionModel(new.model.session_override.clone()));
    }
    if new.permission.rulebook.mode != old.permission.rulebook.mode {
        out.push(Change::PermissionMode(new.permission.rulebook.mode));
    }
    if new.view.is_verbose != old.view.is_verbose {
        out.push(Change::Verbose(new.view.is_verbose));
    }
    if new.view.is_expanded != old.view.is_expanded {
        out.push(Change::ExpandedView(new.view.is_expanded));
    }
    if new.settings != old.settings {
        out.push(Change::Settings);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changed_means_nothing_to_carry() {
        let state = AppState::default();
        assert_eq!(changes(&state, &state.clone()), []);
    }

    #[test]
    fn each_boundary_has_its_change() {
        let old = AppState::default();
        for (change, expected) in [
            (
                (|state| state.model.main = Some("opus".to_owned())) as fn(&mut AppState),
                Change::MainModel(Some("opus".to_owned())),
            ),
            (
                |state| state.model.session_override = Some("haiku".to_owned()),
                Change::SessionModel(Some("haiku".to_owned())),
            ),
            (|state| state.permission.rulebook.mode = Mode::Plan, Change::PermissionMode(Mode::Plan)),
            (|state| state.view.is_verbose = true, Change::Verbose(true)),
            (|state| state.view.is_expanded = true, Change::ExpandedView(true)),
            (|state| state.settings = Value::from("x"), Change::Settings),
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
        chosen.model.main = Some("opus".to_owned());
        assert_eq!(changes(&AppState::default(), &chosen), [Change::MainModel(None)]);
    }
}
