//! Hooks around agents: what they add, refuse and object to.

use loci_testkit::{Script, Step};
use serde_json::{Value, json};

use super::{agent, has, is_agents, results};
use crate::support::{World, assert_fine, watched};

fn set_hook(world: &World, event: &str, command: &str) {
    let hooks: Value = json!({event: [{"hooks": [{"type": "command", "command": command}]}]});
    world.home.write_config("settings.json", json!({"hooks": hooks}).to_string());
}

#[tokio::test]
async fn hook_adds_something_that_an_agent_begins_with() {
    let script = Script::new([Step::call("Agent", agent("general-purpose", "Work.")), Step::text("ok")])
        .route([Step::text("Done.")], is_agents);
    let world = World::new(script).await;
    let said = json!({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Mind the gap."}});
    set_hook(&world, "SubagentStart", &format!("echo '{said}'"));
    assert_fine(&world.run(&watched(["go"])));
    let requests = world.requests();
    assert!(has(requests.iter().find(|it| is_agents(it)).unwrap(), "Mind the gap."));
    assert!(requests.iter().filter(|it| !is_agents(it)).all(|it| !has(it, "Mind the gap.")));
}

#[tokio::test]
async fn agent_goes_on_where_a_hook_objects_to_its_end() {
    let script = Script::new([Step::call("Agent", agent("general-purpose", "Work.")), Step::text("ok")])
        .route([Step::text("Done."), Step::text("Done with tests.")], is_agents);
    let world = World::new(script).await;
    let command = "test -e objected || { touch objected; echo 'Run the tests first.' >&2; exit 2; }";
    set_hook(&world, "SubagentStop", command);
    assert_fine(&world.run(&watched(["go"])));
    let requests = world.requests();
    let asked: Vec<_> = requests.iter().filter(|it| is_agents(it)).collect();
    assert_eq!(asked.len(), 2);
    assert!(has(asked[1], "Run the tests first."));
    let told = results(requests.iter().rfind(|it| !is_agents(it)).unwrap());
    assert!(told.contains("Done with tests."), "{told}");
}

#[tokio::test]
async fn hook_refuses_a_call_of_an_agent_alone() {
    let script = Script::new([
        Step::call("Agent", agent("general-purpose", "Work.")),
        Step::call("Bash", json!({"command": "echo mine"})),
        Step::text("ok"),
    ])
    .route([Step::call("Bash", json!({"command": "echo its"})), Step::text("Done.")], is_agents);
    let world = World::new(script).await;
    let command = "grep -q agent_id && { echo 'Not for agents.' >&2; exit 2; } || true";
    set_hook(&world, "PreToolUse", command);
    assert_fine(&world.run(&watched(["go", "--allowedTools", "Bash"])));
    let requests = world.requests();
    assert!(results(requests.iter().rfind(|it| is_agents(it)).unwrap()).contains("Not for agents."));
    assert!(results(requests.iter().rfind(|it| !is_agents(it)).unwrap()).contains("mine"));
}
