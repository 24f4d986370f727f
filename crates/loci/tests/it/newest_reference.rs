//! Sessions as Claude Code 2.1.325 writes them: lines and fields that older versions do not have.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use loci_testkit::Step;
use serde_json::{Value, json};

use crate::support::{MODEL, World, assert_fine, loci, print};

const ID: &str = "0e0e0e0e-0001-4000-8000-000000000001";

/// The lines of one finished turn that cost $3.00, of which the summary of a side request was $1.00.
fn finished_turn(cwd: &str) -> Vec<Value> {
    let chain = |value: Value| {
        let mut value = value;
        for (key, field) in [
            ("isSidechain", json!(false)),
            ("userType", json!("external")),
            ("entrypoint", json!("sdk-cli")),
            ("cwd", json!(cwd)),
            ("sessionId", json!(ID)),
            ("version", json!("2.1.325")),
            ("gitBranch", json!("HEAD")),
        ] {
            value[key] = field;
        }
        value
    };
    let third = 1_000_000 / 3;
    vec![
        json!({"type": "atis-latch", "sessionId": ID, "latches": {"x": true}}),
        json!({"type": "api-request-shape", "sessionId": ID, "shape": {"customTitle": "not a title", "cwd": "/nowhere"}}),
        json!({"type": "api-request-blob", "sessionId": ID, "hash": "b1", "blob": {"role": "user", "content": "blobword"}}),
        chain(
            json!({"parentUuid": null, "promptId": "p", "type": "user", "uuid": "u1", "turnOrigin": "human", "turnPosition": 0,
            "message": {"role": "user", "content": "Which kiwi?"}, "timestamp": "2026-11-01T10:00:00.000Z"}),
        ),
        chain(
            json!({"parentUuid": "u1", "type": "attachment", "uuid": "t1", "timestamp": "2026-11-01T10:00:00.100Z",
            "attachment": {"type": "environment", "rendered": "The kiwi is green.", "renderedRole": "user"}}),
        ),
        json!({"type": "api-request", "sessionId": ID, "requestRef": "r1", "blobs": ["b1"]}),
        chain(
            json!({"parentUuid": "t1", "type": "assistant", "uuid": "a1", "requestId": "req_1", "requestRef": "r1",
            "requestedModel": MODEL, "effort": "medium", "apiBlockIndex": 0, "timestamp": "2026-11-01T10:00:02.000Z",
            "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "The green one."}], "usage": {"input_tokens": 2 * third, "output_tokens": 0}}}),
        ),
        chain(
            json!({"parentUuid": "a1", "type": "attachment", "uuid": "t2", "timestamp": "2026-11-01T10:00:02.100Z",
            "attachment": {"type": "prompt_snapshot", "system": ["You are an agent."], "hash": "h"}}),
        ),
        json!({"type": "cost-state", "sessionId": ID, "totalCostUSD": 3.0, "totalAPIDuration": 2000, "totalLinesAdded": 7,
            "modelUsage": {MODEL: {"inputTokens": 3 * third, "outputTokens": 0, "cacheReadInputTokens": 0,
                "cacheCreationInputTokens": 0, "webSearchRequests": 0, "costUSD": 3.0, "thinkingTokens": 0}}}),
        json!({"type": "last-prompt", "lastPrompt": "Which kiwi?", "leafUuid": "t2", "sessionId": ID}),
    ]
}

/// A home that has such a session, and a model that answers once for a million tokens.
async fn world() -> (World, PathBuf) {
    let world = World::new([Step::text("Still green.").usage(1_000_000, 0, 0, 0)]).await;
    let cwd = world.home.project();
    let slug: String =
        cwd.to_str().unwrap().chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    let lines = finished_turn(cwd.to_str().unwrap());
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = world.home.write_config(format!("projects/{slug}/{ID}.jsonl"), text);
    let modes = [(file.clone(), 0o600), (file.parent().unwrap().to_owned(), 0o700)];
    for (path, mode) in modes.into_iter().chain([(world.home.config_home().join("projects"), 0o700)]) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    (world, file)
}

fn json_of(world: &World, args: &[&str]) -> Value {
    let output = world.run(&loci().args(args.iter().copied()).env("TZ", "UTC"));
    assert_fine(&output);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test]
async fn finished_session_goes_on_without_repairs_and_sends_rendered_attachments() {
    let (world, file) = world().await;
    let before = fs::read_to_string(&file).unwrap();
    assert_fine(&world.run(&print(["And now?", "-c"])));
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&before));
    let added: Vec<&str> = after[before.len()..].lines().collect();
    assert!(
        !added
            .iter()
            .any(|line| line.contains("Continue from where") || line.contains("No response requested")),
        "{added:#?}"
    );
    let prompt = added.iter().find(|line| line.contains("And now?") && line.contains("parentUuid")).unwrap();
    assert!(prompt.contains(r#""parentUuid":"t2""#), "{prompt}");
    let body = String::from_utf8(world.last_request().body.to_vec()).unwrap();
    assert!(body.contains(r#"{"type":"text","text":"The kiwi is green."}"#), "{body}");
    assert!(!body.contains("blobword"), "{body}");
}

#[tokio::test]
async fn cost_of_a_resumed_session_is_the_sum_in_result_transcript_list_and_stats() {
    let (world, file) = world().await;
    let output = world.run(&print(["And now?", "-c", "--output-format", "json"]));
    assert_fine(&output);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    let close = |value: &Value| (value.as_f64().unwrap() - 6.0).abs() < 1e-4;
    assert!(close(&result["total_cost_usd"]), "{result}");
    assert_eq!(result["modelUsage"][MODEL]["inputTokens"], 1_999_999);
    let states: Vec<Value> =
        world.home.read_session(&file).into_iter().filter(|line| line["type"] == "cost-state").collect();
    let last = &states[1..];
    assert!(last.len() == 1 && close(&last[0]["totalCostUSD"]), "{states:?}");
    assert_eq!(
        (&last[0]["totalLinesAdded"], &last[0]["modelUsage"][MODEL]["inputTokens"]),
        (&json!(7), &json!(1_999_999))
    );
    let stats = json_of(&world, &["stats", "--json"]);
    assert!(close(&stats["costUSD"]), "{stats}");
    assert_eq!(
        (&stats["responses"], &stats["turns"], &stats["inputTokens"]),
        (&json!(2), &json!(2), &json!(1_999_999))
    );
    let list = json_of(&world, &["sessions", "list", "--json"]);
    let [session] = list.as_array().unwrap().as_slice() else { panic!("{list}") };
    assert!(close(&session["costUsd"]), "{list}");
    // The next run reads what this one wrote.
    let again = world.then([Step::text("Yes.").usage(1_000_000, 0, 0, 0)]).await;
    let output = again.run(&print(["Sure?", "-c", "--output-format", "json"]));
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    let total = result["total_cost_usd"].as_f64().unwrap();
    assert!((total - 9.0).abs() < 0.01, "{result}");
    let stats = json_of(&again, &["stats", "--json"]);
    assert!((stats["costUSD"].as_f64().unwrap() - total).abs() < 1e-9, "{stats}");
}

#[tokio::test]
async fn new_line_types_are_known_to_list_search_and_doctor() {
    let (world, _) = world().await;
    let list = json_of(&world, &["sessions", "list", "--json"]);
    let [session] = list.as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!((&session["sessionId"], &session["messages"]), (&json!(ID), &json!(2)), "{session}");
    assert_eq!(session["firstPrompt"], "Which kiwi?", "{session}");
    assert_eq!(session["cwd"], json!(world.home.project()), "{session}");
    assert_ne!(session["title"], "not a title", "{session}");
    let found = json_of(&world, &["sessions", "search", "kiwi", "--json"]);
    assert_eq!(found["hits"].as_array().map(Vec::len).or(found.as_array().map(Vec::len)), Some(1), "{found}");
    let nothing = world.run(&loci().args(["sessions", "search", "blobword"]));
    assert!(!nothing.stdout.contains(ID), "{nothing:?}");
    let doctor = json_of(&world, &["sessions", "doctor", "--json"]);
    assert_eq!(doctor["findings"], json!([]), "{doctor}");
}
