//! What an entry weighs: how much of a model's window it takes, measured once.
//!
//! Entries never change, and a conversation is measured before every request. So the figures stay with the entry; how
//! they are come by is the business of whoever counts tokens, not of this crate.

use crate::ids::{EntryId, ToolUseId};

/// The figures of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weight {
    /// About how many tokens it adds to what is sent.
    pub tokens: u64,
    /// The results of tools in it.
    pub results: Box<[ResultWeight]>,
    /// The calls in it.
    pub calls: Box<[CalledTool]>,
    /// How many tokens the server counted up to the response it belongs to.
    pub counted: Option<u64>,
    /// Whether anything is said in it, in words.
    pub has_words: bool,
    /// The file that a tool says it changed.
    pub changed: Option<Box<str>>,
    /// Of a boundary: the entries that it preserved.
    pub preserved: Box<[EntryId]>,
}

/// What one result of a tool takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultWeight {
    /// The call it answers.
    pub call: ToolUseId,
    /// About how many tokens.
    pub tokens: u64,
}

/// Which tool a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledTool {
    /// The call.
    pub call: ToolUseId,
    /// The tool's name.
    pub tool: Box<str>,
}
