//! Whether a rule applies to a call: broadly for rules that restrict, narrowly for rules that allow (S-5).

use serde_json::Value;

use super::decide::Call;
use super::glob::{Fit, fit, fit_command};
use super::path_pattern::{Anchors, Names, PathPattern};
use super::rule::{Parameter, Spec};
use super::rule_tools::{EDIT, READ, is_kept_from_writing_by_read_rules, is_skill};
use super::sandbox::is_contained;
use super::{Mode, Reason, Rule, RuleList, Rulebook};
use crate::tool::{CommandEffect, Cover, PathEffect, Unclear};

/// What the rules that restrict say about a call.
#[derive(Debug, Default)]
pub(super) struct Restrictions<'b> {
    /// The first deny rule that certainly matches.
    pub(super) denied: Option<&'b Rule>,
    /// The first ask rule that certainly matches, where no deny rule does.
    pub(super) asked: Option<&'b Rule>,
    /// The first of either that may match, depending on what is not known.
    pub(super) evaded: Option<&'b Rule>,
}

impl Restrictions<'_> {
    /// Returns the least that still counts: of the rules that may match, one is enough.
    fn least(&self) -> Fit {
        if self.evaded.is_some() { Fit::Certain } else { Fit::Possible }
    }
}

/// Compares a call with every rule that restricts, once.
pub(super) fn restrictions<'b>(call: &Call<'_>, book: &'b Rulebook) -> Restrictions<'b> {
    let parts = CallParts::from_call(call, book);
    let mut found = Restrictions::default();
    for rule in &book.deny {
        match fit_call(rule, call, &parts, found.least()) {
            Fit::Certain => return Restrictions { denied: Some(rule), ..found },
            Fit::Possible => found.evaded = found.evaded.or(Some(rule)),
            Fit::No => {}
        }
    }
    // A command that runs in the sandbox is asked about where a rule names it, not where one names all commands.
    let is_skipped = |rule: &Rule| {
        rule.is_bare()
            && rule.names_call(call.tool, call.effects.server.as_deref())
            && is_contained(call, book)
    };
    for rule in book.ask.iter().filter(|rule| !is_skipped(rule)) {
        match fit_call(rule, call, &parts, found.least()) {
            Fit::Certain => return Restrictions { asked: Some(rule), ..found },
            Fit::Possible => found.evaded = found.evaded.or(Some(rule)),
            Fit::No => {}
        }
    }
    found
}

/// Tells whether a rule certainly names one of the commands of a call.
pub(super) fn names_command(rule: &Rule, call: &Call<'_>, book: &Rulebook) -> bool {
    fit_call(rule, call, &CallParts::from_call(call, book), Fit::Certain) == Fit::Certain
}

/// A call, taken apart once for all rules.
struct CallParts<'c> {
    anchors: Anchors,
    reads: Vec<Names>,
    writes: Vec<Names>,
    /// Every reading of every command, and the whole line.
    texts: Vec<&'c str>,
    /// Whether it may read, or write, what is not known.
    is_opaque: bool,
    /// Whether a path that is read, or written, is not known.
    has_unclear: ReadsWrites,
}

/// Something that is told of reading and of writing.
struct ReadsWrites {
    read: bool,
    write: bool,
}

impl<'c> CallParts<'c> {
    fn from_call(call: &Call<'c>, book: &Rulebook) -> Self {
        let spellings = |paths: &[PathEffect]| {
            let both = paths.iter().flat_map(|path| {
                let real = (path.real != path.requested).then_some(&path.real);
                std::iter::once(&path.requested).chain(real)
            });
            both.map(|path| Names::from_path(path)).collect()
        };
        let effects = call.effects;
        let readings =
            effects.commands.iter().flat_map(|command| command.readings.iter().chain([&command.text]));
        let mut texts: Vec<&str> = readings.map(String::as_str).chain(call.command).map(str::trim).collect();
        texts.sort_unstable();
        texts.dedup();
        Self {
            anchors: book.anchors(),
            reads: spellings(&effects.reads),
            writes: spellings(&effects.writes),
            texts,
            is_opaque: call.command.is_some()
                && (!effects.unknown.is_empty()
                    || effects.commands.iter().any(CommandEffect::could_be_anything)),
            has_unclear: ReadsWrites {
                read: effects.unclear.iter().any(|it| matches!(it, Unclear::Read(_))),
                write: effects.unclear.iter().any(|it| matches!(it, Unclear::Write(_))),
            },
        }
    }
}

/// Says why a rule may match.
pub(super) fn may_match(rule: &Rule, call: &Call<'_>) -> Reason {
    let effects = call.effects;
    let what = match (effects.unknown.first(), effects.unclear.first()) {
        (Some(what), _) => what.clone(),
        (None, Some(unclear)) => Reason::UnclearPath(unclear.text().to_owned()).to_string(),
        (None, None) => "part of the command is only known when it runs".to_owned(),
    };
    Reason::MayMatch(rule.clone(), what)
}

/// What a rule has to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleFit {
    /// Nothing.
    No,
    /// It covers a part of the call, which needs more than that to run.
    Part,
    /// It may match, depending on what is only known when the call runs.
    Possible,
    /// It matches.
    Certain,
}

/// Returns every rule that is about the call's tool, or about paths and hosts the call may touch, and how it fits.
pub fn fits<'b>(call: &Call<'_>, book: &'b Rulebook) -> Vec<(&'b Rule, RuleFit)> {
    let about = |rule: &Rule| {
        rule.names_call(call.tool, call.effects.server.as_deref()) || matches!(rule.spec(), Spec::Path(_))
    };
    let parts = CallParts::from_call(call, book);
    let restricting = book.deny.iter().chain(&book.ask).map(|rule| {
        let fit = match fit_call(rule, call, &parts, Fit::Possible) {
            Fit::No => RuleFit::No,
            Fit::Possible => RuleFit::Possible,
            Fit::Certain => RuleFit::Certain,
        };
        (rule, fit)
    });
    let allowing = book.allow.iter().map(|rule| (rule, allowing_fit(rule, call, book)));
    let all = restricting.chain(allowing);
    all.filter(|(rule, fit)| about(rule) || *fit != RuleFit::No).collect()
}

fn allowing_fit(rule: &Rule, call: &Call<'_>, book: &Rulebook) -> RuleFit {
    let alone = Rulebook { allow: vec![rule.clone()], ..book.clone() };
    let covers_path = || {
        let paths = call.effects.reads.iter().chain(&call.effects.writes);
        paths.into_iter().any(|path| alone.path_rule(rule.tool(), path).is_some())
    };
    if allowing(call, &alone).is_some() {
        RuleFit::Certain
    } else if call.effects.commands.iter().any(|it| is_covered(it, call, &alone)) || covers_path() {
        RuleFit::Part
    } else {
        RuleFit::No
    }
}

/// Returns true when an allow rule covers one command of a call.
pub(super) fn is_covered(command: &CommandEffect, call: &Call<'_>, book: &Rulebook) -> bool {
    book.allow
        .iter()
        .any(|rule| rule.names_call(call.tool, call.effects.server.as_deref()) && covers(rule, command))
}

/// Compares a restricting rule with every reading of a call; what is less than `least` may be passed over.
fn fit_call(rule: &Rule, call: &Call<'_>, parts: &CallParts<'_>, least: Fit) -> Fit {
    let by_path = match rule.spec() {
        Spec::Path(pattern) => fit_paths(rule, pattern, call, parts),
        // A host that may not be fetched from may not be reached by another tool's connection either.
        Spec::Host(pattern) if call.effects.hosts.iter().any(|host| pattern.matches(host)) => Fit::Certain,
        _ => Fit::No,
    };
    if !rule.names_call(call.tool, call.effects.server.as_deref()) {
        return by_path;
    }
    let by_parameter = match rule.parameter() {
        Some(parameter) if has_parameter(parameter, call.input) => Fit::Certain,
        _ => Fit::No,
    };
    by_path.max(by_parameter).max(fit_spec(rule, call, parts, least))
}

fn fit_spec(rule: &Rule, call: &Call<'_>, parts: &CallParts<'_>, least: Fit) -> Fit {
    let at_least = |is_possible: bool| if is_possible { Fit::Possible } else { Fit::No };
    match rule.spec() {
        Spec::Any => Fit::Certain,
        Spec::Command(pattern) if least == Fit::Certain => {
            let is_hit = parts.texts.iter().any(|text| pattern.matches(text));
            if is_hit { Fit::Certain } else { Fit::No }
        }
        Spec::Command(pattern) => {
            let best = parts.texts.iter().map(|text| pattern.fit(text)).max().unwrap_or(Fit::No);
            best.max(at_least(!call.effects.unknown.is_empty()))
        }
        Spec::Host(pattern) => {
            let is_hit = call.effects.hosts.iter().any(|host| pattern.matches(host));
            if is_hit { Fit::Certain } else { at_least(!call.effects.unknown.is_empty()) }
        }
        Spec::Name(pattern) => fit_name(pattern, call),
        Spec::Path(_) | Spec::Nothing => Fit::No,
    }
}

/// `Read` rules govern what is read and, when they forbid, what is written too; `Edit` rules what is written, and so
/// do rules that restrict another tool that writes.
fn fit_paths(rule: &Rule, pattern: &PathPattern, call: &Call<'_>, parts: &CallParts<'_>) -> Fit {
    let is_read = rule.governed_paths() == READ;
    let forbids_writes =
        !is_read || (rule.list() == RuleList::Deny && is_kept_from_writing_by_read_rules(call.tool));
    let is_hit = |path: &Names| pattern.matches(path, &parts.anchors);
    if (is_read && parts.reads.iter().any(is_hit)) || (forbids_writes && parts.writes.iter().any(is_hit)) {
        return Fit::Certain;
    }
    let is_unclear = (is_read && parts.has_unclear.read) || (forbids_writes && parts.has_unclear.write);
    if is_unclear || parts.is_opaque { Fit::Possible } else { Fit::No }
}

/// Compares a top-level scalar of the raw input; one that was left out never matches.
fn has_parameter(parameter: &Parameter, input: &Value) -> bool {
    let text = match input.get(&parameter.name) {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        _ => return false,
    };
    fit(&parameter.value, &text) == Fit::Certain
}

/// Agents are named by their type; skills by their name, or name and arguments where the pattern has a wildcard.
fn fit_name(pattern: &str, call: &Call<'_>) -> Fit {
    let field = |name: &str| call.input.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    if !is_skill(call.tool) {
        return fit_command(pattern, field("subagent_type"));
    }
    let name = field("skill").trim_start_matches('/');
    let whole = format!("{name} {}", field("args"));
    fit_command(pattern, name).max(fit_command(pattern, &whole))
}

/// Returns the rule that lets a call run.
pub(super) fn allowing<'b>(call: &Call<'_>, book: &'b Rulebook) -> Option<&'b Rule> {
    match call.command {
        Some(line) => allowing_command(line, call, book),
        // Until a plan is approved, no rule lets a tool edit.
        None if book.mode == Mode::Plan && !call.effects.writes.is_empty() => None,
        None => allowing_tool(call, book),
    }
}

fn allowing_tool<'b>(call: &Call<'_>, book: &'b Rulebook) -> Option<&'b Rule> {
    let effects = call.effects;
    let mut named =
        book.allow.iter().filter(|rule| rule.names_call(call.tool, call.effects.server.as_deref()));
    if let Some(rule) = named.clone().find(|rule| rule.is_bare()) {
        return Some(rule);
    }
    let by_spec = named.find(|rule| match rule.spec() {
        Spec::Host(_) => !effects.hosts.is_empty() && effects.unknown.is_empty() && hosts_allowed(call, book),
        Spec::Name(pattern) => fit_name(pattern, call) == Fit::Certain,
        Spec::Any | Spec::Command(_) | Spec::Path(_) | Spec::Nothing => false,
    });
    by_spec.or_else(|| allowing_paths(call, book))
}

fn hosts_allowed(call: &Call<'_>, book: &Rulebook) -> bool {
    let allowed = |host: &String| {
        book.allow.iter().any(|rule| match rule.spec() {
            Spec::Host(pattern) => {
                rule.names_call(call.tool, call.effects.server.as_deref()) && pattern.matches(host)
            }
            _ => false,
        })
    };
    call.effects.hosts.iter().all(allowed)
}

/// Tells whether an allow rule names a host, itself or what is below a domain; one for all hosts names none.
pub(super) fn names_host(tool: &str, host: &str, book: &Rulebook) -> bool {
    book.allow.iter().any(|rule| match rule.spec() {
        Spec::Host(pattern) => rule.names(tool) && pattern.is_specific() && pattern.matches(host),
        _ => false,
    })
}

/// Every path must be covered: writes by `Edit` rules, reads by `Read` rules or by being written anyway.
fn allowing_paths<'b>(call: &Call<'_>, book: &'b Rulebook) -> Option<&'b Rule> {
    let effects = call.effects;
    let is_only_paths = effects.hosts.is_empty() && effects.unknown.is_empty() && effects.unclear.is_empty();
    if !is_only_paths || !effects.commands.is_empty() {
        return None;
    }
    let mut found = None;
    for path in &effects.writes {
        found = Some(book.path_rule(EDIT, path)?);
    }
    for path in effects.reads.iter().filter(|path| !effects.writes.contains(path)) {
        match book.path_rule(READ, path) {
            Some(rule) => found = found.or(Some(rule)),
            None if book.may_read(path) => {}
            None => return None,
        }
    }
    found
}

/// The exact line, or a rule for each of its commands while its paths are in order too.
fn allowing_command<'b>(line: &str, call: &Call<'_>, book: &'b Rulebook) -> Option<&'b Rule> {
    let effects = call.effects;
    let mut named =
        book.allow.iter().filter(|rule| rule.names_call(call.tool, call.effects.server.as_deref()));
    let is_line = |rule: &&Rule| match rule.spec() {
        Spec::Command(pattern) => !pattern.text().contains('*') && pattern.text() == line.trim(),
        _ => false,
    };
    if let Some(rule) = named.clone().find(is_line) {
        return Some(rule);
    }
    if !effects.unknown.is_empty() || !paths_in_order(call, book) {
        return None;
    }
    if effects.commands.is_empty() {
        // A redirection without a command writes what one behind `:` would.
        let is_redirection = !effects.redirects.is_empty() && book.mode != Mode::Plan;
        return named.find(|rule| is_redirection && rule.is_bare());
    }
    if !effects.commands.iter().all(|command| command.is_read_only || is_covered(command, call, book)) {
        return None;
    }
    named.find(|rule| effects.commands.iter().any(|command| covers(rule, command)))
}

/// Reads and writes of commands stay inside; what the shell itself writes needs a rule or a mode for edits, or a rule for
/// every command, which covers it inside as it covers the same write by `tee`.
fn paths_in_order(call: &Call<'_>, book: &Rulebook) -> bool {
    let effects = call.effects;
    let allows_all =
        book.mode != Mode::Plan && book.allow.iter().any(|rule| rule.is_bare() && rule.names(call.tool));
    let may_redirect = |path: &PathEffect| {
        book.redirect_rule(path).is_some()
            || ((allows_all || book.mode == Mode::AcceptEdits) && book.is_inside(path))
    };
    let may_write = |path: &PathEffect| book.is_inside(path) || book.path_rule(EDIT, path).is_some();
    effects.unclear.iter().all(|unclear| allows_all && !unclear.is_unknown())
        && effects.reads.iter().all(|path| book.may_read(path))
        && effects.writes.iter().all(may_write)
        && effects.redirects.iter().all(may_redirect)
}

fn covers(rule: &Rule, command: &CommandEffect) -> bool {
    let pattern = match rule.spec() {
        // A rule for every command is one for those that can be told: what only the run will tell is none (S-13).
        Spec::Any => return !command.runs_unknown,
        Spec::Command(pattern) => pattern,
        Spec::Path(_) | Spec::Host(_) | Spec::Name(_) | Spec::Nothing => return false,
    };
    let is_fit = |text: &str| pattern.fit(text) == Fit::Certain;
    let pattern = pattern.text();
    match &command.cover {
        // A rule for a wrapper speaks of the command behind it only when it names that.
        Cover::Pattern(text) => {
            is_fit(text) || (is_fit(&command.text) && spelled_words(pattern) > n_before(&command.text, text))
        }
        Cover::Spelled { text, n_words } => spelled_words(pattern) >= *n_words && is_fit(text),
        Cover::Exact(text) => !pattern.contains('*') && (pattern == text || pattern == command.text),
        Cover::Never => false,
    }
}

/// Counts the words that stand before a command in a line that ends with it.
fn n_before(line: &str, command: &str) -> usize {
    let n_words = |text: &str| text.split_whitespace().count();
    n_words(line).saturating_sub(n_words(command))
}

/// Counts the whole words before the first wildcard.
fn spelled_words(pattern: &str) -> usize {
    let spaced = pattern.strip_suffix(":*").map(|prefix| format!("{prefix} *"));
    let pattern = spaced.as_deref().unwrap_or(pattern);
    let Some((literal, _)) = pattern.split_once('*') else {
        return usize::MAX;
    };
    let words = literal.split_whitespace().count();
    if literal.ends_with(' ') { words } else { words.saturating_sub(1) }
}
