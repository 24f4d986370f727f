//! The service as compactions see it.

use loci_core::hooks::{EventInput, HookEvent};

use super::HookService;
use crate::extensions::{
    AfterCompaction, BeforeCompaction, CompactionGate, CompactionHooks, GateFuture, NoticesFuture,
};

impl CompactionHooks for HookService {
    fn listens(&self) -> bool {
        self.has(HookEvent::PreCompact) || self.has(HookEvent::PostCompact)
    }

    fn before(&self, compaction: BeforeCompaction) -> GateFuture {
        let BeforeCompaction { trigger, instructions, moment } = compaction;
        let trigger = trigger.as_str().to_owned();
        let event = EventInput::PreCompact { trigger, custom_instructions: instructions };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let decision = service.fire(input, None, None).await.decision;
            service.tell_user(decision.messages);
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
