//! Agents in the background whose model says nothing any more: they are given up, so that whoever sent them out hears of it; and
//! agents that have used what their definition lets them.
//!
//! Only the time counts in which a request is on the wire and nothing comes. Calls have limits of their own, and a person
//! who is asked may take as long as they like.

use std::time::Duration;

use super::Conversation;
use crate::event::TurnReport;

impl Conversation {
    /// Returns how long nothing may come from now on; for ever without a limit.
    pub(super) fn stall_limit(&self) -> Option<Duration> {
        let is_asking = self.run.tally.is_asking && !self.run.has_interrupted;
        self.scope.work.as_ref().filter(|_| is_asking)?.stall_limit()
    }

    /// Returns how long an agent may work from now on; for ever without a cap.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.scope.work.as_ref().filter(|_| !self.run.has_interrupted)?.time_left()
    }

    /// Ends the turn of an agent that has come to a cap of its own.
    pub(super) fn stop_at_cap(&mut self) -> Option<TurnReport> {
        let work = self.scope.work.as_mut().filter(|_| !self.run.has_interrupted)?;
        work.reached_cap = Some(work.cap()?);
        tracing::debug!(target: "loci::agents", "an agent came to its cap");
        self.interrupt()
    }

    /// Ends the turn that nothing comes of.
    pub(super) fn give_up(&mut self) -> Option<TurnReport> {
        if let Some(work) = &mut self.scope.work {
            tracing::debug!(target: "loci::agents", "an agent stalled");
            work.has_stalled = true;
        }
        self.interrupt()
    }
}

/// Ends when so much time has passed; never without a limit.
pub(super) async fn silence(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
