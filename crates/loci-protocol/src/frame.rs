//! Lines between a session and a client that is not in its process: one JSON object each, ended by a line feed.
//!
//! The first line of each side says which protocol it speaks; another number is refused with both. Requests have an id that
//! their answer repeats; answers may come in any order. Events come as soon as the client has said from where on it wants to
//! hear them.

use std::sync::Arc;

use loci_core::ids::SessionId;
use serde::{Deserialize, Serialize};

use crate::error::RequestError;
use crate::event::Event;
use crate::request::{Answer, Request};

/// The number of the protocol.
pub const PROTOCOL: u32 = 1;

/// What a client says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    /// The protocol that it speaks.
    pub proto: u32,
    /// What it calls itself, for others to see who writes.
    pub client: String,
    /// Whether it only looks on.
    #[serde(default)]
    pub is_viewer: bool,
    /// The last event that it has heard, of which epoch; without it, it hears what comes from now on.
    #[serde(default)]
    pub since: Option<Since>,
}

/// A place in the events of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since {
    /// The run of the session's process: numbers begin anew with each.
    pub epoch: String,
    /// The last event that was heard.
    pub seq: u64,
}

/// What a session says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerHello {
    /// The protocol that it speaks.
    pub proto: u32,
    /// Which session.
    pub session: SessionId,
    /// The run of its process.
    pub epoch: String,
    /// The last event there was.
    pub seq: u64,
    /// What calls itself the session's program.
    pub server: String,
}

/// A line of a client, behind the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientFrame {
    /// An id for the answer, unlike those that wait.
    pub id: u64,
    /// What is asked.
    pub request: Request,
}

/// A line of a session, behind the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerFrame {
    /// A request is answered.
    Answer {
        /// Which.
        id: u64,
        /// With what.
        answer: Answer,
    },
    /// A request is not.
    Error {
        /// Which; none, where the line could not be read.
        id: Option<u64>,
        /// Why.
        error: RequestError,
    },
    /// Something happened.
    Event(Sequenced),
    /// Events are missing, since they came faster than they were read or are too old: look at the session anew.
    Lagged {
        /// The last event that is missing.
        seq: u64,
    },
}

/// An event with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequenced {
    /// It rises; gaps are normal.
    pub seq: u64,
    /// What happened.
    pub event: Arc<Event>,
}
