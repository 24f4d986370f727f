//! What settings hold every call to, whatever rules, modes, hooks and people would allow: no file outside the working
//! directories, and no question to a person.
//!
//! A tool that names such a file is refused. A command that would read one is asked about instead, for what it reads is
//! an estimate; what commands write is held by the sandbox.

use std::fmt;

use super::decide::{Call, Decision};
use super::memory::written_memory;
use super::plan::written_plan;
use super::{Reason, Rulebook, Verdict};
use crate::tool::{CallEffects, PathEffect, Unclear};

/// What settings hold every call to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PermissionLimits {
    /// Whether nothing outside the working directories is read (`permissions.blockReadsOutsideWorkingDirectories`).
    pub blocks_reads_outside: bool,
    /// Whether nothing outside them is written (`permissions.blockWritesOutsideWorkingDirectories`).
    pub blocks_writes_outside: bool,
    /// Whether a call that would be asked about is denied (`permissions.denyInsteadOfPrompting`).
    pub denies_prompts: bool,
}

/// What is not done outside the working directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedAccess {
    /// Nothing is read.
    Reads,
    /// Nothing is written.
    Writes,
}

impl PermissionLimits {
    /// Returns what both hold calls to.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            blocks_reads_outside: self.blocks_reads_outside || other.blocks_reads_outside,
            blocks_writes_outside: self.blocks_writes_outside || other.blocks_writes_outside,
            denies_prompts: self.denies_prompts || other.denies_prompts,
        }
    }

    /// Returns true when everything that `other` holds calls to is among these.
    pub fn include(self, other: Self) -> bool {
        self.and(other) == self
    }
}

impl BlockedAccess {
    /// Returns the setting that says so.
    pub fn key(self) -> &'static str {
        match self {
            Self::Reads => "permissions.blockReadsOutsideWorkingDirectories",
            Self::Writes => "permissions.blockWritesOutsideWorkingDirectories",
        }
    }
}

impl fmt::Display for BlockedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// Decides about a call that would leave the working directories though settings hold it inside them.
pub(super) fn beyond_limits(call: &Call<'_>, book: &Rulebook) -> Option<Decision> {
    let limits = book.limits;
    let effects = call.effects;
    let runs_commands = call.command.is_some() || !effects.commands.is_empty();
    if limits.blocks_reads_outside
        && let Some(path) = read_outside(effects, book)
    {
        let verdict = if runs_commands { Verdict::Ask } else { Verdict::Deny };
        return Some(Decision { verdict, reason: Reason::Blocked(BlockedAccess::Reads, path) });
    }
    if limits.blocks_writes_outside
        && !runs_commands
        && let Some(path) = written_outside(effects, book)
    {
        let reason = Reason::Blocked(BlockedAccess::Writes, path);
        return Some(Decision { verdict: Verdict::Deny, reason });
    }
    None
}

/// Returns what would be read outside, as it is known. A rule that allows reading does not make a directory one of the
/// session's.
fn read_outside(effects: &CallEffects, book: &Rulebook) -> Option<String> {
    let is_inside = |path: &PathEffect| book.is_inside(path) || book.is_own(path);
    let known = effects.reads.iter().find(|path| !is_inside(path)).map(shown);
    known.or_else(|| {
        effects.unclear.iter().find_map(|unclear| match unclear {
            Unclear::Read(text) => Some(text.clone()),
            Unclear::Write(_) | Unclear::Redirect(_) => None,
        })
    })
}

/// Returns what would be written outside; plans and memories have places of their own.
fn written_outside(effects: &CallEffects, book: &Rulebook) -> Option<String> {
    let has_own_place = |path: &PathEffect| {
        let only = CallEffects::write(path.clone());
        written_plan(&only, book).is_some() || written_memory(&only, book).is_some()
    };
    let known = effects.writes.iter().find(|path| !book.is_inside(path) && !has_own_place(path)).map(shown);
    known.or_else(|| {
        effects.unclear.iter().find_map(|unclear| match unclear {
            Unclear::Write(text) | Unclear::Redirect(text) => Some(text.clone()),
            Unclear::Read(_) => None,
        })
    })
}

fn shown(path: &PathEffect) -> String {
    path.real.display().to_string()
}
