//! Which servers an administrator lets be used: lists of names, commands and addresses.
//!
//! What is denied stays denied, whatever else is allowed. Without a list of what is allowed everything is; an empty one
//! allows nothing. A list that has commands wants every program to be among them, and one that has addresses every
//! server with an address: a name alone is anybody's to choose.

use serde_json::Value;

use super::{ServerConfig, ServerWay};

/// What may be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerPolicy {
    allowed: Option<Vec<Entry>>,
    denied: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Name(String),
    Command(Vec<String>),
    Url(String),
}

impl ServerPolicy {
    /// Reads the lists of the settings. An entry of the list of what is denied that cannot be read is told; one of the
    /// list of what is allowed allows nothing.
    pub fn new(allowed: Option<&[Value]>, denied: &[Value]) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut read = |list: &[Value], key: &str| -> Vec<Entry> {
            let mut entries = Vec::new();
            for value in list {
                match Entry::parse(value) {
                    Some(entry) => entries.push(entry),
                    None => problems.push(format!(
                        "an entry of `{key}` has not exactly one of serverName, serverCommand and serverUrl: {value}"
                    )),
                }
            }
            entries
        };
        let allowed = allowed.map(|list| read(list, "allowedMcpServers"));
        let denied = read(denied, "deniedMcpServers");
        (Self { allowed, denied }, problems)
    }

    /// Returns why a server may not be used, if it may not.
    pub fn refusal(&self, server: &ServerConfig) -> Option<&'static str> {
        if self.denied.iter().any(|entry| entry.matches(server)) {
            return Some("settings forbid it (`deniedMcpServers`)");
        }
        let allowed = self.allowed.as_ref()?;
        // What lives in the client was started by whoever drives us; there is nothing to start or to reach.
        if server.way == ServerWay::Sdk {
            return None;
        }
        let wants_kind = allowed.iter().any(|entry| entry.is_for_kind_of(server));
        let is_allowed = allowed
            .iter()
            .any(|entry| entry.matches(server) && (!wants_kind || !matches!(entry, Entry::Name(_))));
        (!is_allowed).then_some("settings do not allow it (`allowedMcpServers`)")
    }
}

impl Entry {
    fn parse(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        let (key, value) = fields.iter().next().filter(|_| fields.len() == 1)?;
        match key.as_str() {
            "serverName" => Some(Self::Name(value.as_str()?.to_owned())),
            "serverCommand" => {
                let words = value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
                words.collect::<Option<Vec<_>>>().filter(|words| !words.is_empty()).map(Self::Command)
            }
            "serverUrl" => Some(Self::Url(value.as_str()?.to_owned())),
            _ => None,
        }
    }

    fn matches(&self, server: &ServerConfig) -> bool {
        match (self, &server.way) {
            (Self::Name(name), _) => *name == server.name,
            (Self::Command(words), ServerWay::Stdio { command, args, .. }) => {
                words.iter().eq(std::iter::once(command).chain(args))
            }
            (Self::Url(pattern), ServerWay::Remote(remote)) => matches_url(pattern, &remote.url),
            (Self::Command(_) | Self::Url(_), _) => false,
        }
    }

    fn is_for_kind_of(&self, server: &ServerConfig) -> bool {
        matches!(
            (self, &server.way),
            (Self::Command(_), ServerWay::Stdio { .. }) | (Self::Url(_), ServerWay::Remote(_))
        )
    }
}

/// Compares an address with a pattern in which `*` stands for anything. In the host it stands for no slash, so that
/// `https://*.example.com/*` does not cover `https://evil.org/.example.com/`.
fn matches_url(pattern: &str, url: &str) -> bool {
    let split = |text: &str| -> (String, String) {
        let host_at = text.find("://").map_or(0, |at| at + 3);
        let path_at = text[host_at..].find(['/', '?', '#', '\\']).map_or(text.len(), |at| host_at + at);
        (text[..path_at].to_ascii_lowercase(), text[path_at..].to_owned())
    };
    let ((pattern_host, pattern_path), (host, path)) = (split(pattern), split(url));
    // A name and a password before the host are part of no pattern.
    if host.contains('@') && !pattern_host.contains('@') {
        return false;
    }
    let path = if path.is_empty() { "/" } else { &path };
    let pattern_path = if pattern_path.is_empty() { "/" } else { &pattern_path };
    matches_text(&pattern_host, &host) && matches_text(pattern_path, path)
}

fn matches_text(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ServerScope, parse_server};
    use super::*;

    fn check(allowed: Option<Value>, denied: Value, server: (&str, Value), expected: bool) {
        let list = |value: &Value| value.as_array().unwrap().clone();
        let (policy, _) = ServerPolicy::new(allowed.as_ref().map(list).as_deref(), &list(&denied));
        let (name, entry) = server;
        let (config, _) = parse_server(name, &entry, ServerScope::User, "f", &|_| None).unwrap();
        assert_eq!(policy.refusal(&config).is_none(), expected, "{allowed:?} {denied} {name} {entry}");
    }

    #[test]
    fn lists_allow_and_deny() {
        let git = || ("git", json!({"command": "npx", "args": ["git"]}));
        let web = || ("web", json!({"type": "http", "url": "https://mcp.example.com/v1"}));
        check(None, json!([]), git(), true);
        check(Some(json!([])), json!([]), git(), false);
        check(Some(json!([{"serverName": "git"}])), json!([]), git(), true);
        check(Some(json!([{"serverName": "git"}])), json!([]), web(), false);
        check(Some(json!([{"serverName": "git"}])), json!([{"serverName": "git"}]), git(), false);
        check(Some(json!([{"serverName": "git"}, {"serverCommand": ["other"]}])), json!([]), git(), false);
        check(Some(json!([{"serverCommand": ["npx", "git"]}])), json!([]), git(), true);
        check(Some(json!([{"serverCommand": ["npx"]}])), json!([]), git(), false);
        check(Some(json!([{"serverName": "web"}, {"serverCommand": ["x"]}])), json!([]), web(), true);
        check(Some(json!([{"serverUrl": "https://*.example.com/*"}])), json!([]), web(), true);
        check(
            Some(json!([{"serverUrl": "https://mcp.other.com/*"}, {"serverName": "web"}])),
            json!([]),
            web(),
            false,
        );
        check(None, json!([{"serverUrl": "https://mcp.example.com/*"}]), web(), false);
        check(None, json!([{"serverCommand": ["npx", "git"]}]), git(), false);
        check(Some(json!([{"serverName": "git", "serverUrl": "x"}])), json!([]), git(), false);
        check(Some(json!([])), json!([]), ("in", json!({"type": "sdk"})), true);
    }

    #[test]
    fn pattern_of_a_host_does_not_cover_another_host() {
        for (pattern, url, expected) in [
            ("https://*.example.com/*", "https://a.example.com/x", true),
            ("https://*.example.com/*", "https://evil.org/.example.com/", false),
            ("https://*.example.com/*", "https://evil.org?.example.com/", false),
            ("https://example.com", "https://EXAMPLE.com/", true),
            ("https://example.com/*", "https://example.com", true),
            ("https://example.com/*", "https://user@example.com/", false),
            ("https://example.com/a", "https://example.com/ab", false),
        ] {
            assert_eq!(matches_url(pattern, url), expected, "{pattern} {url}");
        }
    }
}
