//! Permission modes: what runs without asking.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much runs without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads in the working directories run; everything else is asked about.
    #[default]
    Default,
    /// File edits in the working directories run too.
    AcceptEdits,
    /// Nothing is changed until a plan is approved.
    Plan,
    /// What would be asked about is put to a classifier first; without one it is asked about.
    Auto,
    /// What would be asked about is denied.
    DontAsk,
    /// Everything runs, but for deny and ask rules and critical removals.
    BypassPermissions,
}

/// Says that a text names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Unknown permission mode: `{0}` (expected default, acceptEdits, plan, auto, dontAsk or bypassPermissions)"
)]
pub struct BadMode(pub String);

impl Mode {
    /// Returns the name used in settings, transcripts and the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = BadMode;

    fn from_str(text: &str) -> Result<Self, BadMode> {
        match text {
            "default" | "manual" => Ok(Self::Default),
            "acceptEdits" => Ok(Self::AcceptEdits),
            "plan" => Ok(Self::Plan),
            "auto" => Ok(Self::Auto),
            "dontAsk" => Ok(Self::DontAsk),
            "bypassPermissions" => Ok(Self::BypassPermissions),
            other => Err(BadMode(other.to_owned())),
        }
    }
}
