//! Panels about context, cost, model and settings, at a real terminal.

use loci_testkit::{Gate, Screen, Step};

use crate::support::World;

const SIZE: (u16, u16) = (110, 40);

/// Leaves by Ctrl+D, twice.
fn leave(mut screen: Screen) {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    assert!(screen.finish().is_cooked, "the terminal is given back");
}

#[tokio::test]
async fn panels_show_the_session_without_a_request() {
    let world = World::new([Step::text("Hello to you.")]).await;
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Hello to you.");
    screen.wait_for("tokens\n");
    for (command, expected) in [
        ("/context", "System prompt:"),
        ("/usage", "Total cost"),
        ("/status", "compatible with Claude Code"),
        ("/skills", "/init"),
        ("/hooks", "There are no hooks"),
        ("/mcp", "There are none"),
        ("/doctor", "Config home:"),
        ("/model", "opus"),
    ] {
        screen.type_text(&format!("{command}\r"));
        screen.wait_for(expected);
        screen.wait_for("Esc close");
        screen.type_text("\x1b");
        screen.wait_gone("Esc close");
    }
    assert_eq!(world.requests().len(), 1, "only the prompt was sent");
    leave(screen);
}

#[tokio::test]
async fn model_picker_switches_the_model_and_warns_while_the_cache_is_warm() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("One.");
    screen.wait_for("tokens\n");
    // Alt+P
    screen.type_text("\x1bp");
    screen.wait_for("this session only");
    screen.wait_for("haiku");
    screen.type_text("haiku\r");
    screen.wait_for("Enter again to switch");
    screen.type_text("\r");
    screen.wait_for("The model is claude-haiku-5-5 now");
    screen.type_text("again\r");
    screen.wait_for("Two.");
    assert_eq!(world.last_request().json["model"], "claude-haiku-5-5");
    leave(screen);
}

#[tokio::test]
async fn model_for_this_session_only_is_asked_and_not_kept() {
    let world = World::new([Step::text("One.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("\x1bp");
    screen.wait_for("haiku");
    // It begins at the model in use, the last row; the next is the first.
    screen.wait_for("❯ 6.");
    screen.type_text("\x1b[B\x1b[B\x1b[B\x1b[B");
    screen.wait_for("❯ 4. haiku");
    screen.type_text("s");
    screen.wait_for("for this session only");
    screen.type_text("hi\r");
    screen.wait_for("One.");
    assert_eq!(world.last_request().json["model"], "claude-haiku-5-5");
    let settings =
        std::fs::read_to_string(world.home.config_home().join("settings.json")).unwrap_or_default();
    assert!(!settings.contains("haiku"), "{settings}");
    leave(screen);
}

#[tokio::test]
async fn panel_opens_while_the_model_works() {
    let gate = Gate::new();
    let world = World::new([Step::text("Done.").wait_for(gate.clone())]).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("esc to interrupt");
    screen.type_text("/usage\r");
    screen.wait_for("Total cost");
    screen.type_text("\x1b");
    screen.wait_gone("Total cost");
    gate.release();
    screen.wait_for("Done.");
    leave(screen);
}

#[tokio::test]
async fn setting_is_changed_in_the_panel_and_kept() {
    let world = World::new([]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/config\r");
    screen.wait_for("[Config]");
    screen.wait_for("alwaysThinkingEnabled");
    screen.type_text("alwaysthinking");
    screen.wait_for("A change goes to user settings");
    screen.type_text("\r");
    screen.wait_for("Set `alwaysThinkingEnabled` in ~/.claude/settings.json");
    let text = std::fs::read_to_string(world.home.config_home().join("settings.json")).unwrap();
    assert!(text.contains("\"alwaysThinkingEnabled\": true"), "{text}");
    screen.type_text("\x1b");
    screen.wait_gone("[Config]");
    leave(screen);
}

#[tokio::test]
async fn rule_is_added_in_the_panel_and_lets_a_call_run() {
    let call = Step::call("Bash", serde_json::json!({"command": "touch made", "description": "Do it"}));
    let world = World::new([call, Step::text("Done.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/permissions\r");
    screen.wait_for("[Allow]");
    screen.wait_for("None");
    screen.type_text("a");
    screen.wait_for("Rule:");
    screen.type_text("Bash(touch made)");
    screen.wait_for("Bash runs without asking where it matches");
    screen.type_text("\r");
    screen.wait_for("❯ Bash(touch made)");
    screen.type_text("\x1b");
    screen.wait_gone("[Allow]");
    let local = std::fs::read_to_string(world.home.project().join(".claude/settings.local.json")).unwrap();
    assert!(local.contains("Bash(touch made)"), "{local}");
    screen.type_text("go\r");
    screen.wait_for("Done.");
    assert!(world.home.project().join("made").exists());
    leave(screen);
}

#[tokio::test]
async fn review_of_memories_opens() {
    let world = World::new([]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/memory\r");
    screen.wait_for("[Files]");
    screen.wait_for("kept in");
    screen.type_text("\x1b[Z");
    screen.wait_for("Nothing waits for your word");
    screen.type_text("\x1b");
    screen.wait_gone("Nothing waits");
    leave(screen);
}
