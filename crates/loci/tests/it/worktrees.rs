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
    let output = world.run(&print(["go on", "--resume", SESSION, "--permission-mode", "acceptEdits"]));
    assert_eq!(output.code, Some(0), "{output:?}");
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

fn edit_of_main(world: &World) -> Step {
    let path = world.home.project().join("README.md");
    Step::call("Write", json!({"file_path": path.display().to_string(), "content": "changed"}))
}

/// Returns the result of the call that tried to change the main checkout.
fn refusal(world: &World) -> String {
    let results = world.requests().into_iter().flat_map(|it| it.tool_results());
    let refused: Vec<String> = results.filter(|it| it.is_error).map(|it| it.text).collect();
    assert!(!refused.is_empty(), "{:?}", world.last_request().tool_results());
    refused.join("\n")
}

/// A run that began in a worktree leaves the main checkout alone as one does that has entered it, and so does one that is
/// resumed there, wherever that is done from.
#[tokio::test]
async fn worktree_of_a_run_keeps_it_apart_from_the_main_checkout_also_when_resumed() {
    let world = World::with_git([Step::text("x")]).await;
    let before = std::fs::read_to_string(world.home.project().join("README.md")).unwrap();
    const SESSION: &str = "0a0a0a0a-0002-4000-8000-000000000001";
    let bypass = ["--permission-mode", "bypassPermissions"];
    let unreadable = Step::call("Bash", json!({"command": "cd \"$ELSEWHERE\" && touch made.txt"}));
    let copy = world.home.project().join(".claude/worktrees/calm");
    let runs = [
        (world.home.project(), vec!["go", "-w", "calm", "--session-id", SESSION]),
        (world.home.project(), vec!["go on", "--resume", SESSION]),
        (copy, vec!["go on", "--resume", SESSION]),
    ];
    let mut world = world;
    for (cwd, args) in runs {
        let edit = edit_of_main(&world);
        world = world.then([edit, unreadable.clone(), Step::text("Done.")]).await;
        assert_fine(&world.run(&print([]).args(args).args(bypass).env("IS_SANDBOX", "1").cwd(&cwd)));
        let told = refusal(&world);
        assert!(told.contains("belongs to the main checkout"), "{told}");
        assert!(told.contains("nobody can say that it stays in the worktree"), "{told}");
        assert_eq!(std::fs::read_to_string(world.home.project().join("README.md")).unwrap(), before);
    }
}

#[tokio::test]
async fn worktree_of_a_run_is_left_by_its_tool_and_a_hook_s_keeps_apart_too() {
    let world = World::with_git([Step::text("x")]).await;
    let script = [leave(json!({"action": "keep"})), write("main.txt"), Step::text("Done.")];
    let world = world.then(script).await;
    assert_fine(&world.run(&print(["go", "-w", "calm", "--permission-mode", "acceptEdits"])));
    assert!(world.home.project().join("main.txt").exists());
    let place = world.home.project().with_file_name("copies");
    let command = format!("mkdir -p {0}/one && echo {0}/one", place.display());
    let hooks = json!({"hooks": {"WorktreeCreate": [{"hooks": [{"type": "command", "command": command}]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    let agent = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose", "isolation": "worktree"});
    let main = world.home.project().join("README.md").display().to_string();
    let other = Step::call("Write", json!({"file_path": main, "content": "changed"}));
    let is_agent = |request: &loci_testkit::Recorded| request.header("x-claude-code-agent-id").is_some();
    let script = loci_testkit::Script::new([Step::call("Agent", agent), Step::text("Done.")])
        .route([other, Step::text("I could not.")], is_agent);
    let world = world.then(script).await;
    assert_fine(&world.run(&print(["go", "--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1")));
    assert_ne!(std::fs::read_to_string(&main).unwrap(), "changed");
    let told: Vec<String> =
        world.model.requests().iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect();
    assert!(told.iter().any(|text| text.contains("belongs to the main checkout")), "{told:?}");
}

/// What people made with git is theirs to remove, and commits of a copy that was there before are not lost with it.
#[tokio::test]
async fn only_worktrees_of_ours_are_removed_and_never_with_earlier_commits() {
    let world = World::with_git([Step::text("x")]).await;
    let elsewhere = world.home.project().with_file_name("elsewhere");
    let git = |dir: &std::path::Path, args: &[&str]| {
        assert!(std::process::Command::new("git").args(args).current_dir(dir).status().unwrap().success());
    };
    git(&world.home.project(), &["worktree", "add", "-q", "-b", "elsewhere", elsewhere.to_str().unwrap()]);
    let entering = Step::call("EnterWorktree", json!({"path": elsewhere.display().to_string()}));
    let world = world.then([entering, leave(json!({"action": "remove"})), Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go", "--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1")));
    assert!(elsewhere.join("README.md").exists());
    assert!(refusal(&world).contains("was not made here"), "{}", refusal(&world));
    let world = world.then([Step::text("1")]).await;
    assert_fine(&world.run(&print(["go", "-w", "calm"])));
    let copy = world.home.project().join(".claude/worktrees/calm");
    std::fs::write(copy.join("b.txt"), "b").unwrap();
    git(&copy, &["add", "-A"]);
    git(&copy, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "b"]);
    let world = world.then([leave(json!({"action": "remove"})), Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go", "-w", "calm"])));
    assert!(refusal(&world).contains("0 uncommitted files and 1 commit"), "{}", refusal(&world));
    assert!(copy.join("b.txt").exists());
}

#[tokio::test]
async fn worktree_that_is_gone_is_told_when_its_session_goes_on() {
    let world = World::with_git([Step::text("1")]).await;
    const SESSION: &str = "0a0a0a0a-0003-4000-8000-000000000001";
    assert_fine(&world.run(&print(["go", "-w", "calm", "--session-id", SESSION])));
    std::fs::remove_dir_all(world.home.project().join(".claude/worktrees/calm")).unwrap();
    let world = world.then([Step::text("2")]).await;
    let output = world.run(&print(["go on", "--resume", SESSION]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("of this session is gone"), "{}", output.stderr);
}

/// Leaves the interface; what it asks and says then is on the screen.
fn leave_interface(screen: &mut loci_testkit::Screen) {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
}

#[tokio::test]
async fn worktree_of_a_terminal_session_goes_when_nothing_is_new_and_is_asked_about_otherwise() {
    let size = (110, 30);
    let world = World::with_git([Step::text("Hello to you.")]).await;
    let copy = world.home.project().join(".claude/worktrees/calm");
    let mut screen = world.start_interface(["hi", "-w", "calm"], size);
    screen.wait_for("Hello to you.");
    leave_interface(&mut screen);
    let end = screen.finish();
    assert!(end.output.stderr.contains("The worktree calm is removed."), "{end:?}");
    assert!(!copy.exists());
    for (answer, stays) in [("keep\n", true), ("remove\n", false)] {
        let world = World::with_git([Step::text("Hello to you.")]).await;
        let copy = world.home.project().join(".claude/worktrees/calm");
        let mut screen = world.start_interface(["hi", "-w", "calm"], size);
        screen.wait_for("Hello to you.");
        std::fs::write(copy.join("new.txt"), "new").unwrap();
        leave_interface(&mut screen);
        screen.wait_for("Keep it, or remove it?");
        screen.type_text(answer);
        let end = screen.finish();
        assert_eq!(copy.join("new.txt").exists(), stays, "{end:?}");
        assert!(stays || end.output.stderr.contains("refs/loci/kept/calm-"), "{end:?}");
    }
}

/// In a directory with several repositories, a worktree of one of them can be entered, with a yes; from there the rest of
/// the directory is no checkout to be left alone, but the repository is.
#[tokio::test]
async fn worktree_of_a_nested_repository_is_entered() {
    let world = World::new([Step::text("x")]).await;
    let nested = world.home.project().join("nested");
    let copy = nested.join(".claude/worktrees/side");
    std::fs::create_dir_all(&nested).unwrap();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
        let git = std::process::Command::new("git").args(identity).args(args).current_dir(&nested).status();
        assert!(git.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "a"]);
    git(&["worktree", "add", "-q", "-b", "side", copy.to_str().unwrap()]);
    let entering = Step::call("EnterWorktree", json!({"path": copy.display().to_string()}));
    let outside = write(nested.join("made.txt").to_str().unwrap());
    let world = world.then([entering, write("made.txt"), outside, Step::text("Done.")]).await;
    assert_fine(&world.run(&print(["go", "--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1")));
    assert!(copy.join("made.txt").exists() && !nested.join("made.txt").exists());
    assert!(refusal(&world).contains("belongs to the main checkout"), "{}", refusal(&world));
}
