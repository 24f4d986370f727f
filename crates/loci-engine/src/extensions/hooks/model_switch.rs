//! The service as changes of the model see it.

use loci_core::hooks::{EventInput, HookEvent, HookPermission, ModelSwitchFields};
use tokio::sync::mpsc::WeakUnboundedSender;

use super::HookService;
use super::attachments::context;
use super::turn::or_usual;
use crate::command::Command;
use crate::conversation::host::lock;
use crate::extensions::{HookFuture, HookMoment};

/// What is said where a hook does not say why.
const NO_REASON: &str = "A hook does not let this model be chosen.";

impl HookService {
    /// Tells whether anybody has a say in which model is asked, or wants to know.
    pub(crate) fn follows_models(&self) -> bool {
        self.has(HookEvent::PreModelSwitch) || self.has(HookEvent::PostModelSwitch)
    }

    /// The way to the session for what is decided beside it.
    pub(crate) fn commands(&self) -> WeakUnboundedSender<Command> {
        self.world().commands.clone()
    }

    /// `PreModelSwitch`: says why another model may not be asked, if it may not. Where a person would have to be asked it may
    /// not: nothing else holds the change up.
    pub(crate) fn before_model_switch(
        &self,
        switch: ModelSwitchFields,
        moment: HookMoment,
    ) -> HookFuture<Option<String>> {
        if !self.has(HookEvent::PreModelSwitch) {
            return Box::pin(async { None });
        }
        let (service, input) = (self.clone(), self.input(EventInput::PreModelSwitch { switch }, moment));
        Box::pin(async move {
            let decision = service.fire(input, None, None).await.decision;
            service.tell_user(decision.messages);
            let denied = decision.permission.filter(|(word, _)| *word != HookPermission::Allow);
            let refusal = decision.block.or(decision.stop).or(denied.map(|(_, why)| why));
            refusal.map(|why| or_usual(why, NO_REASON))
        })
    }

    /// `PostModelSwitch`: told, and waited for by nobody. What is said is told the model with the next prompt.
    pub(crate) fn after_model_switch(&self, switch: ModelSwitchFields, moment: HookMoment) {
        if !self.has(HookEvent::PostModelSwitch) {
            return;
        }
        let input = self.input(EventInput::PostModelSwitch { switch }, moment);
        self.spawn_reported(move |service| async move {
            let name = input.hook_name();
            let decision = service.fire(input, None, None).await.decision;
            service.tell_user(decision.messages);
            let told = decision.context.iter();
            let told = told.map(|text| context(HookEvent::PostModelSwitch, &name, &service.fresh_id(), text));
            lock(&service.inner.late).extend(told);
        });
    }
}
