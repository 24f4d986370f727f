//! `/hooks`: the hooks of a session, where they are written down, when they run, and whether they count.

use loci_core::hooks::{HookEntry, SettingsHooks};
use loci_engine::{LocalOutcome, SessionSnapshot};

use super::{SessionCommands, cell};

/// A hook, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRow {
    /// The event.
    pub event: &'static str,
    /// What it must match; everything, where it is empty.
    pub matcher: String,
    /// What is run: the kind, and what of it.
    pub handler: String,
    /// Where it is written down.
    pub source: String,
    /// Why it does not count, where it does not.
    pub refusal: Option<String>,
}

/// Returns the hooks of a session, in the order of files; then those that do not count.
pub fn rows(commands: &SessionCommands, session: &SessionSnapshot) -> Vec<HookRow> {
    let files = commands.settings_context().loaded;
    let refused = SettingsHooks::parse(&files.merged, &commands.env.cwd).refused;
    let counting = session.hooks.entries().iter().map(|entry| row(entry, None));
    counting.chain(refused.iter().map(|(entry, why)| row(entry, Some(why.clone())))).collect()
}

fn row(entry: &HookEntry, refusal: Option<String>) -> HookRow {
    HookRow {
        event: entry.event.name(),
        matcher: entry.matcher_text.clone(),
        handler: format!("{} {}", entry.kind(), entry.label()),
        source: format!("{}, {}", entry.source.scope, entry.source),
        refusal,
    }
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, session: &SessionSnapshot) -> LocalOutcome {
    let rows = rows(commands, session);
    if rows.is_empty() {
        return LocalOutcome::text("There are no hooks");
    }
    let mut text =
        "## Hooks\n\n| Event | Matches | Runs | From | Counts |\n|---|---|---|---|---|\n".to_owned();
    for HookRow { event, matcher, handler, source, refusal } in rows {
        let matcher = if matcher.is_empty() { "everything".to_owned() } else { cell(&matcher) };
        let counts = refusal.map_or("yes".to_owned(), |why| format!("no: {}", cell(&why)));
        text.push_str(&format!(
            "| {event} | {matcher} | {} | {} | {counts} |\n",
            cell(&handler),
            cell(&source)
        ));
    }
    LocalOutcome::text(text)
}
