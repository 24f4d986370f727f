//! The session protocol: what may be asked of a session, and what is heard from it.
//!
//! A front end asks with a [`Request`] and gets the [`Answer`] that belongs to it; beside that it hears [`Event`]s, which are
//! news and nothing else, each with a number that rises ([`Sequenced`]). How a session stands at a moment is a
//! [`SessionView`], which [`SessionView::apply`] keeps up with the events. All of it is plain data that can be written as JSON
//! and read back, so that a session may live in another process.
//!
//! What must stay true:
//! 1. The crate is pure, and uses nothing of ours but `loci-core`.
//! 2. What is serialised is read back as the same value (`tests/it/round_trip.rs`).
//! 3. The schema of all of it is a golden file: a change of the wire shows as a change of that file.

pub mod error;
pub mod event;
pub mod files;
pub mod frame;
pub mod goal;
pub mod mcp;
pub mod model;
pub mod prompt;
pub mod question;
pub mod request;
pub mod side_task;
pub mod slash_command;
pub mod view;

pub use error::{ErrorKind, RequestError};
pub use event::Event;
pub use frame::Sequenced;
pub use request::{Answer, Ask, Done, Reach, Request};
pub use view::{Seat, SessionView};
