//! Which models settings let be chosen (`availableModels`).
//!
//! An entry is a family (`sonnet`), which allows every id with that word in it; a version (`claude-sonnet-4-5`), which allows
//! the ids that begin with it; or a whole id. An entry that names a model of a family takes the family's own entry out of
//! force: `["sonnet", "claude-sonnet-4-5"]` allows the versions of Sonnet 4.5 alone. A `[1m]` counts nowhere. Where settings ask
//! for exact names (`availableModelsMatch`), an entry that names a model allows that id and no later one.

use super::{split_window_suffix, table};

/// The families of models, by the word that their ids have.
pub const MODEL_FAMILIES: [&str; 4] = ["fable", "opus", "sonnet", "haiku"];

/// The models that may be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedModels {
    entries: Vec<String>,
    is_exact: bool,
}

impl AllowedModels {
    /// Takes the entries of the setting.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let entries = entries.into_iter().map(plain).filter(|entry| !entry.is_empty());
        Self { entries: entries.collect(), is_exact: false }
    }

    /// Has entries that name models allow those ids alone, where `is_exact`.
    #[must_use]
    pub fn matched_exactly(self, is_exact: bool) -> Self {
        Self { is_exact, ..self }
    }

    /// Returns the entries, in their order.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(String::as_str)
    }

    /// Tells whether a model of the first provider may be chosen, by its id.
    pub fn permits(&self, id: &str) -> bool {
        let id = plain(id);
        self.entries.iter().any(|entry| match is_family(entry) {
            true => id.contains(entry.as_str()) && !self.names_versions(entry),
            false => self.names(&id, entry),
        })
    }

    /// Tells whether a model of a named provider may be chosen: its own name has to be listed, whatever its id looks like.
    pub fn permits_named(&self, name: &str) -> bool {
        let name = plain(name);
        self.entries.iter().any(|entry| !is_family(entry) && self.names(&name, entry))
    }

    /// Returns the newest model of a family that may be chosen.
    pub fn newest(&self, family: &str) -> Option<String> {
        self.newest_where(family, |_| true)
    }

    /// Returns the newest of those that may be used, too.
    pub fn newest_where(&self, family: &str, is_usable: impl Fn(&str) -> bool) -> Option<String> {
        let built_in = super::built_in_models().filter(|id| id.contains(family)).map(str::to_owned);
        let listed = self.entries.iter().filter(|entry| entry.contains(family) && !is_family(entry)).cloned();
        built_in.chain(listed).find(|id| self.permits(id) && is_usable(id))
    }

    fn names(&self, id: &str, entry: &str) -> bool {
        if self.is_exact { id == entry } else { begins_with(id, entry) }
    }

    fn names_versions(&self, family: &str) -> bool {
        // Of a model that a named provider has, the name says nothing about the first provider's.
        self.entries.iter().any(|entry| entry != family && entry.contains(family) && !entry.contains('/'))
    }
}

/// Tells whether a name is that of a family.
pub fn is_family(name: &str) -> bool {
    MODEL_FAMILIES.contains(&name)
}

pub(super) fn plain(name: &str) -> String {
    split_window_suffix(name).0.to_ascii_lowercase()
}

/// A version ends where the id does, or before its next part.
fn begins_with(id: &str, version: &str) -> bool {
    id.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@', ':']))
}

/// Returns the models that the built-in table has, each by an id that can be asked for; the newest of a family first.
pub fn built_in_models() -> impl Iterator<Item = &'static str> {
    table().models.iter().map(|row| row.id.as_deref().unwrap_or(&row.pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_allow_families_versions_and_ids() {
        for (entries, id, expected) in [
            ("sonnet", "claude-sonnet-4-5", true),
            ("sonnet", "Claude-Sonnet-5-5[1m]", true),
            ("sonnet", "us.anthropic.claude-sonnet-4-5", true),
            ("sonnet", "my-sonnet-x", true),
            ("sonnet", "claude-opus-5-5", false),
            ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true),
            ("claude-sonnet-4-5", "claude-sonnet-4-5@20250929", true),
            ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5", true),
            ("claude-sonnet-5", "claude-sonnet-5-5", true),
            ("claude-sonnet-4", "claude-sonnet-45", false),
            ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5", false),
            ("sonnet claude-sonnet-4-5", "claude-sonnet-5-5", false),
            ("sonnet claude-sonnet-4-5", "claude-sonnet-4-5", true),
            ("sonnet anthropic.claude-sonnet-4-6", "claude-sonnet-5", false),
            ("sonnet mine/my-sonnet", "claude-sonnet-5", true),
            ("", "claude-sonnet-5", false),
        ] {
            let allowed = AllowedModels::new(entries.split_whitespace());
            assert_eq!(allowed.permits(id), expected, "{entries}: {id}");
        }
    }

    #[test]
    fn exact_entries_allow_no_other_version() {
        for (entries, id, expected) in [
            ("claude-opus-4", "claude-opus-4", true),
            ("claude-opus-4", "claude-opus-4-8", false),
            ("opus", "claude-opus-4-8", true),
        ] {
            let allowed = AllowedModels::new(entries.split_whitespace()).matched_exactly(true);
            assert_eq!(allowed.permits(id), expected, "{entries}: {id}");
        }
        assert!(!AllowedModels::new(["mine/qwen3"]).matched_exactly(true).permits_named("mine/qwen3:8b"));
    }

    #[test]
    fn models_of_named_providers_are_allowed_by_their_name_alone() {
        for (entries, name, expected) in [
            ("sonnet", "mine/sonnet", false),
            ("mine/m", "mine/m", true),
            ("mine/qwen3", "mine/qwen3:8b", true),
            ("m", "mine/m", false),
        ] {
            let allowed = AllowedModels::new(entries.split_whitespace());
            assert_eq!(allowed.permits_named(name), expected, "{entries}: {name}");
        }
    }

    #[test]
    fn newest_of_a_family_is_one_that_may_be_chosen() {
        for (entries, family, expected) in [
            ("opus", "opus", Some("claude-opus-5-5")),
            ("sonnet claude-opus-4-6", "opus", Some("claude-opus-4-6")),
            ("claude-opus-4", "opus", Some("claude-opus-4-8")),
            ("claude-haiku-4", "haiku", Some("claude-haiku-4-5")),
            ("claude-sonnet-4-5-20250929", "sonnet", Some("claude-sonnet-4-5-20250929")),
            ("haiku", "opus", None),
        ] {
            let allowed = AllowedModels::new(entries.split_whitespace());
            assert_eq!(allowed.newest(family).as_deref(), expected, "{entries}: {family}");
        }
    }
}
