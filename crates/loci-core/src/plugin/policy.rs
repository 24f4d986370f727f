//! What an administrator says of plugins: which marketplaces may be used, and what only plugins may add.

use serde_json::Value;

use super::source_match::{allows, blocks};

/// Which marketplaces may be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MarketplacePolicy {
    /// The only ones, where somebody says.
    allowed: Option<Vec<Value>>,
    /// Those that may not be.
    blocked: Vec<Value>,
}

impl MarketplacePolicy {
    /// Reads `strictKnownMarketplaces` and `blockedMarketplaces`. A list that is none allows nothing.
    pub fn new(allowed: Option<&Value>, blocked: Option<&Value>) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let allowed = allowed.filter(|value| **value != Value::Bool(false));
        Self { allowed: allowed.map(list), blocked: blocked.map(list).unwrap_or_default() }
    }

    /// Says why a marketplace of this source may not be used; none where it may.
    pub fn refusal(&self, source: Option<&Value>) -> Option<String> {
        let is_blocked = |source: &Value| self.blocked.iter().any(|entry| blocks(entry, source));
        if !self.blocked.is_empty() && source.is_none_or(is_blocked) {
            return Some(
                "its marketplace is blocked by the administrator (`blockedMarketplaces`)".to_owned(),
            );
        }
        let allowed = self.allowed.as_ref()?;
        let is_allowed = source.is_some_and(|source| allowed.iter().any(|entry| allows(entry, source)));
        (!is_allowed).then(|| {
            "its marketplace is none of those that the administrator allows (`strictKnownMarketplaces`)"
                .to_owned()
        })
    }
}

/// Names that only their owner's repositories may have.
const RESERVED: [&str; 16] = [
    "claude-code-marketplace",
    "claude-code-plugins",
    "claude-plugins-official",
    "claude-plugins-community",
    "claude-community",
    "anthropic-marketplace",
    "anthropic-plugins",
    "agent-skills",
    "anthropic-agent-skills",
    "knowledge-work-plugins",
    "life-sciences",
    "claude-for-legal",
    "claude-for-financial-services",
    "financial-services-plugins",
    "first-party-plugins",
    "healthcare",
];
/// Whose they are, in the ways that their repositories are written.
const OWNERS: [&str; 3] = ["anthropics/", "https://github.com/anthropics/", "git@github.com:anthropics/"];

/// Says why a marketplace of this source may not have its name.
pub fn reserved_refusal(name: &str, source: &Value) -> Option<String> {
    let is_reserved = RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name));
    (is_reserved && !is_owners(source))
        .then(|| format!("the name `{name}` is reserved for another marketplace"))
}

/// Says why a new marketplace may not be called what sounds like another's.
pub fn imitation_refusal(name: &str, source: &Value) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let has = |word: &str| name.contains(word);
    let imitates = name.starts_with("anthropic-") || (has("official") && (has("claude") || has("anthropic")));
    (imitates && !is_owners(source)).then(|| format!("the name `{name}` sounds like an official marketplace"))
}

fn is_owners(source: &Value) -> bool {
    let place = match text(source, "source") {
        Some("github") => text(source, "repo"),
        Some("git") => text(source, "url"),
        _ => None,
    };
    place.is_some_and(|place| OWNERS.iter().any(|owner| place.to_ascii_lowercase().starts_with(owner)))
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// What only plugins, and the administrator, may add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PluginOnly {
    /// Skills and commands.
    pub skills: bool,
    /// Agents.
    pub agents: bool,
    /// Hooks.
    pub hooks: bool,
    /// MCP servers.
    pub mcp: bool,
}

impl PluginOnly {
    /// Reads `strictPluginOnlyCustomization`: true, a list, or switches by name. What cannot be read means all.
    pub fn new(value: Option<&Value>) -> Self {
        let all = Self { skills: true, agents: true, hooks: true, mcp: true };
        let by = |has: &dyn Fn(&str) -> bool| Self {
            skills: has("skills"),
            agents: has("agents"),
            hooks: has("hooks"),
            mcp: has("mcp"),
        };
        match value {
            None | Some(Value::Null | Value::Bool(false)) => Self::default(),
            Some(Value::Array(names)) => by(&|name| names.iter().any(|it| it == name)),
            Some(Value::Object(switches)) => {
                by(&|name| switches.get(name).is_some_and(|it| *it != Value::Bool(false)))
            }
            Some(_) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marketplaces_are_allowed_and_blocked_by_their_source() {
        let github = json!({"source": "github", "repo": "acme/tools"});
        let dir = json!({"source": "directory", "path": "/m"});
        for (allowed, blocked, source, is_refused) in [
            (json!(null), json!(null), Some(&github), false),
            (json!(null), json!(null), None, false),
            (json!([]), json!(null), Some(&github), true),
            (json!("x"), json!(null), Some(&github), true),
            (json!([github]), json!(null), Some(&github), false),
            (json!([{"source": "github", "repo": "acme/*"}]), json!(null), Some(&github), false),
            (json!([{"source": "github", "repo": "acm/*"}]), json!(null), Some(&github), true),
            (
                json!([{"source": "github", "repo": "acme/tools", "ref": "v1"}]),
                json!(null),
                Some(&github),
                true,
            ),
            (json!([github]), json!(null), Some(&dir), true),
            (json!([github]), json!(null), None, true),
            (json!([{"source": "hostPattern", "hostPattern": ".*"}]), json!(null), Some(&github), false),
            (json!([{"source": "strange", "repo": "acme/tools"}]), json!(null), Some(&github), true),
            (json!(null), json!([github]), Some(&github), true),
            (json!(null), json!([github]), Some(&dir), false),
            (json!(null), json!([github]), None, true),
            (json!(null), json!([{"source": "strange"}]), Some(&dir), true),
            (json!([dir]), json!([dir]), Some(&dir), true),
        ] {
            let some = |value: &Value| (!value.is_null()).then(|| value.clone());
            let policy = MarketplacePolicy::new(some(&allowed).as_ref(), some(&blocked).as_ref());
            assert_eq!(policy.refusal(source).is_some(), is_refused, "{allowed} {blocked} {source:?}");
        }
    }

    #[test]
    fn what_only_plugins_may_add_is_read_closed() {
        let read = |value: Value| {
            let only = PluginOnly::new(Some(&value));
            [only.skills, only.agents, only.hooks, only.mcp]
        };
        assert_eq!(read(json!(true)), [true; 4]);
        assert_eq!(read(json!("yes")), [true; 4]);
        assert_eq!(read(json!(false)), [false; 4]);
        assert_eq!(read(json!(["hooks", "mcp"])), [false, false, true, true]);
        assert_eq!(read(json!({"skills": true, "agents": false})), [true, false, false, false]);
    }

    #[test]
    fn reserved_names_are_their_owners() {
        let own = json!({"source": "github", "repo": "anthropics/claude-code"});
        assert!(reserved_refusal("claude-code-plugins", &own).is_none());
        let other = json!({"source": "github", "repo": "anthropics-x/claude-code"});
        assert!(reserved_refusal("Claude-Code-Plugins", &other).is_some());
        assert!(reserved_refusal("mine", &other).is_none());
        for (name, is_imitation) in
            [("official-claude-plugins", true), ("anthropic-plugins-v2", true), ("claude-tools", false)]
        {
            assert_eq!(imitation_refusal(name, &other).is_some(), is_imitation, "{name}");
            assert!(imitation_refusal(name, &own).is_none(), "{name}");
        }
    }
}
