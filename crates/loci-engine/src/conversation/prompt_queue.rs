//! Prompts that were sent while a turn is under way: heard with the next results of calls, or in a turn of their own.

use std::collections::{HashSet, VecDeque};

use loci_core::entry::{Attachment, EntryKind};
use loci_core::hooks::HookEvent;
use serde_json::Value;

use super::mentions::attached_names;
use super::scope::ConversationScope;
use crate::command::{Prompt, QueuedPrompt};
use crate::conversation::recorder::Recorder;
use crate::event::EngineEvent;

/// The prompts that wait while a turn is under way.
#[derive(Default)]
pub(crate) struct PromptQueue {
    pub(crate) prompts: VecDeque<QueuedPrompt>,
    /// Those of them whose mentions are being read, by id.
    pub(super) read_ahead: HashSet<String>,
}

impl PromptQueue {
    /// Takes the next prompt that waits, for a turn of its own.
    pub(crate) fn next_queued(&mut self, scope: &ConversationScope) -> Option<Prompt> {
        let QueuedPrompt { id, prompt } = self.prompts.pop_front()?;
        let text = prompt.content.text();
        scope.tell(EngineEvent::Dequeued { id, text, is_injected: false, attached: Vec::new() });
        Some(prompt)
    }

    /// Lets the model hear what waits with the request that goes out now. Commands wait for the end of the turn, and
    /// everything does where hooks have a say in prompts.
    pub(super) fn inject_queued(&mut self, scope: &ConversationScope, recorder: &mut Recorder) {
        let is_users_turn = recorder
            .path()
            .last()
            .is_some_and(|entry| matches!(entry.head().kind, EntryKind::User | EntryKind::Attachment));
        if !is_users_turn || scope.ctx.listeners(HookEvent::UserPromptSubmit).is_some() {
            return;
        }
        while let Some(queued) = self.prompts.front() {
            if scope.slash_command(&queued.prompt).is_some() || self.read_ahead.contains(&queued.id) {
                return;
            }
            let Some(QueuedPrompt { id, prompt }) = self.prompts.pop_front() else { return };
            let text = prompt.content.text();
            let content =
                serde_json::to_value(&prompt.content).unwrap_or_else(|_| Value::from(text.as_str()));
            recorder.attachment(Attachment::QueuedCommand { prompt: content, command_mode: None });
            let attached = attached_names(&prompt.attachments);
            prompt.attachments.into_iter().for_each(|attachment| recorder.attachment(attachment));
            scope.tell(EngineEvent::Dequeued { id, text, is_injected: true, attached });
        }
    }
}
