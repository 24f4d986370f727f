//! What a shell command would run, read, write and fetch.
//!
//! [`analyse`] is deliberately narrow: it recognises plain and quoted words joined by `&&`, `||`, `;` and `|`,
//! with redirections to `/dev/null` and `2>&1`, and a table of commands that only read. Everything else is
//! reported as unknown, which makes the permission engine ask. What must stay true:
//!
//! 1. A line with anything the grammar here does not cover is never read-only (S-3, S-11).
//! 2. A command is read-only only if every flag is in the table, with its arity known (S-20).
//! 3. Every operand that a read-only command could open is reported as a read (S-21).
//! 4. Of a line that is not understood, the rough parts are still reported as commands, so that rules that
//!    forbid can be matched against them (S-5, S-15).

mod find;
mod git;
mod parts;
mod read_only;
mod table;
mod words;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use parts::top_level_parts;

/// The longest command that is looked at, in characters.
const MAX_COMMAND_CHARS: usize = 10_000;

/// Where a command would run. Words that depend on it (`cd`, `~`) are unknown today.
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
    /// Paths that would be read, as written.
    pub reads: Vec<String>,
    /// Paths that would be written, as written.
    pub writes: Vec<String>,
    /// What is not understood; anything here means the line is not known to be harmless.
    pub unknown: Vec<String>,
}

impl ShellReading {
    /// Returns true when the whole line is understood and changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.unknown.is_empty()
            && self.writes.is_empty()
            && self.commands.iter().all(|command| command.is_read_only)
    }
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
}

/// Returns what `command` would do when bash runs it in `ctx`.
pub fn analyse(command: &str, _ctx: &ShellContext<'_>) -> ShellReading {
    match words::simple_commands(command) {
        Ok(simple) => understood(&simple),
        Err(reason) => not_understood(command, reason),
    }
}

fn understood(simple: &[Vec<words::Word>]) -> ShellReading {
    let mut reading = ShellReading::default();
    for words in simple {
        let values: Vec<&str> = words.iter().map(|word| word.value.as_str()).collect();
        let reads = read_only::reads_of(&values);
        reading.commands.push(ShellCommand {
            text: words::text(words),
            program: values.first().copied().unwrap_or_default().to_owned(),
            is_read_only: reads.is_some(),
        });
        reading.reads.extend(reads.unwrap_or_default());
    }
    reading
}

fn not_understood(command: &str, reason: String) -> ShellReading {
    let commands = parts::rough_parts(command)
        .into_iter()
        .map(|text| ShellCommand {
            program: text.split_whitespace().next().unwrap_or_default().to_owned(),
            text,
            is_read_only: false,
        })
        .collect();
    ShellReading { commands, unknown: vec![reason], ..ShellReading::default() }
}
