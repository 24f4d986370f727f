//! What plugins and the things they bring may be called.

use std::fmt;

/// The marketplace of plugins that a flag names.
pub const INLINE_MARKETPLACE: &str = "inline";
/// The marketplace of plugins that lie in a directory of skills.
pub const SKILLS_DIR_MARKETPLACE: &str = "skills-dir";
/// The longest name.
const NAME_LIMIT: usize = 64;

/// A plugin of a marketplace: `name@marketplace`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId {
    /// Its name; what it brings is called by it.
    pub name: String,
    /// Where it comes from.
    pub marketplace: String,
}

impl PluginId {
    /// Reads an id; both parts must be names.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, marketplace) = text.split_once('@')?;
        let is_id = is_plugin_name(name) && is_plugin_name(marketplace);
        is_id.then(|| Self { name: name.to_owned(), marketplace: marketplace.to_owned() })
    }

    /// The id of a plugin that a flag names.
    pub fn inline(name: &str) -> Self {
        Self { name: name.to_owned(), marketplace: INLINE_MARKETPLACE.to_owned() }
    }

    /// Returns the name of the directory that its data lies in.
    pub fn data_dir_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
        self.to_string().chars().map(plain).collect()
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.marketplace)
    }
}

/// Tells whether a plugin, or a marketplace, may be called so. Such a name is one part of a path and of other names, and
/// looks like nothing else.
pub fn is_plugin_name(name: &str) -> bool {
    name.len() <= NAME_LIMIT
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && !name.contains("..")
}

/// Tells whether something that a plugin brings may be called so, behind the plugin's name.
pub fn is_component_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty()
        && name.len() <= NAME_LIMIT
        && !name.starts_with(['-', '.'])
        && name.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_two_plain_names() {
        for (text, data) in [
            ("formatter@my-marketplace", Some("formatter-my-marketplace")),
            ("a.b_c@m.1", Some("a-b_c-m-1")),
            ("formatter", None),
            ("@m", None),
            ("a@", None),
            ("a@b@c", None),
            ("../a@m", None),
            ("a@..", None),
            ("a..b@m", None),
            ("-a@m", None),
            ("a b@m", None),
            ("а@m", None), // A Cyrillic letter that looks like ours.
            ("a:b@m", None),
            ("a/b@m", None),
        ] {
            let id = PluginId::parse(text);
            assert_eq!(id.as_ref().map(PluginId::data_dir_name).as_deref(), data, "{text}");
            assert!(id.is_none_or(|id| id.to_string() == text));
        }
        assert!(!is_plugin_name(&"a".repeat(65)));
    }

    #[test]
    fn component_names_have_neither_separators_nor_control_characters() {
        for (name, is_good) in [
            ("review", true),
            ("code-review_2.0", true),
            ("prüfen", true),
            ("", false),
            ("a:b", false),
            ("a/b", false),
            ("../x", false),
            ("a b", false),
            ("a\nb", false),
            ("a\u{202e}b", false),
            ("--flag", false),
        ] {
            assert_eq!(is_component_name(name), is_good, "{name:?}");
        }
    }
}
