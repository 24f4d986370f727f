//! `loci hooks list`: every hook with its file and line, and whether it counts.

use loci_core::hooks::{HookEntry, HookEvent, SettingsHooks};
use loci_stdx::single_line;
use serde_json::{Value, json};

use super::entry_json;
use crate::config::pretty;

/// The most letters of a handler that are shown.
const MOST_LETTERS: usize = 100;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(hooks: &SettingsHooks, args: &ListArgs) -> String {
    let counting = hooks.config.entries().iter().map(|entry| (entry.as_ref(), None));
    let refused = hooks.refused.iter().map(|(entry, why)| (entry.as_ref(), Some(why.as_str())));
    let all: Vec<(&HookEntry, Option<&str>)> = counting.chain(refused).collect();
    if args.json {
        let row = |(entry, why): &(&HookEntry, Option<&str>)| {
            let mut row = entry_json(entry);
            row["counts"] = why.is_none().into();
            row["reason"] = why.map_or(Value::Null, Value::from);
            row
        };
        let problems: Vec<Value> = hooks
            .problems
            .iter()
            .map(|it| json!({"file": it.source.file.as_ref(), "line": it.source.line, "message": it.message}))
            .collect();
        return pretty(&json!({"hooks": all.iter().map(row).collect::<Vec<_>>(), "problems": problems}));
    }
    let mut out = String::new();
    for event in HookEvent::ALL {
        let of_event: Vec<_> = all.iter().filter(|(entry, _)| entry.event == event).collect();
        if of_event.is_empty() {
            continue;
        }
        out += &format!("{}\n", event.name());
        for (entry, why) in of_event {
            let matcher = if entry.matcher_text.is_empty() { "*" } else { &entry.matcher_text };
            let label = single_line(&entry.label(), MOST_LETTERS);
            let counts = why.map(|why| format!("  does not count: {why}")).unwrap_or_default();
            out += &format!(
                "  {matcher}  {} {label}  ({}, {}){counts}\n",
                entry.kind(),
                entry.source.scope,
                entry.source
            );
        }
    }
    if all.is_empty() {
        out += "No settings file has a hook\n";
    }
    out + &hooks.problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>()
}
