//! What a session used that no response of its transcripts says: what its `cost-state` lines have beyond them.

use loci_core::cost_state::is_same_model;
use loci_core::model::ModelCatalog;
use loci_core::usage::ModelUsage;
use rustc_hash::FxHashSet;

use super::line_reader::{UsageKind, UsageRecord};

/// Usage of one model beyond what is recorded, first told by the record at a place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unrecorded {
    /// The place of the `cost-state` among the session's own records.
    pub(super) at: usize,
    pub(super) model: String,
    pub(super) usage: ModelUsage,
}

/// Compares every `cost-state` of a session with the responses up to there: those before it in its own transcript, and
/// those that its agents got earlier.
pub(super) fn unrecorded(
    own: &[UsageRecord],
    agents: &[UsageRecord],
    models: &ModelCatalog,
) -> Vec<Unrecorded> {
    if !own.iter().any(|record| matches!(record.what, UsageKind::State(_))) {
        return Vec::new();
    }
    let mut agents: Vec<&UsageRecord> = agents.iter().collect();
    agents.sort_by_key(|record| record.time_ms);
    let mut agents = agents.into_iter().peekable();
    let mut recorded = Recorded::default();
    let mut found: Vec<Unrecorded> = Vec::new();
    for (at, record) in own.iter().enumerate() {
        let UsageKind::State(state) = &record.what else {
            recorded.add(record, models);
            continue;
        };
        while let Some(earlier) = agents.next_if(|agent| agent.time_ms <= record.time_ms) {
            recorded.add(earlier, models);
        }
        for (model, told) in &state.totals.by_model {
            let mut beyond = told.beyond(&recorded.usage(model));
            if beyond.is_unused() && models.facts(model).price.is_some() {
                continue;
            }
            for known in found.iter().filter(|known| known.model == *model) {
                beyond = beyond.beyond(&known.usage);
            }
            if beyond != ModelUsage::default() {
                found.push(Unrecorded { at, model: model.clone(), usage: beyond });
            }
        }
    }
    found
}

/// What responses said so far, by model.
#[derive(Default)]
struct Recorded {
    by_model: Vec<(String, ModelUsage)>,
    seen: FxHashSet<u64>,
}

impl Recorded {
    fn add(&mut self, record: &UsageRecord, models: &ModelCatalog) {
        let (UsageKind::Response(usage), Some(model)) = (&record.what, &record.model) else { return };
        if !self.seen.insert(record.key) {
            return;
        }
        let price = models.facts(model).price;
        let row = match self.by_model.iter_mut().position(|(name, _)| **name == **model) {
            Some(at) => &mut self.by_model[at].1,
            None => {
                self.by_model.push((model.to_string(), ModelUsage::default()));
                let last = self.by_model.len() - 1;
                &mut self.by_model[last].1
            }
        };
        row.add(usage, price.as_ref());
    }

    fn usage(&self, model: &str) -> ModelUsage {
        let mut sum = ModelUsage::default();
        let rows = self.by_model.iter().filter(|(name, _)| is_same_model(name, model));
        rows.for_each(|(_, usage)| sum.add_all(usage));
        sum
    }
}
