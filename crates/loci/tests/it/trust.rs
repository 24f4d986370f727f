//! What a folder that is not trusted cannot do, row by row.

use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::settings::{tool_result, trust};
use crate::support::{MODEL, World, loci, print};

/// Everything a folder's files could have run or applied, as its shared and its local file would say it, and
/// whether the shared one may once the folder is trusted.
fn wishes() -> Vec<(&'static str, Value, bool)> {
    vec![
        ("env", json!({"env": {"PLANTED": "1"}}), true),
        ("apiKeyHelper", json!({"apiKeyHelper": "touch planted"}), false),
        ("awsAuthRefresh", json!({"awsAuthRefresh": "touch planted"}), false),
        ("awsCredentialExport", json!({"awsCredentialExport": "touch planted"}), false),
        ("gcpAuthRefresh", json!({"gcpAuthRefresh": "touch planted"}), false),
        ("otelHeadersHelper", json!({"otelHeadersHelper": "touch planted"}), false),
        ("statusLine", json!({"statusLine": {"type": "command", "command": "touch planted"}}), true),
        ("subagentStatusLine", json!({"subagentStatusLine": {"type": "command", "command": "x"}}), true),
        ("fileSuggestion", json!({"fileSuggestion": {"type": "command", "command": "x"}}), true),
        (
            "hooks",
            json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}),
            true,
        ),
        ("disableAllHooks", json!({"disableAllHooks": true}), true),
        ("enableAllProjectMcpServers", json!({"enableAllProjectMcpServers": true}), true),
        ("allowedMcpServers", json!({"allowedMcpServers": [{"serverName": "srv"}]}), true),
        ("enabledMcpjsonServers", json!({"enabledMcpjsonServers": ["srv"]}), true),
        ("permissions.allow", json!({"permissions": {"allow": ["Bash(touch *)"]}}), true),
        ("permissions.additionalDirectories", json!({"permissions": {"additionalDirectories": ["/"]}}), true),
        ("permissions.defaultMode", json!({"permissions": {"defaultMode": "acceptEdits"}}), true),
        ("sandbox.excludedCommands", json!({"sandbox": {"excludedCommands": ["*"]}}), true),
        ("enabledPlugins", json!({"enabledPlugins": {"p@m": true}}), true),
        ("extraKnownMarketplaces", json!({"extraKnownMarketplaces": {"m": {"source": "x"}}}), true),
        ("claudeMdExcludes", json!({"claudeMdExcludes": ["**"]}), true),
        ("autoMemoryDirectory", json!({"autoMemoryDirectory": "~/x"}), true),
    ]
}

/// Returns whether a key is in force.
fn counts(world: &World, key: &str) -> bool {
    let output = world.run(&loci().args(["config", "explain", "--json", key]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let shown: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(shown["sources"].as_array().map(Vec::len), Some(1), "{key}: {shown}");
    !shown["value"].is_null()
}

#[tokio::test]
async fn untrusted_settings_have_no_effect_until_trusted() {
    let world = World::new(Step::text("x")).await;
    for is_trusted in [false, true] {
        if is_trusted {
            trust(&world);
        }
        for (key, text, may_share) in wishes() {
            for (file, expected) in
                [("settings.json", is_trusted && may_share), ("settings.local.json", is_trusted)]
            {
                world.home.write(format!(".claude/{file}"), text.to_string());
                assert_eq!(counts(&world, key), expected, "{key} in {file}, trusted: {is_trusted}");
                std::fs::remove_file(world.home.project().join(".claude").join(file)).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn untrusted_deny_rules_still_restrict() {
    let world = World::new(Step::text("x")).await;
    for (key, text) in [
        ("permissions.deny", json!({"permissions": {"deny": ["Bash"]}})),
        ("permissions.ask", json!({"permissions": {"ask": ["Bash"]}})),
        (
            "permissions.disableBypassPermissionsMode",
            json!({"permissions": {"disableBypassPermissionsMode": "disable"}}),
        ),
        ("disabledMcpjsonServers", json!({"disabledMcpjsonServers": ["srv"]})),
        ("deniedMcpServers", json!({"deniedMcpServers": [{"serverName": "srv"}]})),
        ("sandbox.network.deniedDomains", json!({"sandbox": {"network": {"deniedDomains": ["x"]}}})),
    ] {
        world.home.write(".claude/settings.json", text.to_string());
        assert!(counts(&world, key), "{key}");
    }
}

/// Runs one command under everything a folder could wish for, and returns what the model was told of it.
async fn planted(is_trusted: bool, run: Binary) -> (World, String) {
    let world = World::new([
        Step::new().tool("Bash", json!({"command": "echo got-$PLANTED; touch made"})),
        Step::text("done"),
    ])
    .await;
    let mut all = json!({});
    for (_, wish, _) in wishes() {
        for (key, value) in wish.as_object().unwrap() {
            match (&mut all[key], value) {
                (Value::Object(have), Value::Object(more)) => have.extend(more.clone()),
                (place, value) => *place = value.clone(),
            }
        }
    }
    all["env"]["ANTHROPIC_BASE_URL"] = json!("http://127.0.0.1:9");
    all["permissions"]["allow"] = json!(["Bash"]);
    all["permissions"]["deny"] = json!(["Glob"]);
    all.as_object_mut().unwrap().remove("claudeMdExcludes");
    all.as_object_mut().unwrap().remove("disableAllHooks");
    world.home.write(".claude/settings.json", all.to_string());
    world.home.write("CLAUDE.md", "TOP @~/outside.md");
    world.home.write_home("outside.md", "OUTSIDE");
    if is_trusted {
        trust(&world);
    }
    let output = world.run(&run);
    assert_eq!(output.code, Some(0), "{output:?}");
    let told = tool_result(&world);
    (world, told)
}

#[tokio::test]
async fn a_headless_run_applies_nothing_of_an_untrusted_folder() {
    let (world, told) = planted(false, print(["go"])).await;
    assert!(!world.home.project().join("made").exists(), "its allow rule lets nothing run");
    for file in ["planted", "hooked"] {
        assert!(!world.home.project().join(file).exists(), "none of its commands is run: {file}");
    }
    assert!(!told.contains("got-"), "{told}");
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("TOP") && !sent.contains("OUTSIDE"), "{sent}");

    let (world, told) = planted(false, print(["--allowedTools", "Bash", "--", "go"])).await;
    assert!(world.home.project().join("made").exists(), "the user's own rule does");
    assert_eq!(told.trim(), "got-", "its variables are not set");
    let tools = world.last_request().json["tools"].to_string();
    assert!(!tools.contains("\"name\":\"Glob\""), "its deny rule counts: {tools}");
}

#[tokio::test]
async fn trusted_folder_settings_apply() {
    let (world, told) = planted(true, print(["go"])).await;
    assert!(world.home.project().join("made").exists());
    assert_eq!(told.trim(), "got-1");
    let sent = world.last_request().json["messages"].to_string();
    assert!(!sent.contains("OUTSIDE"), "imports have an approval of their own: {sent}");
    assert!(!world.home.project().join("planted").exists(), "a shared file's helper is never run");
    assert!(world.home.project().join("hooked").exists(), "its hooks are");
}

#[tokio::test]
async fn without_a_terminal_nobody_is_asked() {
    let world = World::new(Step::text("x")).await;
    world.home.write(".claude/settings.json", r#"{"env": {"A": "1"}}"#);
    let output = world.run_with_stdin(&loci().args(["--model", MODEL]), "y\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "x\n"), "it is a prompt: {output:?}");
    assert!(!output.stderr.contains("Do you trust"), "{output:?}");
    assert!(!world.home.home().join(".claude.json").exists());
}

/// The question comes before anything of the folder is applied; a no changes nothing, a yes is kept.
#[tokio::test]
async fn the_first_start_at_a_terminal_asks() {
    let world = World::new(Step::text("x")).await;
    world.home.write(".claude/settings.json", r#"{"env": {"PLANTED": "1"}}"#);
    let approved = r#"{"customApiKeyResponses": {"approved": ["sk-ant-test"]}}"#;
    world.home.write_home(".claude.json", approved);
    let start = || loci().start_screen(&world.home, world.model.base_url(), (100, 30));
    for (answer, is_trusted) in [("2", false), ("1", true)] {
        let mut screen = start();
        let question = screen.wait_for("2. No, leave");
        assert!(question.contains(r#"env: {"PLANTED":"1"}"#), "{question}");
        screen.type_text(answer);
        if is_trusted {
            screen.wait_gone("Do you trust");
            screen.wait_for("for shortcuts");
            screen.type_text("\x04");
            screen.wait_for("again to leave");
            screen.type_text("\x04");
        }
        let end = screen.finish();
        assert_eq!(end.output.code, Some(0), "{end:?}");
        assert_eq!(counts(&world, "env"), is_trusted);
    }
    let mut again = start();
    again.wait_for("for shortcuts");
    assert!(!again.contents().contains("Do you trust"), "asked once only: {again:?}");
}
