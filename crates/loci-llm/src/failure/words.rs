//! The table of failures: how each is recognised, what it is called, and what to do next.

use std::borrow::Cow;

use loci_core::stream::FailureKind;

use super::RequestFacts;
use crate::auth::Auth;

pub(super) const REDIRECT_HINT: &str = "The server points elsewhere: set ANTHROPIC_BASE_URL to the final address. Redirects are not followed, to keep the credentials where they belong.";
pub(super) const NOT_THE_API_HINT: &str = "The answer did not come from a model API: check ANTHROPIC_BASE_URL, and whether a proxy, firewall or VPN stands in the way.";

/// Sorts a failure: by the server's words where they say more than the status, then by status or type.
pub(super) fn kind(status: Option<u16>, error_type: &str, message: &str) -> FailureKind {
    by_words(status, error_type, &message.to_ascii_lowercase()).unwrap_or_else(|| match status {
        Some(status) => by_status(status, error_type),
        None => by_type(error_type),
    })
}

fn by_words(status: Option<u16>, error_type: &str, message: &str) -> Option<FailureKind> {
    let has = |words: &str| message.contains(words);
    let is_our_fault = status.is_none_or(|status| (400..500).contains(&status));
    if !is_our_fault {
        return None;
    }
    if has("exceed context limit") && has("max_tokens") {
        Some(FailureKind::OutputTooLong)
    } else if has("prompt is too long") || has("input is too long for requested model") {
        Some(FailureKind::PromptTooLong)
    } else if has("credit balance is too low")
        || ["billing_error", "insufficient_quota"].contains(&error_type)
    {
        Some(FailureKind::Billing)
    } else if has("spend limit") || has("spending limit") || has("api usage limits") {
        Some(FailureKind::SpendLimit)
    } else if status == Some(400) && (has("context_management") || has("context-management")) {
        // The field, or the name of its beta in the header.
        Some(FailureKind::EditingRefused)
    } else {
        None
    }
}

fn by_status(status: u16, error_type: &str) -> FailureKind {
    match status {
        401 => FailureKind::Unauthenticated,
        402 => FailureKind::Billing,
        403 | 407 => FailureKind::Forbidden,
        404 => FailureKind::NotFound,
        // Both pass by themselves: a server that was slow to read, and a lock it could not get.
        408 | 409 | 424 => FailureKind::Server,
        413 => FailureKind::TooLarge,
        429 => FailureKind::RateLimited,
        529 => FailureKind::Overloaded,
        500.. if error_type == "overloaded_error" => FailureKind::Overloaded,
        500.. => FailureKind::Server,
        _ => FailureKind::InvalidRequest,
    }
}

fn by_type(error_type: &str) -> FailureKind {
    match error_type {
        "authentication_error" | "invalid_api_key" => FailureKind::Unauthenticated,
        "permission_error" => FailureKind::Forbidden,
        "not_found_error" | "model_not_found" => FailureKind::NotFound,
        "request_too_large" => FailureKind::TooLarge,
        "rate_limit_error" | "rate_limit_exceeded" => FailureKind::RateLimited,
        "overloaded_error" => FailureKind::Overloaded,
        kind if is_of_the_request(kind) => FailureKind::InvalidRequest,
        // `api_error`, `timeout_error` and whatever comes: the request was accepted, so the fault is not ours.
        _ => FailureKind::Server,
    }
}

/// Tells whether an error speaks of what was asked, which no other try changes: `invalid_prompt`, `image_too_large`.
fn is_of_the_request(kind: &str) -> bool {
    let prefixes = ["invalid_", "image_", "unsupported_", "unknown_parameter", "missing_required_"];
    let whole = [
        "empty_image_file",
        "failed_to_download_image",
        "context_length_exceeded",
        "string_above_max_length",
        "content_policy_violation",
    ];
    prefixes.iter().any(|prefix| kind.starts_with(prefix)) || whole.contains(&kind)
}

/// Returns what happened, in a clause.
pub(super) fn what(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Connect | FailureKind::NoListener => "Failed to connect",
        FailureKind::Cut => "The connection broke",
        FailureKind::Stalled => "The server went silent",
        FailureKind::Tls => "Failed to agree on TLS",
        FailureKind::Malformed => "The answer is broken",
        FailureKind::RateLimited => "The rate limit is reached",
        FailureKind::SpendLimit => "The spend limit is reached",
        FailureKind::Overloaded => "The model is overloaded",
        FailureKind::Server => "The server failed",
        FailureKind::PromptTooLong => "The prompt does not fit the model's window",
        FailureKind::OutputTooLong => "The prompt and the asked-for output do not fit together",
        FailureKind::TooLarge => "The request has too many bytes",
        FailureKind::Unauthenticated => "The credentials were not accepted",
        FailureKind::Forbidden => "The credentials do not allow this",
        FailureKind::Billing => "The account has no credit left",
        FailureKind::NotFound => "The model or address was not found",
        FailureKind::EditingRefused | FailureKind::InvalidRequest => "The request was refused",
    }
}

/// Returns what to do next.
pub(crate) fn hint(kind: FailureKind, asked: RequestFacts<'_>) -> Cow<'static, str> {
    let fixed = match kind {
        FailureKind::Connect | FailureKind::NoListener => loci_http::CONNECT_HINT,
        FailureKind::Cut => "Try again; if it happens often, look at the network and at proxies on the way.",
        FailureKind::Stalled => loci_http::STALLED_HINT,
        FailureKind::Tls => loci_http::TLS_HINT,
        FailureKind::Malformed => "Check ANTHROPIC_BASE_URL and the proxy settings.",
        FailureKind::RateLimited => {
            "Wait a moment and try again, with fewer requests at a time; your limits are shown in the provider's console."
        }
        FailureKind::SpendLimit => "Raise the limit in the provider's console, or wait until it is reset.",
        FailureKind::Overloaded => "Wait a moment and try again, or choose another model.",
        FailureKind::Server => "Try again; if it lasts, look at the provider's status page.",
        FailureKind::PromptTooLong => "Compact the conversation, or start a new one.",
        FailureKind::OutputTooLong => {
            "Ask for a shorter output (CLAUDE_CODE_MAX_OUTPUT_TOKENS), or compact the conversation."
        }
        FailureKind::TooLarge => {
            "Leave out large images and files, compact the conversation, or start a new one."
        }
        FailureKind::Unauthenticated => return unauthenticated_hint(asked.auth).into(),
        FailureKind::Forbidden => {
            "Use credentials that may use this model, or ask the account's administrator."
        }
        FailureKind::Billing => "Add credit in the provider's console, or use other credentials.",
        FailureKind::NotFound if asked.model.is_empty() => "Check the model's name and ANTHROPIC_BASE_URL.",
        FailureKind::NotFound => {
            return format!("Check the model's name (`{}`) and ANTHROPIC_BASE_URL.", asked.model).into();
        }
        FailureKind::EditingRefused | FailureKind::InvalidRequest => {
            "If a gateway refuses a field, set CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1 and look at CLAUDE_CODE_EXTRA_BODY."
        }
    };
    fixed.into()
}

fn unauthenticated_hint(auth: &Auth) -> &'static str {
    match auth {
        Auth::ApiKey(_) => {
            "Check the API key (ANTHROPIC_API_KEY, or that of `loci login`): it may be mistyped, revoked, or meant for another server."
        }
        Auth::Bearer(_) => {
            "Check ANTHROPIC_AUTH_TOKEN: it may be mistyped, expired, or meant for another server."
        }
        Auth::Both(_) => {
            "Run the command of `apiKeyHelper` by hand: what it prints must be a key that is valid now."
        }
        Auth::Google { .. } | Auth::Aws(_) => "Renew the credentials of the cloud.",
        Auth::None => "Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN.",
    }
}
