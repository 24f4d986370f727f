//! Which commands run in the sandbox, and which of those nobody is asked about.

use super::decide::Call;
use super::matching::names_command;
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
    let Some(rules) = book.sandbox.as_ref().filter(|_| call.tool == "Bash" && call.command.is_some()) else {
        return Containment::Unsaid;
    };
    if rules.allows_unsandboxed && call.input.get(DISABLE).is_some_and(|it| it == true) {
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
