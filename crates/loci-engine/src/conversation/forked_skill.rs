//! Typed skills that are given to an agent (`context: fork`): the prompt is recorded, the agent gets the skill's text as its
//! task, and what it answers is the turn's result. The model of this conversation is not asked; with its next prompt it
//! reads what the agent said.
//!
//! In the background the turn is over at once, and the answer comes like that of any agent. It waits where nobody sits at
//! a terminal, where the skill says so, and while the same skill is at work already.

use std::sync::Arc;

use loci_core::ids::ToolUseId;
use loci_core::skill::SkillDefinition;
use loci_core::tool::CallEffects;
use loci_tools::{AgentHost, AgentReply, Host as _, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::running_turn::{PromptOpening, TurnTasks};
use super::scope::ConversationScope;
use super::{Conversation, InboxMessage};
use crate::agents::{SkillSpawn, SpawnContext};
use crate::conversation::recorder::Recorder;
use crate::event::EngineEvent;
use crate::extensions::local_command::LocalCommandOutput;
use crate::extensions::skills::layer::{agent_request, task_description};
use crate::extensions::skills::use_skill::TurnGrants;
use crate::turn::Event;

/// A typed skill whose text is ready for an agent.
pub(crate) struct ForkedSkill {
    pub(super) skill: Arc<SkillDefinition>,
    pub(super) arguments: String,
    pub(super) text: String,
    pub(super) grants: TurnGrants,
}

/// One whose agent is at work.
pub(super) struct RunningFork {
    call: ToolUseId,
    name: String,
    arguments: String,
    /// Ends it.
    cancel: CancellationToken,
    /// Has it go on in the background.
    to_background: CancellationToken,
}

impl Conversation {
    /// Records what the agent said and ends the turn.
    pub(super) fn forked_skill_done(&mut self, reply: Result<AgentReply, String>) {
        let Some(fork) = self.run.opening.running_fork.take() else { return };
        let (text, is_error) = match reply {
            Ok(AgentReply::Launched(agent)) => {
                (format!("/{} works in the background, as agent {}.", fork.name, agent.id), false)
            }
            Ok(AgentReply::Finished(agent)) => match agent.failure {
                None => (agent.text, false),
                Some(why) if agent.text.is_empty() => (format!("The agent failed: {why}"), true),
                Some(why) => (format!("{}\n\n[The agent did not come to its end: {why}]", agent.text), true),
            },
            Err(why) => (why, true),
        };
        self.recorder.command_output(&text, is_error);
        self.run.tally.text.clone_from(&text);
        let argument = Some(fork.arguments).filter(|text| !text.is_empty());
        let output = LocalCommandOutput {
            name: fork.name,
            argument,
            text,
            is_error,
            has_prompt: true,
            is_unavailable: false,
        };
        self.scope.tell(EngineEvent::LocalCommand(output));
        self.recorder.tell_warnings(&self.scope);
        let event = match (self.run.has_interrupted, is_error) {
            (true, _) => Event::Interrupt,
            (false, true) => Event::CommandFailed,
            (false, false) => Event::NothingToAsk,
        };
        self.run.tasks.post(InboxMessage::Machine(event));
    }
}

impl PromptOpening {
    /// Gives a typed skill to an agent; what comes of it arrives in the inbox.
    pub(super) fn run_forked_skill(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tasks: &TurnTasks,
        forked: ForkedSkill,
    ) {
        let ForkedSkill { skill, arguments, text, grants } = forked;
        let id = ToolUseId::new(format!("skill_{}", scope.env.random.uuid_v4().simple()));
        scope.host.put_spawn_context(&id, self.skill_spawn_context(scope, recorder, &skill, &grants));
        let request = agent_request(&skill, text);
        let (cancel, to_background) = (tasks.calls.child_token(), CancellationToken::new());
        self.running_fork = Some(RunningFork {
            call: id.clone(),
            name: skill.name.clone(),
            arguments,
            cancel: cancel.clone(),
            to_background: to_background.clone(),
        });
        let (host, inbox) = (Arc::clone(&scope.host), tasks.inbox.clone());
        let call =
            ToolCall { id, input: Value::Null, effects: CallEffects::default(), cancel, to_background };
        tokio::spawn(async move {
            let reply = match host.check(&request) {
                Ok(()) => AgentHost::run(host.as_ref(), request, &call).await,
                Err(why) => Err(why),
            };
            drop(inbox.send(InboxMessage::SkillForked(Box::new(reply))));
        });
    }

    /// Returns how the conversation stands, for the agent that a skill is given to.
    pub(super) fn skill_spawn_context(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        skill: &SkillDefinition,
        grants: &TurnGrants,
    ) -> SpawnContext {
        let wants_background = skill.fork.as_ref().is_some_and(|fork| fork.is_background);
        let service = scope.host.agent_service();
        let can = service.is_some_and(|service| service.settings.is_background);
        let description = task_description(&skill.name);
        let is_at_work = scope.host.tasks().running().iter().any(|task| task.description == description);
        let spawn = SkillSpawn {
            // The model is chosen like any agent's.
            grants: TurnGrants { model: None, ..grants.clone() },
            is_background: wants_background && can && !is_at_work && !self.is_scheduled,
        };
        SpawnContext { skill: Some(spawn), ..scope.plain_spawn_context(recorder) }
    }

    /// Stops the agent that is waited for; false where none is.
    pub(super) fn stop_forked_skill(&self) -> bool {
        self.running_fork.as_ref().map(|fork| fork.cancel.cancel()).is_some()
    }

    /// Has it go on in the background.
    pub(super) fn move_forked_skill_to_background(&self, call: Option<&ToolUseId>) {
        let fork = self.running_fork.as_ref().filter(|fork| call.is_none_or(|call| *call == fork.call));
        fork.into_iter().for_each(|fork| fork.to_background.cancel());
    }
}
