//! The service as features beside turns see it: agents, tasks, worktrees, MCP servers, commands that expand.

use std::path::PathBuf;

use loci_core::entry::Attachment;
use loci_core::hooks::{EventInput, HookEvent, TaskFields};

use super::HookService;
use super::attachments::context;
use super::run::Fired;
use crate::command::DirectorySource;
use crate::conversation::host::lock;
use crate::extensions::{
    ElicitationReply, ElicitationRequest, ExpansionGate, FeatureHooks, HookFuture, HookMoment,
    PromptExpansion, ScopedHooks, ScopedHooksGuard, ShownBatch, TaskStep,
};
use crate::session::config::ConfigFileChange;

impl FeatureHooks for HookService {
    fn subagent_begins(&self, moment: HookMoment) -> HookFuture<Vec<Attachment>> {
        self.ask(EventInput::SubagentStart {}, moment, |service, fired| {
            service.tell_user(fired.decision.messages);
            fired.attachments
        })
    }

    fn before_task(
        &self,
        step: TaskStep,
        task: TaskFields,
        moment: HookMoment,
    ) -> HookFuture<Result<(), String>> {
        let event = match step {
            TaskStep::Created => EventInput::TaskCreated { task },
            TaskStep::Completed => EventInput::TaskCompleted { task },
        };
        self.ask(event, moment, |service, fired| {
            service.tell_user(fired.decision.messages);
            fired.decision.block.map_or(Ok(()), Err)
        })
    }

    fn before_idle(&self, teammate: String, team: String, moment: HookMoment) -> HookFuture<Option<String>> {
        let event = EventInput::TeammateIdle { teammate_name: teammate, team_name: team };
        self.ask(event, moment, |service, fired| {
            let decision = fired.decision;
            let has_stopped = decision.stop.is_some();
            let stop = decision.stop.filter(|why| !why.is_empty());
            service.tell_user(decision.messages.into_iter().chain(stop).collect());
            decision.block.filter(|_| !has_stopped)
        })
    }

    fn create_worktree(
        &self,
        name: String,
        moment: HookMoment,
    ) -> HookFuture<Option<Result<PathBuf, String>>> {
        if !self.has(HookEvent::WorktreeCreate) {
            return Box::pin(async { None });
        }
        self.ask(EventInput::WorktreeCreate { name }, moment, |_, fired| {
            let decision = fired.decision;
            Some(match (decision.block, decision.worktree) {
                (Some(why), _) => Err(why),
                (None, Some(path)) => Ok(path.into()),
                (None, None) => {
                    Err(decision.messages.into_iter().next().unwrap_or_else(|| {
                        "no WorktreeCreate hook printed the path of a worktree".to_owned()
                    }))
                }
            })
        })
    }

    fn before_elicitation(
        &self,
        request: ElicitationRequest,
        moment: HookMoment,
    ) -> HookFuture<Option<ElicitationReply>> {
        let ElicitationRequest { server, message, mode, url, id, schema } = request;
        let event = EventInput::Elicitation {
            mcp_server_name: server,
            message,
            mode,
            url,
            elicitation_id: id,
            requested_schema: schema,
        };
        self.ask(event, moment, |service, fired| {
            service.tell_errors(&fired);
            elicitation_reply(fired)
        })
    }

    fn after_elicitation(
        &self,
        request: ElicitationRequest,
        reply: ElicitationReply,
        moment: HookMoment,
    ) -> HookFuture<ElicitationReply> {
        let event = EventInput::ElicitationResult {
            mcp_server_name: request.server,
            mode: request.mode,
            action: reply.action.clone(),
            content: reply.content.clone(),
            elicitation_id: request.id,
        };
        self.ask(event, moment, |service, fired| {
            service.tell_errors(&fired);
            elicitation_reply(fired).unwrap_or(reply)
        })
    }

    fn before_expansion(&self, expansion: PromptExpansion, moment: HookMoment) -> HookFuture<ExpansionGate> {
        let PromptExpansion { kind, command, arguments, source, prompt } = expansion;
        let event = EventInput::UserPromptExpansion {
            expansion_type: kind.to_owned(),
            command_name: command,
            command_args: arguments,
            command_source: source,
            prompt,
        };
        self.ask(event, moment, |service, fired| {
            let decision = fired.decision;
            service.tell_user(decision.messages);
            let stop = decision.stop.map(|why| super::turn::or_usual(why, "A hook stopped the turn."));
            match decision.block.or(stop) {
                Some(reason) => ExpansionGate::Block { reason },
                None => ExpansionGate::Go { attachments: fired.attachments },
            }
        })
    }

    fn before_display(&self, batch: ShownBatch, moment: HookMoment) -> HookFuture<Option<String>> {
        let event = EventInput::MessageDisplay {
            turn_id: batch.turn,
            message_id: batch.message,
            index: batch.index,
            is_final: batch.is_final,
            delta: batch.text,
        };
        // What goes wrong is in the trace alone: it would stand between the lines that are shown.
        self.ask(event, moment, |_, fired| fired.decision.display)
    }

    fn moment(&self) -> HookMoment {
        lock(&self.inner.moment).clone()
    }

    fn add_scoped(&self, hooks: ScopedHooks) -> ScopedHooksGuard {
        let id = lock(&self.inner.scoped).add(hooks);
        let inner = std::sync::Arc::downgrade(&self.inner);
        ScopedHooksGuard::new(move || {
            if let Some(inner) = inner.upgrade() {
                lock(&inner.scoped).remove(id);
            }
        })
    }
}

impl HookService {
    /// `ConfigChange`: tells whether a changed settings file counts. The administrator's always do.
    pub(crate) fn config_changed(&self, change: ConfigFileChange, moment: HookMoment) -> HookFuture<bool> {
        let ConfigFileChange { source, path } = change;
        let event = EventInput::ConfigChange { source: source.to_owned(), file_path: Some(path.clone()) };
        self.ask(event, moment, move |service, fired| {
            service.tell_errors(&fired);
            let is_blocked = fired.decision.block.is_some() && source != "policy_settings";
            if is_blocked {
                let file = path.display();
                service.tell_user(vec![format!(
                    "Settings changed, and a hook keeps that from counting: {file}"
                )]);
            }
            !is_blocked
        })
    }

    /// `DirectoryAdded`: told, and waited for by nobody. What is said to a directory that a person added is told the model
    /// with the next prompt.
    pub(crate) fn directory_added(&self, directory: PathBuf, source: DirectorySource, moment: HookMoment) {
        if !self.has(HookEvent::DirectoryAdded) {
            return;
        }
        let event = EventInput::DirectoryAdded { directory, source: source.as_str().to_owned() };
        let input = self.input(event, moment);
        self.spawn_reported(move |service| async move {
            let (runs, _) = service.run_all(&input, None, None).await;
            if source == DirectorySource::SlashCommand {
                let (name, id) = (input.hook_name(), service.fresh_id());
                let said = runs.iter().filter_map(|run| run.answer.message.as_deref());
                let told = said.map(|text| context(HookEvent::DirectoryAdded, &name, &id, text));
                lock(&service.inner.late).extend(told);
                let n_failed = runs.iter().filter(|run| run.answer.error.is_some()).count();
                if n_failed > 0 {
                    service.tell_user(vec![format!(
                        "{n_failed} DirectoryAdded hooks failed; --debug=hooks has why"
                    )]);
                }
            }
        });
    }

    /// Runs the handlers of an event and makes an answer of what they said; nobody there has said nothing.
    fn ask<T: Send + 'static>(
        &self,
        event: EventInput,
        moment: HookMoment,
        answer: impl FnOnce(&Self, Fired) -> T + Send + 'static,
    ) -> HookFuture<T> {
        let (service, is_heard) = (self.clone(), self.has(event.event()));
        let input = is_heard.then(|| self.input(event, moment));
        Box::pin(async move {
            let fired = match input {
                Some(input) => service.fire(input, None, None).await,
                None => Fired::default(),
            };
            answer(&service, fired)
        })
    }

    /// Tells the user what went wrong with handlers whose messages do not count.
    fn tell_errors(&self, fired: &Fired) {
        self.tell_user(fired.errors.clone());
    }
}

/// A block is a no, whatever else was said.
fn elicitation_reply(fired: Fired) -> Option<ElicitationReply> {
    match (fired.decision.block, fired.decision.elicitation) {
        (Some(_), _) => Some(ElicitationReply { action: "decline".to_owned(), content: None }),
        (None, Some((action, content))) => Some(ElicitationReply { action, content }),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;
