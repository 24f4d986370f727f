//! The server as this side sees it.

use std::future::Future;

use loci_context::{ContentHash, EntryName, Hashes};

/// What the server must hold for a text to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Nothing by this name.
    Absent,
    /// A text with this hash.
    Hash(ContentHash),
}

/// What became of a text that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The server has it, now or already.
    Done,
    /// The server has another.
    Conflict,
    /// The server takes no such text by that name, and says why; others may be taken.
    Refused(String),
}

/// Why the server could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It could not be reached, or the connection was cut; whether it did what was asked is not known.
    #[error("Failed to reach the server of the team's memories: `{address}`: {why}")]
    Connection {
        /// Its address.
        address: String,
        /// What happened.
        why: String,
    },
    /// It answered, but not with what was asked for.
    #[error("The server of the team's memories refused ({status}): {why}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        why: String,
    },
    /// Its answer cannot be used.
    #[error("The server of the team's memories gave an answer that cannot be used: {0}")]
    Answer(String),
}

/// A place where the entries of one repository are shared.
pub trait Remote: Sync {
    /// Returns what agreements with it are filed under.
    fn id(&self) -> String;

    /// Returns all entries and their hashes.
    fn list(&self) -> impl Future<Output = Result<Hashes, RemoteError>> + Send;

    /// Returns the text of an entry; `None` when there is none.
    fn fetch(&self, name: &EntryName) -> impl Future<Output = Result<Option<String>, RemoteError>> + Send;

    /// Stores a text, if the entry is what is expected.
    fn store(
        &self,
        name: &EntryName,
        text: &str,
        expected: &Expected,
    ) -> impl Future<Output = Result<Stored, RemoteError>> + Send;
}
