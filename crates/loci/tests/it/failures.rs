//! What goes wrong between the program and the model, and what becomes of the turn.

use crate::support::{World, is_result, loci, print, shape, stream, user, watched};
use expect_test::{Expect, expect};
use loci_testkit::{Binary, Output, Script, Step};
use serde_json::{Value, json};

/// A failure that the server asks to be retried almost at once.
fn soon(step: Step) -> Step {
    step.header("retry-after-ms", "1")
}

/// Runs one prompt with at most `max_retries` and renders what a client sees.
async fn check(script: impl Into<Script>, max_retries: u32, expected: Expect) -> World {
    let world = World::new(script).await;
    world.home.write("notes.txt", "one\n");
    let output = world.run(&watched(["hi"]).env("CLAUDE_CODE_MAX_RETRIES", max_retries.to_string()));
    expected.assert_eq(&account(&world, &output));
    world
}

/// Renders a run for comparison: how often the model was asked, the frames, the exit.
fn account(world: &World, output: &Output) -> String {
    let frames = output.json_lines();
    let text = format!(
        "{}exit {} after {} requests\n{}",
        shape(&frames),
        output.code.unwrap(),
        world.requests().len(),
        output.stderr
    );
    world.normaliser().text(&text)
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let answer = || Step::text("At last.");
    check(
        [soon(Step::status(429)), answer()],
        2,
        expect![[r#"
        system init
        system api_retry 1/2 status 429 rate_limit
        assistant At last.
        result success completed
        exit 0 after 2 requests
    "#]],
    )
    .await;
    check(
        [soon(Step::status(529)).times(2), answer()],
        2,
        expect![[r#"
        system init
        system api_retry 1/2 status 529 overloaded
        system api_retry 2/2 status 529 overloaded
        assistant At last.
        result success completed
        exit 0 after 3 requests
    "#]],
    )
    .await;
    check(
        [soon(Step::status(500)), soon(Step::status(503)), answer()],
        2,
        expect![[r#"
        system init
        system api_retry 1/2 status 500 server_error
        system api_retry 2/2 status 503 server_error
        assistant At last.
        result success completed
        exit 0 after 3 requests
    "#]],
    )
    .await;
    // Without a wish of the server's the first wait is half a second; zero is no wish.
    check(
        [Step::status(500).header("retry-after", "0"), answer()],
        1,
        expect![[r#"
        system init
        system api_retry 1/1 status 500 server_error
        assistant At last.
        result success completed
        exit 0 after 2 requests
    "#]],
    )
    .await;
    check(
        [Step::new().refuse(), answer()],
        1,
        expect![[r#"
        system init
        system api_retry 1/1 status null unknown
        assistant At last.
        result success completed
        exit 0 after 2 requests
    "#]],
    )
    .await;
    check(
        [answer().error_event_after(1, "overloaded_error", "Overloaded"), answer()],
        1,
        expect![[r#"
        system init
        system api_retry 1/1 status null overloaded
        assistant At last.
        result success completed
        exit 0 after 2 requests
    "#]],
    )
    .await;
}

#[tokio::test]
async fn permanent_failures_are_the_result() {
    check(soon(Step::status(429)).times(9), 1, expect![[r#"
        system init
        system api_retry 1/1 status 429 rate_limit
        assistant API Error: The rate limit is reached (429): Number of requests has exceeded your rate limit
        Wait a moment and try again, with fewer requests at a time; your limits are shown in the provider's console.
        result success (error) 429 api_error
        exit 1 after 2 requests
    "#]]).await;
    check(
        soon(Step::status(529)).times(9),
        1,
        expect![[r#"
        system init
        system api_retry 1/1 status 529 overloaded
        assistant API Error: The model is overloaded (529): Overloaded
        Wait a moment and try again, or choose another model.
        result success (error) 529 api_error
        exit 1 after 2 requests
    "#]],
    )
    .await;
    check(
        soon(Step::status(500)).times(9),
        0,
        expect![[r#"
        system init
        assistant API Error: The server failed (500): Internal server error
        Try again; if it lasts, look at the provider's status page.
        result success (error) 500 api_error
        exit 1 after 1 requests
    "#]],
    )
    .await;
    let cut = Step::text("abc").cut_after_events(2).times(9);
    check(cut, 0, expect![[r#"
        system init
        assistant API Error: The connection broke in the middle of the answer: unexpected EOF during chunk size line
        Try again; if it happens often, look at the network and at proxies on the way.
        result success (error) api_error
        exit 1 after 1 requests
    "#]]).await;
}

#[tokio::test]
async fn each_refusal_says_what_to_do_next() {
    let too_long = Step::status(400)
        .error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
    let credit =
        Step::status(400).error("invalid_request_error", "Your credit balance is too low to access the API");
    let page = Step::status(403).raw_body("text/html", "<html><title>Access denied</title></html>");
    let cases = [
        (
            Step::status(400),
            expect![[r#"
            system init
            assistant API Error: The request was refused (400): Invalid request
            If a gateway refuses a field, set CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1 and look at CLAUDE_CODE_EXTRA_BODY.
            result success (error) 400 api_error
            exit 1 after 1 requests
        "#]],
        ),
        (
            too_long,
            expect![[r#"
                system init
                system status compacting
                system status 
                assistant API Error: The prompt does not fit the model's window (400): prompt is too long: 210000 tokens > 200000 maximum
                Compact the conversation, or start a new one.
                result success (error) 400 api_error
                exit 1 after 1 requests
            "#]],
        ),
        (
            credit,
            expect![[r#"
            system init
            assistant API Error: The account has no credit left (400): Your credit balance is too low to access the API
            Add credit in the provider's console, or use other credentials.
            result success (error) 400 api_error
            exit 1 after 1 requests
        "#]],
        ),
        (
            Step::status(401),
            expect![[r#"
            system init
            assistant API Error: The credentials were not accepted (401): invalid x-api-key
            Check the API key (ANTHROPIC_API_KEY, or that of `loci login`): it may be mistyped, revoked, or meant for another server.
            result success (error) 401 api_error
            exit 1 after 1 requests
        "#]],
        ),
        (
            Step::status(403),
            expect![[r#"
            system init
            assistant API Error: The credentials do not allow this (403): Permission denied
            Use credentials that may use this model, or ask the account's administrator.
            result success (error) 403 api_error
            exit 1 after 1 requests
        "#]],
        ),
        (
            page,
            expect![[r#"
            system init
            assistant API Error: The credentials do not allow this (403): Access denied
            The answer did not come from a model API: check ANTHROPIC_BASE_URL, and whether a proxy, firewall or VPN stands in the way.
            result success (error) 403 api_error
            exit 1 after 1 requests
        "#]],
        ),
        (
            Step::status(404),
            expect![[r#"
            system init
            assistant API Error: The model or address was not found (404): Not found
            Check the model's name (`claude-sonnet-4-5`) and ANTHROPIC_BASE_URL.
            result success (error) 404 api_error
            exit 1 after 1 requests
        "#]],
        ),
        (
            Step::status(413),
            expect![[r#"
            system init
            system status compacting
            system status 
            assistant API Error: The request has too many bytes (413): Request exceeds the maximum size
            Leave out large images and files, compact the conversation, or start a new one.
            result success (error) 413 api_error
            exit 1 after 1 requests
        "#]],
        ),
    ];
    for (step, expected) in cases {
        let world = check(step.times(9), 5, expected).await;
        assert_eq!(world.requests().len(), 1, "asked again in vain");
        // What failed is on disk, but is not sent when the session goes on.
        let world = world.then(Step::text("Now it works.")).await;
        let output = world.print(["again", "-c"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Now it works.\n"));
        assert_eq!(world.conversation(), "user: hi\nuser: again\n");
    }
}

#[tokio::test]
async fn an_output_that_does_not_fit_is_asked_for_in_smaller_size() {
    let message = "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000";
    let step = Step::status(400).error("invalid_request_error", message);
    let world = check(
        [step, Step::text("Short.")],
        1,
        expect![[r#"
        system init
        assistant Short.
        result success completed
        exit 0 after 2 requests
    "#]],
    )
    .await;
    let limits: Vec<Value> = world.requests().iter().map(|it| it.json["max_tokens"].clone()).collect();
    assert_eq!(limits, [32_000, 16_000]);
}

#[tokio::test]
async fn refused_connection_is_reported_at_once() {
    let world = World::new([]).await;
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let binary = watched(["hi"]).env("ANTHROPIC_BASE_URL", format!("http://{unused}"));
    let output = world.run(&binary);
    let said = account(&world, &output).replace(&unused.to_string(), "<address>");
    expect![[r#"
        system init
        assistant API Error: Failed to connect to `http://<address>`: the connection was refused
        Check that the server is running and that its port is right.
        result success (error) api_error
        exit 1 after 0 requests
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn an_overloaded_model_is_replaced_for_the_turn() {
    let script =
        [soon(Step::status(529)).times(3), Step::text("From another."), Step::text("From the first again.")];
    let world = World::new(script).await;
    let binary = stream(["--fallback-model", "haiku,claude-sonnet-4-5"]);
    let mut session = world.start(&binary);
    for prompt in ["one", "two"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    let output = session.finish();
    expect![[r#"
        system init
        system api_retry 1/10 status 529 overloaded
        system api_retry 2/10 status 529 overloaded
        system model_fallback overloaded claude-sonnet-4-5 -> claude-haiku-5-5
        assistant From another.
        result success completed
        system init
        assistant From the first again.
        result success completed
        exit 0 after 5 requests
    "#]]
    .assert_eq(&account(&world, &output));
    let models: Vec<Value> = world.requests().iter().map(|it| it.json["model"].clone()).collect();
    expect![[r#"[String("claude-sonnet-4-5"), String("claude-sonnet-4-5"), String("claude-sonnet-4-5"), String("claude-haiku-5-5"), String("claude-sonnet-4-5")]"#]].assert_eq(&format!("{models:?}"));
    let fallback = output.json_lines().into_iter().find(|it| it["subtype"] == "model_fallback").unwrap();
    expect!["claude-sonnet-4-5 is not answering (The model is overloaded (529): Overloaded); claude-haiku-5-5 takes over for this turn"].assert_eq(fallback["content"].as_str().unwrap());
    let result = output.json_lines().pop().unwrap();
    let used: Vec<&String> = result["modelUsage"].as_object().unwrap().keys().collect();
    assert_eq!(used.len(), 2, "each model has its own account: {used:?}");
}

#[tokio::test]
async fn a_stream_cut_before_it_says_anything_is_repeated() {
    // Cut after: message_start; its ping; an open block; half of its text.
    for n_events in [1, 2, 3, 4] {
        let step = Step::text("One two three four").chunk(4).cut_after_events(n_events);
        let world = World::new([step, Step::text("Whole.")]).await;
        let output = world.run(&print(["hi"]).env("CLAUDE_CODE_MAX_RETRIES", "1"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Whole.\n"), "{n_events}: {output:?}");
        assert_eq!(world.requests().len(), 2);
        expect_answer_only(&world);
    }
}

/// Nothing of the attempt that broke is left: neither on disk nor in what is sent.
fn expect_answer_only(world: &World) {
    let entries = world.session();
    let said: Vec<&Value> = entries.iter().filter(|it| it["type"] == "assistant").collect();
    assert_eq!(said.len(), 1, "{}", world.sketch());
    assert_eq!(world.conversation(), "user: hi\n");
}

#[tokio::test]
async fn a_stream_cut_after_a_whole_call_runs_it_once() {
    let write = || Step::text("I write.").tool("Bash", json!({"command": "echo ran >> log.txt"}));
    // message_start, ping, text: start, delta, stop; call: start, two deltas, stop; then the cut.
    let cases = [
        ("after the call", write().cut_after_events(9)),
        ("inside the event after it", write().cut_after_events(9).cut_mid_event()),
        ("by a reset", write().cut_after_events(9).reset()),
        ("by an error event", write().error_event_after(9, "overloaded_error", "Overloaded")),
    ];
    for (how, step) in cases {
        let world = World::new([step, Step::text("Done.")]).await;
        let binary =
            print(["hi", "--allowedTools", "Bash,Edit(log.txt)"]).env("CLAUDE_CODE_MAX_RETRIES", "1");
        let output = world.run(&binary);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Done.\n"), "{how}: {output:?}");
        assert_eq!(world.home.read("log.txt"), "ran\n", "{how}: the command ran once");
        assert_eq!(world.requests().len(), 2, "{how}");
        let conversation = world.conversation();
        assert_eq!(conversation.matches("<toolu-1>").count(), 2, "{how}: {conversation}");
    }
}

#[tokio::test]
async fn a_call_that_was_not_whole_does_not_run() {
    let step =
        Step::text("I write.").tool("Bash", json!({"command": "echo ran >> log.txt"})).cut_after_events(8);
    let world = World::new([step, Step::text("Done.")]).await;
    let output =
        world.run(&print(["hi", "--allowedTools", "Bash,Edit(log.txt)"]).env("CLAUDE_CODE_MAX_RETRIES", "1"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!world.home.project().join("log.txt").exists());
    expect![[r#"
        user: hi
        assistant: I write.
        user: The connection broke in the middle of your answer. Go on from where it stopped; do not repeat what was said.
    "#]].assert_eq(&world.conversation());
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant I write.
        4 <- 3: assistant (isApiErrorMessage) (synthetic) API Error: The connection broke in the middle of the answer: unexpected EOF during chunk size line
        Try again; if it happens often, look at the network and at proxies on the way.
        The answer above may be incomplete.
        5 <- 4: user (isMeta) The connection broke in the middle of your answer. Go on from where it stopped; do not repeat what was said.
        6 <- 5: assistant Done.
        7 cost-state
        8 last-prompt -> 6
    "#]].assert_eq(&world.sketch());
}

/// What people have read is kept, and asking again follows the same rules as any other retry.
#[tokio::test]
async fn a_stream_cut_after_text_is_retried_no_more_often_than_allowed() {
    let cut = || Step::text("I write.").tool("Bash", json!({"command": "ls"})).cut_after_events(8);
    let world = check([cut(), cut(), cut(), cut()], 0, expect![[r#"
        system init
        assistant I write.
        assistant API Error: The connection broke in the middle of the answer: unexpected EOF during chunk size line
        Try again; if it happens often, look at the network and at proxies on the way.
        result success (error) api_error
        exit 1 after 1 requests
    "#]]).await;
    assert!(world.sketch().contains("assistant I write."), "{}", world.sketch());
    check([cut(), cut(), Step::text("Done.")], 1, expect![[r#"
        system init
        assistant I write.
        assistant API Error: The connection broke in the middle of the answer: unexpected EOF during chunk size line
        Try again; if it happens often, look at the network and at proxies on the way.
        The answer above may be incomplete.
        system api_retry 1/1 status null unknown
        assistant I write.
        assistant API Error: The connection broke in the middle of the answer: unexpected EOF during chunk size line
        Try again; if it happens often, look at the network and at proxies on the way.
        result success (error) api_error
        exit 1 after 2 requests
    "#]]).await;
}

#[tokio::test]
async fn a_stream_that_keeps_breaking_is_asked_for_in_one_piece() {
    let broken = || Step::text("abc").cut_after_events(3);
    let world = World::new([broken(), broken(), Step::text("In one piece.")]).await;
    let output = world.run(&watched(["hi"]).env("CLAUDE_CODE_MAX_RETRIES", "3"));
    expect![[r#"
        system init
        system api_retry 1/3 status null unknown
        system api_retry 2/3 status null unknown
        assistant In one piece.
        result success completed
        exit 0 after 3 requests
    "#]]
    .assert_eq(&account(&world, &output));
    let streams: Vec<bool> = world.requests().iter().map(|it| it.is_streaming()).collect();
    assert_eq!(streams, [true, true, false]);
}

#[tokio::test]
async fn malformed_response_is_retried_then_reported() {
    let malformed = || Step::text("One two three").malformed_sse();
    check(
        [malformed(), Step::text("Fine.")],
        1,
        expect![[r#"
        system init
        system api_retry 1/1 status null unknown
        assistant Fine.
        result success completed
        exit 0 after 2 requests
    "#]],
    )
    .await;
    check(malformed().times(9), 0, expect![[r#"
        system init
        assistant API Error: The answer's stream is broken: an event is not the JSON we expect (EOF while parsing a string at line 1 column 46)
        A proxy, gateway or login page may stand between us and the model: check ANTHROPIC_BASE_URL and the proxy settings.
        result success (error) api_error
        exit 1 after 1 requests
    "#]]).await;
    let page = Step::status(200).raw_body("text/html", "<html><title>Log in</title></html>");
    check(page.times(9), 0, expect![[r#"
        system init
        assistant API Error: The answer is not JSON: `Log in`
        A proxy, gateway or login page may stand between us and the model: check ANTHROPIC_BASE_URL and the proxy settings.
        result success (error) api_error
        exit 1 after 1 requests
    "#]]).await;
    // What the protocol may grow is ignored.
    check(
        Step::text("Fine.").unknown_events(),
        0,
        expect![[r#"
        system init
        assistant Fine.
        result success completed
        exit 0 after 1 requests
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_server_that_goes_silent_is_given_up() {
    // The least byte idle time is 10 s; waiting for headers has its own limit.
    let silent = |step: Step, variable: &str, limit: &str| {
        let binary = watched(["hi"]).env("CLAUDE_CODE_MAX_RETRIES", "1").env(variable, limit);
        (step, binary)
    };
    let cases: [(Step, Binary); 2] = [
        silent(Step::new().hang_before_headers(), "API_TIMEOUT_MS", "300"),
        silent(
            Step::text("One two").chunk(3).stall_after_events(4),
            "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS",
            "10000",
        ),
    ];
    for (step, binary) in cases {
        let world = World::new([step, Step::text("At last.")]).await;
        let output = world.run(&binary);
        assert_eq!(
            account(&world, &output),
            "system init\nsystem api_retry 1/1 status null unknown\nassistant At last.\n\
             result success completed\nexit 0 after 2 requests\n"
        );
    }
}

#[tokio::test]
async fn text_output_prints_the_error() {
    let world = World::new(Step::status(401).times(9)).await;
    let output = world.print(["hi"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
    expect![[r#"
        API Error: The credentials were not accepted (401): invalid x-api-key
        Check the API key (ANTHROPIC_API_KEY, or that of `loci login`): it may be mistyped, revoked, or meant for another server.
    "#]]
    .assert_eq(&output.stdout);
    let output = world.print(["hi", "--output-format", "json"]);
    let result = output.json_lines().remove(0);
    assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(401)));
}

#[tokio::test]
async fn missing_credentials_send_no_request() {
    let world = World::new([]).await;
    let output =
        world.run(&loci().args(["-p", "hi"]).env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", ""));
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    expect![[r#"
        Error: No API key is set
        Set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or try `loci demo`, which needs none.
    "#]]
    .assert_eq(&output.stderr);
    assert_eq!(world.model.requests().len(), 0);
}

#[tokio::test]
async fn wait_that_the_server_asks_for_and_is_too_long_ends_the_run() {
    let world = World::new(Step::status(429).header("retry-after", "99999999999")).await;
    let output = world.run(&print(["hi"]));
    assert_eq!((output.code, world.requests().len()), (Some(1), 1), "{output:?}");
    assert!(output.stdout.contains("The rate limit is reached (429)"), "{output:?}");
}

#[tokio::test]
async fn long_waits_are_told_in_text_form() {
    let world = World::new([soon(Step::status(429)).times(5), Step::text("At last.")]).await;
    let output = world.run(&print(["hi"]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "At last.\n"), "{output:?}");
    let told: Vec<&str> = output.stderr.lines().collect();
    expect![[r#"
        [
            "The rate limit is reached (429): Number of requests has exceeded your rate limit; trying again in 1 s (attempt 5 of 10)",
        ]"#]]
    .assert_eq(&format!("{told:#?}"));
}

/// A limit on the size of files is a full disk, not the end of the process.
#[cfg(unix)]
#[tokio::test]
async fn limit_on_the_size_of_files_does_not_end_the_run() {
    let read = || Step::call("Read", json!({"file_path": "big.txt"}));
    let world = World::new([read(), read(), Step::text("Done.")]).await;
    world.home.write("big.txt", "line of words\n".repeat(1_000));
    // Blocks of 512 bytes.
    let script = r#"ulimit -f 16; exec "$0" "$@""#;
    let loci = env!("CARGO_BIN_EXE_loci");
    let output = world.run(&Binary::new("/bin/sh").args(["-c", script, loci, "-p", "hi"]));
    // Nor can what was not saved be kept elsewhere, which the code says.
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), "Done.\n"), "{output:?}");
    assert!(output.stderr.contains("Free some space"), "{output:?}");
}
