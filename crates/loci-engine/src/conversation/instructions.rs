//! Instruction files in a conversation: what opens it, what is met on the way, what is read anew after a compaction.

use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use loci_context::{ServerInstructions, join_messages, user_context};
use loci_core::entry::{Attachment, Entry};
use loci_core::message::{Block, Message, Role};
use loci_core::tool::ToolAttachment;
use loci_storage::config::{Instructions, LazyInstructions};
use loci_tools::{FileState, Host};

use super::context_sources::ContextSources;
use super::host::lock;
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use crate::conversation::recorder::Recorder;
use crate::event::EngineEvent;
use crate::session::config::ReadInstructions;
use crate::session::instructions::{Opening, note, remember, render_instructions, resume};
use crate::session::restore::{file_states, last_todos};

/// The instruction files of a conversation.
#[derive(Default)]
pub(crate) struct InstructionState {
    pub(crate) files: Instructions,
    /// Those that wait until a file they are about is read.
    pub(crate) lazy: Option<LazyInstructions>,
    /// Reads them anew.
    pub(crate) read: Option<ReadInstructions>,
    /// What the system prompt leaves out.
    pub(crate) excluded: Vec<String>,
    /// What MCP servers say about their tools.
    pub(crate) servers: Vec<ServerInstructions>,
    /// The date the model was last told.
    pub(crate) told_date: String,
}

/// What stands before a conversation's own entries in every request.
pub(crate) enum Prelude {
    /// Instruction files, memories and the date, once they are made.
    Opening(Option<Opening>),
    /// The messages of the conversation that this one was forked from, word for word.
    Fork {
        messages: Vec<Message>,
        /// About how many tokens they are.
        tokens: u64,
        /// What their last calls are answered with.
        results: Vec<Block>,
    },
}

impl Prelude {
    /// Returns about how many tokens it is.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Opening(opening) => opening.as_ref().map_or(0, Opening::tokens),
            Self::Fork { tokens, .. } => *tokens,
        }
    }

    /// Puts messages behind those of the conversation that a fork goes on from. The calls of those are answered, also once
    /// the fork's own beginning, which had the answers, is a summary: the prefix stays the same, byte for byte.
    pub(crate) fn before(&self, mut own: Vec<Message>) -> Vec<Message> {
        let Self::Fork { messages, results, .. } = self else { return own };
        let is_result = |block: &&Block| block.tool_result().is_some();
        let is_answered = own.first().is_some_and(|it| it.content.first().is_some_and(|it| is_result(&it)));
        if !is_answered && !results.is_empty() {
            match own.first_mut().filter(|first| first.role == Role::User) {
                Some(first) => {
                    // Answers come first; a fork has no opening of its own, so the place of one is empty.
                    let is_empty = |block: &&Block| block.text().is_some_and(|text| text.is_empty());
                    let others = first.content.iter().filter(|block| !is_result(block) && !is_empty(block));
                    let content: Vec<Block> = results.iter().chain(others).cloned().collect();
                    *first = Message::new(Role::User, content);
                }
                None => own.insert(0, Message::new(Role::User, results.clone())),
            }
        }
        join_messages(messages, own)
    }
}

impl ContextSources {
    /// Makes what opens the conversation, unless that is done; it stays the same until a compaction.
    pub(super) fn make_opening(&mut self, scope: &ConversationScope) {
        if matches!(self.prelude, Prelude::Opening(None)) {
            self.remake_opening(scope);
        }
    }

    fn remake_opening(&mut self, scope: &ConversationScope) {
        let date = scope.env.clock.local_date().to_string();
        let mut shown = render_instructions(&self.instructions.files);
        // An agent has memories of its own, or none.
        let memory = scope.ctx.memory.iter().filter(|_| scope.agent.is_none());
        shown.extend(memory.flat_map(|memory| memory.memory_indexes()));
        let InstructionState { excluded, servers, .. } = &self.instructions;
        self.prelude = Prelude::Opening(Some(Opening::new(&user_context(excluded, &shown, servers, &date))));
        self.instructions.told_date = date;
    }

    /// Takes what servers say. What comes after the conversation was opened is told behind it: the prefix stays.
    pub(crate) fn take_server_instructions(
        &mut self,
        recorder: &mut Recorder,
        servers: Vec<ServerInstructions>,
    ) {
        let is_open = !matches!(self.prelude, Prelude::Opening(None));
        let new: Vec<&ServerInstructions> =
            servers.iter().filter(|it| !self.instructions.servers.contains(it)).collect();
        if is_open && !new.is_empty() {
            recorder.add_before_prompt(vec![Attachment::McpInstructionsDelta {
                added_names: new.iter().map(|it| it.server.clone()).collect(),
                added_blocks: new.iter().map(|it| format!("## {}\n{}", it.server, it.text)).collect(),
                removed_names: Vec::new(),
            }]);
        }
        self.instructions.servers = servers;
    }

    /// Tells the model when the date has changed since it was last told. The prefix stays as it is.
    pub(super) fn tell_date(&mut self, scope: &ConversationScope, recorder: &mut Recorder) {
        let date = scope.env.clock.local_date().to_string();
        if date != self.instructions.told_date {
            recorder.attachment(Attachment::DateChange { new_date: date.clone() });
            self.instructions.told_date = date;
        }
    }

    /// Takes the instruction files as they are on disk by now; those met on the way are met again when they matter.
    pub(super) fn reread_instructions(&mut self, scope: &ConversationScope, recorder: &Recorder) {
        let Some(read) = &mut self.instructions.read else { return };
        let (found, mut lazy) = read();
        if let Some(lazy) = &mut lazy {
            resume(lazy, recorder.path().iter().map(Arc::as_ref));
        }
        self.instructions.files = found;
        self.instructions.lazy = lazy;
        self.remake_opening(scope);
    }

    /// Brings back what the conversation knows of files: what it read, and the instructions it was shown.
    pub(super) fn remember_files(
        &mut self,
        scope: &ConversationScope,
        tool_set: &ToolSet,
        past: &[Arc<Entry>],
    ) {
        if !past.is_empty() {
            scope.host.restore_files(&file_states(past));
            if tool_set.toolbox.find("TodoWrite").is_some() {
                last_todos(past).into_iter().for_each(|todos| scope.host.restore_todos(todos));
            }
        }
        remember(&mut lock(scope.host.files()), &self.instructions.files.files);
        if let Some(lazy) = &mut self.instructions.lazy {
            resume(lazy, past.iter().map(Arc::as_ref));
        }
    }

    /// Returns the instructions that a file just read brings with it.
    pub(super) fn meet_instructions(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        file: &Path,
    ) -> Vec<ToolAttachment> {
        let Some(lazy) = &mut self.instructions.lazy else { return Vec::new() };
        let (met, problems) = lazy.read(file);
        remember(&mut lock(scope.host.files()), met.iter().map(|met| &met.file));
        for problem in problems {
            scope.tell(EngineEvent::Warning(format!("{}: {}", problem.path.display(), problem.message)));
        }
        scope.tell_hooks_of_met(recorder, &met, file);
        met.iter().map(|met| note(met, &scope.env.cwd)).collect()
    }
}

impl ConversationScope {
    /// Takes a file to be read as it is now, if nobody has changed it since the client read it; else it must be read again.
    pub(crate) fn seed_read_state(&self, path: &Path, modified_ms: u64) {
        let path = self.host.workspace().resolve(&path.to_string_lossy()).real;
        let modified = std::fs::metadata(&path).and_then(|found| found.modified()).ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let is_same = since.is_some_and(|since| since.as_millis() as u64 == modified_ms);
        let (Some(modified), true) = (modified, is_same) else { return };
        let Ok(text) = loci_stdx::read_regular_to_string(&path) else { return };
        let state = FileState {
            content: text.replace("\r\n", "\n"),
            modified,
            offset: None,
            limit: None,
            is_partial_view: false,
        };
        lock(self.host.files()).insert(path, state);
    }
}
