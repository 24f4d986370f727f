//! What calls are judged by: the mode, the rules of all scopes, and the directories of the session.

use std::path::{Path, PathBuf};

use super::matching::names_host;
use super::path_pattern::{Anchors, Names};
use super::rule::Spec;
use super::rule_tools::{CD, EDIT, READ};
use super::{
    BadRule, Isolation, Mode, PermissionLimits, Rule, RuleList, RuleOrigin, SandboxRules, split_list,
};
use crate::path::is_inside;
use crate::tool::PathEffect;

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
    /// The directories the session may read and, by mode, change; symlinks resolved. The first is where it started.
    pub dirs: Vec<PathBuf>,
    /// Directories that may be read and never changed: where the session keeps what it shows the model.
    pub read_dirs: Vec<PathBuf>,
    /// Where memories lie, in every spelling; tools write them without a question.
    pub memory_dirs: Vec<PathBuf>,
    /// The file that plans are made in, once there is one.
    pub plan_file: Option<PathEffect>,
    /// Whether the session was started so that permissions could be bypassed.
    pub may_bypass: bool,
    /// Whether files outside the directories are out of reach, whatever rules, modes and people say.
    pub is_confined: bool,
    /// What settings hold every call to.
    pub limits: PermissionLimits,
    /// The worktree that the conversation works in, and the checkout that it leaves alone.
    pub isolation: Option<Isolation>,
    /// The sandbox that commands run in, where there is one.
    pub sandbox: Option<SandboxRules>,
    /// Where the shell stands.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: PathBuf,
}

/// Why a session may not move to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveRefusal<'a> {
    /// This rule forbids it.
    Denied(&'a Rule),
    /// Rules allow other directories, and not this one.
    NotListed,
}

impl Rulebook {
    /// Reads a rule into one of the lists; the answer is a complaint about it, if there is one.
    pub fn add(&mut self, list: RuleList, text: &str, origin: &RuleOrigin) -> Option<BadRule> {
        let (rule, complaint) = Rule::parse(text, list, origin);
        if let (Some(BadRule::Broad(_)), [_, _, ..]) = (&complaint, split_list(text).as_slice()) {
            let rules: Vec<_> = split_list(text).iter().map(|rule| Rule::parse(rule, list, origin)).collect();
            // One of them that cannot be read leaves what the whole may mean.
            if rules.iter().all(|(_, complaint)| complaint.is_none()) {
                self.list_mut(list).extend(rules.into_iter().filter_map(|(rule, _)| rule));
                return Some(BadRule::Several(text.to_owned()));
            }
        }
        self.list_mut(list).extend(rule);
        complaint
    }

    /// Returns a list of rules, to be changed.
    pub(super) fn list_mut(&mut self, list: RuleList) -> &mut Vec<Rule> {
        match list {
            RuleList::Allow => &mut self.allow,
            RuleList::Ask => &mut self.ask,
            RuleList::Deny => &mut self.deny,
        }
    }

    /// Returns a list of rules.
    pub fn list(&self, list: RuleList) -> &[Rule] {
        match list {
            RuleList::Allow => &self.allow,
            RuleList::Ask => &self.ask,
            RuleList::Deny => &self.deny,
        }
    }

    /// Returns true when a deny rule forbids reading this spelling of a path; searches leave such files out.
    pub fn is_read_denied(&self, path: &Path) -> bool {
        let of_reading = self.deny.iter().filter(|rule| rule.governed_paths() == READ);
        let mut patterns = of_reading.filter_map(Rule::path_pattern);
        let Some(first) = patterns.next() else { return false };
        let (anchors, names) = (self.anchors(), Names::from_path(path));
        first.matches(&names, &anchors) || patterns.any(|pattern| pattern.matches(&names, &anchors))
    }

    /// Returns true when an allow rule of a tool names a host, itself or what is below a domain.
    pub fn names_host(&self, tool: &str, host: &str) -> bool {
        names_host(tool, host, self)
    }

    /// Says why a person may not move the session to a directory, by the rules for `Cd`: one that denies either spelling of it
    /// forbids that; where any rule allows, one must allow what it resolves to.
    pub fn why_no_move(&self, requested: &Path, real: &Path) -> Option<MoveRefusal<'_>> {
        let anchors = self.anchors();
        let (requested, real) = (Names::from_path(requested), Names::from_path(real));
        let covers = |rule: &&Rule, names: &Names| match rule.spec() {
            Spec::Any => true,
            Spec::Path(pattern) => pattern.matches(names, &anchors),
            Spec::Command(_) | Spec::Host(_) | Spec::Name(_) | Spec::Nothing => false,
        };
        let mut denying = self.deny.iter().filter(|rule| rule.tool() == CD);
        if let Some(rule) = denying.find(|rule| covers(rule, &requested) || covers(rule, &real)) {
            return Some(MoveRefusal::Denied(rule));
        }
        let allowing: Vec<&Rule> = self.allow.iter().filter(|rule| rule.tool() == CD).collect();
        let is_listed = allowing.is_empty() || allowing.iter().any(|rule| covers(rule, &real));
        (!is_listed).then_some(MoveRefusal::NotListed)
    }

    /// Returns true when a deny rule takes the whole tool away.
    pub fn is_tool_denied(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.is_bare() && rule.names(tool))
    }

    /// Returns true when a rule that allows is for this tool.
    pub fn is_tool_allowed(&self, tool: &str) -> bool {
        self.allow.iter().any(|rule| rule.names_call(tool, None))
    }

    pub(super) fn anchors(&self) -> Anchors {
        Anchors::new(self.dirs.first().unwrap_or(&self.cwd), &self.home)
    }

    /// Returns true when both spellings lie in the session's directories.
    pub(super) fn is_inside(&self, path: &PathEffect) -> bool {
        is_in(path, &self.dirs)
    }

    /// Returns true when both spellings lie where the session keeps things of its own.
    pub(super) fn is_own(&self, path: &PathEffect) -> bool {
        is_in(path, &self.read_dirs) || is_in(path, &self.memory_dirs)
    }

    /// Returns true when a path may be read without a question.
    pub(super) fn may_read(&self, path: &PathEffect) -> bool {
        self.is_inside(path) || is_in(path, &self.read_dirs) || self.path_rule(READ, path).is_some()
    }

    /// Returns the rule that allows reading (`Read`) or writing (`Edit`) a path, by both spellings (S-27).
    pub(super) fn path_rule(&self, tool: &str, path: &PathEffect) -> Option<&Rule> {
        let (anchors, requested, real) =
            (self.anchors(), Names::from_path(&path.requested), Names::from_path(&path.real));
        self.allow.iter().filter(|rule| rule.tool() == tool).find(|rule| {
            rule.path_pattern().is_some_and(|pattern| {
                pattern.matches(&requested, &anchors) && pattern.matches(&real, &anchors)
            })
        })
    }

    /// Returns the rule that lets the shell write a file: one for its path, or inside the session's directories a
    /// bare `Edit`. Until a plan is approved there is none, as there is none for tools that edit.
    pub(super) fn redirect_rule(&self, path: &PathEffect) -> Option<&Rule> {
        if self.mode == Mode::Plan {
            return None;
        }
        self.path_rule(EDIT, path).or_else(|| {
            let mut edits = self.allow.iter().filter(|rule| rule.tool() == EDIT);
            edits.find(|rule| matches!(rule.spec(), Spec::Any) && self.is_inside(path))
        })
    }
}

fn is_in(path: &PathEffect, dirs: &[PathBuf]) -> bool {
    let inside = |spelling: &Path| dirs.iter().any(|dir| is_inside(spelling, dir));
    inside(&path.requested) && inside(&path.real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::RuleSource;

    #[test]
    fn cd_rules_say_where_a_session_may_move() {
        /// Rules that allow, rules that deny, what is asked for, what that is; what refuses it.
        type Case = (
            &'static [&'static str],
            &'static [&'static str],
            &'static str,
            &'static str,
            Option<&'static str>,
        );
        let cases: &[Case] = &[
            (&[], &[], "/x/a", "/x/a", None),
            (&[], &["Cd"], "/x/a", "/x/a", Some("Cd")),
            (&[], &["Cd(//x/**)"], "/x/a", "/x/a", Some("Cd(//x/**)")),
            (&[], &["Cd(//x/**)"], "/link", "/x/a", Some("Cd(//x/**)")),
            (&[], &["Cd(//x/**)"], "/x/a", "/y/a", Some("Cd(//x/**)")),
            (&[], &["Cd(//x/**)"], "/y/a", "/y/a", None),
            (&["Cd(~/code/**)"], &[], "/h/code/a", "/h/code/a", None),
            (&["Cd(~/code/**)"], &[], "/h/code/a", "/y/a", Some("not listed")),
            (&["Cd(~/code/**)"], &["Cd(~/code/b)"], "/h/code/b", "/h/code/b", Some("Cd(~/code/b)")),
            (&["Read(//x/**)", "Bash"], &["Read(//x/**)"], "/x/a", "/x/a", None),
        ];
        for (allow, deny, requested, real, expected) in cases {
            let mut book = Rulebook { dirs: vec!["/p".into()], home: "/h".into(), ..Rulebook::default() };
            let origin = RuleOrigin::new(RuleSource::CommandLine, "/p");
            for (list, rules) in [(RuleList::Allow, allow), (RuleList::Deny, deny)] {
                for rule in *rules {
                    assert_eq!(book.add(list, rule, &origin), None, "{rule}");
                }
            }
            let told = book.why_no_move(Path::new(requested), Path::new(real)).map(|refusal| match refusal {
                MoveRefusal::Denied(rule) => rule.text().to_owned(),
                MoveRefusal::NotListed => "not listed".to_owned(),
            });
            assert_eq!(told.as_deref(), *expected, "{allow:?} {deny:?} {requested} {real}");
        }
    }
}
