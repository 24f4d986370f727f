//! What a shell command would run, read, write and remove.
//!
//! [`analyse`] parses a line of bash into a tree, asks a second parser whether it agrees, and walks the tree. What
//! must stay true:
//!
//! 1. A line with anything that is not understood is never read-only and says so (S-3, S-11).
//! 2. Every simple command is reported, wherever it stands, with every way to read it (S-12, S-17).
//! 3. A command is read-only only if every flag is in the table, with its arity known (S-20).
//! 4. Every path that a known command could open, change or remove is reported, from where the shell then stands
//!    (S-18, S-19, S-21); one that only the run will tell is reported as unclear (S-13).
//! 5. Of a line that is not understood, the rough parts are still reported as commands, so that rules that
//!    forbid can be matched against them (S-5, S-15).

mod code;
mod collect;
mod cover;
mod files;
mod find;
mod git;
mod parse;
mod parts;
mod read_only;
mod renames;
mod second_opinion;
mod special;
mod syntax;
mod table;
mod value;
mod wrappers;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use loci_core::tool::{Cover, Unclear};

pub use parts::top_level_parts;

/// The longest command that is looked at, in characters.
const MAX_COMMAND_CHARS: usize = 10_000;

/// Where a command would run.
#[derive(Debug, Clone, Copy)]
pub struct ShellContext<'a> {
    /// The shell's directory.
    pub cwd: &'a Path,
    /// The user's home.
    pub home: &'a Path,
}

/// What a command line would do, as far as it is understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellReading {
    /// The simple commands, in order; rough parts when the line is not understood.
    pub commands: Vec<ShellCommand>,
    /// Paths that would be read.
    pub reads: Vec<ShellPath>,
    /// Paths that would be written, those of redirections too.
    pub writes: Vec<ShellPath>,
    /// Paths that redirections write.
    pub redirects: Vec<ShellPath>,
    /// What would be removed.
    pub removals: Vec<ShellRemoval>,
    /// What would go elsewhere, with all that is in it.
    pub moves: Vec<ShellPath>,
    /// Paths that only the run will tell.
    pub unclear: Vec<Unclear>,
    /// What is not understood; anything here means the line is not known to be harmless.
    pub unknown: Vec<String>,
}

impl ShellReading {
    /// Returns true when the whole line is understood and changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.unknown.is_empty()
            && self.unclear.is_empty()
            && self.writes.is_empty()
            && self.removals.is_empty()
            && self.commands.iter().all(|command| command.is_read_only)
    }
}

/// A path in a command, absolute but not normalised: `..` is left for whoever can follow symlinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellPath {
    /// The path; a pattern with `\` before characters that stand for themselves when it is a glob.
    pub path: PathBuf,
    /// Whether the shell would expand it.
    pub is_glob: bool,
}

/// Something a command would remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellRemoval {
    /// As written.
    pub text: String,
    /// What goes away or is emptied; `None` when only the run will tell.
    pub target: Option<ShellPath>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// The command as rules see it: quotes removed where they change nothing, redirections left out.
    pub text: String,
    /// The program, quotes removed.
    pub program: String,
    /// Whether it is known to change nothing.
    pub is_read_only: bool,
    /// Whether all it does is change the files that are reported as writes.
    pub is_edit: bool,
    /// Whether what it runs is only known when it runs: the program itself, or the code a shell is given.
    pub runs_unknown: bool,
    /// What a rule must match to let it run.
    pub cover: Cover,
    /// Every way to read it.
    pub readings: Vec<String>,
}

/// Returns what `command` would do when bash runs it in `ctx`.
pub fn analyse(command: &str, ctx: &ShellContext<'_>) -> ShellReading {
    let parsed = match parse::parse(command) {
        Ok(parsed) => parsed,
        Err(reason) => return not_understood(command, reason),
    };
    let mut reading = collect::collect(&parsed, ctx);
    reading.unknown.extend(second_opinion::objection(command, &parsed));
    reading
}

fn not_understood(command: &str, reason: String) -> ShellReading {
    let commands = parts::rough_parts(command)
        .into_iter()
        .map(|text| ShellCommand {
            program: text.split_whitespace().next().unwrap_or_default().to_owned(),
            readings: parts::rough_readings(&text),
            text,
            is_read_only: false,
            is_edit: false,
            runs_unknown: false,
            cover: Cover::Never,
        })
        .collect();
    ShellReading { commands, unknown: vec![reason], ..ShellReading::default() }
}
