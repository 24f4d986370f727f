//! How well the commands of a session are held, as people and front ends are told it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How well commands are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// Not at all.
    None,
    /// By Landlock and the filter of system calls, or with the machine's `/proc`.
    Weak,
    /// By all three layers.
    Full,
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Weak => "weak",
            Self::Full => "full",
        })
    }
}

/// How the sandbox of a session stands, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStatus {
    /// How well it holds.
    pub level: SandboxLevel,
    /// How many hosts, or patterns of hosts, commands may reach unasked.
    pub n_hosts: usize,
    /// Whether anything may run outside of it.
    pub allows_unsandboxed: bool,
}

impl fmt::Display for SandboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, n_hosts, .. } = self;
        match n_hosts {
            0 => write!(f, "sandbox: {level}, no hosts"),
            1 => write!(f, "sandbox: {level}, 1 host"),
            n => write!(f, "sandbox: {level}, {n} hosts"),
        }
    }
}
