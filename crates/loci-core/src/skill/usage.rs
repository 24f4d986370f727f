//! How often skills were used. The global state file, which other programs share, keeps it:
//!
//! ```text
//! "skillUsage": {"<name>": {"usageCount": 3, "lastUsedAt": <milliseconds since 1970>}}
//! ```

use std::collections::BTreeMap;

use serde_json::Value;

/// How often a skill was used; more is greater, and of two that were used as often the later one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillUsage {
    /// How many times.
    pub count: u64,
    /// When last, in milliseconds since 1970.
    pub last_used_ms: i64,
}

impl SkillUsage {
    /// Adds uses that came later, or elsewhere.
    pub fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.last_used_ms = self.last_used_ms.max(other.last_used_ms);
    }

    /// Reads an entry; what of it is no number counts for nothing.
    pub fn from_value(entry: &Value) -> Self {
        let number = |key: &str| entry.get(key).and_then(Value::as_f64).filter(|it| *it >= 0.0);
        Self {
            count: number("usageCount").unwrap_or_default() as u64,
            last_used_ms: number("lastUsedAt").unwrap_or_default() as i64,
        }
    }
}

/// The uses of skills, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillUsageTable(BTreeMap<String, SkillUsage>);

impl SkillUsageTable {
    /// Reads what the state file says; what is no object says nothing.
    pub fn from_value(value: &Value) -> Self {
        let entries = value.as_object().into_iter().flatten();
        Self(entries.map(|(name, entry)| (name.clone(), SkillUsage::from_value(entry))).collect())
    }

    /// Adds uses of a skill.
    pub fn add(&mut self, name: &str, usage: SkillUsage) {
        self.0.entry(name.to_owned()).or_default().add(usage);
    }

    /// Returns how often a skill was used.
    pub fn usage(&self, name: &str) -> SkillUsage {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Tells whether none was ever used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the skills that were used, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, SkillUsage)> {
        self.0.iter().map(|(name, usage)| (name.as_str(), *usage))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn table_reads_what_is_there_and_takes_the_rest_for_nothing() {
        let table = SkillUsageTable::from_value(&json!({
            "often": {"usageCount": 7, "lastUsedAt": 5}, "late": {"usageCount": 2, "lastUsedAt": 1_700_000_000_000.0},
            "odd": {"usageCount": "many"}, "odder": 3, "negative": {"usageCount": -4},
        }));
        assert_eq!(table.usage("often"), SkillUsage { count: 7, last_used_ms: 5 });
        assert_eq!(table.usage("late"), SkillUsage { count: 2, last_used_ms: 1_700_000_000_000 });
        for name in ["odd", "odder", "negative", "never"] {
            assert_eq!(table.usage(name), SkillUsage::default(), "{name}");
        }
        assert!(table.usage("often") > table.usage("late"), "how often comes before when");
        assert!(SkillUsageTable::from_value(&json!([1])).is_empty());
    }

    #[test]
    fn uses_add_up_and_the_latest_counts() {
        let mut table = SkillUsageTable::default();
        table.add("ship", SkillUsage { count: 1, last_used_ms: 9 });
        table.add("ship", SkillUsage { count: 2, last_used_ms: 4 });
        assert_eq!(table.iter().collect::<Vec<_>>(), [("ship", SkillUsage { count: 3, last_used_ms: 9 })]);
    }
}
