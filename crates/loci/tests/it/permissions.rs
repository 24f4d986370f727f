//! What runs unasked, what does not, and how a run without anybody to ask says so.

use crate::support::{World, assert_fine, control, is_result, loci, print, stream, user, watched};
use expect_test::expect;
use loci_testkit::{Step, TestHome};
use serde_json::{Value, json};

/// A call, with the paths of the world it is made in.
type Call = fn(&World) -> (&'static str, Value);

fn read_inside(world: &World) -> (&'static str, Value) {
    ("Read", json!({"file_path": world.path("notes.txt")}))
}

fn read_outside(world: &World) -> (&'static str, Value) {
    ("Read", json!({"file_path": outside(&world.home)}))
}

fn read_through_a_link(world: &World) -> (&'static str, Value) {
    ("Read", json!({"file_path": world.path("link/secret.txt")}))
}

fn search_outside(world: &World) -> (&'static str, Value) {
    ("Grep", json!({"pattern": "secret", "path": outside(&world.home)}))
}

fn list(_: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": "ls -la && wc -l notes.txt"}))
}

fn print_outside(world: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": format!("cat {}", outside(&world.home))}))
}

fn write_inside(world: &World) -> (&'static str, Value) {
    ("Write", json!({"file_path": world.path("new.txt"), "content": "x"}))
}

fn write_outside(world: &World) -> (&'static str, Value) {
    ("Write", json!({"file_path": world.home.home().join("new.txt"), "content": "x"}))
}

fn write_through_a_link(world: &World) -> (&'static str, Value) {
    ("Write", json!({"file_path": world.path("link/new.txt"), "content": "x"}))
}

fn write_what_steers_tools(world: &World) -> (&'static str, Value) {
    ("Write", json!({"file_path": world.path(".git/hooks/pre-commit"), "content": "x"}))
}

fn touch(_: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": "touch made"}))
}

fn touch_no(_: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": "ls && touch no"}))
}

fn touch_two(_: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": "touch made && touch more"}))
}

fn substitute(_: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": "echo $(touch made)"}))
}

fn redirect(_: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": "ls > made"}))
}

fn remove_home(_: &World) -> (&'static str, Value) {
    ("Bash", json!({"command": "rm -rf ~"}))
}

fn outside(home: &TestHome) -> String {
    home.home().join("secret.txt").display().to_string()
}

/// Lets the model make one call under these arguments and tells whether it ran.
async fn ran(args: &[&str], call: Call) -> bool {
    let world = World::new([]).await;
    world.home.write("notes.txt", "one\n");
    world.home.write_home("secret.txt", "secret\n");
    std::os::unix::fs::symlink(world.home.home(), world.home.project().join("link")).unwrap();
    let (tool, input) = call(&world);
    let world = world.then([Step::call(tool, input), Step::text("I see.")]).await;
    let output = world.run(&watched(["hi"]).args(args.iter().copied()).env("IS_SANDBOX", "1"));
    assert_fine(&output);
    let denials = output.json_lines().pop().unwrap()["permission_denials"].as_array().unwrap().len();
    let results = world.last_request().tool_results();
    let is_denied = results[0].text.contains("was not granted");
    assert_eq!(denials, usize::from(is_denied), "{}", results[0].text);
    assert!(world.home.home().exists());
    world.session();
    !is_denied
}

/// Checks one mode: calls that run and calls that do not.
async fn check_mode(args: &[&str], run: &[(&str, Call)], denied: &[(&str, Call)]) {
    for (name, call) in run {
        assert!(ran(args, *call).await, "{args:?}: {name} should run");
    }
    for (name, call) in denied {
        assert!(!ran(args, *call).await, "{args:?}: {name} should be denied");
    }
}

/// Names calls for messages.
macro_rules! calls {
    ($($call:ident),* $(,)?) => { &[$((stringify!($call), $call as Call)),*] };
}

#[tokio::test]
async fn default_mode_allows_only_reads_inside() {
    check_mode(
        &[],
        calls![read_inside, list],
        calls![
            read_outside,
            read_through_a_link,
            search_outside,
            print_outside,
            write_inside,
            touch,
            substitute,
            redirect
        ],
    )
    .await;
}

#[tokio::test]
async fn accept_edits_mode_allows_edits_inside() {
    check_mode(
        &["--permission-mode", "acceptEdits"],
        calls![read_inside, list, write_inside, touch, redirect],
        calls![write_outside, write_through_a_link, write_what_steers_tools, substitute, remove_home],
    )
    .await;
}

#[tokio::test]
async fn plan_mode_denies_changes() {
    check_mode(&["--permission-mode", "plan"], calls![read_inside, list], calls![write_inside, touch]).await;
    check_mode(&["--permission-mode=dontAsk"], calls![read_inside, list], calls![write_inside, touch]).await;
}

#[tokio::test]
async fn bypass_mode_runs_all_but_denied_calls() {
    check_mode(
        &["--permission-mode", "bypassPermissions", "--disallowedTools", "Bash(touch no)"],
        calls![read_outside, write_inside, touch],
        calls![touch_no, remove_home],
    )
    .await;
    check_mode(&["--dangerously-skip-permissions"], calls![touch, write_outside], calls![remove_home]).await;
}

#[tokio::test]
async fn rules_allow_what_they_name() {
    check_mode(
        &["--allowedTools", "Bash(touch made)"],
        calls![touch],
        calls![touch_two, touch_no, substitute],
    )
    .await;
    check_mode(&["--allowedTools", "Bash"], calls![touch, touch_two], calls![remove_home, write_inside])
        .await;
    check_mode(&["--allowedTools", "Write,Bash(touch made)"], calls![write_inside, touch], calls![touch_two])
        .await;
    check_mode(&["--allowed-tools", "Read Write"], calls![write_inside], calls![touch]).await;
    check_mode(&["--allowedTools", "Write", "Bash(touch made)"], calls![write_inside, touch], calls![]).await;
    check_mode(
        &["--permission-mode", "dontAsk", "--allowedTools=Write"],
        calls![write_inside],
        calls![touch],
    )
    .await;
    check_mode(
        &["--allowedTools", "Bash", "--disallowedTools", "Bash(touch no)"],
        calls![touch],
        calls![touch_no],
    )
    .await;
}

#[tokio::test]
async fn disallowed_tool_is_not_offered() {
    let script = [Step::call("Write", json!({"file_path": "x", "content": ""})), Step::text("I see.")];
    let world = World::new(script).await;
    let binary = watched(["hi", "--disallowedTools", "Write,Bash(touch no)", "--allowedTools", "Write"]);
    let output = world.run(&binary);
    assert_fine(&output);
    let init = &output.json_lines()[0];
    let request = world.last_request();
    // The frame knows the tool that sends agents out by its older name.
    let names = |tools: Vec<&str>| -> Vec<String> {
        tools
            .into_iter()
            .map(|tool| if tool == "Agent" { "Task".to_owned() } else { tool.to_owned() })
            .collect()
    };
    assert_eq!(init["tools"], json!(names(request.tool_names())));
    expect!["Agent Bash Edit Glob Grep ListAgents NotebookEdit Read Recall SendMessage TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate EnterWorktree ExitWorktree CronCreate CronDelete CronList ScheduleWakeup WebFetch WebSearch Monitor"]
        .assert_eq(&request.tool_names().join(" "));
    expect!["<tool_use_error>No such tool available: Write. The tools are: Agent, Bash, Edit, Glob, Grep, ListAgents, NotebookEdit, Read, Recall, SendMessage, TaskCreate, TaskGet, TaskList, TaskOutput, TaskStop, TaskUpdate, EnterWorktree, ExitWorktree, CronCreate, CronDelete, CronList, ScheduleWakeup, WebFetch, WebSearch, Monitor</tool_use_error>"].assert_eq(&request.tool_results()[0].text);
}

#[tokio::test]
async fn tools_flag_chooses_the_offered_tools() {
    for (tools, expected) in [
        ("Read,Grep", "Grep Read"),
        (
            "default",
            "Agent Bash Edit Glob Grep ListAgents NotebookEdit Read Recall SendMessage TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate Write EnterWorktree ExitWorktree CronCreate CronDelete CronList ScheduleWakeup WebFetch WebSearch Monitor",
        ),
        ("", ""),
    ] {
        let world = World::new([]).await;
        let output = world.run(&watched(["hi", "--tools", tools]));
        assert_fine(&output);
        let request = world.model.requests().pop().unwrap();
        assert_eq!(request.tool_names().join(" "), expected);
        let told: Vec<&str> = request
            .tool_names()
            .into_iter()
            .map(|tool| if tool == "Agent" { "Task" } else { tool })
            .collect();
        assert_eq!(output.json_lines()[0]["tools"], json!(told));
        world.model.requests_valid().unwrap();
    }
}

#[tokio::test]
async fn a_denial_says_why_and_is_reported() {
    let world =
        World::new([Step::call("Bash", json!({"command": "touch made"})), Step::text("I may not.")]).await;
    let output = world.print(["hi", "--output-format", "json"]);
    assert_fine(&output);
    let result = &output.json_lines()[0];
    expect![[r#"[{"tool_name":"Bash","tool_use_id":"<toolu-1>","tool_input":{"command":"touch made"}}]"#]]
        .assert_eq(&world.normaliser().value(&result["permission_denials"]).to_string());
    expect![[r#"
        user: hi
        assistant: Bash {"command":"touch made"} <toolu-1>
        user: <toolu-1> error: Permission to use Bash was not granted: it changes something and no rule allows it. The rule `Bash(touch made)` under permissions.allow would allow it. This run cannot ask anyone. Take another way, or tell the user which permission is needed.
    "#]].assert_eq(&world.conversation());
    assert!(!world.home.project().join("made").exists());
}

#[tokio::test]
async fn root_may_not_bypass_outside_a_sandbox() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new([]).await;
    for args in [
        &["--permission-mode", "bypassPermissions"][..],
        &["--dangerously-skip-permissions"],
        &["--allow-dangerously-skip-permissions"],
    ] {
        let output = world.run(&print(["hi"]).args(args.iter().copied()));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(output.stderr.contains("IS_SANDBOX"), "{}", output.stderr);
    }
    assert_eq!(world.model.requests().len(), 0);
}

#[tokio::test]
async fn a_client_may_switch_to_bypassing_only_if_that_was_allowed_at_the_start() {
    for (args, expected) in [(&["--allow-dangerously-skip-permissions"][..], true), (&[], false)] {
        let world =
            World::new([Step::call("Bash", json!({"command": "touch made"})), Step::text("ok")]).await;
        let mut session = world.start(&stream([]).args(args.iter().copied()).env("IS_SANDBOX", "1"));
        session.write_json(&control(
            "r1",
            json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
        ));
        let answer = session.wait_for_json(|frame| frame["type"] == "control_response");
        assert_eq!(answer["response"]["subtype"] == "success", expected);
        session.write_json(&user("hi"));
        session.wait_for_json(is_result);
        assert_fine(&session.finish());
        assert_eq!(world.home.project().join("made").exists(), expected);
    }
}

#[tokio::test]
async fn commands_do_not_get_the_keys() {
    let world = World::new([Step::call("Bash", json!({"command": "env"})), Step::text("ok")]).await;
    assert_fine(&world.run(&loci().args(["-p", "hi", "--allowedTools", "Bash"]).env("SOME_SETTING", "kept")));
    let text = world.last_request().tool_results().remove(0).text;
    assert!(!text.contains("sk-ant-test") && text.contains("SOME_SETTING=kept"), "{text}");
}
