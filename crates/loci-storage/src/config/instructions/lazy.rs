//! Instructions that wait: those of directories below the working directory, and rules for certain files.
//!
//! They are met when a file there is read, each once until they are forgotten (a compaction takes them out of
//! the conversation). The order is that of the start: outermost directory first, rules that waited since the
//! start before all others.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::discovery::Discovery;
use super::patterns::RuleSet;
use super::{Diagnostic, InstructionFile, InstructionPlaces, InstructionScope, Instructions, PathRule};

/// So many lists of rules that were found on the way are kept ready.
const MOST_READY: usize = 64;

/// Instructions that wait until a file is read.
#[derive(Debug, Clone)]
pub struct LazyInstructions {
    places: InstructionPlaces,
    /// Rules that were found at the start.
    rules: Vec<PathRule>,
    /// Their patterns, once a file was read; and those of rules that were found on the way.
    ready: Option<Arc<ReadyRules>>,
    ready_on_the_way: HashMap<Vec<RuleKey>, Arc<ReadyRules>>,
    /// Real paths of what the conversation has from the start.
    given: Vec<PathBuf>,
    /// Real paths of what was met since.
    met: Vec<PathBuf>,
    /// What could not be used and was said already.
    said: Vec<Diagnostic>,
    /// Whether those of directories are left out.
    is_managed_only: bool,
}

/// Instructions that were met on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggeredInstructions {
    /// The file.
    pub file: InstructionFile,
    /// The patterns of the rule that it is, where it is one for certain files.
    pub patterns: Vec<String>,
}

impl LazyInstructions {
    /// Begins with what was found at the start.
    pub fn new(places: InstructionPlaces, found: &Instructions) -> Self {
        Self {
            places,
            rules: found.path_rules.clone(),
            ready: None,
            ready_on_the_way: HashMap::new(),
            given: found.files.iter().filter_map(|file| file.real.clone()).collect(),
            met: Vec::new(),
            said: Vec::new(),
            is_managed_only: false,
        }
    }

    /// Leaves out all but the administrator's, for an agent that does without the others.
    pub fn keep_managed(&mut self) {
        self.rules.retain(|rule| rule.file.scope == InstructionScope::Managed);
        self.ready = None;
        self.is_managed_only = true;
    }

    /// Notes that the conversation has a file already, as after a resume.
    pub fn mark_loaded(&mut self, path: &Path) {
        self.met.extend(fs::canonicalize(path));
    }

    /// Tells whether a file is one whose text the conversation has as instructions.
    pub fn has(&self, path: &Path) -> bool {
        fs::canonicalize(path).is_ok_and(|real| self.given.contains(&real) || self.met.contains(&real))
    }

    /// Notes that what was met has left the conversation.
    pub fn forget(&mut self) {
        self.met.clear();
    }

    /// Returns what is to be known about a file that was just read, and what there is to say about it.
    pub fn read(&mut self, file: &Path) -> (Vec<TriggeredInstructions>, Vec<Diagnostic>) {
        let Ok(real) = fs::canonicalize(file) else { return (Vec::new(), Vec::new()) };
        let mut met: Vec<TriggeredInstructions> = Vec::new();
        let ready = Arc::clone(self.ready.get_or_insert_with(|| Arc::new(ReadyRules::new(&self.rules))));
        for at in ready.fitting(&real) {
            self.take_rule(&self.rules[at], &mut met);
        }
        let seen = self.given.iter().chain(&self.met).cloned().collect();
        let mut discovery = Discovery::new(&self.places).without(seen);
        for dir in self.dirs_between(&real) {
            discovery.dir(&dir);
        }
        let found = discovery.into_found();
        for at in self.ready_for(&found.path_rules).fitting(&real) {
            self.take_rule(&found.path_rules[at], &mut met);
        }
        let is_itself = |file: &InstructionFile| file.real.as_ref() == Some(&real);
        let files = found.files.into_iter().filter(|file| !is_itself(file));
        met.extend(files.map(|file| TriggeredInstructions { file, patterns: Vec::new() }));
        self.met.extend(met.iter().filter_map(|met| met.file.real.clone()));
        let new: Vec<Diagnostic> =
            found.diagnostics.into_iter().filter(|note| !self.said.contains(note)).collect();
        self.said.extend(new.iter().cloned());
        (met, new)
    }

    /// Returns the patterns of rules that were found on the way; the same rules are read once.
    fn ready_for(&mut self, rules: &[PathRule]) -> Arc<ReadyRules> {
        let key: Vec<RuleKey> = rules.iter().map(|rule| (rule.base.clone(), rule.patterns.clone())).collect();
        if self.ready_on_the_way.len() >= MOST_READY && !self.ready_on_the_way.contains_key(&key) {
            self.ready_on_the_way.clear();
        }
        Arc::clone(self.ready_on_the_way.entry(key).or_insert_with(|| Arc::new(ReadyRules::new(rules))))
    }

    fn take_rule(&self, rule: &PathRule, met: &mut Vec<TriggeredInstructions>) {
        let is_known = |path: &PathBuf| {
            self.met.contains(path) || met.iter().any(|met| met.file.real.as_ref() == Some(path))
        };
        if !rule.file.real.as_ref().is_some_and(is_known) {
            met.push(TriggeredInstructions { file: rule.file.clone(), patterns: rule.patterns.clone() });
        }
    }

    /// Returns the directories below one of ours on the way to a file, outermost first.
    fn dirs_between(&self, file: &Path) -> Vec<PathBuf> {
        let ours = std::iter::once(&self.places.cwd).chain(&self.places.extra_dirs);
        let ours = ours.filter(|_| !self.is_managed_only);
        // Of two that lie in each other, the outer one has the inner one's way in it.
        let Some(top) = ours.filter(|dir| file.starts_with(dir)).min_by_key(|dir| dir.as_os_str().len())
        else {
            return Vec::new();
        };
        let mut dirs: Vec<PathBuf> =
            file.ancestors().skip(1).take_while(|dir| dir != top).map(Path::to_path_buf).collect();
        dirs.reverse();
        dirs
    }
}

/// Where a rule lies and what it speaks of.
type RuleKey = (PathBuf, Vec<String>);

/// Rules by the directory that their patterns are below, ready to be asked.
#[derive(Debug)]
struct ReadyRules {
    /// Each with the numbers of its rules.
    by_base: Vec<(PathBuf, Vec<usize>, RuleSet)>,
}

impl ReadyRules {
    fn new(rules: &[PathRule]) -> Self {
        let mut by_base: Vec<(PathBuf, Vec<usize>)> = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            match by_base.iter_mut().find(|(base, _)| *base == rule.base) {
                Some((_, numbers)) => numbers.push(at),
                None => by_base.push((rule.base.clone(), vec![at])),
            }
        }
        let ready = |(base, numbers): (PathBuf, Vec<usize>)| {
            let set = RuleSet::compile(numbers.iter().map(|at| rules[*at].patterns.as_slice()));
            (base, numbers, set)
        };
        Self { by_base: by_base.into_iter().map(ready).collect() }
    }

    /// Returns the numbers of the rules that speak of a file, in order.
    fn fitting(&self, real: &Path) -> Vec<usize> {
        let mut fitting = Vec::new();
        for (base, numbers, set) in &self.by_base {
            let Ok(below) = real.strip_prefix(base) else { continue };
            fitting.extend(set.fitting(below).into_iter().map(|at| numbers[at]));
        }
        fitting.sort_unstable();
        fitting
    }
}

#[cfg(test)]
mod tests {
    use super::super::patterns::tests::COMPILED;
    use super::*;
    use crate::config::{SettingsSources, discover_instructions};

    /// Patterns are read for the first file, and never again while the rules are the same.
    #[test]
    fn path_rules_are_compiled_once_however_many_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let write = |name: String, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for n in 0..30 {
            write(format!("project/.claude/rules/r{n}.md"), &format!("---\npaths: src/{n}/**\n---\nr{n}"));
            write(format!("project/src/{n}/a.rs"), "");
        }
        write("project/src/.claude/rules/deep.md".to_owned(), "---\npaths: 3/*\n---\ndeep");
        let project = root.join("project");
        let places = InstructionPlaces {
            managed: root.join("etc/CLAUDE.md"),
            managed_text: None,
            user: root.join(".claude/CLAUDE.md"),
            home: root.clone(),
            cwd: project.clone(),
            root: project,
            main_checkout: None,
            extra_dirs: Vec::new(),
            sources: SettingsSources::ALL,
            excludes: Vec::new(),
            allows_external: false,
            reads_agents: false,
        };
        let mut lazy = LazyInstructions::new(places.clone(), &discover_instructions(&places));
        let before = COMPILED.get();
        let mut met = Vec::new();
        for _ in 0..3 {
            for n in 0..30 {
                met.extend(lazy.read(&root.join(format!("project/src/{n}/a.rs"))).0);
            }
        }
        assert_eq!(met.len(), 31, "each once");
        assert_eq!(COMPILED.get() - before, 31);
    }
}
