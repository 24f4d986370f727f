//! Waiting for a turn to work.

use std::sync::Mutex;

use loci_core::ids::AgentId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::scheduler::Scheduler;
use crate::conversation::host::lock;

/// The places that agents work at.
pub(crate) struct Slots {
    /// Held for one question or change.
    scheduler: Mutex<Scheduler>,
    /// Changes with it.
    changed: watch::Sender<u64>,
}

/// A place, as long as it is held.
pub(crate) struct Slot<'a> {
    slots: &'a Slots,
    id: AgentId,
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Self {
        Self { scheduler: Mutex::new(Scheduler::new(limit)), changed: watch::Sender::default() }
    }

    /// Waits for a place, unless `begins_at_once`; nothing, when it is stopped before.
    pub(crate) async fn acquire(
        &self,
        id: &AgentId,
        waited_for_by: Option<AgentId>,
        begins_at_once: bool,
        stop: &CancellationToken,
    ) -> Option<Slot<'_>> {
        // From here on the place is given back, however this ends.
        let slot = Slot { slots: self, id: id.clone() };
        let mut changed = self.changed.subscribe();
        self.change(|scheduler| match begins_at_once {
            true => scheduler.admit(id.clone(), waited_for_by),
            false => scheduler.request(id.clone(), waited_for_by),
        });
        while !lock(&self.scheduler).has_started(id) {
            tokio::select! {
                // The sender lives as long as we do.
                news = changed.changed() => news.ok()?,
                () = stop.cancelled() => return None,
            }
        }
        Some(slot)
    }

    /// Nobody waits for an agent any more.
    pub(crate) fn release(&self, id: &AgentId) {
        self.change(|scheduler| scheduler.release(id));
    }

    /// Gives the place of an agent to others for as long as it only waits for those that it sent out.
    pub(crate) async fn resting(&self, id: &AgentId, wait: impl Future<Output = ()>) {
        self.change(|scheduler| scheduler.rest(id));
        wait.await;
        lock(&self.scheduler).wake(id);
    }

    fn change(&self, change: impl FnOnce(&mut Scheduler) -> Vec<AgentId>) {
        let begun = change(&mut lock(&self.scheduler));
        if !begun.is_empty() {
            self.changed.send_modify(|n| *n += 1);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.slots.change(|scheduler| scheduler.end(&self.id));
    }
}
