//! Clearing old tool results without a model: their content becomes a fixed marker, call and result stay a pair.
//!
//! Two rules share the marker. *Snip* comes before a summary: when the window fills, results beyond the newest are
//! cleared, but only when that frees a good part of the window, since every clearing costs the prompt cache behind it.
//! *Cold* clearing comes after a long pause, when the cache has expired anyway: of the tools whose
//! results can be had again only the newest are kept.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use loci_core::conversation::millis;
use loci_core::entry::{Entry, EntryKind};
use loci_core::ids::ToolUseId;
use loci_core::tool::ToolFactTable;

use crate::compaction::rounds;
use crate::replaced::{Clearing, Replaced, Replacement};
use crate::weight::weight;
use loci_core::window::Window;

/// What stands in the place of a result that was cleared.
pub const CLEARED: &str = "[Old tool result content cleared]";

/// How many results of clearable tools are kept after a pause.
pub(crate) const KEPT: usize = 5;
/// How long a pause is, in milliseconds.
const PAUSE_MS: i64 = 60 * 60 * 1_000;
/// Results smaller than this are not worth clearing.
const LEAST_TOKENS: u64 = 100;
/// What a marker takes.
const MARKER_TOKENS: u64 = 12;

/// Clears what is old when the window fills: all results but those of the last round and the newest others that
/// together take no more than a sixth of what there is up to the trigger. `None` when that frees less than an eighth.
pub(crate) fn snip(path: &[Arc<Entry>], replaced: &Replaced, window: &Window) -> Option<Clearing> {
    let trigger = window.thresholds().compact;
    let last_round = rounds(path).last().map_or(0, |round| round.start);
    let mut kept: u64 = results(&path[last_round..], replaced).iter().map(|found| found.tokens).sum();
    let old = results(&path[..last_round], replaced).into_iter().rev().filter(|found| {
        kept += found.tokens;
        kept > trigger / 6
    });
    Some(clear(old)).filter(|clearing| clearing.freed >= trigger / 8)
}

/// Clears results of clearable tools after a pause since the model last spoke; the newest few are kept.
/// `now_ms` is the time in milliseconds since 1970. `None` when there was no pause or nothing worth it.
pub(crate) fn clear_cold(
    path: &[Arc<Entry>],
    replaced: &Replaced,
    facts: &ToolFactTable,
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
    let is_clearable =
        |found: &OldResult| tools.get(&found.call).is_some_and(|tool| facts.facts(tool).is_clearable);
    let old = results(&path[..last_round], replaced).into_iter().filter(is_clearable).rev().skip(KEPT);
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

/// A result of a path that is not replaced yet.
struct OldResult {
    call: ToolUseId,
    tokens: u64,
}

fn clear(old: impl Iterator<Item = OldResult>) -> Clearing {
    let mut clearing = Clearing::default();
    for found in old.filter(|found| found.tokens >= LEAST_TOKENS) {
        clearing.freed += found.tokens - MARKER_TOKENS;
        clearing.replacements.push(Replacement { call: found.call, content: CLEARED.to_owned() });
    }
    clearing.replacements.reverse();
    clearing
}

/// Returns the results of a path that are not replaced yet, oldest first.
fn results(path: &[Arc<Entry>], replaced: &Replaced) -> Vec<OldResult> {
    let mut seen = HashSet::new();
    let all = path.iter().flat_map(|entry| &weight(entry).results);
    let here = all.filter(|result| !replaced.has(&result.call) && seen.insert(&result.call));
    here.map(|result| OldResult { call: result.call.clone(), tokens: result.tokens }).collect()
}

#[cfg(test)]
mod tests;
