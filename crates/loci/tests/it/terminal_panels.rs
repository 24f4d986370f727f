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
    screen.wait_for("Search:");
    screen.wait_for("haiku");
    screen.type_text("haiku\r");
    screen.wait_for("Enter again to switch");
    screen.type_text("\r");
    screen.wait_for("The model is claude-haiku-4-5 now");
    screen.type_text("again\r");
    screen.wait_for("Two.");
    assert_eq!(world.last_request().json["model"], "claude-haiku-4-5");
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
