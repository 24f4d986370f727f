//! `loci plugin`: plugins that are made, checked, installed, brought up to date, turned on and off, and taken away.

use loci_testkit::{Output, Step};
use serde_json::{Value, json};

use crate::support::{World, loci};

fn plugin(world: &World, args: &[&str]) -> Output {
    world.run(&loci().args(std::iter::once("plugin").chain(args.iter().copied())))
}

/// Runs a verb that must succeed.
pub(super) fn fine(world: &World, args: &[&str]) -> String {
    let output = plugin(world, args);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{args:?}: {output:?}");
    output.stdout
}

pub(super) fn refused(world: &World, args: &[&str], needle: &str) {
    let output = plugin(world, args);
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(output.code == Some(1) && said.contains(needle), "{args:?}: {output:?}");
}

fn installed(world: &World) -> Value {
    serde_json::from_str(&world.home.read(world.home.config_home().join("plugins/installed_plugins.json")))
        .unwrap()
}

/// Writes a marketplace with one plugin into the project.
fn write_marketplace(world: &World, version: &str, hook: &str) {
    let catalogue = json!({"name": "market", "owner": {"name": "Ann"}, "plugins": [
        {"name": "kit", "source": "./plugins/kit"},
        {"name": "packed", "source": {"source": "npm", "package": "x"}},
        {"name": "out", "source": "./../secret"},
    ]});
    let hooks = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": hook}]}]}});
    world.home.write("market/.claude-plugin/marketplace.json", catalogue.to_string());
    world.home.write(
        "market/plugins/kit/.claude-plugin/plugin.json",
        json!({"name": "kit", "version": version}).to_string(),
    );
    world.home.write("market/plugins/kit/skills/greet/SKILL.md", "Greet.");
    world.home.write("market/plugins/kit/hooks/hooks.json", hooks.to_string());
}

#[tokio::test]
async fn new_plugin_is_valid_and_can_be_used() {
    let world = World::new(Step::text("done")).await;
    let said = fine(&world, &["init", "kit", "--dir", "."]);
    assert!(said.contains("--plugin-dir"), "{said}");
    assert!(fine(&world, &["validate", "kit"]).contains("Nothing is wrong"));
    let output = world.print(["/kit:about", "--plugin-dir", "kit"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(world.last_request().json["messages"].to_string().contains("what the plugin kit is for"));
    refused(&world, &["init", "kit", "--dir", "."], "there already");
    refused(&world, &["init", "../x"], "no name");
    world.home.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit", "commands": "/etc"}"#);
    refused(&world, &["validate", "kit"], "does not begin with `./`");
}

#[tokio::test]
async fn plugin_of_a_directory_is_installed_updated_turned_off_and_removed() {
    let world = World::new(Step::text("done")).await;
    write_marketplace(&world, "1.0.0", "echo one");
    std::os::unix::fs::symlink("/etc/passwd", world.home.project().join("market/plugins/kit/stolen"))
        .unwrap();
    assert!(fine(&world, &["marketplace", "add", "./market"]).contains("market: 3 plugins"));
    let said = fine(&world, &["install", "kit"]);
    assert!(
        said.contains("hook Stop: echo one") && said.contains("Installed kit@market 1.0.0; it is on"),
        "{said}"
    );
    assert!(said.contains("leads out of it and is left behind"), "{said}");
    let entry = &installed(&world)["plugins"]["kit@market"][0];
    let path = world.home.config_home().join("plugins/cache/market/kit/1.0.0");
    assert_eq!((&entry["scope"], &entry["installPath"]), (&json!("user"), &json!(path)));
    assert!(!path.join("stolen").exists());
    assert!(fine(&world, &["list"]).contains("kit@market  1.0.0  on  (user,"));
    assert!(fine(&world, &["details", "kit"]).contains("skill /kit:greet"));
    let hooks = world.run(&loci().args(["hooks", "list"])).stdout;
    assert!(hooks.contains("echo one  (plugin kit,"), "{hooks}");

    assert!(fine(&world, &["update", "kit"]).contains("up to date"));
    write_marketplace(&world, "2.0.0", "echo two");
    let said = fine(&world, &["update", "kit"]);
    assert!(said.contains("- hook Stop: echo one\n+ hook Stop: echo two\n"), "{said}");
    assert!(said.contains("from 1.0.0 to 2.0.0"), "{said}");

    fine(&world, &["disable", "kit"]);
    assert!(fine(&world, &["list"]).contains("kit@market  2.0.0  off"));
    let said = fine(&world, &["details", "kit"]);
    assert!(said.contains("skill /kit:greet") && said.contains("it is installed and off"), "{said}");
    refused(&world, &["details", "none"], "`loci plugin list` shows");
    fine(&world, &["enable", "kit@market"]);
    assert!(fine(&world, &["list"]).contains("kit@market  2.0.0  on"));
    fine(&world, &["uninstall", "kit"]);
    assert_eq!(installed(&world)["plugins"], json!({}));
    for version in ["1.0.0", "2.0.0"] {
        let mark = world.home.config_home().join(format!("plugins/cache/market/kit/{version}/.orphaned_at"));
        assert!(mark.exists(), "{version}: a session that began with it goes on");
    }
    assert!(fine(&world, &["list"]).contains("There are no plugins"));
    fine(&world, &["marketplace", "remove", "market"]);
    assert!(world.home.project().join("market").is_dir(), "what is not ours stays");
    refused(&world, &["install", "kit@market"], "There is no marketplace");
}

#[tokio::test]
async fn plugin_is_installed_from_the_panel() {
    let world = World::new(Step::text("done")).await;
    write_marketplace(&world, "1.0.0", "echo one");
    fine(&world, &["marketplace", "add", "./market"]);
    let mut screen = world.start_interface([], (110, 40));
    screen.wait_for("for shortcuts");
    screen.type_text("/plugin\r");
    // What is installed is shown first; what is offered is a tab to its left.
    screen.wait_for("Discover");
    screen.type_text("\x1b[D");
    screen.wait_for("kit@market");
    screen.type_text("\r");
    screen.wait_for("plugin install");
    screen.type_text("i");
    screen.wait_for("again to");
    assert!(!world.home.config_home().join("plugins/installed_plugins.json").exists());
    screen.type_text("i");
    screen.wait_for("Installed kit@market 1.0.0; it is on");
    assert_eq!(installed(&world)["plugins"]["kit@market"][0]["scope"], json!("user"));
    assert!(
        screen.contents().contains("hook Stop: echo one"),
        "what it may do is told: {}",
        screen.contents()
    );
    screen.wait_for("❯ packed@market");
    screen.type_text("\x1b");
    screen.wait_gone("❯ packed@market");
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    screen.finish();
    assert!(fine(&world, &["list"]).contains("kit@market  1.0.0  on  (user,"));
}

#[tokio::test]
async fn plugin_that_cannot_be_fetched_is_named() {
    let world = World::new(Step::text("done")).await;
    write_marketplace(&world, "1.0.0", "echo one");
    fine(&world, &["marketplace", "add", "./market"]);
    refused(&world, &["install", "packed"], "`npm` is not supported");
    refused(&world, &["install", "out"], "leads out");
    refused(&world, &["install", "none@market"], "has no plugin");
    refused(&world, &["marketplace", "add", "https://example.com/marketplace.json"], "not supported");
    world
        .home
        .write("fake/.claude-plugin/marketplace.json", r#"{"name": "claude-code-plugins", "plugins": []}"#);
    refused(&world, &["marketplace", "add", "./fake"], "reserved");
}

#[tokio::test]
async fn marketplace_in_a_repository_is_cloned_without_its_hooks() {
    let world = World::with_git(Step::text("done")).await;
    write_marketplace(&world, "1.0.0", "echo one");
    let catalogue = json!({"name": "market", "plugins": [{"name": "kit", "source": "./market/plugins/kit"}]});
    world.home.write(".claude-plugin/marketplace.json", catalogue.to_string());
    world.home.commit("a marketplace");
    let url = format!("file://{}", world.home.project().display());
    assert!(fine(&world, &["marketplace", "add", &url]).contains("market: 1 plugin"));
    assert!(fine(&world, &["install", "kit"]).contains("Installed kit@market 1.0.0"));
    assert!(world.home.config_home().join("plugins/marketplaces/market/.claude-plugin").is_dir());
    fine(&world, &["marketplace", "update"]);
    assert!(fine(&world, &["marketplace", "list"]).contains("market  1 plugin  "));
    let left: Vec<_> =
        std::fs::read_dir(world.home.config_home().join("plugins")).unwrap().flatten().collect();
    assert!(!left.iter().any(|entry| entry.file_name().to_string_lossy().starts_with(".fetch")), "{left:?}");
}

#[tokio::test]
async fn directories_of_definitions_are_checked_without_a_manifest() {
    let world = World::new(Step::text("done")).await;
    world.home.write(".claude/settings.json", r#"{"model": "x"}"#);
    world.home.write(".claude/skills/fine/SKILL.md", "---\ndescription: d\n---\nDo it.");
    world.home.write(".claude/agents/good.md", "---\nname: good\ndescription: d\n---\nWork.");
    for dir in [".claude", ".claude/skills", ".claude/agents", "."] {
        assert!(fine(&world, &["validate", dir]).contains("Nothing is wrong with them"), "{dir}");
    }
    world.home.write(".claude/agents/notes.md", "Just a text.");
    world.home.write(".claude/commands/odd.md", "---\nmodle: opus\n---\nDo it.");
    refused(&world, &["validate", ".claude/agents"], "`agents/notes.md` is no agent");
    refused(&world, &["validate", ".claude/commands"], "`modle` has no meaning here");
    refused(&world, &["validate", "."], "`modle` has no meaning here");
    assert!(fine(&world, &["validate", ".claude/skills"]).contains("1 files"));
}
