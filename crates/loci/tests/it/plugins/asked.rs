//! Questions of `loci plugin` at a terminal.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::needs::{market, state};
use super::verbs::fine;
use crate::support::{World, loci};

fn options() -> Value {
    json!({"version": "1.0.0", "userConfig": {
        "endpoint": {"type": "string", "title": "API \u{1b}[31mendpoint", "description": "Where it is", "required": true},
        "limit": {"type": "number", "title": "Limit", "description": "d", "max": 5, "default": 3},
        "token": {"type": "string", "title": "Token", "description": "d", "sensitive": true, "required": true},
        "debug": {"type": "boolean", "title": "Debug", "description": "d"},
    }})
}

async fn world_with_market() -> World {
    let world = World::new(Step::text("done")).await;
    market(&world, "m", &json!({}), &[("app", options())]);
    fine(&world, &["marketplace", "add", "./m"]);
    world
}

fn settings(world: &World) -> Value {
    let text = world.home.read(world.home.config_home().join("settings.json"));
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn options_without_a_value_are_asked_for_when_a_plugin_is_installed() {
    let world = world_with_market().await;
    let mut terminal = world.start_at_terminal(&loci().args(["plugin", "install", "app"]));
    let asked = terminal.wait_for("Where it is (string)");
    assert!(!asked.contains('\u{1b}'), "a manifest writes no escape: {asked:?}");
    terminal.wait_for("endpoint: ");
    terminal.type_line("");
    terminal.wait_for("It is needed");
    terminal.wait_for("endpoint: ");
    terminal.type_line("https://e.example");
    terminal.wait_for("Enter leaves 3");
    terminal.wait_for("limit: ");
    terminal.type_line("9");
    terminal.wait_for("out of its bounds");
    terminal.wait_for("limit: ");
    terminal.type_line("");
    terminal.wait_for("(it is not shown): ");
    terminal.type_line("hush-hush");
    terminal.wait_for("debug: ");
    terminal.type_line("yes");
    let output = terminal.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!output.stderr.contains("hush-hush"), "{output:?}");
    let kept = &settings(&world)["pluginConfigs"]["app@m"]["options"];
    assert_eq!(*kept, json!({"endpoint": "https://e.example", "debug": true}));
    let secrets = world.home.read(world.home.config_home().join("loci/plugin-secrets.json"));
    assert!(secrets.contains("hush-hush"), "{secrets}");
}

#[tokio::test]
async fn enable_asks_only_for_what_is_not_set_and_names_what_was_left_open() {
    let world = world_with_market().await;
    let said = fine(&world, &["install", "app", "--config", "endpoint=x"]);
    assert!(said.contains("needs the option `token`") && !said.contains("`endpoint`:"), "{said}");
    fine(&world, &["disable", "app"]);
    let said = fine(&world, &["enable", "app"]);
    assert!(said.contains("needs the option `token`: run `loci plugin configure app@m token`"), "{said}");
    let mut terminal = world.start_at_terminal(&loci().args(["plugin", "enable", "app"]));
    terminal.wait_for("limit: ");
    terminal.type_line("2");
    terminal.wait_for("(it is not shown): ");
    terminal.type_key('\u{4}');
    let output = terminal.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("! It needs the option `token`"), "{output:?}");
    assert_eq!(settings(&world)["pluginConfigs"]["app@m"]["options"], json!({"endpoint": "x", "limit": 2}));
}

#[tokio::test]
async fn prune_removes_once_somebody_agrees() {
    let world = World::new(Step::text("done")).await;
    let needs = json!({"version": "1.0.0", "dependencies": ["lib"]});
    market(&world, "m", &json!({}), &[("app", needs), ("lib", json!({"version": "1.0.0"}))]);
    fine(&world, &["marketplace", "add", "./m"]);
    fine(&world, &["install", "app"]);
    fine(&world, &["uninstall", "app"]);
    for (answer, is_left) in [("n", true), ("y", false)] {
        let mut terminal = world.start_at_terminal(&loci().args(["plugin", "prune"]));
        terminal.wait_for("Remove lib@m? [y/N]");
        terminal.type_line(answer);
        assert_eq!(terminal.finish().code, Some(0));
        assert_eq!(state(&world)["plugins"].get("lib@m").is_some(), is_left, "{answer}");
    }
}
