//! Instructions that wait: those of directories below the working directory, and rules for certain files.
//!
//! They are met when a file there is read, each once until they are forgotten (a compaction takes them out of
//! the conversation). The order is that of the start: outermost directory first, rules that waited since the
//! start before all others.

use std::fs;
use std::path::{Path, PathBuf};

use super::discovery::Discovery;
use super::{
    Diagnostic, InstructionFile, InstructionPlaces, InstructionScope, Instructions, PathRule, patterns,
};

/// Instructions that wait until a file is read.
#[derive(Debug, Clone)]
pub struct LazyInstructions {
    places: InstructionPlaces,
    /// Rules that were found at the start.
    rules: Vec<PathRule>,
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
            given: found.files.iter().filter_map(|file| file.real.clone()).collect(),
            met: Vec::new(),
            said: Vec::new(),
            is_managed_only: false,
        }
    }

    /// Leaves out all but the administrator's, for an agent that does without the others.
    pub fn keep_managed(&mut self) {
        self.rules.retain(|rule| rule.file.scope == InstructionScope::Managed);
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
        for rule in &self.rules {
            self.take_rule(rule, &real, &mut met);
        }
        let seen = self.given.iter().chain(&self.met).cloned().collect();
        let mut discovery = Discovery::new(&self.places).without(seen);
        for dir in self.dirs_between(&real) {
            discovery.dir(&dir);
        }
        let found = discovery.into_found();
        for rule in &found.path_rules {
            self.take_rule(rule, &real, &mut met);
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

    fn take_rule(&self, rule: &PathRule, real: &Path, met: &mut Vec<TriggeredInstructions>) {
        let is_known = |path: &PathBuf| {
            self.met.contains(path) || met.iter().any(|met| met.file.real.as_ref() == Some(path))
        };
        let Ok(below) = real.strip_prefix(&rule.base) else { return };
        if rule.file.real.as_ref().is_some_and(is_known) || !patterns::fits(&rule.patterns, below) {
            return;
        }
        met.push(TriggeredInstructions { file: rule.file.clone(), patterns: rule.patterns.clone() });
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
