//! Prompts that were sent while a turn is under way: heard with the next results of calls, or in a turn of their own.

use loci_core::entry::{Attachment, EntryKind};
use loci_core::hooks::HookEvent;
use serde_json::Value;

use super::Conversation;
use super::mentions::attached_names;
use crate::command::{Prompt, QueuedPrompt};
use crate::event::EngineEvent;

impl Conversation {
    /// Takes the next prompt that waits, for a turn of its own.
    pub(crate) fn next_queued(&mut self) -> Option<Prompt> {
        let QueuedPrompt { id, prompt } = self.queued.pop_front()?;
        let text = prompt.content.text();
        self.tell(EngineEvent::Dequeued { id, text, is_injected: false, attached: Vec::new() });
        Some(prompt)
    }

    /// Lets the model hear what waits with the request that goes out now. Commands wait for the end of the turn, and
    /// everything does where hooks have a say in prompts.
    pub(super) fn inject_queued(&mut self) {
        let is_users_turn = self
            .recorder
            .path()
            .last()
            .is_some_and(|entry| matches!(entry.head().kind, EntryKind::User | EntryKind::Attachment));
        if !is_users_turn || self.ctx.listeners(HookEvent::UserPromptSubmit).is_some() {
            return;
        }
        let is_ready = |it: &Self, queued: &QueuedPrompt| {
            it.slash_command(&queued.prompt).is_none() && !it.run.read_ahead.contains(&queued.id)
        };
        while self.queued.front().is_some_and(|queued| is_ready(self, queued)) {
            let Some(QueuedPrompt { id, prompt }) = self.queued.pop_front() else { return };
            let text = prompt.content.text();
            let content =
                serde_json::to_value(&prompt.content).unwrap_or_else(|_| Value::from(text.as_str()));
            self.recorder.attachment(Attachment::QueuedCommand { prompt: content, command_mode: None });
            let attached = attached_names(&prompt.attachments);
            prompt.attachments.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
            self.tell(EngineEvent::Dequeued { id, text, is_injected: true, attached });
        }
    }
}
