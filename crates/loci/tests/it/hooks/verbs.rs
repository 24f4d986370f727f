//! `loci hooks list`, `loci hooks test`, what `loci doctor` says of hooks, and the recipes of `docs/hooks.md`.

use expect_test::expect;
use loci_testkit::Step;
use serde_json::{Value, json};

use super::{KEEP, command, configure, kept, last_message, run};
use crate::settings::trust;
use crate::support::{World, loci, print};

#[tokio::test]
async fn list_shows_each_hook_with_its_line_and_whether_it_counts() {
    let world = World::new(Step::text("x")).await;
    world.home.write_config(
        "settings.json",
        "{\n\"hooks\": {\n\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [\n{\"type\": \"command\", \"command\": \"./check.sh\"}]}],\n\"Nonsense\": []}}",
    );
    world.home.write(".claude/settings.json", json!({"hooks": {"Stop": command("", "true")}}).to_string());
    let output = world.run(&loci().args(["hooks", "list"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    expect![[r#"
        PreToolUse
          Bash  command ./check.sh  (user settings, ~/.claude/settings.json:4)
        Stop
          *  command true  (project settings, <project>/.claude/settings.json:1)  does not count: this folder is not trusted
        ! ~/.claude/settings.json:2: no such event: `Nonsense`; its hooks are never run
    "#]]
    .assert_eq(&world.normaliser().text(&output.stdout));
    let output = world.run(&loci().args(["hooks", "list", "--json"]));
    let listed: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&listed["hooks"][0]["line"], &listed["hooks"][1]["counts"]), (&json!(4), &json!(false)));
}

#[tokio::test]
async fn trial_shows_what_a_hook_reads_says_and_decides() {
    let world = World::new(Step::text("x")).await;
    configure(&world, json!({"PreToolUse": command("Bash", "cat >/dev/null; echo never >&2; exit 2")}));
    let output = world.run(&loci().args(["hooks", "test", "PreToolUse", "--tool", "Bash"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.starts_with("stdin: {\"session_id\":"), "{}", output.stdout);
    for part in ["exit code 2 after", "stderr: never", "decision: deny pretooluse:bash hook error"] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    let output = world.run(&loci().args(["hooks", "test", "PreToolUse", "--tool", "Read"]));
    assert!(output.stdout.contains("No hook that counts matches"), "{}", output.stdout);
    let output = world.run(&loci().args(["hooks", "test", "Nonsense"]));
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("No such event: `Nonsense`"), "{}", output.stderr);
}

#[tokio::test]
async fn doctor_names_unknown_events_and_scripts_that_do_not_exist() {
    let world = World::new(Step::text("x")).await;
    configure(
        &world,
        json!({"Nonsense": [], "Stop": command("", "./no/such.sh --flag"), "SessionEnd": command("", "echo fine")}),
    );
    let output = world.run(&loci().args(["doctor"]));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.contains("no such event: `Nonsense`"), "{}", output.stdout);
    assert!(output.stdout.contains("no/such.sh`") && !output.stdout.contains("echo"), "{}", output.stdout);
}

#[tokio::test]
async fn hook_that_cannot_be_honoured_is_reported_at_the_start() {
    let world = World::new(Step::text("x")).await;
    configure(
        &world,
        json!({
            "TeammateIdle": command("", "true"),
            "Stop": [{"hooks": [{"type": "command", "command": "true", "once": true}]}],
        }),
    );
    let output = run(&world);
    for part in [
        "`TeammateIdle` does not happen in this version yet",
        "`once` counts for hooks of skills: this handler runs every time",
    ] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    let listed = world.run(&loci().args(["hooks", "list", "--json"]));
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let idle = listed["hooks"].as_array().unwrap().iter().find(|it| it["event"] == "TeammateIdle").unwrap();
    assert_eq!(
        (&idle["counts"], &idle["reason"]),
        (&json!(false), &json!("the event does not happen in this version"))
    );
    let doctor = world.run(&loci().args(["doctor"]));
    assert!(
        doctor.stdout.contains("`TeammateIdle` does not happen in this version yet"),
        "{}",
        doctor.stdout
    );
}

#[tokio::test]
async fn setup_hooks_run_when_asked_for() {
    for (flags, triggers, n_requests) in [
        (vec![], vec![], 1),
        (vec!["--init"], vec!["init"], 1),
        (vec!["--maintenance"], vec!["maintenance"], 1),
    ] {
        let world = World::new(Step::text("x")).await;
        configure(&world, json!({"Setup": command("", KEEP)}));
        let output = world.run(&print(["go"]).args(flags.clone()));
        assert_eq!(output.code, Some(0), "{output:?}");
        let told: Vec<Value> = kept(&world, "kept.jsonl").iter().map(|it| it["trigger"].clone()).collect();
        assert_eq!(told, triggers);
        assert_eq!(world.model.requests().len(), n_requests, "{flags:?}");
    }
    let world = World::new(Step::text("x")).await;
    configure(&world, json!({"Setup": command("init", KEEP), "SessionStart": command("", KEEP)}));
    let output = world.run(&loci().args(["--init-only"]));
    assert_eq!((output.code, world.model.requests().len()), (Some(0), 0), "{output:?}");
    assert_eq!(kept(&world, "kept.jsonl").len(), 2);
}

#[tokio::test]
async fn variables_that_a_start_hook_leaves_reach_later_commands() {
    let steps = vec![
        Step::call("Bash", json!({"command": "echo got-$LEFT; echo dir-$LOCI_HOOK_ENV"})),
        Step::text("Done."),
    ];
    let world = World::new(steps).await;
    configure(&world, json!({"SessionStart": command("", "echo 'export LEFT=it' >> \"$CLAUDE_ENV_FILE\"")}));
    run(&world);
    let told = last_message(&world);
    assert!(told.contains("got-it\\ndir-\\n") || told.contains("got-it\\ndir-\""), "{told}");
}

#[tokio::test]
async fn failures_and_directories_are_told() {
    let world = World::new(Step::status(400).error("invalid_request_error", "no")).await;
    configure(&world, json!({"StopFailure": command("", KEEP)}));
    let output = world.run(&print(["go"]));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(kept(&world, "kept.jsonl")[0]["error"], "invalid_request");

    let world = World::new(vec![
        Step::call("Bash", json!({"command": "mkdir -p out && cd out"})),
        Step::text("Done."),
    ])
    .await;
    world.home.write("CLAUDE.md", "Be brief.");
    let keep = "cat >> \"$CLAUDE_PROJECT_DIR/kept.jsonl\"";
    configure(
        &world,
        json!({"CwdChanged": command("", keep), "InstructionsLoaded": command("", keep), "MessageDisplay": command("", keep)}),
    );
    run(&world);
    let mut payloads = kept(&world, "kept.jsonl");
    payloads.sort_by_key(|it| it["hook_event_name"].to_string());
    assert_eq!(payloads.len(), 3, "{payloads:?}");
    assert_eq!(payloads[0]["new_cwd"], json!(world.home.project().join("out")));
    assert_eq!(
        (&payloads[1]["memory_type"], &payloads[1]["load_reason"]),
        (&json!("Project"), &json!("session_start"))
    );
    assert_eq!(payloads[2]["delta"], "Done.");
}

/// Returns a recipe of the guide.
fn recipe(name: &str) -> String {
    let guide = include_str!("../../../../../docs/hooks.md");
    let (_, rest) = guide.split_once(&format!("```json recipe={name}\n")).unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

#[tokio::test]
async fn recipe_formats_after_an_edit() {
    let world = World::new(vec![
        Step::call("Write", json!({"file_path": "a.txt", "content": "x  \ny\t\n"})),
        Step::text("Done."),
    ])
    .await;
    world.home.write_config("settings.json", recipe("format"));
    run(&world);
    assert_eq!(world.home.read("a.txt"), "x\ny\n");
}

#[tokio::test]
async fn recipe_protects_files() {
    let steps = vec![
        Step::call("Write", json!({"file_path": "secrets/key", "content": "x"})),
        Step::call("Write", json!({"file_path": "open", "content": "x"})),
        Step::text("Done."),
    ];
    let world = World::new(steps).await;
    world.home.write_config("settings.json", recipe("protect"));
    run(&world);
    assert!(!world.home.project().join("secrets/key").exists() && world.home.project().join("open").exists());
}

#[tokio::test]
async fn recipe_adds_context() {
    let world = World::with_git(Step::text("Done.")).await;
    world.home.write_config("settings.json", recipe("context"));
    run(&world);
    assert!(last_message(&world).contains("Branch: "), "{}", last_message(&world));
}

#[tokio::test]
async fn recipe_notifies_at_the_end() {
    let world = World::new(Step::text("Done.")).await;
    world.home.write(".claude/settings.json", recipe("notify"));
    trust(&world);
    run(&world);
    assert!(world.home.project().join(".finished").exists());
}

#[tokio::test]
async fn recipe_goes_on_until_the_tests_pass() {
    let steps = vec![
        Step::text("Done."),
        Step::call("Bash", json!({"command": "touch fixed"})),
        Step::text("Now done."),
    ];
    let world = World::new(steps).await;
    let script =
        world.home.write("run-tests.sh", "#!/bin/sh\n[ -f fixed ] || { echo 1 test failed; exit 1; }\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.home.write_config("settings.json", recipe("tests"));
    let output = run(&world);
    assert_eq!(super::result(&output)["result"], "Now done.");
    assert!(world.model.requests()[1].json["messages"].to_string().contains("1 test failed"));
}
