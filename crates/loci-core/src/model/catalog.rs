//! The facts of all models of a run: those of the built-in table, and those of providers that settings name.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use super::{ModelFacts, ModelPricing, Price, ThinkingStyle, cloud_window, facts};

/// What a model can read that is not given its large window.
const USUAL_WINDOW: u64 = 200_000;

/// Knows the models of named providers, which are called `name/id`.
pub trait NamedModels: Debug + Send + Sync {
    /// Returns the facts about a model; `None` if no such provider has it.
    fn facts(&self, name: &str) -> Option<ModelFacts>;
    /// Hears how much a model can read, from a server that would not read more.
    fn learn_window(&self, name: &str, tokens: u64);
}

/// The facts of all models of a run; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ModelCatalog {
    named: Option<Arc<dyn NamedModels>>,
    /// The model that is asked in the place of those whose provider is not there.
    stand_in: Option<Arc<str>>,
    /// What settings say of models of the first provider, by id.
    described: Arc<BTreeMap<String, ModelDescription>>,
    windows: WindowRules,
    fields: FieldRules,
    /// What the administrator says that models cost.
    pricing: Arc<ModelPricing>,
}

/// What makes windows smaller than the table has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowRules {
    /// Whether a cloud serves the models of the first provider.
    pub is_cloud: bool,
    /// Whether nobody wants the large windows (`CLAUDE_CODE_DISABLE_1M_CONTEXT`).
    pub has_no_large: bool,
}

impl WindowRules {
    fn applied(self, name: &str, facts: ModelFacts) -> ModelFacts {
        let limit = match self {
            Self { has_no_large: true, .. } => Some(USUAL_WINDOW),
            Self { is_cloud: true, .. } => cloud_window(name),
            Self { .. } => None,
        };
        match limit {
            Some(limit) if limit < facts.window => {
                ModelFacts { window: limit, is_large_window: false, ..facts }
            }
            _ => facts,
        }
    }
}

/// What variables say of the fields of requests, over what is known of models: for gateways that refuse one or know more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldRules {
    /// Whether requests say nothing of thinking (`CLAUDE_CODE_DISABLE_THINKING`).
    pub omits_thinking: bool,
    /// Whether models that can think both ways get a budget (`CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING`).
    pub has_thinking_budget: bool,
    /// Whether models that the table lacks take an effort level (`CLAUDE_CODE_ALWAYS_ENABLE_EFFORT`).
    pub assumes_effort: bool,
}

/// Models that decide how much they think and take a budget as well.
const BOTH_WAYS: [&str; 2] = ["claude-opus-4-6", "claude-sonnet-4-6"];

impl FieldRules {
    fn applied(self, facts: ModelFacts) -> ModelFacts {
        let has_budget = self.has_thinking_budget && BOTH_WAYS.iter().any(|id| facts.id.contains(id));
        ModelFacts {
            thinking: match facts.thinking {
                _ if self.omits_thinking => ThinkingStyle::None,
                ThinkingStyle::Adaptive if has_budget => ThinkingStyle::Budget,
                style => style,
            },
            has_effort: facts.has_effort || (self.assumes_effort && !facts.is_known),
            ..facts
        }
    }
}

/// What somebody says of a model of the first provider, over what the table says or in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelDescription {
    /// Tokens the context can hold.
    pub window: Option<u64>,
    /// The most it can write.
    pub max_output: Option<u64>,
    /// What it costs.
    pub price: Option<Price>,
    /// What it can do.
    pub capabilities: Option<Capabilities>,
}

/// What somebody says that a model can do; what is not said it cannot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it takes an effort level.
    pub effort: bool,
    /// Whether it takes the level `xhigh`.
    pub xhigh_effort: bool,
    /// Whether it takes the level `max`.
    pub max_effort: bool,
    /// Whether it thinks.
    pub thinking: bool,
    /// Whether it decides itself how much.
    pub adaptive_thinking: bool,
}

impl Capabilities {
    /// Reads a list with commas; words that mean nothing here say nothing.
    pub fn parse(list: &str) -> Self {
        let has = |wanted: &str| list.split(',').any(|word| word.trim().eq_ignore_ascii_case(wanted));
        Self {
            effort: has("effort"),
            xhigh_effort: has("xhigh_effort"),
            max_effort: has("max_effort"),
            thinking: has("thinking"),
            adaptive_thinking: has("adaptive_thinking"),
        }
    }

    fn applied(self, facts: ModelFacts) -> ModelFacts {
        let has_effort = self.effort || self.xhigh_effort || self.max_effort;
        let more = [(self.xhigh_effort, "xhigh"), (self.max_effort, "max")];
        let more = more.into_iter().filter(|(has, _)| *has).map(|(_, level)| level);
        let levels = ["low", "medium", "high"].into_iter().chain(more).filter(|_| has_effort);
        ModelFacts {
            thinking: match (self.adaptive_thinking, self.thinking) {
                (true, _) => ThinkingStyle::Adaptive,
                (false, true) => ThinkingStyle::Budget,
                (false, false) => ThinkingStyle::None,
            },
            has_effort,
            effort_levels: levels.map(str::to_owned).collect(),
            ..facts
        }
    }
}

impl ModelDescription {
    fn applied(&self, mut facts: ModelFacts) -> ModelFacts {
        if let Some(window) = self.window {
            facts = ModelFacts { window, is_known: true, is_large_window: false, ..facts };
        }
        if let Some(capabilities) = self.capabilities {
            facts = capabilities.applied(facts);
        }
        let most = self.max_output.unwrap_or(facts.max_output).min((facts.window / 2).max(1));
        ModelFacts {
            max_output: most,
            default_output: facts.default_output.min(most),
            price: self.price.or(facts.price),
            is_described: true,
            ..facts
        }
    }
}

impl ModelCatalog {
    /// Adds the models of named providers to the built-in ones.
    pub fn new(named: Arc<dyn NamedModels>) -> Self {
        Self { named: Some(named), ..Self::default() }
    }

    /// Adds what settings say of models of the first provider, by id.
    #[must_use]
    pub fn describing(self, described: BTreeMap<String, ModelDescription>) -> Self {
        Self { described: Arc::new(described), ..self }
    }

    /// Makes windows smaller where these rules say so; what settings say of a model still counts.
    #[must_use]
    pub fn with_windows(self, windows: WindowRules) -> Self {
        Self { windows, ..self }
    }

    /// Has requests to the first provider say what these rules say.
    #[must_use]
    pub fn with_fields(self, fields: FieldRules) -> Self {
        Self { fields, ..self }
    }

    /// Has models cost what the administrator says.
    #[must_use]
    pub fn with_pricing(self, pricing: ModelPricing) -> Self {
        Self { pricing: Arc::new(pricing), ..self }
    }

    /// Returns what the administrator says that models cost.
    pub fn pricing(&self) -> &ModelPricing {
        &self.pricing
    }

    /// Has a model stand in for all that no named provider has: theirs is not there.
    #[must_use]
    pub fn standing_in(self, model: &str) -> Self {
        Self { stand_in: Some(Arc::from(model)), ..self }
    }

    /// Returns the model to ask where nobody chose one by name: this one, or the one that stands in for it.
    pub fn stand_in(&self, model: String) -> String {
        let is_there = || self.named.as_ref().is_some_and(|named| named.facts(&model).is_some());
        match &self.stand_in {
            Some(other) if !is_there() => other.to_string(),
            _ => model,
        }
    }

    /// Returns the facts about a model.
    pub fn facts(&self, name: &str) -> ModelFacts {
        let facts = self.described_facts(name);
        ModelFacts { price: self.pricing.applied(&facts.id, facts.price), ..facts }
    }

    fn described_facts(&self, name: &str) -> ModelFacts {
        // Only their names have a slash, so the built-in models cost nothing more.
        let named = self.named.as_ref().filter(|_| name.contains('/'));
        match named.and_then(|named| named.facts(name.trim())) {
            Some(found) if found.is_named => found,
            found => {
                let found = self.windows.applied(name, found.unwrap_or_else(|| facts(name)));
                let found = match self.described.get(name.trim()) {
                    Some(description) => description.applied(found),
                    None => found,
                };
                self.fields.applied(found)
            }
        }
    }

    /// Believes a server about the window of a model that a named provider has; tells whether it is one.
    pub fn learn_window(&self, name: &str, tokens: u64) -> bool {
        let Some(named) = self.named.as_ref().filter(|named| named.facts(name).is_some()) else {
            return false;
        };
        named.learn_window(name, tokens);
        true
    }
}

impl PartialEq for ModelCatalog {
    fn eq(&self, other: &Self) -> bool {
        let is_same = match (&self.named, &other.named) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        is_same
            && self.described == other.described
            && self.windows == other.windows
            && self.fields == other.fields
            && self.pricing == other.pricing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_rules_change_thinking_and_effort_of_models_they_are_meant_for() {
        use ThinkingStyle::{Adaptive, Budget, None};
        let none = FieldRules::default();
        let omits = FieldRules { omits_thinking: true, ..none };
        let budget = FieldRules { has_thinking_budget: true, ..none };
        let effort = FieldRules { assumes_effort: true, ..none };
        for (rules, model, thinking, has_effort) in [
            (none, "us.anthropic.claude-opus-4-6-v1", Adaptive, true),
            (none, "gateway-alias", None, false),
            (omits, "claude-opus-4-6", None, true),
            (omits, "claude-sonnet-4-5", None, false),
            (budget, "us.anthropic.claude-opus-4-6-v1", Budget, true),
            (budget, "claude-sonnet-4-6[1m]", Budget, true),
            (budget, "claude-opus-4-8", Adaptive, true),
            (effort, "gateway-alias", None, true),
            (effort, "claude-haiku-4-5", Budget, false),
        ] {
            let facts = ModelCatalog::default().with_fields(rules).facts(model);
            assert_eq!((facts.thinking, facts.has_effort), (thinking, has_effort), "{rules:?} {model}");
        }
    }
}
