//! Clearing after a long pause, when the prompt cache has expired anyway.

use std::collections::HashMap;
use std::sync::Arc;

use loci_core::conversation::millis;
use loci_core::entry::{Entry, EntryKind};
use loci_core::ids::ToolUseId;

use super::{COMPACTABLE, Found, KEPT, clear, results};
use crate::compaction::rounds;
use crate::replaced::{Clearing, Replaced};
use crate::weight::weight;
use crate::window::Window;

/// How long a pause is, in milliseconds.
const PAUSE_MS: i64 = 60 * 60 * 1_000;

/// Clears results of compactable tools after a pause since the model last spoke; the newest few are kept.
/// `now_ms` is the time in milliseconds since 1970. `None` when there was no pause or nothing worth it.
pub(crate) fn clear_cold(
    path: &[Arc<Entry>],
    replaced: &Replaced,
    window: &Window,
    now_ms: i64,
) -> Option<Clearing> {
    let last = path.iter().rev().find(|entry| is_said(entry))?;
    let spoke = millis(last.head().timestamp.as_deref()?)?;
    if now_ms.saturating_sub(spoke) <= PAUSE_MS {
        return None;
    }
    let last_round = rounds(path).last().map_or(0, |round| round.start);
    let tools = tools(path);
    let is_compactable =
        |found: &Found| tools.get(&found.call).is_some_and(|tool| COMPACTABLE.contains(tool));
    let old = results(&path[..last_round], replaced).into_iter().filter(is_compactable).rev().skip(KEPT);
    Some(clear(old)).filter(|clearing| clearing.freed >= window.thresholds().usable / 10)
}

fn is_said(entry: &Entry) -> bool {
    entry.head().kind == EntryKind::Assistant && !entry.head().is_api_error
}

/// Returns the names of the tools that were called.
fn tools(path: &[Arc<Entry>]) -> HashMap<&ToolUseId, &str> {
    let calls = path.iter().flat_map(|entry| &weight(entry).calls);
    calls.map(|called| (&called.call, &*called.tool)).collect()
}
