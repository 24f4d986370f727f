//! The editor that a session is driven from, as tools see it: its files, with what is not saved yet, and its terminals.

use std::path::{Path, PathBuf};

use crate::HostFuture;

/// What the editor can do for tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EditorAbilities {
    /// It reads files.
    pub reads_files: bool,
    /// It writes files.
    pub writes_files: bool,
    /// Commands run in its terminals, since somebody asked for that.
    pub runs_commands: bool,
}

/// Why the editor did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditorError {
    /// It said no.
    #[error("the editor refused: {0}")]
    Refused(String),
    /// It is gone.
    #[error("the editor is gone")]
    Gone,
}

/// A command for a terminal of the editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Variables, beside the editor's own.
    pub env: Vec<(String, String)>,
    /// How many bytes of output the editor keeps: the last.
    pub output_bytes: u64,
}

/// What a command in a terminal has printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The text.
    pub text: String,
    /// Whether its beginning is cut off.
    pub is_cut: bool,
}

/// How a command in a terminal ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalExit {
    /// Its code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<String>,
}

/// The editor. Dropping a future calls the request off.
pub trait EditorHost: Send + Sync {
    /// What it can do.
    fn abilities(&self) -> EditorAbilities;

    /// Returns the text of a file as the editor has it.
    fn read_text<'a>(&'a self, path: &'a Path) -> HostFuture<'a, Result<String, EditorError>>;

    /// Replaces the text of a file, and saves it.
    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> HostFuture<'a, Result<(), EditorError>>;

    /// Starts a command in a terminal; returns the terminal's id.
    fn create_terminal(&self, command: TerminalCommand) -> HostFuture<'_, Result<String, EditorError>>;

    /// Waits for the command of a terminal to end.
    fn wait_for_exit<'a>(&'a self, terminal: &'a str) -> HostFuture<'a, Result<TerminalExit, EditorError>>;

    /// Returns what it has printed.
    fn terminal_output<'a>(
        &'a self,
        terminal: &'a str,
    ) -> HostFuture<'a, Result<TerminalOutput, EditorError>>;

    /// Ends the command of a terminal.
    fn kill_terminal<'a>(&'a self, terminal: &'a str) -> HostFuture<'a, Result<(), EditorError>>;

    /// Gives a terminal back.
    fn release_terminal<'a>(&'a self, terminal: &'a str) -> HostFuture<'a, Result<(), EditorError>>;
}
