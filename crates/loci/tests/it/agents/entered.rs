//! Agents that enter and leave worktrees by themselves.

use loci_testkit::{Binary, Gate, Script, Step};
use serde_json::{Value, json};

use super::{agent, has, in_background, is_agents, results, side_files, wait_until};
use crate::support::{World, assert_fine, watched};

fn write(path: impl Into<String>) -> Step {
    Step::call("Write", json!({"file_path": path.into(), "content": "x"}))
}

fn enter(input: Value) -> Step {
    Step::call("EnterWorktree", input)
}

/// A run in which edits and commands need no question.
fn run<const N: usize>(args: [&str; N]) -> Binary {
    watched(args).args(["--permission-mode", "acceptEdits", "--allowedTools", "Bash"])
}

fn git(dir: &std::path::Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git").args(args).current_dir(dir).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what the file beside the only agent's transcript says.
fn meta(world: &World) -> Value {
    let text = std::fs::read_to_string(side_files(world)[0].with_extension("meta.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn agent_id(world: &World) -> String {
    side_files(world)[0].file_stem().unwrap().to_str().unwrap().replace("agent-", "")
}

/// A message to an agent, and the turns that follow.
fn go_on(id: &str) -> [Step; 3] {
    [
        Step::call("SendMessage", json!({"to": id, "message": "Go on."})),
        Step::text("Sent."),
        Step::text("I see."),
    ]
}

/// The agent moves, is held to its worktree like a session, and the conversation that sent it out stays where it is. It
/// goes on there, and comes back by itself.
#[tokio::test]
async fn agent_enters_a_worktree_is_kept_apart_there_and_goes_on_in_it() {
    let world = World::with_git([Step::text("x")]).await;
    let main = world.home.project().canonicalize().unwrap();
    let readme = main.join("README.md").display().to_string();
    let script = Script::new([
        Step::call("Agent", agent("general-purpose", "Work.")),
        Step::call("Bash", json!({"command": "pwd"})),
        Step::text("ok"),
    ])
    .route(
        [
            enter(json!({"name": "side"})),
            write("made"),
            write(readme.clone()),
            Step::call("Bash", json!({"command": "git worktree list --porcelain; pwd"})),
            Step::text("Done."),
        ],
        is_agents,
    );
    let before = world.home.read("README.md");
    let world = world.then(script).await;
    assert_fine(&world.run(&run(["go"])));
    let copy = main.join(".claude/worktrees/side");
    assert!(copy.join("made").exists() && !main.join("made").exists());
    assert_eq!(world.home.read("README.md"), before);
    let asked: Vec<_> = world.requests().into_iter().filter(is_agents).collect();
    assert!(results(&asked[3]).contains("main checkout"), "{}", results(&asked[3]));
    let told = results(&asked[4]);
    assert!(
        told.contains("locked loci: an agent works here") && told.contains(".claude/worktrees/side"),
        "{told}"
    );
    let session = world.last_request();
    let session: Vec<String> = session.messages().iter().map(ToString::to_string).collect();
    let session = session.join("\n");
    assert!(session.contains("worktreeBranch: worktree-side"), "the copy that is left is told: {session}");
    assert!(results(&world.last_request()).trim().ends_with(main.to_str().unwrap()), "the session stays");
    assert_eq!(meta(&world)["enteredWorktree"], copy.to_str().unwrap());
    let entries = world.home.read_session(&side_files(&world)[0]);
    assert_eq!(entries.first().unwrap()["cwd"], main.to_str().unwrap());
    assert_eq!(entries.last().unwrap()["cwd"], copy.to_str().unwrap());
    assert!(!git(&main, &["worktree", "list", "--porcelain"]).contains("locked"));

    let back = Step::call("ExitWorktree", json!({"action": "keep"}));
    let script = Script::new(go_on(&agent_id(&world)))
        .route([write("later"), back, write("back"), Step::text("Done.")], is_agents);
    let world = world.then(script).await;
    assert_fine(&world.run(&run(["-c", "on"])));
    assert!(copy.join("later").exists() && main.join("back").exists());
    assert!(!main.join("later").exists() && !copy.join("back").exists());
    assert_eq!(meta(&world)["enteredWorktree"], Value::Null);
}

/// A copy that an agent has made and left nothing in goes with it, also where it works in the background.
#[tokio::test]
async fn worktree_that_an_agent_made_goes_with_it_when_nothing_is_new() {
    let call = in_background("general-purpose", "Look.");
    let script = Script::new([Step::call("Agent", call), Step::text("On."), Step::text("Heard.")]).route(
        [
            enter(json!({"name": "side"})),
            enter(json!({"name": "more"})),
            Step::call("Bash", json!({"command": "pwd"})),
            Step::text("Done."),
        ],
        is_agents,
    );
    let world = World::with_git(script).await;
    assert_fine(&world.run(&run(["go"])));
    let asked: Vec<_> = world.requests().into_iter().filter(is_agents).collect();
    assert!(results(&asked[2]).contains("is in a worktree already"), "{}", results(&asked[2]));
    assert!(results(&asked[3]).contains(".claude/worktrees/side"), "{}", results(&asked[3]));
    let main = world.home.project();
    assert!(!main.join(".claude/worktrees/side").exists());
    assert!(!git(&main, &["branch", "--list", "worktree-side"]).contains("side"), "its branch, too");
    assert_eq!(meta(&world)["enteredWorktree"], Value::Null);
}

/// Killed in the middle, it goes on where it was.
#[tokio::test]
async fn agent_that_was_killed_in_a_worktree_goes_on_there() {
    let gate = Gate::new();
    let waits = Step::text("never").wait_before_headers(gate.clone());
    let script = Script::new([Step::call("Agent", agent("general-purpose", "Work."))])
        .route([enter(json!({"name": "side"})), write("early"), waits], is_agents);
    let world = World::with_git(script).await;
    let session = world.start_closed(&run(["go"]));
    wait_until(|| world.model.requests().iter().filter(|it| is_agents(it)).count() == 3, "it has written");
    session.crash();
    let script =
        Script::new(go_on(&agent_id(&world))).route([write("late"), Step::text("Done at last.")], is_agents);
    let world = world.then(script).await;
    assert_fine(&world.run(&run(["-c", "go on"])));
    let main = world.home.project();
    let copy = main.join(".claude/worktrees/side");
    assert!(copy.join("early").exists() && copy.join("late").exists());
    assert!(!main.join("early").exists() && !main.join("late").exists());
}

/// One that was sent into a worktree of its own does not leave it, and moves only among those of the repository.
#[tokio::test]
async fn isolated_agent_moves_only_among_worktrees_of_ours_and_has_no_way_out() {
    let world = World::with_git([Step::text("x")]).await;
    let main = world.home.project().canonicalize().unwrap();
    let (other, elsewhere) = (main.join(".claude/worktrees/other"), main.with_file_name("elsewhere"));
    git(&main, &["worktree", "add", "-q", "-b", "other", other.to_str().unwrap()]);
    git(&main, &["worktree", "add", "-q", "-b", "elsewhere", elsewhere.to_str().unwrap()]);
    let mut call = agent("general-purpose", "Work.");
    call["isolation"] = json!("worktree");
    let script = Script::new([Step::call("Agent", call), Step::text("ok")]).route(
        [
            enter(json!({"name": "new"})),
            enter(json!({"path": elsewhere.to_str().unwrap()})),
            enter(json!({"path": other.to_str().unwrap()})),
            write("made"),
            Step::text("Done."),
        ],
        is_agents,
    );
    let world = world.then(script).await;
    let run = watched(["go", "--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1");
    assert_fine(&world.run(&run));
    let asked: Vec<_> = world.requests().into_iter().filter(is_agents).collect();
    let offered = asked[0].tool_names();
    assert!(offered.contains(&"EnterWorktree") && !offered.contains(&"ExitWorktree"), "{offered:?}");
    assert!(results(&asked[1]).contains("works in a worktree already"), "{}", results(&asked[1]));
    assert!(results(&asked[2]).contains("only those under"), "{}", results(&asked[2]));
    assert!(other.join("made").exists() && !elsewhere.join("made").exists());
    assert!(!main.join(".claude/worktrees/new").exists());
}

/// A session in a working tree of its own, wherever that lies, is left alone by the agents that it sends out to work apart,
/// and so is the main checkout.
#[tokio::test]
async fn isolated_agent_leaves_the_linked_worktree_of_its_session_alone() {
    let world = World::with_git([Step::text("x")]).await;
    let main = world.home.project().canonicalize().unwrap();
    let linked = main.with_file_name("linked");
    git(&main, &["worktree", "add", "-q", "-b", "linked", linked.to_str().unwrap()]);
    let inside = |dir: &std::path::Path| dir.join("made").display().to_string();
    let mut call = agent("general-purpose", "Work.");
    call["isolation"] = json!("worktree");
    let script = Script::new([Step::call("Agent", call), Step::text("ok")]).route(
        [
            write(inside(&linked)),
            write(inside(&main)),
            Step::call("Bash", json!({"command": format!("cd {} && touch made", linked.display())})),
            write("made"),
            Step::text("Done."),
        ],
        is_agents,
    );
    let world = world.then(script).await;
    let run = watched(["go", "--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1");
    assert_fine(&world.run(&run.cwd(&linked)));
    assert!(!linked.join("made").exists() && !main.join("made").exists());
    let asked: Vec<_> = world.model.main_requests().into_iter().filter(is_agents).collect();
    let refused = asked.iter().filter(|it| results(it).contains("belongs to the main checkout")).count();
    assert_eq!((asked.len(), refused), (5, 3), "only its own is free");
    assert!(has(&world.last_request(), "worktreePath: "));
}

/// Agents work where they were sent out: the worktree is not taken away under them, and it keeps them apart, wherever the
/// session goes meanwhile.
#[tokio::test]
async fn worktree_of_a_session_stays_while_its_agents_work_there_and_holds_them() {
    let world = World::with_git([Step::text("x")]).await;
    let main = world.home.project().canonicalize().unwrap();
    let gate = Gate::new();
    let opened = gate.clone();
    let exit = |action: &str| Step::call("ExitWorktree", json!({"action": action}));
    let script = Script::new([
        enter(json!({"name": "w1"})),
        Step::call("Agent", in_background("general-purpose", "Work.")),
        exit("remove"),
        exit("keep"),
        Step::dynamic(move |_| {
            opened.release();
            Step::text("Left.")
        }),
        Step::text("Heard."),
    ])
    .route(
        [
            write("made").wait_before_headers(gate.clone()),
            write(main.join("README.md").display().to_string()),
            Step::text("Done."),
        ],
        is_agents,
    );
    let before = world.home.read("README.md");
    let world = world.then(script).await;
    assert_fine(&world.run(&run(["go"])));
    let own: Vec<_> = world.requests().into_iter().filter(|it| !is_agents(it)).collect();
    assert!(results(&own[3]).contains(&format!("Agents still work in this worktree: {}", agent_id(&world))));
    assert!(results(&own[4]).contains("works in"), "{}", results(&own[4]));
    assert!(main.join(".claude/worktrees/w1/made").exists() && !main.join("made").exists());
    let asked: Vec<_> = world.requests().into_iter().filter(is_agents).collect();
    assert!(results(&asked[2]).contains("main checkout"), "{}", results(&asked[2]));
    assert_eq!(world.home.read("README.md"), before);
}

#[tokio::test]
async fn agent_stays_in_the_checkout_that_its_session_leaves_for_a_worktree() {
    let world = World::with_git([Step::text("x")]).await;
    let main = world.home.project().canonicalize().unwrap();
    let gate = Gate::new();
    let opened = gate.clone();
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "Work.")),
        enter(json!({"name": "w1"})),
        Step::dynamic(move |_| {
            opened.release();
            Step::text("Moved.")
        }),
        Step::text("Heard."),
    ])
    .route([write("made").wait_before_headers(gate.clone()), Step::text("Done.")], is_agents);
    let world = world.then(script).await;
    assert_fine(&world.run(&run(["go"])));
    assert!(main.join("made").exists() && !main.join(".claude/worktrees/w1/made").exists());
}
