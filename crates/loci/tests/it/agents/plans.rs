//! Agents that are sent out to make a plan.

use loci_testkit::{Recorded, Script, Step};
use serde_json::{Value, json};

use super::{agent, define, is_agents, results};
use crate::support::{World, assert_fine, is_result, stream, user, watched};

/// Returns the file that an agent was told to plan in.
fn plan_file(request: &Recorded) -> String {
    let said = request.messages().iter().map(ToString::to_string).collect::<String>();
    said.split("The plan file is ").nth(1).unwrap().split(". ").next().unwrap().to_owned()
}

/// Writes the plan where the request says, or anywhere else.
fn write_plan() -> Step {
    Step::dynamic(|request| {
        Step::call("Write", json!({"file_path": plan_file(request), "content": "1. Build"}))
    })
}

/// An agent in plan mode writes nothing but its plan, puts it before whoever is asked, in its name, and hands it on. What
/// the session may do stays as it is.
#[tokio::test]
async fn plan_of_an_agent_is_approved_by_the_client_and_handed_on() {
    let exit = Step::call("ExitPlanMode", json!({}));
    let script = Script::new([Step::call("Agent", agent("planner", "Plan it.")), Step::text("ok")])
        .route([write_plan(), exit, Step::text("The plan: 1. Build")], is_agents);
    let world = World::new(script).await;
    define(&world, "planner", "permissionMode: plan\n", "You plan.");
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("go"));
    let question = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
    let request = &question["request"];
    assert_eq!((&request["tool_name"], &request["agent_type"]), (&json!("ExitPlanMode"), &json!("planner")));
    assert_eq!(request["input"]["plan"], "1. Build");
    assert!(request["permission_suggestions"].as_array().is_none_or(Vec::is_empty), "{request}");
    let response = json!({"behavior": "allow", "updatedInput": request["input"]});
    session.write_json(&json!({"type": "control_response", "response":
        {"subtype": "success", "request_id": question["request_id"], "response": response}}));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_fine(&output);
    let asked: Vec<_> = world.requests().into_iter().filter(is_agents).collect();
    let told = results(&asked[2]);
    assert!(
        told.contains("The user has approved the plan") && told.contains("answer with the plan"),
        "{told}"
    );
    let modes = output.json_lines().into_iter().filter(|it| it["permissionMode"].is_string());
    assert!(modes.into_iter().all(|it| it["permissionMode"] == "default"));
}

/// Where nobody can approve, the tool is not offered; where only the session plans, its agents present nothing.
#[tokio::test]
async fn plan_is_presented_only_by_agents_that_make_one_to_somebody_who_is_asked() {
    let tried = |definition: &'static str, args: &'static [&str]| async move {
        let write = Step::call("Write", json!({"file_path": "src.rs", "content": "x"}));
        let script = Script::new([Step::call("Agent", agent("planner", "Plan it.")), Step::text("ok")])
            .route([write, Step::text("The plan.")], is_agents);
        let world = World::new(script).await;
        define(&world, "planner", definition, "You plan.");
        let mut session = world.start(&stream([]).args(args.to_vec()));
        session.write_json(&user("go"));
        if args.contains(&"--permission-prompt-tool") {
            let question = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
            session.write_json(&json!({"type": "control_response", "response": {"subtype": "success",
                "request_id": question["request_id"], "response": {"behavior": "deny", "message": "no"}}}));
        }
        session.wait_for_json(is_result);
        drop(session.finish());
        assert!(!world.home.project().join("src.rs").exists());
        let first = world.requests().into_iter().find(is_agents).unwrap();
        let is_told =
            first.messages().iter().any(|it: &Value| it.to_string().contains("You work in plan mode"));
        (first.tool_names().contains(&"ExitPlanMode"), is_told)
    };
    let asking = &["--permission-prompt-tool", "stdio"][..];
    assert_eq!(tried("permissionMode: plan\n", asking).await, (true, true));
    assert_eq!(tried("permissionMode: plan\n", &[]).await, (false, true));
    assert_eq!(tried("", &["--permission-mode", "plan"]).await, (false, false));
}

/// The parent's wider mode wins, as documented: then there is nothing to plan.
#[tokio::test]
async fn agent_of_a_session_that_accepts_edits_makes_no_plan() {
    let script = Script::new([Step::call("Agent", agent("planner", "Plan it.")), Step::text("ok")])
        .route([Step::text("Done.")], is_agents);
    let world = World::new(script).await;
    define(&world, "planner", "permissionMode: plan\n", "You plan.");
    let output = world.run(&watched(["go", "--permission-mode", "acceptEdits"]));
    assert!(output.stderr.contains("asks for the permission mode plan"), "{}", output.stderr);
    let first = world.requests().into_iter().find(is_agents).unwrap();
    assert!(!first.tool_names().contains(&"ExitPlanMode"));
}
