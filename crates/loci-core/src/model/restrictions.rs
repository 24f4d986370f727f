//! Which models settings deny (`deniedModels`), and how hard models may think at most (`maxEffortLevel`, `modelSettings`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::allow_list::{is_family, plain};

/// How hard models think, the least first.
pub const EFFORT_LEVELS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// The models that may not be asked.
///
/// An entry is a family (`sonnet`), which denies every id with that word in it, or the name of a model, which denies every id
/// that has it as a part: a cloud's own id and one with a date are the same model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeniedModels {
    entries: Vec<String>,
}

impl DeniedModels {
    /// Takes the entries of the setting.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let entries = entries.into_iter().map(|entry| plain(entry.trim())).filter(|entry| !entry.is_empty());
        Self { entries: entries.collect() }
    }

    /// Reads them from settings in force.
    pub fn from_settings(settings: &Value) -> Self {
        Self::new(settings["deniedModels"].as_array().into_iter().flatten().filter_map(Value::as_str))
    }

    /// Returns the entry that denies a model, by its id or by what people call it.
    pub fn why(&self, name: &str) -> Option<&str> {
        let name = plain(name.trim());
        let denies = |entry: &&String| match is_family(entry) {
            true => name.contains(entry.as_str()),
            false => has_part(&name, entry),
        };
        self.entries.iter().find(denies).map(String::as_str)
    }

    /// Returns true when nothing is denied.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Tells whether a name stands in an id, between its bounds or those of its parts.
fn has_part(id: &str, name: &str) -> bool {
    let is_bound = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
    id.match_indices(name).any(|(at, _)| {
        is_bound(id[..at].chars().next_back()) && is_bound(id[at + name.len()..].chars().next())
    })
}

/// How hard models are to think, and may at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffortLimits {
    most: Option<usize>,
    by_model: BTreeMap<String, ModelEffort>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ModelEffort {
    usual: Option<usize>,
    most: Option<usize>,
}

impl EffortLimits {
    /// Reads them from settings in force.
    pub fn from_settings(settings: &Value) -> Self {
        let rank = |value: &Value| value.as_str().and_then(rank);
        let rows = settings["modelSettings"].as_object().into_iter().flatten();
        let by_model = rows.map(|(name, row)| {
            let effort = ModelEffort { usual: rank(&row["effortLevel"]), most: rank(&row["maxEffortLevel"]) };
            (plain(name.trim()), effort)
        });
        Self { most: rank(&settings["maxEffortLevel"]), by_model: by_model.collect() }
    }

    /// Returns the level that settings choose for a model; the most exact name counts.
    pub fn usual(&self, model: &str) -> Option<&'static str> {
        let rows = self.rows(model).filter_map(|(name, row)| Some((name.len(), row.usual?)));
        rows.max_by_key(|(length, _)| *length).map(|(_, level)| EFFORT_LEVELS[level])
    }

    /// Returns the highest level that a model may be asked for; the lowest of all that is said counts.
    pub fn most(&self, model: &str) -> Option<&'static str> {
        let rows = self.rows(model).filter_map(|(_, row)| row.most);
        self.most.into_iter().chain(rows).min().map(|level| EFFORT_LEVELS[level])
    }

    /// Returns the level to ask a model for where `wanted` is, or its own where nothing is; `own` is what it does unasked.
    pub fn capped<'a>(&self, model: &str, wanted: Option<&'a str>, own: &str) -> Option<&'a str>
    where
        'static: 'a,
    {
        let Some(most) = self.most(model) else { return wanted };
        let asked = wanted.unwrap_or(own);
        // What nobody knows may be more.
        let is_within = rank(asked).is_some_and(|asked| Some(asked) <= rank(most));
        if is_within { wanted } else { Some(most) }
    }

    fn rows(&self, model: &str) -> impl Iterator<Item = (&String, &ModelEffort)> {
        let model = plain(model.trim());
        self.by_model.iter().filter(move |(name, _)| match is_family(name) {
            true => model.contains(name.as_str()),
            false => has_part(&model, name),
        })
    }
}

fn rank(level: &str) -> Option<usize> {
    EFFORT_LEVELS.iter().position(|it| *it == level)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn denied_entries_are_families_and_models_wherever_their_names_stand() {
        for (entries, name, expected) in [
            ("opus", "claude-opus-5-5", true),
            ("opus", "us.anthropic.claude-opus-4-5-v1:0", true),
            ("opus", "openrouter/anthropic/claude-opus-5", true),
            ("opus", "opus", true),
            ("opus", "Opus[1m]", true),
            ("opus", "claude-sonnet-5", false),
            ("claude-opus-4-5", "claude-opus-4-5-20250929", true),
            ("claude-opus-4-5", "us.anthropic.claude-opus-4-5-v1:0", true),
            ("claude-opus-4-5", "claude-opus-4-5[1m]", true),
            ("claude-opus-4", "claude-opus-45", false),
            ("claude-opus-4-5", "claude-opus-4-6", false),
            ("openai/gpt-5", "openai/gpt-5-mini", true),
            ("gpt-5", "openai/gpt-5", true),
            ("", "claude-opus-5", false),
        ] {
            let denied = DeniedModels::new(entries.split_whitespace());
            assert_eq!(denied.why(name).is_some(), expected, "{entries}: {name}");
        }
    }

    #[test]
    fn effort_is_capped_by_the_lowest_that_is_said() {
        let settings = json!({
            "maxEffortLevel": "high",
            "modelSettings": {
                "opus": {"maxEffortLevel": "medium", "effortLevel": "low"},
                "claude-opus-5-5": {"effortLevel": "medium", "maxEffortLevel": "xhigh"},
                "haiku": {"maxEffortLevel": "loud"},
            },
        });
        let limits = EffortLimits::from_settings(&settings);
        for (model, wanted, own, expected) in [
            ("claude-sonnet-5-5", Some("max"), "high", Some("high")),
            ("claude-sonnet-5-5", Some("low"), "high", Some("low")),
            ("claude-sonnet-5-5", None, "high", None),
            ("claude-sonnet-5-5", None, "max", Some("high")),
            ("mine/m", None, "", Some("high")),
            ("claude-opus-5-5", Some("high"), "medium", Some("medium")),
            ("claude-haiku-5-5", Some("xhigh"), "medium", Some("high")),
        ] {
            assert_eq!(limits.capped(model, wanted, own), expected, "{model} {wanted:?}");
        }
        assert_eq!(limits.usual("claude-opus-5-5"), Some("medium"), "the most exact name counts");
        assert_eq!(limits.usual("claude-opus-4-6"), Some("low"));
        assert_eq!(limits.usual("claude-sonnet-5"), None);
        assert_eq!(EffortLimits::default().capped("x", None, ""), None);
    }
}
