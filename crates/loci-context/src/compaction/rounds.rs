//! The rounds of a conversation: what was there before the first response, then each response with what followed it.

use std::ops::Range;
use std::sync::Arc;

use loci_core::entry::{Entry, EntryKind};

/// Splits a path into rounds; a new one begins with every response. Stored failures belong to the round they are in.
pub(crate) fn rounds(path: &[Arc<Entry>]) -> Vec<Range<usize>> {
    let mut rounds: Vec<Range<usize>> = Vec::new();
    let mut response = None;
    for (idx, entry) in path.iter().enumerate() {
        let head = entry.head();
        let begins = head.kind == EntryKind::Assistant
            && !head.is_api_error
            && (head.message_id.is_none() || head.message_id != response);
        if begins {
            response.clone_from(&head.message_id);
        }
        match rounds.last_mut() {
            Some(round) if !begins => round.end = idx + 1,
            _ => rounds.push(idx..idx + 1),
        }
    }
    rounds
}
