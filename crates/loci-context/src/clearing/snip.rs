//! Clearing when the window fills, before anything is summarised.

use std::sync::Arc;

use loci_core::entry::Entry;

use super::{clear, results};
use crate::compaction::rounds;
use crate::replaced::{Clearing, Replaced};
use crate::window::Window;

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
