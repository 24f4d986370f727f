//! Flags that programs pass: what each changes about a run, and that none is ignored in silence.

use crate::mcp::{config, entry};
use crate::settings::tool_result;
use crate::support::{World, assert_fine, control, is_result, loci, print, stream, user, watched};
use loci_testkit::Step;
use serde_json::{Value, json};

#[tokio::test]
async fn thinking_flags_make_the_thinking_of_the_request() {
    for (args, expected) in [
        (vec!["--model", "claude-opus-4-8"], json!({"type": "adaptive"})),
        (vec!["--model", "claude-opus-4-8", "--thinking", "disabled"], json!({"type": "disabled"})),
        (
            vec!["--model", "claude-opus-4-8", "--thinking=adaptive", "--thinking-display=summarized"],
            json!({"type": "adaptive", "display": "summarized"}),
        ),
        (
            vec!["--model", "claude-sonnet-4-5", "--max-thinking-tokens", "2000"],
            json!({"type": "enabled", "budget_tokens": 2000}),
        ),
        (
            vec!["--model", "claude-sonnet-4-5", "--max-thinking-tokens", "2000", "--thinking", "disabled"],
            json!({"type": "disabled"}),
        ),
    ] {
        let world = World::new([Step::text("Hi.")]).await;
        assert_fine(&world.run(&loci().args(["-p", "hi"]).args(args.clone())));
        assert_eq!(world.last_request().json["thinking"], expected, "{args:?}");
    }
    // A flag wins over what usually turns it off.
    let world = World::new([Step::text("Hi.")]).await;
    let run = loci().args(["-p", "hi", "--model", "claude-opus-4-8", "--thinking", "adaptive"]);
    assert_fine(&world.run(&run.env("MAX_THINKING_TOKENS", "0")));
    assert_eq!(world.last_request().json["thinking"]["type"], "adaptive");
}

#[tokio::test]
async fn task_budget_is_sent_with_its_beta_header() {
    let world = World::new([Step::text("Hi.")]).await;
    assert_fine(&world.print(["hi", "--task-budget", "64000"]));
    let request = world.last_request();
    let budget = &request.json["output_config"]["task_budget"];
    assert_eq!(*budget, json!({"type": "tokens", "total": 64000}));
    assert!(request.header("anthropic-beta").unwrap().contains("task-budgets-2026-03-13"));
}

#[tokio::test]
async fn excluded_dynamic_sections_are_in_the_first_message() {
    let asked = control("r1", json!({"subtype": "initialize", "excludeDynamicSections": true}));
    let lines = format!("{asked}\n{}", user("hi"));
    for (args, stdin) in
        [(print(["hi", "--exclude-dynamic-system-prompt-sections"]), ""), (stream([]), lines.as_str())]
    {
        let world = World::with_git([Step::text("Hi.")]).await;
        assert_fine(&world.run_with_stdin(&args, stdin));
        let request = world.last_request();
        let project = world.home.project().display().to_string();
        assert!(!request.system_text().contains(&project), "the prompt is the same on every machine");
        assert!(request.messages()[0].to_string().contains(&project));
    }
}

#[tokio::test]
async fn restricted_run_has_no_code_tools_no_settings_and_keeps_to_its_directories() {
    let world = World::new([]).await;
    let outside = world.home.project().with_file_name("outside.txt");
    std::fs::write(&outside, "secret").unwrap();
    world.home.write_config("settings.json", r#"{"permissions": {"allow": ["Read(//**)"]}}"#);
    let read = Step::call("Read", json!({"file_path": outside.display().to_string()}));
    let world = world.then([read, Step::text("Done.")]).await;
    let output = world.run(&watched(["hi", "--restricted", "--allowedTools", "Read"]));
    assert_fine(&output);
    let tools = world.requests()[0].tool_names().join(" ");
    assert!(tools.contains("Read"), "{tools}");
    for tool in ["Bash", "Monitor", "EnterWorktree", "ExitWorktree"] {
        assert!(!tools.contains(tool), "{tool}: {tools}");
    }
    let said = tool_result(&world);
    assert!(said.contains("outside the working directories") && !said.contains("secret"), "{said}");
    let output = world.print(["hi", "--restricted", "--dangerously-skip-permissions"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    let output = world.print(["hi", "--restricted", "--permission-mode", "bypassPermissions"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
}

#[tokio::test]
async fn permission_prompts_none_denies_at_once_and_never_asks_the_client() {
    let world = World::new([Step::call("Bash", json!({"command": "touch ran"})), Step::text("Done.")]).await;
    let args = ["--permission-prompt-tool", "stdio", "--permission-prompts", "none"];
    let output = world.run_with_stdin(&stream(args), &user("hi").to_string());
    assert_fine(&output);
    let frames = output.json_lines();
    assert!(!frames.iter().any(|frame| frame["type"] == "control_request"), "{frames:?}");
    let result = frames.iter().find(|frame| is_result(frame)).unwrap();
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
}

#[tokio::test]
async fn permission_prompt_tool_of_a_server_allows_with_other_input_or_denies() {
    for (verdict, made, said) in [
        (
            json!({"behavior": "allow", "updatedInput": {"command": "touch other"}}),
            [false, true],
            "no output",
        ),
        (json!({"behavior": "deny", "message": "Not today."}), [false, false], "Not today."),
        (json!("yes"), [false, false], "permission"),
    ] {
        let world =
            World::new([Step::call("Bash", json!({"command": "touch ran"})), Step::text("Done.")]).await;
        let servers = config(json!({"s": entry(&["--verdict", &verdict.to_string()])}));
        let args = ["hi", "--mcp-config", &servers, "--permission-prompt-tool", "mcp__s__verdict"];
        let output = world.run(&print(args));
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Done.\n"), "{output:?}");
        let exists = ["ran", "other"].map(|name| world.home.project().join(name).exists());
        assert_eq!(exists, made, "{verdict}");
        assert!(tool_result(&world).contains(said), "{verdict}: {}", tool_result(&world));
    }
}

#[tokio::test]
async fn permission_prompt_tool_that_is_not_there_denies() {
    let world = World::new([Step::call("Bash", json!({"command": "touch ran"})), Step::text("Done.")]).await;
    let output = world.print(["hi", "--permission-prompt-tool", "mcp__none__such"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(tool_result(&world).contains("There is no MCP tool"), "{}", tool_result(&world));
}

#[tokio::test]
async fn disabled_slash_commands_are_sent_to_the_model() {
    let world = World::new([Step::text("Hi.")]).await;
    let output = world.run(&watched(["/usage", "--disable-slash-commands"]));
    assert_fine(&output);
    assert!(world.conversation().contains("/usage"));
    assert_eq!(output.json_lines()[0]["slash_commands"], json!([]));
}

#[tokio::test]
async fn safe_mode_has_all_tools_and_nothing_that_people_have_changed() {
    let world = World::new([Step::text("Hi.")]).await;
    world.home.write("CLAUDE.md", "Sing.");
    for binary in [print(["hi", "--safe-mode"]), print(["hi"]).env("CLAUDE_CODE_SAFE_MODE", "1")] {
        assert_fine(&world.run(&binary));
        let request = world.last_request();
        assert!(request.tool_names().contains(&"Grep") && !request.json.to_string().contains("Sing."));
    }
}

#[tokio::test]
async fn max_turns_of_the_environment_counts_and_one_that_is_no_number_is_refused() {
    let call = || Step::call("Bash", json!({"command": "ls"}));
    let world = World::new([call(), call(), Step::text("Done.")]).await;
    let limited = |limit: &str| print(["--output-format", "json", "hi"]).env("CLAUDE_CODE_MAX_TURNS", limit);
    let output = world.run(&limited("1"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.json_lines()[0]["subtype"], "error_max_turns");
    assert_eq!(world.run(&limited("1").args(["--max-turns", "3"])).code, Some(0), "the flag wins");
    let n_requests = world.requests().len();
    for bad in ["ten", "0", "-1"] {
        let output = world.run(&limited(bad));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{bad}");
        assert!(output.stderr.contains("CLAUDE_CODE_MAX_TURNS needs a number above 0"), "{output:?}");
    }
    assert_eq!(world.requests().len(), n_requests);
}

#[tokio::test]
async fn autocompact_flag_is_the_window_of_the_session() {
    let world = World::new([]).await;
    let output = world.print(["/context", "--autocompact", "50k"]);
    assert_fine(&output);
    assert!(output.stdout.contains("of 50k tokens"), "{}", output.stdout);
    let output = world.print(["/context", "--autocompact", "200"]);
    assert!(output.stdout.contains("of 200k tokens"), "{}", output.stdout);
    // `auto` is the model's own window, whatever the settings say; the variable wins over both.
    world.home.write_config("settings.json", json!({"autoCompactWindow": 150_000}).to_string());
    let output = world.print(["/context", "--autocompact", "auto"]);
    assert!(!output.stdout.contains("of 150k tokens"), "{}", output.stdout);
    let run = print(["/context", "--autocompact", "200k"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "120000");
    let output = world.run(&run);
    assert!(output.stdout.contains("of 120k tokens"), "{}", output.stdout);
    let output = world.print(["/context", "--autocompact", "lots"]);
    assert_eq!(output.code, Some(1), "{output:?}");
}

#[tokio::test]
async fn flags_without_a_meaning_here_are_accepted_with_a_notice_and_unknown_ones_refused() {
    let world = World::new([Step::text("Hi.")]).await;
    let output = world.print(["hi", "--chrome", "--advisor", "opus", "--no-chrome"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Hi.\n"), "{output:?}");
    assert_eq!(
        output.stderr,
        "--advisor has no effect in loci: no second model is asked\n--chrome has no effect in loci: no browser is driven\n"
    );
    let output = world.print(["hi", "--from-the-future"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    assert!(output.stderr.contains("--from-the-future"), "{}", output.stderr);
}

#[tokio::test]
async fn unknown_tools_of_the_tools_flag_are_named_and_the_others_offered() {
    let world = World::new([Step::text("Hi.")]).await;
    let output = world.print(["hi", "--tools", "Read,FromTheFuture"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("FromTheFuture"), "{}", output.stderr);
    assert_eq!(world.last_request().tool_names(), ["Read"]);
}

#[tokio::test]
async fn resume_drops_turn_refuses_what_it_was_not_told_of() {
    let world = World::new(["one", "two", "three", "four"].map(Step::text)).await;
    let prompt = |text: &str, uuid: &str| {
        let mut line = user(text);
        line["uuid"] = json!(uuid);
        line.to_string()
    };
    let ids = ["1", "2", "3"].map(|n| format!("0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a0{n}"));
    let lines = [prompt("A", &ids[0]), prompt("B", &ids[1]), prompt("C", &ids[2])].join("\n");
    assert_fine(&world.run_with_stdin(&stream([]), &lines));
    let entries = world.session();
    let answers: Vec<&Value> = entries.iter().filter(|entry| entry["type"] == "assistant").collect();
    let (first, second) = (answers[0]["uuid"].as_str().unwrap(), answers[1]["uuid"].as_str().unwrap());
    let session = entries[0]["sessionId"].as_str().unwrap();
    let resume = |at: &str, drops: &str| {
        let (at, drops) = (format!("--resume-session-at={at}"), format!("--resume-drops-turn={drops}"));
        world.print(["D", "--output-format", "json", "--resume", session, &at, &drops])
    };
    let refused = resume(first, &ids[1]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let result: Value = serde_json::from_str(&refused.stdout).unwrap();
    let error = result["errors"][0].as_str().unwrap();
    assert!(error.starts_with("Resume rejected by --resume-drops-turn:"), "{error}");
    assert_fine(&resume(second, &ids[2]));
    assert!(!world.conversation().contains("user: C"), "{}", world.conversation());
}

#[tokio::test]
async fn await_initialize_takes_plugins_and_servers_of_the_first_line() {
    let world = World::new([Step::text("Hi.")]).await;
    world.home.write("plug/.claude-plugin/plugin.json", r#"{"name": "plug"}"#);
    world.home.write("plug/commands/greet.md", "Say hello.");
    let payload = json!({
        "subtype": "initialize",
        "plugins": [{"type": "local", "path": world.path("plug")}],
        "mcpServers": {"s": entry(&["--tools", "a"])},
    });
    let lines = format!("{}\n{}", control("r1", payload), user("hi"));
    let output = world.run_with_stdin(&stream(["--await-initialize"]), &lines);
    assert_fine(&output);
    let init = output.json_lines().into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert_eq!(init["plugins"][0]["name"], "plug", "{init}");
    assert!(world.last_request().tool_names().contains(&"mcp__s__a"));
}

#[tokio::test]
async fn system_prompt_snapshot_is_sent_as_it_was_when_the_session_goes_on() {
    let world = World::new(["1", "2", "3"].map(Step::text)).await;
    let run = |args: [&str; 4]| {
        assert_fine(&world.run(&print(args)));
        world.last_request().system_text()
    };
    let first = run(["--append-system-prompt", "First.", "--system-prompt-snapshot=on", "one"]);
    assert!(first.contains("First."), "{first}");
    let go_on = |words: &str, switch: &str| {
        assert_fine(&world.run(&print(["-c", "--append-system-prompt", words, switch, "more"])));
        world.last_request().system_text()
    };
    assert_eq!(go_on("Second.", "--system-prompt-snapshot=on"), first);
    assert!(go_on("Third.", "--system-prompt-snapshot=off").contains("Third."));
    let is_snapshot = |entry: &&Value| entry["attachment"]["type"] == "prompt_snapshot";
    assert_eq!(world.session().iter().filter(is_snapshot).count(), 1, "it is recorded once");
    assert!(!world.conversation().contains("First."), "it is no part of the conversation");
}
