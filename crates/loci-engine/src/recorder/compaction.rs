//! How a compaction is recorded: a boundary, the summary, and what the boundary says about both.

use std::sync::Arc;
use std::time::Duration;

use loci_context::{CompactionPlan, Projection, Trigger, estimate_messages, prose_tokens, summary_text};
use loci_core::entry::Entry;
use loci_core::entry::draft::{Draft, Metadata};
use loci_core::ids::EntryId;
use serde_json::{Value, json};

use super::Recorder;

/// A compaction to be recorded.
pub(crate) struct Shortened<'a> {
    /// What it summarises and keeps.
    pub(crate) plan: &'a CompactionPlan,
    /// Who wanted it.
    pub(crate) trigger: Trigger,
    /// The summary.
    pub(crate) summary: &'a str,
    /// How full the context was.
    pub(crate) tokens_before: u64,
    /// What a request has besides its messages.
    pub(crate) overhead: u64,
    /// How long it took.
    pub(crate) duration: Duration,
}

impl Recorder {
    /// Puts a summary in the place of what it stands for; returns the boundary and the summary. The transcript keeps
    /// every entry, and what goes on hangs under the summary, as other readers of the format expect.
    pub(crate) fn compact(&mut self, shortened: &Shortened<'_>) -> Option<(Arc<Entry>, Arc<Entry>)> {
        let transcript = self.log.path().map(|path| path.display().to_string());
        let text = summary_text(shortened.summary, transcript.as_deref());
        let kept = self.path[shortened.plan.preserved.clone()].to_vec();
        let anchor = self.fresh_id();
        let tokens_after = estimate(&text, &kept) + shortened.overhead;
        let metadata = metadata(shortened, tokens_after, &anchor, &shortened.plan.preserved_ids(&self.path));
        let pointer = self.pointer();
        let last = self.tail.take();
        let boundary = self.seal(&Draft::boundary(last.as_ref(), metadata), None);
        let summary = self.seal(&Draft::summary(self.prompt.clone(), &text), Some(anchor));
        let (Some(boundary), Some(summary)) = (boundary, summary) else {
            self.tail = last;
            return None;
        };
        let lines: Vec<Arc<Entry>> = pointer.into_iter().chain([boundary.clone(), summary.clone()]).collect();
        self.log(&lines);
        self.path = [boundary.clone(), summary.clone()].into_iter().chain(kept).collect();
        self.projection = Projection::of(self.path.iter().map(Arc::as_ref));
        Some((boundary, summary))
    }

    /// Returns the pointer to where the conversation stood, which precedes a boundary.
    fn pointer(&self) -> Option<Arc<Entry>> {
        let leaf = self.tail.clone()?;
        self.metadata(&Metadata::LastPrompt { prompt: self.last_prompt.clone(), leaf })
    }
}

fn estimate(summary: &str, kept: &[Arc<Entry>]) -> u64 {
    let kept = Projection::of(kept.iter().map(Arc::as_ref)).messages(None);
    prose_tokens(summary) + estimate_messages(&kept)
}

fn metadata(shortened: &Shortened<'_>, tokens_after: u64, anchor: &EntryId, kept: &[EntryId]) -> Value {
    let ids: Vec<&str> = kept.iter().map(EntryId::as_str).collect();
    json!({
        "trigger": shortened.trigger.as_str(),
        "preTokens": shortened.tokens_before,
        "durationMs": shortened.duration.as_millis() as u64,
        "preservedSegment": {"headUuid": ids.first(), "anchorUuid": anchor.as_str(), "tailUuid": ids.last()},
        "preservedMessages": {"anchorUuid": anchor.as_str(), "uuids": ids, "allUuids": ids},
        "postTokens": tokens_after,
        "cumulativeDroppedTokens": shortened.tokens_before.saturating_sub(tokens_after),
    })
}
