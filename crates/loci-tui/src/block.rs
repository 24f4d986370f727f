//! A conversation as blocks: what is shown, without widths, colours or rows.
//!
//! The application makes blocks of engine events and of entries of a resumed session; each renderer makes rows of them.
//! All strings are as they came: renderers pass them through `text::sanitize` before they become spans.

use std::time::Duration;

/// One thing in the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What the person asked.
    Prompt {
        /// The text, with chips as they were shown.
        text: String,
        /// Names of pictures and files beside it.
        attachments: Vec<String>,
    },
    /// What the model said, as Markdown.
    Answer {
        /// The source.
        markdown: String,
    },
    /// What the model thought.
    Thinking {
        /// The text; empty where it is not told.
        text: String,
        /// How long it took, where that is known.
        duration: Option<Duration>,
    },
    /// A call of a tool.
    Call(CallBlock),
    /// A command of the person (`!`).
    Shell {
        /// The command.
        command: String,
        /// What it printed; escape sequences that colour are kept by the renderer.
        output: String,
        /// Its code, once it ended.
        exit_code: Option<i32>,
    },
    /// What the person should know.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// The text, with what to do next.
        text: String,
    },
    /// The conversation was compacted here.
    Compaction {
        /// What is told of it.
        text: String,
    },
    /// How a turn went, in a line.
    TurnEnd {
        /// The line.
        text: String,
    },
    /// What a slash command printed, as Markdown.
    Output {
        /// The source.
        markdown: String,
    },
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
}

/// A call of a tool, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallBlock {
    /// The tool's name.
    pub tool: String,
    /// Its main argument, for one line.
    pub summary: String,
    /// The agent whose call it is, if it is not the main line's.
    pub agent: Option<String>,
    /// Whether it only looks, as reading and searching do: such calls in a row are told in one line.
    pub is_read_only: bool,
    /// How it stands.
    pub state: CallState,
    /// What it changes in a file, where that is known.
    pub diff: Option<FileDiff>,
    /// What it printed or returned, as text.
    pub output: String,
    /// The plan that a person approved by it, as Markdown.
    pub plan: Option<String>,
}

/// How a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// Its arguments are arriving.
    Arriving,
    /// A person is asked whether it may run.
    Waiting,
    /// It runs.
    Running,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It was not allowed, or interrupted.
    Refused,
}

/// What changes in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Which file, as people read it.
    pub path: String,
    /// What it held.
    pub before: String,
    /// What it holds.
    pub after: String,
    /// The number of the first line of both, from one, where they are a part of the file.
    pub first_line: usize,
}
