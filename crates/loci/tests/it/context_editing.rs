//! Old results that the server clears: what it is asked for, and what it says it did.

use crate::support::{World, assert_fine, is_result, print, stream, user};
use loci_testkit::{Gate, Recorded, Script, Step};
use serde_json::{Value, json};

async fn world() -> World {
    let edits =
        json!([{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 90_000}]);
    let reading = Step::call("Read", json!({"file_path": "notes.txt"})).usage(10, 20, 70_000, 0);
    let cleared = Step::text("Done.").usage(10, 20, 12_000, 0).applied_edits(edits);
    let world = World::new(vec![reading, cleared, Step::text("More.")]).await;
    world.home.write("notes.txt", "port=9000\n");
    world
}

fn edits(request: &Recorded) -> Vec<Value> {
    request.json["context_management"]["edits"].as_array().cloned().unwrap_or_default()
}

/// The server is asked in every request alike, what it reports is kept, and what it counted is what counts.
/// Invariant 18 of `docs/design/compaction.md`.
#[tokio::test]
async fn server_clearing_is_requested_and_recorded() {
    let world = world().await;
    let run = |args: [&str; 3]| print(args).env("LOCI_CONTEXT_EDITING", "1");
    let run = |args: [&str; 3]| run(args).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200000");
    assert_fine(&world.run(&run(["compare", "--output-format", "text"])));
    let requests = world.requests();
    let asked = edits(&requests[0]);
    assert_eq!(asked[0]["type"], "clear_thinking_20251015", "what is done to reasoning comes first");
    let except = asked[1]["exclude_tools"].as_array().unwrap();
    assert!(except.contains(&json!("TaskCreate")) && !except.contains(&json!("Read")), "{except:?}");
    let mut clear = asked[1].clone();
    clear.as_object_mut().unwrap().remove("exclude_tools");
    assert_eq!(
        clear,
        json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 160_000},
            "keep": {"type": "tool_uses", "value": 5}, "clear_at_least": {"type": "input_tokens", "value": 18_000}})
    );
    let header = requests[0].header("anthropic-beta").unwrap();
    assert!(header.contains("context-management-2025-06-27"), "{header}");
    assert_eq!(edits(&requests[1]), asked, "the same every time");
    let said = world.session().into_iter().find(|entry| entry["message"]["content"][0]["text"] == "Done.");
    let kept = said.unwrap()["message"]["context_management"]["applied_edits"].clone();
    assert_eq!(
        (&kept[0]["cleared_tool_uses"], &kept[0]["cleared_input_tokens"]),
        (&json!(8), &json!(90_000))
    );
    let output = world.run(&run(["more", "-c", "--output-format=json"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("port=9000"), "what is sent stays as it was: {sent}");
}

/// One switch for all clearing; and whoever else answers is not asked for what it may not know.
#[tokio::test]
async fn context_editing_is_not_requested_where_switched_off_or_unknown() {
    for (name, value) in [
        ("LOCI_CONTEXT_EDITING", "0"),
        ("LOCI_DISABLE_CLEARING", "1"),
        ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
        // Another server than the one that is known to do it.
        ("LOCI_UNRELATED", "1"),
    ] {
        let world = world().await;
        let mut run = print(["compare"]).env(name, value);
        if name.starts_with("LOCI_DISABLE") || name.starts_with("CLAUDE") {
            run = run.env("LOCI_CONTEXT_EDITING", "1");
        }
        assert_fine(&world.run(&run));
        let asked = edits(&world.requests()[0]);
        assert!(!asked.iter().any(|edit| edit["type"] == "clear_tool_uses_20250919"), "{name}: {asked:?}");
    }
}

/// The setting asks for it, too. What the server counts behind its edits is how full the context is said to be: the level
/// falls, and nothing is compacted that the server made fit.
/// Invariant 18 of `docs/design/compaction.md`.
#[tokio::test]
async fn cleared_tokens_are_not_counted() {
    let edits =
        json!([{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 6, "cleared_input_tokens": 58_000}]);
    let steps = vec![
        Step::text("One.").usage(10, 20, 64_970, 0),
        Step::text("Two.").usage(10, 20, 8_970, 0).applied_edits(edits),
        Step::text("Three."),
    ];
    let world = World::new(steps).await;
    let switches = json!({"compactionSteps": {"serverClearing": true}});
    world.home.write_config("settings.json", switches.to_string());
    let mut session = world.start(&stream([]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    let mut levels = Vec::new();
    for prompt in ["one", "two", "three"] {
        session.write_json(&user(prompt));
        let context = session.wait_for_json(is_result)["loci"]["context"].clone();
        levels.push((context["tokens"].clone(), context["level"].clone()));
    }
    session.finish();
    assert_eq!(levels[..2], [(json!(65_000), json!("warning")), (json!(9_000), json!("fine"))]);
    assert_eq!(world.requests().len(), 3, "nobody is asked for a summary");
    for request in world.requests() {
        assert!(request.header("anthropic-beta").unwrap().contains("context-management-2025-06-27"));
        assert_eq!(edits_of(&request, "clear_tool_uses_20250919"), 1);
    }
}

fn edits_of(request: &Recorded, kind: &str) -> usize {
    edits(request).iter().filter(|edit| edit["type"] == kind).count()
}

/// Whatever a server says to refuse it: the same request goes out without, at once, and so do all that follow. It is said
/// once, and there is no trace of it in the conversation.
/// Invariant 24 of `docs/design/compaction.md`.
#[tokio::test]
async fn refused_context_editing_is_retried_without_it() {
    for words in [
        "context_management: Extra inputs are not permitted",
        "Unexpected value(s) `context-management-2025-06-27` for the `anthropic-beta` header",
    ] {
        let refusal = Step::status(400).error("invalid_request_error", words);
        let world = World::new(vec![refusal, Step::text("One."), Step::text("Two.")]).await;
        let mut session = world.start(&stream([]).env("LOCI_CONTEXT_EDITING", "1"));
        for prompt in ["one", "two"] {
            session.write_json(&user(prompt));
            assert_eq!(session.wait_for_json(is_result)["is_error"], false, "{prompt}");
        }
        let output = session.finish();
        assert_eq!(output.code, Some(0));
        assert_eq!(output.stderr.matches("The server does not edit conversations").count(), 1, "{output:?}");
        assert!(output.stderr.contains(words), "{output:?}");
        let requests = world.requests();
        let asks = requests.iter().map(|request| {
            let header = request.header("anthropic-beta").unwrap_or_default();
            (edits(request).len(), header.contains("context-management"))
        });
        assert_eq!(asks.collect::<Vec<_>>(), [(2, true), (0, false), (0, false)]);
        assert_eq!(requests[0].json["messages"], requests[1].json["messages"], "the same but for the edits");
        assert_eq!(world.conversation(), "user: one\nassistant: One.\nuser: two\n");
    }
}

/// A server that refuses the request all the same is not asked for ever.
#[tokio::test]
async fn second_refusal_of_context_editing_is_reported() {
    let refusal = || Step::status(400).error("invalid_request_error", "context_management: not here");
    let world = World::new(vec![refusal(), refusal()]).await;
    let output = world.run(&print(["one"]).env("LOCI_CONTEXT_EDITING", "1"));
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("context_management: not here"), "{output:?}");
    assert_eq!(world.requests().len(), 2);
}

/// The first to be refused may be the request for a summary.
#[tokio::test]
async fn summary_request_drops_context_editing_too() {
    let refusal = Step::status(400).error("invalid_request_error", "context_management: not any more");
    let steps = vec![
        Step::text("One."),
        Step::text("Two."),
        refusal,
        Step::text("<summary>The ports were compared.</summary>"),
        Step::text("Three."),
    ];
    let world = World::new(steps).await;
    let mut session = world.start(&stream([]).env("LOCI_CONTEXT_EDITING", "1"));
    for prompt in ["one", "two", "/compact", "three"] {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["is_error"], false, "{prompt}");
    }
    let output = session.finish();
    assert_eq!(output.stderr.matches("The server does not edit conversations").count(), 1, "{output:?}");
    let asks: Vec<usize> = world.requests().iter().map(|request| edits(request).len()).collect();
    assert_eq!(asks, [2, 2, 2, 0, 0]);
    assert!(world.conversation().contains("The ports were compared."));
}

/// The first to be refused may be an agent beside the conversation: it asks again without, and so does everybody from then on.
/// Invariant 24 of `docs/design/compaction.md`.
#[tokio::test]
async fn background_agent_retries_without_context_editing() {
    for (switch, words) in [
        ("LOCI_SESSION_MEMORY", "You keep running notes of this conversation in "),
        ("LOCI_MEMORY_EXTRACTION", "Look through the conversation above"),
    ] {
        let is_agent =
            move |request: &Recorded| request.messages().iter().any(|it| it.to_string().contains(words));
        let hold = Gate::new();
        let held = hold.clone();
        let agent = Step::dynamic(move |request| match edits(request).is_empty() {
            true => Step::text("Nothing to do.").wait_before_headers(held.clone()),
            false => Step::status(400).error("invalid_request_error", "context_management: not any more"),
        });
        let long = Step::text("word ".repeat(1_200)).usage(10, 20, 27_000, 0);
        let script = Script::new([long, Step::text("Two.")]).answer_when(agent, is_agent);
        let world = World::new(script).await;
        let mut session = world.start(&stream([]).env("LOCI_CONTEXT_EDITING", "1").env(switch, "1"));
        session.write_json(&user("one"));
        session.wait_for_json(is_result);
        hold.reached().await;
        session.write_json(&user("two"));
        assert_eq!(session.wait_for_json(is_result)["result"], "Two.", "{switch}");
        hold.release();
        let output = session.finish();
        assert_eq!(output.code, Some(0), "{switch}: {output:?}");
        let told = output.stderr.matches("The server does not edit conversations").count();
        assert_eq!(told, 1, "{switch}: {output:?}");
        let (asked, main): (Vec<Recorded>, Vec<Recorded>) = world.requests().into_iter().partition(is_agent);
        let n_edits = |requests: &[Recorded]| requests.iter().map(|it| edits(it).len()).collect::<Vec<_>>();
        assert_eq!((n_edits(&asked), n_edits(&main)), (vec![2, 0], vec![2, 0]), "{switch}");
        assert_eq!(
            asked[0].json["messages"], asked[1].json["messages"],
            "{switch}: the same but for the edits"
        );
    }
}
