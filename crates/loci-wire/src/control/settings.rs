//! Settings that a client changes while the session runs.

use loci_app::commands::effort::LEVELS;
use loci_core::permission::Mode;
use loci_engine::Command;
use serde_json::{Map, Value};

use super::{ControlContext, ControlOutcome, NO_BYPASS};

/// Settings that count while a session runs; others count from the next session on, and whoever gives them is told.
const LIVE_SETTINGS: [&str; 6] =
    ["permissions", "hooks", "env", "model", "effortLevel", "alwaysThinkingEnabled"];

fn is_effort(level: &Value) -> bool {
    level.is_null() || level.as_str().is_some_and(|level| LEVELS.contains(&level))
}

/// Merges settings into those of the command line, and changes about the session at once what has a command of its own.
pub(super) fn apply_flag_settings(
    id: &str,
    settings: &Map<String, Value>,
    context: &ControlContext,
) -> ControlOutcome {
    let refuse =
        |problem: String| ControlOutcome { answer: Some(Err(problem.into())), ..ControlOutcome::default() };
    let text = |key: &str| settings.get(key).map(|value| value.as_str().map(str::to_owned));
    if let Some(odd) = settings.get("effortLevel").filter(|level| !is_effort(level)) {
        return refuse(format!("effortLevel is one of {} or null, not {odd}", LEVELS.join(", ")));
    }
    let mut commands: Vec<Command> = Vec::new();
    let model = text("model");
    commands.extend(model.clone().map(|model| Command::SetModel { request: Some(id.to_owned()), model }));
    commands.extend(text("effortLevel").map(Command::SetEffort));
    let thinks = settings.get("alwaysThinkingEnabled").map(|value| value.as_bool() != Some(false));
    commands.extend(thinks.map(|thinks| Command::SetThinking(if thinks { None } else { Some(0) })));
    let mode = settings.get("permissions").and_then(|it| it.get("defaultMode")).and_then(Value::as_str);
    match mode.map(str::parse::<Mode>) {
        Some(Ok(Mode::BypassPermissions)) if !context.may_bypass => return refuse(NO_BYPASS.to_owned()),
        Some(Ok(mode)) => commands.push(Command::SetMode(mode)),
        Some(Err(bad)) => return refuse(bad.to_string()),
        None => {}
    }
    // Whether the model can be had is for the session to say; until then it is none of the settings.
    let rest: Map<String, Value> = settings
        .iter()
        .filter(|(key, _)| *key != "model")
        .map(|(key, it)| (key.clone(), it.clone()))
        .collect();
    context.flag_settings.apply(&rest);
    let idle: Vec<&str> =
        settings.keys().map(String::as_str).filter(|key| !LIVE_SETTINGS.contains(key)).collect();
    let notice = (!idle.is_empty())
        .then(|| format!("Settings that only count from the next session on: {}", idle.join(", ")));
    let answer = model.is_none().then_some(Ok(None));
    ControlOutcome { commands, answer, notice, ..ControlOutcome::default() }
}
