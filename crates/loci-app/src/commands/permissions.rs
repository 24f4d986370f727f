//! `/permissions [allow|ask|deny rule]`, `/permissions remove …`: the rules in force, where they come from, and changing
//! them.

use std::path::PathBuf;

use loci_core::permission::{Destination, Rule, RuleChange, RuleList, RuleSource, Update};
use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot};
use loci_settings::Scope;

use super::{cell, take_scope};

/// A rule, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// As it is written.
    pub text: String,
    /// Which list it is in.
    pub list: RuleList,
    /// Where it comes from.
    pub origin: String,
    /// Where it can be removed from; nowhere, where an administrator or the command line has set it.
    pub destination: Option<Destination>,
}

/// What calls are judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionReport {
    /// The mode.
    pub mode: String,
    /// The rules of all lists.
    pub rules: Vec<RuleRow>,
    /// The directories the session works in.
    pub directories: Vec<PathBuf>,
    /// Calls that were denied, the newest first: the tool, and what it was to do.
    pub denied: Vec<(String, String)>,
}

impl PermissionReport {
    /// Gathers it.
    pub fn new(session: &SessionSnapshot) -> Self {
        let book = &session.rulebook;
        let rules = book.allow.iter().chain(&book.ask).chain(&book.deny).map(row);
        let denied = session.recent_denials.iter().rev().map(|denial| {
            let input = denial.tool_input.as_object();
            let main = input.and_then(|input| {
                ["command", "file_path", "url", "pattern", "path"]
                    .iter()
                    .find_map(|key| input.get(*key)?.as_str())
            });
            let what = main.map_or_else(|| denial.tool_input.to_string(), str::to_owned);
            (denial.tool_name.clone(), loci_stdx::single_line(&what, 300))
        });
        Self {
            mode: book.mode.to_string(),
            rules: rules.collect(),
            directories: book.dirs.clone(),
            denied: denied.collect(),
        }
    }

    /// Returns it for people.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("## Permissions\n\nMode: {}\n", self.mode);
        for (list, title) in [(RuleList::Allow, "Allow"), (RuleList::Ask, "Ask"), (RuleList::Deny, "Deny")] {
            let rules: Vec<&RuleRow> = self.rules.iter().filter(|rule| rule.list == list).collect();
            text.push_str(&format!("\n**{title}**\n\n"));
            if rules.is_empty() {
                text.push_str("- none\n");
            }
            rules.iter().for_each(|rule| {
                text.push_str(&format!("- `{}` ({})\n", cell(&rule.text), cell(&rule.origin)));
            });
        }
        text.push_str("\n**Workspace**\n\n");
        self.directories.iter().for_each(|dir| text.push_str(&format!("- `{}`\n", dir.display())));
        if !self.denied.is_empty() {
            text.push_str("\n**Recently denied**\n\n");
            self.denied
                .iter()
                .for_each(|(tool, what)| text.push_str(&format!("- {}: {}\n", cell(tool), cell(what))));
        }
        text
    }
}

fn row(rule: &Rule) -> RuleRow {
    let origin = match rule.place() {
        Some(place) => format!("{}, {place}", rule.source()),
        None => rule.source().to_string(),
    };
    RuleRow {
        text: rule.text().to_owned(),
        list: rule.list(),
        origin,
        destination: destination(rule.source()),
    }
}

fn destination(source: RuleSource) -> Option<Destination> {
    match source {
        RuleSource::Session => Some(Destination::Session),
        RuleSource::Settings(scope) | RuleSource::Saved(scope) => to_destination(scope),
        RuleSource::CommandLine => None,
    }
}

/// Returns where a change for a scope goes; nowhere, for those that nobody may change here.
pub fn to_destination(scope: Scope) -> Option<Destination> {
    match scope {
        Scope::User => Some(Destination::User),
        Scope::Project => Some(Destination::Project),
        Scope::Local => Some(Destination::Local),
        Scope::CommandLine | Scope::Managed => None,
    }
}

/// Says what a rule would mean, or what is wrong with it.
pub fn describe_rule(list: RuleList, text: &str) -> Result<String, String> {
    let origin = loci_core::permission::RuleOrigin::new(RuleSource::Session, "/");
    let rule = match Rule::parse(text, list, &origin) {
        (Some(rule), None) => rule,
        // Nothing is ignored that is not written.
        (_, Some(bad)) => {
            let why = bad.to_string();
            return Err(why.rsplit_once("; ").map_or(why.as_str(), |(what, _)| what).to_owned());
        }
        (None, None) => return Err("Not a permission rule: it is empty".to_owned()),
    };
    let verb = match list {
        RuleList::Allow => "runs without asking",
        RuleList::Ask => "is asked about every time",
        RuleList::Deny => "never runs",
    };
    Ok(match rule.text().split_once('(') {
        Some((tool, content)) => {
            format!("{tool} {verb} where it matches `{}`", content.trim_end_matches(')'))
        }
        None => format!("Every call of {} {verb}", rule.text()),
    })
}

/// Carries the command out.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    if argument.is_empty() {
        return LocalOutcome::text(PermissionReport::new(session).to_markdown());
    }
    if !session.is_interactive {
        return LocalOutcome::error(
            "Rules are changed at a terminal, with `loci permissions add`, or by answers to questions",
        );
    }
    let mut words: Vec<&str> = argument.split_whitespace().collect();
    let is_session = words.iter().position(|word| *word == "--session").map(|at| words.remove(at)).is_some();
    let scope = take_scope(&mut words);
    let is_removal = words.first() == Some(&"remove");
    if is_removal {
        words.remove(0);
    }
    let list = match words.first().copied() {
        Some("allow") => RuleList::Allow,
        Some("ask") => RuleList::Ask,
        Some("deny") => RuleList::Deny,
        _ => {
            return LocalOutcome::error(
                "Say `/permissions allow RULE`, or `ask`, `deny`, `remove allow RULE`, with `--user`, `--project`, `--local` or `--session`",
            );
        }
    };
    let rule = words[1..].join(" ");
    let found =
        PermissionReport::new(session).rules.into_iter().find(|row| row.list == list && row.text == rule);
    let to = match (is_session, scope.and_then(to_destination), found.filter(|_| is_removal)) {
        (true, ..) => Destination::Session,
        (false, Some(to), _) => to,
        (false, None, Some(RuleRow { destination: Some(to), .. })) => to,
        (false, None, Some(row)) => {
            return LocalOutcome::error(format!(
                "`{rule}` cannot be removed here: it comes from {}",
                row.origin
            ));
        }
        (false, None, None) if is_removal => {
            return LocalOutcome::error(format!("No rule `{rule}` is in force"));
        }
        (false, None, None) => Destination::Local,
    };
    let change = RuleChange { list, rules: vec![rule.clone()], to };
    if is_removal {
        let update = Update::RemoveRules(change);
        return LocalOutcome::text(format!("Removed `{rule}`")).with(LocalEffect::Permission(update));
    }
    match describe_rule(list, &rule) {
        Ok(meaning) => LocalOutcome::text(format!("Added `{rule}` ({}): {meaning}", to.as_str()))
            .with(LocalEffect::Permission(Update::AddRules(change))),
        Err(why) => LocalOutcome::error(why),
    }
}
