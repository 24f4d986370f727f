//! Going back: what agents changed is taken back with the rest, also where several worked at once.

use std::path::PathBuf;

use loci_testkit::{Gate, Script, Step};
use serde_json::{Value, json};

use super::{agent, has, in_background, is_agents, main_session, wait_until};
use crate::support::{World, assert_fine, is_result, loci, stream, user, watched};

/// What a run needs that keeps what files held and may change them.
const KEEPING: [&str; 5] =
    ["--permission-mode", "acceptEdits", "--allowedTools", "Bash", "--checkpoint-files"];

fn bash(command: impl Into<String>) -> Step {
    Step::call("Bash", json!({"command": command.into()}))
}

fn write(world: &World, name: &str, content: &str) -> Step {
    Step::call("Write", json!({"file_path": world.path(name), "content": content}))
}

/// The uuids of the prompts that people made.
fn prompts(world: &World) -> Vec<String> {
    let entries = main_session(world);
    let prompts = entries.iter().filter(|entry| entry["promptSource"] == "sdk");
    prompts.map(|prompt| prompt["uuid"].as_str().unwrap().to_owned()).collect()
}

/// Takes the files back to a prompt; returns what was said of it.
fn rewind(world: &World, prompt: &str) -> Value {
    let is_main = |path: &PathBuf| path.parent().is_some_and(|dir| !dir.ends_with("subagents"));
    let session = world.home.sessions().into_iter().find(is_main).unwrap();
    let session = session.file_stem().unwrap().to_str().unwrap().to_owned();
    let output =
        world.run(&loci().args(["sessions", "rewind", &session, "--to", prompt, "--files", "--json"]));
    assert_fine(&output);
    serde_json::from_str(&output.stdout).unwrap()
}

/// What was noted of the files.
fn log(world: &World) -> String {
    let logs = std::fs::read_dir(world.home.config_home().join("loci/tree-history")).unwrap();
    logs.map(|log| std::fs::read_to_string(log.unwrap().path()).unwrap()).collect()
}

/// A command that says that it is there, and waits until another one is.
fn meeting(own: &str, other: &str, then: &str) -> Step {
    bash(format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done; {then}"))
}

/// Invariant 19 of `docs/design/file-history.md`.
#[tokio::test]
async fn rewind_takes_back_what_two_agents_did_at_once() {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "one\n");
    world.home.write("b.txt", "one\n");
    let is_first = |it: &loci_testkit::Recorded| is_agents(it) && has(it, "Work as the first.");
    let calls = Step::call("Agent", agent("general-purpose", "Work as the first."))
        .tool("Agent", agent("general-purpose", "Work as the second."));
    let script = Script::new([calls, Step::text("Both are done.")])
        .route(
            [
                // Each command begins while the other runs, and ends after it changed something.
                meeting("here-1", "here-2", "echo first >> a.txt; touch done-1"),
                write(&world, "new/first.txt", "made\n"),
                meeting("again-1", "again-2", "rm here-1; chmod 755 b.txt"),
                Step::text("First."),
            ],
            is_first,
        )
        .route(
            [
                meeting("here-2", "done-1", "echo second >> b.txt; mv a.txt moved.txt"),
                write(&world, "new/second.txt", "made\n"),
                meeting("again-2", "again-1", "echo third >> b.txt"),
                Step::text("Second."),
            ],
            is_agents,
        );
    let world = world.then(script).await;
    assert_fine(&world.run(&watched(["go"]).args(KEEPING)));
    assert_eq!(world.home.read("moved.txt"), "one\nfirst\n");
    assert_eq!(world.home.read("new/first.txt"), "made\n");
    let done = rewind(&world, &prompts(&world)[0]);
    assert_eq!(done["conflicts"], json!([]), "{done}");
    assert_eq!((world.home.read("a.txt"), world.home.read("b.txt")), ("one\n".into(), "one\n".into()));
    for name in ["new", "moved.txt", "here-1", "here-2", "done-1", "again-1", "again-2"] {
        assert!(!world.home.project().join(name).exists(), "{name}: {done}\n{}", log(&world));
    }
}

/// Invariant 19 of `docs/design/file-history.md`: what an agent in the background did before a prompt stays when files go
/// back to that prompt.
#[tokio::test]
async fn rewind_to_a_later_prompt_takes_back_what_an_agent_did_after_it() {
    let gate = Gate::new();
    let world = World::with_git([]).await;
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "Work.")),
        Step::text("Sent out."),
        Step::text("Still there."),
        Step::text("I see."),
    ])
    .route(
        [
            bash("echo early > early.txt"),
            write(&world, "late.txt", "late\n").wait_before_headers(gate.clone()),
            bash("echo later > later.txt"),
            Step::text("Done."),
        ],
        is_agents,
    );
    let world = world.then(script).await;
    let mut session = world.start(&stream([]).args(KEEPING));
    session.write_json(&user("go"));
    session.wait_for_json(is_result);
    let n_asked = || world.model.requests().iter().filter(|it| is_agents(it)).count();
    wait_until(|| n_asked() == 2, "the agent has made its first file");
    session.write_json(&user("how is it?"));
    session.wait_for_json(is_result);
    gate.release();
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    assert_eq!(
        (world.home.read("late.txt"), world.home.read("later.txt")),
        ("late\n".into(), "later\n".into())
    );
    let prompts = prompts(&world);
    let done = rewind(&world, &prompts[1]);
    assert_eq!(done["conflicts"], json!([]), "{done}");
    let is_there = |name: &str| world.home.project().join(name).exists();
    assert_eq!((is_there("early.txt"), is_there("late.txt"), is_there("later.txt")), (true, false, false));
    rewind(&world, &prompts[0]);
    assert!(!is_there("early.txt"));
}

/// Invariant 19 of `docs/design/file-history.md`.
#[tokio::test]
async fn rewind_leaves_the_worktree_of_an_agent_alone() {
    let mut call = agent("general-purpose", "Work.");
    call["isolation"] = json!("worktree");
    let calls = Step::call("Agent", call).tool("Agent", agent("general-purpose", "Watch."));
    let script = Script::new([calls, Step::text("ok")])
        // The tree is looked at while the worktree is made.
        .route([bash("until ls .claude/worktrees/*/made; do sleep 0.01; done"), Step::text("Seen.")], |it| {
            is_agents(it) && has(it, "Watch.")
        })
        .route([bash("echo new > made"), Step::text("Done.")], is_agents);
    let world = World::with_git(script).await;
    assert_fine(&world.run(&watched(["go"]).args(KEEPING)));
    let done = rewind(&world, &prompts(&world)[0]);
    assert_eq!((&done["files"], &done["conflicts"]), (&json!([]), &json!([])), "{done}");
    let copies: Vec<_> = std::fs::read_dir(world.home.project().join(".claude/worktrees")).unwrap().collect();
    assert_eq!(copies.len(), 1);
    assert!(copies[0].as_ref().unwrap().path().join("made").exists());
}
