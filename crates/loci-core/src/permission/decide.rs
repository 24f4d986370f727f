//! The one decision function, and the same walk told step by step.

use std::path::Path;

use serde_json::Value;

use super::critical::critical_removal;
use super::host::is_documentation;
use super::isolation::outside_worktree;
use super::limits::beyond_limits;
use super::matching::{Restrictions, allowing, may_match, names_host, restrictions};
use super::memory::written_memory;
use super::plan::written_plan;
use super::private_address::is_private_host;
use super::protected::{is_protected, is_protected_target};
use super::sandbox::is_contained;
use super::{Mode, Reason, Rule, Rulebook};
use crate::tool::CallEffects;

/// A call to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's canonical name.
    pub tool: &'a str,
    /// The whole command line, for tools that run one.
    pub command: Option<&'a str>,
    /// The raw arguments, for rules on parameters, agents and skills.
    pub input: &'a Value,
    /// What it would do.
    pub effects: &'a CallEffects,
    /// What hooks said about it.
    pub hook: Option<&'a HookVerdict>,
}

/// What hooks said about a call, the strictest of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookVerdict {
    /// May it run? A yes is held against rules that deny and ask, and against critical removals.
    pub verdict: Verdict,
    /// Why, in the hook's words.
    pub reason: String,
}

/// What a classifier said about a call in mode `auto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classified {
    /// It may run.
    Pass(String),
    /// It may not, and why.
    Block(String),
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

/// One step of a decision and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionStep {
    /// What was looked at.
    pub check: &'static str,
    /// The decision, where this step made it; `None` when it passed the call on.
    pub decision: Option<Decision>,
}

type Check = fn(&Call<'_>, &Rulebook, &Restrictions<'_>) -> Option<Decision>;

impl Decision {
    /// Returns true for a question that mode `auto` may put to a classifier: people's own rules and hooks that
    /// ask are answered by people.
    pub fn is_for_classifier(&self, mode: Mode) -> bool {
        let is_peoples = matches!(
            self.reason.root(),
            Reason::Rule(_)
                | Reason::MayMatch(..)
                | Reason::Hook(_)
                | Reason::Interaction(_)
                | Reason::SessionMove(_)
                | Reason::Blocked(..)
        );
        let is_open = self.verdict == Verdict::Ask || self.is_prompt_denied();
        mode == Mode::Auto && is_open && !is_peoples
    }
}

impl Decision {
    /// Returns true for a question that nobody is asked because settings deny what would be asked about: hooks may still
    /// answer it.
    pub fn is_prompt_denied(&self) -> bool {
        self.verdict == Verdict::Deny && matches!(self.reason, Reason::PromptsDenied(_))
    }
}

impl From<Classified> for Decision {
    fn from(classified: Classified) -> Self {
        match classified {
            Classified::Pass(why) => allow(Reason::Classifier(why)),
            Classified::Block(why) => Self { verdict: Verdict::Deny, reason: Reason::Classifier(why) },
        }
    }
}

/// The order of S-2. The last always answers.
const STEPS: &[(&str, Check)] = &[
    ("hooks that deny", |call, _, _| by_hook(Verdict::Deny, call)),
    ("deny rules", |_, _, rules| rules.denied.map(|rule| by_rule(Verdict::Deny, rule))),
    ("policy of the client for the tool", |call, _, _| forbidden(call.effects)),
    ("a restricted run's directories", |call, book, _| outside_confines(call.effects, book)),
    ("files outside the directories", beyond_limits_of),
    ("the checkout beside a worktree", |call, book, _| outside_worktree(call.effects, book)),
    ("ask rules", |_, _, rules| rules.asked.map(|rule| by_rule(Verdict::Ask, rule))),
    ("hooks that ask", |call, _, _| by_hook(Verdict::Ask, call)),
    ("rules that unknown parts may evade", |call, _, rules| {
        rules.evaded.map(|rule| ask(may_match(rule, call)))
    }),
    ("commands that read outside", |call, book, _| asked_beyond_limits(call, book)),
    ("critical removals", |call, book, _| critical_removal(call, book).map(Reason::CriticalRemoval).map(ask)),
    ("what a person has to say", |call, _, _| call.effects.interaction.map(Reason::Interaction).map(ask)),
    ("bypassed permissions", |_, book, _| bypassed(book)),
    ("a session that moves", |call, _, _| {
        call.effects.moves_session.clone().map(Reason::SessionMove).map(ask)
    }),
    ("the plan", |call, book, _| {
        written_plan(call.effects, book).map(|path| allow(Reason::Plan(path.to_owned())))
    }),
    ("memories", |call, book, _| {
        written_memory(call.effects, book).map(|path| allow(Reason::Memory(path.to_owned())))
    }),
    ("the sandbox", |call, book, _| is_contained(call, book).then(|| allow(Reason::Sandbox))),
    ("protected paths", |call, _, _| protected_write(call.effects)),
    ("private hosts", |call, book, _| private_host(call, book).map(ask)),
    ("allow rules", |call, book, _| allowing(call, book).map(|rule| by_rule(Verdict::Allow, rule))),
    ("hooks that allow", |call, book, _| {
        by_hook(Verdict::Allow, call).filter(|_| may_hooks_allow(call, book))
    }),
    ("only reading", |call, book, _| only_reading(call, book)),
    ("permission mode", |call, book, _| Some(by_mode(call, book))),
];

/// Judges a call.
pub fn decide(call: &Call<'_>, book: &Rulebook) -> Decision {
    let rules = restrictions(call, book);
    let decision = STEPS.iter().find_map(|(_, check)| check(call, book, &rules));
    unasked(decision.unwrap_or_else(|| ask(Reason::NeedsApproval)), book)
}

/// Judges a call and lists what each step said, up to the one that decided.
pub fn explain(call: &Call<'_>, book: &Rulebook) -> Vec<DecisionStep> {
    let rules = restrictions(call, book);
    let mut steps = Vec::new();
    for (name, check) in STEPS {
        let decision = check(call, book, &rules).map(|decision| unasked(decision, book));
        let is_last = decision.is_some();
        steps.push(DecisionStep { check: name, decision });
        if is_last {
            break;
        }
    }
    steps
}

/// Where nobody is asked, a question is a refusal.
fn unasked(decision: Decision, book: &Rulebook) -> Decision {
    if decision.verdict != Verdict::Ask {
        return decision;
    }
    let denied = |reason| Decision { verdict: Verdict::Deny, reason };
    match book.mode {
        Mode::DontAsk => denied(Reason::NotAsked(book.mode, Box::new(decision.reason))),
        _ if book.limits.denies_prompts => denied(Reason::PromptsDenied(Box::new(decision.reason))),
        _ => decision,
    }
}

fn ask(reason: Reason) -> Decision {
    Decision { verdict: Verdict::Ask, reason }
}

fn allow(reason: Reason) -> Decision {
    Decision { verdict: Verdict::Allow, reason }
}

fn by_rule(verdict: Verdict, rule: &Rule) -> Decision {
    Decision { verdict, reason: Reason::Rule(rule.clone()) }
}

fn forbidden(effects: &CallEffects) -> Option<Decision> {
    let why = effects.forbidden.clone()?;
    Some(Decision { verdict: Verdict::Deny, reason: Reason::Forbidden(why) })
}

fn by_hook(verdict: Verdict, call: &Call<'_>) -> Option<Decision> {
    let hook = call.hook.filter(|hook| hook.verdict == verdict)?;
    Some(Decision { verdict, reason: Reason::Hook(hook.reason.clone()) })
}

/// Until a plan is approved, no hook lets a call through that does more than read.
fn may_hooks_allow(call: &Call<'_>, book: &Rulebook) -> bool {
    book.mode != Mode::Plan || call.effects.is_read_only()
}

fn bypassed(book: &Rulebook) -> Option<Decision> {
    let is_on = match book.mode {
        Mode::BypassPermissions => true,
        // Who may bypass permissions is asked to plan, and not held to it.
        Mode::Plan => book.may_bypass,
        Mode::Default | Mode::AcceptEdits | Mode::Auto | Mode::DontAsk => false,
    };
    is_on.then(|| allow(Reason::Mode(book.mode)))
}

/// A restricted run touches nothing outside its directories, nor what nobody can tell to be inside.
fn outside_confines(effects: &CallEffects, book: &Rulebook) -> Option<Decision> {
    if !book.is_confined {
        return None;
    }
    let read = effects.reads.iter().find(|path| !book.may_read(path));
    let is_own = |path: &crate::tool::PathEffect| {
        let only = CallEffects::write(path.clone());
        written_plan(&only, book).is_some() || written_memory(&only, book).is_some()
    };
    let written = effects.writes.iter().find(|path| !book.is_inside(path) && !is_own(path));
    let reason = match (read.or(written), effects.unclear.iter().find(|it| it.is_unknown())) {
        (Some(path), _) => Reason::OutsideDirectories(path.real.clone()),
        (None, Some(unclear)) => Reason::UnclearPath(unclear.text().to_owned()),
        (None, None) => return None,
    };
    Some(Decision { verdict: Verdict::Deny, reason })
}

/// What settings refuse outside the directories, for a tool that names its files.
fn beyond_limits_of(call: &Call<'_>, book: &Rulebook, _: &Restrictions<'_>) -> Option<Decision> {
    beyond_limits(call, book).filter(|decision| decision.verdict == Verdict::Deny)
}

/// The same for commands, which are asked about.
fn asked_beyond_limits(call: &Call<'_>, book: &Rulebook) -> Option<Decision> {
    beyond_limits(call, book).filter(|decision| decision.verdict == Verdict::Ask)
}

fn protected_write(effects: &CallEffects) -> Option<Decision> {
    let spellings = |paths: &mut dyn Iterator<Item = &crate::tool::PathEffect>, is: fn(&Path) -> bool| {
        paths.flat_map(|path| [&path.requested, &path.real]).find(|path| is(path)).cloned()
    };
    let removed = effects.removals.iter().filter_map(|removal| removal.target.as_ref());
    let found = spellings(&mut effects.writes.iter(), is_protected)
        .or_else(|| spellings(&mut removed.into_iter(), is_protected_target))?;
    Some(ask(Reason::ProtectedPath(found)))
}

/// Finds a host that only a rule which names it lets be fetched from (S-33).
fn private_host(call: &Call<'_>, book: &Rulebook) -> Option<Reason> {
    let hosts = call.effects.hosts.iter().filter(|_| is_fetch_only(call.effects));
    let found = hosts.into_iter().find(|host| is_private_host(host) && !names_host(call.tool, host, book))?;
    Some(Reason::PrivateHost(found.clone()))
}

/// Reads inside, and documentation.
fn only_reading(call: &Call<'_>, book: &Rulebook) -> Option<Decision> {
    let effects = call.effects;
    if let (Some(host), true) = (effects.hosts.first(), is_fetch_only(effects)) {
        return effects
            .hosts
            .iter()
            .all(|host| is_documentation(host) && !effects.carries_data)
            .then(|| allow(Reason::Documentation(host.clone())));
    }
    let is_free = effects.is_read_only() && effects.reads.iter().all(|path| book.may_read(path));
    is_free.then(|| allow(Reason::ReadOnly))
}

fn is_fetch_only(effects: &CallEffects) -> bool {
    effects.commands.is_empty() && effects.writes.is_empty() && effects.unknown.is_empty()
}

/// What is left: edits inside where the mode accepts them; for the rest, the reason to ask.
fn by_mode(call: &Call<'_>, book: &Rulebook) -> Decision {
    let effects = call.effects;
    if let Some(what) = effects.unknown.first() {
        return ask(Reason::NotUnderstood(what.clone()));
    }
    if let Some(unclear) = effects.unclear.first() {
        return ask(Reason::UnclearPath(unclear.text().to_owned()));
    }
    if effects.commands.iter().any(|command| command.runs_unknown) {
        return ask(Reason::NotUnderstood("what it runs is only known when it runs".to_owned()));
    }
    if let (Some(host), true) = (effects.hosts.first(), effects.carries_data) {
        return ask(Reason::CarriesData(host.clone()));
    }
    if !effects.grants.is_empty() {
        return ask(Reason::Grants(effects.grants.join(", ")));
    }
    let accepts = book.mode == Mode::AcceptEdits;
    let may_write = |path| {
        let is_redirect = effects.redirects.contains(path);
        (accepts && book.is_inside(path)) || (is_redirect && book.redirect_rule(path).is_some())
    };
    let read_outside = effects.reads.iter().find(|path| !book.may_read(path));
    let write_outside = effects.writes.iter().find(|path| !book.is_inside(path) && !may_write(path));
    if let Some(path) = read_outside.or(write_outside) {
        return ask(Reason::OutsideDirectories(path.real.clone()));
    }
    let only_edits = effects.hosts.is_empty()
        && effects.commands.iter().all(|command| command.is_read_only || (accepts && command.is_edit));
    if only_edits && !effects.writes.is_empty() && effects.writes.iter().all(may_write) {
        return allow(if accepts { Reason::Mode(book.mode) } else { edit_rule(effects, book) });
    }
    match effects.hosts.first().filter(|_| is_fetch_only(effects)) {
        Some(host) => ask(Reason::Reaches(host.clone())),
        None => ask(Reason::NeedsApproval),
    }
}

fn edit_rule(effects: &CallEffects, book: &Rulebook) -> Reason {
    let rule = effects.writes.iter().find_map(|path| book.redirect_rule(path));
    rule.map_or(Reason::ReadOnly, |rule| Reason::Rule(rule.clone()))
}
