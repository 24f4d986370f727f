//! `initialize`: what both sides can do.

use serde_json::{Value, json};

use super::auth;

/// The version of the protocol that we speak.
const PROTOCOL_VERSION: u64 = 1;

/// What the client says it can do; whatever it leaves out it cannot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClientCapabilities {
    /// It reads files, with what is not saved yet.
    pub(super) reads_files: bool,
    /// It writes files.
    pub(super) writes_files: bool,
    /// It runs commands.
    pub(super) has_terminals: bool,
    /// It shows forms.
    pub(super) has_forms: bool,
    /// It opens pages.
    pub(super) opens_urls: bool,
    /// It shows notices.
    pub(super) has_notices: bool,
    /// It shows compactions.
    pub(super) has_compactions: bool,
    /// It can run this program at a terminal, for a login.
    pub(super) has_terminal_login: bool,
}

impl ClientCapabilities {
    /// Reads the parameters of `initialize`.
    pub(super) fn parse(params: &Value) -> Self {
        let capabilities = &params["clientCapabilities"];
        let is_true = |value: &Value| value.as_bool() == Some(true);
        let is_there = |value: &Value| value.is_object();
        Self {
            reads_files: is_true(&capabilities["fs"]["readTextFile"]),
            writes_files: is_true(&capabilities["fs"]["writeTextFile"]),
            has_terminals: is_true(&capabilities["terminal"]),
            has_forms: is_there(&capabilities["elicitation"]["form"]),
            opens_urls: is_there(&capabilities["elicitation"]["url"]),
            has_notices: is_there(&capabilities["session"]["notices"]),
            has_compactions: is_there(&capabilities["session"]["compaction"]),
            has_terminal_login: is_true(&capabilities["auth"]["terminal"]),
        }
    }
}

/// Answers `initialize`. Whatever version the client wants, we speak ours; one that cannot goes away.
pub(super) fn initialize_answer(client: ClientCapabilities, version: &str) -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": true},
            "sessionCapabilities": {
                "list": {},
                "delete": {},
                "additionalDirectories": {},
                "resume": {},
                "close": {},
            },
            "auth": {"logout": {}},
        },
        "authMethods": auth::methods(client),
        "agentInfo": {"name": "loci", "title": "loci", "version": version},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_leaves_out_or_denies_it_cannot_do() {
        for params in [
            json!({}),
            json!({"clientCapabilities": null}),
            json!({"clientCapabilities": {"fs": {"readTextFile": false}, "terminal": "yes", "elicitation": {"form": null}}}),
            json!({"clientCapabilities": {"elicitation": {}, "session": {"notices": null}, "auth": {"terminal": 1}}}),
        ] {
            assert_eq!(ClientCapabilities::parse(&params), ClientCapabilities::default(), "{params}");
        }
        let all = json!({"clientCapabilities": {
            "fs": {"readTextFile": true, "writeTextFile": true},
            "terminal": true,
            "elicitation": {"form": {}, "url": {}},
            "session": {"notices": {}, "compaction": {}},
            "auth": {"terminal": true},
        }});
        let all = ClientCapabilities::parse(&all);
        assert!(all.reads_files && all.writes_files && all.has_terminals && all.has_forms && all.opens_urls);
        assert!(all.has_notices && all.has_compactions && all.has_terminal_login);
    }

    #[test]
    fn terminal_login_is_offered_only_to_clients_with_a_terminal() {
        let types = |has_terminal_login| {
            let client = ClientCapabilities { has_terminal_login, ..ClientCapabilities::default() };
            let answer = initialize_answer(client, "1.2.3");
            assert_eq!(answer["agentInfo"]["version"], "1.2.3");
            answer["authMethods"].as_array().unwrap().iter().map(|it| it["type"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(types(false), [Value::Null]);
        assert_eq!(types(true), [json!("terminal"), Value::Null]);
    }
}
