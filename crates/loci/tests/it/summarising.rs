//! Summaries that go wrong, and sessions that are stopped while one is made: what is left, and how it goes on.

use crate::support::{World, assert_fine, control, is_result, print, stream, user, watched};
use loci_testkit::{Binary, Gate, Recorded, Script, Step};
use serde_json::{Value, json};

const SUMMARY: &str = "<summary>The ports were compared.</summary>";
const FACT: &str = "The falcon port is 48213.";

fn windowed(run: Binary) -> Binary {
    run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000").env("CLAUDE_CODE_MAX_RETRIES", "2")
}

/// An answer after which the server has counted so many tokens.
fn answer(text: &str, tokens: u64) -> Step {
    Step::text(text).usage(10, 20, tokens - 30, 0)
}

fn too_long() -> Step {
    Step::status(400).error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
}

fn sent(request: &Recorded) -> String {
    request.json["messages"].to_string()
}

fn n_boundaries(world: &World) -> usize {
    world.session().iter().filter(|entry| entry["subtype"] == "compact_boundary").count()
}

/// A wish that cannot be fulfilled is told why, in one result; what was said stays as it was, and so it does in a session
/// that is resumed.
/// Invariant 4 of `docs/design/compaction.md`.
#[tokio::test]
async fn invalid_summary_leaves_the_conversation_unchanged() {
    let busy = || Step::status(429).header("retry-after", "0");
    let read = json!({"file_path": "notes.txt"});
    for (name, answers, expected) in [
        ("nothing", vec![Step::new()], "The summary is empty"),
        ("a refusal", vec![Step::text("I cannot do that.").stop_reason("refusal")], "declined to summarise"),
        ("a call", vec![Step::call("Read", read)], "The summary is empty"),
        (
            "a cut analysis",
            vec![Step::text("<analysis>So far").stop_reason("max_tokens")],
            "The summary is empty",
        ),
        ("never the time", vec![busy(), busy(), busy()], "rate limit"),
        ("too long itself", vec![too_long()], "does not fit"),
    ] {
        let steps = [answer("One.", 100), answer("Two.", 100)].into_iter().chain(answers);
        let world = World::new(steps.chain([answer("Three.", 100)]).collect::<Vec<_>>()).await;
        let mut session = world.start(&windowed(stream([])));
        for prompt in [FACT, "two"] {
            session.write_json(&user(prompt));
            session.wait_for_json(is_result);
        }
        session.write_json(&user("/compact"));
        let result = session.wait_for_json(is_result);
        assert_eq!(result["is_error"], true, "{name}: {result}");
        assert!(result["result"].as_str().unwrap_or_default().contains(expected), "{name}: {result}");
        session.write_json(&user("three"));
        assert_eq!(session.wait_for_json(is_result)["is_error"], false, "{name}");
        let output = session.finish();
        assert_eq!(output.json_lines().iter().filter(|frame| is_result(frame)).count(), 4, "{name}");
        assert_eq!(n_boundaries(&world), 0, "{name}");
        let last = sent(&world.last_request());
        assert!(last.contains(FACT) && last.contains("three"), "{name}: {last}");
        let world = world.then([Step::text("Four.")]).await;
        assert_fine(&world.run(&windowed(print(["four", "-c"]))));
        let resumed = sent(&world.last_request());
        assert!(resumed.contains(FACT) && resumed.contains("four"), "{name}: {resumed}");
    }
}

/// What was cut still says what it says, and what is too long is cut.
#[tokio::test]
async fn a_summary_of_any_length_is_taken_as_far_as_it_goes() {
    for (answer_text, stop, expected) in [
        ("<summary>The ports were".to_owned(), "max_tokens", "The ports were"),
        (
            format!("<summary>{}</summary>", "words without end ".repeat(20_000)),
            "end_turn",
            "characters left out",
        ),
    ] {
        let summary = Step::text(answer_text).stop_reason(stop);
        let steps = vec![answer("One.", 100), answer("Two.", 70_000), summary, answer("Three.", 9_000)];
        let world = World::new(steps).await;
        let mut session = world.start(&windowed(stream([])));
        for prompt in [FACT, "two", "three"] {
            session.write_json(&user(prompt));
            assert_eq!(session.wait_for_json(is_result)["is_error"], false, "{prompt}");
        }
        session.finish();
        let last = world.last_request();
        assert!(sent(&last).contains(expected) && sent(&last).contains("three"), "{expected}");
        assert!(last.body.len() < 200_000, "it became no longer than its share: {}", last.body.len());
    }
}

/// The summary takes the last of what may be spent: nothing more is asked, and it is not lost.
/// Invariant 23 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_budget_that_a_summary_uses_up_ends_the_turn() {
    let dear = Step::text(SUMMARY).usage(100_000, 2_000, 0, 0);
    let steps = vec![answer("One.", 100), answer("Two.", 70_000), dear];
    let world = World::new(steps).await;
    let mut session = world.start(&windowed(stream(["--max-budget-usd", "0.2"])));
    let mut results = Vec::new();
    for prompt in [FACT, "two", "three"] {
        session.write_json(&user(prompt));
        results.push(session.wait_for_json(is_result)["subtype"].clone());
    }
    session.finish();
    assert_eq!(results, ["success", "success", "error_max_budget_usd"]);
    assert_eq!(world.requests().len(), 3, "nothing is asked after the summary");
    let world = world.then([Step::text("Four.")]).await;
    assert_fine(&world.run(&windowed(print(["four", "-c"]))));
    let last = sent(&world.last_request());
    assert!(
        last.contains("The ports were compared.") && last.contains("three") && last.contains("four"),
        "{last}"
    );
}

/// Ctrl-C while a summary is being written that nobody asked for: one result, no boundary, and all is there afterwards.
/// Regression class 14: the same for a compaction that is begun unasked.
#[tokio::test]
async fn ctrl_c_while_a_summary_is_written_leaves_everything() {
    let gate = Gate::new();
    let half = Step::text("<summary>half").wait_for(gate.clone()).then_text("never");
    let world = World::new(vec![answer("One.", 100), answer("Two.", 70_000), half]).await;
    assert_fine(&world.run(&windowed(print([FACT]))));
    assert_fine(&world.run(&windowed(print(["two", "-c"]))));
    let session = world.start_closed(&windowed(watched(["three", "-c"])));
    gate.reached().await;
    session.interrupt();
    let output = session.finish();
    assert_eq!(output.code, Some(1), "{output:?}");
    let frames = output.json_lines();
    let results: Vec<&Value> = frames.iter().filter(|frame| is_result(frame)).collect();
    assert_eq!((results.len(), &results[0]["subtype"]), (1, &json!("error_during_execution")));
    assert_eq!(n_boundaries(&world), 0);
    let world = world.then([Step::text(SUMMARY), Step::text("Four.")]).await;
    assert_fine(&world.run(&windowed(print(["four", "-c"]))));
    let requests = world.requests();
    assert!(sent(&requests[0]).contains(FACT), "what was said is all there to be summarised");
    assert!(sent(&requests[1]).contains("The ports were compared.") && sent(&requests[1]).contains("four"));
}

/// A kill while the boundary is written leaves a part of it: a session that is resumed has either all of the conversation
/// or all of its summary, never neither.
/// Invariant 27 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_kill_while_a_boundary_is_written_loses_nothing() {
    let steps =
        vec![answer("One.", 100), answer("Two.", 70_000), Step::text(SUMMARY), answer("Three.", 9_000)];
    let world = World::new(steps).await;
    for args in [vec![FACT], vec!["two", "-c"], vec!["three", "-c"]] {
        assert_fine(&world.run(&windowed(print([]).args(args))));
    }
    let file = world.home.sessions().pop().unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    let start = |subtype: &str| {
        let line = whole.lines().find(|line| line.contains(subtype)).unwrap();
        (whole.find(line).unwrap(), line.len())
    };
    let (boundary, summary) = (start(r#""subtype":"compact_boundary""#), start(r#""isCompactSummary":true"#));
    assert!(boundary.0 < summary.0);
    let mut world = world;
    for cut in [
        boundary.0,
        boundary.0 + boundary.1 / 2,
        boundary.0 + boundary.1,
        summary.0,
        summary.0 + summary.1 / 2,
        summary.0 + summary.1 - 1,
        summary.0 + summary.1,
        summary.0 + summary.1 + 1,
    ] {
        std::fs::write(&file, &whole[..cut]).unwrap();
        world = world.then([Step::text(SUMMARY), Step::text("Four.")]).await;
        let output = world.run(&windowed(print(["four", "-c"])));
        assert_eq!(output.code, Some(0), "cut at {cut}: {output:?}");
        let requests = world.requests();
        let is_summarised = cut >= summary.0 + summary.1;
        assert_eq!(sent(&requests[0]).contains("The ports were compared."), is_summarised, "cut at {cut}");
        assert_eq!(sent(&requests[0]).contains(FACT), !is_summarised, "cut at {cut}");
        assert!(sent(&requests[0]).contains("three"), "the last words outlast it, cut at {cut}");
        assert!(sent(requests.last().unwrap()).contains("four"), "cut at {cut}");
    }
}

/// A second wish right after the first finds nothing to do, and says so in a result of its own.
#[tokio::test]
async fn two_compact_commands_in_a_row_compact_once() {
    let steps = vec![answer("One.", 100), answer("Two.", 100), Step::text(SUMMARY), answer("Three.", 100)];
    let world = World::new(steps).await;
    let mut session = world.start(&windowed(stream([])));
    for prompt in [FACT, "two", "/compact the ports", "/compact", "three"] {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["is_error"], false, "{prompt}");
    }
    session.finish();
    assert_eq!((world.requests().len(), n_boundaries(&world)), (4, 1));
    let last = sent(&world.last_request());
    assert!(
        last.contains("The ports were compared.") && last.contains("two") && last.contains("three"),
        "{last}"
    );
}

/// What every request has is more than the window holds: compacting cannot help, so nothing is cut, and people are told what to
/// make shorter.
/// Invariant 26 of `docs/design/compaction.md`.
#[tokio::test]
async fn instructions_filling_the_window_are_reported() {
    let world = World::new(vec![answer("One.", 100), too_long()]).await;
    world.home.write("CLAUDE.md", "Say please. ".repeat(40_000));
    let output = world.run(&windowed(print([FACT])));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "One.\n"), "{output:?}");
    assert_eq!(output.stderr.matches("Make instruction files shorter").count(), 1, "{output:?}");
    assert!(sent(&world.last_request()).contains(FACT), "the prompt is as it was");
    let output = world.run(&windowed(print(["two", "-c"])));
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("Make instruction files shorter"), "{output:?}");
    assert_eq!((world.requests().len(), n_boundaries(&world)), (2, 0), "and nobody is asked for a summary");
}

/// Instructions that take more than what a conversation is compacted at, but not the window: about 65,000 of 100,000 tokens,
/// what else every request has included.
fn crowd(world: &World) {
    world.home.write("CLAUDE.md", "Say please. ".repeat(19_000));
}

fn n_instructions(request: &Recorded) -> usize {
    sent(request).matches("Say please.").count()
}

/// Instructions alone are over the trigger, and the server refuses a request: the conversation is compacted all the same, and
/// what every request has is there once.
/// Invariant 29 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_refusal_is_mended_where_instructions_are_over_the_trigger() {
    let refused = "prompt is too long: 101000 tokens > 100000 maximum";
    for words in [refused, "Input is too long for requested model."] {
        let refusal = Step::status(400).error("invalid_request_error", words);
        let steps = vec![
            Step::text("One.").usage(10, 20, 0, 0),
            Step::text("Two.").usage(10, 20, 0, 0),
            refusal,
            Step::text(SUMMARY),
            answer("Three.", 70_000),
        ];
        let world = World::new(steps).await;
        crowd(&world);
        let mut session = world.start(&windowed(stream([])));
        let paste = format!("{FACT} {}", "a long paste ".repeat(2_000));
        for prompt in [paste.as_str(), "two", "three"] {
            session.write_json(&user(prompt));
            let result = session.wait_for_json(is_result);
            assert_eq!(result["is_error"], false, "{words}: {result}");
        }
        let output = session.finish();
        assert_eq!(output.stderr.matches("Make instruction files shorter").count(), 1, "{output:?}");
        let requests = world.requests();
        assert_eq!((requests.len(), n_boundaries(&world)), (5, 1), "{words}");
        let last = world.last_request();
        assert!(sent(&last).contains("The ports were compared.") && sent(&last).contains("three"), "{words}");
        assert!(!sent(&last).contains("a long paste a long paste"), "what could be made shorter is");
        assert_eq!(n_instructions(&last), 19_000, "{words}");
    }
}

/// The conversation outgrows the room that instructions leave it: it is compacted before it would be refused, once, and the
/// turns after it are not compacted again although instructions alone are over the trigger.
/// Invariant 29 of `docs/design/compaction.md`.
#[tokio::test]
async fn what_outgrows_the_room_beside_instructions_is_compacted_once() {
    let mut steps = vec![answer("One.", 74_000), answer("Two.", 81_000), Step::text(SUMMARY)];
    steps.extend([69_000, 69_500, 70_000, 70_500].map(|tokens| answer("More.", tokens)));
    let world = World::new(steps).await;
    crowd(&world);
    let mut session = world.start(&windowed(stream([])));
    let paste = format!("{FACT} {}", "a long paste ".repeat(2_000));
    let mut figures = Vec::new();
    for prompt in [paste.as_str(), "two", "three", "four", "five", "six"] {
        session.write_json(&user(prompt));
        let result = session.wait_for_json(is_result);
        assert_eq!(result["is_error"], false, "{result}");
        figures.push(result["loci"]["context"].clone());
    }
    session.finish();
    assert_eq!((world.requests().len(), n_boundaries(&world)), (7, 1), "one summary, and no more");
    let asked = &world.requests()[2];
    assert!(sent(asked).contains("inside <summary> tags") && sent(asked).contains(FACT));
    let last = world.last_request();
    assert!(sent(&last).contains("The ports were compared.") && sent(&last).contains("six"));
    assert_eq!(n_instructions(&last), 19_000);
    let levels: Vec<&Value> = figures.iter().map(|figure| &figure["level"]).collect();
    assert_eq!(levels, ["warning", "blocked", "warning", "warning", "warning", "warning"], "{figures:?}");
    assert_eq!(figures[5]["compact_at"], 80_000, "what is said is what is done: {figures:?}");
}

/// About how many tokens a request has.
fn size(request: &Recorded) -> u64 {
    request.body.len() as u64 / 4
}

/// Refuses what the window of the model that is asked does not hold, and counts what it does.
fn strict(request: &Recorded) -> Step {
    let is_large = request.header("anthropic-beta").is_some_and(|betas| betas.contains("context-1m"));
    let (tokens, window) = (size(request), if is_large { 1_000_000 } else { 200_000 });
    if tokens > window {
        let words = format!("prompt is too long: {tokens} tokens > {window} maximum");
        return Step::status(400).error("invalid_request_error", &words);
    }
    let text = if request.last_user_text().contains("inside <summary> tags") { SUMMARY } else { "Fine." };
    Step::text(text).usage(10, 20, tokens, 0)
}

fn n_refused(world: &World) -> usize {
    let is_large =
        |request: &Recorded| request.header("anthropic-beta").is_some_and(|it| it.contains("context-1m"));
    world.requests().iter().filter(|request| !is_large(request) && size(request) > 200_000).count()
}

/// A model with a smaller window takes over in the middle of a session: the next request fits it.
/// Invariant 28 of `docs/design/compaction.md`.
#[tokio::test]
async fn smaller_model_mid_session_gets_a_fitting_request() {
    let world = World::new(Script::new([Step::dynamic(strict).times(usize::MAX)])).await;
    let large =
        Binary::new(env!("CARGO_BIN_EXE_loci")).args(["-p", "--model", "claude-sonnet-4-5[1m]", "--verbose"]);
    let mut session =
        world.start(&large.args(["--input-format", "stream-json", "--output-format", "stream-json"]));
    let paste = "a long paste ".repeat(30_000);
    for prompt in [FACT, &format!("one {paste}"), &format!("two {paste}"), &format!("three {paste}"), "small"]
    {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["is_error"], false);
    }
    session.write_json(&control("m", json!({"subtype": "set_model", "model": "claude-sonnet-4-5"})));
    session.write_json(&user("and now?"));
    assert_eq!(session.wait_for_json(is_result)["is_error"], false);
    session.finish();
    assert_eq!(n_refused(&world), 0, "no request is over-full");
    assert_eq!(n_boundaries(&world), 1);
    let last = sent(&world.last_request());
    assert!(last.contains("The ports were compared.") && last.contains("and now?"));
}

/// The same when the model is overloaded and one with a smaller window stands in.
/// Invariant 28 of `docs/design/compaction.md`.
#[tokio::test]
async fn fallback_model_with_smaller_window_gets_a_fitting_request() {
    let is_busy = |request: &Recorded| {
        let is_large = request.header("anthropic-beta").is_some_and(|betas| betas.contains("context-1m"));
        is_large && request.last_user_text().ends_with("and now?")
    };
    let busy = Step::status(529).header("retry-after", "0");
    let script = Script::new([Step::dynamic(strict).times(usize::MAX)]).answer_when(busy, is_busy);
    let world = World::new(script).await;
    let large = Binary::new(env!("CARGO_BIN_EXE_loci"))
        .args(["-p", "--model", "claude-sonnet-4-5[1m]", "--verbose", "--fallback-model", "claude-haiku-4-5"])
        .args(["--input-format", "stream-json", "--output-format", "stream-json"]);
    let mut session = world.start(&large);
    // What would be kept of it in the large window is too much for the small one.
    let paste = format!("{} and now?", "a long paste ".repeat(62_000));
    for prompt in [FACT, "two", "three", &paste] {
        session.write_json(&user(prompt));
        let result = session.wait_for_json(is_result);
        assert_eq!(result["is_error"], false, "{result}");
    }
    session.finish();
    assert_eq!(n_refused(&world), 0, "no request is over-full");
    let last = world.last_request();
    assert_eq!(last.json["model"], "claude-haiku-4-5");
    assert!(sent(&last).contains("The ports were compared.") && sent(&last).contains("and now?"));
}

/// Another process wants to go on with a session that is being compacted: it is told who has it, and nothing of its prompt
/// comes between the conversation and its summary.
#[tokio::test]
async fn second_process_is_refused_during_compaction() {
    let gate = Gate::new();
    let summary = Step::text(SUMMARY).wait_before_headers(gate.clone());
    let world =
        World::new(vec![answer("One.", 100), answer("Two.", 100), summary, answer("Three.", 100)]).await;
    let mut session = world.start(&windowed(stream([])));
    for prompt in [FACT, "two"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.write_json(&user("/compact"));
    gate.reached().await;
    let other = world.run(&windowed(print(["meanwhile", "-c"])));
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(
        other.stderr.contains("is in use by process") && other.stderr.contains("--fork-session"),
        "{other:?}"
    );
    gate.release();
    assert_eq!(session.wait_for_json(is_result)["is_error"], false);
    session.write_json(&user("three"));
    assert_eq!(session.wait_for_json(is_result)["result"], "Three.");
    session.finish();
    assert_eq!((world.requests().len(), n_boundaries(&world)), (4, 1));
    assert!(!world.session().iter().any(|entry| entry.to_string().contains("meanwhile")));
}

fn with_picture(text: &str) -> Value {
    let source = json!({"type": "base64", "media_type": "image/png", "data": "A".repeat(80_000)});
    let content = json!([{"type": "text", "text": text}, {"type": "image", "source": source}]);
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

/// Pictures make a conversation too large for the server, in bytes: it is compacted, read as text where even that is too
/// large, and goes on with the last one.
/// Invariant 31 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_conversation_of_too_many_bytes_goes_on() {
    let large = || Step::status(413).error("request_too_large", "Request exceeds the maximum size");
    let has_picture = |request: &Recorded| sent(request).contains("image/png");
    for summarises_pictures in [true, false] {
        let server = Step::dynamic(move |request| {
            let asks = request.last_user_text().contains("inside <summary> tags");
            match (asks, request.body.len() > 300_000) {
                (true, _) if has_picture(request) && !summarises_pictures => large(),
                (true, _) => Step::text(SUMMARY),
                (false, true) => large(),
                (false, false) => Step::text("Seen."),
            }
        });
        let world = World::new(Script::new([server.times(usize::MAX)])).await;
        let mut session = world.start(&windowed(stream([])));
        for prompt in [FACT, "two", "three", "four"] {
            session.write_json(&with_picture(prompt));
            let result = session.wait_for_json(is_result);
            assert_eq!(result["result"], "Seen.", "{prompt}: {result}");
        }
        session.finish();
        assert_eq!(n_boundaries(&world), 1);
        let last = world.last_request();
        let texts = sent(&last);
        assert!(texts.contains("The ports were compared.") && texts.contains("four") && has_picture(&last));
        assert!(!texts.contains(FACT) && last.body.len() < 300_000, "{}", last.body.len());
    }
}
