//! What hooks are told without being waited for: failures, notifications, directories, instruction files.

use std::time::Duration;

use loci_core::hooks::{EventInput, HookEvent};
use loci_core::message::Block;
use loci_core::stream::Failure;
use loci_storage::config::InstructionScope;
use loci_tools::Host;

use super::Conversation;
use super::host::lock;
use crate::extension::{FeatureHooks, HookMoment};

/// How long a question is open before hooks are told that somebody is waited for.
const QUESTION_PATIENCE: Duration = Duration::from_secs(6);

impl Conversation {
    /// Tells whether this is the conversation that people have.
    pub(super) fn is_main(&self) -> bool {
        self.agent.is_none()
    }

    /// Tells whether hooks hear of what happens here: in the main line, and in agents that work for a call of it.
    pub(super) fn is_told_to_hooks(&self) -> bool {
        self.agent.as_ref().is_none_or(|agent| agent.parent.is_some())
    }

    /// Returns the event of the end of a turn; agents that work beside the conversation have none.
    pub(super) fn stop_event(&self) -> Option<HookEvent> {
        let event = if self.is_main() { HookEvent::Stop } else { HookEvent::SubagentStop };
        self.is_told_to_hooks().then_some(event)
    }

    /// Tells hooks, once, that an agent begins which works for a call; what they add stands before its first prompt.
    pub(super) async fn begin_agent_hooks(&mut self) {
        let is_first = !std::mem::replace(&mut self.has_told_begin, true);
        let is_subagent = !self.is_main() && self.is_told_to_hooks();
        if !(is_first && is_subagent && self.ctx.hooks.has(HookEvent::SubagentStart)) {
            return;
        }
        let added = self.ctx.hooks.subagent_begins(self.hook_moment()).await;
        self.recorder.add_before_prompt(added);
    }

    /// Returns how things stand, for hooks.
    pub(crate) fn hook_moment(&self) -> HookMoment {
        let facts = loci_core::model::facts(&self.current_model());
        HookMoment {
            prompt: self.recorder.prompt_id().map(ToString::to_string),
            cwd: self.host.workspace().cwd,
            effort: facts.has_effort.then(|| self.model.effort.clone().unwrap_or_else(|| "high".to_owned())),
            agent: self.agent.clone(),
        }
    }

    /// Tells hooks of something, if any of them listens; `event` is made only then.
    pub(crate) fn notify_hooks(&self, kind: HookEvent, event: impl FnOnce() -> EventInput) {
        let is_told = self.is_main() || (kind.is_about_a_tool() && self.is_told_to_hooks());
        if let Some(hooks) = self.ctx.listeners(kind).filter(|_| is_told) {
            hooks.notify(event(), self.hook_moment());
        }
    }

    /// Tells hooks that a turn ended with a failure of the API.
    pub(super) fn tell_hooks_of_failure(&self, failure: &Failure) {
        self.notify_hooks(HookEvent::StopFailure, || EventInput::StopFailure {
            error: failure.category().to_owned(),
            error_details: Some(failure.message.clone()),
            last_assistant_message: Some(self.run.tally.text.clone()).filter(|text| !text.is_empty()),
        });
    }

    /// Tells hooks when a call has moved the shell to another directory.
    pub(super) fn tell_hooks_of_cwd(&mut self) {
        if self.ctx.listeners(HookEvent::CwdChanged).is_none() || !self.is_main() {
            return;
        }
        let new_cwd = self.host.workspace().cwd;
        let old_cwd = self.told_cwd.replace(new_cwd.clone()).unwrap_or_else(|| self.env.cwd.clone());
        if old_cwd != new_cwd {
            self.notify_hooks(HookEvent::CwdChanged, || EventInput::CwdChanged { old_cwd, new_cwd });
        }
    }

    /// Tells hooks which files of instructions there are; `reason` is why they were read.
    pub(crate) fn tell_hooks_of_instructions(&self, reason: &str) {
        if self.ctx.listeners(HookEvent::InstructionsLoaded).is_none() {
            return;
        }
        for file in &self.instructions.files.files {
            let load_reason = if file.imported_by.is_some() { "include" } else { reason };
            self.notify_hooks(HookEvent::InstructionsLoaded, || EventInput::InstructionsLoaded {
                file_path: file.path.clone(),
                memory_type: scope_name(file.scope).to_owned(),
                load_reason: load_reason.to_owned(),
                globs: None,
                trigger_file_path: None,
                parent_file_path: file.imported_by.clone(),
            });
        }
    }

    /// Tells hooks what the model said, a text each.
    pub(super) fn tell_hooks_of_texts(&self, message_id: &str, blocks: &[Block]) {
        if self.ctx.listeners(HookEvent::MessageDisplay).is_none() {
            return;
        }
        let text: String = blocks.iter().filter_map(Block::text).collect();
        if text.is_empty() {
            return;
        }
        let turn_id = self.recorder.prompt_id().map(ToString::to_string).unwrap_or_default();
        let message_id = message_id.to_owned();
        self.notify_hooks(HookEvent::MessageDisplay, || EventInput::MessageDisplay {
            turn_id,
            message_id,
            index: 0,
            is_final: true,
            delta: text,
        });
    }

    /// Has hooks told when a question is open for a while.
    pub(super) fn tell_hooks_of_question(&self, question: &str, tool: &str) {
        let Some(hooks) = self.ctx.listeners(HookEvent::Notification) else { return };
        let (ctx, question, moment) =
            (std::sync::Arc::clone(&self.ctx), question.to_owned(), self.hook_moment());
        let message = format!("loci needs your permission to use {tool}");
        tokio::spawn(async move {
            tokio::time::sleep(QUESTION_PATIENCE).await;
            if lock(&ctx.questions).contains_key(&question) {
                let notification_type = "permission_prompt".to_owned();
                hooks.notify(EventInput::Notification { message, title: None, notification_type }, moment);
            }
        });
    }
}

fn scope_name(scope: InstructionScope) -> &'static str {
    match scope {
        InstructionScope::Managed => "Managed",
        InstructionScope::User => "User",
        InstructionScope::Project => "Project",
        InstructionScope::Local => "Local",
    }
}
