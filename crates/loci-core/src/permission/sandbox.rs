//! Which commands run in the sandbox, and which of those nobody is asked about.

use super::decide::Call;
use super::matching::names_command;
use super::rule_tools::{BASH, governing};
use super::{Mode, Rule, Rulebook};
use crate::tool::{ASKS_OUTSIDE, Containment};

/// The argument that asks to run outside.
const DISABLE: &str = "dangerouslyDisableSandbox";

/// The sandbox of a session, as far as calls are judged by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxRules {
    /// Whether a command that runs inside is not asked about.
    pub auto_allow: bool,
    /// Whether a call may ask to run outside.
    pub allows_unsandboxed: bool,
    /// Commands that run outside.
    pub excluded: Vec<Rule>,
}

/// Says where the commands of a call would run.
pub fn containment(call: &Call<'_>, book: &Rulebook) -> Containment {
    let runs_command = governing(call.tool) == BASH && call.command.is_some();
    let Some(rules) = book.sandbox.as_ref().filter(|_| runs_command) else {
        return Containment::Unsaid;
    };
    // A monitor has no such argument, and would not be asked about it.
    let asks_outside = call.tool == BASH && call.input.get(DISABLE).is_some_and(|it| it == true);
    if rules.allows_unsandboxed && asks_outside {
        return Containment::Outside("the call asks for it".to_owned());
    }
    match rules.excluded.iter().find(|rule| names_command(rule, call, book)) {
        Some(rule) => Containment::Outside(format!("sandbox.excludedCommands has `{}`", rule.text())),
        None => Containment::Inside,
    }
}

/// Takes the question out of a call that asks to run outside where that is not heard.
pub fn drop_refused_sandbox_exit(containment: &Containment, unknown: &mut Vec<String>) {
    if *containment == Containment::Inside {
        unknown.retain(|what| what != ASKS_OUTSIDE);
    }
}

/// Tells whether a call is not asked about because of where it runs.
pub(super) fn is_contained(call: &Call<'_>, book: &Rulebook) -> bool {
    let allows = book.sandbox.as_ref().is_some_and(|rules| rules.auto_allow);
    allows && call.effects.containment == Containment::Inside && book.mode != Mode::Plan
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tool::CallEffects;

    fn check(tool: &str, input: &Value) -> Containment {
        let rules = SandboxRules { auto_allow: true, allows_unsandboxed: true, excluded: Vec::new() };
        let book = Rulebook { sandbox: Some(rules), ..Rulebook::default() };
        let (command, effects) = (input["command"].as_str(), CallEffects::default());
        containment(&Call { tool, command, input, effects: &effects, hook: None }, &book)
    }

    #[test]
    fn commands_and_monitors_run_inside_and_only_commands_may_ask_to_leave() {
        let (inside, unsaid) = (Containment::Inside, Containment::Unsaid);
        let outside = Containment::Outside("the call asks for it".to_owned());
        for (tool, input, expected) in [
            ("Bash", json!({"command": "ls"}), &inside),
            ("Monitor", json!({"command": "ls"}), &inside),
            ("Monitor", json!({"ws": {"url": "ws://a"}}), &unsaid),
            ("Read", json!({"command": "ls"}), &unsaid),
            ("Bash", json!({"command": "ls", "dangerouslyDisableSandbox": true}), &outside),
            ("Monitor", json!({"command": "ls", "dangerouslyDisableSandbox": true}), &inside),
        ] {
            assert_eq!(check(tool, &input), *expected, "{tool} {input}");
        }
    }
}
