//! How a compaction is recorded: a boundary, the summary, and what the boundary says about both.

use std::sync::Arc;
use std::time::Duration;

use loci_context::{CompactionResult, Trigger, estimate_path, prose_tokens, summary_text};
use loci_core::entry::Entry;
use loci_core::entry::draft::{Draft, Metadata};
use loci_core::ids::EntryId;
use serde_json::{Value, json};

use super::Recorder;

/// A compaction to be recorded.
pub(crate) struct Shortened<'a> {
    /// What it summarises and keeps, and the summary.
    pub(crate) shorter: &'a CompactionResult,
    /// Who wanted it.
    pub(crate) trigger: Trigger,
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
        let CompactionResult { plan, summary, .. } = shortened.shorter;
        let text = summary_text(summary, transcript.as_deref());
        let kept = self.path[plan.preserved.clone()].to_vec();
        let anchor = self.fresh_id();
        let tokens_after = prose_tokens(&text) + estimate_path(&kept, &self.replaced) + shortened.overhead;
        let metadata = metadata(shortened, tokens_after, &anchor, &plan.preserved_ids(&self.path));
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
        self.project();
        Some((boundary, summary))
    }

    /// Returns the pointer to where the conversation stood, which precedes a boundary.
    fn pointer(&self) -> Option<Arc<Entry>> {
        let leaf = self.tail.clone()?;
        self.metadata(&Metadata::LastPrompt { prompt: self.last_prompt.clone(), leaf })
    }
}

fn metadata(shortened: &Shortened<'_>, tokens_after: u64, anchor: &EntryId, kept: &[EntryId]) -> Value {
    let ids: Vec<&str> = kept.iter().map(EntryId::as_str).collect();
    let mut metadata = json!({
        "trigger": shortened.trigger.as_str(),
        "preTokens": shortened.tokens_before,
        "durationMs": shortened.duration.as_millis() as u64,
    });
    // Readers take these fields for a segment that is there.
    if let (Some(head), Some(tail)) = (ids.first(), ids.last()) {
        let anchor = anchor.as_str();
        metadata["preservedSegment"] = json!({"headUuid": head, "anchorUuid": anchor, "tailUuid": tail});
        metadata["preservedMessages"] = json!({"anchorUuid": anchor, "uuids": ids, "allUuids": ids});
    }
    metadata["postTokens"] = json!(tokens_after);
    metadata["cumulativeDroppedTokens"] = json!(shortened.tokens_before.saturating_sub(tokens_after));
    shortened.shorter.carryover.keep_in(&mut metadata);
    metadata
}
