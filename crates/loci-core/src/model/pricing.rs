//! What models cost where the administrator says so (`modelPricing`): prices of their own, by id, and a factor for all others.
//!
//! A budget depends on every price, so an entry that cannot be read is told and costs itself alone.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Price;

/// What models cost, over what the table and providers say.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelPricing {
    /// What other prices are multiplied by.
    multiplier: f64,
    /// Prices by id of the model.
    overrides: BTreeMap<String, PriceOverride>,
}

impl Default for ModelPricing {
    fn default() -> Self {
        Self { multiplier: 1.0, overrides: BTreeMap::new() }
    }
}

/// The prices of one model, as far as they are said; US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PriceOverride {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

/// Why an entry does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum BadPrice {
    #[error("it is no object")]
    NoObject,
    #[error("no such price is known: `{0}`")]
    Unknown(String),
    #[error("`{0}` is no number from 0 on")]
    NoNumber(String),
}

impl ModelPricing {
    /// Reads the setting; what cannot be read is told.
    pub fn parse(setting: &Map<String, Value>) -> (Self, Vec<String>) {
        let mut pricing = Self::default();
        let mut problems = Vec::new();
        match setting.get("multiplier").map(price) {
            None => {}
            Some(Some(factor)) => pricing.multiplier = factor,
            Some(None) => problems.push("`modelPricing.multiplier` is no number from 0 on".to_owned()),
        }
        let rows = match setting.get("overrides") {
            None => None,
            Some(Value::Object(rows)) => Some(rows),
            Some(_) => {
                problems.push("`modelPricing.overrides` is no object".to_owned());
                None
            }
        };
        for (id, row) in rows.into_iter().flatten() {
            match PriceOverride::parse(row) {
                Ok(row) => drop(pricing.overrides.insert(id.trim().to_owned(), row)),
                Err(why) => problems.push(format!("`modelPricing.overrides.{id}`: {why}; it does not count")),
            }
        }
        (pricing, problems)
    }

    /// Returns what a model costs; `id` is what is sent, without `[1m]`.
    pub(super) fn applied(&self, id: &str, known: Option<Price>) -> Option<Price> {
        match self.overrides.get(id.trim()) {
            Some(own) => Some(own.applied(known)),
            None if self.multiplier == 1.0 => known,
            None => known.map(|price| price.times(self.multiplier)),
        }
    }

    /// Tells whether it says what a model costs.
    pub fn covers(&self, id: &str) -> bool {
        self.multiplier != 1.0 || self.overrides.contains_key(id.trim())
    }
}

impl PriceOverride {
    fn parse(row: &Value) -> Result<Self, BadPrice> {
        let row = row.as_object().ok_or(BadPrice::NoObject)?;
        let mut own = Self::default();
        for (key, value) in row {
            let field = match key.as_str() {
                "input" => &mut own.input,
                "output" => &mut own.output,
                "cacheRead" => &mut own.cache_read,
                "cacheWrite" => &mut own.cache_write,
                other => return Err(BadPrice::Unknown(other.to_owned())),
            };
            *field = Some(price(value).ok_or_else(|| BadPrice::NoNumber(key.clone()))?);
        }
        Ok(own)
    }

    /// What is not said follows from the price of input as usual, or is what was known.
    fn applied(self, known: Option<Price>) -> Price {
        let quote = |of: fn(&Price) -> f64| known.as_ref().map_or(0.0, of);
        let input = self.input.unwrap_or_else(|| quote(|it| it.input));
        let output = self.output.unwrap_or_else(|| quote(|it| it.output));
        let usual = match (self.input, known) {
            (None, Some(known)) => known,
            _ => Price::from_quote([input, output]),
        };
        Price {
            input,
            output,
            cache_write_5m: self.cache_write.unwrap_or(usual.cache_write_5m),
            cache_write_1h: self.cache_write.unwrap_or(usual.cache_write_1h),
            cache_read: self.cache_read.unwrap_or(usual.cache_read),
            web_search: known.map_or(usual.web_search, |it| it.web_search),
            // What was agreed on holds for prompts of any length.
            long_prompt: None,
        }
    }
}

fn price(value: &Value) -> Option<f64> {
    value.as_f64().filter(|price| price.is_finite() && *price >= 0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{ModelCatalog, facts};

    fn pricing(setting: Value) -> (ModelPricing, Vec<String>) {
        ModelPricing::parse(setting.as_object().unwrap())
    }

    #[test]
    fn prices_of_the_administrator_take_the_place_of_the_tables() {
        let (own, problems) = pricing(json!({
            "multiplier": 0.5,
            "overrides": {
                "claude-opus-4-8": {"input": 1000, "output": 2000, "cacheRead": 10, "cacheWrite": 20},
                "gateway-model": {"input": 1, "output": 2},
                "claude-sonnet-4-5": {"output": 99},
            },
        }));
        assert_eq!(problems, [""; 0]);
        let catalog = ModelCatalog::default().with_pricing(own);
        let price = |model: &str| catalog.facts(model).price.unwrap();
        let opus = price("claude-opus-4-8[1m]");
        assert_eq!(
            (opus.input, opus.output, opus.cache_read, opus.cache_write_5m),
            (1000.0, 2000.0, 10.0, 20.0)
        );
        let gateway = price("gateway-model");
        assert_eq!((gateway.input, gateway.cache_write_5m, gateway.cache_read), (1.0, 1.25, 0.1));
        let sonnet = price("claude-sonnet-4-5");
        assert_eq!((sonnet.input, sonnet.output), (facts("claude-sonnet-4-5").price.unwrap().input, 99.0));
        let other = price("claude-opus-4-1");
        assert_eq!(
            other.output,
            facts("claude-opus-4-1").price.unwrap().output / 2.0,
            "all others are multiplied"
        );
        assert_eq!(catalog.facts("unknown").price, None);
    }

    #[test]
    fn entries_that_cannot_be_read_are_told_and_cost_themselves() {
        for (setting, expected) in [
            (json!({"multiplier": -1}), "`modelPricing.multiplier` is no number from 0 on"),
            (json!({"overrides": 7}), "`modelPricing.overrides` is no object"),
            (
                json!({"overrides": {"m": {"in": 1}}}),
                "`modelPricing.overrides.m`: no such price is known: `in`; it does not count",
            ),
            (
                json!({"overrides": {"m": {"input": "1"}}}),
                "`modelPricing.overrides.m`: `input` is no number from 0 on; it does not count",
            ),
        ] {
            let (own, problems) = pricing(setting);
            assert_eq!((own, problems), (ModelPricing::default(), vec![expected.to_owned()]));
        }
    }
}
