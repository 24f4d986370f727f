//! Token usage as the API reports it, and what it costs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{ModelFacts, Price};

/// Token counts of one response; fields we do not know are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read at full price.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens written to the prompt cache.
    #[serde(default, deserialize_with = "null_is_zero")]
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the prompt cache.
    #[serde(default, deserialize_with = "null_is_zero")]
    pub cache_read_input_tokens: u64,
    /// Tokens the model wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// Everything else the server said.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Groups of counts that are added up like the others.
const COUNTED: [&str; 3] = ["server_tool_use", "cache_creation", "output_tokens_details"];

fn null_is_zero<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Option::<u64>::deserialize(deserializer)?.unwrap_or(0))
}

impl Usage {
    /// Returns the tokens the context held after this response: the canonical count.
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens
            + self.cache_creation_input_tokens
            + self.cache_read_input_tokens
            + self.output_tokens
    }

    /// Takes over what a later event of the same response reported; zero and absent fields change nothing.
    pub fn update(&mut self, later: &Usage) {
        let newer = |old: &mut u64, new: u64| {
            if new > 0 {
                *old = new;
            }
        };
        newer(&mut self.input_tokens, later.input_tokens);
        newer(&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens);
        newer(&mut self.cache_read_input_tokens, later.cache_read_input_tokens);
        newer(&mut self.output_tokens, later.output_tokens);
        for (key, value) in &later.extra {
            self.extra.insert(key.clone(), value.clone());
        }
    }

    /// Adds another response's counts.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.output_tokens += other.output_tokens;
        for key in COUNTED {
            if let Some(Value::Object(counts)) = other.extra.get(key) {
                let sums = self.extra.entry(key).or_insert_with(|| Value::Object(Map::new()));
                for (name, count) in counts.iter().filter_map(|(name, count)| Some((name, count.as_u64()?))) {
                    let sum = sums.get(name).and_then(Value::as_u64).unwrap_or(0) + count;
                    sums[name.as_str()] = sum.into();
                }
            }
        }
    }

    /// Returns how many server-side web searches were made.
    pub fn web_searches(&self) -> u64 {
        self.counted("server_tool_use", "web_search_requests")
    }

    /// Returns how many of the tokens that the model wrote were thoughts.
    pub fn thinking_tokens(&self) -> u64 {
        self.counted("output_tokens_details", "thinking_tokens").min(self.output_tokens)
    }

    fn cache_writes_for_an_hour(&self) -> u64 {
        self.counted("cache_creation", "ephemeral_1h_input_tokens").min(self.cache_creation_input_tokens)
    }

    fn cache_writes_for_minutes(&self) -> u64 {
        self.counted("cache_creation", "ephemeral_5m_input_tokens").min(self.cache_creation_input_tokens)
    }

    fn counted(&self, group: &str, name: &str) -> u64 {
        self.extra.get(group).and_then(|counts| counts.get(name)).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Returns what the response cost in US dollars at list price.
    pub fn cost_usd(&self, price: &Price) -> f64 {
        let price = price.for_prompt(self.context_tokens() - self.output_tokens);
        let hour = self.cache_writes_for_an_hour();
        let per_million = self.input_tokens as f64 * price.input
            + self.output_tokens as f64 * price.output
            + self.cache_read_input_tokens as f64 * price.cache_read
            + (self.cache_creation_input_tokens - hour) as f64 * price.cache_write_5m
            + hour as f64 * price.cache_write_1h;
        per_million / 1e6 + self.web_searches() as f64 * price.web_search
    }

    /// Returns the form that transcripts and results show: every field the format has, defaults filled in.
    pub fn to_full_value(&self) -> Value {
        let mut value = serde_json::json!({
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.cache_creation_input_tokens,
            "cache_read_input_tokens": self.cache_read_input_tokens,
            "output_tokens": self.output_tokens,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
            "inference_geo": "",
            "iterations": [],
            "speed": "standard",
        });
        for (key, extra) in &self.extra {
            value[key] = extra.clone();
        }
        value
    }
}

/// Totals for one model over a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelUsage {
    /// Tokens read at full price.
    pub input_tokens: u64,
    /// Tokens written by the model.
    pub output_tokens: u64,
    /// Tokens read from the prompt cache.
    pub cache_read_input_tokens: u64,
    /// Tokens written to the prompt cache.
    pub cache_creation_input_tokens: u64,
    /// Of what the model wrote, its thoughts.
    pub thinking_tokens: u64,
    /// Of what was written to the cache, what stays there for five minutes, as far as the server says so.
    #[serde(rename = "cacheCreationEphemeral5mInputTokens")]
    pub cache_creation_5m_tokens: u64,
    /// What stays there for an hour.
    #[serde(rename = "cacheCreationEphemeral1hInputTokens")]
    pub cache_creation_1h_tokens: u64,
    /// Server-side web searches.
    pub web_search_requests: u64,
    /// Cost at list price.
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    /// How much the model can read, for one that the built-in table does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How much it may write, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Whether what it costs is unknown, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_unknown: Option<bool>,
}

impl ModelUsage {
    /// Adds one response.
    pub fn add(&mut self, usage: &Usage, price: Option<&Price>) {
        self.input_tokens += usage.input_tokens;
        self.output_tokens += usage.output_tokens;
        self.cache_read_input_tokens += usage.cache_read_input_tokens;
        self.cache_creation_input_tokens += usage.cache_creation_input_tokens;
        self.thinking_tokens += usage.thinking_tokens();
        self.cache_creation_5m_tokens += usage.cache_writes_for_minutes();
        self.cache_creation_1h_tokens += usage.cache_writes_for_an_hour();
        self.web_search_requests += usage.web_searches();
        self.cost_usd += price.map_or(0.0, |price| usage.cost_usd(price));
    }

    /// Keeps the facts about a model that nobody could look up later.
    pub fn keep_facts(&mut self, facts: &ModelFacts) {
        if facts.is_named || facts.is_described {
            self.context_window = Some(facts.window);
            self.max_output_tokens = Some(facts.default_output);
            self.price_unknown = Some(facts.price.is_none()).filter(|is_unknown| *is_unknown);
        }
    }

    /// Returns by how much each figure is more than another's.
    #[must_use]
    pub fn beyond(&self, other: &ModelUsage) -> Self {
        let less = |of: fn(&ModelUsage) -> u64| of(self).saturating_sub(of(other));
        Self {
            input_tokens: less(|it| it.input_tokens),
            output_tokens: less(|it| it.output_tokens),
            cache_read_input_tokens: less(|it| it.cache_read_input_tokens),
            cache_creation_input_tokens: less(|it| it.cache_creation_input_tokens),
            thinking_tokens: less(|it| it.thinking_tokens),
            cache_creation_5m_tokens: less(|it| it.cache_creation_5m_tokens),
            cache_creation_1h_tokens: less(|it| it.cache_creation_1h_tokens),
            web_search_requests: less(|it| it.web_search_requests),
            cost_usd: (self.cost_usd - other.cost_usd).max(0.0),
            ..self.clone()
        }
    }

    /// Tells whether nothing was used; what it cost does not matter.
    pub fn is_unused(&self) -> bool {
        let tokens = self.input_tokens
            + self.output_tokens
            + self.cache_read_input_tokens
            + self.cache_creation_input_tokens;
        tokens + self.web_search_requests == 0
    }

    /// Adds the totals of another run.
    pub fn add_all(&mut self, other: &ModelUsage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.thinking_tokens += other.thinking_tokens;
        self.cache_creation_5m_tokens += other.cache_creation_5m_tokens;
        self.cache_creation_1h_tokens += other.cache_creation_1h_tokens;
        self.web_search_requests += other.web_search_requests;
        self.cost_usd += other.cost_usd;
        self.context_window = other.context_window.or(self.context_window);
        self.max_output_tokens = other.max_output_tokens.or(self.max_output_tokens);
        self.price_unknown = other.price_unknown.or(self.price_unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(value: Value) -> Usage {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn later_events_complete_earlier_ones() {
        let mut first = usage(json!({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}));
        first.update(&usage(json!({"output_tokens": 20, "service_tier": "standard"})));
        assert_eq!((first.input_tokens, first.output_tokens, first.cache_read_input_tokens), (10, 20, 5));
        assert_eq!(first.context_tokens(), 35);
        assert_eq!(first.to_full_value()["service_tier"], "standard");
    }

    #[test]
    fn cost_counts_each_kind_of_token_once() {
        let price = Price {
            input: 3.0,
            output: 15.0,
            cache_write_5m: 3.75,
            cache_write_1h: 6.0,
            cache_read: 0.3,
            web_search: 0.01,
            long_prompt: None,
        };
        let million = 1_000_000;
        for (value, expected) in [
            (json!({"input_tokens": million}), 3.0),
            (json!({"output_tokens": million}), 15.0),
            (json!({"cache_read_input_tokens": million}), 0.3),
            (json!({"cache_creation_input_tokens": million}), 3.75),
            (
                json!({"cache_creation_input_tokens": million, "cache_creation": {"ephemeral_1h_input_tokens": million}}),
                6.0,
            ),
            (json!({"server_tool_use": {"web_search_requests": 2}}), 0.02),
            (json!({"input_tokens": 0, "cache_read_input_tokens": null}), 0.0),
        ] {
            let cost = usage(value.clone()).cost_usd(&price);
            assert!((cost - expected).abs() < 1e-9, "{value}: {cost}");
        }
    }

    #[test]
    fn groups_of_counts_are_added_up() {
        let one = json!({"input_tokens": 1, "output_tokens": 9, "server_tool_use": {"web_search_requests": 1},
            "output_tokens_details": {"thinking_tokens": 4}, "service_tier": "standard"});
        let mut sum = Usage::default();
        sum.add(&usage(one.clone()));
        sum.add(&usage(one));
        assert_eq!((sum.web_searches(), sum.thinking_tokens(), sum.output_tokens), (2, 8, 18));
        assert_eq!(sum.extra.get("service_tier"), None);
        let mut model = ModelUsage::default();
        model.add(&sum, None);
        assert_eq!(serde_json::to_value(&model).unwrap()["thinkingTokens"], 8);
        assert!(model.beyond(&model).is_unused());
    }

    #[test]
    fn unknown_fields_survive() {
        let value = json!({"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 2, "new": {"a": 1}});
        assert_eq!(serde_json::to_value(usage(value.clone())).unwrap(), value);
    }
}
