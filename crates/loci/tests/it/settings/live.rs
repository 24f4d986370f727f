//! Settings that change while a session runs.

use loci_testkit::{Output, Session, Step};
use serde_json::json;

use crate::support::{World, is_result, stream, user};

use super::{tool_result, trust};

/// A model that runs the same command in each of `n` turns.
fn turns(n: usize, command: &str) -> Vec<Step> {
    let turn = || [Step::new().tool("Bash", json!({"command": command})), Step::text("done")];
    (0..n).flat_map(|_| turn()).collect()
}

fn turn(session: &mut Session) {
    session.write_json(&user("go"));
    session.wait_for_json(is_result);
}

#[tokio::test]
async fn changed_variables_count_in_a_running_session() {
    let world = World::new(turns(4, r#"echo "$FOO-$BAR-$ANTHROPIC_API_KEY""#)).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]).env("FOO", "shell"));
    turn(&mut session);
    assert_eq!(tool_result(&world).trim(), "shell--");
    world.home.write_config("settings.json", r#"{"env": {"FOO": "user"}}"#);
    turn(&mut session);
    assert_eq!(tool_result(&world).trim(), "user--");
    // Credentials stay home, whatever the files say now.
    let text = r#"{"env": {"BAR": "new", "LOCI_PASS_PROVIDER_KEYS": "1"}}"#;
    world.home.write_config("settings.json", text);
    turn(&mut session);
    assert_eq!(tool_result(&world).trim(), "shell-new-");
    // Trust given meanwhile lets the project's own count.
    world.home.write(".claude/settings.json", r#"{"env": {"BAR": "project"}}"#);
    trust(&world);
    turn(&mut session);
    assert_eq!(tool_result(&world).trim(), "shell-project-");
    assert_eq!(session.finish().code, Some(0));
}

#[tokio::test]
async fn changed_limits_count_in_a_running_session() {
    let read = |name: &str| Step::new().tool("Read", json!({"file_path": name}));
    let world = World::new([read("a"), Step::text("1"), read("b"), Step::text("2")]).await;
    for name in ["a", "b"] {
        world.home.write(name, "0123456789\n".repeat(200));
    }
    let mut session = world.start(&stream([]));
    turn(&mut session);
    assert!(tool_result(&world).contains("200\t0123456789"), "{}", tool_result(&world));
    let text = r#"{"env": {"CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS": "4"}}"#;
    world.home.write_config("settings.json", text);
    turn(&mut session);
    assert!(!tool_result(&world).contains("200\t0123456789"), "{}", tool_result(&world));
    assert_eq!(session.finish().code, Some(0));
}

/// Runs turns with other settings before each, and returns the key that each request carried.
async fn keys(settings: &[serde_json::Value]) -> (Vec<String>, Output) {
    let world = World::new((0..settings.len()).map(|_| Step::text("hi")).collect::<Vec<_>>()).await;
    world.home.write_config("settings.json", settings[0].to_string());
    let mut session = world.start(&stream([]).env("ANTHROPIC_API_KEY", ""));
    for text in settings {
        world.home.write_config("settings.json", text.to_string());
        turn(&mut session);
    }
    let output = session.finish();
    let key = |request: &loci_testkit::Recorded| request.header("x-api-key").unwrap_or("-").to_owned();
    (world.requests().iter().map(key).collect(), output)
}

#[tokio::test]
async fn changed_settings_clear_cached_keys() {
    let helper = "echo x >> ~/runs; echo key-$(wc -l < ~/runs)";
    let (sent, output) = keys(&[
        json!({"apiKeyHelper": helper}),
        json!({"apiKeyHelper": helper}),
        json!({"apiKeyHelper": helper, "env": {"A": "1"}}),
        json!({"apiKeyHelper": "echo other", "env": {"A": "1"}}),
        json!({"env": {"ANTHROPIC_API_KEY": "mine"}}),
        json!({}),
    ])
    .await;
    assert_eq!(sent, ["key-1", "key-1", "key-2", "other", "mine", "-"], "{output:?}");
}

#[tokio::test]
async fn changed_base_url_does_not_redirect_a_running_session() {
    let elsewhere = json!({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "k"}});
    let (sent, output) = keys(&[json!({"env": {"ANTHROPIC_API_KEY": "k"}}), elsewhere]).await;
    assert_eq!(sent, ["k", "k"], "{output:?}");
}
