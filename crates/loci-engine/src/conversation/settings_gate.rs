//! Settings files that changed: hooks of `ConfigChange` are asked before a change counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use loci_core::hooks::HookEvent;
use loci_core::ids::ToolUseId;

use super::host::lock;
use super::running_turn::TurnTasks;
use super::scope::ConversationScope;
use super::{Conversation, InboxMessage, SessionContext};
use crate::conversation::recorder::Recorder;
use crate::session::config::ReloadPoint;

impl Conversation {
    /// Goes on where settings were asked about.
    pub(super) fn settings_decided(&mut self, call: Option<&ToolUseId>) {
        match call {
            Some(call) => self.permits.check_call(
                &self.scope,
                &self.recorder,
                &self.tools,
                &mut self.run.calls,
                &mut self.run.tasks,
                call,
            ),
            None => {
                self.scope.ctx.reload_settings(ReloadPoint::Prompt);
                self.open_prompt();
            }
        }
    }
}

impl ConversationScope {
    /// Asks hooks about settings files that changed, before a call is looked at or, without one, before a prompt is taken;
    /// false when there is nothing to ask. Nobody listening, no file is looked at.
    pub(super) fn ask_about_settings(
        &self,
        recorder: &Recorder,
        tasks: &mut TurnTasks,
        call: Option<&ToolUseId>,
    ) -> bool {
        if !self.ctx.hooks.has(HookEvent::ConfigChange) {
            return false;
        }
        let Some(asking) = Asking::begin(&self.ctx) else { return false };
        let changes = lock(&self.ctx.policy.settings_source)
            .as_mut()
            .map(|source| source.changes())
            .unwrap_or_default();
        if changes.is_empty() {
            return false;
        }
        let (hooks, moment, next) = (self.ctx.hooks.clone(), self.hook_moment(recorder), call.cloned());
        let asked = async move {
            let answers = changes.into_iter().map(|it| hooks.config_changed(it, moment.clone()));
            let taken = join_all(answers).await;
            if let Some(source) = lock(&asking.0.policy.settings_source).as_mut() {
                source.decide(taken);
            }
            drop(asking);
            InboxMessage::SettingsDecided(next)
        };
        match call {
            None => tasks.wait_for(asked),
            Some(_) => {
                let (inbox, cancel) = (tasks.inbox.clone(), tasks.calls.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        message = asked => drop(inbox.send(message)),
                        () = cancel.cancelled() => {}
                    }
                });
            }
        }
        true
    }
}

/// Stands for a question under way; one at a time.
struct Asking(Arc<SessionContext>);

impl Asking {
    fn begin(ctx: &Arc<SessionContext>) -> Option<Self> {
        let is_free = !ctx.policy.is_asking_about_settings.swap(true, Ordering::AcqRel);
        is_free.then(|| Self(Arc::clone(ctx)))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.policy.is_asking_about_settings.store(false, Ordering::Release);
    }
}
