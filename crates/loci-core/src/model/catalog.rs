//! The facts of all models of a run: those of the built-in table, and those of providers that settings name.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use super::{ModelFacts, Price, cloud_window, facts};

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

/// What somebody says of a model of the first provider, over what the table says or in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelDescription {
    /// Tokens the context can hold.
    pub window: Option<u64>,
    /// The most it can write.
    pub max_output: Option<u64>,
    /// What it costs.
    pub price: Option<Price>,
}

impl ModelDescription {
    fn applied(&self, mut facts: ModelFacts) -> ModelFacts {
        if let Some(window) = self.window {
            facts = ModelFacts { window, is_known: true, is_large_window: false, ..facts };
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
        // Only their names have a slash, so the built-in models cost nothing more.
        let named = self.named.as_ref().filter(|_| name.contains('/'));
        match named.and_then(|named| named.facts(name.trim())) {
            Some(found) if found.is_named => found,
            found => {
                let found = self.windows.applied(name, found.unwrap_or_else(|| facts(name)));
                match self.described.get(name.trim()) {
                    Some(description) => description.applied(found),
                    None => found,
                }
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
        is_same && self.described == other.described && self.windows == other.windows
    }
}
