//! What calls are judged by: the mode, the rules of all scopes, and the directories of the session.

use std::path::{Path, PathBuf};

use super::path_pattern::Anchors;
use super::rule::Spec;
use super::{BadRule, Mode, Rule, RuleList, RuleOrigin};
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
    /// Where the shell stands.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: PathBuf,
}

impl Rulebook {
    /// Reads a rule into one of the lists; the answer is a complaint about it, if there is one.
    pub fn add(&mut self, list: RuleList, text: &str, origin: &RuleOrigin) -> Option<BadRule> {
        let (rule, complaint) = Rule::parse(text, list, origin);
        match list {
            RuleList::Allow => self.allow.extend(rule),
            RuleList::Ask => self.ask.extend(rule),
            RuleList::Deny => self.deny.extend(rule),
        }
        complaint
    }

    /// Returns true when a deny rule forbids reading this spelling of a path; searches leave such files out.
    pub fn is_read_denied(&self, path: &Path) -> bool {
        self.deny.iter().any(|rule| {
            rule.tool() == "Read"
                && match rule.spec() {
                    Spec::Path(pattern) => pattern.matches(path, &self.anchors()),
                    _ => false,
                }
        })
    }

    /// Returns true when a deny rule takes the whole tool away.
    pub fn is_tool_denied(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.is_bare() && rule.names(tool))
    }

    pub(super) fn anchors(&self) -> Anchors<'_> {
        Anchors { start: self.dirs.first().unwrap_or(&self.cwd), home: &self.home }
    }

    /// Returns true when both spellings lie in the session's directories.
    pub(super) fn is_inside(&self, path: &PathEffect) -> bool {
        is_in(path, &self.dirs)
    }

    /// Returns true when a path may be read without a question.
    pub(super) fn may_read(&self, path: &PathEffect) -> bool {
        self.is_inside(path) || is_in(path, &self.read_dirs) || self.path_rule("Read", path).is_some()
    }

    /// Returns the rule that allows reading (`Read`) or writing (`Edit`) a path, by both spellings (S-27).
    pub(super) fn path_rule(&self, tool: &str, path: &PathEffect) -> Option<&Rule> {
        let anchors = self.anchors();
        self.allow.iter().find(|rule| {
            rule.tool() == tool
                && match rule.spec() {
                    Spec::Path(pattern) => {
                        pattern.matches(&path.requested, &anchors) && pattern.matches(&path.real, &anchors)
                    }
                    _ => false,
                }
        })
    }
}

fn is_in(path: &PathEffect, dirs: &[PathBuf]) -> bool {
    let inside = |spelling: &Path| dirs.iter().any(|dir| is_inside(spelling, dir));
    inside(&path.requested) && inside(&path.real)
}
