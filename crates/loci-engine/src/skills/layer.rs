//! The model's own use of a skill: around the Skill tool's call, the skill's text is made and handed to the driver.

use std::sync::{Arc, Mutex};

use loci_core::ids::ToolUseId;
use loci_core::tool::ToolOutcome;
use loci_tools::Tool;
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use super::use_skill::{SkillUse, TurnGrants};
use crate::calls::{CallLayer, Next, OutcomeFuture};
use crate::conversation::InboxMessage;
use crate::conversation::host::lock;
use crate::prepared_call::PreparedCall;

/// A skill that a call has used: what the conversation has to take up.
pub(crate) struct UsedSkill {
    /// The call.
    pub(crate) call: ToolUseId,
    /// Which skill.
    pub(crate) name: String,
    /// Its text, for the model.
    pub(crate) text: String,
    /// What it changes about the turn.
    pub(crate) grants: TurnGrants,
}

/// Wraps one call of the Skill tool.
pub(crate) struct SkillLayer {
    /// What was decided before the call ran; taken once.
    ready: Mutex<Option<Result<SkillUse, String>>>,
    shell: Option<Arc<dyn Tool>>,
    inbox: UnboundedSender<InboxMessage>,
}

impl SkillLayer {
    /// Wraps the call that uses this skill, or says why it cannot.
    pub(crate) fn new(
        ready: Result<SkillUse, String>,
        shell: Option<Arc<dyn Tool>>,
        inbox: UnboundedSender<InboxMessage>,
    ) -> Self {
        Self { ready: Mutex::new(Some(ready)), shell, inbox }
    }

    async fn use_skill(&self, call: &PreparedCall, next: Next<'_>) -> Result<String, String> {
        let ready = lock(&self.ready).take().ok_or("The skill was used already")??;
        let (name, grants) = (ready.skill.name.clone(), ready.grants.clone());
        let text = ready.render(self.shell.clone(), next.host.as_ref()).await?;
        let used = UsedSkill { call: call.id.clone(), name: name.clone(), text, grants };
        // The driver hears of it before it hears that the call is done.
        drop(self.inbox.send(InboxMessage::SkillUsed(Box::new(used))));
        Ok(name)
    }
}

impl CallLayer for SkillLayer {
    fn run<'a>(&'a self, call: PreparedCall, next: Next<'a>) -> OutcomeFuture<'a> {
        Box::pin(async move {
            match self.use_skill(&call, next).await {
                Ok(name) => {
                    let structured = json!({"success": true, "commandName": name});
                    ToolOutcome::text(format!("The text of the skill {name} follows."), structured)
                }
                Err(why) => ToolOutcome::error(why),
            }
        })
    }
}
