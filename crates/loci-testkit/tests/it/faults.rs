//! What the server does when the script says that something goes wrong.

use crate::client::{Client, End, post, request};
use loci_testkit::{ScriptedModel, Step};
use serde_json::json;

struct Case {
    name: &'static str,
    step: Step,
    status: u16,
    end: End,
    n_events: usize,
    ends_with: &'static str,
}

/// The stream of `text` below has 8 events: start, ping, block start, 2 deltas, block stop, delta, stop.
fn text() -> Step {
    Step::text("abcdef").chunk(3)
}

#[tokio::test]
async fn streams_break_where_the_script_says() {
    let case =
        |name, step, end, n_events, ends_with| Case { name, step, status: 200, end, n_events, ends_with };
    let cases = [
        case("cut", text().cut_after_events(4), End::Closed, 4, "\"text\":\"abc\"}}\n\n"),
        case("cut at once", text().cut_after_events(0), End::Closed, 0, ""),
        case("cut late", text().cut_after_events(99), End::Closed, 7, "}\n\n"),
        case(
            "torn",
            text().cut_after_events(3).cut_mid_event(),
            End::Closed,
            3,
            "event: content_block_delta\ndata: {\"type\":\"content_block_del",
        ),
        case(
            "torn in the middle",
            text().cut_mid_event(),
            End::Closed,
            4,
            "event: content_block_delta\ndata: {\"type\":\"content_block_del",
        ),
        case("reset", text().cut_after_events(4).reset(), End::Reset, 4, "\"text\":\"abc\"}}\n\n"),
        case(
            "error",
            text().error_event("overloaded_error", "Overloaded"),
            End::Whole,
            5,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        ),
        case(
            "early error",
            text().error_event_after(1, "api_error", "x"),
            End::Whole,
            2,
            "\"message\":\"x\"}}\n\n",
        ),
        case("malformed", text().malformed_sse(), End::Whole, 7, "{\"type\":\"message_stop\"}\n\n"),
        Case { status: 0, ..case("refused", text().refuse(), End::Closed, 0, "") },
        Case { status: 0, ..case("refused hard", text().refuse().reset(), End::Reset, 0, "") },
    ];
    for case in cases {
        let model = ScriptedModel::start(case.step).await;
        let answer = post(model.base_url(), &request("hi")).await;
        let seen = (answer.status, answer.events().len());
        assert_eq!(seen, (case.status, case.n_events), "{}: {answer:?}", case.name);
        assert_eq!(answer.end, case.end, "{}", case.name);
        assert!(answer.body.ends_with(case.ends_with), "{}: {}", case.name, answer.body);
    }
}

#[tokio::test]
async fn whole_answers_break_in_the_middle() {
    let cases = [
        (text().cut_after_events(1), 200, End::Closed),
        (text().malformed_sse(), 200, End::Whole),
        (text().error_event("overloaded_error", "Overloaded"), 529, End::Whole),
    ];
    for (step, status, end) in cases {
        let model = ScriptedModel::start(step).await;
        let mut body = request("hi");
        body["stream"] = false.into();
        let answer = post(model.base_url(), &body).await;
        assert_eq!((answer.status, &answer.end), (status, &end));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&answer.body).is_ok(), status == 529);
    }
}

#[tokio::test]
async fn stalls_and_hangs_last_until_the_client_leaves() {
    for step in [text().stall_after_events(4), text().hang_before_headers()] {
        let is_stall = format!("{step:?}").contains("Stall");
        let model = ScriptedModel::start(step).await;
        let mut client = Client::connect(model.base_url()).await;
        client.send("POST", "/v1/messages", &request("hi").to_string()).await;
        model.wait_for_requests(1).await;
        if is_stall {
            client.read_until("\"abc\"").await;
        }
        drop(client);
        model.wait_for_hang_ups(1).await;
    }
}

#[tokio::test]
async fn statuses_carry_the_error_of_the_api() {
    let cases = [
        (Step::status(529), 529, "overloaded_error", "Overloaded"),
        (
            Step::status(429).header("Retry-After", "0"),
            429,
            "rate_limit_error",
            "Number of requests has exceeded your rate limit",
        ),
        (
            Step::status(400).error("invalid_request_error", "prompt is too long"),
            400,
            "invalid_request_error",
            "prompt is too long",
        ),
        (Step::status(502), 502, "api_error", "Internal server error"),
    ];
    for (step, status, kind, message) in cases {
        let model = ScriptedModel::start(step).await;
        let answer = post(model.base_url(), &request("hi")).await;
        let id = "req_010000000000000000000001";
        let body = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": id});
        assert_eq!((answer.status, answer.json()), (status, body));
        assert_eq!(answer.header("request-id"), Some(id));
        assert_eq!(answer.header("retry-after"), (status == 429).then_some("0"));
    }
}

#[tokio::test]
async fn a_gateway_may_answer_html() {
    let step = Step::status(502).raw_body("text/html", "<html>Bad gateway</html>");
    let model = ScriptedModel::start(step).await;
    let answer = post(model.base_url(), &request("hi")).await;
    assert_eq!(answer.header("content-type"), Some("text/html"));
    assert_eq!(answer.body, "<html>Bad gateway</html>");
}

#[tokio::test]
async fn unknown_events_leave_the_known_ones_alone() {
    let plain = ScriptedModel::start(text()).await;
    let noisy = ScriptedModel::start(text().unknown_events()).await;
    let plain = post(plain.base_url(), &request("hi")).await;
    let noisy = post(noisy.base_url(), &request("hi")).await;
    assert!(noisy.event_names().contains(&"future_event"));
    assert!(noisy.body.contains(": keep-alive\n\n") && noisy.body.contains("future_delta"));
    let is_known = |it: &serde_json::Value| {
        it["type"] != "ping" && it["type"] != "future_event" && it["delta"]["type"] != "future_delta"
    };
    let known = |events: Vec<serde_json::Value>| events.into_iter().filter(is_known).collect::<Vec<_>>();
    assert_eq!(known(noisy.events()), known(plain.events()));
}
