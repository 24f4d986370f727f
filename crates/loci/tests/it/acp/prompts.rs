//! Prompts and what is told of their turns.

use std::path::Path;

use super::client::{Editor, acp, choosing};
use crate::support::World;
use loci_testkit::{Step, TestHome};
use serde_json::{Value, json};

/// A picture of one dot.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Renders news in a line each, without what comes with every session.
fn shape(updates: &[Value]) -> Vec<String> {
    let common = ["available_commands_update", "session_info_update", "usage_update"];
    let shown = updates.iter().filter(|it| !common.contains(&it["sessionUpdate"].as_str().unwrap()));
    let what = |it: &Value| match it["sessionUpdate"].as_str().unwrap() {
        "tool_call" => format!("{} {} {}", it["kind"], it["status"], it["title"]).replace('"', ""),
        "tool_call_update" => it["status"].as_str().unwrap_or_default().to_owned(),
        _ => it["content"]["text"].as_str().unwrap_or_default().to_owned(),
    };
    shown.map(|it| format!("{}: {}", it["sessionUpdate"].as_str().unwrap(), what(it))).collect()
}

#[tokio::test]
async fn turn_is_told_as_thoughts_calls_results_and_text() {
    let first = Step::text("Let me see.").thinking("Hm.", "c2ln").tool("Read", json!({"file_path": "a.txt"}));
    let world = World::new([first, Step::text("It says hi.")]).await;
    world.home.write("a.txt", "hi\n");
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "What does a.txt say?"), "end_turn");
    assert_eq!(
        shape(&editor.updates(&session)),
        [
            "agent_thought_chunk: Hm.",
            "agent_message_chunk: Let me see.",
            "tool_call: read pending Read a.txt",
            "tool_call_update: completed",
            "agent_message_chunk: It says hi.",
        ]
    );
    let call = &editor.updates_of(&session, "tool_call")[0];
    assert_eq!(call["locations"], json!([{"path": world.path("a.txt")}]));
    assert_eq!(call["rawInput"], json!({"file_path": "a.txt"}));
    let done = &editor.updates_of(&session, "tool_call_update")[0];
    assert!(done["content"][0]["content"]["text"].as_str().unwrap().contains("hi"), "{done}");
    assert_eq!(done["rawOutput"]["file"]["content"], "hi\n", "{done}");
    let usage = editor.updates_of(&session, "usage_update");
    let usage = usage.last().unwrap();
    assert!(usage["used"].as_u64() > Some(0) && usage["size"].as_u64() > usage["used"].as_u64(), "{usage}");
    assert!(usage["cost"]["amount"].as_f64() > Some(0.0), "{usage}");
    let commands = &editor.updates_of(&session, "available_commands_update")[0]["availableCommands"];
    let compact = commands.as_array().unwrap().iter().find(|it| it["name"] == "compact").unwrap();
    assert!(compact["input"]["hint"].is_string(), "{compact}");
    assert!(!editor.updates_of(&session, "session_info_update").is_empty());
    editor.leave();
    world.requests();
}

#[tokio::test]
async fn pictures_embedded_files_and_links_reach_the_model() {
    let world = World::new([Step::text("Fine.")]).await;
    world.home.write("linked.txt", "linked content\n");
    world.home.write("secret.txt", "not mentioned by a person\n");
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    let secret = format!("@{}", world.path("secret.txt"));
    let prompt = json!([
        {"type": "text", "text": "Look:"},
        {"type": "image", "data": DOT, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///unsaved.rs", "text": format!("fn unsaved() {{}} {secret}")}},
        {"type": "resource_link", "uri": format!("file://{}", world.path("linked.txt")), "name": "linked"},
    ]);
    let answer = editor.call("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
    assert_eq!(answer["stopReason"], "end_turn");
    editor.leave();
    let request = world.last_request().json["messages"].to_string();
    for part in [DOT, "fn unsaved()", "file:///unsaved.rs", "linked content"] {
        assert!(request.contains(part), "{part}: {request}");
    }
    assert!(!request.contains("not mentioned by a person"), "an attached file names no files to be read");
}

#[tokio::test]
async fn edit_is_told_with_its_diff_and_place() {
    let read = Step::call("Read", json!({"file_path": "a.txt"}));
    let edit = Step::call("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"}));
    let world = World::new([read, edit, Step::text("Done.")]).await;
    world.home.write("a.txt", "one\ntwo\n");
    let mut editor = Editor::start(&world, [], &json!({})).answering(choosing("allow_once"));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Change it"), "end_turn");
    let diff = json!([{"type": "diff", "path": world.path("a.txt"), "oldText": "two", "newText": "2"}]);
    let call = editor.updates_of(&session, "tool_call").into_iter().find(|it| it["kind"] == "edit").unwrap();
    assert_eq!(call["content"], diff);
    let updates = editor.updates_of(&session, "tool_call_update");
    let done = updates.iter().rfind(|it| it["status"] == "completed").unwrap();
    assert_eq!(done["content"], diff);
    assert_eq!(done["locations"][0]["path"], json!(world.path("a.txt")));
    assert!(updates.iter().any(|it| it["status"] == "in_progress"), "{updates:?}");
    editor.leave();
    assert_eq!(world.home.read("a.txt"), "one\n2\n");
}

#[tokio::test]
async fn task_list_is_told_as_a_plan_and_output_of_commands_as_progress() {
    let todo = Step::call("TaskCreate", json!({"subject": "Look around", "description": "Look"}));
    let world = World::new([todo, Step::text("Planned.")]).await;
    let mut editor = Editor::start(&world, [], &json!({})).answering(choosing("allow_once"));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Plan it"), "end_turn");
    let plan = editor.updates_of(&session, "plan");
    let expected = json!([{"content": "Look around", "priority": "medium", "status": "pending"}]);
    assert_eq!(plan.last().unwrap()["entries"], expected);
    editor.leave();
}

#[tokio::test]
async fn slash_commands_are_answered_without_the_model() {
    let world = World::new([Step::text("never")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "/context"), "end_turn");
    assert!(editor.said(&session).contains("tokens"), "{}", editor.said(&session));
    editor.leave();
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn stop_reasons_are_those_of_the_protocol() {
    for (steps, args, expected) in [
        (vec![Step::text("I must").stop_reason("max_tokens")], [], "max_tokens"),
        (vec![Step::text("No.").stop_reason("refusal")], [], "refusal"),
    ] {
        // The engine may ask again before it gives up.
        let steps: Vec<Step> = std::iter::repeat_n(steps[0].clone(), 8).collect();
        let world = World::new(steps).await;
        let mut editor = Editor::start(&world, args, &json!({}));
        let session = editor.new_session(&world);
        assert_eq!(editor.prompt(&session, "Go on"), expected);
        editor.leave();
    }
}

#[tokio::test]
async fn failure_of_the_api_is_an_error_that_says_so() {
    let world = World::new([Step::status(400), Step::text("Better.")]).await;
    let binary = acp([]).env("CLAUDE_CODE_MAX_RETRIES", "0");
    let mut editor = Editor::start_binary(&world, &binary, &json!({}));
    let session = editor.new_session(&world);
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]});
    assert_eq!(editor.refused("session/prompt", &prompt), -32603);
    assert_eq!(editor.prompt(&session, "Again"), "end_turn");
    assert_eq!(editor.said(&session), "Better.");
    editor.leave();
}

#[tokio::test]
async fn modes_models_and_effort_can_be_chosen() {
    let world = World::new([Step::text("Hi.")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let opened = editor.call("session/new", &json!({"cwd": world.home.project(), "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let value = |options: &Value, id: &str| {
        let options = options.as_array().unwrap();
        options.iter().find(|it| it["id"] == id).map(|it| it["currentValue"].clone()).unwrap_or_default()
    };
    assert_eq!(value(&opened["configOptions"], "mode"), "default");
    let mode = json!({"sessionId": session, "modeId": "plan"});
    assert_eq!(editor.call("session/set_mode", &mode), json!({}));
    assert_eq!(editor.updates_of(&session, "current_mode_update")[0]["currentModeId"], "plan");
    let choose = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let chosen = editor.call("session/set_config_option", &choose("model", "opus"));
    assert_eq!(value(&chosen["configOptions"], "model"), "opus");
    assert_eq!(value(&chosen["configOptions"], "mode"), "plan");
    let chosen = editor.call("session/set_config_option", &choose("thought_level", "low"));
    assert_eq!(value(&chosen["configOptions"], "thought_level"), "low");
    for (id, bad) in
        [("mode", "bypassPermissions"), ("model", "nobody"), ("thought_level", "extreme"), ("x", "y")]
    {
        assert_eq!(editor.refused("session/set_config_option", &choose(id, bad)), -32602, "{id} {bad}");
    }
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    editor.leave();
    let request = world.last_request();
    assert!(request.json["model"].as_str().unwrap().contains("opus"), "{}", request.json["model"]);
    assert_eq!(request.json["output_config"]["effort"], "low");
}

#[tokio::test]
async fn servers_of_the_editor_bring_tools() {
    let world =
        World::new([Step::call("mcp__kit__echo", json!({"text": "there"})), Step::text("Done.")]).await;
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py");
    let mut editor = Editor::start(&world, [], &json!({})).answering(choosing("allow_once"));
    let servers = json!([{"name": "kit", "command": "python3", "args": [server], "env": []}]);
    let opened = editor.call("session/new", &json!({"cwd": world.home.project(), "mcpServers": servers}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.prompt(&session, "Call it"), "end_turn");
    let done = &editor.updates_of(&session, "tool_call_update");
    let done = done.last().unwrap();
    assert_eq!(done["status"], "completed", "{done}");
    assert!(done.to_string().contains("there"), "{done}");
    editor.leave();
}

#[tokio::test]
async fn questions_of_servers_are_forms_where_the_editor_has_forms() {
    for (capabilities, is_asked) in [(json!({"elicitation": {"form": {}}}), true), (json!({}), false)] {
        let world = World::new([Step::call("mcp__kit__ask", json!({})), Step::text("Done.")]).await;
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp_server.py");
        let mut permissions = choosing("allow_once");
        let mut editor = Editor::start(&world, [], &capabilities).answering(move |request| {
            let is_form = request["method"] == "elicitation/create";
            let form = is_form.then(|| json!({"action": "accept", "content": {"name": "Ada"}}));
            form.or_else(|| permissions(request))
        });
        let servers = json!([{"name": "kit", "command": "python3", "args": [server], "env": []}]);
        let opened = editor.call("session/new", &json!({"cwd": world.home.project(), "mcpServers": servers}));
        let session = opened["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(editor.prompt(&session, "Ask"), "end_turn");
        let asked = editor.log.iter().find(|it| it["method"] == "elicitation/create");
        assert_eq!(asked.is_some(), is_asked);
        editor.leave();
        assert_eq!(world.conversation().contains("Ada"), is_asked, "{}", world.conversation());
    }
}

#[tokio::test]
async fn additional_directories_belong_to_the_session() {
    let elsewhere = TestHome::new();
    elsewhere.write("b.txt", "elsewhere\n");
    let path = elsewhere.project().join("b.txt").display().to_string();
    let world = World::new([Step::call("Read", json!({"file_path": path})), Step::text("Done.")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let new = json!({"cwd": world.home.project(), "additionalDirectories": [elsewhere.project()], "mcpServers": []});
    let session = editor.call("session/new", &new)["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.prompt(&session, "Read it"), "end_turn");
    assert_eq!(editor.updates_of(&session, "tool_call_update")[0]["status"], "completed");
    editor.leave();
}

#[tokio::test]
async fn cleared_results_are_told_where_the_editor_has_notices() {
    let read = |n: u64| {
        let call = Step::call("Read", json!({"file_path": format!("long{n}.txt")}));
        call.usage(10, 20, 12_000 * (n + 1) - 30, 0)
    };
    let steps: Vec<Step> = (0..5).map(read).chain([Step::text("Done.")]).collect();
    let world = World::new(steps).await;
    for n in 0..5 {
        world.home.write(format!("long{n}.txt"), format!("file {n} {}\n", "words ".repeat(40)).repeat(150));
    }
    let binary = super::client::acp([]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let mut editor = Editor::start_binary(&world, &binary, &json!({"session": {"notices": {}}}));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "compare"), "end_turn");
    let told = editor.updates_of(&session, "notice");
    let words = told.iter().map(ToString::to_string).collect::<String>();
    assert!(words.contains("results of calls are not sent any more"), "{words}");
    editor.leave();
}
