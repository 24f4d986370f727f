//! A session told in stretches: from its beginning, or a compaction, to the next one or the end.
//!
//! The path of a conversation is what is sent now. What was sent earlier is the path as it was then, and since a session
//! file only grows, that is the path of the lines before the boundary. Together the stretches hold every request of
//! the line that leads to the leaf.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Conversation;
use crate::entry::Entry;
use crate::ids::EntryId;

/// The type of line that says which results are sent as something else.
const REPLACEMENT: &str = "content-replacement";

/// What lies between two compactions.
#[derive(Debug, Clone, Default)]
pub struct Stretch {
    /// Its path in sending order, as it was when the stretch ended.
    pub path: Vec<Arc<Entry>>,
    /// How many entries of the path stood there when it began: the boundary, its summary, what was preserved.
    pub n_before: usize,
    /// Lines that replace results, each with the place in the path from which on it counts.
    pub replacements: Vec<(usize, Arc<Entry>)>,
}

/// Returns the stretches of a session file, the oldest first.
pub fn stretches(entries: &[Arc<Entry>]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut end = Some(entries.len());
    while let Some(part) = end.and_then(|end| entries.get(..end)) {
        let path = Conversation::build(part.to_vec()).into_path();
        let boundary = path.first().filter(|first| first.is_compact_boundary());
        let boundary = boundary.and_then(|first| part.iter().rposition(|entry| is_same(entry, first)));
        stretches.push(Stretch::new(part, path, boundary));
        end = boundary;
    }
    stretches.reverse();
    stretches
}

impl Stretch {
    fn new(entries: &[Arc<Entry>], path: Vec<Arc<Entry>>, boundary: Option<usize>) -> Self {
        let by_id: FxHashMap<&EntryId, usize> = entries
            .iter()
            .enumerate()
            .filter_map(|(line, entry)| entry.head().uuid.as_ref().map(|id| (id, line)))
            .collect();
        let line_of = |entry: &Arc<Entry>| entry.head().uuid.as_ref().and_then(|id| by_id.get(id)).copied();
        let stood = |entry: &Arc<Entry>| {
            entry.head().is_compact_summary
                || boundary.is_some_and(|boundary| line_of(entry).is_some_and(|line| line <= boundary))
        };
        let n_before = path.iter().rposition(stood).map_or(0, |last| last + 1);
        let counts_from = |line: usize| match boundary {
            Some(boundary) if line < boundary => 0,
            _ => {
                let later = path[n_before..].iter().position(|entry| line_of(entry) > Some(line));
                later.map_or(path.len(), |later| n_before + later)
            }
        };
        let is_replacement = |entry: &Arc<Entry>| &*entry.head().type_name == REPLACEMENT;
        let lines = entries.iter().enumerate().filter(|(_, entry)| is_replacement(entry));
        let replacements = lines.map(|(line, entry)| (counts_from(line), Arc::clone(entry))).collect();
        Self { path, n_before, replacements }
    }
}

fn is_same(one: &Entry, other: &Entry) -> bool {
    one.head().uuid.is_some() && one.head().uuid == other.head().uuid
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn user(uuid: &str, parent: Value) -> Value {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": uuid}})
    }

    fn answer(uuid: &str, parent: &str) -> Value {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent,
            "message": {"id": uuid, "role": "assistant", "content": [{"type": "text", "text": uuid}]}})
    }

    fn replacement(name: &str) -> Value {
        json!({"type": "content-replacement", "name": name, "replacements": []})
    }

    fn check(lines: &[Value], expected: &[&str]) {
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        let render: Vec<String> = stretches(&entries).iter().map(render).collect();
        assert_eq!(render, expected);
    }

    /// The path, what stood before in brackets, and where replacements begin to count.
    fn render(stretch: &Stretch) -> String {
        let name = |entry: &Arc<Entry>| entry.head().uuid.as_ref().unwrap().to_string();
        let names: Vec<String> = stretch.path.iter().map(name).collect();
        let (before, after) = names.split_at(stretch.n_before);
        let lines = stretch.replacements.iter();
        let lines: String = lines
            .map(|(from, line)| format!(" {}@{from}", line.fields().read::<String>("name").unwrap()))
            .collect();
        format!("[{}] {}{lines}", before.join(" "), after.join(" "))
    }

    #[test]
    fn session_without_compaction_is_one_stretch() {
        let lines =
            [user("u1", Value::Null), answer("a1", "u1"), user("u2", json!("a1")), answer("a2", "u2")];
        check(&lines, &["[] u1 a1 u2 a2"]);
        check(&[], &["[] "]);
    }

    #[test]
    fn each_compaction_begins_another_with_what_it_kept() {
        let kept = json!({"headUuid": "a2", "anchorUuid": "s", "tailUuid": "u3"});
        check(
            &[
                user("u1", Value::Null),
                answer("a1", "u1"),
                replacement("early"),
                user("u2", json!("a1")),
                answer("a2", "u2"),
                user("u3", json!("a2")),
                json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
                    "logicalParentUuid": "u3", "compactMetadata": {"preservedSegment": kept}}),
                json!({"type": "user", "uuid": "s", "parentUuid": "b", "isCompactSummary": true,
                    "message": {"content": "sum"}}),
                answer("a3", "s"),
                replacement("late"),
                user("u4", json!("a3")),
                replacement("last"),
            ],
            &["[] u1 a1 u2 a2 u3 early@2", "[b s a2 u3] a3 u4 early@0 late@5 last@6"],
        );
    }
}
