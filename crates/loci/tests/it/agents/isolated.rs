//! Agents that work in a worktree of their own.

use loci_testkit::{Gate, Script, Step};
use serde_json::{Value, json};

use super::{agent, has, is_agents, results, side_files, wait_until};
use crate::support::{World, assert_fine, watched};

/// A call that sends an agent out into a worktree.
fn isolated(prompt: &str) -> Value {
    let mut call = agent("general-purpose", prompt);
    call["isolation"] = json!("worktree");
    call
}

/// What git says of the working copies.
fn worktrees(world: &World) -> String {
    let output = std::process::Command::new("git")
        .args(["worktree", "list", "--porcelain"])
        .current_dir(world.home.project())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn isolated_agent_works_in_a_worktree_that_is_kept_when_something_is_new() {
    for (command, is_kept) in [("pwd", false), ("echo new > made", true)] {
        let script = Script::new([Step::call("Agent", isolated("Work.")), Step::text("ok")])
            .route([Step::call("Bash", json!({"command": command})), Step::text("Done.")], is_agents);
        let world = World::with_git(script).await;
        let output =
            world.run(&watched(["go", "--allowedTools", "Bash", "--permission-mode", "acceptEdits"]));
        assert_fine(&output);
        let result =
            output.json_lines().into_iter().find(|it| it["tool_use_result"]["agentId"].is_string()).unwrap();
        let id = result["tool_use_result"]["agentId"].as_str().unwrap().to_owned();
        let path = world.home.project().join(format!(".claude/worktrees/agent-{id}"));
        assert_eq!(path.join("made").exists(), is_kept);
        assert_eq!(path.exists(), is_kept);
        assert_eq!(result.to_string().contains(&format!("worktreeBranch: worktree-agent-{id}")), is_kept);
        assert!(!world.home.project().join("made").exists());
        let meta: Value = serde_json::from_str(
            &std::fs::read_to_string(side_files(&world)[0].with_extension("meta.json")).unwrap(),
        )
        .unwrap();
        assert_eq!(meta["worktreePath"].is_string(), is_kept);
    }
}

#[tokio::test]
async fn isolated_agent_cannot_touch_the_main_checkout_whatever_is_allowed() {
    let world = World::with_git([Step::text("x")]).await;
    let main = world.home.project().canonicalize().unwrap();
    let outside = main.join("README.md").display().to_string();
    let script = Script::new([Step::call("Agent", isolated("Work.")), Step::text("ok")]).route(
        [
            Step::call("Write", json!({"file_path": outside, "content": "x"})),
            Step::call("Bash", json!({"command": format!("echo x > {outside}")})),
            Step::call("Bash", json!({"command": format!("git -C {} commit -am x", main.display())})),
            Step::call("Bash", json!({"command": format!("cd {} && touch made", main.display())})),
            Step::call("Write", json!({"file_path": "made", "content": "x"})),
            Step::text("Done."),
        ],
        is_agents,
    );
    let before = world.home.read("README.md");
    let world = world.then(script).await;
    assert_fine(&world.run(&watched([
        "go",
        "--permission-mode",
        "acceptEdits",
        "--allowedTools",
        "Bash,Write",
    ])));
    assert_eq!(world.home.read("README.md"), before);
    assert!(!main.join("made").exists());
    let requests: Vec<_> = world.model.main_requests().into_iter().filter(is_agents).collect();
    let refused = requests.iter().filter(|it| results(it).contains("main checkout")).count();
    assert_eq!((requests.len(), refused), (6, 4), "the fifth call was fine");
}

#[tokio::test]
async fn worktree_is_locked_while_an_agent_works_in_it() {
    let script = Script::new([Step::call("Agent", isolated("Work.")), Step::text("ok")]).route(
        [
            Step::call("Bash", json!({"command": "git worktree list --porcelain; echo x > made"})),
            Step::text("Done."),
        ],
        is_agents,
    );
    let world = World::with_git(script).await;
    assert_fine(&world.run(&watched(["go", "--allowedTools", "Bash", "--permission-mode", "acceptEdits"])));
    let told = results(world.requests().iter().rfind(|it| is_agents(it)).unwrap());
    assert!(told.contains("locked loci: an agent works here (process "), "{told}");
    let after = worktrees(&world);
    assert!(after.contains("worktrees/agent-a") && !after.contains("locked"), "{after}");
}

/// Killed in the middle, an isolated agent goes on where it was, and nowhere else.
#[tokio::test]
async fn isolated_agent_that_was_killed_goes_on_in_its_worktree() {
    let gate = Gate::new();
    let script = Script::new([Step::call("Agent", isolated("Work."))]).route(
        [
            Step::call("Write", json!({"file_path": "early", "content": "x"})),
            Step::text("never").wait_before_headers(gate.clone()),
        ],
        is_agents,
    );
    let world = World::with_git(script).await;
    let session = world.start_closed(&watched(["go", "--permission-mode", "acceptEdits"]));
    wait_until(|| world.model.requests().iter().filter(|it| is_agents(it)).count() == 2, "it has written");
    session.crash();
    assert!(worktrees(&world).contains("locked loci"), "{}", worktrees(&world));
    let id = side_files(&world)[0].file_stem().unwrap().to_str().unwrap().replace("agent-", "");
    let script = Script::new([
        Step::call("SendMessage", json!({"to": id, "message": "Go on."})),
        Step::text("Sent."),
        Step::text("I see."),
    ])
    .route(
        [Step::call("Write", json!({"file_path": "late", "content": "x"})), Step::text("Done at last.")],
        is_agents,
    );
    let world = world.then(script).await;
    let output = world.run(&watched(["-c", "go on", "--permission-mode", "acceptEdits"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let main = world.home.project();
    let copy = main.join(format!(".claude/worktrees/agent-{id}"));
    assert!(copy.join("early").exists() && copy.join("late").exists());
    assert!(!main.join("early").exists() && !main.join("late").exists());
    let after = worktrees(&world);
    assert!(after.contains(&format!("agent-{id}")) && !after.contains("locked"), "{after}");
    assert!(has(&world.last_request(), "worktreePath: "));
}

/// One whose worktree was removed, because nothing in it was new, gets another one.
#[tokio::test]
async fn isolated_agent_that_goes_on_after_its_worktree_is_gone_works_in_a_new_one() {
    let script = Script::new([Step::call("Agent", isolated("Look.")), Step::text("ok")])
        .route([Step::text("Nothing to do.")], is_agents);
    let world = World::with_git(script).await;
    assert_fine(&world.run(&watched(["go", "--permission-mode", "acceptEdits"])));
    let id = side_files(&world)[0].file_stem().unwrap().to_str().unwrap().replace("agent-", "");
    let copy = world.home.project().join(format!(".claude/worktrees/agent-{id}"));
    assert!(!copy.exists());
    let script = Script::new([
        Step::call("SendMessage", json!({"to": id, "message": "Do it."})),
        Step::text("Sent."),
        Step::text("I see."),
    ])
    .route(
        [Step::call("Write", json!({"file_path": "made", "content": "x"})), Step::text("Done.")],
        is_agents,
    );
    let world = world.then(script).await;
    assert_fine(&world.run(&watched(["-c", "go on", "--permission-mode", "acceptEdits"])));
    assert!(copy.join("made").exists() && !world.home.project().join("made").exists());
}
