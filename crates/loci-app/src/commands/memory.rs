//! `/memory`: the instruction files in force, the memories, and those that wait for a word.

use loci_context::MemoryFile;
use loci_engine::{LocalOutcome, SessionSnapshot};
use loci_stdx::truncate_chars;
use loci_storage::memory::{MemoryArea, MemoryText, memory_files};

use super::{SessionCommands, cell, config, refused};
use crate::memory_review::{self, MemoryContext};
use crate::settings_editor::SettingsContext;
use crate::user_error::UserError;

/// The most letters of a memory that are shown.
const MOST_LETTERS: usize = 20_000;
/// The setting that switches memories on and off.
const SWITCH: &str = "autoMemoryEnabled";

/// A memory, or a proposal of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// Its file, within the directory of memories.
    pub file: String,
    /// What kind of thing it remembers.
    pub kind: &'static str,
    /// What it is about.
    pub description: String,
    /// What it says.
    pub text: String,
    /// What it would take the place of, for a proposal that changes a memory.
    pub replaces: Option<String>,
}

impl MemoryRow {
    fn new(it: MemoryText, replaces: Option<String>) -> Self {
        let memory = MemoryFile::parse(&it.text);
        let shown = |text: &str| truncate_chars(text, MOST_LETTERS).to_owned();
        Self {
            kind: memory.kind.map_or("-", loci_context::MemoryKind::as_str),
            description: memory.description.or(memory.name).unwrap_or_default(),
            text: shown(&it.text),
            replaces: replaces.as_deref().map(shown),
            file: it.file,
        }
    }
}

/// What a person decides about a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryVerb {
    /// A proposal counts from now on.
    Accept,
    /// A proposal is turned down.
    Reject,
    /// A memory is removed.
    Forget,
}

/// What the model is told beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReport {
    /// Instruction files in force, and whose they are.
    pub files: Vec<(String, &'static str)>,
    /// Whether memories are kept.
    pub is_on: bool,
    /// Where they lie.
    pub dir: String,
    /// The memories.
    pub memories: Vec<MemoryRow>,
    /// Those that wait for a word.
    pub proposals: Vec<MemoryRow>,
}

impl MemoryReport {
    /// Reads it.
    pub fn new(commands: &SessionCommands, session: &SessionSnapshot) -> Result<Self, UserError> {
        let ctx = MemoryContext::new(&commands.env)?;
        let places = SettingsContext::new(&commands.env).places;
        let mut proposals = Vec::new();
        for it in ctx.journal.pending() {
            let replaces = ctx.text(MemoryArea::Memory, &it.file)?;
            proposals.push(MemoryRow::new(it, replaces));
        }
        let files = session.instructions.iter().map(|(path, whose)| (places.display_path(path), *whose));
        Ok(Self {
            files: files.collect(),
            is_on: session.memory_dir.is_some(),
            dir: places.display_path(ctx.journal.dir()),
            memories: memory_files(ctx.journal.dir())
                .into_iter()
                .map(|it| MemoryRow::new(it, None))
                .collect(),
            proposals,
        })
    }

    /// Returns it for people.
    pub fn to_markdown(&self) -> String {
        let mut text = "## Memory\n\n**Files in force**\n\n".to_owned();
        for (path, whose) in &self.files {
            text.push_str(&format!("- `{}` ({whose})\n", cell(path)));
        }
        if self.files.is_empty() {
            text.push_str("- none\n");
        }
        let state = if self.is_on { "kept" } else { "switched off" };
        text.push_str(&format!("\n**Memories** ({state}, in `{}`)\n\n", cell(&self.dir)));
        for row in &self.memories {
            text.push_str(&format!("- {} ({}): {}\n", cell(&row.file), row.kind, cell(&row.description)));
        }
        if self.memories.is_empty() {
            text.push_str("- none\n");
        }
        if !self.proposals.is_empty() {
            text.push_str("\n**Waiting for your word**\n\n");
            for row in &self.proposals {
                let what = if row.replaces.is_some() { "changes a memory" } else { "is new" };
                text.push_str(&format!("- {} {what}: {}\n", cell(&row.file), cell(&row.description)));
            }
            text.push_str("\n`/memory accept FILE` lets one count, `/memory reject FILE` turns it down\n");
        }
        text
    }
}

/// Does what a person decided; returns what to say of it.
pub fn decide(commands: &SessionCommands, verb: MemoryVerb, name: &str) -> Result<String, UserError> {
    let ctx = MemoryContext::new(&commands.env)?;
    let (what, id) = match verb {
        MemoryVerb::Accept => {
            let file = ctx.find_pending(name)?;
            (format!("`{file}` counts from now on"), memory_review::accept(&ctx, &file)?)
        }
        MemoryVerb::Reject => {
            let file = ctx.find_pending(name)?;
            (format!("`{file}` is turned down"), memory_review::reject(&ctx, &file)?)
        }
        MemoryVerb::Forget => {
            let (file, _) = ctx.find(name)?;
            (format!("`{file}` is forgotten"), memory_review::forget(&ctx, &file)?)
        }
    };
    Ok(format!("{what} (`loci memory undo {id}` takes it back)"))
}

/// Switches memories on or off, in the user's settings; it counts from the next session on.
pub fn switch(commands: &SessionCommands, is_on: bool) -> Result<String, UserError> {
    let ctx = SettingsContext::new(&commands.env);
    let text = config::change(&ctx, SWITCH, if is_on { "true" } else { "false" }, None)?;
    Ok(format!("{text}\nIt counts from the next session on, or after /clear"))
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    let (verb, name) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let verb = match verb {
        "" => {
            let report = MemoryReport::new(commands, session);
            return report.map_or_else(|error| refused(&error), |it| LocalOutcome::text(it.to_markdown()));
        }
        _ if !session.is_interactive => {
            return LocalOutcome::error("Memories are decided about at a terminal, or with `loci memory`");
        }
        "on" | "off" => {
            return switch(commands, verb == "on").map_or_else(|error| refused(&error), LocalOutcome::text);
        }
        "accept" => MemoryVerb::Accept,
        "reject" => MemoryVerb::Reject,
        "forget" => MemoryVerb::Forget,
        other => {
            return LocalOutcome::error(format!(
                "`/memory {other}`: say `/memory`, or accept, reject or forget and a file, or on, or off"
            ));
        }
    };
    decide(commands, verb, name.trim()).map_or_else(|error| refused(&error), LocalOutcome::text)
}
