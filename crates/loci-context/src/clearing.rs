//! Clearing old tool results without a model: their content becomes a fixed marker, call and result stay a pair.
//!
//! Two rules share the marker. *Snip* comes before a summary: when the window fills, results beyond the newest are
//! cleared, but only when that frees a good part of the window, since every clearing costs the prompt cache behind it.
//! *Cold* clearing comes after a long pause, when the cache has expired anyway: of the compactable tools only the
//! newest results are kept.

mod cold;
mod snip;

use std::collections::HashSet;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::ToolUseId;

use crate::replaced::{Clearing, Replaced, Replacement};
use crate::weight::weight;

pub(crate) use cold::clear_cold;
pub(crate) use snip::snip;

/// What stands in the place of a result that was cleared.
pub const CLEARED: &str = "[Old tool result content cleared]";

/// Results of these tools can be had again, so they may go after a pause.
pub(crate) const COMPACTABLE: [&str; 8] =
    ["Bash", "Glob", "Grep", "WebSearch", "WebFetch", "Edit", "Write", "Read"];
/// How many of them are kept.
pub(crate) const KEPT: usize = 5;
/// Results smaller than this are not worth clearing.
const LEAST_TOKENS: u64 = 100;
/// What a marker takes.
const MARKER_TOKENS: u64 = 12;

/// One result of a path.
struct Found {
    call: ToolUseId,
    tokens: u64,
}

fn clear(old: impl Iterator<Item = Found>) -> Clearing {
    let mut clearing = Clearing::default();
    for found in old.filter(|found| found.tokens >= LEAST_TOKENS) {
        clearing.freed += found.tokens - MARKER_TOKENS;
        clearing.replacements.push(Replacement { call: found.call, content: CLEARED.to_owned() });
    }
    clearing.replacements.reverse();
    clearing
}

/// Returns the results of a path that are not replaced yet, oldest first.
fn results(path: &[Arc<Entry>], replaced: &Replaced) -> Vec<Found> {
    let mut seen = HashSet::new();
    let all = path.iter().flat_map(|entry| &weight(entry).results);
    let here = all.filter(|result| !replaced.has(&result.call) && seen.insert(&result.call));
    here.map(|result| Found { call: result.call.clone(), tokens: result.tokens }).collect()
}

#[cfg(test)]
mod tests;
