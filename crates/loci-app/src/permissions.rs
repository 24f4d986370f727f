//! What a session may do: rules, the sandbox, and what an answer keeps for later sessions.

pub mod rules;
pub mod sandbox;
pub(crate) mod save;
