//! Rules learned from questions that people answered: the few that would have answered most of them, and what else each
//! would let run.
//!
//! A rule is only proposed where it is honest: put into the rulebook it lets the very calls run that somebody said yes to
//! ([`decide`] says so), and none that somebody said no to. Besides the narrow rules of [`suggest`], commands that share their
//! first two words are put together, unless the program runs or removes whatever its arguments say.

use serde_json::Value;

use super::decide::{Call, decide};
use super::{
    Destination, Mode, RuleChange, RuleList, RuleOrigin, RuleSource, Rulebook, Update, Verdict, suggest,
};
use crate::tool::CallEffects;

/// The most rules that are proposed.
const MOST_RULES: usize = 6;

/// Programs whose arguments say what is run, removed or reached: their commands are never put together.
const NEVER_WIDENED: &[&str] = &[
    "bash",
    "sh",
    "zsh",
    "fish",
    "dash",
    "eval",
    "exec",
    "env",
    "xargs",
    "find",
    "sudo",
    "doas",
    "su",
    "rm",
    "rmdir",
    "mv",
    "cp",
    "dd",
    "chmod",
    "chown",
    "ln",
    "kill",
    "pkill",
    "killall",
    "ssh",
    "scp",
    "rsync",
    "curl",
    "wget",
    "nc",
    "python",
    "python3",
    "node",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "awk",
    "sed",
    "tee",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "aws",
    "gcloud",
    "az",
    "npx",
    "pnpx",
    "uvx",
    "systemctl",
    "crontab",
    "at",
    "nohup",
    "time",
    "timeout",
    "watch",
    "make",
];

/// Subcommands that remove, publish or run what is named: neither.
const NEVER_WIDENED_SUBCOMMANDS: &[&str] = &[
    "push",
    "reset",
    "clean",
    "checkout",
    "switch",
    "restore",
    "rebase",
    "config",
    "remote",
    "filter-branch",
    "gc",
    "reflog",
    "update-ref",
    "rm",
    "remove",
    "delete",
    "uninstall",
    "install",
    "add",
    "exec",
    "run",
    "publish",
    "login",
    "apply",
    "merge",
    "api",
    "auth",
    "secret",
    "dlx",
    "x",
];

/// A call that somebody was asked about, and what they said.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The tool's canonical name.
    pub tool: String,
    /// The whole command line, for tools that run one.
    pub command: Option<String>,
    /// The arguments.
    pub input: Value,
    /// What it would do.
    pub effects: CallEffects,
    /// Whether they said yes.
    pub is_allowed: bool,
}

impl AskedCall {
    fn call(&self) -> Call<'_> {
        Call {
            tool: &self.tool,
            command: self.command.as_deref(),
            input: &self.input,
            effects: &self.effects,
            hook: None,
        }
    }

    /// Says what it was to do, for people.
    pub fn summary(&self) -> String {
        let main = ["command", "file_path", "url", "query", "pattern", "path"]
            .iter()
            .find_map(|key| self.input.get(*key)?.as_str());
        match main {
            Some(main) => format!("{}: {main}", self.tool),
            None => self.tool.clone(),
        }
    }
}

/// A rule that would have answered questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedRule {
    /// As it is written in settings.
    pub text: String,
    /// Places of the calls that it would have let run.
    pub answered: Vec<usize>,
    /// What else it would let run.
    pub also_allows: String,
}

impl LearnedRule {
    /// Returns the change that saves it.
    pub fn update(&self, to: Destination) -> Update {
        Update::AddRules(RuleChange { list: RuleList::Allow, rules: vec![self.text.clone()], to })
    }
}

/// Finds the few rules that would have answered most questions, the best first. What was granted for the session alone is
/// not counted as there: the next session asks again.
pub fn learn_rules(asked: &[AskedCall], book: &Rulebook) -> Vec<LearnedRule> {
    let mut base = Rulebook { mode: Mode::Default, ..book.clone() };
    base.allow.retain(|rule| rule.source() != RuleSource::Session);
    let runs = |call: &AskedCall, book: &Rulebook| decide(&call.call(), book).verdict == Verdict::Allow;
    let mut open: Vec<usize> = (0..asked.len())
        .filter(|idx| asked.get(*idx).is_some_and(|call| call.is_allowed && !runs(call, &base)))
        .collect();
    let candidates = candidates(asked, &open, &base);
    let mut learned: Vec<LearnedRule> = Vec::new();
    while learned.len() < MOST_RULES {
        let answers = |text: &String| -> Vec<usize> {
            let granted = with_rule(&base, text);
            let is_wrong = asked.iter().any(|call| !call.is_allowed && runs(call, &granted));
            let answered = open.iter().copied();
            let answered = answered.filter(|idx| asked.get(*idx).is_some_and(|call| runs(call, &granted)));
            if is_wrong { Vec::new() } else { answered.collect() }
        };
        // The narrower of two that answer as many comes first among the candidates.
        let best = candidates.iter().map(|text| (text, answers(text))).fold(
            None::<(&String, Vec<usize>)>,
            |best, next| match &best {
                Some((_, most)) if most.len() >= next.1.len() => best,
                _ => Some(next),
            },
        );
        let Some((text, answered)) = best.filter(|(_, answered)| !answered.is_empty()) else { break };
        open.retain(|idx| !answered.contains(idx));
        learned.push(LearnedRule { text: text.clone(), answered, also_allows: also_allows(text) });
    }
    learned
}

fn with_rule(base: &Rulebook, text: &str) -> Rulebook {
    let mut book = base.clone();
    let anchor = book.dirs.first().cloned().unwrap_or_default();
    // A rule that cannot be read lets nothing run.
    drop(book.add(RuleList::Allow, text, &RuleOrigin::new(RuleSource::Session, anchor)));
    book
}

/// Returns rules that may answer: those that were offered, then commands that share their first two words.
fn candidates(asked: &[AskedCall], open: &[usize], base: &Rulebook) -> Vec<String> {
    let mut narrow: Vec<String> = Vec::new();
    for call in open.iter().filter_map(|idx| asked.get(*idx)) {
        let judged = call.call();
        for update in suggest(&judged, base, &decide(&judged, base)) {
            if let Update::AddRules(RuleChange { list: RuleList::Allow, rules, .. }) = update {
                narrow.extend(rules);
            }
        }
    }
    narrow.sort();
    narrow.dedup();
    let mut families: Vec<(String, usize)> = Vec::new();
    for family in narrow.iter().filter_map(|text| family(text)) {
        match families.iter_mut().find(|(known, _)| *known == family) {
            Some((_, n)) => *n += 1,
            None => families.push((family, 1)),
        }
    }
    let wide = families.into_iter().filter(|(_, n)| *n > 1).map(|(family, _)| format!("Bash({family} *)"));
    narrow.iter().cloned().chain(wide).collect()
}

/// Returns the first two words of the command of a rule, where commands that share them may be put together.
fn family(rule: &str) -> Option<String> {
    let command = rule.strip_prefix("Bash(")?.strip_suffix(')')?;
    let mut words = command.split(' ');
    let (program, sub) = (words.next()?, words.next()?);
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let is_named = is_word(program) && is_word(sub) && !sub.starts_with('-') && !sub.starts_with('.');
    let is_safe = !NEVER_WIDENED.contains(&program) && !NEVER_WIDENED_SUBCOMMANDS.contains(&sub);
    (is_named && is_safe && words.next().is_some_and(|word| word != "*")).then(|| format!("{program} {sub}"))
}

/// Says what else a rule lets run than the calls it was learned from.
pub fn also_allows(rule: &str) -> String {
    let Some((tool, spec)) = rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) else {
        return format!("every call of {rule}, whatever its arguments");
    };
    if let Some(host) = spec.strip_prefix("domain:") {
        return format!("every page of {host}");
    }
    match spec.strip_suffix(" *").or_else(|| spec.strip_suffix(":*")) {
        Some(prefix) if tool == "Bash" => {
            format!("every command that begins with `{prefix}`, whatever follows")
        }
        _ if tool == "Bash" => "nothing else: this command alone".to_owned(),
        _ if spec.ends_with("/**") => {
            format!("{tool} of every file below {}", spec.trim_end_matches("/**"))
        }
        _ => format!("{tool} of {spec} and nothing else"),
    }
}
