//! `/background`: a session that goes on without its terminal.

use loci_testkit::{Gate, Screen, Step};

use crate::support::World;

const SIZE: (u16, u16) = (110, 30);

/// Waits until the process that goes on has answered, and returns what it said.
fn background_answer(world: &World, expected: &str) -> String {
    let dir = world.home.config_home().join("loci/background");
    for _ in 0..2_000 {
        let logs = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let said: String = logs.filter_map(|log| std::fs::read_to_string(log.path()).ok()).collect();
        if said.contains(expected) {
            return said;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("nothing says {expected:?} in {}", dir.display());
}

/// Returns what was written once the interface has ended by itself.
fn ended(screen: Screen) -> String {
    let end = screen.finish();
    assert!(end.is_cooked, "the terminal is given back: {end:?}");
    assert_eq!(end.output.code, Some(0), "{end:?}");
    end.output.stderr
}

#[tokio::test]
async fn session_goes_on_with_a_prompt_once_the_terminal_is_left() {
    let world = World::new([Step::text("Hello to you."), Step::text("All of it is done.")]).await;
    let mut screen = world.start_interface(["hi", "--disallowedTools", "WebFetch"], SIZE);
    screen.wait_for("Hello to you.");
    screen.wait_for("tokens\n");
    screen.type_text("/bg\r");
    screen.wait_for("Nothing is under way");
    screen.type_text("/bg do the rest\r");
    let written = ended(screen);
    assert!(written.contains("goes on in the background as process"), "{written}");
    background_answer(&world, "All of it is done.");
    let request = world.last_request().json;
    let messages = request["messages"].to_string();
    assert!(messages.contains("Hello to you.") && messages.contains("do the rest"), "{messages}");
    assert!(!request["tools"].to_string().contains("\"WebFetch\""), "what was forbidden is forbidden still");
    // It is resumed as any other session.
    let mut screen = world.start_interface(["-c"], SIZE);
    screen.wait_for("All of it is done.");
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    screen.finish();
}

#[tokio::test]
async fn session_in_which_nothing_was_said_goes_on_with_its_first_prompt() {
    let world = World::new([Step::text("All of it is done.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/bg do it all\r");
    let written = ended(screen);
    assert!(written.contains("goes on in the background as process"), "{written}");
    background_answer(&world, "All of it is done.");
    assert!(world.last_request().json["messages"].to_string().contains("do it all"));
}

#[tokio::test]
async fn turn_that_is_under_way_is_taken_up_again() {
    let gate = Gate::default();
    let steps = [Step::text("Never seen.").wait_before_headers(gate.clone()), Step::text("Now it is done.")];
    let world = World::new(steps).await;
    let mut screen = world.start_interface(["work"], SIZE);
    screen.wait_for("esc to interrupt");
    screen.type_text("/background\r");
    let written = ended(screen);
    assert!(written.contains("loci -r "), "{written}");
    background_answer(&world, "Now it is done.");
    assert!(world.last_request().json["messages"].to_string().contains("Go on with what you were doing"));
    gate.release();
}
