//! Fields of frames and answers by which clients bind answers to prompts, judge questions and catch up.

use loci_testkit::{Gate, Session, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, control, is_result, stream, user};

const FIRST: &str = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a01";

/// A prompt that the client has a name for.
fn named(text: &str, uuid: &str) -> Value {
    let mut prompt = user(text);
    prompt["uuid"] = json!(uuid);
    prompt
}

fn ask(session: &mut Session, id: &str, request: Value) -> Value {
    session.write_json(&control(id, request));
    session.wait_for_json(|frame| frame["response"]["request_id"] == id)["response"].clone()
}

#[tokio::test]
async fn text_that_an_interrupt_cut_short_is_marked_as_aborted() {
    let world = World::new([Step::text("So far").wait_for(Gate::new()), Step::text("Whole.")]).await;
    let mut session = world.start(&stream(["--include-partial-messages"]));
    session.write_json(&user("talk"));
    session.wait_for_json(|frame| frame["event"]["delta"]["text"].is_string());
    session.write_json(&control("i", json!({"subtype": "interrupt"})));
    session.wait_for_json(is_result);
    session.write_json(&user("again"));
    session.wait_for_json(is_result);
    let frames = session.finish().json_lines();
    let told: Vec<(&Value, bool)> = frames
        .iter()
        .filter(|frame| frame["type"] == "assistant")
        .map(|frame| (&frame["message"]["content"][0]["text"], frame["aborted"] == true))
        .collect();
    assert_eq!(told, [(&json!("So far"), true), (&json!("Whole."), false)]);
}

#[tokio::test]
async fn first_event_and_first_message_of_an_answer_name_the_prompt() {
    let world = World::new([Step::text("One.").thinking("Hm.", "c2ln"), Step::text("Two.")]).await;
    let mut session = world.start(&stream(["--include-partial-messages"]));
    session.write_json(&named("one", FIRST));
    session.wait_for_json(is_result);
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_fine(&output);
    let frames = output.json_lines();
    let named: Vec<&Value> = frames.iter().filter(|frame| frame["user_message_uuid"] == FIRST).collect();
    let kinds: Vec<(&Value, &Value)> =
        named.iter().map(|frame| (&frame["type"], &frame["event"]["type"])).collect();
    assert_eq!(
        kinds,
        [
            (&json!("stream_event"), &json!("message_start")),
            (&json!("assistant"), &Value::Null),
            (&json!("result"), &Value::Null),
        ]
    );
    assert!(named.iter().all(|frame| frame["user_message_uuids"] == json!([FIRST])), "{named:?}");
}

#[tokio::test]
async fn question_says_whose_tool_it_is_about_and_whether_a_yes_is_enough() {
    let question = json!({"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Blue", "description": ""}, {"label": "Red", "description": ""}],
    }]});
    let calls = Step::call("AskUserQuestion", question).tool("Bash", json!({"command": "touch made"}));
    let world = World::new([calls, Step::text("Done.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("go"));
    for (tool, needs_person) in [("AskUserQuestion", json!(true)), ("Bash", Value::Null)] {
        let asked = session.wait_for_json(|frame| frame["request"]["tool_name"] == tool);
        let request = asked["request"].as_object().unwrap();
        let told = request.get("requires_user_interaction").cloned().unwrap_or_default();
        assert_eq!(told, needs_person, "{request:?}");
        assert!(!request.contains_key("description") && !request.contains_key("mcp_server"), "{request:?}");
        session.write_json(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": asked["request_id"], "response": {"behavior": "deny", "message": "No."},
        }}));
    }
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
}

#[tokio::test]
async fn read_file_says_whether_what_it_tells_is_the_files_own_text() {
    let world = World::new([]).await;
    world.home.write("text.txt", "grün\n");
    world.home.write("bytes.bin", b"a\xffb");
    let mut session = world.start(&stream([]));
    let mut read = |id: &str, path: &str, encoding: &str| {
        let request = json!({"subtype": "read_file", "path": path, "encoding": encoding});
        ask(&mut session, id, request)["response"].clone()
    };
    let text = read("a", "text.txt", "utf-8");
    assert_eq!((&text["contents"], &text["lossy"]), (&json!("grün\n"), &json!(false)), "{text}");
    let bytes = read("b", "bytes.bin", "utf-8");
    assert_eq!((&bytes["contents"], &bytes["lossy"]), (&json!("a\u{fffd}b"), &json!(true)), "{bytes}");
    let exact = read("c", "bytes.bin", "base64");
    assert_eq!((&exact["contents"], &exact["encoding"]), (&json!("Yf9i"), &json!("base64")), "{exact}");
    assert_eq!(exact.get("lossy"), None, "{exact}");
    assert_fine(&session.finish());
}

/// A client that comes back hears what works in the background, and a prompt that clears the conversation waits no more.
#[tokio::test]
async fn client_that_initializes_again_is_told_what_runs() {
    let call = Step::call("Bash", json!({"command": "sleep 60", "run_in_background": true}));
    let world = World::new([call, Step::text("Started.")]).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    let first = ask(&mut session, "a", json!({"subtype": "initialize"}));
    assert_eq!(first["response"].get("hooks_applied"), None, "no hooks were asked for: {first}");
    session.write_json(&user("start"));
    session.wait_for_json(is_result);
    ask(&mut session, "b", json!({"subtype": "initialize"}));
    let running = session.wait_for_json(|frame| frame["subtype"] == "background_tasks_changed");
    assert_eq!(running["tasks"][0]["task_type"], "local_bash", "{running}");
    session.write_json(&named("/clear", FIRST));
    session.wait_for_json(|frame| frame["type"] == "conversation_reset" && frame["timestamp"].is_string());
    session.wait_for_json(is_result);
    let stopped = ask(&mut session, "c", json!({"subtype": "interrupt"}));
    assert_eq!(stopped["response"]["still_queued"], json!([]), "{stopped}");
    let output = session.finish();
    assert_eq!(output.code, Some(0));
    let frames = output.json_lines();
    let way: Vec<&Value> =
        frames.iter().filter(|frame| frame["command_uuid"] == FIRST).map(|frame| &frame["state"]).collect();
    assert_eq!(way, ["queued", "started", "completed"]);
}
