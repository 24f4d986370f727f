//! What to grant so that a call need not be asked about again: the narrowest rules that would do (S-7).
//!
//! A grant is honest: put into the rulebook, it makes the very call run, else nothing is offered. It is narrow: one
//! rule for each command that needs one, spelled out, with a wildcard only behind subcommands whose arguments vary;
//! one directory for reading; one host. Rules that ask, protected paths, critical removals and what is not
//! understood are never granted beyond the one call.

use std::path::Path;

use super::decide::{Call, decide};
use super::matching::is_covered;
use super::rule_tools::{EDIT, READ, governing, is_granted_whole, reads_one_file};
use super::update::{Destination, RuleChange};
use super::{Decision, Mode, Reason, RuleList, Rulebook, Update, Verdict};
use crate::tool::{CommandEffect, Cover, HOLE, PathEffect};

/// The most rules one grant may add.
const MOST_RULES: usize = 5;
/// The longest rule that a person reads to its end.
const LONGEST_RULE: usize = 200;

/// Commands whose arguments vary and whose first words say what they do.
const FAMILIES: &[&str] = &[
    "cargo build",
    "cargo check",
    "cargo test",
    "cargo clippy",
    "cargo doc",
    "cargo fmt",
    "npm test",
    "pnpm test",
    "yarn test",
    "go build",
    "go test",
    "go vet",
    "git add",
    "git commit",
    "pytest",
];

/// Returns what would let a call run that is asked about; nothing when it should be asked about every time.
pub fn suggest(call: &Call<'_>, book: &Rulebook, decision: &Decision) -> Vec<Update> {
    let is_open = match decision.reason.root() {
        Reason::NeedsApproval
        | Reason::Reaches(_)
        | Reason::OutsideDirectories(_)
        | Reason::PrivateHost(_)
        | Reason::Classifier(_) => true,
        // What a tool of others does is never known; what a command does should be.
        Reason::NotUnderstood(_) => call.command.is_none(),
        _ => false,
    };
    if decision.verdict == Verdict::Allow || !is_open {
        return Vec::new();
    }
    let Some(updates) = candidates(call, book) else { return Vec::new() };
    let mut granted = book.clone();
    let complaints: usize = updates.iter().map(|update| update.apply(&mut granted).len()).sum();
    let runs = complaints == 0 && decide(call, &granted).verdict == Verdict::Allow;
    if runs { updates } else { Vec::new() }
}

fn candidates(call: &Call<'_>, book: &Rulebook) -> Option<Vec<Update>> {
    if call.command.is_some() {
        return for_commands(call, book);
    }
    let effects = call.effects;
    if is_granted_whole(call.tool) {
        return Some(vec![rules(vec![call.tool.to_owned()], Destination::Local)]);
    }
    if !effects.hosts.is_empty() {
        let hosts = effects.hosts.iter().map(|host| format!("{}(domain:{host})", call.tool));
        return Some(vec![rules(hosts.collect(), Destination::Local)]);
    }
    if effects.writes.is_empty() {
        let outside = effects.reads.iter().filter(|path| !book.may_read(path));
        let is_file = reads_one_file(call.tool);
        let texts = outside.flat_map(|path| read_rules(path, is_file)).collect::<Option<Vec<_>>>()?;
        return Some(vec![rules(texts, Destination::Session)]);
    }
    let outside = effects.writes.iter().filter(|path| !book.is_inside(path));
    let mut dirs: Vec<_> = outside.filter_map(|path| path.real.parent()).map(Path::to_path_buf).collect();
    dirs.dedup();
    let mode = Update::SetMode(Mode::AcceptEdits, Destination::Session);
    let more = (!dirs.is_empty()).then_some(Update::AddDirectories(dirs, Destination::Session));
    // A plan is approved as a plan, not edit by edit.
    (book.mode != Mode::Plan).then(|| more.into_iter().chain([mode]).collect())
}

fn for_commands(call: &Call<'_>, book: &Rulebook) -> Option<Vec<Update>> {
    let effects = call.effects;
    let mut commands: Vec<String> = Vec::new();
    for command in effects.commands.iter().filter(|it| !it.is_read_only && !is_covered(it, call, book)) {
        let text = format!("{}({})", governing(call.tool), command_rule(command)?);
        if !commands.contains(&text) {
            commands.push(text);
        }
    }
    let mut paths: Vec<String> = Vec::new();
    for path in effects.reads.iter().filter(|path| !book.may_read(path)) {
        paths.extend(read_rules(path, true).into_iter().collect::<Option<Vec<_>>>()?);
    }
    for path in effects.redirects.iter().filter(|path| book.path_rule(EDIT, path).is_none()) {
        paths.extend(path_rules(EDIT, path, "").into_iter().collect::<Option<Vec<_>>>()?);
    }
    paths.dedup();
    if commands.len() + paths.len() > MOST_RULES {
        return None;
    }
    let updates = [(commands, Destination::Local), (paths, Destination::Session)];
    Some(updates.into_iter().filter(|(it, _)| !it.is_empty()).map(|(it, to)| rules(it, to)).collect())
}

/// Returns the specifier for a command; none where only the whole line, or nothing, could be granted.
fn command_rule(command: &CommandEffect) -> Option<String> {
    let (Cover::Pattern(text) | Cover::Spelled { text, .. } | Cover::Exact(text)) = &command.cover else {
        return None;
    };
    let is_plain = |c: char| !c.is_control() && c != '*' && c != HOLE;
    if !text.chars().all(is_plain) || text.chars().count() > LONGEST_RULE || text.trim() != text {
        return None;
    }
    let starts =
        |family: &str| text.strip_prefix(family).is_some_and(|it| it.is_empty() || it.starts_with(' '));
    if let Some(family) = FAMILIES.iter().find(|family| starts(family)) {
        return Some(format!("{family} *"));
    }
    let mut words = text.split(' ');
    let script = match (words.next(), words.next(), words.next()) {
        (Some(program @ ("npm" | "pnpm" | "yarn")), Some("run"), Some(script)) => Some((program, script)),
        _ => None,
    };
    Some(match script {
        Some((program, script)) if !script.starts_with('-') => format!("{program} run {script} *"),
        _ => text.clone(),
    })
}

/// Rules for reading: the directory of a file, or a directory with all that is in it.
fn read_rules(path: &PathEffect, is_file: bool) -> Vec<Option<String>> {
    let parent = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    let (path, tail) = match is_file {
        true => (PathEffect { requested: parent(&path.requested), real: parent(&path.real) }, "/**"),
        false => (path.clone(), ""),
    };
    path_rules(READ, &path, tail)
}

/// Rules for both spellings of a path, which are mostly one.
fn path_rules(tool: &str, path: &PathEffect, tail: &str) -> Vec<Option<String>> {
    let rule = |path: &Path| {
        let text = path.to_str()?;
        // A whole disk is nothing to grant in passing.
        (text != "/").then(|| format!("{tool}(/{}{tail})", escaped(text)))
    };
    let second = (path.requested != path.real).then(|| rule(&path.real));
    std::iter::once(rule(&path.requested)).chain(second).collect()
}

/// Takes the special meaning from what a path pattern would read as one.
fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut out, c| {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
        out
    })
}

fn rules(rules: Vec<String>, to: Destination) -> Update {
    Update::AddRules(RuleChange { list: RuleList::Allow, rules, to })
}
