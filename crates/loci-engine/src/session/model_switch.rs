//! Another model that a client or a person asks for: hooks may refuse it, and no prompt begins before they have said so.

use super::Session;
use crate::command::{Command, ModelSwitchDecision};
use crate::event::{EngineEvent, ModelChoice, ModelRefusal};

impl Session {
    /// Asks another model from now on, as soon as hooks have let it pass.
    pub(super) fn ask_for_model(&mut self, request: Option<String>, model: Option<String>) {
        let conversation = &self.conversation;
        let known = match (&request, model.as_deref()) {
            (Some(_), Some(name)) => conversation.scope.check_recognized(name),
            (None, _) | (_, None) => Ok(()),
        };
        if let Err(why) = known {
            return self.answer_model(request, Err(ModelRefusal::new(why)));
        }
        let has_screen = conversation.scope.ctx.identity.get().is_interactive();
        let source = if has_screen { "picker" } else { "sdk" };
        let Some(switch) = conversation.scope.model_switch(&conversation.recorder, model.as_deref(), source)
        else {
            let before = conversation.scope.current_model();
            let done = self.conversation.scope.set_model_by_name(model.as_deref());
            let outcome =
                done.map(|()| self.conversation.scope.model_choice(&self.conversation.recorder, &before));
            return self.answer_model(request, outcome.map_err(ModelRefusal::new));
        };
        self.n_switching += 1;
        let (hooks, commands) =
            (conversation.scope.ctx.hooks.clone(), conversation.scope.ctx.hooks.commands());
        let moment = conversation.scope.hook_moment(&conversation.recorder);
        tokio::spawn(async move {
            let refusal = hooks.before_model_switch(switch.clone(), moment).await;
            let decision = ModelSwitchDecision { request, model, switch, refusal };
            // A session that is over asks no model any more.
            if let Some(commands) = commands.upgrade() {
                drop(commands.send(Command::ModelSwitchDecided(Box::new(decision))));
            }
        });
    }

    /// Takes what hooks said.
    pub(super) fn model_switch_decided(&mut self, decision: ModelSwitchDecision) {
        let ModelSwitchDecision { request, model, switch, refusal } = decision;
        self.n_switching = self.n_switching.saturating_sub(1);
        let conversation = &mut self.conversation;
        let before = conversation.scope.current_model();
        let outcome = match refusal {
            Some(why) => Err(ModelRefusal { why, blocked_with: Some(before) }),
            None => match conversation.scope.set_model_by_name(model.as_deref()) {
                Ok(()) => {
                    conversation
                        .scope
                        .ctx
                        .hooks
                        .after_model_switch(switch, conversation.scope.hook_moment(&conversation.recorder));
                    Ok(conversation.scope.model_choice(&conversation.recorder, &before))
                }
                Err(why) => Err(ModelRefusal::new(why)),
            },
        };
        self.answer_model(request, outcome);
    }

    /// Asks another model, as a command wants it; the error says why not.
    pub(super) async fn set_model_by_command(&mut self, name: Option<&str>) -> Result<(), ModelRefusal> {
        let Some(switch) = self.conversation.scope.model_switch(&self.conversation.recorder, name, "command")
        else {
            return self.conversation.scope.set_model_by_name(name).map_err(ModelRefusal::new);
        };
        let asked = self.conversation.scope.ctx.hooks.before_model_switch(
            switch.clone(),
            self.conversation.scope.hook_moment(&self.conversation.recorder),
        );
        match self.while_hearing(asked).await {
            Some(None) => {}
            Some(Some(why)) => return Err(ModelRefusal::new(format!("A hook keeps the model: {why}"))),
            None => return Err(ModelRefusal::new("Interrupted; the model stays".to_owned())),
        }
        self.conversation.scope.set_model_by_name(name).map_err(ModelRefusal::new)?;
        self.conversation
            .scope
            .ctx
            .hooks
            .after_model_switch(switch, self.conversation.scope.hook_moment(&self.conversation.recorder));
        Ok(())
    }

    fn answer_model(&self, request: Option<String>, outcome: Result<ModelChoice, ModelRefusal>) {
        match (request, outcome) {
            (Some(request), outcome) => {
                self.conversation.scope.tell(EngineEvent::ModelAnswered { request, outcome });
            }
            (None, Err(refusal)) => self.conversation.scope.tell(EngineEvent::Warning(refusal.to_string())),
            (None, Ok(_)) => {}
        }
    }
}
