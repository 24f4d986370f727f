//! What changes around a session: settings, watched files, directories.

use std::time::{Duration, Instant};

use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use super::{KEEP, answering, command, kept, specific};
use crate::support::{World, control, is_result, stream, user};

/// Waits until a hook has kept so many payloads.
pub(super) fn wait_for_kept(world: &World, n: usize) -> Vec<Value> {
    let last = Instant::now() + Duration::from_secs(60);
    loop {
        let payloads = kept(world, "kept.jsonl");
        if payloads.len() >= n || Instant::now() > last {
            return payloads;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn free() -> Binary {
    stream(["--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1")
}

#[tokio::test]
async fn changed_settings_are_told_and_count_unless_a_hook_blocks_them() {
    for is_blocked in [false, true] {
        let touch = |name: &str| Step::call("Bash", json!({"command": format!("touch {name}")}));
        let steps =
            vec![Step::text("One."), touch("made"), Step::text("Two."), touch("other"), Step::text("Three.")];
        let world = World::new(steps).await;
        let line = if is_blocked { format!("{KEEP}; exit 2") } else { KEEP.to_owned() };
        let settings = |deny: Value| {
            let hooks = json!({"ConfigChange": command("user_settings", &line)});
            json!({"permissions": {"deny": deny}, "hooks": hooks}).to_string()
        };
        let file = world.home.write_config("settings.json", settings(json!([])));
        let mut session = world.start(&free());
        session.write_json(&user("one"));
        session.wait_for_json(is_result);
        world.home.write_config("settings.json", settings(json!(["Bash(touch made)"])));
        session.write_json(&user("two"));
        session.wait_for_json(is_result);
        // Another file that changes brings nothing back that was blocked before.
        world.home.write(
            ".claude/settings.json",
            json!({"permissions": {"deny": ["Bash(touch other)"]}}).to_string(),
        );
        session.write_json(&user("three"));
        session.wait_for_json(is_result);
        session.close_stdin();
        let output = session.finish();
        let project = world.home.project();
        assert_eq!(project.join("made").exists(), is_blocked, "{output:?}");
        assert!(!project.join("other").exists(), "no hook has a say in the project's file: {output:?}");
        let told = kept(&world, "kept.jsonl");
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((&told[0]["source"], &told[0]["file_path"]), (&json!("user_settings"), &json!(file)));
        assert!(told[0]["prompt_id"].is_string());
        assert_eq!(
            output.stderr.contains("a hook keeps that from counting"),
            is_blocked,
            "{}",
            output.stderr
        );
    }
}

/// A command of the turn itself writes the file: what restricts would count at once.
#[tokio::test]
async fn settings_that_change_during_a_turn_are_asked_about_before_the_next_call() {
    for is_blocked in [false, true] {
        let world = World::new(Step::text("never")).await;
        let line = if is_blocked { format!("{KEEP}; exit 2") } else { KEEP.to_owned() };
        let settings = |deny: Value| {
            json!({"permissions": {"deny": deny}, "hooks": {"ConfigChange": command("", &line)}}).to_string()
        };
        let file = world.home.write_config("settings.json", settings(json!([])));
        world.home.write("next.json", settings(json!(["Bash(touch made)"])));
        let copy = format!("cp next.json '{}'", file.display());
        let world = world
            .then([
                Step::text("One."),
                Step::call("Bash", json!({"command": copy})),
                Step::call("Bash", json!({"command": "touch made"})),
                Step::text("Done."),
            ])
            .await;
        let mut session = world.start(&free());
        for prompt in ["one", "two"] {
            session.write_json(&user(prompt));
            session.wait_for_json(is_result);
        }
        session.close_stdin();
        let output = session.finish();
        assert_eq!(kept(&world, "kept.jsonl").len(), 1, "{output:?}");
        assert_eq!(world.home.project().join("made").exists(), is_blocked, "{output:?}");
    }
}

#[tokio::test]
async fn watched_files_are_told_by_name_and_by_path() {
    let steps = vec![
        Step::call(
            "Bash",
            json!({"command": "echo A=1 > .env; echo x > unwatched; mkdir -p sub; echo y > sub/seen"}),
        ),
        Step::text("One."),
    ];
    let world = World::new(steps).await;
    let seen = world.home.project().join("sub/seen");
    let start = specific("SessionStart", json!({"watchPaths": [seen]}));
    let leave = format!("{KEEP}; echo 'export LEFT=it' >> \"$CLAUDE_ENV_FILE\"");
    let hooks = json!({
        "SessionStart": answering("", &start),
        "FileChanged": [
            {"matcher": ".env|.envrc", "hooks": [{"type": "command", "command": leave}]},
            {"hooks": [{"type": "command", "command": "cat >> all.jsonl"}]},
        ],
    });
    super::configure(&world, hooks);
    let mut session = world.start(&free());
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    let told = wait_for_kept(&world, 1);
    let env = world.home.project().join(".env");
    assert_eq!((&told[0]["file_path"], &told[0]["event"]), (&json!(env), &json!("add")));
    std::fs::write(&env, "A=22\n").unwrap();
    assert_eq!(wait_for_kept(&world, 2)[1]["event"], "change");
    std::fs::remove_file(&env).unwrap();
    assert_eq!(wait_for_kept(&world, 3)[2]["event"], "unlink");
    session.close_stdin();
    let output = session.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    let all = kept(&world, "all.jsonl");
    assert!(all.iter().any(|it| it["file_path"] == json!(seen)), "{all:?}");
    assert!(!all.iter().any(|it| it["file_path"].as_str().unwrap().ends_with("unwatched")), "{all:?}");
}

#[tokio::test]
async fn added_directory_is_told_and_can_be_worked_in() {
    let world = World::new(Step::text("never")).await;
    let other = world.home.project().parent().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.md"), "milk\n").unwrap();
    let read = Step::call("Read", json!({"file_path": other.join("notes.md")}));
    let world = world.then([read, Step::text("Done.")]).await;
    super::configure(&world, json!({"DirectoryAdded": command("register_repo_root", KEEP)}));
    let mut session = world.start(&stream([]));
    let mut ask = |id: &str, directory: Value| {
        session.write_json(&control(id, json!({"subtype": "register_repo_root", "directory": directory})));
        let id = id.to_owned();
        session.wait_for_json(move |frame| frame["response"]["request_id"] == id.as_str())["response"].clone()
    };
    assert_eq!(ask("r1", json!(other))["response"]["directory"], json!(other.canonicalize().unwrap()));
    assert!(ask("r2", json!(other))["error"].as_str().unwrap().contains("already"));
    // The root of a repository within a directory of the session is one, too, but once.
    let within = world.home.project().join("packages/one");
    std::fs::create_dir_all(&within).unwrap();
    let within = within.canonicalize().unwrap();
    assert_eq!(ask("r5", json!("packages/one"))["response"]["directory"], json!(within));
    assert!(ask("r6", json!(within))["error"].as_str().unwrap().contains("already"));
    assert!(ask("r7", json!("."))["error"].as_str().unwrap().contains("already"));
    assert!(ask("r3", json!(other.join("notes.md")))["error"].as_str().unwrap().contains("Not a directory"));
    assert!(ask("r4", json!("/no/such/place"))["error"].as_str().unwrap().contains("cannot be added"));
    let told = wait_for_kept(&world, 2);
    let mut told: Vec<_> = told.iter().map(|it| (&it["directory"], &it["source"])).collect();
    told.sort_by_key(|(directory, _)| directory.to_string());
    let source = json!("register_repo_root");
    let (other, within) = (json!(other.canonicalize().unwrap()), json!(within));
    assert_eq!(told, [(&other, &source), (&within, &source)]);
    session.write_json(&user("read it"));
    session.wait_for_json(is_result);
    session.close_stdin();
    session.finish();
    assert!(!world.last_request().tool_results().remove(0).is_error);
    assert_eq!(kept(&world, "kept.jsonl").len(), 2);
}
