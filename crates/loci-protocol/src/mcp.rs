//! MCP servers, as front ends see them, and what may be wanted of them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A server, as the start of a turn tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerState {
    /// What it is called.
    pub name: String,
    /// `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
    pub status: Cow<'static, str>,
    /// Who has brought it: `sdk` for the client, else where it was written down.
    pub source: Cow<'static, str>,
}

/// Something about servers that people should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerError {
    /// The server, or the file.
    pub name: String,
    /// The kind, in a word.
    pub kind: Cow<'static, str>,
    /// What it is.
    pub message: String,
}

/// What may be wanted of MCP servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpAction {
    /// How they are doing.
    Status,
    /// Connect to one anew.
    Reconnect {
        /// Which.
        server: String,
    },
    /// Switch one on or off.
    Toggle {
        /// Which.
        server: String,
        /// Whether it is used from now on.
        is_on: bool,
    },
    /// Put these in the place of those that the client asked for before.
    SetServers {
        /// Entries by name, as configuration files have them.
        servers: Value,
    },
    /// Call a tool, by the name that the model knows it by.
    CallTool {
        /// Which.
        tool: String,
        /// Its arguments.
        input: Value,
    },
    /// Read a resource.
    ReadResource {
        /// Whose.
        server: String,
        /// Which.
        uri: String,
    },
    /// Begin a login at one; the answer has the page to visit.
    Authenticate {
        /// Which.
        server: String,
        /// Where the person comes back to, if not to a port of this machine.
        redirect_uri: Option<String>,
    },
    /// Take the address that a person came back with from a login.
    LoginAnswer {
        /// Which.
        server: String,
        /// The address.
        address: String,
    },
    /// End the login at one.
    ClearAuth {
        /// Which.
        server: String,
    },
    /// Take a message of a server that lives in the client.
    Deliver {
        /// Which.
        server: String,
        /// What it says.
        message: Value,
    },
}
