//! Settings from text to meaning: what is read, what is said, what counts.

mod aliases;
mod closed;
mod never_lost;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

fn layer(scope: Scope, text: &str) -> Layer {
    Layer::parse(text, Origin::new(scope, format!("{scope}.json"))).0
}

fn show(layer: &Layer) -> String {
    let values = layer.values.iter();
    values
        .map(|value| format!("{}={} ", value.key.path, value.value))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// Reads a text and shows its values, then what is said about it.
fn check(text: &str, expected: Expect) {
    let (layer, diagnostics) = Layer::parse(text, Origin::new(Scope::User, "settings.json"));
    let said: String = diagnostics.iter().map(|d| format!("{:?}: {d}\n", d.severity)).collect();
    expected.assert_eq(&format!("{}\n{said}", show(&layer)));
}

#[test]
fn comments_and_trailing_commas_are_read_without_a_word() {
    check(
        "\u{feff}{\r\n  // why\r\n  \"model\": \"opus\", /* x */\r\n  \"permissions\": {\"deny\": [\"Bash(rm *)\",],},\r\n}",
        expect![[r#"
            model="opus" permissions.deny=["Bash(rm *)"]
        "#]],
    );
    check("", expect!["\n\n"]);
    check("// nothing here\n", expect!["\n\n"]);
}

#[test]
fn a_bad_value_costs_that_value_only() {
    check(
        r#"{
            "model": 42,
            "effortLevel": "huge",
            "cleanupPeriodDays": 0,
            "alwaysThinkingEnabled": "yes",
            "env": {"A": "1", "B": 2, "C": ["x"], "D": true},
            "fallbackModel": ["a", 1, {}],
            "sandbox": true,
            "permissions": {"allow": "Read", "deny": "Bash(curl *)", "ask": [1, "Edit"], "defaultMode": "yolo"},
            "language": "german"
        }"#,
        expect![[r#"
            env={"A":"1","B":"2","D":"true"} fallbackModel=["a"] permissions.deny=["Bash(curl *)"] permissions.ask=["Edit"] language="german"
            Warning: settings.json:2: `model`: expected text in double quotes, found 42; ignored (write text in double quotes, or remove the key)
            Warning: settings.json:3: `effortLevel`: expected one of "low", "medium", "high", "xhigh", found "huge"; ignored (write one of "low", "medium", "high", "xhigh", or remove the key)
            Warning: settings.json:4: `cleanupPeriodDays`: expected a whole number of at least 1, found 0; ignored (write a whole number of at least 1, or remove the key)
            Warning: settings.json:5: `alwaysThinkingEnabled`: expected true or false, found "yes"; ignored (write true or false, or remove the key)
            Warning: settings.json:6: `env.C`: expected text in double quotes, found a list; ignored (write text in double quotes, or remove the key)
            Warning: settings.json:7: `fallbackModel`: entry 2 is 1, not text; left out (write it in double quotes)
            Warning: settings.json:7: `fallbackModel`: entry 3 is an object, not text; left out (write it in double quotes)
            Warning: settings.json:8: `sandbox`: expected an object, found true; ignored (write an object, or remove the key)
            Warning: settings.json:9: `permissions.allow`: expected a list of texts, found "Read"; ignored (write a list of texts, or remove the key)
            Warning: settings.json:9: `permissions.deny`: a rule stands alone; taken as a list of one (put it in [ ])
            Warning: settings.json:9: `permissions.ask`: entry 1 is 1, not text; left out (write it in double quotes)
            Warning: settings.json:9: `permissions.defaultMode`: expected one of "default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", found "yolo"; ignored (write one of "default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", or remove the key)
        "#]],
    );
}

#[test]
fn unknown_keys_are_named_and_slips_near_rules_aloud() {
    check(
        r#"{"$schema": "x", "modle": "opus", "mine": 1, "permissions": {"denny": []}, "permissions.ask": ["Edit"]}"#,
        expect![[r#"
            permissions.ask=["Edit"]
            Note: settings.json:1: `modle`: no such setting (did you mean `model`?)
            Note: settings.json:1: `mine`: no such setting (it is kept)
            Warning: settings.json:1: `permissions.denny`: no such setting (did you mean `permissions.deny`?)
            Warning: settings.json:1: `permissions.ask`: no such setting (did you mean `permissions.ask`?)
            Warning: settings.json:1: `permissions.ask`: 1 rule outside `permissions`; applied all the same (move them to `permissions.ask`)
        "#]],
    );
}

#[test]
fn rules_inside_another_setting_count() {
    check(
        r#"{"env": {"A": "1", "deny": ["X"], "ask": "me"}, "fallbackModel": ["a", {"ask": ["Y"]}]}"#,
        expect![[r#"
            env={"A":"1","ask":"me"} fallbackModel=["a"] permissions.deny=["X"] permissions.ask=["Y"]
            Warning: settings.json:1: `env.deny`: expected text in double quotes, found a list; ignored (write text in double quotes, or remove the key)
            Warning: settings.json:1: `fallbackModel`: entry 2 is an object, not text; left out (write it in double quotes)
            Warning: settings.json:1: `permissions.deny`: 1 rule outside `permissions`; applied all the same (move them to `permissions.deny`)
            Warning: settings.json:1: `permissions.ask`: 1 rule outside `permissions`; applied all the same (move them to `permissions.ask`)
        "#]],
    );
    check(
        r#"{"permissions": {" deny ": ["X"], "\"ask": ["Y"]}}"#,
        expect![[r#"
        permissions.deny=["X"] permissions.ask=["Y"]
        Warning: settings.json:1: `permissions. deny `: no such setting (did you mean `permissions.deny`?)
        Warning: settings.json:1: `permissions."ask`: no such setting (did you mean `permissions.ask`?)
        Warning: settings.json:1: `permissions.deny`: 1 rule outside `permissions`; applied all the same (move them to `permissions.deny`)
        Warning: settings.json:1: `permissions.ask`: 1 rule outside `permissions`; applied all the same (move them to `permissions.ask`)
    "#]],
    );
    // Where anything may stand, only the whole group is believed.
    check(
        r#"{"hooks": {"Stop": [], "ask": ["no rule"], "permissions": {"allow": ["W"], "deny": ["Z"]}}}"#,
        expect![[r#"
            hooks={"Stop":[],"ask":["no rule"],"permissions":{"allow":["W"],"deny":["Z"]}} permissions.deny=["Z"]
            Warning: settings.json:1: `permissions.deny`: 1 rule outside `permissions`; applied all the same (move them to `permissions.deny`)
        "#]],
    );
}

#[test]
fn of_a_key_that_comes_twice_the_last_counts_but_restrictions_add_up() {
    check(
        "{\"model\": \"a\",\n\"model\": \"b\",\n\"permissions\": {\"deny\": [\"A\"], \"allow\": [\"X\"]},\n\
         \"permissions\": {\"deny\": [\"B\"], \"allow\": [\"Y\"]}}",
        expect![[r#"
            model="b" permissions.deny=["A","B"] permissions.allow=["Y"]
            Warning: settings.json:2: `model`: set twice, first on line 1; the last counts (keep one of them)
            Warning: settings.json:4: `permissions.deny`: set twice, first on line 3; all rules count (keep one of them)
            Warning: settings.json:4: `permissions.allow`: set twice, first on line 3; the last counts (keep one of them)
        "#]],
    );
}

#[test]
fn broken_files_give_what_can_be_read() {
    // A missing comma, a missing bracket, a missing quote, a bracket too many, a cut, no JSON at all.
    check(
        "{\n  \"model\": \"opus\"\n  \"permissions\": {\"deny\": [\"A\"]}\n}",
        expect![[r#"
            model="opus" permissions.deny=["A"]
            Error: settings.json:2: not valid JSON: a comma is missing (what can be read is used; fix the file)
        "#]],
    );
    check(
        "{\"permissions\": {\"allow\": [\"Read\", \"deny\": [\"A\"]}, \"model\": \"opus\"}",
        expect![[r#"
            permissions.allow=["Read"] permissions.deny=["A"] model="opus"
            Error: settings.json:1: not valid JSON: this `[` is never closed, and 1 more (what can be read is used; fix the file)
        "#]],
    );
    check(
        "{\"model\": \"opus, \"permissions\": {\"deny\": [\"A\"]}}",
        expect![[r#"
            permissions.deny=["A"]
            Error: settings.json:1: not valid JSON: a comma is missing, and 10 more (what can be read is used; fix the file)
            Warning: settings.json:1: `permissions.deny`: 1 rule recovered from the broken part of the file (they are applied; fix the file)
        "#]],
    );
    check(
        "{\"permissions\": {\"allow\": []}}, \"deny\": [\"A\"]}, \"model\": \"opus\"}",
        expect![[r#"
            permissions.allow=[] model="opus" permissions.deny=["A"]
            Error: settings.json:1: not valid JSON: there is more text behind the end; a closing bracket is too many (what can be read is used; fix the file)
            Warning: settings.json:1: `deny`: no such setting (did you mean `permissions.deny`?)
            Warning: settings.json:1: `permissions.deny`: 1 rule recovered from the broken part of the file (they are applied; fix the file)
        "#]],
    );
    check(
        "{\"model\": \"opus\", \"permissions\": {\"deny\": [\"A\", \"B",
        expect![[r#"
            model="opus" permissions.deny=["A"]
            Error: settings.json:1: not valid JSON: this text is never closed; a double quote is missing, and 3 more (what can be read is used; fix the file)
        "#]],
    );
    check(
        "[1]",
        expect![[r#"

            Error: settings.json:1: expected an object, found a list (begin the file with `{` and end it with `}`)
        "#]],
    );
}

#[test]
fn a_file_nested_without_end_is_no_danger() {
    let deep = format!("{{\"mine\": {}1{}, \"model\": \"opus\"}}", "[".repeat(5000), "]".repeat(5000));
    let (layer, diagnostics) = Layer::parse(&deep, Origin::new(Scope::User, "s"));
    assert_eq!(show(&layer), "model=\"opus\"");
    assert!(diagnostics[0].message.contains("nested deeper than 100 levels"), "{diagnostics:?}");
    let hostile = "\"deny\":[/*".repeat(20_000);
    assert!(!Layer::parse(&hostile, Origin::new(Scope::User, "s")).1.is_empty());
}

/// Merges one text per scope, given as `user: {...}` lines, and shows the key.
fn check_merge(is_trusted: bool, texts: &[(Scope, &str)], path: &str, expected: Value) {
    let layers: Vec<Layer> = texts.iter().map(|(scope, text)| layer(*scope, text)).collect();
    let merged = merge(&layers, is_trusted);
    assert_eq!(merged.value(path).cloned().unwrap_or(Value::Null), expected, "{texts:?} {path}");
}

#[test]
fn for_every_pair_of_files_each_kind_of_key_has_its_rule() {
    for (idx, low) in Scope::ALL.into_iter().enumerate() {
        for high in &Scope::ALL[idx + 1..] {
            for (path, left, right, expected) in [
                ("model", json!("low"), json!("high"), json!("high")),
                ("alwaysThinkingEnabled", json!(true), json!(false), json!(false)),
                ("fallbackModel", json!(["a", "b"]), json!(["c"]), json!(["c"])),
                ("permissions.deny", json!(["A", "B"]), json!(["B", "C"]), json!(["A", "B", "C"])),
                ("permissions.allow", json!(["A"]), json!(["C"]), json!(["A", "C"])),
                ("env", json!({"A": "1", "B": "1"}), json!({"B": "2"}), json!({"A": "1", "B": "2"})),
                (
                    "hooks",
                    json!({"Stop": [1], "X": [2]}),
                    json!({"Stop": [1, 3]}),
                    json!({"Stop": [1, 1, 3], "X": [2]}),
                ),
                ("disableClaudeAiConnectors", json!(true), json!(false), json!(true)),
                ("crossSessionInbound", json!("refuse"), json!("accept"), json!("refuse")),
                ("remoteControlAtStartup", json!(false), json!(true), json!(false)),
                ("permissions.defaultMode", json!("plan"), json!("acceptEdits"), json!("acceptEdits")),
                ("cleanupPeriodDays", json!(3), json!(5), json!(5)),
                ("skillListingBudgetFraction", json!(0.5), json!(0.25), json!(0.25)),
                ("forceLoginOrgUUID", json!("a"), json!(["b"]), json!(["b"])),
                ("deniedMcpServers", json!([{"serverName": "a"}]), json!([]), json!([{"serverName": "a"}])),
                (
                    "statusLine",
                    json!({"a": {"x": 1}}),
                    json!({"a": {"y": 2}}),
                    json!({"a": {"x": 1, "y": 2}}),
                ),
                (
                    "availableModels",
                    json!(["a"]),
                    json!(["b"]),
                    if *high == Scope::Managed { json!(["b"]) } else { json!(["a", "b"]) },
                ),
                (
                    "extraKnownMarketplaces",
                    json!({"m": {"a": 1}, "n": 1}),
                    json!({"m": {"b": 2}}),
                    json!({"m": {"b": 2}, "n": 1}),
                ),
            ] {
                let text = |value: &Value| match path.split_once('.') {
                    Some((group, name)) => json!({group: {name: value}}).to_string(),
                    None => json!({path: value}).to_string(),
                };
                check_merge(true, &[(low, &text(&left)), (*high, &text(&right))], path, expected);
            }
        }
    }
}

#[test]
fn a_managed_list_of_models_replaces_the_others() {
    let user = r#"{"availableModels": ["a"]}"#;
    let project = r#"{"availableModels": ["b"]}"#;
    check_merge(
        true,
        &[(Scope::User, user), (Scope::Project, project)],
        "availableModels",
        json!(["a", "b"]),
    );
    check_merge(true, &[(Scope::User, user), (Scope::Managed, project)], "availableModels", json!(["b"]));
}

/// An allowed name must not be led to a model that is not.
#[test]
fn names_of_models_are_the_administrators_where_the_list_of_models_is() {
    let user = r#"{"modelOverrides": {"claude-sonnet-5": "dear-model", "claude-opus-5": "u"}}"#;
    let names = r#"{"modelOverrides": {"claude-opus-5": "m"}}"#;
    let list = r#"{"availableModels": ["sonnet"]}"#;
    let both = r#"{"availableModels": ["sonnet"], "modelOverrides": {"claude-opus-5": "m"}}"#;
    for (managed, expected, is_idle) in [
        ("{}", "claude-opus-5=u claude-sonnet-5=dear-model", false),
        (names, "claude-opus-5=m claude-sonnet-5=dear-model", false),
        (list, "", true),
        (both, "claude-opus-5=m", true),
    ] {
        let settings =
            Settings::from(&merge(&[layer(Scope::User, user), layer(Scope::Managed, managed)], true));
        let mut names: Vec<String> =
            settings.model_overrides.iter().map(|(id, own)| format!("{id}={own}")).collect();
        names.sort();
        assert_eq!((names.join(" ").as_str(), settings.has_idle_overrides), (expected, is_idle), "{managed}");
    }
}

/// Shows what becomes of each value of a text, trusted and not.
fn check_gate(scope: Scope, text: &str, untrusted: &str, trusted: &str) {
    for (is_trusted, expected) in [(false, untrusted), (true, trusted)] {
        let merged = merge(&[layer(scope, text)], is_trusted);
        let shown: Vec<String> = merged
            .iter()
            .flat_map(|setting| setting.parts.iter())
            .map(|part| match part.role {
                Role::Wins | Role::Joins => "counts".to_owned(),
                Role::Overridden => "overridden".to_owned(),
                Role::Refused(why) => why.to_string(),
            })
            .collect();
        assert_eq!(shown.join(", "), expected, "{scope} {text} trusted: {is_trusted}");
    }
}

#[test]
fn a_repository_that_is_not_trusted_can_only_restrict() {
    let (not, never) = ("this folder is not trusted", "a repository cannot set it");
    for scope in [Scope::Project, Scope::Local] {
        for text in [
            r#"{"permissions": {"deny": ["A"], "ask": ["B"]}, "x": 1}"#,
            r#"{"model": "a", "outputStyle": "b"}"#,
        ] {
            check_gate(scope, text, "counts, counts", "counts, counts");
        }
        for text in [
            r#"{"permissions": {"allow": ["Bash(*)"]}}"#,
            r#"{"permissions": {"additionalDirectories": ["/"]}}"#,
            r#"{"language": "b"}"#,
            r#"{"attribution": {"commit": "b"}}"#,
            r#"{"permissions": {"defaultMode": "acceptEdits"}}"#,
            r#"{"permissions": {"defaultMode": "default"}}"#,
            r#"{"env": {"PATH": "/evil"}}"#,
            r#"{"hooks": {"Stop": []}}"#,
            r#"{"statusLine": {"type": "command", "command": "evil"}}"#,
            r#"{"cleanupPeriodDays": 1}"#,
            r#"{"claudeMdExcludes": ["**"]}"#,
            r#"{"enableAllProjectMcpServers": true}"#,
            r#"{"sandbox": {"excludedCommands": ["*"]}}"#,
        ] {
            check_gate(scope, text, not, "counts");
        }
        for mode in ["bypassPermissions", "auto"] {
            let text = json!({"permissions": {"defaultMode": mode}}).to_string();
            check_gate(scope, &text, never, never);
        }
        check_gate(scope, r#"{"permissions": {"defaultMode": "plan"}}"#, "counts", "counts");
        check_gate(scope, r#"{"env": {"LOCI_PASS_PROVIDER_KEYS": "1"}}"#, never, never);
        check_gate(scope, r#"{"env": {"CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "0"}}"#, never, never);
    }
    for text in [
        r#"{"permissions": {"allow": ["A"], "defaultMode": "bypassPermissions"}}"#,
        r#"{"env": {"ANTHROPIC_BASE_URL": "x", "FOO": "y"}, "apiKeyHelper": "z"}"#,
    ] {
        check_gate(Scope::User, text, "counts, counts", "counts, counts");
    }
}

/// An archive can bring a local file as well as a shared one, and no index of git knows of it.
#[test]
fn every_project_file_waits_for_trust_before_it_allows() {
    let local = || Origin::new(Scope::Local, "s.json");
    for text in
        [r#"{"permissions": {"allow": ["A"]}}"#, r#"{"permissions": {"additionalDirectories": ["/"]}}"#]
    {
        for (origin, is_trusted, counts) in [
            (local(), false, false),
            (local(), true, true),
            (local().from_repository(), false, false),
            (local().from_repository(), true, true),
            (Origin::new(Scope::Project, "s.json"), false, false),
            (Origin::new(Scope::Project, "s.json"), true, true),
        ] {
            let (layer, _) = Layer::parse(text, origin.clone());
            let merged = merge(&[layer], is_trusted);
            let has_value = merged.iter().any(|setting| setting.value.is_some());
            assert_eq!(has_value, counts, "{origin:?} {is_trusted} {text}");
        }
    }
}

#[test]
fn repository_cannot_set_request_endpoints() {
    let never = "a repository cannot set it";
    for name in [
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "https_proxy",
        "HTTP_PROXY",
        "NO_PROXY",
        "NODE_EXTRA_CA_CERTS",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "CLAUDE_CODE_CLIENT_CERT",
        "AWS_ENDPOINT_URL_BEDROCK",
        "AWS_CONFIG_FILE",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_SECRET_ACCESS_KEY",
        "ANTHROPIC_AWS_API_KEY",
        "ANTHROPIC_FOUNDRY_RESOURCE",
        "AZURE_AUTHORITY_HOST",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "CLAUDE_CODE_RESUME_PROMPT",
    ] {
        let text = json!({"env": {name: "x"}}).to_string();
        check_gate(Scope::Project, &text, never, never);
        check_gate(Scope::Local, &text, "this folder is not trusted", "counts");
    }
    for name in ["CLAUDE_CONFIG_DIR", "CLAUDE_CODE_REMOTE"] {
        let text = json!({"env": {name: "x"}}).to_string();
        check_gate(Scope::User, &text, "no settings file can set it", "no settings file can set it");
    }
    for key in ["apiKeyHelper", "awsAuthRefresh", "otelHeadersHelper"] {
        check_gate(Scope::Project, &json!({key: "evil"}).to_string(), never, never);
    }
}

#[test]
fn a_local_file_that_came_with_the_repository_is_the_repositorys() {
    let text = r#"{"env": {"ANTHROPIC_BASE_URL": "x"}}"#;
    let origin = Origin::new(Scope::Local, "l").from_repository();
    let merged = merge(&[Layer::parse(text, origin).0], true);
    assert_eq!(merged.value("env"), None);
}

#[test]
fn keys_keep_to_their_files() {
    let refused = "this file cannot set it";
    check_gate(Scope::User, r#"{"claudeMd": "x"}"#, refused, refused);
    check_gate(Scope::Managed, r#"{"claudeMd": "x"}"#, "counts", "counts");
    check_gate(Scope::CommandLine, r#"{"autoConnectIde": true}"#, refused, refused);
    check_gate(
        Scope::Local,
        r#"{"skipDangerousModePermissionPrompt": true}"#,
        "this folder is not trusted",
        "counts",
    );
    check_gate(Scope::Project, r#"{"skipDangerousModePermissionPrompt": true}"#, refused, refused);
}

#[test]
fn ignored_settings_are_reported_once_per_file() {
    let text = "{\"permissions\": {\"allow\": [\"A\", \"B\"]},\n\"env\": {\"X\": \"1\", \"HTTP_PROXY\": \"2\"},\n\"claudeMd\": \"x\"}";
    let merged = merge(&[layer(Scope::Project, text)], false);
    let said: String =
        merged.diagnostics("run `loci config trust`").iter().map(|d| format!("{d}\n")).collect();
    expect![[r#"
        project.json:3: `claudeMd`: ignored: this file cannot set it (it belongs to managed settings only)
        project.json:2: `env`: ignored (HTTP_PROXY): a repository cannot set it (move it to your user settings, or remove it)
        project.json: ignored until this folder is trusted: permissions.allow (2), env (1) (run `loci config trust`)
    "#]]
    .assert_eq(&said);
}

/// S-38: a repository restricts always, opens something once its folder is trusted, and some things never.
#[test]
fn sandbox_settings_of_a_repository_restrict_and_open_nothing_before_trust() {
    const ALWAYS: [bool; 2] = [true, true];
    const TRUSTED: [bool; 2] = [false, true];
    const NEVER: [bool; 2] = [false, false];
    for (key, value, expected) in [
        ("enabled", json!(true), TRUSTED),
        ("failIfUnavailable", json!(true), ALWAYS),
        ("autoAllowBashIfSandboxed", json!(true), TRUSTED),
        ("allowUnsandboxedCommands", json!(true), TRUSTED),
        ("excludedCommands", json!(["x"]), TRUSTED),
        ("filesystem.allowWrite", json!(["/x"]), TRUSTED),
        ("filesystem.denyWrite", json!(["/x"]), ALWAYS),
        ("filesystem.denyRead", json!(["/x"]), ALWAYS),
        ("filesystem.allowRead", json!(["/x"]), TRUSTED),
        ("filesystem.allowManagedReadPathsOnly", json!(true), NEVER),
        ("filesystem.disabled", json!(true), NEVER),
        ("network.allowedDomains", json!(["x"]), TRUSTED),
        ("network.deniedDomains", json!(["x"]), ALWAYS),
        ("network.strictAllowlist", json!(true), NEVER),
        ("network.allowManagedDomainsOnly", json!(true), NEVER),
        ("network.allowAllUnixSockets", json!(true), TRUSTED),
        ("network.httpProxyPort", json!(8080), NEVER),
        ("network.socksProxyPort", json!(1080), NEVER),
        ("network.tlsTerminate", json!({"a": 1}), NEVER),
        ("credentials", json!({"files": [{"path": "/x", "mode": "deny"}]}), TRUSTED),
        ("enableWeakerNestedSandbox", json!(true), TRUSTED),
        ("bwrapPath", json!("/x"), NEVER),
        ("socatPath", json!("/x"), NEVER),
    ] {
        let inner = match key.split_once('.') {
            Some((group, name)) => json!({group: {name: value}}),
            None => json!({key: value}),
        };
        let text = json!({"sandbox": inner}).to_string();
        let path = format!("sandbox.{key}");
        let counts = [false, true]
            .map(|is_trusted| merge(&[layer(Scope::Project, &text)], is_trusted).value(&path).is_some());
        assert_eq!(counts, expected, "{key}");
    }
}

#[test]
fn credentials_of_every_file_are_hidden_and_none_is_taken_back() {
    let file = |name: &str| {
        format!(
            r#"{{"sandbox": {{"credentials": {{"files": [{{"path": "{name}", "mode": "deny"}}], "envVars": [{{"name": "{name}", "mode": "deny"}}]}}}}}}"#
        )
    };
    let layers = [
        layer(Scope::User, &file("u")),
        layer(Scope::Project, &file("p")),
        layer(Scope::Managed, &file("m")),
    ];
    let sandbox = Settings::from(&merge(&layers, true)).sandbox;
    for names in [sandbox.secret_files, sandbox.secret_variables] {
        let mut names = names;
        names.sort();
        assert_eq!(names, ["m", "p", "u"]);
    }
}

#[test]
fn sandbox_settings_that_have_no_effect_are_named() {
    let disabled = r#"{"sandbox": {"filesystem": {"disabled": true}}}"#;
    for (scope, text, managed, expected) in [
        (Scope::User, disabled, "{}", vec![]),
        (
            Scope::User,
            disabled,
            r#"{"sandbox": {"filesystem": {"denyRead": ["/x"]}}}"#,
            vec!["sandbox.filesystem.disabled"],
        ),
        (
            Scope::User,
            disabled,
            r#"{"sandbox": {"filesystem": {"allowManagedReadPathsOnly": true}}}"#,
            vec!["sandbox.filesystem.disabled"],
        ),
        (
            Scope::User,
            r#"{"sandbox": {"credentials": {"awsPairs": [{"a": 1}], "sigv4": {"x": 1}, "allowPlaintextInject": false}}}"#,
            "{}",
            vec!["sandbox.credentials.awsPairs", "sandbox.credentials.sigv4"],
        ),
        // Who made the rules may lift them.
        (Scope::User, "{}", r#"{"sandbox": {"filesystem": {"denyRead": ["/x"], "disabled": true}}}"#, vec![]),
        (
            Scope::User,
            r#"{"sandbox": {"network": {"tlsTerminate": {}, "allowLocalBinding": true}, "credentials": {"envVars": [{"name": "T", "mode": "mask"}]}}}"#,
            "{}",
            vec![
                "sandbox.network.allowLocalBinding",
                "sandbox.network.tlsTerminate",
                "\"mode\": \"mask\" in sandbox.credentials",
            ],
        ),
    ] {
        let merged = merge(&[layer(Scope::Managed, managed), layer(scope, text)], true);
        let sandbox = Settings::from(&merged).sandbox;
        let named: Vec<&str> = sandbox.not_honoured.iter().map(|(key, _)| *key).collect();
        assert_eq!(named, expected, "{text} {managed}");
        let is_wanted = [text, managed].iter().any(|it| it.contains("\"disabled\": true"));
        assert_eq!(sandbox.is_files_disabled, is_wanted && expected.is_empty(), "{text} {managed}");
    }
}

#[test]
fn project_that_loosens_the_users_sandbox_is_named() {
    for (project, user, expected) in [
        (r#"{"enabled": false}"#, r#"{"enabled": true}"#, Some(("sandbox.enabled", false))),
        (r#"{"enabled": true}"#, r#"{"enabled": false}"#, None),
        (r#"{"enabled": false}"#, "{}", None),
        (
            r#"{"allowUnsandboxedCommands": true}"#,
            r#"{"allowUnsandboxedCommands": false}"#,
            Some(("sandbox.allowUnsandboxedCommands", true)),
        ),
        (
            r#"{"autoAllowBashIfSandboxed": true}"#,
            r#"{"autoAllowBashIfSandboxed": false}"#,
            Some(("sandbox.autoAllowBashIfSandboxed", true)),
        ),
    ] {
        let text = |inner: &str| format!(r#"{{"sandbox": {inner}}}"#);
        let layers = [layer(Scope::User, &text(user)), layer(Scope::Project, &text(project))];
        for is_trusted in [true, false] {
            let sandbox = Settings::from(&merge(&layers, is_trusted)).sandbox;
            let found: Vec<_> = sandbox.loosened.iter().map(|it| (it.key, it.value)).collect();
            let expected = expected.filter(|_| is_trusted);
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{project} {user} {is_trusted}");
        }
    }
}

#[test]
fn file_that_cannot_be_masked_is_said_to_be_hidden_only_where_it_is() {
    let file = r#""credentials": {"files": [{"path": "~/t", "mode": "mask"}]}"#;
    for (more, is_hidden) in [("", true), (r#", "filesystem": {"disabled": true}"#, false)] {
        let text = format!(r#"{{"sandbox": {{{file}{more}}}}}"#);
        let sandbox = Settings::from(&merge(&[layer(Scope::User, &text)], true)).sandbox;
        let [("\"mode\": \"mask\" in sandbox.credentials", why)] = sandbox.not_honoured[..] else {
            panic!("{text}")
        };
        assert_eq!((why.contains("hidden instead"), why.contains("commands read")), (is_hidden, !is_hidden));
    }
}

#[test]
fn the_typed_view_knows_where_rules_stand() {
    let user = r#"{"model": "opus", "permissions": {"deny": ["A"], "defaultMode": "plan"}, "env": {"B": "2", "A": "1"}}"#;
    let project = r#"{"permissions": {"deny": ["B"], "allow": ["C"]}, "includeGitInstructions": false}"#;
    let merged = merge(&[layer(Scope::User, user), layer(Scope::Project, project)], false);
    let settings = Settings::from(&merged);
    let rules = |list: &[Sourced]| -> String {
        list.iter().map(|rule| format!("{} {} ", rule.text, rule.origin.scope)).collect()
    };
    assert_eq!(rules(&settings.permissions.deny), "A user B project ");
    assert_eq!(rules(&settings.permissions.allow), "");
    assert_eq!(settings.permissions.default_mode.unwrap().text, "plan");
    assert_eq!(settings.env, [("B".to_owned(), "2".to_owned()), ("A".to_owned(), "1".to_owned())]);
    assert_eq!((settings.model.as_deref(), settings.include_git_instructions), (Some("opus"), Some(false)));
    assert_eq!(merged.to_value()["permissions"], json!({"deny": ["A", "B"], "defaultMode": "plan"}),);
}

#[test]
fn the_schema_has_every_key_a_file_can_set() {
    let schema = json_schema();
    for key in Key::all() {
        let mut place = &schema["properties"];
        for (idx, name) in key.path.split('.').enumerate() {
            place = if idx == 0 { &place[name] } else { &place["properties"][name] };
        }
        assert_eq!(place.is_null(), key.scopes == Scopes::Global, "{}", key.path);
    }
    expect![[
        r#"{"type":"array","items":{"type":"string"},"description":"Rules for calls that never run."}"#
    ]]
    .assert_eq(&schema["properties"]["permissions"]["properties"]["deny"].to_string());
}
