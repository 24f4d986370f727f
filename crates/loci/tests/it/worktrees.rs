//! Runs in a worktree of their own, and sessions that are found from either side.

use loci_testkit::Step;
use serde_json::{Value, json};

use crate::support::{World, assert_fine, print};

fn write(path: &str) -> Step {
    Step::call("Write", json!({"file_path": path, "content": "x"}))
}

#[tokio::test]
async fn run_in_a_worktree_changes_nothing_in_the_main_checkout() {
    let world = World::with_git([Step::text("x")]).await;
    let world = world.then([write("made.txt"), Step::text("Done.")]).await;
    let run = print(["go", "--worktree", "calm", "--permission-mode", "acceptEdits"]);
    assert_fine(&world.run(&run));
    let copy = world.home.project().join(".claude/worktrees/calm");
    assert!(copy.join("made.txt").exists() && copy.join("README.md").exists());
    assert!(!world.home.project().join("made.txt").exists());
    let entries = world.session();
    let cwd = entries.iter().find_map(|it| it["cwd"].as_str()).unwrap();
    assert_eq!(cwd, copy.canonicalize().unwrap().display().to_string());
    assert!(entries.iter().any(|it| it["gitBranch"] == "worktree-calm"));
    // A second time it is the same one, with what is in it.
    let world = world.then([write("more.txt"), Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go", "-w", "calm", "--permission-mode", "acceptEdits"])));
    assert!(copy.join("made.txt").exists() && copy.join("more.txt").exists());
}

#[tokio::test]
async fn session_of_a_worktree_goes_on_there_from_either_side() {
    let world = World::with_git([Step::text("1")]).await;
    const SESSION: &str = "0a0a0a0a-0001-4000-8000-000000000001";
    assert_fine(&world.run(&print(["go", "-w", "calm", "--session-id", SESSION])));
    let copy = world.home.project().join(".claude/worktrees/calm");
    let world = world.then([write("made.txt"), Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go on", "--resume", SESSION, "--permission-mode", "acceptEdits"])));
    assert!(copy.join("made.txt").exists(), "resumed from the main checkout, it is in its worktree again");
    assert!(world.requests()[0].messages().len() > 1, "and knows what was said");
    // A copy of it begins where it was started.
    let world = world.then([write("fork.txt"), Step::text("Done.")]).await;
    let fork = print(["go on", "--resume", SESSION, "--fork-session", "--permission-mode", "acceptEdits"]);
    assert_fine(&world.run(&fork));
    assert!(world.home.project().join("fork.txt").exists());
    // One whose worktree is gone goes on where it was started.
    std::fs::remove_dir_all(&copy).unwrap();
    let world = world.then([write("late.txt"), Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go on", "--resume", SESSION, "--permission-mode", "acceptEdits"])));
    assert!(world.home.project().join("late.txt").exists());
}

#[tokio::test]
async fn worktree_without_repository_or_with_a_bad_name_ends_before_any_request() {
    for (world, name) in
        [(World::new([Step::text("x")]).await, "calm"), (World::with_git([Step::text("x")]).await, "../calm")]
    {
        let output = world.run(&print(["go", "--worktree", name]));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.to_lowercase().contains("worktree"), "{output:?}");
        assert_eq!(world.model.main_requests().len(), 0);
    }
}

#[tokio::test]
async fn worktree_is_made_by_a_hook_where_there_is_one() {
    let world = World::new([write("made.txt"), Step::text("Done.")]).await;
    let place = world.home.project().with_file_name("copies");
    let seen = world.home.project().with_file_name("seen.json");
    let command = format!(
        "cat > {} && mkdir -p {}/one && echo {}/one",
        seen.display(),
        place.display(),
        place.display()
    );
    let hook = json!({"type": "command", "command": command});
    let hooks = json!({"hooks": {"WorktreeCreate": [{"hooks": [hook]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    assert_fine(&world.run(&print(["go", "-w", "calm", "--permission-mode", "acceptEdits"])));
    assert!(place.join("one/made.txt").exists());
    let seen: Value = serde_json::from_slice(&std::fs::read(seen).unwrap()).unwrap();
    assert_eq!((&seen["hook_event_name"], &seen["name"]), (&json!("WorktreeCreate"), &json!("calm")));
    let failing =
        json!({"hooks": {"WorktreeCreate": [{"hooks": [{"type": "command", "command": "exit 1"}]}]}});
    world.home.write_config("settings.json", failing.to_string());
    let output = world.run(&print(["go", "-w", "calm"]));
    assert_eq!(output.code, Some(1), "{output:?}");
}

#[tokio::test]
async fn worktree_settings_say_what_a_copy_begins_with_and_shares() {
    let world = World::with_git([Step::text("1")]).await;
    world.home.write("node_modules/pkg.js", "x");
    let settings = json!({"worktree": {"baseRef": "head", "symlinkDirectories": ["node_modules"]}});
    world.home.write_config("settings.json", settings.to_string());
    assert_fine(&world.run(&print(["go", "--worktree"]).args(["--permission-mode", "plan"])));
    let copies: Vec<_> = std::fs::read_dir(world.home.project().join(".claude/worktrees")).unwrap().collect();
    assert_eq!(copies.len(), 1, "a name is made up");
    assert!(copies[0].as_ref().unwrap().path().join("node_modules").is_symlink());
}

fn enter() -> Step {
    Step::call("EnterWorktree", json!({"name": "calm"}))
}

fn leave(input: Value) -> Step {
    Step::call("ExitWorktree", input)
}

#[tokio::test]
async fn tools_move_the_session_into_a_worktree_and_back() {
    let world = World::with_git([Step::text("x")]).await;
    let back = [
        leave(json!({"action": "remove"})),
        leave(json!({"action": "keep"})),
        write("main.txt"),
        Step::text("Done."),
    ];
    let script: Vec<Step> = [enter(), write("copy.txt")].into_iter().chain(back).collect();
    let world = world.then(script).await;
    assert_fine(&world.run(&print(["go", "--permission-mode", "acceptEdits"])));
    let copy = world.home.project().join(".claude/worktrees/calm");
    assert!(copy.join("copy.txt").exists() && world.home.project().join("main.txt").exists());
    assert!(!world.home.project().join("copy.txt").exists() && !copy.join("main.txt").exists());
    let results: Vec<String> =
        world.requests().iter().flat_map(|it| it.tool_results()).map(|result| result.text).collect();
    assert!(results[2].contains("1 uncommitted file and 0 commits that are nowhere else"), "{}", results[2]);
    let entries = world.session();
    let copy = copy.canonicalize().unwrap().display().to_string();
    let states: Vec<&Value> =
        entries.iter().filter(|it| it["type"] == "worktree-state").map(|it| &it["worktreeSession"]).collect();
    assert_eq!(states.len(), 2);
    assert_eq!(
        (&states[0]["worktreePath"], &states[0]["worktreeBranch"]),
        (&json!(copy), &json!("worktree-calm"))
    );
    assert_eq!(states[1], &Value::Null);
    assert!(entries.iter().any(|it| it["cwd"] == copy.as_str()));
}

#[tokio::test]
async fn clean_worktree_is_removed_and_hooks_are_told() {
    let world = World::with_git([Step::text("x")]).await;
    let seen = world.home.project().with_file_name("seen.json");
    let hook = json!({"type": "command", "command": format!("cat > {}", seen.display())});
    let hooks = json!({"hooks": {"WorktreeRemove": [{"hooks": [hook]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    let world = world.then([enter(), leave(json!({"action": "remove"})), Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go"])));
    let copy = world.home.project().join(".claude/worktrees/calm");
    assert!(!copy.exists());
    let seen: Value = serde_json::from_slice(&std::fs::read(seen).unwrap()).unwrap();
    assert_eq!(seen["worktree_path"], copy.display().to_string());
}

#[tokio::test]
async fn session_that_ended_in_a_worktree_goes_on_there() {
    let world = World::with_git([Step::text("x")]).await;
    let world = world.then([enter(), Step::text("1")]).await;
    assert_fine(&world.run(&print(["go"])));
    let world = world.then([write("made.txt"), Step::text("2")]).await;
    assert_fine(&world.run(&print(["go on", "-c", "--permission-mode", "acceptEdits"])));
    assert!(world.home.project().join(".claude/worktrees/calm/made.txt").exists());
    assert_eq!(world.home.only_session().iter().filter(|it| it["type"] == "assistant").count(), 4);
}

#[tokio::test]
async fn worktree_tools_refuse_what_cannot_be() {
    let world = World::with_git([Step::text("x")]).await;
    let twice = Step::call("EnterWorktree", json!({"name": "other"}));
    let script = [leave(json!({"action": "keep"})), enter(), twice, Step::text("Done.")];
    let world = world.then(script).await;
    assert_fine(&world.run(&print(["go"])));
    let results: Vec<_> = world.requests().iter().flat_map(|it| it.tool_results()).collect();
    assert!(results[0].is_error && results[0].text.contains("entered no worktree"), "{results:?}");
    assert!(results[2].is_error && results[2].text.contains("in a worktree already"), "{results:?}");
    let world = World::new([enter(), Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go"])));
    assert!(world.last_request().tool_results()[0].text.contains("needs a git repository"));
}

/// A worktree elsewhere changes what the session may write: no rule answers for the person, only bypassed permissions do.
#[tokio::test]
async fn worktree_elsewhere_is_entered_only_with_a_yes_whatever_rules_allow() {
    for (flags, is_entered) in [
        (["--allowedTools", "EnterWorktree"], false),
        (["--permission-mode", "acceptEdits"], false),
        (["--permission-mode", "bypassPermissions"], true),
    ] {
        let world = World::with_git([Step::text("x")]).await;
        let elsewhere = world.home.project().with_file_name("elsewhere");
        let made = std::process::Command::new("git")
            .args(["worktree", "add", "-q", "-b", "elsewhere"])
            .arg(&elsewhere)
            .current_dir(world.home.project())
            .status();
        assert!(made.unwrap().success());
        let call = Step::call("EnterWorktree", json!({"path": elsewhere.display().to_string()}));
        let world = world.then([call, Step::text("Done.")]).await;
        assert_fine(&world.run(&print(["go"]).args(flags).env("IS_SANDBOX", "1")));
        let result = &world.last_request().tool_results()[0];
        assert_eq!(!result.is_error, is_entered, "{flags:?}: {}", result.text);
        assert!(is_entered || result.text.contains("would move the session"), "{}", result.text);
    }
}
