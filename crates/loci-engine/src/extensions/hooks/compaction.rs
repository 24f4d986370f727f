//! The service as compactions see it.

use loci_context::Trigger;
use loci_core::hooks::{EventInput, HookEvent};

use super::HookService;
use super::attachments::context;
use crate::conversation::host::lock;
use crate::extensions::{
    AfterCompaction, BeforeCompaction, CompactionGate, CompactionHooks, GateFuture, NoticesFuture,
};

impl CompactionHooks for HookService {
    fn listens(&self) -> bool {
        self.has(HookEvent::PreCompact) || self.has(HookEvent::PostCompact)
    }

    fn before(&self, compaction: BeforeCompaction) -> GateFuture {
        let BeforeCompaction { trigger, instructions, moment } = compaction;
        let is_manual = trigger == Trigger::Manual;
        let trigger = trigger.as_str().to_owned();
        let event = EventInput::PreCompact { trigger, custom_instructions: instructions };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let name = input.hook_name();
            let fired = service.fire(input, None, None).await;
            let decision = fired.decision;
            service.tell_user(decision.messages);
            // What speaks against a compaction that the user wants is told the model with the next prompt, too.
            let said = fired.errors.iter().chain(&decision.block).filter(|_| is_manual);
            let told: Vec<_> =
                said.map(|text| context(HookEvent::PreCompact, &name, &service.fresh_id(), text)).collect();
            lock(&service.inner.late).extend(told);
            match decision.block {
                Some(reason) => CompactionGate::Block { reason },
                None => CompactionGate::Go { instructions: None },
            }
        })
    }

    fn after(&self, compaction: AfterCompaction) -> NoticesFuture {
        let AfterCompaction { trigger, summary, moment } = compaction;
        let trigger = trigger.as_str().to_owned();
        let event = EventInput::PostCompact { trigger, compact_summary: summary };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move { service.fire(input, None, None).await.decision.messages })
    }
}
