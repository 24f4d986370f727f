//! `/effort [level|auto|status]`: how hard the model thinks.

use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot};
use loci_settings::Scope;

use super::{SessionCommands, refused};
use crate::settings::editor::NamedKey;
use crate::user_error::UserError;

/// The levels, the least first. The last is not kept beyond the session.
pub const LEVELS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
const VARIABLE: &str = "CLAUDE_CODE_EFFORT_LEVEL";

/// Returns the effort that is asked for, and whether somebody chose it.
pub fn current(session: &SessionSnapshot) -> (String, bool) {
    match &session.effort {
        Some(level) => (level.clone(), true),
        None => (session.catalog.facts(&session.model).default_effort.to_owned(), false),
    }
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    if argument.is_empty() || argument == "status" {
        return LocalOutcome::text(describe(session));
    }
    let level = argument.to_ascii_lowercase();
    if !session.catalog.facts(&session.model).has_effort {
        return LocalOutcome::error(format!("`{}` takes no effort level", session.model));
    }
    if level != "auto" && !LEVELS.contains(&level.as_str()) {
        return LocalOutcome::error(format!(
            "No such effort: `{argument}`. There are: {}, auto",
            LEVELS.join(", ")
        ));
    }
    if let Some(by) = commands.env.vars.non_empty(VARIABLE).filter(|word| LEVELS.contains(word)) {
        return LocalOutcome::error(format!("{VARIABLE} is set to `{by}` and wins; unset it to choose here"));
    }
    let chosen = (level != "auto").then(|| level.clone());
    let kept = match session.is_interactive {
        true => save(commands, &level),
        // A program means the session that it drives.
        false => Ok(", for this session".to_owned()),
    };
    match kept {
        Ok(note) => LocalOutcome::text(format!("Effort: {level}{note}")).with(LocalEffect::SetEffort(chosen)),
        Err(error) => refused(&error),
    }
}

fn describe(session: &SessionSnapshot) -> String {
    if !session.catalog.facts(&session.model).has_effort {
        return format!("`{}` takes no effort level", session.model);
    }
    let (level, is_chosen) = current(session);
    let whose = if is_chosen { "chosen" } else { "the model's own" };
    format!("Effort: {level} ({whose}). Choose with `/effort LEVEL`: {}, auto", LEVELS.join(", "))
}

/// Keeps the level in the user's settings, where it can be kept; returns what to say of that.
fn save(commands: &SessionCommands, level: &str) -> Result<String, UserError> {
    let ctx = commands.settings_context();
    match level {
        "max" => Ok(" for this session; it is not kept beyond it".to_owned()),
        "auto" => {
            let is_gone = ctx.unset(&["effortLevel"], Scope::User)?;
            Ok(if is_gone { "; removed from your settings".to_owned() } else { String::new() })
        }
        level => {
            let named = NamedKey::parse("effortLevel")?;
            let change = ctx.set(&named, &level.into(), Scope::User)?;
            let no_effect =
                change.no_effect.map(|why| format!(". For later sessions: {why}")).unwrap_or_default();
            Ok(format!(", kept in {}{no_effect}", change.file))
        }
    }
}
