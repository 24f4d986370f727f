//! Every way a command comes to run leads into the sandbox: a person's own, those of a skill, in the background, a monitor.

use loci_testkit::Step;
use serde_json::json;

use super::{bash, has_full, on, tool_results};
use crate::support::{World, assert_fine, print, watched};

/// What tries to write inside and outside; it says what the system says.
const TRIES: &str = "touch inside; touch ../home/outside 2>&1; echo tried > tried";

/// What waits for that, not for ever, and says what it said.
const WAITS: &str = "for n in $(seq 2000); do [ -e tried ] && break; sleep 0.01; done; cat printed";

async fn world(steps: Vec<Step>) -> Option<World> {
    let world = World::new([]).await;
    if !has_full(&world) {
        return None;
    }
    world.home.write_config("settings.json", on().to_string());
    Some(world.then(steps).await)
}

fn check(world: &World, said: &str) {
    let wrote = |name: &str| world.home.project().join(name).exists();
    assert!(wrote("inside") && wrote("tried"), "it ran: {said}");
    assert!(!world.home.home().join("outside").exists(), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
}

#[tokio::test]
async fn command_of_a_person_runs_inside() {
    let Some(world) = world(vec![Step::text("I see.")]).await else { return };
    let mut screen = world.start_interface([], (100, 30));
    screen.wait_for("sandbox: full");
    screen.type_text(&format!("!{TRIES}\r"));
    let contents = screen.wait_for("I see.");
    check(&world, &contents);
}

#[tokio::test]
async fn commands_of_a_skill_run_inside() {
    let Some(world) = world(vec![Step::text("I see.")]).await else { return };
    world.home.write_config("skills/try/SKILL.md", format!("It said: !`{TRIES}`"));
    assert_fine(&world.print(["/try"]));
    check(&world, &world.last_request().json["messages"].to_string());
}

#[tokio::test]
async fn command_in_the_background_runs_inside() {
    let behind = json!({"command": format!("{{ {TRIES}; }} > printed"), "run_in_background": true});
    let wait = bash(WAITS);
    let steps = vec![Step::call("Bash", behind), Step::call("Bash", wait), Step::text("I see.").times(3)];
    let Some(world) = world(steps).await else { return };
    assert_fine(&world.run(&watched(["hi"])));
    check(&world, &tool_results(&world).concat());
}

#[tokio::test]
async fn what_a_command_in_the_background_made_is_said_in_its_output() {
    let behind =
        json!({"command": "rm -rf .git; git init -q && git config alias.x y", "run_in_background": true});
    let wait = bash(
        "n=0; while [ ! -e .git/HEAD ] && [ $n -lt 500 ]; do sleep 0.02; n=$((n + 1)); done; sleep 0.2; cat $TMPDIR/../tasks/*.output",
    );
    let steps = vec![Step::call("Bash", behind), Step::call("Bash", wait), Step::text("I see.").times(3)];
    let Some(world) = world(steps).await else { return };
    assert_fine(&world.run(&watched(["hi"])));
    let printed = tool_results(&world).concat();
    assert!(printed.contains("[sandbox] the repository") && printed.contains("`alias.x`"), "{printed}");
}

#[tokio::test]
async fn monitor_runs_inside() {
    let watch = json!({"command": format!("{{ {TRIES}; }} > printed"), "description": "it"});
    let wait = bash(WAITS);
    let steps = vec![Step::call("Monitor", watch), Step::call("Bash", wait), Step::text("I see.").times(3)];
    let Some(world) = world(steps).await else { return };
    assert_fine(&world.run(&print(["hi"])));
    check(&world, &tool_results(&world).concat());
}
