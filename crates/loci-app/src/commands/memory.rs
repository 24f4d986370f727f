//! `/memory`: the instruction files in force, the memories, and those that wait for a word.

use std::path::{Path, PathBuf};

use loci_context::MemoryFile;
use loci_engine::{LocalOutcome, SessionSnapshot};
use loci_storage::memory::{MemoryArea, MemoryText, memory_files};

use super::{SessionCommands, cell, config, refused};
use crate::memory::edit;
use crate::memory::review::{self, MemoryContext};
use crate::user_error::UserError;

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
        Self {
            kind: memory.kind.map_or("-", loci_context::MemoryKind::as_str),
            description: memory.description.or(memory.name).unwrap_or_default(),
            text: it.text,
            replaces,
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

/// What a person does with memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryRequest {
    /// Something is decided about one, by its file.
    Decide(MemoryVerb, String),
    /// One gets another text.
    Edit {
        /// Its file.
        file: String,
        /// The text.
        text: String,
    },
    /// A new one is kept.
    Add(String),
    /// A change is taken back, by its number.
    Undo(u64),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryNote {
    /// What is said of it.
    pub text: String,
    /// The number of the change, by which it can be taken back.
    pub change: u64,
}

/// A file with instructions for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it is.
    pub path: PathBuf,
    /// The same for people.
    pub shown: String,
    /// Whose it is.
    pub whose: &'static str,
    /// Whether it counts in this session.
    pub state: InstructionState,
}

/// Whether an instruction file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionState {
    /// The model was told what it says.
    InForce,
    /// It is there, and the model was not told.
    NotInForce,
    /// There is no such file; it is a place where one could be written.
    Missing,
}

impl InstructionState {
    fn at(path: &Path) -> Self {
        // What cannot be looked at is there.
        match path.try_exists() {
            Ok(false) => Self::Missing,
            Ok(true) | Err(_) => Self::NotInForce,
        }
    }

    /// Returns what is said of it behind the file's name; nothing of one in force.
    pub fn remark(self) -> &'static str {
        match self {
            Self::InForce => "",
            Self::NotInForce => ", not in force",
            Self::Missing => ", does not exist yet",
        }
    }
}

/// What the model is told beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReport {
    /// Instruction files in force, and where others could be.
    pub files: Vec<InstructionFile>,
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
        let places = commands.settings_context().places;
        let mut proposals = Vec::new();
        for it in ctx.journal.pending() {
            let replaces = ctx.text(MemoryArea::Memory, &it.file)?;
            proposals.push(MemoryRow::new(it, replaces));
        }
        let in_force = |path: &Path| session.instructions.iter().any(|(known, _)| known == path);
        let usual = [
            (commands.home.user_instructions(), "user"),
            (commands.env.cwd.join("CLAUDE.md"), "project"),
            (commands.env.cwd.join("CLAUDE.local.md"), "local"),
        ];
        let usual = usual.into_iter().filter(|(path, _)| !in_force(path)).map(|it| {
            let state = InstructionState::at(&it.0);
            (it, state)
        });
        let files =
            session.instructions.iter().cloned().map(|it| (it, InstructionState::InForce)).chain(usual);
        let files = files.map(|((path, whose), state)| InstructionFile {
            shown: places.display_path(&path),
            path,
            whose,
            state,
        });
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
        let (in_force, others): (Vec<_>, Vec<_>) =
            self.files.iter().partition(|file| file.state == InstructionState::InForce);
        for file in &in_force {
            text.push_str(&format!("- `{}` ({})\n", cell(&file.shown), file.whose));
        }
        if in_force.is_empty() {
            text.push_str("- none\n");
        }
        if !others.is_empty() {
            text.push_str("\n**Other places**\n\n");
        }
        for file in others {
            text.push_str(&format!("- `{}` ({}{})\n", cell(&file.shown), file.whose, file.state.remark()));
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

/// Does what a person wants done with memories.
pub fn carry_out(commands: &SessionCommands, wish: &MemoryRequest) -> Result<MemoryNote, UserError> {
    let ctx = MemoryContext::new(&commands.env)?;
    let (text, change) = match wish {
        MemoryRequest::Decide(MemoryVerb::Accept, name) => {
            let file = ctx.find_pending(name)?;
            (format!("`{file}` counts from now on"), review::accept(&ctx, &file)?)
        }
        MemoryRequest::Decide(MemoryVerb::Reject, name) => {
            let file = ctx.find_pending(name)?;
            (format!("`{file}` is turned down"), review::reject(&ctx, &file)?)
        }
        MemoryRequest::Decide(MemoryVerb::Forget, name) => {
            let (file, _) = ctx.find(name)?;
            (format!("`{file}` is forgotten"), review::forget(&ctx, &file)?)
        }
        MemoryRequest::Edit { file, text } => (format!("`{file}` is changed"), edit::edit(&ctx, file, text)?),
        MemoryRequest::Add(text) => {
            let (file, change) = edit::add(&ctx, text)?;
            (format!("`{file}` is kept"), change)
        }
        MemoryRequest::Undo(id) => {
            let (_, change) = edit::undo(&ctx, Some(*id))?;
            ("The change is taken back".to_owned(), change)
        }
    };
    Ok(MemoryNote { text, change })
}

/// Does the same; returns what to say of it, and how to take it back.
fn carry_out_in_words(commands: &SessionCommands, wish: &MemoryRequest) -> Result<String, UserError> {
    let MemoryNote { text, change } = carry_out(commands, wish)?;
    Ok(format!("{text} (`loci memory undo {change}` takes it back)"))
}

/// Switches memories on or off, in the user's settings; it counts from the next session on.
pub fn switch(commands: &SessionCommands, is_on: bool) -> Result<String, UserError> {
    let ctx = commands.settings_context();
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
        "add" => {
            let said = carry_out_in_words(commands, &MemoryRequest::Add(name.to_owned()));
            return said.map_or_else(|error| refused(&error), LocalOutcome::text);
        }
        other => {
            return LocalOutcome::error(format!(
                "`/memory {other}`: say `/memory`, or accept, reject or forget and a file, or add and a text, or on, or off"
            ));
        }
    };
    let wish = MemoryRequest::Decide(verb, name.trim().to_owned());
    carry_out_in_words(commands, &wish).map_or_else(|error| refused(&error), LocalOutcome::text)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn instruction_file_that_does_not_exist_is_said_to_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("CLAUDE.md");
        std::fs::write(&there, "Use tabs.").unwrap();
        let file = |path: PathBuf, shown: &str, whose, state: Option<InstructionState>| InstructionFile {
            state: state.unwrap_or_else(|| InstructionState::at(&path)),
            path,
            shown: shown.to_owned(),
            whose,
        };
        let report = MemoryReport {
            files: vec![
                file("/m/CLAUDE.md".into(), "/m/CLAUDE.md", "managed", Some(InstructionState::InForce)),
                file(there, "CLAUDE.md", "project", None),
                file(dir.path().join("CLAUDE.local.md"), "CLAUDE.local.md", "local", None),
            ],
            is_on: true,
            dir: "~/m".to_owned(),
            memories: Vec::new(),
            proposals: Vec::new(),
        };
        expect![[r#"
            ## Memory

            **Files in force**

            - `/m/CLAUDE.md` (managed)

            **Other places**

            - `CLAUDE.md` (project, not in force)
            - `CLAUDE.local.md` (local, does not exist yet)

            **Memories** (kept, in `~/m`)

            - none
        "#]]
        .assert_eq(&report.to_markdown());
    }
}
