//! Everything that can go wrong once we are connected.

use std::time::Duration;

use expect_test::{Expect, expect};
use loci_core::stream::{FailureKind, StreamEvent};
use loci_llm::Client;
use loci_testkit::{Gate, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{KEY, Outcome, client, config, model, request, rich_step, run, run_steps};

async fn check(step: Step, expected: Expect) {
    let model = model(step).await;
    let outcome = run(&client(&model), request()).await;
    let failure = outcome.failure();
    assert!(failure.hint.is_some(), "{failure:?}");
    let message = failure.message.replace(model.base_url(), "BASE");
    expected.assert_eq(&format!("{:?} {}: {message}", failure.kind, failure.status.unwrap_or(0)));
}

#[tokio::test]
async fn error_statuses_are_classified() {
    for (step, expected) in [
        (
            Step::status(400).error("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum"),
            expect![
                "PromptTooLong 400: The prompt does not fit the model's window (400): prompt is too long: 2 tokens > 1 maximum"
            ],
        ),
        (
            Step::status(400).error("invalid_request_error", "Bad field"),
            expect!["InvalidRequest 400: The request was refused (400): Bad field"],
        ),
        (
            Step::status(400).error("invalid_request_error", "Your credit balance is too low"),
            expect!["Billing 400: The account has no credit left (400): Your credit balance is too low"],
        ),
        (
            Step::status(401),
            expect!["Unauthenticated 401: The credentials were not accepted (401): invalid x-api-key"],
        ),
        (
            Step::status(403),
            expect!["Forbidden 403: The credentials do not allow this (403): Permission denied"],
        ),
        (Step::status(404), expect!["NotFound 404: The model or address was not found (404): Not found"]),
        (
            Step::status(413),
            expect!["TooLarge 413: The request has too many bytes (413): Request exceeds the maximum size"],
        ),
        (
            Step::status(429),
            expect![
                "RateLimited 429: The rate limit is reached (429): Number of requests has exceeded your rate limit"
            ],
        ),
        (Step::status(500), expect!["Server 500: The server failed (500): Internal server error"]),
        (Step::status(529), expect!["Overloaded 529: The model is overloaded (529): Overloaded"]),
        (
            Step::status(403).raw_body("text/html", "<html><title>Blocked by Acme</title></html>"),
            expect!["Forbidden 403: The credentials do not allow this (403): Blocked by Acme"],
        ),
        (
            Step::status(200).raw_body("text/html", "<html><title>Sign in</title></html>"),
            expect!["Malformed 0: The answer is not JSON: `Sign in`"],
        ),
        (
            Step::status(200).raw_body("application/json", "{\"ok\":true}"),
            expect!["Malformed 0: The answer is JSON, but not the JSON of a model's answer"],
        ),
        (
            Step::status(200).raw_body("text/plain", " {\"ok\":true}"),
            expect!["Malformed 0: The answer is JSON, but not the JSON of a model's answer"],
        ),
        (
            Step::status(200).raw_body("text/plain", "event: message_start\n"),
            expect!["Cut 0: The connection broke before the answer began: the stream ended early"],
        ),
        (
            Step::status(200).raw_body("text/event-stream", ""),
            expect!["Cut 0: The connection broke before the answer began: the stream ended early"],
        ),
    ] {
        check(step, expected).await;
    }
}

#[tokio::test]
async fn retry_after_header_is_passed_on() {
    let outcome = run_steps(Step::status(429).header("retry-after", "7")).await;
    assert_eq!(outcome.failure().retry_after, Some(Duration::from_secs(7)));
    assert!(outcome.failure().request_id.is_some());
}

#[tokio::test]
async fn broken_stream_is_a_failure() {
    check(
        Step::text("Hello").error_event("overloaded_error", "Overloaded"),
        expect!["Overloaded 0: The model is overloaded: Overloaded"],
    )
    .await;
    check(Step::text("Hello").malformed_sse(), expect!["Malformed 0: The answer's stream is broken: an event is not the JSON we expect (EOF while parsing a string at line 1 column 42)"]).await;
    check(Step::text("Hello").cut_mid_event(), expect!["Cut 0: The connection broke in the middle of the answer: end of file before message length reached"]).await;
    let reset = run_steps(Step::text("Hello").cut_mid_event().reset()).await;
    assert_eq!(reset.failure().kind, FailureKind::Cut);
    check(
        Step::new().refuse(),
        expect!["Connect 0: No answer from `BASE`: connection closed before message completed"],
    )
    .await;
}

#[tokio::test]
async fn a_cut_between_any_two_events_is_noticed_and_keeps_what_came() {
    let whole = run_wired(rich_step()).await;
    let is_wire = |event: &&StreamEvent| matches!(event, StreamEvent::Wire(_));
    let n_events = whole.events.iter().filter(is_wire).count();
    let mut n_blocks = Vec::new();
    for n in 0..n_events {
        let outcome = run_wired(rich_step().cut_after_events(n)).await;
        let failure = outcome.failure();
        assert_eq!((failure.kind, failure.is_retryable()), (FailureKind::Cut, true), "{n}: {failure:?}");
        assert!(whole.render().starts_with(&outcome.render()), "{n}: {}", outcome.render());
        n_blocks.push(outcome.blocks().len());
    }
    assert!(
        n_blocks.is_sorted() && n_blocks.first() == Some(&0) && n_blocks.last() == Some(&4),
        "{n_blocks:?}"
    );
}

async fn run_wired(step: Step) -> Outcome {
    let model = model(step).await;
    let mut request = request();
    request.wants_wire_events = true;
    run(&client(&model), request).await
}

#[tokio::test]
async fn silence_trips_the_byte_timer() {
    let model = model(Step::text("Hello").stall_after_events(2)).await;
    let mut config = config(model.base_url());
    config.timeouts.byte_idle = Duration::from_millis(60);
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    assert_eq!(outcome.failure().kind, FailureKind::Stalled);
    assert!(outcome.failure().request_id.is_some());
    assert!(matches!(outcome.events[0], StreamEvent::Started(_)));
    expect!["The server went silent in the middle of the answer for 60 ms"]
        .assert_eq(&outcome.failure().message);
    model.wait_for_hang_ups(1).await;
}

#[tokio::test]
async fn silence_trips_the_event_timer() {
    let model = model(Step::text("Hello").stall_after_events(2)).await;
    let mut config = config(model.base_url());
    config.timeouts.event_idle = Duration::from_millis(60);
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    assert_eq!(outcome.failure().kind, FailureKind::Stalled);
}

#[tokio::test]
async fn pings_alone_do_not_keep_an_answer_alive() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(&format!("http://{}", listener.local_addr().unwrap()));
    config.timeouts.event_idle = Duration::from_millis(100);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0, "the request");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await.unwrap();
        let mut beat = tokio::time::interval(Duration::from_millis(5));
        while stream.write_all(b"event: ping\ndata: {\"type\":\"ping\"}\n\n").await.is_ok() {
            beat.tick().await;
        }
    });
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    assert_eq!(outcome.failure().kind, FailureKind::Stalled);
}

#[tokio::test]
async fn a_head_that_does_not_come_trips_the_request_timer() {
    let gate = Gate::new();
    let model = model(Step::text("late").wait_before_headers(gate)).await;
    let mut config = config(model.base_url());
    config.timeouts.request = Duration::from_millis(60);
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    assert_eq!(outcome.failure().kind, FailureKind::Stalled);
    assert!(outcome.failure().message.ends_with("for 60 ms"), "{}", outcome.failure());
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_masked() {
    let words = format!("invalid key {KEY} given");
    let outcome = run_steps(Step::status(401).error("authentication_error", &words)).await;
    let shown = format!("{:?}", outcome.failure());
    assert!(!shown.contains(KEY) && shown.contains("invalid key [redacted] given"), "{shown}");
}

/// Some gateways say of whole answers what they say of streams: nothing. Taken for a stream that was cut, they would be asked
/// for, and paid for, again and again.
#[tokio::test]
async fn whole_answer_without_its_type_is_read() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"All of it."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}"#;
    for kind in ["text/plain", "application/octet-stream", "application/json"] {
        let outcome = run_steps(Step::status(200).raw_body(kind, body)).await;
        assert!(
            outcome.has_ended() && outcome.render().contains("All of it."),
            "{kind}: {}",
            outcome.render()
        );
    }
}
