//! The session itself: how it stands, what it is called, who writes, how it ends.

use serde::{Deserialize, Serialize};

/// Says how the session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookAt;

/// Gives the session a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    /// The name.
    pub title: String,
}

/// Tells hooks that the person is notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    /// `permission_prompt`, `idle_prompt`, `auth_success`, `elicitation_dialog`, ..
    pub kind: String,
    /// What the person is told.
    pub message: String,
    /// A title over it.
    #[serde(default)]
    pub title: Option<String>,
}

/// Nothing more will be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close;

/// Ends the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quit;

/// Takes the writer's seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeSeat {
    /// Whether it is taken from whoever has it.
    #[serde(default)]
    pub force: bool,
}

/// Gives the writer's seat up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseSeat;
