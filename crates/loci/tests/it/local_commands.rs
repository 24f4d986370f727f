//! Commands that need no model, without a terminal: frames, results, the transcript, and no request.

use crate::support::{World, assert_fine, is_result, loci, print, shape, stream, user, watched};
use expect_test::expect;
use loci_testkit::{Output, Step};
use serde_json::{Value, json};

/// Runs one command and returns what it said; nothing may be asked of the model.
fn say(world: &World, command: &str) -> String {
    let output = world.run(&print([command]));
    assert_fine(&output);
    assert_eq!(world.model.requests().len(), 0, "{command} asks nothing");
    output.stdout
}

/// Runs one command that fails and returns why.
fn fail(world: &World, command: &str) -> String {
    let output = world.run(&print([command]));
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""), "{output:?}");
    assert_eq!(world.model.requests().len(), 0, "{command} asks nothing");
    output.stdout
}

fn results(output: &Output) -> Vec<Value> {
    output.json_lines().into_iter().filter(is_result).collect()
}

#[tokio::test]
async fn local_command_is_a_synthetic_frame_and_a_result_without_a_turn() {
    let world = World::new([]).await;
    let output = world.run(&watched(["/usage"]));
    assert_fine(&output);
    let frames = output.json_lines();
    let kinds: Vec<String> =
        frames.iter().map(|it| format!("{} {}", it["type"], it["subtype"]).replace('"', "")).collect();
    assert_eq!(kinds, ["system init", "assistant null", "result success"]);
    assert_eq!(frames[1]["message"]["model"], "<synthetic>");
    let result = &frames[2];
    assert_eq!((&result["num_turns"], &result["is_error"]), (&json!(0), &json!(false)));
    assert_eq!(result["result"], frames[1]["message"]["content"][0]["text"]);
    assert!(result["result"].as_str().unwrap().contains("Total cost: $0.0000"), "{result}");
    assert_eq!(world.model.requests().len(), 0);
    assert!(world.home.sessions().is_empty(), "nothing was said, so there is nothing to resume");
}

#[tokio::test]
async fn local_commands_of_the_headless_list_work_without_a_request() {
    let world = World::new([]).await;
    for (command, expected) in [
        ("/context", "Free space"),
        ("/context all", "System tools"),
        ("/usage", "Nothing was asked of a model yet"),
        ("/cost", "Total cost"),
        ("/stats", "Total cost"),
        ("/model", "Asked now: `claude-sonnet-4-5`"),
        ("/effort", "takes no effort level"),
        ("/config", "Nothing is set"),
        ("/config model", "model is not set"),
        ("/rename", "The session has no name"),
        ("/mcp", "There are no MCP servers"),
        ("/status", "compatible with Claude Code"),
        ("/permissions", "**Deny**"),
        ("/autocompact", "compacted from"),
        ("/hooks", "There are no hooks"),
        ("/skills", "/init"),
        ("/add-dir", "The session works in"),
        ("/memory", "**Memories** (kept"),
        ("/doctor", "Config home: ~/.claude"),
    ] {
        let said = say(&world, command);
        assert!(said.contains(expected), "{command}: {said}");
    }
}

#[tokio::test]
async fn usage_agrees_with_the_result_and_the_statistics() {
    let world = World::new([
        Step::call("Write", json!({"file_path": "a.txt", "content": "one\ntwo\n"})),
        Step::text("Hi."),
    ])
    .await;
    let lines = [user("hi"), user("/usage")].map(|line| line.to_string()).join("\n");
    let output = world.run_with_stdin(&stream(["--permission-mode", "acceptEdits"]), &lines);
    assert_fine(&output);
    let results = results(&output);
    let [turn, usage] = &results[..] else { panic!("{results:?}") };
    let text = usage["result"].as_str().unwrap();
    let cost = format!("Total cost: ${:.4}", turn["total_cost_usd"].as_f64().unwrap());
    assert!(text.contains(&cost), "{cost}: {text}");
    let model = &turn["modelUsage"]["claude-sonnet-4-5"];
    let row = format!("| claude-sonnet-4-5 | {} | {} |", model["inputTokens"], model["outputTokens"]);
    assert!(text.contains(&row), "{row}: {text}");
    assert!(text.contains("2 added, 0 removed"), "{text}");
    assert_eq!(usage["total_cost_usd"], turn["total_cost_usd"]);
    let stats = world.run(&loci().args(["stats", "--json"]));
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(stats["costUSD"], turn["total_cost_usd"]);
    // A resumed session counts on, lines included.
    let output = world.run(&print(["-c", "/usage"]));
    assert_fine(&output);
    assert!(
        output.stdout.contains(&cost) && output.stdout.contains("2 added, 0 removed"),
        "{}",
        output.stdout
    );
}

#[tokio::test]
async fn local_command_in_a_conversation_is_recorded_and_told_to_the_model() {
    let world = World::new([Step::text("one"), Step::text("two"), Step::text("three")]).await;
    let lines = [user("A"), user("/effort"), user("B")].map(|line| line.to_string()).join("\n");
    let output = world.run_with_stdin(&stream([]), &lines);
    assert_fine(&output);
    expect![[r#"
        system init
        assistant one
        result success completed
        system init
        assistant `claude-sonnet-4-5` takes no effort level
        result success completed
        system init
        assistant two
        result success completed
    "#]]
    .assert_eq(&shape(&output.json_lines()));
    expect![[r#"
        user: A
        assistant: one
        user: <command-name>/effort</command-name>
        <command-message>effort</command-message>
        <command-args></command-args>
        user: <local-command-stdout>`claude-sonnet-4-5` takes no effort level</local-command-stdout>
        user: B
    "#]]
    .assert_eq(&world.conversation());
    let recorded: Vec<Value> =
        world.session().into_iter().filter(|entry| entry["subtype"] == "local_command").collect();
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    // A session that ends with a command is whole: nothing is mended when it goes on.
    let output = world.run(&print(["-c", "/usage"]));
    assert_fine(&output);
    let output = world.run(&print(["-c", "C"]));
    assert_fine(&output);
    assert!(
        !world.last_request().json.to_string().contains("Continue from where"),
        "{}",
        world.conversation()
    );
}

#[tokio::test]
async fn model_command_of_a_program_switches_the_session_and_leaves_settings_alone() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let lines = [user("A"), user("/model haiku"), user("B")].map(|line| line.to_string()).join("\n");
    let output = world.run_with_stdin(&stream([]), &lines);
    assert_fine(&output);
    let models: Vec<String> =
        world.requests().iter().map(|request| request.json["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(models, ["claude-sonnet-4-5", "claude-haiku-5-5"]);
    assert!(!world.home.config_home().join("settings.json").exists());
    assert_eq!(say_last(&output), "The model is `claude-haiku-5-5` now, for this session");
}

fn say_last(output: &Output) -> String {
    let results = results(output);
    results[1]["result"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn model_that_settings_do_not_offer_is_refused() {
    let world = World::new([]).await;
    world.home.write_config("settings.json", r#"{"availableModels": ["claude-sonnet-4-5"]}"#);
    let said = say(&world, "/model sonnet");
    assert!(
        said.contains("`claude-sonnet-4-5` now (settings do not let `claude-sonnet-5-5` be chosen)"),
        "{said}"
    );
    let said = fail(&world, "/model opus");
    assert!(
        said.contains("Settings do not let `opus` be chosen") && said.contains("availableModels"),
        "{said}"
    );
    let said = fail(&world, "/model two words");
    assert!(said.contains("No model is called"), "{said}");
    let listed = say(&world, "/model");
    assert!(listed.contains("not available"), "{listed}");
    let settings = std::fs::read_to_string(world.home.config_home().join("settings.json")).unwrap();
    assert!(!settings.contains("opus"), "{settings}");
}

/// `CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY`: what the gateway lists can be chosen, within what settings allow.
#[tokio::test]
async fn models_that_a_gateway_tells_of_are_listed() {
    let world = World::new([]).await;
    let file = world.home.config_home().join("loci/gateway-models.json");
    let on = ("CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1");
    assert!(!say(&world, "/model").contains("From gateway") && !file.exists(), "nobody asks unless told to");
    let mut session = world.start(&stream([]).env(on.0, on.1));
    // It is asked beside the session, which does not wait for it.
    let is_there = (0..3_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        file.exists()
    });
    assert!(is_there, "{:?}", session.finish());
    session.write_json(&user("/model"));
    let listed = session.wait_for_json(is_result)["result"].as_str().unwrap().to_owned();
    assert_fine(&session.finish());
    for row in [
        "claude-opus-4-8 | Claude Opus 4.8; From gateway",
        "claude-haiku-4-5-20251001 | Claude Haiku 4.5; From gateway",
    ] {
        assert!(listed.contains(row), "{listed}");
    }
    assert!(!listed.contains("local-7b"), "{listed}");
    world.home.write_config("settings.json", r#"{"availableModels": ["haiku"]}"#);
    let output = world.run(&print(["/model"]).env(on.0, on.1));
    assert!(
        output.stdout.contains("claude-haiku-4-5-20251001") && !output.stdout.contains("claude-opus-4-8"),
        "{output:?}"
    );
}

#[tokio::test]
async fn effort_command_of_a_program_changes_the_next_request_and_leaves_settings_alone() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let lines = [user("A"), user("/effort low"), user("B")].map(|line| line.to_string()).join("\n");
    let format = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    let binary = loci().args(["-p", "--model", "claude-opus-4-8"]).args(format);
    let output = world.run_with_stdin(&binary, &lines);
    assert_fine(&output);
    let efforts: Vec<Value> =
        world.requests().iter().map(|request| request.json["output_config"]["effort"].clone()).collect();
    assert_eq!(efforts, [json!("high"), json!("low")]);
    assert!(!world.home.config_home().join("settings.json").exists());
    let binary = loci().args(["-p", "--model", "claude-opus-4-8", "/effort low"]);
    let said = world.run(&binary.env("CLAUDE_CODE_EFFORT_LEVEL", "high"));
    assert_eq!(said.code, Some(1));
    assert!(said.stdout.contains("CLAUDE_CODE_EFFORT_LEVEL is set"), "{said:?}");
}

#[tokio::test]
async fn config_command_writes_one_key_and_refuses_what_a_prompt_may_not_change() {
    let world = World::new([]).await;
    let file = world.home.write_config("settings.json", "{\n  // mine\n  \"verbose\": true\n}\n");
    let said = say(&world, "/config effortLevel=low");
    assert!(said.contains("Set `effortLevel` in ~/.claude/settings.json"), "{said}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("// mine") && text.contains("\"effortLevel\": \"low\""), "{text}");
    for (command, expected) in [
        ("/config effortLevel=silly", "one of"),
        ("/config cleanupPeriodDays=1", "not changed by a prompt"),
        ("/config nothing=1", "No such setting"),
        ("/config apiKeyHelper=evil", "not changed by a prompt"),
        ("/config permissions.allow=Bash", "not changed by a prompt"),
        ("/config env.PATH=/evil", "not changed by a prompt"),
        ("/config hooks={}", "not changed by a prompt"),
        ("/permissions allow Bash", "Rules are changed at a terminal"),
        ("/add-dir /", "Directories are added at a terminal"),
        ("/memory accept x", "Memories are decided about at a terminal"),
    ] {
        let said = fail(&world, command);
        assert!(said.contains(expected), "{command}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "nothing else was changed");
}

#[tokio::test]
async fn rename_command_names_the_session() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let lines = [user("A"), user("/rename Port of call")].map(|line| line.to_string()).join("\n");
    assert_fine(&world.run_with_stdin(&stream([]), &lines));
    let output = world.run(&print(["B", "-r", "Port of call"]));
    assert_fine(&output);
    assert!(world.conversation().contains("user: A"));
}

#[tokio::test]
async fn autocompact_command_takes_effect_at_once() {
    let world = World::new([Step::text("one")]).await;
    let lines = [user("A"), user("/autocompact 120k"), user("/context")].map(|it| it.to_string()).join("\n");
    let output = world.run_with_stdin(&stream([]), &lines);
    assert_fine(&output);
    let results = results(&output);
    assert_eq!(results[2]["loci"]["context"]["window"], 120_000);
    assert!(results[2]["result"].as_str().unwrap().contains("of 120k tokens"), "{}", results[2]);
    let output = world.run(&print(["/autocompact 5"]));
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("100000"), "{output:?}");
}

#[tokio::test]
async fn mcp_command_lists_servers_and_switches_them() {
    let world = World::new([]).await;
    let config = json!({"mcpServers": {"calc": {"command": "/nonexistent/server"}}}).to_string();
    let lines = [user("/mcp"), user("/mcp disable calc"), user("/mcp"), user("/mcp enable nothing")];
    let lines = lines.map(|it| it.to_string()).join("\n");
    let output = world.run_with_stdin(&stream(["--mcp-config", &config]), &lines);
    let results = results(&output);
    let text = |n: usize| results[n]["result"].as_str().unwrap().to_owned();
    assert!(text(0).contains("| calc | failed"), "{}", text(0));
    assert!(text(1).contains("Switched off: calc"), "{}", text(1));
    assert!(text(2).contains("| calc | disabled"), "{}", text(2));
    assert_eq!(results[3]["is_error"], true, "{}", text(3));
    assert_eq!(world.model.requests().len(), 0);
}

#[tokio::test]
async fn init_and_initialize_tell_skills_and_output_styles() {
    let world = World::new([Step::text("one")]).await;
    crate::settings::trust(&world);
    world.home.write(".claude/skills/ship/SKILL.md", "---\ndescription: Ship it\n---\nShip.\n");
    world.home.write(".claude/output-styles/pirate.md", "---\nname: Pirate\ndescription: Arr\n---\nArr.\n");
    world.home.write_config("settings.json", r#"{"outputStyle": "Pirate"}"#);
    let initialize = crate::support::control("r1", json!({"subtype": "initialize"}));
    let lines = [initialize, user("hi")].map(|line| line.to_string()).join("\n");
    let output = world.run_with_stdin(&stream([]), &lines);
    assert_fine(&output);
    let frames = output.json_lines();
    let answer = &frames.iter().find(|it| it["type"] == "control_response").unwrap()["response"]["response"];
    assert_eq!(answer["output_style"], "Pirate");
    let styles = answer["available_output_styles"].as_array().unwrap();
    assert_eq!(styles[0], "default");
    assert!(styles.contains(&json!("Pirate")), "{styles:?}");
    let init = frames.iter().find(|it| it["subtype"] == "init").unwrap();
    assert_eq!(init["output_style"], "Pirate");
    assert!(init["skills"].as_array().unwrap().contains(&json!("ship")), "{}", init["skills"]);
}

#[tokio::test]
async fn diff_command_lists_what_changed_since_the_last_commit() {
    let world = World::with_git([]).await;
    world.home.write("a.txt", "one\n");
    world.home.commit("first");
    assert!(say(&world, "/diff").contains("Nothing has changed"));
    world.home.write("a.txt", "one\ntwo\n");
    world.home.write("new.txt", "x\n");
    let said = say(&world, "/diff");
    assert!(said.contains("| a.txt | 1 | 0 |") && said.contains("| new.txt | new to git"), "{said}");
}
