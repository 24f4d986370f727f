//! Why a setting is what it is: every file's value, which one wins, and what comes before all files.

use loci_settings::{Key, Merge, Part, Role, Setting, Trust};
use serde_json::{Value, json};

use crate::settings::editor::without_secrets;

/// A setting, explained.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedSetting {
    /// The key.
    pub key: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The value in force, secrets hidden.
    pub value: Option<Value>,
    /// What files say, the strongest first.
    pub parts: Vec<ExplainedPart>,
    /// Who may set it.
    pub who: String,
    /// How files are joined.
    pub joined: &'static str,
    /// What comes before all files.
    pub before: Option<&'static str>,
    /// Whether this version acts upon it.
    pub is_used: bool,
}

/// What one file says.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedPart {
    /// Whose file it is.
    pub scope: String,
    /// The file, for people.
    pub file: String,
    /// The line.
    pub line: usize,
    /// Its value, secrets hidden.
    pub value: Value,
    /// Whether it counts.
    pub counts: bool,
    /// Why it does, or does not.
    pub why: String,
}

impl ExplainedSetting {
    /// Explains a key, given what files say of it.
    pub fn new(key: &'static Key, setting: Option<&Setting>) -> Self {
        let parts = setting.map(|setting| setting.parts.as_slice()).unwrap_or_default();
        Self {
            key: key.path,
            about: key.about,
            value: setting
                .and_then(|setting| setting.value.as_ref())
                .map(|value| without_secrets(key, value)),
            parts: parts.iter().rev().map(|part| ExplainedPart::new(key, part)).collect(),
            who: format!("{}{}", key.scopes.describe(), trust(key)),
            joined: joined(key.merge),
            before: before(key.path),
            is_used: key.is_used,
        }
    }

    /// Returns it for people.
    pub fn to_text(&self) -> String {
        let head = match &self.value {
            Some(value) => format!("{} = {value}\n", self.key),
            None => format!("{} is not set\n", self.key),
        };
        let rows: String = self.parts.iter().map(ExplainedPart::row).collect();
        let before = self.before.map(|before| format!("{before}\n")).unwrap_or_default();
        let unused = if self.is_used { "" } else { "This version keeps it and does not act upon it yet.\n" };
        format!(
            "{head}{rows}\nWhat it is: {}.\nWho may set it: {}.\nHow files are joined: {}.\n{before}{unused}",
            self.about, self.who, self.joined
        )
    }

    /// Returns it for programs.
    pub fn to_json(&self) -> Value {
        let part = |part: &ExplainedPart| {
            json!({
                "scope": part.scope, "file": part.file, "line": part.line, "value": part.value,
                "counts": part.counts, "why": part.why,
            })
        };
        json!({
            "key": self.key,
            "value": self.value,
            "about": self.about,
            "isUsed": self.is_used,
            // In the order of files, the weakest first.
            "sources": self.parts.iter().rev().map(part).collect::<Vec<_>>(),
        })
    }

    /// Returns the file whose value is in force, and why.
    pub fn winner(&self) -> Option<&ExplainedPart> {
        self.parts.iter().find(|part| part.counts)
    }
}

impl ExplainedPart {
    fn new(key: &Key, part: &Part) -> Self {
        Self {
            scope: part.origin.scope.to_string(),
            file: part.origin.name.to_string(),
            line: part.line,
            value: without_secrets(key, &part.value),
            counts: matches!(part.role, Role::Wins | Role::Joins),
            why: role(key, part),
        }
    }

    fn row(&self) -> String {
        format!("  {:<12} {}:{}  {}  {}\n", self.scope, self.file, self.line, self.value, self.why)
    }
}

fn role(key: &Key, part: &Part) -> String {
    match (part.role, key.merge) {
        (Role::Wins, Merge::AnyTrue | Merge::AnyFalse | Merge::Strictest(_)) => {
            "wins: the strictest value".to_owned()
        }
        (Role::Wins, _) => "wins: the highest file that counts".to_owned(),
        (Role::Joins, _) => "counts".to_owned(),
        (Role::Overridden, _) => "overridden".to_owned(),
        (Role::Refused(why), _) => format!("does not count: {why}"),
    }
}

fn joined(merge: Merge) -> &'static str {
    match merge {
        Merge::Highest => "the highest wins, of managed, command line, local, project, user",
        Merge::Union => "all lists are put together",
        Merge::ByName | Merge::ByWholeName => "name by name, the highest file wins a name",
        Merge::ByNameStrictest(..) => {
            "name by name, the highest file wins a name, and the strictest limit counts"
        }
        Merge::Concatenate => "all lists under a name are put together",
        Merge::ManagedOrUnion => "all lists are put together, unless managed settings have one",
        Merge::AnyTrue => "true in any file wins",
        Merge::AnyFalse => "false in any file wins",
        Merge::Strictest(_) => "the strictest value wins",
    }
}

fn trust(key: &Key) -> &'static str {
    match key.trust {
        Trust::Free => "",
        Trust::Needed => "; in a project's files once the folder is trusted",
        Trust::NeverShared => "; in the local file once the folder is trusted, in the shared one never",
        Trust::Environment => {
            "; in a project's files once the folder is trusted, and never where requests go"
        }
        Trust::PermissionMode => {
            "; in a project's files once the folder is trusted, and never to stop asking"
        }
    }
}

/// Says what wins over all files.
fn before(path: &str) -> Option<&'static str> {
    Some(match path {
        "model" => "What comes first: `--model`, then ANTHROPIC_MODEL, then the model of a resumed session.",
        "effortLevel" => "What comes first: CLAUDE_CODE_EFFORT_LEVEL, then `--effort`.",
        "fallbackModel" => "What comes first: `--fallback-model`.",
        "alwaysThinkingEnabled" => "What comes first: `--max-thinking-tokens`, then MAX_THINKING_TOKENS.",
        "permissions.defaultMode" => "What comes first: `--permission-mode`.",
        _ => return None,
    })
}
