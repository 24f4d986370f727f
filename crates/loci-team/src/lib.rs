//! Memories of a team: pulled from and pushed to a server, and the server itself.
//!
//! What to fetch and what to send are decisions of `loci-context`, files are `loci-storage`'s; this crate carries the
//! decisions out against a [`Remote`]. The server is behind the feature `server`, because it brings a web framework and a
//! database that nobody needs who only uses one.
//!
//! What must stay true:
//! 1. Nothing leaves that was not scanned for secrets a moment before, in the very text that is sent.
//! 2. A text is replaced, here or there, only if it still is what the decision was made from.
//! 3. Whatever is cut short can be run again: what arrived is found there, and is not sent twice.

mod http;
mod remote;
#[cfg(feature = "server")]
mod server;
mod sync;

pub use http::{HttpRemote, RepositoryName, check_address};
pub use remote::{Expected, Remote, RemoteError, Stored};
#[cfg(feature = "server")]
pub use server::{Database, Inventory, Limits, ServeError, Server, StoreError};
pub use sync::{Line, Outcome, SyncError, pull, push, status};
