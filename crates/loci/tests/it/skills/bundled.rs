//! The skills that are part of loci, each played on a scratch repository: what the model is sent, and what it may do.

use loci_testkit::Step;
use serde_json::json;

use super::{bash, last_texts, skill};
use crate::support::{World, assert_fine, print};

/// A repository with a commit and a change that is not committed.
async fn repository(script: impl Into<loci_testkit::Script>) -> World {
    let world = World::with_git(script).await;
    world.home.write("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n");
    world.home.write("Makefile", "test:\n\techo tests pass\n");
    world.home.commit("a library");
    world.home.write("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 {\n    a - b\n}\n");
    world
}

fn prompt(world: &World) -> String {
    last_texts(&world.requests()[0].json).pop().unwrap()
}

#[tokio::test]
async fn init_writes_the_instruction_file() {
    let world = World::new(Step::text("x")).await;
    let text = "# adder\n\n`make test` runs the tests.\n";
    let script = [
        Step::call("Read", json!({"file_path": world.path("Makefile")})),
        Step::call("Write", json!({"file_path": world.path("CLAUDE.md"), "content": text})),
        Step::text("Written."),
    ];
    let world = world.then(script).await;
    world.home.write("Makefile", "test:\n\techo tests pass\n");
    assert_fine(&world.run(&print(["/init mind the traps", "--permission-mode", "acceptEdits"])));
    let sent = prompt(&world);
    assert!(sent.starts_with("Write the file `CLAUDE.md`") && sent.ends_with("mind the traps"), "{sent}");
    assert_eq!(world.home.read("CLAUDE.md"), text);
    // What it wrote is what the next session begins with.
    let world = world.then(Step::text("ok")).await;
    assert_fine(&world.print(["hello"]));
    assert!(String::from_utf8_lossy(&world.last_request().body).contains("`make test` runs the tests."));
}

#[tokio::test]
async fn init_asks_before_it_writes() {
    let world = World::new(Step::text("x")).await;
    let write = Step::call("Write", json!({"file_path": world.path("CLAUDE.md"), "content": "x"}));
    let world = world.then([write, Step::text("Refused.")]).await;
    world.print(["/init"]);
    assert!(!world.home.project().join("CLAUDE.md").exists(), "a skill of loci grants nothing by itself");
}

#[tokio::test]
async fn reviews_name_what_to_look_at_and_read_the_change_unasked() {
    for (typed, words) in [
        ("/code-review", "Review a change as the colleague"),
        ("/review src/lib.rs", "Review a change as the colleague"),
        ("/security-review main..HEAD", "Review a change for security problems"),
    ] {
        let script = [bash("git diff"), bash("git log --oneline"), Step::text("src/lib.rs:2: subtracts.")];
        let world = repository(script).await;
        let output = world.print([typed]);
        assert_fine(&output);
        assert_eq!(output.stdout.trim(), "src/lib.rs:2: subtracts.");
        let sent = prompt(&world);
        let argument = typed.split_once(' ').map_or("", |(_, rest)| rest);
        assert!(sent.starts_with(words) && sent.contains(&format!("What to review: {argument}\n")), "{sent}");
        assert!(sent.ends_with("Change no files."), "{sent}");
        let results = world.last_request().tool_results();
        assert!(world.requests()[1].tool_results()[0].text.contains("-    a + b"), "the diff was read");
        assert!(results[0].text.contains("a library"), "{results:?}");
    }
}

#[tokio::test]
async fn simplify_changes_files_and_verify_runs_the_thing() {
    let world = World::new(Step::text("x")).await;
    let edit = json!({"file_path": world.path("src/lib.rs"), "old_string": "a - b", "new_string": "a + b"});
    let read = json!({"file_path": world.path("src/lib.rs")});
    let script = [Step::call("Read", read), Step::call("Edit", edit), Step::text("Simpler.")];
    let world = world.then(script).await;
    world.home.write("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 {\n    a - b\n}\n");
    assert_fine(&world.run(&print(["/simplify src", "--permission-mode", "acceptEdits"])));
    assert!(world.home.read("src/lib.rs").contains("a + b"));
    assert!(prompt(&world).contains("What to look at: src\n"));

    let world = repository([bash("make test"), Step::text("Works.")]).await;
    assert_fine(&world.run(&print(["/verify adding", "--allowedTools", "Bash(make *)"])));
    assert!(prompt(&world).contains("What should work: adding\n"));
    assert!(world.last_request().tool_results()[0].text.contains("tests pass"));
}

#[tokio::test]
async fn model_may_use_some_of_them_where_it_has_the_tool_and_is_told_of_none() {
    for (name, is_used) in
        [("init", true), ("/security-review", true), ("code-review", true), ("verify", false)]
    {
        let script = [Step::call("Skill", json!({"skill": name})), Step::text("done")];
        let world = World::new(script).await;
        skill(&world, "own", "---\ndescription: Mine\n---\nx");
        assert_fine(&world.print(["go"]));
        let first = String::from_utf8_lossy(&world.requests()[0].body).into_owned();
        assert!(first.contains("- own: Mine") && !first.contains("- init"), "{first}");
        let said = world.last_request().tool_results()[0].text.clone();
        assert_eq!(said.contains("follows"), is_used, "{name}: {said}");
    }
    // Without skills of one's own the tool is not offered, and costs nothing.
    let world = World::new(Step::text("done")).await;
    assert_fine(&world.print(["go"]));
    assert!(!world.last_request().tool_names().contains(&"Skill"));
}

#[tokio::test]
async fn switch_takes_them_away_and_own_ones_take_their_place() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    skill(&world, "verify", "MINE: $ARGUMENTS");
    assert_fine(&world.print(["/verify it"]));
    assert_eq!(prompt(&world), "MINE: it");
    let off = [(r#"{"disableBundledSkills": true}"#, "0"), ("{}", "1")];
    for (settings, variable) in off {
        let world = World::new([Step::text("one"), Step::text("two")]).await;
        world.home.write_config("settings.json", settings);
        let run = |typed: &str| {
            world.run(&print([typed]).env("CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", variable));
            last_texts(&world.last_request().json).pop().unwrap()
        };
        assert_eq!(run("/simplify"), "/simplify", "it is no command any more");
        assert!(run("/init").contains("CLAUDE.md"), "a command stays one");
    }
}

/// Where prompts cannot be scheduled, a command that schedules says so, and the model is not asked in vain.
#[tokio::test]
async fn loop_is_not_there_where_nothing_can_be_scheduled() {
    let world = World::new([Step::text("one")]).await;
    let run = print(["/loop 5m look"]).env("CLAUDE_CODE_DISABLE_CRON", "1");
    let output = world.run(&run);
    assert!(output.stdout.contains("CLAUDE_CODE_DISABLE_CRON"), "{output:?}");
    assert_eq!(world.requests().len(), 0);
}
