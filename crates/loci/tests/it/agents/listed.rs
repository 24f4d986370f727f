//! ListAgents: who there is to speak to, and how each gets on.

use loci_testkit::{Gate, Script, Step};
use serde_json::json;

use super::{agent, in_background, is_agents, results, side_files, wait_until};
use crate::support::{World, assert_fine, is_result, stream, user, watched};

fn list() -> Step {
    Step::call("ListAgents", json!({}))
}

#[tokio::test]
async fn agents_are_listed_with_how_they_get_on_also_after_a_crash() {
    let gate = Gate::new();
    let mut named = in_background("general-purpose", "Work.");
    named["name"] = json!("worker");
    let script = Script::new([
        Step::call("Agent", agent("general-purpose", "Look.")).tool("Agent", named),
        list(),
        Step::text("Listed."),
    ])
    .route([Step::text("Looked.")], |it| is_agents(it) && super::has(it, "Look."))
    .route(
        [Step::call("Glob", json!({"pattern": "*"})), Step::text("never").wait_before_headers(gate.clone())],
        is_agents,
    );
    let world = World::new(script).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("go"));
    session.wait_for_json(is_result);
    let told = results(world.requests().iter().rfind(|it| !is_agents(it)).unwrap());
    assert!(told.contains(": general-purpose, completed: short task"), "{told}");
    assert!(told.contains(" (worker): general-purpose, running: short task"), "{told}");
    wait_until(|| world.model.requests().iter().filter(|it| is_agents(it)).count() == 3, "it works");
    session.crash();
    assert_eq!(side_files(&world).len(), 2);
    let world = world.then([list(), Step::text("Listed.")]).await;
    assert_fine(&world.run(&watched(["-c", "who is there?"])));
    let told = results(&world.last_request());
    assert!(told.contains(": general-purpose, completed: short task"), "{told}");
    assert!(told.contains(" (worker): general-purpose, cut off: short task"), "{told}");
}
