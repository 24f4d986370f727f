//! The wire front ends: headless text, json and stream-json, and the Agent Client Protocol.
//!
//! A front end turns input into engine commands and engine events into output; it decides nothing. Only this
//! crate knows the shape of the protocol's frames.

mod acp;
mod client_input;
mod control;
mod cost;
mod frame;
mod headless;
mod initialize;
mod initialize_answer;
mod input;
mod outgoing;
mod output;
mod result_frame;
mod session_query;
mod signals;
mod task_frames;

pub use acp::Acp;
pub use client_input::ClientInput;
pub use headless::{Exit, Headless, InputFormat, OutputFormat, OutputStyles, PermissionPrompter};
