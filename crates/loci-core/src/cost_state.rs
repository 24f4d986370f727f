//! The `cost-state` line of a transcript: what a session has used up to there, all in all.
//!
//! ```text
//! {"type":"cost-state","sessionId":…,"timestamp":…,"totalCostUSD":0.09,"totalAPIDuration":1234,"totalToolDuration":56,
//!  "totalLinesAdded":2,"totalLinesRemoved":1,"hasUnknownModelCost":false,"modelUsage":{"<model>":
//!  {"inputTokens":…,"outputTokens":…,"thinkingTokens":…,"cacheReadInputTokens":…,"cacheCreationInputTokens":…,
//!   "cacheCreationEphemeral5mInputTokens":…,"cacheCreationEphemeral1hInputTokens":…,"webSearchRequests":…,"costUSD":…}}}
//! ```
//!
//! The last one counts, with the responses written after it. It has what the transcript does not say by itself: requests
//! whose answers are no part of the conversation, such as summaries. Fields that we do not know are kept from one line to
//! the next.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::model::is_price_unknown;
use crate::session::{ChangedLines, Totals};
use crate::usage::ModelUsage;

/// The `type` of such a line.
pub const COST_STATE: &str = "cost-state";

const TOTAL_COST: &str = "totalCostUSD";
const API_DURATION: &str = "totalAPIDuration";
const TOOL_DURATION: &str = "totalToolDuration";
const MODEL_USAGE: &str = "modelUsage";
const UNKNOWN_COST: &str = "hasUnknownModelCost";
const LINES_ADDED: &str = "totalLinesAdded";
const LINES_REMOVED: &str = "totalLinesRemoved";
/// Fields that belong to a line, not to what it says.
const OF_THE_LINE: [&str; 5] = ["type", "sessionId", "timestamp", "uuid", "parentUuid"];

/// What a session used up to a place in its transcript.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostState {
    /// Usage, cost and time.
    pub totals: Totals,
    /// Whatever else the line says.
    pub other: Map<String, Value>,
}

impl CostState {
    /// Reads a line of this type; a field of another shape than the usual counts as absent.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let Value::Object(mut fields) = serde_json::from_slice(line).ok()? else { return None };
        if fields.get("type")?.as_str() != Some(COST_STATE) {
            return None;
        }
        OF_THE_LINE.iter().for_each(|name| drop(fields.shift_remove(*name)));
        let by_model: BTreeMap<String, ModelUsage> = match fields.shift_remove(MODEL_USAGE) {
            Some(Value::Object(models)) => models
                .into_iter()
                .filter_map(|(model, usage)| Some((model, serde_json::from_value(usage).ok()?)))
                .collect(),
            Some(_) | None => BTreeMap::new(),
        };
        fields.shift_remove(TOTAL_COST);
        fields.shift_remove(UNKNOWN_COST);
        let mut time = |name: &str| {
            let millis = fields.shift_remove(name).and_then(|millis| millis.as_f64()).unwrap_or_default();
            Duration::try_from_secs_f64(millis / 1e3).unwrap_or_default()
        };
        let (api, tools) = (time(API_DURATION), time(TOOL_DURATION));
        let mut number = |name: &str| fields.shift_remove(name).and_then(|n| n.as_u64()).unwrap_or_default();
        let lines = ChangedLines { added: number(LINES_ADDED), removed: number(LINES_REMOVED) };
        Some(Self { totals: Totals { by_model, api, tools, lines, ..Totals::default() }, other: fields })
    }

    /// Returns the fields of the line, without those that every line has.
    pub fn to_fields(&self) -> Map<String, Value> {
        let mut fields = self.other.clone();
        fields.insert(TOTAL_COST.to_owned(), Value::from(self.totals.cost_usd()));
        fields.insert(API_DURATION.to_owned(), Value::from(self.totals.api.as_millis() as u64));
        fields.insert(TOOL_DURATION.to_owned(), Value::from(self.totals.tools.as_millis() as u64));
        let mut models = self.totals.by_model.iter();
        let is_unknown = models.any(|(model, usage)| is_price_unknown(model, usage));
        fields.insert(UNKNOWN_COST.to_owned(), Value::from(is_unknown));
        fields.insert(LINES_ADDED.to_owned(), Value::from(self.totals.lines.added));
        fields.insert(LINES_REMOVED.to_owned(), Value::from(self.totals.lines.removed));
        let models = self.totals.by_model.iter();
        let models =
            models.map(|(model, usage)| (model.clone(), serde_json::to_value(usage).unwrap_or_default()));
        fields.insert(MODEL_USAGE.to_owned(), Value::Object(models.collect()));
        fields
    }
}

/// Tells whether two names are of one model: the same, but for the window that was asked for and the date of a version.
pub fn is_same_model(left: &str, right: &str) -> bool {
    let plain = |name: &str| name.strip_suffix("[1m]").unwrap_or(name).to_owned();
    let (left, right) = (plain(left), plain(right));
    let (long, short) = if left.len() >= right.len() { (left, right) } else { (right, left) };
    long.strip_prefix(short.as_str()).is_some_and(|rest| {
        let date = rest.strip_prefix(['-', '@']);
        rest.is_empty()
            || date.is_some_and(|date| date.len() == 8 && date.bytes().all(|it| it.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cost_state_comes_back_with_the_fields_of_others() {
        let line = json!({"type": "cost-state", "sessionId": "s", "totalCostUSD": 3.5, "totalAPIDuration": 1500,
            "totalLinesAdded": 7, "totalToolDuration": 9, "totalDuration": 11, "modelUsage": {"claude-sonnet-4-5": {"inputTokens": 5, "costUSD": 3.5, "new": 1}, "x": 7}});
        let state = CostState::parse(line.to_string().as_bytes()).unwrap();
        assert_eq!(state.totals.by_model["claude-sonnet-4-5"].input_tokens, 5);
        assert_eq!(state.totals.by_model.len(), 1);
        assert_eq!((state.totals.cost_usd(), state.totals.api), (3.5, Duration::from_millis(1500)));
        assert_eq!(state.totals.lines, ChangedLines { added: 7, removed: 0 });
        assert_eq!(state.totals.tools, Duration::from_millis(9));
        assert_eq!(state.other, Map::from_iter([("totalDuration".to_owned(), json!(11))]));
        let fields = state.to_fields();
        assert_eq!(
            (&fields["totalCostUSD"], &fields["totalLinesAdded"], &fields["totalToolDuration"]),
            (&json!(3.5), &json!(7), &json!(9))
        );
        assert_eq!(fields["modelUsage"]["claude-sonnet-4-5"]["inputTokens"], 5);
    }

    #[test]
    fn cost_state_of_a_wrong_shape_says_nothing() {
        for line in ["", "7", r#"{"type":"mode"}"#, r#"{"type":"cost-state""#] {
            assert_eq!(CostState::parse(line.as_bytes()), None, "{line}");
        }
        let odd = br#"{"type":"cost-state","modelUsage":[],"totalAPIDuration":-5,"totalCostUSD":"x"}"#;
        assert_eq!(CostState::parse(odd), Some(CostState::default()));
    }

    #[test]
    fn names_of_one_model_differ_in_window_and_date_only() {
        for (left, right, expected) in [
            ("claude-opus-5-5", "claude-opus-5-5[1m]", true),
            ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5", true),
            ("claude-opus-5", "claude-opus-5-5", false),
            ("claude-opus-5", "claude-sonnet-5", false),
        ] {
            assert_eq!(is_same_model(left, right), expected, "{left} {right}");
            assert_eq!(is_same_model(right, left), expected, "{left} {right}");
        }
    }
}
