//! Slips in the administrator's file open no door.

use expect_test::{Expect, expect};

use super::*;

/// Reads an administrator's text and shows its values, then what is said.
fn check(text: &str, expected: Expect) {
    let (layer, diagnostics) = Layer::parse(text, Origin::new(Scope::Managed, "managed.json"));
    let said: String = diagnostics.iter().map(|d| format!("{d}\n")).collect();
    expected.assert_eq(&format!("{}\n{said}", show(&layer)));
}

/// The keys that must fail closed, each with a value that cannot be read and what it counts as.
const CLOSED: &[(&str, &str, &str)] = &[
    ("allowedMcpServers", "\"srv\"", "[]"),
    ("allowManagedHooksOnly", "\"yes\"", "true"),
    ("allowManagedMcpServersOnly", "1", "true"),
    ("disableCommandPluginSources", "{}", "true"),
    ("availableModels", "7", "[]"),
    ("allowedProviders", "7", "[]"),
    ("enforceAvailableModels", "null", "true"),
    ("forceLoginOrgUUID", "42", "[]"),
];

#[test]
fn unreadable_managed_restriction_counts_as_strictest_value() {
    for (key, bad, strictest) in CLOSED {
        let text = format!("{{\"{key}\": {bad}}}");
        let (layer, said) = Layer::parse(&text, Origin::new(Scope::Managed, "m"));
        assert_eq!(show(&layer), format!("{key}={strictest}"));
        assert!(said[0].message.ends_with(&format!("taken as {strictest}")), "{said:?}");
        let users = Layer::parse(&text, Origin::new(Scope::User, "u")).0;
        assert_eq!(show(&users), "", "of anybody else it is only a bad value");
    }
    let n_closed = Key::all().iter().filter(|key| key.closed.is_some()).count();
    assert_eq!(n_closed, CLOSED.len(), "every such key is in the table above");
}

#[test]
fn a_value_that_can_be_read_stays() {
    check(
        r#"{"availableModels": ["a", 1], "allowManagedHooksOnly": false, "forceLoginOrgUUID": "u"}"#,
        expect![[r#"
            availableModels=["a"] allowManagedHooksOnly=false forceLoginOrgUUID="u"
            managed.json:1: `availableModels`: entry 2 is 1, not text; left out (write it in double quotes)
        "#]],
    );
}

#[test]
fn a_broken_file_closes_too() {
    check(
        "{\"allowManagedHooksOnly\": tru, \"requiredMinimumVersion\": 2, \"availableModels\": [\"a\"",
        expect![[r#"
            allowManagedHooksOnly=true availableModels=["a"]
            managed.json:1: not valid JSON: write `tru` in double quotes, and 2 more (what can be read is used; fix the file)
            managed.json:1: `allowManagedHooksOnly`: expected true or false, found something unreadable; taken as true (write true or false)
            managed.json:1: `requiredMinimumVersion`: expected text in double quotes, found 2; ignored (write text in double quotes, or remove the key)
        "#]],
    );
}

#[test]
fn credentials_without_mode_are_denied() {
    check(
        r#"{"sandbox": {"credentials": {"files": ["~/.aws", {"path": "a", "mode": "mask"}, {"path": "b", "mode": 1}], "envVars": [{"name": "T"}]}}}"#,
        expect![[r#"
            sandbox.credentials={"files":[{"path":"~/.aws","mode":"deny"},{"path":"a","mode":"mask"},{"path":"b","mode":"deny"}],"envVars":[{"name":"T","mode":"deny"}]}
            managed.json:1: `sandbox.credentials`: 3 entries say no `mode`; taken as "deny" (write "deny" or "mask")
        "#]],
    );
}
