//! Handlers that are no commands: addresses, questions to a model, functions of the client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use loci_testkit::{Script, Step};
use serde_json::{Value, json};

use super::{configure, last_message, run, specific};
use crate::support::{World, control, is_result, print, stream, user};

type Heard = Arc<Mutex<Vec<(Value, String)>>>;

/// An address on this machine that answers every post alike, and what it heard: bodies, and the header `authorization`.
fn address(status: u16, answer: String) -> (String, Heard) {
    let heard = Heard::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let log = Arc::clone(&heard);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut reader = BufReader::new(connection.unwrap());
            let (mut n_bytes, mut token) = (0, String::new());
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let (name, value) = line.split_once(": ").unwrap_or((line.trim(), ""));
                match name.to_lowercase().as_str() {
                    "" => break,
                    "content-length" => n_bytes = value.trim().parse().unwrap(),
                    "authorization" => token = value.trim().to_owned(),
                    _ => {}
                }
            }
            let mut body = vec![0; n_bytes];
            reader.read_exact(&mut body).unwrap();
            log.lock().unwrap().push((serde_json::from_slice(&body).unwrap(), token));
            let head = format!(
                "HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).unwrap();
        }
    });
    (url, heard)
}

fn touch() -> Vec<Step> {
    vec![Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")]
}

#[tokio::test]
async fn address_is_posted_the_payload_and_its_answer_decides() {
    let deny = specific(
        "PreToolUse",
        json!({"permissionDecision": "deny", "permissionDecisionReason": "by policy"}),
    );
    for (status, answer, runs) in [
        (200, deny.to_string(), false),
        (200, String::new(), true),
        (200, "words".to_owned(), true),
        (500, deny.to_string(), true),
        (307, deny.to_string(), true),
    ] {
        let (url, heard) = address(status, answer.clone());
        let world = World::new(touch()).await;
        let handler = json!({"type": "http", "url": url, "headers": {"Authorization": "Bearer $TOKEN$HOME$ANTHROPIC_API_KEY"}, "allowedEnvVars": ["TOKEN", "ANTHROPIC_API_KEY"]});
        configure(&world, json!({"PreToolUse": [{"hooks": [handler]}]}));
        let binary =
            print(["go", "--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1").env("TOKEN", "t0");
        let output = world.run(&binary);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(world.home.project().join("made").exists(), runs, "{status} {answer}");
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 1, "{status}");
        assert_eq!(
            (&heard[0].0["hook_event_name"], heard[0].1.as_str()),
            (&json!("PreToolUse"), "Bearer t0")
        );
    }
}

#[tokio::test]
async fn address_that_is_not_on_the_list_is_not_called() {
    let (url, heard) = address(200, String::new());
    let base = url.trim_end_matches("/hook").to_owned();
    for (allowed, n_calls) in
        [(json!(["https://elsewhere.test/*"]), 0), (json!([]), 0), (json!([format!("{base}/*")]), 1)]
    {
        heard.lock().unwrap().clear();
        let world = World::new(Step::text("Done.")).await;
        let settings = json!({
            "allowedHttpHookUrls": allowed,
            "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "http", "url": url}]}]},
        });
        world.home.write_config("settings.json", settings.to_string());
        let output = run(&world);
        assert_eq!(heard.lock().unwrap().len(), n_calls, "{allowed}");
        assert_eq!(output.stderr.contains("allowedHttpHookUrls"), n_calls == 0, "{}", output.stderr);
    }
}

#[tokio::test]
async fn question_to_a_model_decides() {
    for (answer, n_requests, told) in [
        (r#"{"ok": true}"#, 2, ""),
        (r#"{"ok": false, "reason": "the tests were not run"}"#, 4, "the tests were not run"),
        ("I cannot say", 2, ""),
    ] {
        // The conversation, the question, and what follows from its answer.
        let steps = vec![
            Step::text("Done."),
            Step::text(answer),
            Step::text("Now done."),
            Step::text(r#"{"ok": true}"#),
        ];
        let world = World::new(Script::new(steps).every_request()).await;
        configure(
            &world,
            json!({"Stop": [{"hooks": [{"type": "prompt", "prompt": "Did it run the tests? $ARGUMENTS"}]}]}),
        );
        run(&world);
        let requests = world.model.requests();
        assert_eq!(requests.len(), n_requests, "{answer}");
        let question = requests[1].json["messages"].to_string();
        assert!(
            question.contains("Did it run the tests? {") && question.contains("last_assistant_message"),
            "{question}"
        );
        assert!(requests[n_requests - 2].json["messages"].to_string().contains(told));
    }
}

/// Talks to a run as a client with one hook: answers its callbacks with what `answer` says, and returns the callbacks and
/// the result.
pub(crate) fn talk(
    world: &World,
    hooks: Value,
    answer: impl Fn(&Value) -> Option<Value>,
) -> (Vec<Value>, Value) {
    let binary = stream(["--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1");
    let mut session = world.start(&binary);
    session.write_json(&control("r1", json!({"subtype": "initialize", "hooks": hooks})));
    session.write_json(&user("go"));
    let mut callbacks = Vec::new();
    loop {
        let frame = session.wait_for_json(|_| true);
        if frame["request"]["subtype"] == "hook_callback" {
            let (id, request) = (frame["request_id"].clone(), frame["request"].clone());
            if let Some(reply) = answer(&request) {
                let response = json!({"subtype": "success", "request_id": id, "response": reply});
                session.write_json(&json!({"type": "control_response", "response": response}));
            }
            callbacks.push(request);
        }
        if is_result(&frame) {
            session.close_stdin();
            return (callbacks, frame);
        }
    }
}

#[tokio::test]
async fn client_is_called_back_and_its_denial_counts_beside_settings() {
    let world = World::new(touch()).await;
    configure(&world, json!({"PreToolUse": super::command("Bash", super::KEEP)}));
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}, {"matcher": "Read", "hookCallbackIds": ["hook_1"]}]});
    let deny = specific(
        "PreToolUse",
        json!({"permissionDecision": "deny", "permissionDecisionReason": "the client says no"}),
    );
    let (callbacks, result) = talk(&world, hooks, |_| Some(deny.clone()));
    assert_eq!(callbacks.len(), 1);
    assert_eq!(
        (&callbacks[0]["callback_id"], &callbacks[0]["input"]["tool_name"]),
        (&json!("hook_0"), &json!("Bash"))
    );
    assert_eq!(callbacks[0]["tool_use_id"], callbacks[0]["input"]["tool_use_id"]);
    assert!(!world.home.project().join("made").exists());
    assert!(last_message(&world).contains("the client says no"), "{result}");
    assert_eq!(super::kept(&world, "kept.jsonl").len(), 1, "the hook of the settings ran too");
}

#[tokio::test]
async fn callback_that_is_silent_blocks_a_call_and_one_that_looks_on_does_not() {
    for (event, made) in [("PreToolUse", false), ("PostToolUse", true)] {
        let world = World::new(touch()).await;
        let hooks = json!({event: [{"hookCallbackIds": ["hook_0"], "timeout": 0.3}]});
        let (callbacks, _) = talk(&world, hooks, |_| None);
        assert_eq!(callbacks.len(), 1, "{event}");
        assert_eq!(world.home.project().join("made").exists(), made, "{event}");
    }
}

#[tokio::test]
async fn callback_that_answers_later_or_with_nothing_stops_nothing() {
    for reply in
        [json!({}), json!({"async": true, "asyncTimeout": 1000}), json!({"async": true, "decision": "block"})]
    {
        let world = World::new(touch()).await;
        let (callbacks, _) =
            talk(&world, json!({"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}), |_| Some(reply.clone()));
        assert_eq!((callbacks.len(), world.home.project().join("made").exists()), (1, true), "{reply}");
    }
}

#[tokio::test]
async fn agent_of_a_hook_looks_around_before_it_decides_and_changes_nothing() {
    // The conversation, the agent that looks, tries to write, and decides, and what follows.
    for (answer, is_made) in [
        (r#"{"ok": true}"#, true),
        (r#"{"ok": false, "reason": "the notes forbid it"}"#, false),
        ("I cannot say", true),
    ] {
        let steps = vec![
            Step::call("Bash", json!({"command": "touch made"})),
            Step::call("Read", json!({"file_path": "notes.md"})),
            Step::call("Write", json!({"file_path": "planted", "content": "x"})),
            Step::text(answer),
            Step::text("Done."),
        ];
        let world = World::new(steps).await;
        world.home.write("notes.md", "Never touch made.\n");
        let handler = json!({"type": "agent", "prompt": "May this run? $ARGUMENTS"});
        // Its own calls set nothing off: no hook hears of them.
        let hooks = json!({"PreToolUse": [
            {"matcher": "Bash|Read", "hooks": [handler]},
            {"hooks": [{"type": "command", "command": super::KEEP}]},
        ]});
        configure(&world, hooks);
        let output = run(&world);
        assert_eq!(super::result(&output)["result"], "Done.", "{answer} {output:?}");
        let requests = world.model.requests();
        assert_eq!(requests.len(), 5, "{answer}");
        let tools: Vec<String> = requests[1].json["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect();
        assert!(tools.iter().all(|name| ["Read", "Glob", "Grep"].contains(&name.as_str())), "{tools:?}");
        assert!(requests[1].json["messages"].to_string().contains("touch made"));
        assert!(requests[2].json["messages"].to_string().contains("Never touch made."));
        let project = world.home.project();
        assert_eq!(project.join("made").exists(), is_made, "{answer}");
        assert!(!project.join("planted").exists());
        assert_eq!(last_message(&world).contains("the notes forbid it"), answer.contains("notes"));
        assert_eq!(super::kept(&world, "kept.jsonl").len(), 1, "the call of the conversation, and no other");
    }
}
