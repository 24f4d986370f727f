//! What was typed before: recalled with Up and Down, searched with Ctrl+R, kept in `history.jsonl`.
//!
//! [`PromptHistory`] and [`HistorySearch`] are pure. [`HistoryFile`] is the thread that reads and writes the file, so
//! that the thread that draws never waits for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_storage::config::InputEntry;
use serde_json::{Map, Value, json};

use super::chip::{Chip, ChipContent, Draft, InputMode};

mod file;
mod search;
#[cfg(test)]
mod tests;

pub use file::{HistoryFile, HistoryNews};
pub use search::{HistorySearch, SearchScope, SearchStyles};

/// A prompt of the past.
#[derive(Debug, Clone, PartialEq)]
pub struct PastPrompt {
    /// What was typed.
    pub draft: Draft,
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// The working directory.
    pub project: PathBuf,
    /// The session it was typed in.
    pub session_id: Option<String>,
}

impl PastPrompt {
    /// Reads an entry of the history file.
    pub fn from_entry(entry: &InputEntry) -> Self {
        let chips: Vec<Chip> =
            entry.pasted_contents.iter().filter_map(|(id, value)| pasted_chip(id, value)).collect();
        let (mode, display) = match entry.display.strip_prefix('!') {
            Some(command) => (InputMode::Shell, command),
            None => (InputMode::Prompt, entry.display.as_str()),
        };
        Self {
            draft: Draft::from_display(mode, display, &chips),
            timestamp: entry.timestamp,
            project: entry.project.clone(),
            session_id: entry.session_id.clone(),
        }
    }

    /// Makes the entry of the history file. Pictures are not kept: their labels stay.
    pub fn to_entry(&self) -> InputEntry {
        let mark = if self.draft.mode == InputMode::Shell { "!" } else { "" };
        let mut pasted_contents = Map::new();
        for chip in self.draft.chips() {
            if let ChipContent::Text(content) = &chip.content {
                let value = json!({"id": chip.number, "type": "text", "content": &**content});
                pasted_contents.insert(chip.number.to_string(), value);
            }
        }
        InputEntry {
            display: format!("{mark}{}", self.draft.display()),
            pasted_contents,
            timestamp: self.timestamp,
            project: self.project.clone(),
            session_id: self.session_id.clone(),
        }
    }

    fn reads_like(&self, other: &Draft) -> bool {
        self.draft.mode == other.mode && self.draft.marked == other.marked && self.draft.chips == other.chips
    }
}

/// Reads one of the pasted contents; one without its text is missing.
fn pasted_chip(id: &str, value: &Value) -> Option<Chip> {
    let number = id.parse().ok()?;
    let content = match value.get("content").and_then(Value::as_str) {
        Some(text) if value.get("type").and_then(Value::as_str) != Some("image") => {
            ChipContent::Text(text.into())
        }
        _ => ChipContent::Missing,
    };
    Some(Chip { number, label: String::new(), content })
}

/// The prompts that Up and Down go through, and where they are in them.
#[derive(Debug, Default)]
pub struct PromptHistory {
    /// Those of this session, the latest first.
    own: Vec<Arc<PastPrompt>>,
    /// Whether the latest of them was thrown away: it is in no file.
    is_latest_aside: bool,
    /// Those of earlier sessions of the project, the latest first.
    earlier: Vec<Arc<PastPrompt>>,
    /// Which is shown, counted from the latest.
    at: Option<usize>,
    /// What was typed before the first step, and what was changed in prompts on the way.
    changed: HashMap<Option<usize>, Draft>,
}

impl PromptHistory {
    /// Takes in the prompts of earlier sessions, the latest first. What is shown stays.
    pub fn set_earlier(&mut self, prompts: Vec<PastPrompt>) {
        let own = &self.own;
        let is_new = |prompt: &PastPrompt| !own.iter().any(|own| own.reads_like(&prompt.draft));
        self.earlier = prompts.into_iter().filter(is_new).map(Arc::new).collect();
    }

    /// Adds a prompt that was sent, or put away; returns whether it is to be kept: it is another one than the last.
    pub fn add(&mut self, prompt: PastPrompt) -> bool {
        let was_aside = self.is_latest_aside;
        let is_new = self.add_new(&prompt);
        self.is_latest_aside = false;
        is_new || (was_aside && !prompt.draft.is_empty())
    }

    /// Adds what was typed and thrown away, which is not to be kept.
    pub fn set_aside(&mut self, prompt: PastPrompt) {
        self.is_latest_aside |= self.add_new(&prompt);
    }

    fn add_new(&mut self, prompt: &PastPrompt) -> bool {
        self.rest();
        if prompt.draft.is_empty() || self.prompts().next().is_some_and(|last| last.reads_like(&prompt.draft))
        {
            return false;
        }
        self.own.insert(0, Arc::new(prompt.clone()));
        true
    }

    /// Goes to the prompt before; `current` is what is in the input now.
    pub fn previous(&mut self, current: &Draft) -> Option<Draft> {
        self.go(current, Some(self.at.map_or(0, |at| at + 1)))
    }

    /// Goes to the prompt behind, at last to what was typed before the first step.
    pub fn next(&mut self, current: &Draft) -> Option<Draft> {
        let at = self.at?;
        self.go(current, at.checked_sub(1))
    }

    /// Goes nowhere: the next step begins at the latest prompt.
    pub fn rest(&mut self) {
        self.at = None;
        self.changed.clear();
    }

    /// Returns the latest command of the shell that begins with what is typed and goes on.
    pub fn complete_shell_command(&self, typed: &str) -> Option<String> {
        let is_shell = |prompt: &&Arc<PastPrompt>| prompt.draft.mode == InputMode::Shell;
        let commands = self.prompts().filter(is_shell).map(|prompt| prompt.draft.display());
        let mut goes_on =
            commands.filter(|command| command.len() > typed.len() && command.starts_with(typed));
        if typed.is_empty() { None } else { goes_on.next() }
    }

    fn prompts(&self) -> impl Iterator<Item = &Arc<PastPrompt>> {
        self.own.iter().chain(&self.earlier)
    }

    fn go(&mut self, current: &Draft, to: Option<usize>) -> Option<Draft> {
        let found = match to {
            Some(to) => Some(self.prompts().nth(to)?.draft.clone()),
            None => None,
        };
        let here = self.at.and_then(|at| self.prompts().nth(at)).map(|prompt| prompt.draft.clone());
        if here.is_none_or(|here| here.marked != current.marked || here.mode != current.mode) {
            self.changed.insert(self.at, current.clone());
        }
        self.at = to;
        self.changed.get(&to).cloned().or(found).or_else(|| Some(Draft::default()))
    }
}

/// Makes the prompt of a draft that is sent now.
pub fn past_prompt(draft: Draft, timestamp: i64, project: &Path, session_id: Option<&str>) -> PastPrompt {
    PastPrompt { draft, timestamp, project: project.to_owned(), session_id: session_id.map(str::to_owned) }
}
