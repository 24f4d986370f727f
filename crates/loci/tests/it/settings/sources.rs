//! Where settings come from, and where their variables go.

use loci_testkit::Step;

use super::{tool_result, trust};
use crate::support::{World, assert_fine, loci, print};

#[tokio::test]
async fn another_config_home_has_its_own_settings_and_trust() {
    let world = World::new([Step::text("1"), Step::text("2")]).await;
    let moved = world.home.home().join("moved");
    world.home.write_config("settings.json", r#"{"model": "usual"}"#);
    world.home.write_home("moved/settings.json", r#"{"model": "moved", "env": {"CLAUDE_CONFIG_DIR": "/x"}}"#);
    world.home.write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(touch *)"]}}"#);
    trust(&world);
    let run = loci().args(["-p", "hi"]).env("CLAUDE_CONFIG_DIR", moved.display().to_string());
    let output = world.run(&run);
    assert_eq!(world.last_request().json["model"], "moved");
    assert!(output.stderr.contains("until this folder is trusted"), "trust is kept there too: {output:?}");
    assert!(output.stderr.contains("no settings file can set it"), "{output:?}");
    assert!(world.home.sessions().is_empty() && moved.join("projects").is_dir());
    assert_fine(&world.run(&loci().args(["-p", "hi"])));
    assert_eq!(world.last_request().json["model"], "usual");
}

#[tokio::test]
async fn variables_count_for_our_own_process() {
    let world = World::new(Step::text("1")).await;
    let text = r#"{"model": "key", "env": {"ANTHROPIC_MODEL": "variable", "ANTHROPIC_CUSTOM_HEADERS": "X-Team: blue"}}"#;
    world.home.write_config("settings.json", text);
    assert_fine(&world.run(&loci().args(["-p", "hi"]).env("ANTHROPIC_MODEL", "shell")));
    let request = world.last_request();
    assert_eq!(request.json["model"], "variable", "the block wins over the shell, a variable over the key");
    assert_eq!(request.header("x-team"), Some("blue"));
}

#[tokio::test]
async fn an_empty_variable_cancels_the_shells() {
    let world = World::new(super::runs("echo \"[$FOO]\"")).await;
    world.home.write_config("settings.json", r#"{"env": {"FOO": ""}}"#);
    assert_fine(&world.run(&print(["--allowedTools", "Bash", "--", "go"]).env("FOO", "shell")));
    assert_eq!(tool_result(&world).trim(), "[]");
}

#[tokio::test]
async fn imports_from_outside_need_approval_and_trust() {
    let world = World::new((0..4).map(|_| Step::text("hi")).collect::<Vec<_>>()).await;
    world.home.write("CLAUDE.md", "TOP @~/outside.md");
    world.home.write_home("outside.md", "OUTSIDE");
    let brings = |world: &World| {
        assert_fine(&world.print(["hi"]));
        world.last_request().json["messages"].to_string().contains("OUTSIDE")
    };
    let config = |flags: &[&str]| world.run(&loci().args(["config", "trust"]).args(flags.iter().copied()));
    assert!(!brings(&world));
    assert_fine(&config(&["--imports"]));
    assert!(brings(&world));
    assert_fine(&config(&["--revoke"]));
    assert!(!brings(&world), "approved, but not trusted");
    assert_fine(&config(&[]));
    assert_fine(&config(&["--imports", "--revoke"]));
    assert!(!brings(&world), "trusted, but not approved");
}
