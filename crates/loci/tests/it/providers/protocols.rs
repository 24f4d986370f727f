//! Turns by each protocol, and sessions that change it in the middle.

use loci_testkit::{Script, Step};
use serde_json::{Value, json};

use super::{ask, configure, entry, main_requests, result_of, second_result, talk};
use crate::support::{World, assert_fine, control, is_result, loci, stream, user};

fn described() -> Value {
    json!({"m": {"window": 65_536, "maxOutput": 4_096, "price": {"input": 1, "output": 2, "cacheRead": 0.5}}})
}

/// Parallel calls, reasoning and results go back and forth, and usage is counted.
#[tokio::test]
async fn turn_with_tools_runs_over_every_protocol() {
    for protocol in ["chat", "responses", "messages"] {
        let calls = Step::text("Looking.")
            .thinking("Hm.", "sealed")
            .tool("Read", json!({"file_path": "notes.txt"}))
            .tool("Glob", json!({"pattern": "*.txt"}));
        let world = World::new([calls, Step::text("It says one.").usage(1_000, 100, 400, 0)]).await;
        world.home.write("notes.txt", "one\n");
        let mut entry = entry(&world, protocol);
        entry["models"] = described();
        configure(&world, json!({"mine": entry}));
        let output = world.run(&ask("mine/m"));
        assert_fine(&output);
        let result = result_of(&output);
        assert_eq!(result["result"], "It says one.", "{protocol}: {result}");
        let usage = &result["modelUsage"]["mine/m"];
        assert_eq!(
            (&usage["contextWindow"], &usage["maxOutputTokens"], &usage["priceUnknown"]),
            (&json!(65_536), &json!(4_096), &Value::Null),
            "{protocol}: {usage}"
        );
        assert_eq!((&usage["inputTokens"], &usage["cacheReadInputTokens"]), (&json!(1_100), &json!(400)));
        // 1,100 fresh, 400 cached, 120 written.
        let cost = usage["costUSD"].as_f64().unwrap();
        assert!((cost - 0.00154).abs() < 1e-9, "{protocol}: {cost}");
        let requests = main_requests(&world);
        assert_eq!(requests.len(), 2, "{protocol}");
        let last = &requests[1];
        assert_eq!(last.json["model"], "m");
        let body = last.json.to_string();
        assert!(body.contains("one") && body.contains("notes.txt"), "{protocol}: {body}");
        assert!(last.header("authorization").is_none() && last.header("x-api-key").is_none());
        assert!(last.header("anthropic-beta").is_none(), "{protocol}");
        match protocol {
            "chat" => {
                assert_eq!(last.json["stream_options"]["include_usage"], true);
                assert_eq!(last.json["max_tokens"], 4_096);
                let said =
                    last.json["messages"].as_array().unwrap().iter().find(|it| it["role"] == "assistant");
                let said = said.unwrap();
                assert_eq!(said["reasoning_content"], "Hm.", "{said}");
                assert_eq!(said["tool_calls"].as_array().unwrap().len(), 2, "{said}");
            }
            "responses" => {
                assert_eq!(
                    (&last.json["store"], &last.json["previous_response_id"]),
                    (&json!(false), &Value::Null)
                );
                assert_eq!(last.json["include"], json!(["reasoning.encrypted_content"]));
                assert_eq!(last.json["prompt_cache_key"], result["session_id"]);
                let items = last.json["input"].as_array().unwrap();
                let kinds: Vec<&str> = items.iter().filter_map(|item| item["type"].as_str()).collect();
                let expected = "message reasoning message function_call function_call function_call_output function_call_output";
                assert_eq!(kinds.join(" "), expected, "{items:?}");
                assert_eq!(items[1]["encrypted_content"], "sealed");
            }
            _ => assert!(last.header("anthropic-version").is_some()),
        }
        let session = world.session();
        let models: Vec<&Value> =
            session.iter().map(|it| &it["message"]["model"]).filter(|it| !it.is_null()).collect();
        assert!(!models.is_empty() && models.iter().all(|model| **model == "mine/m"), "{models:?}");
    }
}

/// A session that begins with the first provider goes on with another, and back: old turns keep their bytes.
#[tokio::test]
async fn session_changes_its_provider_in_the_middle() {
    for protocol in ["chat", "responses"] {
        change_to(protocol).await;
    }
}

async fn change_to(protocol: &str) {
    let first =
        Step::text("Reading.").thinking("Signed.", "sig").tool("Read", json!({"file_path": "notes.txt"}));
    let world = World::new([first, Step::text("one")]).await;
    world.home.write("notes.txt", "one\n");
    let other = World::new([
        Step::text("Again.").thinking("Foreign.", "").tool("Read", json!({"file_path": "notes.txt"})),
        Step::text("two"),
    ])
    .await;
    configure(&world, json!({"mine": entry(&other, protocol)}));
    let mut session = world.start(&stream([]));
    session.write_json(&user("first"));
    session.wait_for_json(is_result);
    session.write_json(&control("m", json!({"subtype": "set_model", "model": "mine/m"})));
    session.wait_for_json(|frame| frame["response"]["request_id"] == "m");
    session.write_json(&user("second"));
    let result = session.wait_for_json(is_result);
    assert_eq!(result["result"], "two", "{result}");
    session.write_json(&control("n", json!({"subtype": "set_model", "model": crate::support::MODEL})));
    session.wait_for_json(|frame| frame["response"]["request_id"] == "n");
    session.write_json(&user("third"));
    let result = session.wait_for_json(is_result);
    assert_eq!(result["result"], "done", "{result}");
    session.finish();
    let (ours, theirs) = (main_requests(&world), main_requests(&other));
    assert_eq!((ours.len(), theirs.len()), (3, 2));
    // What Anthropic signed never reaches another, and what another thought never reaches Anthropic.
    assert!(!theirs.iter().any(|it| it.json.to_string().contains("Signed.")));
    let last = ours[2].json.to_string();
    assert!(last.contains("Signed.") && !last.contains("Foreign.") && !last.contains("loci:wire"), "{last}");
    let plain = |text: &str| text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let (before, after) = (ours[1].body.clone(), ours[2].body.clone());
    let before = plain(std::str::from_utf8(&before).unwrap());
    let before = before.trim_end_matches(['}', ']']);
    assert!(plain(std::str::from_utf8(&after).unwrap()).starts_with(before), "{before}");
}

/// A resumed session goes back to the model of its transcript, with what is configured now.
#[tokio::test]
async fn resume_goes_back_to_the_named_model() {
    let world = World::new([Step::text("hi")]).await;
    configure(&world, json!({"mine": entry(&world, "chat")}));
    assert_fine(&world.run(&ask("mine/m")));
    let world = world.then([Step::text("again")]).await;
    configure(&world, json!({"mine": entry(&world, "responses")}));
    let binary = loci().args(["-p", "more", "--continue", "--output-format", "json"]);
    let output = world.run(&binary.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", ""));
    assert_fine(&output);
    assert_eq!(result_of(&output)["result"], "again");
    assert!(world.last_request().path.ends_with("/responses"));
}

/// The chain goes on at another provider when the first is overloaded.
#[tokio::test]
async fn fallback_chain_crosses_providers() {
    let world = World::new(Script::repeat(Step::status(503), 9)).await;
    let other = World::new([Step::text("from elsewhere")]).await;
    configure(&world, json!({"a": entry(&world, "chat"), "b": entry(&other, "responses")}));
    let binary = ask("a/m").args(["--fallback-model", "b/n"]).env("CLAUDE_CODE_MAX_RETRIES", "1");
    let output = world.run(&binary);
    let result = result_of(&output);
    assert_eq!(result["result"], "from elsewhere", "{output:?}");
    assert!(result["modelUsage"]["b/n"].is_object(), "{result}");
}

/// What a vendor says about a prompt that is too long leads to a compaction, whatever is spoken.
#[tokio::test]
async fn context_error_of_a_vendor_leads_to_compaction() {
    let error = json!({"error": {"message": "This model's maximum context length is 20000 tokens. However, you requested 21000 tokens (21000 in the messages, 0 in the completion).", "code": "context_length_exceeded"}});
    for protocol in ["chat", "responses", "messages"] {
        let world = World::new(Script::new([
            Step::text("word ".repeat(8_000)).usage(9_000, 8_000, 0, 0),
            Step::status(400).raw_body("application/json", error.to_string()),
            Step::text("<summary>It was long.</summary>"),
            Step::text("after"),
        ]))
        .await;
        let mut entry = entry(&world, protocol);
        entry["models"] = json!({"m": {"maxOutput": 2_000}});
        configure(&world, json!({"mine": entry}));
        let result = second_result(&world, &talk("mine/m"), "hello");
        assert_eq!(result["result"], "after", "{protocol}: {result}");
        assert_eq!(result["modelUsage"]["mine/m"]["contextWindow"], 20_000, "{protocol}: {result}");
        let last = world.last_request().json.to_string();
        assert!(!last.contains("word word word"), "{protocol}: the old answer is gone");
    }
}

/// A call that is written as text is not guessed at: one reminder, then the text stands.
#[tokio::test]
async fn written_call_is_reminded_once() {
    let written = r#"{"name": "Read", "arguments": {"file_path": "a"}}"#;
    let world = World::new([Step::text(written), Step::text(written), Step::text("never")]).await;
    configure(&world, json!({"mine": entry(&world, "chat")}));
    let output = world.run(&ask("mine/m"));
    assert_fine(&output);
    assert_eq!(result_of(&output)["result"], written);
    let requests = main_requests(&world);
    assert_eq!(requests.len(), 2);
    assert!(requests[1].json.to_string().contains("function-calling interface"));
}

/// Arguments that are no JSON are answered with an error once; the second time the turn ends and says so.
#[tokio::test]
async fn bad_arguments_end_the_turn_the_second_time() {
    let bad = || Step::call("Read", json!("{\"file_path\": "));
    let world = World::new([bad(), bad(), Step::text("never")]).await;
    configure(&world, json!({"mine": entry(&world, "chat")}));
    let output = world.run(&ask("mine/m"));
    let result = result_of(&output);
    assert_eq!(result["is_error"], true, "{result}");
    assert!(output.stdout.contains("twice with arguments that are not JSON"), "{output:?}");
    assert_eq!(main_requests(&world).len(), 2);
    world.session();
}

/// Faults of the connection are met as with the first provider.
#[tokio::test]
async fn cut_streams_are_retried() {
    let world = World::new([
        Step::text("lost").cut_after_events(2),
        Step::status(429).header("retry-after-ms", "1"),
        Step::text("found"),
    ])
    .await;
    configure(&world, json!({"mine": entry(&world, "chat")}));
    let output = world.run(&ask("mine/m"));
    assert_eq!(result_of(&output)["result"], "found", "{output:?}");
}
