//! The identity of a session, process level: small, usable with no user interface, apart from the app state.
//!
//! It is a value; whoever holds it keeps it in a store, so that listeners hear of a switch. The id and the
//! transcript directory always change together: there is no way to set one alone. Nothing caches a working
//! directory: every path is derived from the identity when it is needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ids::SessionId;
use crate::model::ModelFacts;
use crate::usage::{ModelUsage, Usage};

/// Who this session is and what it has cost.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionIdentity {
    id: SessionId,
    project_dir: PathBuf,
    parent: Option<SessionId>,
    original_cwd: PathBuf,
    project_root: PathBuf,
    is_interactive: bool,
    is_persistent: bool,
    just_compacted: bool,
    /// The model chosen for this session over the settings.
    pub model_override: Option<String>,
    /// The effort chosen for this session over the settings.
    pub effort_override: Option<String>,
    /// What this process has used in it so far.
    pub totals: Totals,
    /// What this process used in sessions that this one took the place of.
    pub carried: Totals,
}

/// Cost, usage and time of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Usage and cost by model.
    pub by_model: BTreeMap<String, ModelUsage>,
    /// Time spent waiting for the API.
    pub api: Duration,
    /// Time spent in tools, this turn.
    pub tools: Duration,
    /// Time spent in hooks.
    pub hooks: Duration,
    /// Lines that its calls have added to files, and taken from them.
    pub lines: ChangedLines,
}

/// How many lines of files changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChangedLines {
    /// Lines more.
    pub added: u64,
    /// Lines less.
    pub removed: u64,
}

impl ChangedLines {
    /// Counts the lines of what a tool that changes files says it has changed (`structuredPatch`, or the content of a new
    /// file).
    pub fn of_result(result: &serde_json::Value) -> Self {
        let hunks = result.get("structuredPatch").and_then(serde_json::Value::as_array);
        let lines = hunks.into_iter().flatten().filter_map(|hunk| hunk.get("lines")?.as_array());
        let lines = lines.flatten().filter_map(serde_json::Value::as_str);
        let counted = lines.fold(Self::default(), |count, line| match line.as_bytes().first() {
            Some(b'+') => Self { added: count.added + 1, ..count },
            Some(b'-') => Self { removed: count.removed + 1, ..count },
            _ => count,
        });
        let is_new = result.get("type").and_then(serde_json::Value::as_str) == Some("create");
        match result.get("content").and_then(serde_json::Value::as_str) {
            Some(content) if is_new && counted == Self::default() => {
                Self { added: content.lines().count() as u64, removed: 0 }
            }
            _ => counted,
        }
    }

    /// Adds further changes.
    pub fn add(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
    }
}

impl Totals {
    /// Returns the cost of all models.
    pub fn cost_usd(&self) -> f64 {
        // Not `sum`: over nothing it gives a negative zero.
        self.by_model.values().fold(0.0, |total, usage| total + usage.cost_usd)
    }

    /// Adds what another run of the session used.
    #[must_use]
    pub fn plus(mut self, other: &Totals) -> Self {
        for (model, usage) in &other.by_model {
            self.by_model.entry(model.clone()).or_default().add_all(usage);
        }
        self.api += other.api;
        self.tools += other.tools;
        self.hooks += other.hooks;
        self.lines.add(other.lines);
        self
    }

    /// Adds one response.
    pub fn add(&mut self, model: &str, facts: &ModelFacts, usage: &Usage) {
        let used = self.by_model.entry(model.to_owned()).or_default();
        used.add(usage, facts.price.as_ref());
        used.keep_facts(facts);
    }
}

/// How a session begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The id.
    pub id: SessionId,
    /// The directory that holds its transcript.
    pub project_dir: PathBuf,
    /// The working directory, symlinks resolved.
    pub cwd: PathBuf,
    /// Whether a person sits at a terminal.
    pub is_interactive: bool,
    /// Whether anything is written.
    pub is_persistent: bool,
}

impl SessionIdentity {
    /// Begins a session; the project root is set here and never moves.
    pub fn new(session: NewSession) -> Self {
        Self {
            id: session.id,
            project_dir: session.project_dir,
            parent: None,
            project_root: session.cwd.clone(),
            original_cwd: session.cwd,
            is_interactive: session.is_interactive,
            is_persistent: session.is_persistent,
            just_compacted: false,
            model_override: None,
            effort_override: None,
            totals: Totals::default(),
            carried: Totals::default(),
        }
    }

    /// Returns what this process has used, in this session and those before it.
    pub fn process_totals(&self) -> Totals {
        self.carried.clone().plus(&self.totals)
    }

    /// Returns the identity after a switch to another session: id and directory together.
    #[must_use]
    pub fn switched(&self, id: SessionId, project_dir: PathBuf) -> Self {
        Self {
            id,
            project_dir,
            parent: None,
            totals: Totals::default(),
            just_compacted: false,
            ..self.clone()
        }
    }

    /// Returns the identity of a new session in the same place, remembering this one when asked.
    #[must_use]
    pub fn regenerated(&self, id: SessionId, lineage: Lineage) -> Self {
        let parent = match lineage {
            Lineage::Child => Some(self.id.clone()),
            Lineage::Fresh => None,
        };
        Self { parent, ..self.switched(id, self.project_dir.clone()) }
    }

    /// The id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session this one grew from.
    pub fn parent(&self) -> Option<&SessionId> {
        self.parent.as_ref()
    }

    /// The transcript file, derived at each call.
    pub fn transcript_path(&self) -> PathBuf {
        self.project_dir.join(format!("{}.jsonl", self.id))
    }

    /// The directory for what belongs to this session besides its transcript.
    pub fn companion_dir(&self) -> PathBuf {
        self.project_dir.join(self.id.as_str())
    }

    /// The directory the process was started in, symlinks resolved.
    pub fn original_cwd(&self) -> &Path {
        &self.original_cwd
    }

    /// The project's root: set once; entering a worktree does not move it.
    pub fn project_root(&self) -> &Path {
        &self.project_root
    }

    /// Whether a person sits at a terminal.
    pub fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// Whether anything is written.
    pub fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Marks that a compaction just happened.
    pub fn mark_compacted(&mut self) {
        self.just_compacted = true;
    }

    /// Reads the mark once: the next reading is false.
    pub fn take_just_compacted(&mut self) -> bool {
        std::mem::take(&mut self.just_compacted)
    }
}

/// Whether a new session remembers the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lineage {
    /// The present session becomes its parent.
    Child,
    /// It stands alone.
    Fresh,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::facts;

    fn id(n: u8) -> SessionId {
        SessionId::parse(&format!("0a0a0a0a-0001-4000-8000-0000000000{n:02}")).unwrap()
    }

    fn session() -> SessionIdentity {
        SessionIdentity::new(NewSession {
            id: id(1),
            project_dir: "/c/projects/-p".into(),
            cwd: "/p".into(),
            is_interactive: false,
            is_persistent: true,
        })
    }

    #[test]
    fn a_switch_moves_id_and_directory_together() {
        let other = session().switched(id(2), "/c/projects/-q".into());
        assert_eq!(other.transcript_path(), Path::new(&format!("/c/projects/-q/{}.jsonl", id(2))));
        assert_eq!(other.companion_dir(), Path::new(&format!("/c/projects/-q/{}", id(2))));
        assert_eq!(other.project_root(), Path::new("/p"));
        assert_eq!(other.parent(), None);
    }

    #[test]
    fn a_new_session_remembers_its_parent_when_asked() {
        let first = session();
        assert_eq!(first.regenerated(id(2), Lineage::Child).parent(), Some(&id(1)));
        assert_eq!(first.regenerated(id(2), Lineage::Fresh).parent(), None);
    }

    #[test]
    fn totals_belong_to_the_session() {
        let mut first = session();
        let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
        first.totals.add("claude-sonnet-4-5", &facts("claude-sonnet-4-5"), &usage);
        first.totals.add("claude-haiku-4-5", &facts("claude-haiku-4-5"), &usage);
        assert!((first.totals.cost_usd() - 4.0).abs() < 1e-9);
        assert_eq!(first.switched(id(2), "/x".into()).totals, Totals::default());
    }

    #[test]
    fn totals_of_two_runs_add_up() {
        let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
        let mut one = Totals::default();
        one.add("claude-sonnet-4-5", &facts("claude-sonnet-4-5"), &usage);
        let mut two = one.clone();
        two.add("claude-haiku-4-5", &facts("claude-haiku-4-5"), &usage);
        let both = one.plus(&two);
        assert_eq!(both.by_model["claude-sonnet-4-5"].input_tokens, 2_000_000);
        assert!((both.cost_usd() - 7.0).abs() < 1e-9);
    }

    #[test]
    fn changed_lines_are_counted_from_what_tools_report() {
        use serde_json::json;
        let patch = |lines: &[&str]| json!({"structuredPatch": [{"lines": lines}]});
        for (result, expected) in [
            (patch(&[" a", "-b", "+c", "+d"]), (2, 1)),
            (json!({"structuredPatch": [{"lines": ["+a"]}, {"lines": ["-b"]}]}), (1, 1)),
            (json!({"type": "create", "content": "a\nb\n", "structuredPatch": []}), (2, 0)),
            (json!({"type": "update", "content": "a\nb\n", "structuredPatch": []}), (0, 0)),
            (json!({"stdout": "+a"}), (0, 0)),
            (json!("+a"), (0, 0)),
        ] {
            let found = ChangedLines::of_result(&result);
            assert_eq!((found.added, found.removed), expected, "{result}");
        }
    }

    #[test]
    fn the_compaction_mark_is_read_once() {
        let mut session = session();
        assert!(!session.take_just_compacted());
        session.mark_compacted();
        assert!(session.take_just_compacted());
        assert!(!session.take_just_compacted());
    }
}
