//! Answers that are failures, as data.

use expect_test::{Expect, expect};
use reqwest::header::{HeaderName, HeaderValue};

use super::*;
use loci_http::Secret;

fn failure_of(status: u16, body: &str) -> Failure {
    let auth = Auth::ApiKey(Secret::new("sk-test"));
    from_answer(status, &HeaderMap::new(), body.as_bytes(), RequestFacts { model: "claude-x", auth: &auth })
}

fn check(status: u16, body: &str, expected: Expect) {
    let failure = failure_of(status, body);
    assert_eq!(failure.status, Some(status));
    expected.assert_eq(&format!(
        "{:?}: {failure}\n{}",
        failure.kind,
        failure.hint.as_deref().unwrap_or_default()
    ));
}

fn error(kind: &str, message: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

#[test]
fn too_large_requests_are_classified() {
    check(
        400,
        &error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        expect![[r#"
            PromptTooLong: The prompt does not fit the model's window (400): prompt is too long: 210000 tokens > 200000 maximum
            Compact the conversation, or start a new one."#]],
    );
    check(
        400,
        &error(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again",
        ),
        expect![[r#"
            OutputTooLong: The prompt and the asked-for output do not fit together (400): input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again
            Ask for a shorter output (CLAUDE_CODE_MAX_OUTPUT_TOKENS), or compact the conversation."#]],
    );
    check(
        413,
        &error("request_too_large", "Request exceeds the maximum size"),
        expect![[r#"
            TooLarge: The request has too many bytes (413): Request exceeds the maximum size
            Leave out large images and files, compact the conversation, or start a new one."#]],
    );
}

#[test]
fn credits_that_are_spent_are_a_matter_of_billing() {
    let body =
        r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#;
    let failure = failure_of(402, body);
    assert_eq!(failure.kind, FailureKind::Billing);
    assert!(failure.message.contains("requires more credits"), "{failure}");
}

#[test]
fn overflows_are_read_from_the_words() {
    let overflow_of = |message: &str| overflow(&failure_of(400, &error("invalid_request_error", message)));
    assert_eq!(
        overflow_of("prompt is too long: 210000 tokens > 200000 maximum"),
        Some(Overflow { input: 210_000, output: None, limit: 200_000 })
    );
    assert_eq!(
        overflow_of("input length and `max_tokens` exceed context limit: 190,000 + 32000 > 200000, decrease"),
        Some(Overflow { input: 190_000, output: Some(32_000), limit: 200_000 })
    );
    assert_eq!(overflow_of("Prompt is too long"), None);
    assert_eq!(overflow_of("messages: 3 > 2"), None);
}

#[test]
fn auth_and_billing_errors_are_classified() {
    check(
        401,
        &error("authentication_error", "invalid x-api-key"),
        expect![[r#"
            Unauthenticated: The credentials were not accepted (401): invalid x-api-key
            Check the API key (ANTHROPIC_API_KEY, or that of `loci login`): it may be mistyped, revoked, or meant for another server."#]],
    );
    check(
        403,
        &error("permission_error", "Not allowed"),
        expect![[r#"
            Forbidden: The credentials do not allow this (403): Not allowed
            Use credentials that may use this model, or ask the account's administrator."#]],
    );
    check(
        400,
        &error("invalid_request_error", "Your credit balance is too low to access the API"),
        expect![[r#"
            Billing: The account has no credit left (400): Your credit balance is too low to access the API
            Add credit in the provider's console, or use other credentials."#]],
    );
    check(
        400,
        &error("invalid_request_error", "You have reached your specified API usage limits."),
        expect![[r#"
            SpendLimit: The spend limit is reached (400): You have reached your specified API usage limits.
            Raise the limit in the provider's console, or wait until it is reset."#]],
    );
    check(
        429,
        &error("rate_limit_error", "This organization has reached its monthly spend limit"),
        expect![[r#"
            SpendLimit: The spend limit is reached (429): This organization has reached its monthly spend limit
            Raise the limit in the provider's console, or wait until it is reset."#]],
    );
}

#[test]
fn server_errors_are_classified() {
    check(
        429,
        &error("rate_limit_error", "Slow down"),
        expect![[r#"
            RateLimited: The rate limit is reached (429): Slow down
            Wait a moment and try again, with fewer requests at a time; your limits are shown in the provider's console."#]],
    );
    check(
        529,
        &error("overloaded_error", "Overloaded"),
        expect![[r#"
            Overloaded: The model is overloaded (529): Overloaded
            Wait a moment and try again, or choose another model."#]],
    );
    check(
        503,
        &error("overloaded_error", "Overloaded"),
        expect![[r#"
            Overloaded: The model is overloaded (503): Overloaded
            Wait a moment and try again, or choose another model."#]],
    );
    check(
        502,
        "<html><head><TITLE>502 Bad\n Gateway</TITLE></head></html>",
        expect![[r#"
            Server: The server failed (502): 502 Bad Gateway
            Try again; if it lasts, look at the provider's status page."#]],
    );
    check(
        500,
        "",
        expect![[r#"
            Server: The server failed (500)
            Try again; if it lasts, look at the provider's status page."#]],
    );
}

#[test]
fn not_found_errors_are_classified() {
    check(
        404,
        &error("not_found_error", "model: claude-x"),
        expect![[r#"
            NotFound: The model or address was not found (404): model: claude-x
            Check the model's name (`claude-x`) and ANTHROPIC_BASE_URL."#]],
    );
    check(
        404,
        "<html><body>nginx</body></html>",
        expect![[r#"
            NotFound: The model or address was not found (404): <html><body>nginx</body></html>
            The answer did not come from a model API: check ANTHROPIC_BASE_URL, and whether a proxy, firewall or VPN stands in the way."#]],
    );
    check(
        302,
        "",
        expect![[r#"
            InvalidRequest: The request was refused (302)
            The server points elsewhere: set ANTHROPIC_BASE_URL to the final address. Redirects are not followed, to keep the credentials where they belong."#]],
    );
    check(
        407,
        "",
        expect![[r#"
            Forbidden: The credentials do not allow this (407)
            The proxy wants a user and password: put them into HTTPS_PROXY, as in http://user:password@proxy:8080."#]],
    );
    check(
        400,
        r#"{"detail":"unknown field: context_management"}"#,
        expect![[r#"
            EditingRefused: The request was refused (400): unknown field: context_management
            If a gateway refuses a field, set CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1 and look at CLAUDE_CODE_EXTRA_BODY."#]],
    );
}

#[test]
fn headers_are_read() {
    let headers = [("retry-after", "3"), ("request-id", "req_7")]
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let asked = RequestFacts { model: "m", auth: &Auth::None };
    let failure = from_answer(429, &HeaderMap::from_iter(headers), b"{}", asked);
    assert_eq!(failure.retry_after, Some(std::time::Duration::from_secs(3)));
    assert_eq!(failure.request_id, Some("req_7".into()));
}

#[test]
fn long_words_are_cut_at_a_character() {
    let failure = failure_of(500, &"ü".repeat(5000));
    assert!(failure.message.len() < 1100 && failure.message.ends_with('…'), "{}", failure.message.len());
}

/// Local servers say that a prompt does not fit in words and fields of their own.
#[test]
fn context_errors_of_local_servers_tell_their_window() {
    use FailureKind::{OutputTooLong, PromptTooLong};
    for (body, kind, input, limit) in [
        (
            serde_json::json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error", "n_prompt_tokens": 70_123, "n_ctx": 65_536}}),
            PromptTooLong,
            70_123,
            65_536,
        ),
        (
            serde_json::json!({"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens \
                (4000 in the messages, 1000 in the completion).", "type": "BadRequestError"}}),
            OutputTooLong,
            4_000,
            4_096,
        ),
    ] {
        let error = WireError::read(body.to_string().as_bytes());
        assert_eq!(words::kind(Some(400), &error.kind, &error.message), kind, "{body}");
        let failure = Failure::new(kind, error.message);
        let found = overflow(&failure).unwrap();
        assert_eq!((found.input, found.limit), (input, limit), "{failure:?}");
    }
}
