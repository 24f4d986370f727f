//! What hooks are told of another model: which, who wants it, and what it costs to begin with it in the middle.

use loci_core::entry::EntryKind;
use loci_core::hooks::ModelSwitchFields;
use serde_json::Value;

use super::scope::ConversationScope;
use crate::conversation::recorder::Recorder;

/// The counts of a usage that are in the window of the next request.
const COUNTS: [&str; 4] =
    ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];

impl ConversationScope {
    /// Returns what hooks are told of a model that somebody asks for; none where nobody listens, or where it stays the same.
    pub(crate) fn model_switch(
        &self,
        recorder: &Recorder,
        requested: Option<&str>,
        source: &str,
    ) -> Option<ModelSwitchFields> {
        let to_model = requested.map_or_else(|| self.model.main.clone(), |name| self.allowed_model(name));
        self.switch_to(recorder, to_model, requested, source)
    }

    /// Tells hooks that another model took over.
    pub(crate) fn tell_hooks_of_fallback(&self, recorder: &Recorder, from: &str, to: &str) {
        let switch = self.switch_to(recorder, to.to_owned(), None, "auto").filter(|_| self.is_main());
        if let Some(switch) = switch.map(|switch| ModelSwitchFields { from_model: from.to_owned(), ..switch })
        {
            self.ctx.hooks.after_model_switch(switch, self.hook_moment(recorder));
        }
    }

    fn switch_to(
        &self,
        recorder: &Recorder,
        to_model: String,
        requested: Option<&str>,
        source: &str,
    ) -> Option<ModelSwitchFields> {
        let from_model = self.current_model();
        if !self.ctx.hooks.follows_models() || from_model == to_model {
            return None;
        }
        let context_tokens = answered_tokens(recorder);
        let facts = self.model.catalog.facts(&to_model);
        let per_token = facts.price.map_or(0.0, |price| price.cache_write_5m / 1e6);
        let pricing = match facts.price {
            _ if self.model.catalog.pricing().covers(&facts.id) => "configured",
            Some(_) => "catalog",
            None => "default",
        };
        Some(ModelSwitchFields {
            from_model,
            to_model,
            requested_model: requested.map(str::to_owned),
            source: source.to_owned(),
            context_tokens,
            prompt_cache_warm: recorder.is_cache_warm(self),
            cache_ttl: self.cache_life().as_str().to_owned(),
            estimated_cache_write_usd: context_tokens as f64 * per_token,
            pricing: pricing.to_owned(),
        })
    }
}

/// Returns the tokens of the last answer, with what it was asked; nothing before the first.
fn answered_tokens(recorder: &Recorder) -> u64 {
    let last = recorder.path().iter().rfind(|entry| entry.head().kind == EntryKind::Assistant);
    let message: Option<Value> = last.and_then(|entry| entry.fields().read("message"));
    let Some(message) = message else { return 0 };
    COUNTS.iter().filter_map(|count| message["usage"][count].as_u64()).sum()
}
