//! What is known of models: aliases, windows, limits, how they think, what they cost.
//!
//! The facts lie in `models.json` beside this file, most specific pattern first; a model matches when its id
//! contains the pattern, so dated ids, cloud prefixes and deployment names find their row. An unknown id is
//! not an error: it gets cautious limits and no price.

mod allow_list;
mod catalog;
mod pricing;
mod restrictions;

use std::sync::OnceLock;

use serde::Deserialize;

pub use allow_list::{AllowedModels, MODEL_FAMILIES, built_in_models, is_family};
pub use catalog::{Capabilities, FieldRules, ModelCatalog, ModelDescription, NamedModels, WindowRules};
pub use pricing::ModelPricing;
pub use restrictions::{DeniedModels, EFFORT_LEVELS, EffortLimits};

/// US dollars per million tokens (and per web search).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache writes that live five minutes.
    pub cache_write_5m: f64,
    /// Cache writes that live an hour.
    pub cache_write_1h: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// One server-side web search.
    pub web_search: f64,
    /// What is asked for where a prompt is long.
    pub long_prompt: Option<LongPromptPrice>,
}

/// What a model costs where its prompt is longer than usual; the rest of its prices grow in proportion.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct LongPromptPrice {
    /// Prompts of more tokens than this cost it.
    pub tokens: u64,
    /// US dollars per million tokens, in and out.
    pub price: [f64; 2],
}

impl Price {
    /// Prices a model whose provider writes no cache for money; without a price of their own, cache reads cost what input does.
    pub fn from_parts(input: f64, output: f64, cache_read: Option<f64>) -> Self {
        Self {
            input,
            output,
            cache_write_5m: input,
            cache_write_1h: input,
            cache_read: cache_read.unwrap_or(input),
            web_search: 0.0,
            long_prompt: None,
        }
    }

    /// Derives all prices from the two that are quoted, by the API's published multipliers.
    pub fn from_quote([input, output]: [f64; 2]) -> Self {
        Self {
            input,
            output,
            cache_write_5m: input * 1.25,
            cache_write_1h: input * 2.0,
            cache_read: input * 0.1,
            web_search: 0.01,
            long_prompt: None,
        }
    }

    /// Returns all prices, multiplied.
    #[must_use]
    fn times(self, factor: f64) -> Self {
        let long_prompt = self
            .long_prompt
            .map(|long| LongPromptPrice { price: long.price.map(|price| price * factor), ..long });
        Self {
            input: self.input * factor,
            output: self.output * factor,
            cache_write_5m: self.cache_write_5m * factor,
            cache_write_1h: self.cache_write_1h * factor,
            cache_read: self.cache_read * factor,
            web_search: self.web_search * factor,
            long_prompt,
        }
    }

    /// Returns what a prompt of so many tokens is charged at.
    #[must_use]
    pub fn for_prompt(&self, tokens: u64) -> Self {
        match self.long_prompt.filter(|long| tokens > long.tokens) {
            Some(long) => Self::from_quote(long.price),
            None => *self,
        }
    }
}

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingStyle {
    /// The model decides how much.
    Adaptive,
    /// With a budget of tokens.
    Budget,
    /// It cannot.
    None,
}

/// The facts about one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// The id that is sent, `[1m]` stripped.
    pub id: String,
    /// Whether the table has it; what is said of others is assumed.
    pub is_known: bool,
    /// Tokens the context can hold.
    pub window: u64,
    /// Whether the large window was asked for and exists.
    pub is_large_window: bool,
    /// The most the model can write.
    pub max_output: u64,
    /// What we ask for at first.
    pub default_output: u64,
    /// How it thinks.
    pub thinking: ThinkingStyle,
    /// Whether it takes an effort level.
    pub has_effort: bool,
    /// The levels it takes; all there are, if none are named.
    pub effort_levels: Vec<String>,
    /// The level it is asked for when nobody chose one; none, if it is empty.
    pub default_effort: &'static str,
    /// What it costs, if known.
    pub price: Option<Price>,
    /// Whether a provider that settings name has it.
    pub is_named: bool,
    /// Whether settings say something of it over what the table says.
    pub is_described: bool,
}

/// The levels of effort, the least first.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

impl ModelFacts {
    /// Returns the level to ask for when `chosen` is wanted: the next lower that the model takes, or its least.
    pub fn effort(&self, chosen: Option<&str>) -> Option<String> {
        let wanted = chosen.unwrap_or(self.default_effort);
        if !self.has_effort || wanted.is_empty() {
            return None;
        }
        if self.effort_levels.is_empty() || self.effort_levels.iter().any(|level| level == wanted) {
            return Some(wanted.to_owned());
        }
        let rank = |level: &str| EFFORTS.iter().position(|it| *it == level).unwrap_or(EFFORTS.len());
        let lower = self.effort_levels.iter().filter(|level| rank(level) < rank(wanted));
        let least = || self.effort_levels.iter().min_by_key(|level| rank(level));
        lower.max_by_key(|level| rank(level)).or_else(least).cloned()
    }
}

/// The effort level of models that say nothing else.
const USUAL_EFFORT: &str = "high";

#[derive(Deserialize)]
struct Table {
    aliases: std::collections::BTreeMap<String, String>,
    models: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "match")]
    pattern: String,
    /// The newest model that the pattern stands for, where it is no id itself.
    id: Option<String>,
    window: u64,
    large_window: Option<u64>,
    /// What clouds give it unless the large one is asked for.
    cloud_window: Option<u64>,
    max_output: u64,
    default_output: u64,
    thinking: ThinkingStyle,
    #[serde(default)]
    effort: bool,
    default_effort: Option<String>,
    price: Option<[f64; 2]>,
    price_above: Option<LongPromptPrice>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        #[expect(clippy::expect_used, reason = "the table is part of the program; a test parses it")]
        serde_json::from_str(include_str!("models.json")).expect("models.json is valid")
    })
}

/// The aliases people choose from, the usual one first.
pub const MODEL_ALIASES: [&str; 5] = ["default", "opus", "sonnet", "haiku", "fable"];

/// Tells whether what a model used could not be priced; a cost that somebody else recorded is one.
pub fn is_price_unknown(model: &str, usage: &crate::usage::ModelUsage) -> bool {
    usage.price_unknown.unwrap_or_else(|| facts(model).price.is_none() && usage.cost_usd == 0.0)
}

/// Splits a `[1m]` suffix, which asks for the large window, from a model name.
fn split_window_suffix(name: &str) -> (&str, bool) {
    match name.trim().strip_suffix("[1m]") {
        Some(base) => (base.trim_end(), true),
        None => (name.trim(), false),
    }
}

/// Turns an alias into the id it stands for; any other name is passed through. The `[1m]` suffix stays.
///
/// `overrides` answers with the user's own target for an alias (`ANTHROPIC_DEFAULT_OPUS_MODEL` and kin).
pub fn resolve_alias(name: &str, overrides: impl Fn(&str) -> Option<String>) -> String {
    let (base, wants_large) = split_window_suffix(name);
    let lowered = base.to_ascii_lowercase();
    let target = overrides(&lowered).or_else(|| table().aliases.get(&lowered).cloned());
    match target {
        Some(id) if wants_large && !id.ends_with("[1m]") => format!("{id}[1m]"),
        Some(id) => id,
        None => name.trim().to_owned(),
    }
}

/// Returns the window that clouds give a model, where they give it less than the first provider; `[1m]` asks for all of it.
pub(crate) fn cloud_window(name: &str) -> Option<u64> {
    let (id, wants_large) = split_window_suffix(name);
    let row = table().models.iter().find(|row| id.contains(&row.pattern))?;
    row.cloud_window.filter(|_| !wants_large)
}

/// Returns the facts about a model id, with or without `[1m]`.
pub fn facts(name: &str) -> ModelFacts {
    let (id, wants_large) = split_window_suffix(name);
    let row = table().models.iter().find(|row| id.contains(&row.pattern));
    match row {
        Some(row) => ModelFacts {
            id: id.to_owned(),
            is_known: true,
            window: if wants_large { row.large_window.unwrap_or(row.window) } else { row.window },
            is_large_window: wants_large && row.large_window.is_some(),
            max_output: row.max_output,
            default_output: row.default_output,
            thinking: row.thinking,
            has_effort: row.effort,
            effort_levels: Vec::new(),
            default_effort: row.default_effort.as_deref().unwrap_or(USUAL_EFFORT),
            price: row.price.map(|quote| Price { long_prompt: row.price_above, ..Price::from_quote(quote) }),
            is_named: false,
            is_described: false,
        },
        None => ModelFacts {
            id: id.to_owned(),
            is_known: false,
            window: if wants_large { 1_000_000 } else { 200_000 },
            is_large_window: wants_large,
            max_output: 32_000,
            default_output: 32_000,
            thinking: ThinkingStyle::None,
            has_effort: false,
            effort_levels: Vec::new(),
            default_effort: USUAL_EFFORT,
            price: None,
            is_named: false,
            is_described: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_resolve_and_keep_the_window_suffix() {
        let none = |_: &str| None;
        for (name, expected) in [
            ("sonnet", "claude-sonnet-5-5"),
            ("haiku", "claude-haiku-5-5"),
            ("fable", "claude-fable-5-2"),
            ("best", "claude-opus-5-5"),
            ("Opus", "claude-opus-5-5"),
            ("opus[1m]", "claude-opus-5-5[1m]"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929"),
            ("my-deployment", "my-deployment"),
        ] {
            assert_eq!(resolve_alias(name, none), expected);
        }
        let own = |alias: &str| (alias == "haiku").then(|| "my-haiku".to_owned());
        assert_eq!(resolve_alias("haiku", own), "my-haiku");
    }

    #[test]
    fn every_row_is_reachable_and_sane() {
        for row in &table().models {
            let found = facts(&row.pattern);
            assert_eq!(found.max_output, row.max_output, "{} is shadowed by an earlier row", row.pattern);
            assert!(found.default_output <= found.max_output, "{}", row.pattern);
            assert!(found.max_output < found.window, "{}", row.pattern);
            let id = row.id.as_deref().unwrap_or(&row.pattern);
            assert!(id.starts_with(&row.pattern), "{id}");
        }
        for target in table().aliases.values() {
            assert!(facts(target).price.is_some(), "{target} has no row");
        }
    }

    #[test]
    fn effort_falls_to_the_next_lower_level_that_a_model_takes() {
        let model = |levels: &[&str]| ModelFacts {
            has_effort: true,
            effort_levels: levels.iter().map(|level| (*level).to_owned()).collect(),
            default_effort: "",
            ..facts("x")
        };
        for (levels, chosen, expected) in [
            (&["low", "high"][..], Some("high"), Some("high")),
            (&["low", "high"], Some("medium"), Some("low")),
            (&["low", "high"], Some("max"), Some("high")),
            (&["medium", "high"], Some("low"), Some("medium")),
            (&["low", "high"], None, None),
            (&[], Some("max"), Some("max")),
        ] {
            assert_eq!(model(levels).effort(chosen).as_deref(), expected, "{levels:?} {chosen:?}");
        }
        assert_eq!(facts("x").effort(Some("high")), None);
        assert_eq!(facts("claude-opus-5-5").effort(None).as_deref(), Some("medium"));
    }

    #[test]
    fn model_facts_have_window_and_price() {
        assert_eq!(facts("claude-opus-4-8[1m]").window, 1_000_000);
        assert_eq!(facts("claude-opus-4-8[1m]").id, "claude-opus-4-8");
        assert_eq!(facts("us.anthropic.claude-sonnet-4-5-v1:0").price.unwrap().input, 3.0);
        assert_eq!(facts("claude-opus-4-1").price.unwrap().output, 75.0);
        assert_eq!(facts("gpt-oss").price, None);
        let newest = facts("claude-opus-5-5");
        assert_eq!((newest.window, newest.max_output, newest.default_output), (1_000_000, 128_000, 128_000));
        assert_eq!((newest.thinking, newest.default_effort), (ThinkingStyle::Adaptive, "medium"));
        let price = newest.price.unwrap();
        assert_eq!(
            (price.input, price.output, price.cache_write_5m, price.cache_read),
            (4.0, 20.0, 5.0, 0.4)
        );
        assert_eq!(facts("claude-opus-5").price.unwrap().input, 5.0);
        assert_eq!(facts("claude-sonnet-5-5").price.unwrap().output, 10.0);
        assert_eq!(facts("claude-fable-5-2").price.unwrap().input, 8.0);
        let small = facts("claude-haiku-5-5").price.unwrap();
        assert_eq!((small.for_prompt(100_000).input, small.for_prompt(100_001).input), (0.1, 0.5));
        assert_eq!(facts("claude-opus-4-8").default_effort, "high");
    }

    #[test]
    fn clouds_and_the_switch_make_windows_smaller() {
        let api = WindowRules::default();
        let cloud = WindowRules { is_cloud: true, ..api };
        let small = WindowRules { has_no_large: true, ..api };
        for (rules, name, expected) in [
            (api, "claude-opus-4-8", 1_000_000),
            (cloud, "claude-opus-4-8", 200_000),
            (cloud, "us.anthropic.claude-opus-4-6-v1", 200_000),
            (cloud, "claude-opus-4-8[1m]", 1_000_000),
            (cloud, "claude-opus-5", 1_000_000),
            (small, "claude-opus-5", 200_000),
            (small, "claude-sonnet-4-5[1m]", 200_000),
            (small, "claude-sonnet-4-5", 200_000),
        ] {
            let found = ModelCatalog::default().with_windows(rules).facts(name);
            assert_eq!(found.window, expected, "{rules:?} {name}");
        }
        let own = ModelDescription { window: Some(300_000), ..ModelDescription::default() };
        let described = [("claude-opus-5".to_owned(), own)].into();
        let catalog = ModelCatalog::default().with_windows(small).describing(described);
        assert_eq!(catalog.facts("claude-opus-5").window, 300_000, "what settings say counts");
    }
}
