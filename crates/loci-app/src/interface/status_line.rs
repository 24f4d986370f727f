//! The status line: a command of the person that reads how the session stands (JSON on its standard input) and prints what
//! front ends show below the prompt.
//!
//! `input` has what it reads, `pull_request` finds the branch's pull request, `script` runs it, one at a time; `subagents` has the same for the rows of agents at work. Which settings count is decided before
//! ([`gate_commands`]): what a folder says needs trust, and where hooks are off only the administrator's command is left.

mod input;
mod pull_request;
mod repository;
mod script;
mod subagents;

use std::time::Duration;

use loci_core::hooks::HookSwitches;
use loci_core::sandbox_profile::SandboxProfile;
use loci_settings::{MergedSettings, Role, Scope};
use loci_stdx::Env;
use serde_json::Value;

use crate::compose::child_env::child_env;
use crate::interface::helper_command::HelperCommand;

pub use input::{StatusViewer, status_input};
pub use pull_request::PullRequests;
pub use script::{STATUS_LINE, SUBAGENT_STATUS_LINE, ScriptRun, StatusScript};
pub(crate) use subagents::add_plugin_default;
pub use subagents::{AgentRowsConfig, agent_label, agent_name, agent_rows_input, parse_agent_rows};

/// Settings that name a command which the interface runs by itself.
const COMMANDS: [&str; 3] = ["statusLine", "subagentStatusLine", "fileSuggestion"];

/// What settings say of the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusLineConfig {
    /// The command.
    pub command: HelperCommand,
    /// Spaces before each line.
    pub padding: u16,
    /// After how long it is run again, if nothing else happens.
    pub refresh: Option<Duration>,
    /// Whether it shows the mode of vim's keys itself, so that nobody else has to.
    pub hides_vim_mode: bool,
}

impl StatusLineConfig {
    /// Reads the settings in force; none where they name no command.
    pub fn from_settings(settings: &Value) -> Option<Self> {
        let said = settings.get("statusLine")?;
        let command = HelperCommand::from_setting(said)?;
        let refresh = said["refreshInterval"].as_f64().filter(|seconds| *seconds > 0.0);
        Some(Self {
            command,
            padding: said["padding"].as_u64().and_then(|n| u16::try_from(n.min(40)).ok()).unwrap_or(0),
            refresh: refresh.map(|seconds| Duration::from_secs_f64(seconds.clamp(1.0, 86_400.0))),
            hides_vim_mode: said["hideVimModeIndicator"] == true,
        })
    }
}

/// Returns the environment of the command, for a terminal of this size. Keys are not handed on.
pub fn script_vars(env: &Env, columns: u16, lines: u16) -> Vec<(String, String)> {
    let mut vars = child_env(env);
    vars.retain(|(name, _)| name != "COLUMNS" && name != "LINES");
    vars.extend([("COLUMNS".to_owned(), columns.to_string()), ("LINES".to_owned(), lines.to_string())]);
    vars
}

/// Takes commands out of the settings in force that must not run because hooks are off, or are the administrator's alone.
pub(crate) fn gate_commands(settings: &mut Value, merged: &MergedSettings) {
    let switches = HookSwitches::new(merged);
    if !switches.is_off && !switches.managed_only {
        return;
    }
    let Some(fields) = settings.as_object_mut() else { return };
    for key in COMMANDS {
        let parts = merged.get(key).map(|setting| setting.parts.as_slice()).unwrap_or_default();
        let is_managed =
            parts.iter().any(|part| part.role == Role::Wins && part.origin.scope == Scope::Managed);
        if switches.is_off_for_all || !is_managed {
            fields.remove(key);
        }
    }
}

/// Says which commands are not run although settings have them: whoever asks for a sandbox is never run without one. One
/// that can be understood and cannot be had here is told of when the command would run.
pub(crate) fn refused_commands(in_force: &Value) -> Vec<String> {
    let problem = |key: &str| SandboxProfile::parse(in_force[key].get("sandbox")).err();
    let refused = COMMANDS.iter().filter_map(|key| Some((key, problem(key)?)));
    refused.map(|(key, why)| format!("Settings: the command of `{key}` is not run: {why}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_whose_sandbox_cannot_be_understood_is_left_out_and_that_is_said() {
        for (sandbox, runs) in [
            (json!({"enabled": true}), true),
            (json!({"network": "a.com"}), false),
            (json!("yes"), false),
            (json!({"enabled": false}), true),
            (json!(null), true),
        ] {
            let line = json!({"type": "command", "command": "date", "sandbox": sandbox});
            let settings = json!({"statusLine": line});
            assert_eq!(StatusLineConfig::from_settings(&settings).is_some(), runs, "{settings}");
            assert_eq!(refused_commands(&settings).len(), usize::from(!runs), "{settings}");
        }
    }

    #[test]
    fn settings_name_a_command_or_nothing() {
        let read = |value: Value| StatusLineConfig::from_settings(&json!({"statusLine": value}));
        for none in
            [json!(null), json!("x"), json!({"command": "x"}), json!({"type": "command", "command": " "})]
        {
            assert_eq!(read(none.clone()), None, "{none}");
        }
        let whole = json!({"type": "command", "command": "date", "padding": 2, "refreshInterval": 0.2,
            "hideVimModeIndicator": true});
        let expected = StatusLineConfig {
            command: "date".into(),
            padding: 2,
            refresh: Some(Duration::from_secs(1)),
            hides_vim_mode: true,
        };
        assert_eq!(read(whole), Some(expected));
        assert_eq!(
            read(json!({"type": "command", "command": "x", "refreshInterval": -1})).unwrap().refresh,
            None
        );
    }
}
