//! MCP servers.

use loci_core::permission::Mode;
use serde::{Deserialize, Serialize};

use crate::mcp::McpAction;

/// Looks after MCP servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpCall {
    /// What is wanted.
    pub action: McpAction,
}

/// Asks about the calls of a server where the mode of the session would let them run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetServerMode {
    /// The server.
    pub server: String,
    /// What its calls are judged in: `default` or `auto`; none takes that back.
    #[serde(default)]
    pub mode: Option<Mode>,
}
