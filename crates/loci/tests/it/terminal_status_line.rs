//! The person's own status line, at a real terminal.

use loci_testkit::{Screen, Step};
use serde_json::{Value, json};

use crate::support::World;

const SIZE: (u16, u16) = (100, 30);

/// Writes a command that keeps what it read and prints three things.
fn configure(world: &World, extra: &Value) {
    let seen = world.path("seen.json");
    let command = format!(
        "cat > {seen}.new && mv {seen}.new {seen}; printf 'LINE \\033[32mone\\033[0m %s\\033]0;evil\\007\\nLINE two %s\\n' \
         $COLUMNS $(grep -o '\"total_input_tokens\":[0-9]*' {seen} | cut -d: -f2)"
    );
    let mut settings = json!({"statusLine": {"type": "command", "command": command, "padding": 1}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        settings[key] = value.clone();
    }
    world.home.write_config("settings.json", settings.to_string());
}

fn leave(mut screen: Screen) {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    screen.finish();
}

#[tokio::test]
async fn command_shows_its_lines_and_reads_how_the_session_stands() {
    let world = World::new([Step::text("Hello to you.").usage(4321, 7, 0, 0)]).await;
    configure(&world, &json!({}));
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Hello to you.");
    // The run after the answer knows what it used.
    let shown = screen.wait_for("   LINE two 4321");
    assert!(shown.contains("   LINE one 100"), "{shown}");
    let input: Value = serde_json::from_str(&world.home.read("seen.json")).unwrap();
    assert_eq!(
        (&input["hook_event_name"], &input["model"]["display_name"]),
        (&json!("Status"), &json!("Sonnet 4.5"))
    );
    assert!(input["session_id"].as_str().is_some_and(|id| id.len() == 36), "{input}");
    assert!(
        input["prompt_id"].is_string() && input["cost"]["total_cost_usd"].as_f64().unwrap() > 0.0,
        "{input}"
    );
    assert_eq!(input["workspace"]["project_dir"], json!(world.home.project()));
    leave(screen);
}

#[tokio::test]
async fn status_line_is_off_where_hooks_are() {
    let world = World::new([Step::text("Hello to you.")]).await;
    configure(&world, &json!({"disableAllHooks": true}));
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Hello to you.");
    screen.wait_for("tokens\n");
    assert!(!screen.contents().contains("LINE"));
    leave(screen);
    assert!(!world.home.project().join("seen.json").exists());
}
