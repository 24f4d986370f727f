//! Looking up what was said earlier in a conversation: what is asked, and what is found.

use crate::passage::Voice;

/// What somebody wants to know about earlier messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallQuery {
    /// Which messages are about this.
    Search(RecallSearch),
    /// Which memories, and messages of earlier sessions of the project, are about this.
    SearchProject(RecallSearch),
    /// What a message of another session of the project says.
    QuoteFrom {
        /// The session's id.
        session: String,
        /// The message's id, or the beginning of it.
        message: String,
        /// Where to begin, in characters.
        offset: usize,
        /// How many characters to give.
        limit: usize,
    },
    /// What a message says, word for word, from this character on.
    Quote {
        /// The message's id, or the beginning of it.
        message: String,
        /// Where to begin, in characters.
        offset: usize,
        /// How many characters to give.
        limit: usize,
    },
}

/// A search among earlier messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallSearch {
    /// The query.
    pub query: String,
    /// Only what this voice said.
    pub voice: Option<Voice>,
    /// How many of the best to pass over.
    pub skip: usize,
    /// How many to give.
    pub limit: usize,
    /// How many bytes of each to give.
    pub excerpt: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallResult {
    /// Messages, the best first.
    Found {
        /// How many there are in all.
        n_found: usize,
        /// How many passages were searched.
        n_searched: usize,
        /// Those asked for.
        hits: Vec<RecallHit>,
    },
    /// A message's words.
    Quoted {
        /// Whose and when.
        source: RecallSource,
        /// The words.
        text: String,
        /// How many characters the whole has.
        n_chars: usize,
    },
    /// No message has this id; or several do, by the beginning given.
    NoSuchMessage {
        /// How many do.
        n_matching: usize,
    },
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallHit {
    /// Whose and when.
    pub source: RecallSource,
    /// A part of it, word for word.
    pub excerpt: String,
    /// Where the part begins, in characters.
    pub offset: usize,
    /// How many characters the whole has.
    pub n_chars: usize,
    /// Whether it precedes the last compaction, so that the model no longer sees it.
    pub is_compacted: bool,
}

/// Whose words they are, and when they were said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallSource {
    /// The message's id.
    pub message: String,
    /// Who said it.
    pub voice: Voice,
    /// The tool, of calls and results.
    pub tool: Option<String>,
    /// When, as written.
    pub time: Option<String>,
    /// Where.
    pub place: RecallPlace,
}

/// Where words were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallPlace {
    /// In the conversation that asks.
    Here,
    /// In another session of the project, with this id.
    Session(String),
    /// In a memory; its file stands for the message's id.
    Memory,
}
