//! What whoever configures a server says of single tools of it: that each call is asked about, or that none runs.
//!
//! A policy only restricts. One that would let calls run unasked grants nothing: that is for the rules of whoever runs us.

use std::collections::BTreeMap;

use serde_json::Value;

/// What becomes of the calls of a tool, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolPolicy {
    /// A person is asked each time.
    Ask,
    /// None runs.
    Deny,
}

/// The policies of a server's tools, by the server's own names for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicies(BTreeMap<String, ToolPolicy>);

impl ToolPolicies {
    /// Reads the `tools` of an entry. What has no name is left out; a word that is not known is read as the careful one.
    pub(crate) fn parse(entry: &Value) -> Self {
        let mut policies = BTreeMap::new();
        for row in entry.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let (Some(name), Some(policy)) = (row.get("name").and_then(Value::as_str), policy(row)) else {
                continue;
            };
            let known = policies.entry(name.to_owned()).or_insert(policy);
            *known = policy.max(*known);
        }
        Self(policies)
    }

    /// Returns what becomes of the calls of a tool, where anything was said.
    pub fn of(&self, tool: &str) -> Option<ToolPolicy> {
        self.0.get(tool).copied()
    }
}

/// Reads what a row says, and what its organisation says at most.
fn policy(row: &Value) -> Option<ToolPolicy> {
    let own = match row.get("permission_policy") {
        None | Some(Value::Null) => None,
        Some(word) => match word.as_str() {
            Some("always_allow") => None,
            Some("always_deny") => Some(ToolPolicy::Deny),
            _ => Some(ToolPolicy::Ask),
        },
    };
    let most = match row.get("org_max_permission").and_then(Value::as_str) {
        Some("blocked") => Some(ToolPolicy::Deny),
        Some("ask") => Some(ToolPolicy::Ask),
        _ => None,
    };
    own.max(most)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies_restrict_and_never_grant() {
        let row = |policy: &str| json!({"tools": [{"name": "t", "permission_policy": policy}]});
        for (entry, expected) in [
            (row("always_ask"), Some(ToolPolicy::Ask)),
            (row("always_deny"), Some(ToolPolicy::Deny)),
            (row("always_allow"), None),
            (row("of_the_future"), Some(ToolPolicy::Ask)),
            (json!({"tools": [{"name": "t"}]}), None),
            (json!({"tools": [{"name": "t", "org_max_permission": "ask"}]}), Some(ToolPolicy::Ask)),
            (
                json!({"tools": [{"name": "t", "permission_policy": "always_ask", "org_max_permission": "blocked"}]}),
                Some(ToolPolicy::Deny),
            ),
            (
                json!({"tools": [
                    {"name": "t", "permission_policy": "always_deny"}, {"name": "t", "permission_policy": "always_ask"},
                ]}),
                Some(ToolPolicy::Deny),
            ),
            (
                json!({"tools": ["*", 5, {"name": 1}, {"name": "t", "permission_policy": "always_deny"}]}),
                Some(ToolPolicy::Deny),
            ),
            (json!({"tools": "t"}), None),
            (json!({}), None),
        ] {
            assert_eq!(ToolPolicies::parse(&entry).of("t"), expected, "{entry}");
            assert_eq!(ToolPolicies::parse(&entry).of("other"), None, "{entry}");
        }
    }
}
