//! Searching what was said: all sessions through an index, and one session without.
//!
//! - `index` keeps words and the passages that have them, and answers `loci search` (`docs/design/index.md`).
//! - `recall` looks up earlier messages of one session in its transcript, from before compactions too, and memories and
//!   other sessions of its project.
//!
//! Neither is the truth: an index that is missing or behind costs time, never a result.

pub(crate) mod index;
mod recall;

pub use index::{
    Hit, IndexUse, NoObserver, SearchError, SearchFilter, SearchObserver, SearchQuery, SearchResults,
    rebuild_index, search_sessions, update_index,
};
pub use recall::{ProjectRecord, RECALL_TOOL, recall};
