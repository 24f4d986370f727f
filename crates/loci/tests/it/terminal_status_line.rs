//! The person's own status line, at a real terminal.

use loci_testkit::{Gate, Screen, Script, Step};
use serde_json::{Value, json};

use crate::support::World;

const SIZE: (u16, u16) = (100, 30);

/// Writes a command that keeps what it read and prints three things.
fn configure(world: &World, extra: &Value) {
    let seen = world.path("seen.json");
    let command = format!(
        "cat > {seen}.new && mv {seen}.new {seen}; printf 'LINE \\033[32mone\\033[0m %s\\033]0;evil\\007\\nLINE two %s\\n' \
         $COLUMNS $(grep -o '\"total_input_tokens\":[0-9]*' {seen} | cut -d: -f2)"
    );
    let mut settings = json!({"statusLine": {"type": "command", "command": command, "padding": 1}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        settings[key] = value.clone();
    }
    world.home.write_config("settings.json", settings.to_string());
}

/// Leaves by Ctrl+D, twice; returns all bytes that were written.
fn leave(mut screen: Screen) -> String {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    screen.finish().output.stderr
}

#[tokio::test]
async fn command_shows_its_lines_and_reads_how_the_session_stands() {
    let world = World::new([Step::text("Hello to you.").usage(4321, 7, 0, 0)]).await;
    configure(&world, &json!({}));
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Hello to you.");
    // The run after the answer knows what it used.
    let shown = screen.wait_for("   LINE two 4321");
    assert!(shown.contains("   LINE one 100"), "{shown}");
    let input: Value = serde_json::from_str(&world.home.read("seen.json")).unwrap();
    assert_eq!(
        (&input["hook_event_name"], &input["model"]["display_name"]),
        (&json!("Status"), &json!("Sonnet 4.5"))
    );
    assert!(input["session_id"].as_str().is_some_and(|id| id.len() == 36), "{input}");
    assert!(
        input["prompt_id"].is_string() && input["cost"]["total_cost_usd"].as_f64().unwrap() > 0.0,
        "{input}"
    );
    assert_eq!(input["workspace"]["project_dir"], json!(world.home.project()));
    leave(screen);
}

#[tokio::test]
async fn command_reads_the_limits_of_the_account_and_the_pull_request_of_the_branch() {
    let limit = |name: &str| format!("anthropic-ratelimit-unified-{name}");
    let answer = Step::text("Hello to you.")
        .header(&limit("status"), "allowed")
        .header(&limit("5h-utilization"), "0.25")
        .header(&limit("5h-reset"), "1800000000");
    let world = World::new([answer]).await;
    let seen = world.path("seen.json");
    let command = format!(
        "cat > {seen}.new && mv {seen}.new {seen}; echo LINE $(grep -o '\"number\":[0-9]*' {seen}) $(grep -o '\"five_hour\"' {seen})"
    );
    let settings = json!({"statusLine": {"type": "command", "command": command}});
    world.home.write_config("settings.json", settings.to_string());
    let path = make_branch_with_pull_request(&world);
    let mut screen = world.start_interface_with(["hi"], &[("PATH", &path)], SIZE);
    screen.wait_for("LINE \"number\":446 \"five_hour\"");
    let input: Value = serde_json::from_str(&world.home.read("seen.json")).unwrap();
    let url = "https://github.com/o/n/pull/446";
    assert_eq!(input["pr"], json!({"number": 446, "url": url, "review_state": "approved"}));
    let five_hour = json!({"used_percentage": 25.0, "resets_at": 1_800_000_000});
    assert_eq!(input["rate_limits"], json!({"five_hour": five_hour}));
    leave(screen);
}

/// Has a branch checked out, and a `gh` that knows a pull request of it; returns the search path with that.
fn make_branch_with_pull_request(world: &World) -> String {
    world.home.write(".git/HEAD", "ref: refs/heads/topic\n");
    world.home.write(".git/config", "[remote \"origin\"]\n\turl = git@github.com:o/n.git\n");
    world.home.write(".git/refs/heads/.keep", "");
    world.home.write(".git/objects/.keep", "");
    let said = r#"{"number":446,"url":"https://github.com/o/n/pull/446","state":"OPEN","isDraft":false,"reviewDecision":"APPROVED"}"#;
    world.home.write("bin/gh", format!("#!/bin/sh\necho '{said}'\n"));
    let gh = world.home.project().join("bin/gh");
    std::fs::set_permissions(&gh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", world.path("bin"))
}

#[tokio::test]
async fn pull_request_of_the_branch_is_a_badge_that_goes_with_a_push() {
    let call = json!({"command": "echo git push", "description": "push"});
    let world = World::new([Step::call("Bash", call), Step::text("Pushed.")]).await;
    let path = make_branch_with_pull_request(&world);
    let template = json!({"prUrlTemplate": "https://reviews.example.com/{owner}/{repo}/{number}"});
    world.home.write_config("settings.json", template.to_string());
    let mut screen = world.start_interface_with([], &[("PATH", &path)], SIZE);
    screen.wait_for("PR #446 approved");
    // It is merged by what the model does.
    world.home.write("bin/gh", "#!/bin/sh\nexit 1\n");
    screen.type_text("push it\r");
    screen.wait_for("Pushed.");
    screen.wait_gone("PR #446");
    let written = leave(screen);
    assert!(
        written.contains("https://reviews.example.com/o/n/446\x1b\\"),
        "the badge is a link: {written:?}"
    );
}

#[tokio::test]
async fn pull_request_is_not_asked_for_where_only_needed_traffic_is_wanted() {
    let world = World::new([Step::text("Hello to you.")]).await;
    let path = make_branch_with_pull_request(&world);
    let asked = world.path("asked");
    world.home.write("bin/gh", format!("#!/bin/sh\ntouch {asked}\n"));
    let vars = [("PATH", path.as_str()), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];
    let mut screen = world.start_interface_with(["hi"], &vars, SIZE);
    screen.wait_for("Hello to you.");
    leave(screen);
    assert!(!world.home.project().join("asked").exists());
}

#[tokio::test]
async fn status_line_runs_in_the_sandbox_that_it_asks_for() {
    let world = World::new([Step::text("Hello to you.")]).await;
    if !crate::sandbox::has_full(&world) {
        return;
    }
    std::fs::create_dir(world.home.project().join("allowed")).unwrap();
    let command = "cat > /dev/null; touch in-project 2> /dev/null; touch allowed/file && echo LINE $SANDBOX_RUNTIME $COLUMNS";
    let sandbox = json!({"allowWrite": ["allowed"]});
    let line = json!({"type": "command", "command": command, "sandbox": sandbox});
    world.home.write_config("settings.json", json!({"statusLine": line}).to_string());
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Hello to you.");
    screen.wait_for("LINE 1 100");
    leave(screen);
    let project = world.home.project();
    assert!(project.join("allowed/file").exists() && !project.join("in-project").exists());
}

#[tokio::test]
async fn status_line_whose_sandbox_cannot_be_understood_is_not_run_and_that_is_said() {
    let world = World::new([Step::text("Hello to you.")]).await;
    let sandbox = json!({"network": "everywhere"});
    let line = json!({"type": "command", "command": "touch planted", "sandbox": sandbox});
    world.home.write_config("settings.json", json!({"statusLine": line}).to_string());
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("the command of `statusLine` is not run");
    screen.wait_for("Hello to you.");
    leave(screen);
    assert!(!world.home.project().join("planted").exists());
}

#[tokio::test]
async fn status_line_is_off_where_hooks_are() {
    let world = World::new([Step::text("Hello to you.")]).await;
    configure(&world, &json!({"disableAllHooks": true}));
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Hello to you.");
    screen.wait_for("tokens\n");
    assert!(!screen.contents().contains("LINE"));
    leave(screen);
    assert!(!world.home.project().join("seen.json").exists());
}

/// Starts an agent that waits for `gate` before its model answers.
async fn world_with_agent(gate: &Gate) -> World {
    let call = json!({"description": "look around", "prompt": "look", "subagent_type": "Explore", "run_in_background": true});
    let script = Script::new([Step::call("Agent", call), Step::text("Sent out."), Step::text("All done.")])
        .route([Step::text("Seen.").wait_before_headers(gate.clone())], |request| {
            request.header("x-claude-code-agent-id").is_some()
        });
    World::new(script).await
}

#[tokio::test]
async fn agents_at_work_have_rows_that_a_command_writes() {
    let gate = Gate::new();
    let world = world_with_agent(&gate).await;
    let seen = world.path("rows.json");
    let command = format!(
        "cat > {seen}.new && mv {seen}.new {seen}; id=$(grep -o '\"id\":\"[a-z0-9]*' {seen} | cut -d'\"' -f4); \
         printf '{{\"id\":\"%s\",\"content\":\"MINE %s\"}}\\n' $id $COLUMNS"
    );
    let settings = json!({"subagentStatusLine": {"type": "command", "command": command}});
    world.home.write_config("settings.json", settings.to_string());
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("● MINE 96");
    let input: Value = serde_json::from_str(&world.home.read("rows.json")).unwrap();
    let task = &input["tasks"][0];
    assert_eq!((&task["name"], &task["status"]), (&json!("Explore"), &json!("running")));
    assert_eq!((&task["label"], &task["type"]), (&json!("Explore · look around"), &json!("local_agent")));
    assert_eq!((&input["columns"], &task["cwd"]), (&json!(96), &json!(world.home.project())));
    gate.release();
    screen.wait_for("All done.");
    screen.wait_gone("MINE");
    leave(screen);
}

#[tokio::test]
async fn agents_at_work_are_shown_without_a_command_and_where_hooks_are_off() {
    let gate = Gate::new();
    let world = world_with_agent(&gate).await;
    let command = format!("touch {}", world.path("planted"));
    let settings =
        json!({"subagentStatusLine": {"type": "command", "command": command}, "disableAllHooks": true});
    world.home.write_config("settings.json", settings.to_string());
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("● Explore · look around · 0 tokens");
    gate.release();
    screen.wait_for("All done.");
    leave(screen);
    assert!(!world.home.project().join("planted").exists());
}

#[tokio::test]
async fn plugin_brings_rows_of_agents_where_settings_name_none() {
    let gate = Gate::new();
    let world = world_with_agent(&gate).await;
    world.home.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    world.home.write(
        "kit/rows.sh",
        "id=$(grep -o '\"id\":\"[a-z0-9]*' | cut -d'\"' -f4)\nprintf '{\"id\":\"%s\",\"content\":\"KIT ROW\"}' $id\n",
    );
    let settings =
        json!({"subagentStatusLine": {"type": "command", "command": "sh \"$CLAUDE_PLUGIN_ROOT/rows.sh\""}});
    world.home.write("kit/settings.json", settings.to_string());
    let mut screen = world.start_interface(["go", "--plugin-dir", "kit"], SIZE);
    screen.wait_for("● KIT ROW");
    gate.release();
    screen.wait_for("All done.");
    leave(screen);
}
