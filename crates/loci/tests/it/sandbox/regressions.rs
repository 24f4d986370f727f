//! What went wrong elsewhere, seen from a session.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{bash, has_full, on, results};
use crate::support::{World, is_result, loci, stream, user, wait_for_file, watched};

#[tokio::test]
async fn path_with_a_slash_at_its_end_is_shut_like_any_other() {
    let settings = json!({"sandbox": {"enabled": true, "filesystem": {"denyRead": ["~/private/"]}}});
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    world.home.write_config("settings.json", settings.to_string());
    world.home.write_home("private/key", "secret");
    let steps = [Step::call("Bash", bash("d=~/private; cat $d/key")), Step::text("I see.")];
    let world = world.then(steps).await;
    let output = world.run(&watched(["hi"]));
    let text = world.last_request().tool_results().remove(0).text;
    assert!(!text.contains("secret") && text.contains("Permission denied"), "{text}");
    assert!(
        text.contains("by `sandbox.filesystem.denyRead` in ") && text.contains("settings.json:1"),
        "{text}"
    );
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[tokio::test]
async fn expansions_run_unasked_and_temporary_files_have_a_place() {
    let calls = [
        bash("X=made; touch $X && echo $(ls $X)"),
        bash("f=$(mktemp) && echo hi > $f && cat $f && dirname $f"),
        bash("mkdir sub && cd sub"),
        bash("python3 -c 'import os; os.rmdir(\"../sub\")'"),
        bash("pwd && touch again"),
        bash("git --version | wc -l; seq 1000 | grep 7 | wc -l"),
    ];
    let Some((texts, _, world)) = results(on(), &[], &calls).await else { return };
    assert_eq!(texts[0], "made");
    assert!(texts[1].starts_with("hi\n") && texts[1].contains("/sandbox"), "{}", texts[1]);
    assert!(!world.home.project().join("sub").exists(), "{}", texts[3]);
    assert!(texts[4].contains(&world.home.project().display().to_string()), "{}", texts[4]);
    assert!(world.home.project().join("again").exists(), "{}", texts[4]);
    assert_eq!(texts[5], "1\n271");
}

/// Probe 21: a symlink that a sandboxed command leaves is not written through by what runs outside.
#[tokio::test]
async fn symlink_left_by_a_command_leads_no_tool_outside() {
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    world.home.write_config("settings.json", json!({"sandbox": {"enabled": true}}).to_string());
    world.home.write_home("outside.txt", "outside\n");
    let (link, behind) = (world.path("link"), world.path("dir/new.txt"));
    let world = world
        .then([
            Step::call("Bash", bash("ln -s ../home/outside.txt link; ln -s ../home dir")),
            Step::call("Write", json!({"file_path": link, "content": "changed"})),
            Step::call("Write", json!({"file_path": behind, "content": "changed"})),
            Step::text("I see."),
        ])
        .await;
    world.run(&watched(["hi"]).args(["--permission-mode", "acceptEdits"]));
    assert_eq!(std::fs::read_to_string(world.home.home().join("outside.txt")).unwrap(), "outside\n");
    assert!(!world.home.home().join("new.txt").exists());
    assert!(world.home.project().join("link").is_symlink());
}

/// Probe 60.
#[tokio::test]
async fn settings_that_change_while_a_command_runs_do_not_open_its_sandbox() {
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    world.home.write_config("settings.json", on().to_string());
    let waits = "touch started; while [ ! -e go ]; do sleep 0.01; done; touch ../home/out";
    let world = world
        .then([
            Step::call("Bash", bash(waits)),
            Step::call("Bash", bash("touch ../home/out2")),
            Step::text("I see."),
            Step::text("Bye."),
        ])
        .await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("hi"));
    let project = world.home.project();
    wait_for_file(&project.join("started"));
    let off = json!({"sandbox": {"enabled": false}, "permissions": {"allow": ["Bash"]}});
    world.home.write_config("settings.json", off.to_string());
    std::fs::write(project.join("go"), "").unwrap();
    session.wait_for_json(is_result);
    session.write_json(&user("again"));
    session.wait_for_json(is_result);
    let output = session.finish();
    for name in ["out", "out2"] {
        assert!(!world.home.home().join(name).exists(), "{name}: {}", output.stderr);
    }
    let texts: Vec<String> =
        world.requests().iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect();
    assert!(texts.iter().all(|text| text.contains("Read-only file system")), "{texts:?}");
}

#[tokio::test]
async fn running_outside_is_a_question_and_a_yes_is_for_that_call() {
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    world.home.write_config("settings.json", on().to_string());
    let outside = |command: &str| json!({"command": command, "dangerouslyDisableSandbox": true});
    let world = world
        .then([
            Step::call("Bash", bash("touch ../home/a")),
            Step::call("Bash", outside("touch ../home/a")),
            Step::call("Bash", bash("touch ../home/b")),
            Step::text("I see."),
        ])
        .await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("hi"));
    let question = session.wait_for_json(|it| it["request"]["subtype"] == "can_use_tool" || is_result(it));
    assert_eq!(question["request"]["input"]["dangerouslyDisableSandbox"], true, "{question}");
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
    session.write_json(&json!({"type": "control_response", "response": response}));
    session.wait_for_json(is_result);
    session.finish();
    let texts: Vec<String> =
        world.requests().iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect();
    assert!(
        texts[0].contains("[sandbox] writing") && texts[0].contains("dangerouslyDisableSandbox"),
        "{}",
        texts[0]
    );
    assert!(world.home.home().join("a").exists(), "{}", texts[1]);
    assert!(!world.home.home().join("b").exists(), "{}", texts[2]);
}

/// A pattern over many files makes no tool's text longer.
#[tokio::test]
async fn patterns_do_not_swell_what_the_model_is_told() {
    let world = World::new([]).await;
    if !has_full(&world) {
        return;
    }
    for n in 0..500 {
        world.home.write(format!("many/{n}/.env"), "x");
    }
    let mut lengths = Vec::new();
    let mut world = world;
    for deny in [json!([]), json!(["**/.env", "**/many/**"])] {
        // Relative patterns of a project's file start at the project; who restricts need not be trusted.
        let settings = json!({"sandbox": {"filesystem": {"denyRead": deny}}});
        world.home.write_config("settings.json", on().to_string());
        world.home.write(".claude/settings.json", settings.to_string());
        world = world.then([Step::text("hi")]).await;
        world.run(&watched(["hi"]));
        let request = world.last_request();
        let tools: &Value = &request.json["tools"];
        lengths.push(tools.to_string().len() + request.json["system"].to_string().len());
    }
    assert_eq!(lengths[0], lengths[1]);
    let hidden = world.run(&loci().args(["sandbox", "run", "--", "cat", "many/7/.env"]));
    assert!(hidden.code != Some(0) && !hidden.stdout.contains('x'), "{hidden:?}");
}
