//! Fields of a definition, as an agent's requests and work show them.

use loci_testkit::{Script, Step};
use serde_json::{Value, json};

use super::{agent, define, has, in_background, is_agents, results};
use crate::support::{World, assert_fine, is_result, watched};

/// Sends an agent of the type `mine` out and returns its first request.
async fn first_request(fields: &str, flags: &[&str], call: Value) -> loci_testkit::Recorded {
    let script = Script::new([Step::call("Agent", call), Step::text("ok").times(2)])
        .route([Step::text("Done.")], is_agents);
    let world = World::new(script).await;
    define(&world, "mine", fields, "You are mine.");
    // What a list names in vain is said.
    assert_eq!(world.run(&watched(["go"]).args(flags.iter().copied())).code, Some(0));
    world.requests().into_iter().find(is_agents).unwrap()
}

#[tokio::test]
async fn tools_of_an_agent_are_what_its_lists_leave() {
    let cases = [
        ("tools: Read, Bash(git diff *)\n", vec!["Bash", "Read"]),
        ("tools: [Read, Edit, Write]\ndisallowedTools: Write\n", vec!["Edit", "Read"]),
        ("tools: Read, AskUserQuestion, TaskOutput, ScheduleWakeup, EnterPlanMode\n", vec!["Read"]),
        ("tools: Task, Read\n", vec!["Agent", "Read"]),
    ];
    for (fields, expected) in cases {
        let request = first_request(fields, &[], agent("mine", "Work.")).await;
        let mut tools = request.tool_names();
        tools.sort_unstable();
        assert_eq!(tools, expected, "{fields}");
    }
}

/// The tools that are kept from agents in the background, and those that stay.
#[tokio::test]
async fn agent_in_the_background_has_fewer_tools() {
    let there = first_request("", &[], agent("mine", "Work.")).await;
    let beside = first_request("", &[], in_background("mine", "Work.")).await;
    for tool in ["TaskCreate", "CronCreate", "ListAgents"] {
        assert!(there.tool_names().contains(&tool) && !beside.tool_names().contains(&tool), "{tool}");
    }
    for tool in ["Agent", "Bash", "Edit", "Read", "SendMessage", "TaskStop", "Write", "Monitor"] {
        assert!(beside.tool_names().contains(&tool), "{tool}");
    }
    for tool in ["AskUserQuestion", "ScheduleWakeup", "TaskOutput", "EnterPlanMode", "ExitPlanMode"] {
        assert!(!there.tool_names().contains(&tool), "{tool}");
    }
}

#[tokio::test]
async fn effort_and_background_of_a_definition_hold() {
    let request = first_request("effort: low\nmodel: opus\n", &[], agent("mine", "Work.")).await;
    assert_eq!(request.json["output_config"]["effort"], "low", "{}", request.json["output_config"]);
    let mut call = agent("mine", "Work.");
    call["effort"] = json!("medium");
    let request = first_request("effort: low\nmodel: opus\n", &[], call).await;
    assert_eq!(request.json["output_config"]["effort"], "medium", "the call's counts");
    let script =
        Script::new([Step::call("Agent", agent("mine", "Work.")), Step::text("ok"), Step::text("Heard.")])
            .route([Step::text("Done.")], is_agents);
    let world = World::new(script).await;
    define(&world, "mine", "background: true\n", "You are mine.");
    let output = world.run(&watched(["go"]));
    assert_fine(&output);
    let launched = output.json_lines().into_iter().find(|it| it["tool_use_result"]["agentId"].is_string());
    assert_eq!(launched.unwrap()["tool_use_result"]["status"], "async_launched");
    assert_eq!(output.json_lines().iter().rfind(|it| is_result(it)).unwrap()["result"], "Heard.");
}

#[tokio::test]
async fn agent_that_omits_instruction_files_is_told_none_of_them() {
    for (fields, is_told) in [("", true), ("omitClaudeMd: true\n", false)] {
        let read = Step::call("Read", json!({"file_path": "below/a.txt"}));
        let script = Script::new([Step::call("Agent", agent("mine", "Work.")), Step::text("ok")])
            .route([read, Step::text("Done.")], is_agents);
        let world = World::new(script).await;
        define(&world, "mine", fields, "You are mine.");
        for place in ["CLAUDE.md", "CLAUDE.local.md", "below/CLAUDE.md"] {
            world.home.write(place, format!("The word of {place}."));
        }
        world.home.write("below/a.txt", "a\n");
        assert_fine(&world.run(&watched(["go"])));
        let requests = world.requests();
        let last = requests.iter().rfind(|it| is_agents(it)).unwrap();
        for place in ["CLAUDE.md", "CLAUDE.local.md", "below/CLAUDE.md"] {
            let words = format!("The word of {place}.");
            assert_eq!(has(last, &words), is_told, "{fields} {words}");
            let is_main = !place.starts_with("below");
            assert_eq!(requests.iter().any(|it| !is_agents(it) && has(it, &words)), is_main, "{words}");
        }
    }
}

#[tokio::test]
async fn window_of_a_definition_has_an_agent_compacted_earlier() {
    for (fields, is_compacted) in [("", false), ("autoCompactWindow: 100000\n", true)] {
        let read =
            |tokens: u64| Step::call("Read", json!({"file_path": "notes.txt"})).usage(10, 20, tokens - 30, 0);
        let summary = "<analysis>x</analysis>\n<summary>The notes say 9000.</summary>";
        let script = Script::new([Step::call("Agent", agent("mine", "Read a lot.")), Step::text("ok")])
            .route([Step::text(summary)], |it| is_agents(it) && it.last_user_text().contains("<summary>"))
            .route([read(30_000), read(90_000), Step::text("It is 9000.")], is_agents);
        let world = World::new(script).await;
        world.home.write("notes.txt", "port=9000\n");
        define(&world, "mine", fields, "You are mine.");
        assert_fine(&world.run(&watched(["go"])));
        let side = world.home.read_session(&super::side_files(&world)[0]);
        assert_eq!(side.iter().any(|it| it["subtype"] == "compact_boundary"), is_compacted, "{fields}");
    }
}

#[tokio::test]
async fn permission_mode_of_a_definition_restricts_and_lets_edit_where_it_is_trusted() {
    let edit = json!({"file_path": "made", "content": "x"});
    for (mode, session, is_trusted, is_made) in [
        ("dontAsk", "default", true, false),
        ("acceptEdits", "default", true, true),
        ("acceptEdits", "default", false, false),
        ("acceptEdits", "dontAsk", true, false),
        ("bypassPermissions", "default", true, false),
        ("plan", "acceptEdits", true, true),
    ] {
        let script = Script::new([Step::call("Agent", agent("mine", "Work.")), Step::text("ok")])
            .route([Step::call("Write", edit.clone()), Step::text("Done.")], is_agents);
        let world = World::new(script).await;
        define(&world, "mine", &format!("permissionMode: {mode}\n"), "You are mine.");
        if is_trusted {
            crate::settings::trust(&world);
        }
        let output = world.run(&watched(["go", "--permission-mode", session]));
        assert_eq!(world.home.project().join("made").exists(), is_made, "{mode} in {session}: {output:?}");
    }
}

/// Where nothing runs in the background, the model is not offered to have it run there.
#[tokio::test]
async fn background_that_is_switched_off_is_not_offered() {
    for (is_off, variable) in [(false, "0"), (true, "1")] {
        let world = World::new([Step::text("x")]).await;
        world.run(&watched(["go"]).env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", variable));
        let request = world.last_request();
        for name in ["Agent", "Bash"] {
            let tool =
                request.json["tools"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
            let parameter = &tool["input_schema"]["properties"]["run_in_background"];
            assert_eq!(parameter.is_null(), is_off, "{name}");
        }
    }
}

/// Rules name types; what they deny is neither offered nor sent out.
#[tokio::test]
async fn denied_type_is_neither_offered_nor_sent_out() {
    let script = Script::new([Step::call("Agent", agent("mine", "Work.")), Step::text("ok")]);
    let world = World::new(script).await;
    define(&world, "mine", "", "You are mine.");
    world.run(&watched(["go", "--disallowedTools", "Agent(mine)"]));
    let requests = world.requests();
    let description = requests[0].json["tools"].as_array().unwrap().iter().find(|it| it["name"] == "Agent");
    assert!(!description.unwrap()["description"].as_str().unwrap().contains("- mine:"));
    assert!(results(&world.last_request()).contains("There is no agent of the type `mine`"));
}

#[tokio::test]
async fn built_in_catch_all_and_status_line_agents_work() {
    for (kind, expected) in
        [("claude", "without that person"), ("statusline-setup", "You set up the status line")]
    {
        let script = Script::new([Step::call("Agent", agent(kind, "Work.")), Step::text("ok")])
            .route([Step::text("Done.")], is_agents);
        let world = World::new(script).await;
        assert_fine(&world.run(&watched(["go"])));
        let request = world.requests().into_iter().find(is_agents).unwrap();
        assert!(has(&request, expected), "{kind}");
        if kind == "statusline-setup" {
            assert_eq!(request.tool_names(), ["Edit", "Read", "Write"]);
            assert!(request.json["model"].as_str().unwrap().contains("sonnet"));
        }
    }
    // As the main conversation the catch-all is nothing special.
    let world = World::new([Step::text("x").times(2)]).await;
    world.run(&watched(["go"]));
    world.run(&watched(["go", "--agent", "claude"]));
    let requests = world.requests();
    assert_eq!(requests[0].json["system"], requests[1].json["system"]);
}

#[tokio::test]
async fn explore_works_with_nothing_dearer_than_opus_unless_a_model_is_named() {
    for (model, named, expected) in [
        ("claude-fable-5-2", None, "claude-opus-5-5"),
        ("claude-fable-5-2", Some("fable"), "claude-fable-5-2"),
        ("claude-sonnet-5", None, "claude-sonnet-5"),
    ] {
        let mut call = agent("Explore", "Look.");
        if let Some(named) = named {
            call["model"] = json!(named);
        }
        let script = Script::new([Step::call("Agent", call), Step::text("ok")])
            .route([Step::text("Done.")], is_agents);
        let world = World::new(script).await;
        assert_fine(&world.run(&watched(["go", "--model", model])));
        let request = world.requests().into_iter().find(is_agents).unwrap();
        assert_eq!(request.json["model"], expected, "{model} {named:?}");
    }
}

#[tokio::test]
async fn guide_is_offered_where_a_person_sits_and_answers_with_the_small_model() {
    let script = Script::new([
        Step::call("Agent", agent("claude-code-guide", "What are hooks?")),
        Step::text("Told."),
    ])
    .route([Step::text("Commands at certain moments.")], is_agents);
    let world = World::new(script).await;
    let mut screen = world.start_interface(["go"], (100, 30));
    screen.wait_for("Told.");
    // It works in the background, and leaving meanwhile would be asked about.
    screen.wait_for("finished");
    screen.type_text("/exit\r");
    screen.finish();
    let requests = world.requests();
    assert!(has(&requests[0], "- claude-code-guide: "), "offered");
    let asked = requests.iter().find(|it| is_agents(it)).unwrap();
    assert!(has(asked, "You answer questions about this program"), "{}", asked.json);
    assert!(asked.json["model"].as_str().unwrap().contains("haiku"));
    let world = World::new([Step::text("ok")]).await;
    assert_fine(&world.run(&watched(["go"])));
    assert!(!has(&world.last_request(), "claude-code-guide"), "nobody sits before a run without a terminal");
}

/// An agent that has used what its definition lets it is stopped, and what it had said is told with the reason.
#[tokio::test]
async fn agent_that_comes_to_a_cap_of_its_definition_is_stopped() {
    let read = || Step::call("Read", json!({"file_path": "notes.txt"}));
    let never = loci_testkit::Gate::new();
    for (fields, second, expected) in [
        ("maxTokens: 3000\n", read().usage(2000, 20, 9000, 0), "it may use 3000 tokens"),
        ("maxSeconds: 1\n", Step::text("late").wait_for(never.clone()), "it may work 1 s"),
    ] {
        let script = Script::new([Step::call("Agent", agent("mine", "Work.")), Step::text("ok")])
            .route([read().usage(1500, 20, 9000, 0), second, Step::text("Found.")], is_agents);
        let world = World::new(script).await;
        world.home.write("notes.txt", "x");
        define(&world, "mine", fields, "You are mine.");
        world.run(&watched(["go"]));
        let told = results(&world.last_request());
        assert!(told.contains(expected), "{fields}: {told}");
    }
}
