//! What a conversation needs before its next request: nothing, old results cleared, or to be made shorter.
//!
//! Cheap steps come first, and each is looked at again after the one before: whoever performs what is needed asks
//! anew, until nothing is.

use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::tool::ToolFactTable;

use crate::clearing::{clear_cold, snip};
use crate::compaction::CompactionGuard;
use crate::replaced::{Clearing, Replaced};
use loci_core::window::Window;

/// A conversation before its next request.
#[derive(Debug, Clone, Copy)]
pub struct ContextState<'a> {
    /// Its entries.
    pub path: &'a [Arc<Entry>],
    /// Results that are replaced.
    pub replaced: &'a Replaced,
    /// What is known of the tools that were called.
    pub tools: &'a ToolFactTable,
    /// How much it may hold.
    pub window: Window,
    /// How much it holds.
    pub tokens: u64,
    /// From how much on it is to be made shorter.
    pub compact_from: u64,
    /// What became of compactions before.
    pub guard: &'a CompactionGuard,
    /// Whether results may be cleared when the window fills.
    pub snips: bool,
    /// Whether they may be after a long pause.
    pub clears_cold: bool,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextAction {
    /// It can be sent.
    Nothing,
    /// These results go first.
    Clear(Clearing),
    /// It must be made shorter.
    Compact,
    /// It should be shorter, but that has stopped helping.
    NoHelp,
}

/// Says what is needed.
pub fn next_context_action(state: &ContextState<'_>) -> ContextAction {
    let ContextState {
        path,
        replaced,
        tools,
        window,
        tokens,
        compact_from,
        guard,
        snips,
        clears_cold,
        now_ms,
    } = *state;
    let thresholds = window.thresholds();
    let cold = || clear_cold(path, replaced, tools, &window, now_ms);
    if let Some(clearing) = clears_cold.then(cold).flatten() {
        return ContextAction::Clear(clearing);
    }
    if tokens < compact_from {
        return ContextAction::Nothing;
    }
    if let Some(clearing) = snips.then(|| snip(path, replaced, &window)).flatten() {
        return ContextAction::Clear(clearing);
    }
    // Without a model there is still the last resort, for what would surely be refused.
    let helps = !guard.is_thrashing() && (guard.may_ask() || tokens >= thresholds.usable);
    if helps { ContextAction::Compact } else { ContextAction::NoHelp }
}
