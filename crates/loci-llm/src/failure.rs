//! What went wrong, sorted: for code a [`FailureKind`], for people a clause and the next step.
//!
//! The server's own words are kept at the end of the message, for they hold what we do not know (token
//! counts, dates, links). They are cut to a screenful, and the client masks credentials in them.

mod context_words;
mod retry_after;
mod words;

use std::borrow::Cow;

use loci_core::ids::RequestId;
use loci_core::stream::{Failure, FailureKind};
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use self::context_words::StatedOverflow;
use crate::auth::Auth;
pub(crate) use words::hint;

/// The most of a server's words that a message repeats.
const MOST_WORDS: usize = 1000;

/// Who was asked for what: hints name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    /// The model's id.
    pub(crate) model: &'a str,
    /// The credentials that were used; only their kind is looked at.
    pub(crate) auth: &'a Auth,
}

/// Classifies an answer whose status is not a success.
pub(crate) fn from_answer(status: u16, headers: &HeaderMap, body: &[u8], asked: RequestFacts<'_>) -> Failure {
    let error = WireError::read(body);
    let kind = words::kind(Some(status), &error.kind, &error.message);
    let mut failure = failed(kind, Some(status), &error, asked);
    failure.retry_after = retry_after::from_headers(headers);
    failure.request_id = request_id(headers).or(error.request_id);
    failure
}

/// Classifies an `error` event in the middle of a stream that began well.
pub(crate) fn from_stream_error(data: &str) -> Failure {
    let error = WireError::read(data.as_bytes());
    let kind = words::kind(None, &error.kind, &error.message);
    let mut failure = failed(kind, None, &error, RequestFacts { model: "", auth: &Auth::None });
    failure.request_id = error.request_id;
    failure
}

/// Says that a successful status came with something that is no answer.
pub(crate) fn not_an_answer(body: &[u8], request_id: Option<RequestId>) -> Failure {
    let mut failure = match WireError::read(body) {
        error if error.is_json && !error.kind.is_empty() => from_stream_error(&String::from_utf8_lossy(body)),
        error if error.is_json => malformed("The answer is JSON, but not the JSON of a model's answer"),
        error if error.message.is_empty() => malformed("The answer is empty"),
        error => malformed(&format!("The answer is not JSON: `{}`", error.message)),
    };
    failure.request_id = failure.request_id.or(request_id);
    failure
}

/// Says that an answer is not what the protocol says.
pub(crate) fn malformed(message: &str) -> Failure {
    Failure::new(FailureKind::Malformed, message).with_hint(
        "A proxy, gateway or login page may stand between us and the model: check ANTHROPIC_BASE_URL and the proxy settings.",
    )
}

/// Returns the `request-id` header.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<RequestId> {
    let value = headers.get("request-id").or_else(|| headers.get("x-request-id"))?;
    value.to_str().ok().map(RequestId::from)
}

/// The numbers behind a request that does not fit, read from the server's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens asked for as output, when they were part of the sum.
    pub output: Option<u64>,
    /// What fits.
    pub limit: u64,
}

/// Returns by how much a prompt missed the window, when the failure says so.
pub fn overflow(failure: &Failure) -> Option<Overflow> {
    if !matches!(failure.kind, FailureKind::PromptTooLong | FailureKind::OutputTooLong) {
        return None;
    }
    let (left, right) = failure.message.rsplit_once('>')?;
    let mut sum = numbers(left.rsplit(':').next()?);
    Some(Overflow { input: sum.next()?, output: sum.next(), limit: numbers(right).next()? })
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit() && c != ',')
        .filter_map(|digits| digits.replace(',', "").parse().ok())
}

fn failed(kind: FailureKind, status: Option<u16>, error: &WireError, asked: RequestFacts<'_>) -> Failure {
    let status_text = status.map(|status| format!(" ({status})")).unwrap_or_default();
    let colon = if error.message.is_empty() { "" } else { ": " };
    let message = format!("{}{status_text}{colon}{}", words::what(kind), error.message);
    let mut failure = Failure::new(kind, message).with_hint(match (status, error.is_json) {
        (Some(300..400), _) => Cow::Borrowed(words::REDIRECT_HINT),
        (Some(407), _) => Cow::Borrowed(loci_http::PROXY_HINT),
        (Some(400..500), false) => Cow::Borrowed(words::NOT_THE_API_HINT),
        _ => hint(kind, asked),
    });
    failure.status = status;
    failure
}

/// What a server said about a failure, in whatever form.
#[derive(Debug, Default)]
struct WireError {
    kind: String,
    message: String,
    request_id: Option<RequestId>,
    is_json: bool,
}

impl WireError {
    fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<JsonError>(body) {
            Ok(json) => Self::from_json(json),
            Err(_) => {
                Self { message: shorten(&plain_words(&String::from_utf8_lossy(body))), ..Self::default() }
            }
        }
    }

    /// Gateways spell errors in several ways: an object, a bare string, or a message beside it.
    fn from_json(json: JsonError) -> Self {
        let (kind, message) = match &json.error {
            Value::Object(error) => (error_kind(error), text(error.get("message"))),
            Value::String(message) => (String::new(), message.clone()),
            _ => (String::new(), String::new()),
        };
        let beside =
            || [&json.message, &json.detail].into_iter().map(|it| text(Some(it))).find(|it| !it.is_empty());
        let message = if message.is_empty() { beside().unwrap_or_default() } else { message };
        // The Messages API says it so itself.
        let is_plain = message.contains("prompt is too long") || message.contains("exceed context limit");
        let overflow = StatedOverflow::read(&json.error, &message).filter(|_| !is_plain);
        let message = match overflow {
            Some(overflow) => format!("{} ({})", shorten(&message), overflow.plain_words()),
            None => shorten(&message),
        };
        Self { kind, message, request_id: json.request_id, is_json: true }
    }
}

/// Returns what kind of error it is: OpenAI's codes say more than its types.
fn error_kind(error: &serde_json::Map<String, Value>) -> String {
    let code = text(error.get("code"));
    let is_telling =
        ["insufficient_quota", "rate_limit_exceeded", "invalid_api_key", "model_not_found", "server_error"];
    let kind = text(error.get("type"));
    if kind.is_empty() || is_telling.contains(&code.as_str()) { code } else { kind }
}

#[derive(Deserialize)]
struct JsonError {
    #[serde(default)]
    error: Value,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    detail: Value,
    request_id: Option<RequestId>,
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the title of a web page, or the text itself.
fn plain_words(body: &str) -> String {
    let lowered = body.to_ascii_lowercase();
    let title = lowered.find("<title>").and_then(|start| {
        let start = start + "<title>".len();
        Some(&body[start..start + lowered[start..].find("</title>")?])
    });
    title.unwrap_or(body).trim().to_owned()
}

fn shorten(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > MOST_WORDS {
        let cut = (0..=MOST_WORDS).rev().find(|idx| line.is_char_boundary(*idx)).unwrap_or(0);
        line.truncate(cut);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests;
