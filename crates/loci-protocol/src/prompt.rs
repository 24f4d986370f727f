//! What is said to a session: prompts, and commands of the shell in a person's name.

use loci_core::entry::Attachment;
use loci_core::ids::EntryId;
use loci_core::message::Content;
use serde::{Deserialize, Serialize};

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// What is asked.
    pub content: Content,
    /// The id its transcript entry gets; a fresh one when absent.
    #[serde(default)]
    pub id: Option<EntryId>,
    /// Context that is recorded behind it, as the transcript has it (`{"type": …}`).
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// What was typed, where that stands for what is asked.
    #[serde(default)]
    pub typed: Option<String>,
    /// Whether a schedule said it; no client can say so.
    #[serde(skip)]
    pub is_scheduled: bool,
    /// The words in which mentions are looked for, where those are not all of it: what a front end attaches is no wish of
    /// a person to have files read.
    #[serde(default)]
    pub mentions_from: Option<String>,
    /// What of it a person said, where a command has put other words in the place of those; no client can say so.
    #[serde(skip)]
    pub own_words: Option<String>,
    /// Whether it is sent as it is: no slash commands are looked for in it, and no mentions.
    #[serde(default)]
    pub is_verbatim: bool,
    /// Whether it is only recorded: the model hears of it with the next prompt.
    #[serde(default)]
    pub is_unasked: bool,
    /// The message from which on everything is kept word for word, where it asks for a compaction.
    #[serde(default)]
    pub keeps_from: Option<EntryId>,
}

impl Prompt {
    /// Makes a prompt with nothing attached.
    pub fn new(content: Content, id: Option<EntryId>) -> Self {
        Self {
            content,
            id,
            attachments: Vec::new(),
            typed: None,
            mentions_from: None,
            own_words: None,
            is_scheduled: false,
            is_verbatim: false,
            is_unasked: false,
            keeps_from: None,
        }
    }

    /// Returns what was typed.
    pub fn typed_text(&self) -> String {
        self.typed.clone().unwrap_or_else(|| self.content.text())
    }

    /// Returns the words of a person in which mentions are looked for; what a schedule says is the model's.
    pub fn mention_text(&self) -> String {
        let typed = || self.mentions_from.clone().unwrap_or_else(|| self.content.text());
        let is_typed = self.own_words.is_some() || !self.is_scheduled;
        self.own_words.clone().unwrap_or_else(|| if is_typed { typed() } else { String::new() })
    }

    /// Returns the words of others in which mentions are looked for: of a skill, of what its commands print, of a server's
    /// prompt, of a schedule.
    pub fn foreign_text(&self) -> String {
        let is_foreign = self.own_words.is_some() || self.is_scheduled;
        if is_foreign { self.content.text() } else { String::new() }
    }

    /// Puts the words that a command stands for in its place.
    pub fn expand(&mut self, content: Content) {
        self.own_words = Some(self.mention_text());
        self.content = content;
    }

    /// Makes a prompt of plain text.
    pub fn text(text: &str) -> Self {
        Self::new(Content::Text(text.to_owned()), None)
    }
}

/// A prompt that waits while a turn is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedPrompt {
    /// An id to speak of it by.
    pub id: String,
    /// What is asked.
    pub prompt: Prompt,
}

/// A command of the shell that a person runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCommand {
    /// The command.
    pub command: String,
    /// Whether the model answers to what it printed; else it hears of it with the next prompt.
    pub is_answered: bool,
    /// What came of it, where the front end has run it already: on the person's own terminal.
    pub ran: Option<ShellOutput>,
}

/// What a command of the person printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellOutput {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error; all that it printed, where it failed.
    pub stderr: String,
    /// Its code, where it ended by itself.
    pub exit_code: Option<i32>,
    /// Whether it was stopped.
    pub is_interrupted: bool,
}
