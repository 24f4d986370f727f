//! What a person asks of agents, without the model: a message to one of them, a side task for a fork of the conversation.
//!
//! Both take the way of a tool's call, so that agents are sent out, limited and told of as always; only nobody's call waits
//! for them.

use std::sync::Arc;

use loci_core::agent::FORK;
use loci_core::ids::ToolUseId;
use loci_core::tool::CallEffects;
use loci_stdx::single_line;
use loci_tools::{AgentHost, AgentReply, AgentRequest, MessageReceipt, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Conversation;
use super::scope::ConversationScope;
use crate::agents::{ForkStart, PERSON_CALL, SpawnContext, forked_results, open_calls};
use crate::event::EngineEvent;
use crate::session::lost_tasks::{GOES_ON, WORKS_ON_IT};

/// The most letters of a task that name its agent.
const MOST_LETTERS: usize = 60;

impl Conversation {
    /// Hands a message of the person to an agent; what becomes of it is told by an event.
    pub(crate) fn message_agent(&mut self, request: String, agent: String, text: String) {
        // A fork goes on from all that the conversation sends, before its first turn as well.
        self.sources.make_opening(&self.scope);
        let sending = self.send_to_agent(agent, text);
        let events = self.scope.ctx.events.clone();
        tokio::spawn(async move {
            let outcome = sending.await;
            // Without a listener there is nobody to answer.
            drop(events.send(EngineEvent::AgentMessaged { request, outcome }));
        });
    }

    /// Hands a message of the person to an agent; says what becomes of it.
    pub(crate) fn send_to_agent(
        &self,
        agent: String,
        text: String,
    ) -> impl Future<Output = Result<String, String>> + Send + use<> {
        let (host, call) = (
            Arc::clone(&self.scope.host),
            self.scope.person_call(self.tools.message_context(
                &self.scope,
                &self.recorder,
                &self.sources,
                &agent,
            )),
        );
        async move {
            host.allow_to_go_on(&agent);
            let receipt = AgentHost::send(host.as_ref(), &agent, text, &call).await;
            // One that works does not need it.
            drop(host.take_spawn_context(&call.id));
            receipt.map(|receipt| match receipt {
                MessageReceipt::Queued { id } => format!("Agent {id} hears it before its next step"),
                MessageReceipt::ToMain => "The conversation hears it before its next step".to_owned(),
                MessageReceipt::Resumed(agent) => {
                    format!("Agent {} {GOES_ON}", agent.id)
                }
            })
        }
    }

    /// Gives a task to a fork of the conversation, in the background; what it answers is told as any agent's end is.
    pub(crate) fn begin_subtask(
        &self,
        task: String,
    ) -> impl Future<Output = Result<String, String>> + Send + use<> {
        let point = self.sources.fork_point(&self.scope, &self.recorder, &self.tools, None);
        let has_messages = !point.messages.is_empty();
        let results = forked_results(&open_calls(&point.messages));
        let fork = Some(ForkStart { point, results, opening: None });
        let context = SpawnContext { fork, ..self.scope.plain_spawn_context(&self.recorder) };
        let (host, call) = (Arc::clone(&self.scope.host), self.scope.person_call(context));
        async move {
            if !has_messages {
                drop(host.take_spawn_context(&call.id));
                return Err("There is no conversation yet that a side task could go on from".to_owned());
            }
            let request = AgentRequest {
                description: single_line(&task, MOST_LETTERS),
                prompt: task,
                subagent_type: Some(FORK.to_owned()),
                run_in_background: Some(true),
                ..AgentRequest::default()
            };
            match AgentHost::run(host.as_ref(), request, &call).await? {
                AgentReply::Launched(agent) => {
                    Ok(format!("Agent {} {WORKS_ON_IT}, with all that was said here", agent.id))
                }
                AgentReply::Finished(agent) => Ok(agent.text),
            }
        }
    }
}

impl ConversationScope {
    /// Makes a call in the person's name.
    fn person_call(&self, context: SpawnContext) -> ToolCall {
        let id = ToolUseId::new(format!("{PERSON_CALL}{}", self.env.random.uuid_v4().simple()));
        self.host.put_spawn_context(&id, context);
        ToolCall {
            id,
            input: Value::Null,
            effects: CallEffects::default(),
            cancel: CancellationToken::new(),
            to_background: CancellationToken::new(),
        }
    }
}
