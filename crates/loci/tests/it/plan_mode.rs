//! Plan mode: entered by the model or from the start, one file to plan in, approved by whoever is asked.

use loci_testkit::{Session, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, control, is_result, loci, print, stream, user};

fn enter() -> Step {
    Step::call("EnterPlanMode", json!({}))
}

fn exit() -> Step {
    Step::call("ExitPlanMode", json!({}))
}

fn asks_for(name: &str) -> impl Fn(&Value) -> bool + '_ {
    move |frame| frame["request"]["subtype"] == "can_use_tool" && frame["request"]["tool_name"] == name
}

fn answer(session: &mut Session, question: &Value, response: Value) {
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": response});
    session.write_json(&json!({"type": "control_response", "response": response}));
}

fn mode_changed(mode: &str) -> impl Fn(&Value) -> bool + '_ {
    move |frame| frame["subtype"] == "status" && frame["permissionMode"] == mode
}

/// Returns the only plan file of the config home.
fn plan_file(world: &World) -> std::path::PathBuf {
    let dir = world.home.config_home().join("plans");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// A session with a client that answers, in which the plan's file is known to be this one: its name comes from a resumed
/// transcript, so that the script can write it.
const SESSION: &str = "0a0a0a0a-0001-4000-8000-000000000001";

/// Enters plan mode in a first run, and returns a world with the plan's file.
async fn planned() -> (World, String) {
    let world = World::new([enter(), Step::text("Planning.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio", "--session-id", SESSION]));
    session.write_json(&user("plan it"));
    session.wait_for_json(mode_changed("plan"));
    session.wait_for_json(is_result);
    assert_eq!(session.finish().code, Some(0));
    let told = world.last_request().last_user_text();
    let file = told.split("The plan file is ").nth(1).unwrap().split(". ").next().unwrap().to_owned();
    assert!(told.contains("Edit no file but the plan file"), "{told}");
    (world, file)
}

fn planning() -> loci_testkit::Binary {
    stream(["--permission-prompt-tool", "stdio", "--resume", SESSION, "--permission-mode", "plan"])
}

#[tokio::test]
async fn plan_file_alone_is_written_unasked_and_the_plan_is_approved_by_the_client() {
    let (world, file) = planned().await;
    let write = Step::call("Write", json!({"file_path": file, "content": "# Add a cache\n1. Build it"}));
    let other = Step::call("Write", json!({"file_path": world.path("src.rs"), "content": "x"}));
    let script = [
        write,
        other,
        exit(),
        Step::call("Write", json!({"file_path": world.path("done.rs"), "content": "x"})),
        Step::text("Done."),
    ];
    let world = world.then(script).await;
    let mut session = world.start(&planning());
    session.write_json(&user("go on"));
    let question = session.wait_for_json(asks_for("Write"));
    assert_eq!(question["request"]["input"]["file_path"], world.path("src.rs"), "the plan needs no question");
    answer(&mut session, &question, json!({"behavior": "deny", "message": "not yet"}));
    let question = session.wait_for_json(asks_for("ExitPlanMode"));
    let request = &question["request"];
    assert_eq!(request["input"]["plan"], "# Add a cache\n1. Build it");
    assert_eq!(request["input"]["planFilePath"], file);
    let suggestion = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    assert_eq!(request["permission_suggestions"], json!([suggestion]));
    answer(&mut session, &question, json!({"behavior": "allow", "updatedPermissions": [suggestion]}));
    session.wait_for_json(mode_changed("acceptEdits"));
    let frame = session.wait_for_json(|frame| frame["tool_use_result"]["plan"].is_string());
    assert_eq!(frame["tool_use_result"]["filePath"], file);
    session.wait_for_json(is_result);
    assert_eq!(session.finish().code, Some(0));
    assert!(world.home.project().join("done.rs").exists(), "edits are accepted from now on");
    let entries = world.session();
    let slug = std::path::Path::new(&file).file_stem().unwrap().to_str().unwrap();
    assert_eq!(slug.split('-').count(), 3, "{slug}");
    assert_eq!(entries.iter().rev().find_map(|it| it["slug"].as_str()), Some(slug));
    assert!(entries.iter().any(|it| it["aiTitle"] == "Add a cache"), "an approved plan names the session");
    let kinds: Vec<&str> = entries.iter().filter_map(|it| it["attachment"]["type"].as_str()).collect();
    assert!(kinds.ends_with(&["plan_mode_exit"]), "{kinds:?}");
}

#[tokio::test]
async fn approval_without_a_mode_goes_back_to_the_one_before_and_an_edited_plan_is_kept() {
    let (world, file) = planned().await;
    std::fs::write(&file, "1. Build").unwrap();
    let world = world.then([exit(), Step::text("Done.")]).await;
    let mut session = world.start(&planning());
    session.write_json(&user("go on"));
    let question = session.wait_for_json(asks_for("ExitPlanMode"));
    let mut input = question["request"]["input"].clone();
    input["plan"] = json!("1. Build\n2. Test");
    answer(&mut session, &question, json!({"behavior": "allow", "updatedInput": input}));
    session.wait_for_json(mode_changed("default"));
    session.wait_for_json(is_result);
    session.finish();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1. Build\n2. Test");
    let told = world.last_request().tool_results().remove(0).text;
    assert!(told.contains("changed the plan and approved it") && told.contains("2. Test"), "{told}");
}

#[tokio::test]
async fn refused_plan_stays_in_plan_mode_with_the_reason() {
    let (world, file) = planned().await;
    std::fs::write(&file, "1. Build").unwrap();
    let world = world.then([exit(), Step::text("I see.")]).await;
    let mut session = world.start(&planning());
    session.write_json(&user("go on"));
    let question = session.wait_for_json(asks_for("ExitPlanMode"));
    answer(&mut session, &question, json!({"behavior": "deny", "message": "Use a library."}));
    session.wait_for_json(is_result);
    session.write_json(&user("and?"));
    let init = session.wait_for_json(|frame| frame["subtype"] == "init");
    assert_eq!(init["permissionMode"], "plan");
    session.wait_for_json(is_result);
    session.finish();
    assert_eq!(world.requests()[1].tool_results()[0].text, "Use a library.");
}

#[tokio::test]
async fn plan_without_a_file_or_outside_plan_mode_is_refused() {
    let (world, _) = planned().await;
    let world = world.then([exit(), Step::text("I see.")]).await;
    let mut session = world.start(&planning());
    session.write_json(&user("go on"));
    session.wait_for_json(is_result);
    session.finish();
    assert!(world.last_request().tool_results()[0].text.contains("There is no plan yet. Write it to"));

    let world = World::new([exit(), Step::text("I see.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("hi"));
    session.wait_for_json(is_result);
    session.finish();
    assert!(world.last_request().tool_results()[0].text.contains("Plan mode is not on"));
}

#[tokio::test]
async fn headless_run_in_plan_mode_plans_without_exit_and_edits_nothing() {
    let write = |path: String| Step::call("Write", json!({"file_path": path, "content": "x"}));
    let world = World::new([Step::text("x")]).await;
    let target = world.path("src.rs");
    let world = world.then([write(target), Step::text("The plan is ...")]).await;
    assert_fine(&world.run(&print(["plan it", "--permission-mode", "plan"])));
    let first = world.requests().remove(0);
    let told = first.last_user_text();
    assert!(told.contains("Nobody can be asked in this run") && !told.contains("ExitPlanMode"), "{told}");
    assert!(!first.tool_names().iter().any(|name| name.ends_with("PlanMode")), "{:?}", first.tool_names());
    assert!(world.last_request().tool_results()[0].is_error);
    assert!(!world.home.project().join("src.rs").exists());
}

#[tokio::test]
async fn leaving_plan_mode_otherwise_is_told_with_the_next_prompt() {
    let world = World::new([Step::text("1"), Step::text("2"), Step::text("3")]).await;
    let mut session =
        world.start(&stream(["--permission-prompt-tool", "stdio", "--permission-mode", "plan"]));
    for (n, mode) in [(0, None), (1, None), (2, Some("default"))] {
        if let Some(mode) = mode {
            let request = json!({"subtype": "set_permission_mode", "mode": mode});
            session.write_json(&json!({"type": "control_request", "request_id": "m", "request": request}));
            session.wait_for_json(mode_changed(mode));
        }
        session.write_json(&user(&format!("prompt {n}")));
        session.wait_for_json(is_result);
    }
    session.finish();
    let told: Vec<String> = world.requests().iter().map(|it| it.last_user_text()).collect();
    for (text, expected) in
        told.iter().zip(["How to go about it", "Plan mode is still on", "Plan mode is off"])
    {
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn hook_approves_a_plan_only_with_updated_input() {
    for (has_input, expected) in
        [(true, "The user has approved the plan"), (false, "the user has to approve the plan")]
    {
        let (world, file) = planned().await;
        std::fs::write(&file, "1. Build").unwrap();
        let mut output = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow"});
        if has_input {
            output["updatedInput"] = json!({"plan": "1. Build", "planFilePath": file});
        }
        let seen = world.home.project().with_file_name("seen.json");
        let said = world.home.project().with_file_name("hook.json");
        std::fs::write(&said, json!({"hookSpecificOutput": output}).to_string()).unwrap();
        let command = format!("cat > {} && cat {}", seen.display(), said.display());
        let hook = json!({"type": "command", "command": command});
        let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "ExitPlanMode", "hooks": [hook]}]}});
        world.home.write_config("settings.json", hooks.to_string());
        let world = world.then([exit(), Step::text("Done.")]).await;
        assert_fine(&world.run(&print(["go on", "--resume", SESSION, "--permission-mode", "plan"])));
        let told = world.last_request().tool_results().remove(0).text;
        assert!(told.contains(expected), "{told}");
        let seen: Value = serde_json::from_slice(&std::fs::read(seen).unwrap()).unwrap();
        assert_eq!(seen["tool_input"], json!({"plan": "1. Build", "planFilePath": file}));
    }
}

#[tokio::test]
async fn plan_outlasts_a_compaction() {
    let (world, file) = planned().await;
    std::fs::write(&file, "1. Build the cache").unwrap();
    let summary = Step::text("<summary>All that was said.</summary>");
    let world = world.then([Step::text("a"), summary, Step::text("b")]).await;
    let mut session = world.start(&planning());
    for prompt in ["tell me a lot", "/compact", "go on"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.finish();
    let told = serde_json::to_string(world.last_request().messages()).unwrap();
    assert!(told.contains("1. Build the cache") && told.contains("Edit no file but the plan file"), "{told}");
}

#[tokio::test]
async fn plans_directory_of_the_settings_is_used_when_it_is_in_the_project() {
    for (chosen, is_used) in [("docs/plans", true), ("../plans", false)] {
        let world = World::new([Step::text("1")]).await;
        world.home.write_config("settings.json", json!({"plansDirectory": chosen}).to_string());
        let output = world.run(&print(["plan it", "--permission-mode", "plan"]));
        assert_fine_or_warned(&output, is_used);
        assert_eq!(world.home.project().join("docs/plans").exists(), is_used);
        assert_eq!(world.home.config_home().join("plans").exists(), !is_used);
    }
}

fn assert_fine_or_warned(output: &loci_testkit::Output, is_fine: bool) {
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stderr.contains("plansDirectory"), !is_fine, "{output:?}");
}

#[tokio::test]
async fn fork_has_a_plan_file_of_its_own() {
    let (world, file) = planned().await;
    std::fs::write(&file, "1. Build").unwrap();
    let world = world.then([Step::text("x")]).await;
    let fork = stream([
        "--permission-prompt-tool",
        "stdio",
        "--resume",
        SESSION,
        "--fork-session",
        "--permission-mode",
        "plan",
    ]);
    let mut session = world.start(&fork);
    session.write_json(&user("go on"));
    session.wait_for_json(is_result);
    session.finish();
    let told = world.last_request().last_user_text();
    assert!(told.contains("Plan mode is on") && !told.contains(&file), "{told}");
    plan_file(&world);
}

#[tokio::test]
async fn opusplan_has_opus_plan_and_sonnet_do_the_work_from_the_approval_on() {
    let (world, file) = planned().await;
    std::fs::write(&file, "1. Build").unwrap();
    let world = world.then([exit(), Step::text("Done."), Step::text("More.")]).await;
    let models = |world: &World| -> Vec<String> {
        let requests = world.requests();
        requests.iter().map(|it| it.json["model"].as_str().unwrap().to_owned()).collect()
    };
    let flags = ["--model", "opusplan", "--resume", SESSION, "--permission-mode", "plan"];
    let formats = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    let binary = loci().arg("-p").args(formats).args(["--permission-prompt-tool", "stdio"]).args(flags);
    let mut session = world.start(&binary);
    session.write_json(&user("go on"));
    let question = session.wait_for_json(asks_for("ExitPlanMode"));
    answer(&mut session, &question, json!({"behavior": "allow"}));
    session.wait_for_json(is_result);
    assert_eq!(models(&world), ["claude-opus-5-5", "claude-sonnet-5-5"]);
    // By a request of the client, too; whoever names one model has one.
    for (name, expected) in [("opusplan", "claude-opus-5-5"), ("haiku", "claude-haiku-5-5")] {
        session.write_json(&control("m", json!({"subtype": "set_model", "model": name})));
        session.write_json(&control("p", json!({"subtype": "set_permission_mode", "mode": "plan"})));
        session.write_json(&user("and now?"));
        session.wait_for_json(is_result);
        assert_eq!(models(&world).last().unwrap(), expected, "{name}");
    }
    assert_eq!(session.finish().code, Some(0));
}
