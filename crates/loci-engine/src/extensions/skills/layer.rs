//! The model's own use of a skill: around the Skill tool's call, the skill's text is made and handed to the driver, or to
//! an agent, whose answer is the call's result then.

use std::sync::{Arc, Mutex};

use loci_core::ids::ToolUseId;
use loci_core::skill::{SkillDefinition, SkillRegistry};
use loci_core::tool::ToolOutcome;
use loci_tools::{AgentHost, AgentRequest, Tool, ToolCall, agent_outcome};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use super::use_skill::{SkillUse, TurnGrants};
use crate::conversation::InboxMessage;
use crate::conversation::host::lock;
use crate::tools::calls::{CallLayer, Next, OutcomeFuture};
use crate::tools::prepared_call::PreparedCall;

/// A skill that a call has used: what the conversation has to take up.
pub(crate) struct UsedSkill {
    /// The call.
    pub(crate) call: ToolUseId,
    /// Which skill.
    pub(crate) name: String,
    /// Its text, for the model; none where an agent was given it.
    pub(crate) text: Option<String>,
    /// What it changes about the turn.
    pub(crate) grants: TurnGrants,
}

/// Wraps one call of the Skill tool.
pub(crate) struct SkillLayer {
    /// What was decided before the call ran; taken once.
    ready: Mutex<Option<Result<SkillUse, String>>>,
    shell: Option<Arc<dyn Tool>>,
    registry: Arc<SkillRegistry>,
    inbox: UnboundedSender<InboxMessage>,
}

impl SkillLayer {
    /// Wraps the call that uses this skill, or says why it cannot.
    pub(crate) fn new(
        ready: Result<SkillUse, String>,
        shell: Option<Arc<dyn Tool>>,
        registry: Arc<SkillRegistry>,
        inbox: UnboundedSender<InboxMessage>,
    ) -> Self {
        Self { ready: Mutex::new(Some(ready)), shell, registry, inbox }
    }

    async fn use_skill(&self, call: PreparedCall, next: Next<'_>) -> Result<ToolOutcome, String> {
        let ready = lock(&self.ready).take().ok_or("The skill was used already")??;
        let (skill, grants) = (Arc::clone(&ready.skill), ready.grants.clone());
        let text = ready.render(self.shell.clone(), next.host.as_ref(), &self.registry).await?;
        let name = skill.name.clone();
        let used = |text, grants| UsedSkill { call: call.id.clone(), name: name.clone(), text, grants };
        // The driver hears of it before it hears that the call is done.
        if skill.fork.is_some() {
            drop(self.inbox.send(InboxMessage::SkillUsed(Box::new(used(None, TurnGrants::default())))));
            return give_to_agent(&skill, text, call, next).await;
        }
        drop(self.inbox.send(InboxMessage::SkillUsed(Box::new(used(Some(text), grants)))));
        let structured = json!({"success": true, "commandName": name});
        Ok(ToolOutcome::text(format!("The text of the skill {name} follows."), structured))
    }
}

/// Sends an agent out with the text of a skill, and returns what the model is told of it.
async fn give_to_agent(
    skill: &SkillDefinition,
    text: String,
    call: PreparedCall,
    next: Next<'_>,
) -> Result<ToolOutcome, String> {
    let request = agent_request(skill, text);
    next.host.check(&request)?;
    let call = ToolCall {
        id: call.id,
        input: call.input,
        effects: call.effects,
        cancel: next.cancel,
        to_background: next.to_background,
    };
    let reply = AgentHost::run(next.host.as_ref(), request.clone(), &call).await?;
    let mut outcome = agent_outcome(&request, reply, &call, next.host.as_ref());
    if let Some(fields) = outcome.structured.as_object_mut() {
        fields.insert("commandName".to_owned(), skill.name.clone().into());
    }
    Ok(outcome)
}

/// Returns what an agent is asked that a skill is given to.
pub(crate) fn agent_request(skill: &SkillDefinition, text: String) -> AgentRequest {
    AgentRequest {
        description: task_description(&skill.name),
        prompt: text,
        subagent_type: skill.fork.as_ref().and_then(|fork| fork.agent.clone()),
        model: skill.model.clone(),
        ..AgentRequest::default()
    }
}

/// Returns what lists call the agent that a skill is given to.
pub(crate) fn task_description(skill: &str) -> String {
    format!("/{skill}")
}

impl CallLayer for SkillLayer {
    fn run<'a>(&'a self, call: PreparedCall, next: Next<'a>) -> OutcomeFuture<'a> {
        Box::pin(async move { self.use_skill(call, next).await.unwrap_or_else(ToolOutcome::error) })
    }
}
