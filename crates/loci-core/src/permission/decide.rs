//! The one decision function.

use std::fmt;
use std::path::{Path, PathBuf};

use super::critical::{Places, critical_target};
use super::protected::is_protected;
use super::{Mode, Rule};
use crate::path::is_inside;
use crate::tool::{Effects, PathEffect};

/// A call to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's canonical name.
    pub tool: &'a str,
    /// The whole command line, for tools that run one.
    pub command: Option<&'a str>,
    /// What it would do.
    pub effects: &'a Effects,
}

/// What calls are judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rulebook {
    /// The mode.
    pub mode: Mode,
    /// Rules that let calls run.
    pub allow: Vec<Rule>,
    /// Rules that demand a question.
    pub ask: Vec<Rule>,
    /// Rules that forbid.
    pub deny: Vec<Rule>,
    /// The directories the session may read and, by mode, change; symlinks resolved.
    pub dirs: Vec<PathBuf>,
    /// Directories that may be read and never changed: where the session keeps what it shows the model.
    pub read_dirs: Vec<PathBuf>,
    /// Where the shell stands.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: PathBuf,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// May it run?
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

/// May a call run?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person must say yes first.
    Ask,
    /// It does not run.
    Deny,
}

/// Why a call was judged as it was, for code and for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A rule decided.
    Rule(Rule),
    /// Only reading, in the session's directories.
    ReadOnly,
    /// The mode lets it run.
    Mode(Mode),
    /// The mode denies what it would have to ask about, for this reason.
    NotAsked(Mode, Box<Reason>),
    /// It would remove a root, a home or the project.
    CriticalRemoval(String),
    /// It would write a path that steers tools.
    ProtectedPath(PathBuf),
    /// It reaches outside the session's directories.
    Outside(PathBuf),
    /// Part of it could not be understood.
    NotUnderstood(String),
    /// It changes something, and nothing allows that.
    NeedsApproval,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the rule `{}` ({})", rule.text(), rule.source),
            Self::ReadOnly => f.write_str("it only reads, inside the working directories"),
            Self::Mode(mode) => write!(f, "permission mode {mode}"),
            Self::NotAsked(mode, reason) => write!(f, "{reason}, and mode {mode} does not ask"),
            Self::CriticalRemoval(target) => write!(f, "it would remove `{target}`"),
            Self::ProtectedPath(path) => write!(f, "`{}` is a protected path", path.display()),
            Self::Outside(path) => write!(f, "`{}` is outside the working directories", path.display()),
            Self::NotUnderstood(what) => write!(f, "it could not be fully understood: {what}"),
            Self::NeedsApproval => f.write_str("it changes something and no rule allows it"),
        }
    }
}

/// Judges a call.
pub fn decide(call: &Call<'_>, book: &Rulebook) -> Decision {
    let decision = judge(call, book);
    match (decision.verdict, book.mode) {
        (Verdict::Ask, Mode::DontAsk) => Decision {
            verdict: Verdict::Deny,
            reason: Reason::NotAsked(Mode::DontAsk, Box::new(decision.reason)),
        },
        _ => decision,
    }
}

fn judge(call: &Call<'_>, book: &Rulebook) -> Decision {
    let of = |verdict, reason| Decision { verdict, reason };
    if let Some(rule) = restricting(&book.deny, call) {
        return of(Verdict::Deny, Reason::Rule(rule.clone()));
    }
    if let Some(rule) = restricting(&book.ask, call) {
        return of(Verdict::Ask, Reason::Rule(rule.clone()));
    }
    if let Some(reason) = could_evade_rules(call, book) {
        return of(Verdict::Ask, reason);
    }
    if let Some(target) = call
        .command
        .and_then(|command| critical_target(command, &Places { cwd: &book.cwd, home: &book.home }))
    {
        return of(Verdict::Ask, Reason::CriticalRemoval(target));
    }
    if book.mode == Mode::BypassPermissions {
        return of(Verdict::Allow, Reason::Mode(book.mode));
    }
    if let Some(path) = protected_write(call.effects) {
        return of(Verdict::Ask, Reason::ProtectedPath(path.to_path_buf()));
    }
    if let Some(rule) = allowing(&book.allow, call) {
        return of(Verdict::Allow, Reason::Rule(rule.clone()));
    }
    by_mode(call, book)
}

/// What runs without a rule: reads inside, and edits inside where the mode accepts them.
fn by_mode(call: &Call<'_>, book: &Rulebook) -> Decision {
    let effects = call.effects;
    let ask = |reason| Decision { verdict: Verdict::Ask, reason };
    if let Some(what) = effects.unknown.first() {
        return ask(Reason::NotUnderstood(what.clone()));
    }
    let may_read = |path: &&PathEffect| is_in(path, &book.dirs) || is_in(path, &book.read_dirs);
    let read_outside = effects.reads.iter().find(|path| !may_read(path));
    let write_outside = effects.writes.iter().find(|path| !is_in(path, &book.dirs));
    if let Some(path) = read_outside.or(write_outside) {
        return ask(Reason::Outside(path.real.clone()));
    }
    if effects.is_read_only() {
        return Decision { verdict: Verdict::Allow, reason: Reason::ReadOnly };
    }
    let only_edits = effects.commands.is_empty() && effects.hosts.is_empty();
    match book.mode {
        Mode::AcceptEdits if only_edits => {
            Decision { verdict: Verdict::Allow, reason: Reason::Mode(book.mode) }
        }
        Mode::AcceptEdits | Mode::Default | Mode::Plan | Mode::DontAsk | Mode::BypassPermissions => {
            ask(Reason::NeedsApproval)
        }
    }
}

/// Deny and ask rules are read broadly: the whole line or any of its commands may match.
fn restricting<'b>(rules: &'b [Rule], call: &Call<'_>) -> Option<&'b Rule> {
    rules.iter().find(|rule| {
        rule.names(call.tool)
            && (rule.is_bare()
                || call.command.is_some_and(|command| rule.matches_command(command))
                || call.effects.commands.iter().any(|command| rule.matches_command(&command.text)))
    })
}

/// A command we cannot take apart might hide what a rule forbids.
fn could_evade_rules(call: &Call<'_>, book: &Rulebook) -> Option<Reason> {
    let scoped = book.deny.iter().chain(&book.ask).any(|rule| rule.names(call.tool) && !rule.is_bare());
    let unknown = call.effects.unknown.first()?;
    scoped.then(|| Reason::NotUnderstood(unknown.clone()))
}

/// Allow rules are read narrowly: the bare tool, the exact line, or every command of a line that was understood.
fn allowing<'b>(rules: &'b [Rule], call: &Call<'_>) -> Option<&'b Rule> {
    let mut named = rules.iter().filter(|rule| rule.names(call.tool));
    if let Some(rule) = named.clone().find(|rule| rule.is_bare()) {
        return Some(rule);
    }
    let command = call.command?;
    if let Some(rule) = named.clone().find(|rule| rule.is_exact() && rule.matches_command(command)) {
        return Some(rule);
    }
    let effects = call.effects;
    if !effects.unknown.is_empty() || effects.commands.is_empty() || !effects.writes.is_empty() {
        return None;
    }
    let covered = |text: &str| rules.iter().any(|rule| rule.names(call.tool) && rule.matches_command(text));
    let all_covered = effects.commands.iter().all(|part| part.is_read_only || covered(&part.text));
    if !all_covered {
        return None;
    }
    named.find(|rule| effects.commands.iter().any(|part| rule.matches_command(&part.text)))
}

fn protected_write(effects: &Effects) -> Option<&Path> {
    effects
        .writes
        .iter()
        .flat_map(|path| [path.requested.as_path(), path.real.as_path()])
        .find(|path| is_protected(path))
}

fn is_in(path: &PathEffect, dirs: &[PathBuf]) -> bool {
    let inside = |spelling: &Path| dirs.iter().any(|dir| is_inside(spelling, dir));
    inside(&path.requested) && inside(&path.real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::{RuleSource, parse_list};
    use crate::tool::CommandEffect;

    /// Judges one call, written as data: rules as `allow/deny/ask: list` lines, the call as
    /// `Tool read|write PATH` or `Bash CMD` (a `!` before the command marks it as not understood, `?` as read-only).
    fn check(mode: &str, rules: &str, call: &str, expected: &str) {
        let mut book = Rulebook {
            mode: mode.parse().unwrap(),
            dirs: vec!["/p".into()],
            read_dirs: vec!["/spill".into()],
            cwd: "/p".into(),
            home: "/home/dev".into(),
            ..Rulebook::default()
        };
        for line in rules.lines() {
            let (list, texts) = line.split_once(": ").unwrap();
            let rules = parse_list(texts, RuleSource::CommandLine).into_iter().map(Result::unwrap);
            match list {
                "allow" => book.allow.extend(rules),
                "ask" => book.ask.extend(rules),
                _ => book.deny.extend(rules),
            }
        }
        let (tool, rest) = call.split_once(' ').unwrap();
        let mut effects = Effects::default();
        let mut command = None;
        if tool == "Bash" {
            let text = rest.trim_start_matches(['!', '?']);
            command = Some(text);
            if rest.starts_with('!') {
                effects.unknown.push("substitution".to_owned());
            }
            effects.commands = text
                .split(" && ")
                .map(|part| CommandEffect { text: part.to_owned(), is_read_only: rest.starts_with('?') })
                .collect();
        } else {
            let (verb, path) = rest.split_once(' ').unwrap();
            let path = PathEffect::plain(path);
            effects = if verb == "read" { Effects::read(path) } else { Effects::write(path) };
        }
        let decision = decide(&Call { tool, command, effects: &effects }, &book);
        let verdict = format!("{:?}", decision.verdict).to_lowercase();
        assert_eq!(verdict, expected, "{mode} | {rules} | {call}: {}", decision.reason);
    }

    #[test]
    fn modes_without_rules() {
        for (call, expected) in [
            // default acceptEdits plan dontAsk bypassPermissions
            ("Read read /p/a", "allow allow allow allow allow"),
            ("Read read /etc/passwd", "ask ask ask deny allow"),
            ("Read read /spill/toolu_1.txt", "allow allow allow allow allow"),
            ("Edit write /spill/toolu_1.txt", "ask ask ask deny allow"),
            ("Edit write /p/a", "ask allow ask deny allow"),
            ("Edit write /etc/hosts", "ask ask ask deny allow"),
            ("Edit write /p/.git/config", "ask ask ask deny allow"),
            ("Bash ?ls", "allow allow allow allow allow"),
            ("Bash cargo test", "ask ask ask deny allow"),
            ("Bash !echo $(x)", "ask ask ask deny allow"),
            ("Bash rm -rf /", "ask ask ask deny ask"),
        ] {
            let modes = ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"];
            for (mode, expected) in modes.into_iter().zip(expected.split(' ')) {
                check(mode, "", call, expected);
            }
        }
    }

    #[test]
    fn rules_deny_then_ask_then_allow() {
        for (mode, rules, call, expected) in [
            ("default", "allow: Edit", "Edit write /p/a", "allow"),
            ("default", "allow: Edit", "Edit write /p/.git/config", "ask"),
            ("default", "allow: Edit\ndeny: Edit", "Edit write /p/a", "deny"),
            ("bypassPermissions", "deny: Edit", "Edit write /p/a", "deny"),
            ("bypassPermissions", "ask: Edit", "Edit write /p/a", "ask"),
            ("dontAsk", "ask: Edit", "Edit write /p/a", "deny"),
            ("default", "allow: Bash(cargo test)", "Bash cargo test", "allow"),
            ("default", "allow: Bash(cargo test)", "Bash cargo test --all", "ask"),
            ("default", "allow: Bash(cargo test)", "Bash cargo test && rm x", "ask"),
            ("default", "allow: Bash(cargo *)", "Bash cargo fmt && cargo test", "allow"),
            ("default", "allow: Bash(cargo *)", "Bash cargo fmt && touch x", "ask"),
            ("default", "allow: Bash(cargo *)", "Bash !cargo $(x)", "ask"),
            ("default", "allow: Bash\ndeny: Bash(echo *)", "Bash echo hi && touch q", "deny"),
            ("bypassPermissions", "deny: Bash(echo *)", "Bash !x $(echo hi)", "ask"),
            ("default", "allow: Bash", "Bash rm -rf ~", "ask"),
            ("dontAsk", "allow: Edit", "Edit write /p/a", "allow"),
        ] {
            check(mode, rules, call, expected);
        }
    }
}
