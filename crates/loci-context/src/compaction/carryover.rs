//! What goes over a compaction word for word, whatever the summary says: the user's last message, every path that
//! was changed, commands that still run, tasks not done yet. Messages and paths are read off the transcript, a former boundary
//! included.

use std::collections::HashSet;
use std::sync::Arc;

use loci_core::entry::{Entry, EntryKind};
use loci_core::message::BlockKind;
use serde_json::{Value, json};

use super::clip::clip_tokens;
use super::room::RoomShares;
use crate::tokens::prose_tokens;
use crate::weight::weight;

/// The object of a boundary's metadata in which it is kept.
const KEY: &str = "loci";
/// How the mark of an interrupt begins; nobody typed it.
const MARK: &str = "[Request interrupted by user";

/// What is carried over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionCarryover {
    /// The user's last message.
    pub prompt: Option<String>,
    /// Every path that tools changed so far, in order of first change.
    pub changed: Vec<String>,
    /// Commands that run in the background, each with its id.
    pub tasks: Vec<String>,
    /// What the task list still holds, a line a task.
    pub to_do: Vec<String>,
}

impl CompactionCarryover {
    /// Reads it off a path; `tasks` is what runs right now, `to_do` what is still to be done.
    pub fn from_path(path: &[Arc<Entry>], tasks: Vec<String>, to_do: Vec<String>) -> Self {
        let former = path.first().filter(|entry| entry.is_compact_boundary()).map(|entry| former(entry));
        let former = former.unwrap_or_default();
        let said = path.iter().rev().find_map(|entry| prompt(entry).or_else(|| folded(entry).prompt));
        let mut seen = HashSet::new();
        let later = path.iter().flat_map(|entry| {
            folded(entry).changed.into_iter().chain(weight(entry).changed.as_deref().map(str::to_owned))
        });
        let changed = former.changed.into_iter().chain(later);
        Self {
            prompt: said.or(former.prompt),
            changed: changed.filter(|path| seen.insert(path.clone())).collect(),
            tasks,
            to_do,
        }
    }

    /// Adds it to a boundary's metadata, where the next compaction finds it.
    pub fn keep_in(&self, metadata: &mut Value) {
        metadata[KEY] = json!({"lastPrompt": self.prompt, "changedPaths": self.changed});
        if !self.tasks.is_empty() {
            metadata[KEY]["tasks"] = self.tasks.iter().map(String::as_str).collect();
        }
    }

    /// Returns the commands that ran in the background when a boundary was made.
    pub fn tasks_at(boundary: &Entry) -> Vec<String> {
        let metadata: Value = boundary.fields().read("compactMetadata").unwrap_or_default();
        serde_json::from_value(metadata[KEY]["tasks"].clone()).unwrap_or_default()
    }

    /// Takes it out of a boundary's metadata, which others are told without it.
    pub fn strip(mut metadata: Value) -> Value {
        if let Some(fields) = metadata.as_object_mut() {
            fields.shift_remove(KEY);
        }
        metadata
    }

    /// Returns it as words for the model, within its shares; empty when there is nothing to say.
    /// A message that does not fit is cut, and says so; of paths too many the newest are named.
    pub(super) fn text(&self, shares: &RoomShares) -> String {
        let lists = self.lists(shares.carryover / 2);
        let left = shares.carryover.saturating_sub(prose_tokens(&lists)).max(shares.said);
        let said = self.prompt.as_deref().filter(|text| !text.trim().is_empty()).map(|text| {
            format!("The user's last message, word for word:\n{}", clip_tokens(text, left.saturating_sub(20)))
        });
        let parts = [said, Some(lists).filter(|lists| !lists.is_empty())];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }

    fn lists(&self, most_tokens: u64) -> String {
        let lists = [
            list("On the task list, not done yet:", &self.to_do, most_tokens / 3),
            list("Still running in the background:", &self.tasks, most_tokens / 3),
            list("Files changed so far:", &self.changed, most_tokens - most_tokens / 3 * 2),
        ];
        lists.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }
}

/// Lists items under a title; when there are too many, the newest that fit and how many were left out.
fn list(title: &str, items: &[String], most_tokens: u64) -> Option<String> {
    let mut left = most_tokens.saturating_sub(20);
    let fitting = items.iter().rev().take_while(|item| {
        let size = prose_tokens(item) + 1;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    let shown = fitting.count();
    let lines = items[items.len() - shown..].iter().map(|item| format!("- {item}"));
    let more = (shown < items.len()).then(|| format!("- and {} before these", items.len() - shown));
    let lines: Vec<String> = std::iter::once(title.to_owned()).chain(more).chain(lines).collect();
    (!items.is_empty()).then(|| lines.join("\n"))
}

/// Returns what a person said with an entry.
pub(crate) fn prompt(entry: &Entry) -> Option<String> {
    let head = entry.head();
    if head.kind != EntryKind::User || head.is_meta || head.is_compact_summary {
        return None;
    }
    let blocks = entry.blocks();
    if blocks.iter().any(|block| block.kind() == BlockKind::ToolResult) {
        return None;
    }
    let text = blocks.iter().filter_map(|block| block.text()).collect::<Vec<_>>().join("\n");
    Some(text).filter(|text| !text.trim().is_empty() && !text.starts_with(MARK))
}

fn former(boundary: &Entry) -> CompactionCarryover {
    let metadata: Value = boundary.fields().read("compactMetadata").unwrap_or_default();
    parse_carryover(&metadata[KEY])
}

/// Returns what an entry that stands for a folded stretch carries; nothing for any other.
fn folded(entry: &Entry) -> CompactionCarryover {
    match is_fold(entry) {
        true => parse_carryover(&entry.fields().read(KEY).unwrap_or_default()),
        false => CompactionCarryover::default(),
    }
}

/// Tells whether an entry stands for a folded stretch. Such entries are made for the view and never written.
pub(crate) fn is_fold(entry: &Entry) -> bool {
    let head = entry.head();
    head.kind == EntryKind::User && head.is_meta && entry.fields().get(KEY).is_some()
}

fn parse_carryover(object: &Value) -> CompactionCarryover {
    let paths = object["changedPaths"].as_array().into_iter().flatten();
    CompactionCarryover {
        prompt: object["lastPrompt"].as_str().map(str::to_owned),
        changed: paths.filter_map(Value::as_str).map(str::to_owned).collect(),
        ..CompactionCarryover::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn path(values: &[Value]) -> Vec<Arc<Entry>> {
        values.iter().map(|value| Arc::new(Entry::parse(value.to_string()).unwrap())).collect()
    }

    fn user(content: Value) -> Value {
        json!({"type": "user", "message": {"content": content}})
    }

    fn edit(path: &str) -> Value {
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
            "toolUseResult": {"filePath": path, "structuredPatch": []}})
    }

    #[test]
    fn carryover_is_read_from_path_and_former_boundary() {
        let mut metadata = json!({"trigger": "auto"});
        let before = CompactionCarryover {
            prompt: Some("first".to_owned()),
            changed: vec!["/p/a".to_owned()],
            ..CompactionCarryover::default()
        };
        before.keep_in(&mut metadata);
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata});
        let read =
            json!({"type": "user", "toolUseResult": {"type": "text", "file": {"filePath": "/p/read"}}});
        let entries = path(&[boundary.clone(), edit("/p/b"), edit("/p/a"), read]);
        let found = CompactionCarryover::from_path(&entries, vec!["b1: make".to_owned()], Vec::new());
        assert_eq!(found.prompt.as_deref(), Some("first"), "no newer one is on the path");
        assert_eq!(found.changed, ["/p/a", "/p/b"]);
        let meta = json!({"type": "user", "isMeta": true, "message": {"content": "go on"}});
        let mark = user(json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]));
        let summary = json!({"type": "user", "isCompactSummary": true, "message": {"content": "s"}});
        let entries = path(&[boundary, summary, user(json!("second")), edit("/p/c"), meta, mark]);
        assert_eq!(
            CompactionCarryover::from_path(&entries, Vec::new(), Vec::new()).prompt.as_deref(),
            Some("second")
        );
        assert_eq!(CompactionCarryover::strip(metadata), json!({"trigger": "auto"}));
    }

    #[test]
    fn carryover_text_for_the_model() {
        let carryover = CompactionCarryover {
            prompt: Some("Make the tests pass.\nDo not touch main.".to_owned()),
            changed: vec!["/p/a.rs".to_owned(), "/p/b.rs".to_owned()],
            tasks: vec!["b1c2: cargo watch".to_owned()],
            to_do: vec!["2. [pending] Print".to_owned()],
        };
        expect![[r#"
            The user's last message, word for word:
            Make the tests pass.
            Do not touch main.

            On the task list, not done yet:
            - 2. [pending] Print

            Still running in the background:
            - b1c2: cargo watch

            Files changed so far:
            - /p/a.rs
            - /p/b.rs"#]]
        .assert_eq(&carryover.text(&shares(4_000, 0)));
        assert_eq!(CompactionCarryover::default().text(&shares(4_000, 0)), "");
    }

    fn shares(carryover: u64, said: u64) -> RoomShares {
        RoomShares { summary: 0, carryover, said, all: 0 }
    }

    /// However much there is, it stays within its share.
    #[test]
    fn carryover_stays_within_its_share() {
        let carryover = CompactionCarryover {
            prompt: Some("please ".repeat(20_000)),
            changed: (0..5_000).map(|n| format!("/project/source/file{n}.rs")).collect(),
            tasks: (0..500).map(|n| format!("b{n}: sleep {n}")).collect(),
            to_do: (0..500).map(|n| format!("{n}. [pending] task {n}")).collect(),
        };
        for most in [0, 100, 1_000, 16_000] {
            let text = carryover.text(&shares(most, 0));
            assert!(prose_tokens(&text) <= most + 120, "{most}: {}", prose_tokens(&text));
        }
        let text = carryover.text(&shares(1_000, 0));
        assert!(text.contains("file4999.rs") && text.contains("before these"), "{text}");
        assert!(text.contains("characters left out"), "{text}");
        let text = carryover.text(&shares(1_000, 36_000));
        assert!(!text.contains("characters left out"), "a message may need more than the rest");
        assert!(prose_tokens(&text) <= 1_000 + 36_000);
    }
}
