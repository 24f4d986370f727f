//! `loci permissions list`: all rules, each with its file and line.

use loci_core::permission::{Rule, RuleList};
use serde_json::{Value, json};

use super::{origin, rule_json};
use crate::config::{SettingsContext, pretty};

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &ListArgs) -> String {
    let (book, notes) = super::rulebook(ctx, None);
    let lists = [RuleList::Deny, RuleList::Ask, RuleList::Allow];
    let rules: Vec<&Rule> = lists.iter().flat_map(|list| book.list(*list)).collect();
    if args.json {
        let rows: Vec<Value> = rules.iter().map(|rule| rule_json(rule)).collect();
        return pretty(&json!({
            "mode": book.mode.as_str(),
            "directories": book.dirs,
            "rules": rows,
            "notes": notes,
        }));
    }
    let mut out = format!("Mode: {}\n", book.mode);
    out += &book.dirs.iter().map(|dir| format!("Directory: {}\n", dir.display())).collect::<String>();
    out += &rules
        .iter()
        .map(|rule| format!("{:<5} {}  ({})\n", rule.list().as_str(), rule.text(), origin(rule)))
        .collect::<String>();
    if rules.is_empty() {
        out += "No settings file that counts has a rule\n";
    }
    out + &notes.iter().map(|note| format!("{note}\n")).collect::<String>()
}
