//! The accounts of one turn.

use std::time::Duration;

use loci_context::Fullness;
use loci_core::app_state::Denial;
use loci_core::session::{SessionIdentity, Totals};
use loci_core::tool::PathEffect;
use loci_core::usage::Usage;

use crate::event::TurnReport;
use crate::turn::{Outcome, TurnEnd};

/// What a turn has used so far.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    began: Duration,
    request_began: Duration,
    /// Whether a request is on the wire.
    pub(super) is_asking: bool,
    has_first_event: bool,
    /// What the turn began with, where that was no prompt of a person.
    pub(super) origin: Option<&'static str>,
    /// Tokens of this turn.
    pub(super) usage: Usage,
    /// The text of the last assistant message.
    pub(super) text: String,
    /// What a hook wants shown in its place.
    pub(super) shown_text: Option<String>,
    /// Files that calls have changed.
    pub(super) written: Vec<PathEffect>,
    api: Duration,
    first_event_after: Option<Duration>,
    first_content_after: Option<Duration>,
    first_request_after: Option<Duration>,
}

impl Tally {
    pub(super) fn begin(now: Duration) -> Self {
        Self {
            began: now,
            request_began: now,
            is_asking: false,
            has_first_event: false,
            origin: None,
            usage: Usage::default(),
            text: String::new(),
            shown_text: None,
            written: Vec::new(),
            api: Duration::ZERO,
            first_event_after: None,
            first_content_after: None,
            first_request_after: None,
        }
    }

    pub(super) fn request_began(&mut self, now: Duration, process_started: Duration) {
        self.request_began = now;
        self.is_asking = true;
        self.has_first_event = false;
        self.first_request_after.get_or_insert(now.saturating_sub(process_started));
    }

    /// Notes an event; for the first of a request, returns how long it took to come.
    pub(super) fn on_stream_event(&mut self, now: Duration) -> Option<Duration> {
        if std::mem::replace(&mut self.has_first_event, true) {
            return None;
        }
        self.first_event_after.get_or_insert(now.saturating_sub(self.began));
        Some(now.saturating_sub(self.request_began))
    }

    /// Notes that a block of an answer is complete.
    pub(super) fn on_block(&mut self, now: Duration) {
        self.first_content_after.get_or_insert(now.saturating_sub(self.began));
    }

    /// Notes the end of a request and returns how long it took.
    pub(super) fn request_ended(&mut self, now: Duration) -> Duration {
        let taken = now.saturating_sub(self.request_began);
        self.is_asking = false;
        self.api += taken;
        taken
    }

    pub(super) fn report(
        &self,
        end: TurnEnd,
        denials: Vec<Denial>,
        identity: &SessionIdentity,
        totals: Totals,
        context: Fullness,
        now: Duration,
    ) -> TurnReport {
        let shown_text = self.shown_text.clone().filter(|_| end.outcome == Outcome::Completed);
        TurnReport {
            outcome: end.outcome,
            origin: self.origin.map(Into::into),
            text: self.text.clone(),
            shown_text,
            stop_reason: end.stop_reason,
            round_trips: end.round_trips,
            usage: self.usage.clone(),
            total_cost_usd: totals.cost_usd(),
            by_model: totals.by_model,
            denials,
            duration: now.saturating_sub(self.began),
            api_duration: self.api,
            first_event_after: self.first_event_after,
            first_content_after: self.first_content_after,
            first_request_after: self.first_request_after,
            context,
            session: identity.id().clone(),
            transcript: identity.is_persistent().then(|| identity.transcript_path()),
            is_saved: true,
        }
    }
}
