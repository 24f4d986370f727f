//! Changes to what calls are judged by, as permission answers and hooks ask for them.
//!
//! Each is a value: it can be read from the protocol and written to it, shown before it is made, made in a running
//! session ([`Update::apply`]) and made in a settings file ([`Update::edit`]).

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::{BadRule, Mode, Rule, RuleList, RuleOrigin, RuleSource, Rulebook};
use loci_settings::Scope;
use loci_settings::edit::{self, EditError};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Rules more.
    AddRules(RuleChange),
    /// These rules in place of all others of the list at the destination.
    ReplaceRules(RuleChange),
    /// Rules less.
    RemoveRules(RuleChange),
    /// Another mode.
    SetMode(Mode, Destination),
    /// Directories more.
    AddDirectories(Vec<PathBuf>, Destination),
    /// Directories less.
    RemoveDirectories(Vec<PathBuf>, Destination),
}

/// Rules of one list at one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChange {
    /// The list.
    pub list: RuleList,
    /// The rules as written in settings.
    pub rules: Vec<String>,
    /// Where.
    pub to: Destination,
}

/// How long a change lasts, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Until the session ends.
    Session,
    /// The user's settings for the project.
    Local,
    /// The settings shared by all who work on the project.
    Project,
    /// The user's settings for all projects.
    User,
}

impl Destination {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Session, "session"),
        (Self::Local, "localSettings"),
        (Self::Project, "projectSettings"),
        (Self::User, "userSettings"),
    ];

    /// Returns the name in the protocol.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(it, _)| *it == self).map_or("session", |(_, name)| name)
    }

    fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, it)| *it == name).map(|(destination, _)| *destination)
    }

    /// Returns whose settings file it is; none for the session.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Session => None,
            Self::Local => Some(Scope::Local),
            Self::Project => Some(Scope::Project),
            Self::User => Some(Scope::User),
        }
    }

    /// Returns true for rules that came from there, or were granted for it while the session ran.
    fn holds(self, source: RuleSource) -> bool {
        match source {
            RuleSource::Session => true,
            RuleSource::Saved(scope) => self == Self::Session || self.scope() == Some(scope),
            RuleSource::Settings(scope) => self.scope() == Some(scope),
            RuleSource::CommandLine => false,
        }
    }
}

/// Says why a value is no change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Not a permission update: {0}")]
pub struct BadUpdate(String);

/// As the protocol has it: what [`Update::to_value`] says.
impl Serialize for Update {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Update {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Update {
    /// Reads a change as the protocol has it.
    pub fn parse(value: &Value) -> Result<Self, BadUpdate> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let to = Destination::parse(text("destination"))
            .ok_or_else(|| BadUpdate(format!("unknown destination `{}`", text("destination"))))?;
        match text("type") {
            "addRules" => rule_change(value, to).map(Self::AddRules),
            "replaceRules" => rule_change(value, to).map(Self::ReplaceRules),
            "removeRules" => rule_change(value, to).map(Self::RemoveRules),
            "setMode" => match text("mode").parse() {
                Ok(mode) => Ok(Self::SetMode(mode, to)),
                Err(bad) => Err(BadUpdate(bad.to_string())),
            },
            "addDirectories" => Ok(Self::AddDirectories(directories(value), to)),
            "removeDirectories" => Ok(Self::RemoveDirectories(directories(value), to)),
            other => Err(BadUpdate(format!("unknown type `{other}`"))),
        }
    }

    /// Returns the change as the protocol has it.
    pub fn to_value(&self) -> Value {
        let rules = |kind: &str, change: &RuleChange| {
            let rules: Vec<Value> = change.rules.iter().map(|rule| wire_rule(rule)).collect();
            let (list, to) = (change.list.as_str(), change.to.as_str());
            json!({"type": kind, "rules": rules, "behavior": list, "destination": to})
        };
        match self {
            Self::AddRules(change) => rules("addRules", change),
            Self::ReplaceRules(change) => rules("replaceRules", change),
            Self::RemoveRules(change) => rules("removeRules", change),
            Self::SetMode(mode, to) => {
                json!({"type": "setMode", "mode": mode.as_str(), "destination": to.as_str()})
            }
            Self::AddDirectories(dirs, to) => {
                json!({"type": "addDirectories", "directories": dirs, "destination": to.as_str()})
            }
            Self::RemoveDirectories(dirs, to) => {
                json!({"type": "removeDirectories", "directories": dirs, "destination": to.as_str()})
            }
        }
    }

    /// Returns how long it lasts, and for whom.
    pub fn destination(&self) -> Destination {
        match self {
            Self::AddRules(change) | Self::ReplaceRules(change) | Self::RemoveRules(change) => change.to,
            Self::SetMode(_, to) | Self::AddDirectories(_, to) | Self::RemoveDirectories(_, to) => *to,
        }
    }

    /// Makes the change in a running session. Directories are taken as they are: absolute, links resolved. The
    /// answer is what is wrong with the rules; an allow rule that is wrong is left out.
    pub fn apply(&self, book: &mut Rulebook) -> Vec<BadRule> {
        match self {
            Self::AddRules(change) => add(change, book),
            Self::ReplaceRules(change) => {
                let RuleChange { list, to, .. } = *change;
                book.list_mut(list).retain(|rule| !to.holds(rule.source()));
                add(change, book)
            }
            Self::RemoveRules(RuleChange { list, rules, to }) => {
                let is_named = |rule: &Rule| rules.iter().any(|text| text.trim() == rule.text());
                book.list_mut(*list).retain(|rule| !(is_named(rule) && to.holds(rule.source())));
                Vec::new()
            }
            Self::SetMode(mode, _) => {
                book.mode = *mode;
                Vec::new()
            }
            Self::AddDirectories(dirs, _) => {
                let new = dirs.iter().filter(|dir| !book.dirs.contains(dir)).cloned();
                book.dirs.extend(new.collect::<Vec<_>>());
                Vec::new()
            }
            Self::RemoveDirectories(dirs, _) => {
                // The first is where the session started; it stays.
                let start = book.dirs.first().cloned();
                book.dirs.retain(|dir| Some(dir) == start.as_ref() || !dirs.contains(dir));
                Vec::new()
            }
        }
    }

    /// Makes the change in the text of a settings file; every other byte stays.
    pub fn edit(&self, text: &str) -> Result<String, EditError> {
        let each = |values: Vec<Value>, edit: &dyn Fn(&str, &Value) -> Result<String, EditError>| {
            values.iter().try_fold(text.to_owned(), |text, value| edit(&text, value))
        };
        let texts = |texts: &[String]| texts.iter().map(|text| Value::from(text.trim())).collect::<Vec<_>>();
        let paths = |dirs: &[PathBuf]| dirs.iter().map(|dir| json!(dir)).collect::<Vec<_>>();
        const DIRS: &[&str] = &["permissions", "additionalDirectories"];
        match self {
            Self::AddRules(RuleChange { list, rules, .. }) => {
                each(texts(rules), &|text, rule| edit::append(text, &["permissions", list.as_str()], rule))
            }
            Self::ReplaceRules(RuleChange { list, rules, .. }) => {
                edit::set(text, &["permissions", list.as_str()], &Value::Array(texts(rules)))
            }
            Self::RemoveRules(RuleChange { list, rules, .. }) => {
                each(texts(rules), &|text, rule| edit::take_out(text, &["permissions", list.as_str()], rule))
            }
            Self::SetMode(mode, _) => {
                edit::set(text, &["permissions", "defaultMode"], &Value::from(mode.as_str()))
            }
            Self::AddDirectories(dirs, _) => each(paths(dirs), &|text, dir| edit::append(text, DIRS, dir)),
            Self::RemoveDirectories(dirs, _) => {
                each(paths(dirs), &|text, dir| edit::take_out(text, DIRS, dir))
            }
        }
    }
}

impl fmt::Display for Update {
    /// Says it to people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let where_to = match self.destination() {
            Destination::Session => "until the session ends",
            Destination::Local => "in your settings for this project",
            Destination::Project => "in the project's settings",
            Destination::User => "in your settings for all projects",
        };
        let list = |change: &RuleChange| match change.list {
            RuleList::Allow => format!("the rule `{}`", change.rules.join("`, `")),
            list => format!("the {} rule `{}`", list.as_str(), change.rules.join("`, `")),
        };
        let names = |dirs: &[PathBuf]| {
            let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            names.join("`, `")
        };
        match self {
            Self::AddRules(change) => write!(f, "{}, {where_to}", list(change)),
            Self::ReplaceRules(change) => write!(f, "only {}, {where_to}", list(change)),
            Self::RemoveRules(change) => write!(f, "no more {}, {where_to}", list(change)),
            Self::SetMode(mode, _) => write!(f, "the mode {mode}, {where_to}"),
            Self::AddDirectories(dirs, _) => write!(f, "the directory `{}`, {where_to}", names(dirs)),
            Self::RemoveDirectories(dirs, _) => {
                write!(f, "no more the directory `{}`, {where_to}", names(dirs))
            }
        }
    }
}

/// Adds rules as granted in this session; what a file says of them counts from the next start.
fn add(change: &RuleChange, book: &mut Rulebook) -> Vec<BadRule> {
    let dir = match change.to {
        Destination::User => book.home.join(".claude"),
        Destination::Session | Destination::Local | Destination::Project => {
            book.dirs.first().unwrap_or(&book.cwd).clone()
        }
    };
    let source = change.to.scope().map_or(RuleSource::Session, RuleSource::Saved);
    let origin = RuleOrigin::new(source, dir);
    change.rules.iter().filter_map(|rule| book.add(change.list, rule, &origin)).collect()
}

fn rule_change(value: &Value, to: Destination) -> Result<RuleChange, BadUpdate> {
    let behavior = value.get("behavior").and_then(Value::as_str).unwrap_or_default();
    let list = RuleList::ALL
        .into_iter()
        .find(|list| list.as_str() == behavior)
        .ok_or_else(|| BadUpdate(format!("unknown behavior `{behavior}`")))?;
    let rules = value.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let rules = rules.iter().map(settings_rule).collect::<Option<_>>();
    rules
        .map(|rules| RuleChange { list, rules, to })
        .ok_or_else(|| BadUpdate("a rule without `toolName`".to_owned()))
}

/// Writes a rule of the protocol as settings have it.
fn settings_rule(rule: &Value) -> Option<String> {
    let tool = rule.get("toolName").and_then(Value::as_str).filter(|tool| !tool.is_empty())?;
    Some(match rule.get("ruleContent").and_then(Value::as_str) {
        Some(content) if !content.is_empty() => format!("{tool}({content})"),
        _ => tool.to_owned(),
    })
}

/// Writes a rule of settings as the protocol has it.
fn wire_rule(rule: &str) -> Value {
    match rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?))) {
        Some((tool, content)) => json!({"toolName": tool, "ruleContent": content}),
        None => json!({"toolName": rule}),
    }
}

fn directories(value: &Value) -> Vec<PathBuf> {
    let dirs = value.get("directories").and_then(Value::as_array).into_iter().flatten();
    dirs.filter_map(Value::as_str).map(|dir| Path::new(dir).to_path_buf()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(allow: &str) -> Rulebook {
        let mut book = Rulebook { dirs: vec!["/p".into()], home: "/h".into(), ..Rulebook::default() };
        let origin = RuleOrigin::new(RuleSource::Settings(Scope::Local), "/p");
        allow.split_whitespace().for_each(|rule| assert_eq!(book.add(RuleList::Allow, rule, &origin), None));
        book
    }

    fn show(book: &Rulebook) -> String {
        let list = |rules: &[Rule]| rules.iter().map(|rule| format!(" {}", rule.text())).collect::<String>();
        format!("{} allow{} deny{} dirs {:?}", book.mode, list(&book.allow), list(&book.deny), book.dirs)
    }

    /// Every kind of change: read, written back the same, made in a session, made in a file.
    #[test]
    fn changes_are_made_in_sessions_and_files() {
        let rule = |text: &str| json!([{"toolName": "Bash", "ruleContent": text}]);
        for (update, session, file) in [
            (
                json!({"type": "addRules", "rules": rule("ls *"), "behavior": "allow", "destination": "localSettings"}),
                r#"default allow Bash(cat) Bash(ls *) deny dirs ["/p"]"#,
                r#"{"permissions": {"allow": ["Bash(cat)", "Bash(ls *)"]}}"#,
            ),
            (
                json!({"type": "addRules", "rules": [{"toolName": "Read"}], "behavior": "deny", "destination": "session"}),
                r#"default allow Bash(cat) deny Read dirs ["/p"]"#,
                r#"{"permissions": {"allow": ["Bash(cat)"], "deny": ["Read"]}}"#,
            ),
            (
                json!({"type": "replaceRules", "rules": rule("x"), "behavior": "allow", "destination": "localSettings"}),
                r#"default allow Bash(x) deny dirs ["/p"]"#,
                r#"{"permissions": {"allow": ["Bash(x)"]}}"#,
            ),
            (
                json!({"type": "removeRules", "rules": rule("cat"), "behavior": "allow", "destination": "localSettings"}),
                r#"default allow deny dirs ["/p"]"#,
                r#"{"permissions": {"allow": []}}"#,
            ),
            (
                json!({"type": "removeRules", "rules": rule("cat"), "behavior": "allow", "destination": "userSettings"}),
                r#"default allow Bash(cat) deny dirs ["/p"]"#,
                r#"{"permissions": {"allow": []}}"#,
            ),
            (
                json!({"type": "setMode", "mode": "acceptEdits", "destination": "projectSettings"}),
                r#"acceptEdits allow Bash(cat) deny dirs ["/p"]"#,
                r#"{"permissions": {"allow": ["Bash(cat)"], "defaultMode": "acceptEdits"}}"#,
            ),
            (
                json!({"type": "addDirectories", "directories": ["/q"], "destination": "session"}),
                r#"default allow Bash(cat) deny dirs ["/p", "/q"]"#,
                r#"{"permissions": {"allow": ["Bash(cat)"], "additionalDirectories": ["/q"]}}"#,
            ),
            (
                json!({"type": "removeDirectories", "directories": ["/p", "/z"], "destination": "session"}),
                r#"default allow Bash(cat) deny dirs ["/p"]"#,
                r#"{"permissions": {"allow": ["Bash(cat)"]}}"#,
            ),
        ] {
            let parsed = Update::parse(&update).unwrap();
            assert_eq!(parsed.to_value(), update);
            let mut book = book("Bash(cat)");
            assert_eq!(parsed.apply(&mut book), []);
            assert_eq!(show(&book), session, "{update}");
            assert_eq!(
                parsed.edit(r#"{"permissions": {"allow": ["Bash(cat)"]}}"#).unwrap(),
                file,
                "{update}"
            );
        }
    }

    #[test]
    fn rule_that_was_saved_is_removed_where_it_was_saved() {
        let change = |to| RuleChange { list: RuleList::Allow, rules: vec!["Bash(ls)".to_owned()], to };
        for (saved, source) in [
            (Destination::Session, RuleSource::Session),
            (Destination::Local, RuleSource::Saved(Scope::Local)),
            (Destination::User, RuleSource::Saved(Scope::User)),
        ] {
            let mut given = book("");
            Update::AddRules(change(saved)).apply(&mut given);
            assert_eq!(given.allow.iter().map(Rule::source).collect::<Vec<_>>(), [source]);
            assert!(source.is_given());
            for to in [Destination::Session, Destination::Local, Destination::Project, Destination::User] {
                let mut left = given.clone();
                Update::RemoveRules(change(to)).apply(&mut left);
                let is_gone = saved == Destination::Session || to == Destination::Session || to == saved;
                assert_eq!(left.allow.is_empty(), is_gone, "{saved:?} {to:?}");
            }
        }
    }

    #[test]
    fn invalid_permission_update_is_refused() {
        for bad in [
            json!({}),
            json!({"type": "addRules", "rules": [], "behavior": "allow", "destination": "everywhere"}),
            json!({"type": "addRules", "rules": [], "behavior": "perhaps", "destination": "session"}),
            json!({"type": "addRules", "rules": [{}], "behavior": "allow", "destination": "session"}),
            json!({"type": "setMode", "mode": "yolo", "destination": "session"}),
            json!({"type": "other", "destination": "session"}),
        ] {
            assert!(Update::parse(&bad).is_err(), "{bad}");
        }
    }
}
