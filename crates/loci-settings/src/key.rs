//! What is known about one settings key; the rows themselves are in [`table`].
//!
//! The table is the only place that names keys. Parsing, merging, `explain`, the JSON Schema and the list of
//! keys that are kept but not acted upon are all made from it.

mod table;

use serde_json::Value;

use super::Scope;

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Its path, with dots between its parts.
    pub path: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Which files may set it.
    pub scopes: Scopes,
    /// How the values of several files become one.
    pub merge: Merge,
    /// What a repository must be trusted for.
    pub trust: Trust,
    /// What the administrator's value counts as when it cannot be read.
    pub closed: Option<Closed>,
    /// Whether this version does anything with it.
    pub is_used: bool,
    /// What it is for, one line.
    pub about: &'static str,
}

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number between two bounds.
    Integer(i64, i64),
    /// A number between two bounds.
    Number(f64, f64),
    /// A list of texts.
    Texts,
    /// Permission rules that restrict: a list of texts, and a lone text is taken as a list of one.
    Restrictions,
    /// A list of anything.
    List,
    /// Texts by name.
    TextMap,
    /// Switches by name.
    BoolMap,
    /// A text, or a list of texts.
    TextOrTexts,
    /// An object whose inside is checked by whoever uses it.
    Object,
    /// Anything.
    Any,
}

/// Which files may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scopes {
    /// Any settings file.
    Any,
    /// The user, the command line or the administrator: never a file inside a project.
    UserOrManaged,
    /// The same and the user's own file of the project.
    NotShared,
    /// The administrator alone.
    Managed,
    /// Not a settings file at all but the global state file.
    Global,
}

/// How the values of several files become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The highest file wins with its whole value.
    Highest,
    /// Lists are joined, without repetitions.
    Union,
    /// Objects are joined name by name, deep inside too; the higher file wins a name.
    ByName,
    /// The higher file replaces a name's whole value.
    ByWholeName,
    /// As [`Merge::ByName`]; of the values under this name, whatever is around it, the one that comes last in the list wins.
    ByNameStrictest(&'static str, &'static [&'static str]),
    /// Lists under each name are put one behind the other.
    Concatenate,
    /// As [`Merge::Union`], unless the administrator has a list, which then replaces all others.
    ManagedOrUnion,
    /// `true` anywhere wins.
    AnyTrue,
    /// `false` anywhere wins.
    AnyFalse,
    /// The value that comes last in this list wins.
    Strictest(&'static [&'static str]),
}

/// What a value that cannot be read counts as, so that a slip in the administrator's file opens no door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The restriction is on.
    On,
    /// Nothing is on the list.
    Nothing,
}

impl Closed {
    /// Returns the value.
    pub fn value(self) -> Value {
        match self {
            Self::On => Value::Bool(true),
            Self::Nothing => Value::Array(Vec::new()),
        }
    }
}

/// What a repository must be trusted for before its value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Nothing: the value only restricts, or does no harm.
    Free,
    /// The folder must be trusted.
    Needed,
    /// No trust is enough: the shared file of a repository never sets it.
    NeverShared,
    /// Each variable by its name.
    Environment,
    /// Each mode by its name.
    PermissionMode,
}

/// Other spellings of keys, and which is meant.
const ALIASES: [(&str, &str); 3] = [
    ("additionalMarketplaces", "extraKnownMarketplaces"),
    ("allowedMarketplaces", "strictKnownMarketplaces"),
    ("disableBypassPermissionsMode", "permissions.disableBypassPermissionsMode"),
];

impl Key {
    /// Returns all keys in the order of their topics.
    pub fn all() -> &'static [Self] {
        table::KEYS
    }

    /// Returns the key of this path.
    pub fn find(path: &str) -> Option<&'static Self> {
        Self::all().iter().find(|key| key.path == path)
    }

    /// Returns the key that has this as another spelling.
    pub fn by_alias(path: &str) -> Option<&'static Self> {
        let (_, meant) = ALIASES.iter().find(|(alias, _)| *alias == path)?;
        Self::find(meant)
    }

    /// Tells whether `path` is an object that holds keys of its own, such as `permissions`.
    pub fn is_group(path: &str) -> bool {
        Self::all().iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }

    /// Returns the key that was most likely meant by an unknown path.
    pub fn suggestion(path: &str) -> Option<&'static str> {
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_lowercase();
        let near = |key: &&Self| {
            // Most keys are told apart by their length alone.
            key.path.len().abs_diff(path.len()) <= 2
                && strsim::levenshtein(&key.path.to_lowercase(), &path.to_lowercase()) <= 2
        };
        let all = || Self::all().iter();
        all().find(|key| last(key.path) == last(path)).or_else(|| all().find(near)).map(|key| key.path)
    }
}

impl Scopes {
    /// Tells whether a file of this scope may set the key.
    pub fn allows(self, scope: Scope) -> bool {
        match self {
            Self::Any => true,
            Self::UserOrManaged => matches!(scope, Scope::User | Scope::CommandLine | Scope::Managed),
            Self::NotShared => scope != Scope::Project,
            Self::Managed => scope == Scope::Managed,
            Self::Global => false,
        }
    }

    /// Says which files may set the key.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Any => "any settings file",
            Self::UserOrManaged => "user, command line or managed settings",
            Self::NotShared => "user, local, command line or managed settings",
            Self::Managed => "managed settings only",
            Self::Global => "the global state file, `.claude.json`",
        }
    }
}

impl Kind {
    /// Tells whether the value is an object of names that the user chooses.
    pub fn has_names(self) -> bool {
        matches!(self, Self::TextMap | Self::BoolMap | Self::Object)
    }

    /// Says what a value must be.
    pub fn expected(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Text => "text in double quotes".to_owned(),
            Self::OneOf(names) => format!("one of {}", quoted(names)),
            Self::Integer(least, i64::MAX) => format!("a whole number of at least {least}"),
            Self::Integer(least, most) => format!("a whole number from {least} to {most}"),
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::Texts | Self::Restrictions => "a list of texts".to_owned(),
            Self::TextOrTexts => "text in double quotes, or a list of texts".to_owned(),
            Self::List => "a list".to_owned(),
            Self::TextMap => "an object of texts".to_owned(),
            Self::BoolMap => "an object of true and false".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::Any => "a value".to_owned(),
        }
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_there_once_and_none_is_inside_another() {
        for (idx, key) in Key::all().iter().enumerate() {
            assert!(!Key::all()[..idx].iter().any(|other| other.path == key.path), "{} twice", key.path);
            assert!(!Key::is_group(key.path), "{} is a key and a group", key.path);
            assert!(!key.about.is_empty() && !key.about.ends_with('.'), "{}", key.path);
        }
    }

    #[test]
    fn misspelt_key_gets_a_suggestion() {
        for (wrong, right) in [
            ("modle", Some("model")),
            ("permission.deny", Some("permissions.deny")),
            ("permissions.Deny", Some("permissions.deny")),
            ("deny", Some("permissions.deny")),
            ("allowedDomains", Some("sandbox.network.allowedDomains")),
            ("somethingElse", None),
        ] {
            assert_eq!(Key::suggestion(wrong), right, "{wrong}");
        }
    }

    #[test]
    fn scopes_are_sets_of_files() {
        for (scopes, expected) in [
            (Scopes::Any, "user project local command line managed"),
            (Scopes::UserOrManaged, "user command line managed"),
            (Scopes::NotShared, "user local command line managed"),
            (Scopes::Managed, "managed"),
            (Scopes::Global, ""),
        ] {
            let names: Vec<String> =
                Scope::ALL.into_iter().filter(|scope| scopes.allows(*scope)).map(|s| s.to_string()).collect();
            assert_eq!(names.join(" "), expected);
        }
    }
}
