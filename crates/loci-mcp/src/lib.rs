//! MCP servers: what is configured, how they are reached, what they have, and their life.
//!
//! [`config`] says which servers a run has, purely. [`Servers`] starts them and uses them by name. Between the two,
//! a connection speaks the protocol over a transport: a program's pipes, HTTP, a web socket, or the client that drives
//! us. Nothing here knows the engine: what servers ask of people goes through [`ClientSide`].
//!
//! A server may say anything at any time, and nothing, and for ever; what it does costs itself only. The invariants are
//! numbered in `docs/design/mcp.md`.

mod auth;
mod authorizer;
mod catalog;
pub mod config;
mod connection;
mod content;
mod event_socket;
mod fingerprint;
mod limits;
mod log;
mod message;
mod names;
mod opening;
mod program_watch;
mod sandboxed_program;
mod schema;
mod server;
mod server_logins;
mod servers;
pub mod tool_server;
mod transport;

pub use auth::login::Logout;
pub use auth::{LoginKey, LoginStore, Logins, RenewalLock, StoredLogin};
pub use authorizer::{AfterChallenge, Authorizer, AuthorizerFuture, Challenge};
pub use catalog::{PromptArgument, PromptSpec, Resource, ToolSpec};
pub use connection::{
    CallError, ClientSide, ElicitFuture, Elicitation, ElicitationAnswer, Handshake, Negotiation, OnProgress,
    Progress, SampleFuture,
};
pub use content::{CallResult, ContentPart};
pub use event_socket::{EventSocket, SocketNews};
pub use fingerprint::{definition_fingerprint, tool_fingerprint};
pub use limits::Limits;
pub use log::{ServerLog, read_log};
pub use message::RpcError;
pub use names::{is_plain_name, is_reserved, prompt_name, server_part, tool_name, visible_text};
pub use program_watch::{ProgramWatch, WatchedProgram};
pub use sandboxed_program::SandboxMaker;
pub use server::{Offer, ServerStatus, ServerView};
pub use server_logins::{LoginOptions, LoginPrompt};
pub use servers::{OnConnected, ServerSetChange, ServerWorld, Servers};
pub use transport::TransportError;
pub use transport::bridge::{Bridge, BridgeAnswer};
pub use transport::web::HttpClients;
