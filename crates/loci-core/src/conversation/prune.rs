//! Calls and results without their other half are taken out of the path.
//!
//! The API wants every call answered in the very next user message, and every result to answer one. Blocks
//! that break this, or could not stand where they do, are left out, each by itself; an entry that holds nothing
//! else goes whole, otherwise a copy without the block takes its place (the file keeps what it has). Calls at
//! the end of the path that are still open stay: [`super::repair`] closes them. Of two results for one call the
//! first counts.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;

use crate::entry::{BadEntry, Entry, EntryKind};
use crate::ids::{MessageId, ToolUseId};
use crate::message::{Block, BlockKind};
use crate::raw::{RawJson, RawObject};

use super::shape::{Shape, is_usable};

/// Returns the path with every call before its end answered once, and no other results.
pub(super) fn unpaired(path: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    let unpaired = find(&path);
    if unpaired.is_empty() {
        return path;
    }
    let keep = |(at, entry): (usize, Arc<Entry>)| match unpaired.get(&at) {
        None => Some(entry),
        Some(ids) => without(&entry, ids),
    };
    path.into_iter().enumerate().filter_map(keep).collect()
}

/// The blocks to leave out: the position of their entry, and their calls' ids.
type Unpaired = FxHashMap<usize, FxHashSet<ToolUseId>>;

fn find(path: &[Arc<Entry>]) -> Unpaired {
    let mut pairing = Pairing::default();
    for (at, entry) in path.iter().enumerate() {
        let head = entry.head();
        match head.kind {
            EntryKind::Assistant if !head.is_api_error => pairing.block(at, entry, &head.message_id),
            EntryKind::User => pairing.answer(at, entry),
            EntryKind::Attachment => pairing.is_interrupted = true,
            EntryKind::Assistant | EntryKind::System | EntryKind::Progress | EntryKind::Metadata => {}
        }
    }
    let end = if pairing.is_spoken_over { path.len() } else { pairing.resumed_at };
    pairing.give_up_open(end);
    pairing.unpaired
}

#[derive(Default)]
struct Pairing<'a> {
    /// The response whose calls are open, while its blocks follow one another.
    response: Option<&'a Option<MessageId>>,
    open: FxHashMap<ToolUseId, usize>,
    /// Whether words, not just results, came after the response.
    is_spoken_over: bool,
    /// Whether something else came since its last block.
    is_interrupted: bool,
    /// Where the response went on after that; what came before can no longer be closed by appending.
    resumed_at: usize,
    unpaired: Unpaired,
}

impl<'a> Pairing<'a> {
    fn block(&mut self, at: usize, entry: &Entry, id: &'a Option<MessageId>) {
        if self.response != Some(id) {
            self.give_up_open(at);
            self.response = Some(id);
            self.is_spoken_over = false;
            self.resumed_at = 0;
        } else if self.is_interrupted {
            self.resumed_at = at;
        }
        self.is_interrupted = false;
        let shape = Shape::from_entry(entry);
        if shape.has_unusable {
            self.unpaired.entry(at).or_default();
        }
        for call in shape.calls {
            if let Some(earlier) = self.open.insert(call.clone(), at) {
                self.unpaired.entry(earlier).or_default().insert(call);
            }
        }
    }

    fn answer(&mut self, at: usize, entry: &Entry) {
        let shape = Shape::from_entry(entry);
        self.is_spoken_over |= !shape.is_only_results();
        self.response = None;
        if shape.has_unusable {
            self.unpaired.entry(at).or_default();
        }
        for id in shape.results {
            if self.open.remove(&id).is_none() {
                self.unpaired.entry(at).or_default().insert(id);
            }
        }
    }

    /// Leaves out the open calls before a position.
    fn give_up_open(&mut self, end: usize) {
        for (call, at) in self.open.extract_if(|_, at| *at < end) {
            self.unpaired.entry(at).or_default().insert(call);
        }
    }
}

/// Returns the entry without the blocks of these calls and those of a wrong shape; `None` when nothing is left of it.
fn without(entry: &Entry, ids: &FxHashSet<ToolUseId>) -> Option<Arc<Entry>> {
    let fields = entry.fields();
    let mut message = RawObject::parse(fields.get("message")?.get()).ok()?;
    let blocks: Vec<Box<RawValue>> = message.read("content")?;
    let is_user = entry.head().kind == EntryKind::User;
    let kept: Vec<Box<RawValue>> =
        blocks.into_iter().filter(|block| !is_left_out(block, ids, is_user)).collect();
    if kept.is_empty() {
        return None;
    }
    message.set("content", &kept).ok()?;
    with_message(entry, &message.to_json()).ok().map(Arc::new)
}

fn is_left_out(block: &RawValue, ids: &FxHashSet<ToolUseId>, is_user: bool) -> bool {
    let Ok(block) = Block::from_json(RawJson::from_raw(block)) else { return false };
    if !is_usable(&block, is_user) {
        return true;
    }
    let id = match block.kind() {
        BlockKind::ToolUse => block.tool_use().map(|call| call.id),
        BlockKind::ToolResult => block.tool_result().map(|result| result.tool_use_id),
        _ => None,
    };
    id.is_some_and(|id| ids.contains(&id))
}

fn with_message(entry: &Entry, message: &str) -> Result<Entry, BadEntry> {
    let mut fields = RawObject::parse(entry.line())?;
    fields.set("message", serde_json::from_str::<&RawValue>(message)?)?;
    Entry::parse(fields.to_json())
}
