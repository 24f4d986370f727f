//! What is sent as something else than it was: tool results whose content was replaced, and stretches that were folded.
//!
//! A replacement is a line of its own in the transcript (`content-replacement`), so the result itself stays where it is
//! and a session that is loaded again, or forked, sends the very same bytes. A line names the entry it was written
//! behind, because what it freed counts only until the server has counted anew.

use std::collections::HashMap;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::{EntryId, ToolUseId};
use loci_core::message::{Block, BlockKind};
use serde::Deserialize;
use serde_json::Value;

use crate::collapse::{self, Fold};

/// The type of line that holds replacements.
const LINE: &str = "content-replacement";

/// One result and what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The call whose result it is.
    pub call: ToolUseId,
    /// What is sent instead.
    pub content: String,
}

/// Results that are replaced in one go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clearing {
    /// Which.
    pub replacements: Vec<Replacement>,
    /// About how many tokens that frees.
    pub freed: u64,
}

/// All replacements of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced {
    by_call: HashMap<ToolUseId, Arc<str>>,
    /// What each clearing or fold freed, and the entry it came behind.
    freed: Vec<(EntryId, u64)>,
    /// Stretches that are folded, in order.
    folds: Vec<Fold>,
}

impl Replaced {
    /// Reads the replacements among a session's metadata, in file order.
    pub fn from_metadata<'a>(metadata: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut replaced = Self::default();
        for entry in metadata {
            match &*entry.head().type_name {
                LINE => replaced.read(entry),
                collapse::LINE => replaced.read_fold(entry),
                _ => {}
            }
        }
        replaced
    }

    /// Takes over what a line says; what it does not say in a way we know is left alone.
    fn read(&mut self, entry: &Entry) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Line {
            tool_use_id: ToolUseId,
            content: String,
        }
        let fields = entry.fields();
        let lines: Vec<Value> = fields.read("replacements").unwrap_or_default();
        let lines = lines.into_iter().filter_map(|line| serde_json::from_value::<Line>(line).ok());
        self.by_call.extend(lines.map(|line| (line.tool_use_id, Arc::from(line.content))));
        if let (Some(after), Some(freed)) = (fields.read("afterUuid"), fields.read("freedTokens")) {
            self.freed.push((after, freed));
        }
    }

    /// Takes over a fold; one that is not whole says nothing.
    fn read_fold(&mut self, entry: &Entry) {
        let Ok(fold) = serde_json::from_str::<Fold>(entry.line()) else { return };
        let fields = entry.fields();
        let freed = fields.read("afterUuid").zip(fields.read("freedTokens"));
        self.freed.extend(freed);
        self.folds.push(fold);
    }

    /// Adds a fold that is recorded behind an entry.
    pub fn add_fold(&mut self, fold: Fold, after: Option<EntryId>, freed: u64) {
        self.freed.extend(after.map(|after| (after, freed)));
        self.folds.push(fold);
    }

    /// Returns the view of a path: what is folded is one entry.
    pub fn view(&self, mut path: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
        for fold in &self.folds {
            // A stretch that is not on the path is none of its business.
            fold.apply(&mut path, self);
        }
        path
    }

    /// Adds a clearing that is recorded behind an entry.
    pub fn add(&mut self, clearing: &Clearing, after: Option<EntryId>) {
        for replacement in &clearing.replacements {
            self.by_call.insert(replacement.call.clone(), Arc::from(replacement.content.as_str()));
        }
        self.freed.extend(after.map(|after| (after, clearing.freed)));
    }

    /// Returns true when nothing is replaced.
    pub fn is_empty(&self) -> bool {
        self.by_call.is_empty()
    }

    /// Tells whether a call's result is replaced.
    pub fn has(&self, call: &ToolUseId) -> bool {
        self.by_call.contains_key(call)
    }

    /// Returns what is sent in the place of a call's result.
    pub(crate) fn content(&self, call: &ToolUseId) -> Option<&str> {
        self.by_call.get(call).map(|content| &**content)
    }

    /// Returns what clearings freed that were recorded behind one of these entries.
    pub(crate) fn freed_behind(&self, entries: &[Arc<Entry>]) -> u64 {
        let is_here = |id: &EntryId| entries.iter().any(|entry| entry.head().uuid.as_ref() == Some(id));
        self.freed.iter().filter(|(after, _)| is_here(after)).map(|(_, freed)| freed).sum()
    }

    /// Returns a block as it is sent.
    pub(crate) fn apply(&self, block: Block) -> Block {
        if self.is_empty() || block.kind() != BlockKind::ToolResult {
            return block;
        }
        #[derive(Deserialize)]
        struct Head {
            tool_use_id: ToolUseId,
            #[serde(default)]
            is_error: Option<bool>,
        }
        let Ok(head) = block.json().read::<Head>() else { return block };
        match self.by_call.get(&head.tool_use_id) {
            Some(content) => {
                Block::new_tool_result(&head.tool_use_id, &Value::from(&**content), head.is_error)
            }
            None => block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(value: Value) -> Arc<Entry> {
        Arc::new(Entry::parse(value.to_string()).unwrap())
    }

    fn line() -> Arc<Entry> {
        entry(json!({"type": "content-replacement", "afterUuid": "u-2", "freedTokens": 70,
            "replacements": [{"toolUseId": "t1", "content": "gone"}, {"kind": "from the future"}]}))
    }

    #[test]
    fn a_replaced_result_keeps_its_call_and_whether_it_failed() {
        let replaced = Replaced::from_metadata([line().as_ref()]);
        let result = |call: &str| Block::new_tool_result(&call.into(), &json!("long"), Some(true));
        let shown = replaced.apply(result("t1"));
        assert_eq!(
            shown.json().as_str(),
            r#"{"tool_use_id":"t1","type":"tool_result","content":"gone","is_error":true}"#
        );
        assert_eq!(replaced.apply(result("t2")), result("t2"));
    }

    #[test]
    fn freed_tokens_count_only_behind_their_entry() {
        let replaced = Replaced::from_metadata([line().as_ref()]);
        let here = [entry(json!({"type": "user", "uuid": "u-2"}))];
        assert_eq!((replaced.freed_behind(&here), replaced.freed_behind(&[])), (70, 0));
    }

    #[test]
    fn live_and_loaded_replacements_are_alike() {
        let mut live = Replaced::default();
        let replacements = vec![Replacement { call: "t1".into(), content: "gone".to_owned() }];
        live.add(&Clearing { replacements, freed: 70 }, Some("u-2".into()));
        assert_eq!(live, Replaced::from_metadata([line().as_ref()]));
    }
}
