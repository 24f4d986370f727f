//! How long a server asks us to wait, from its headers alone.
//!
//! Points in time are compared with the server's own `date` header, so a wrong clock here does no harm. A
//! server that sends no date but a point in time is not understood, and our own backoff applies.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::HeaderMap;

/// Limits the API counts separately; each has a `-remaining` and a `-reset` header.
const LIMITS: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];

/// Reads `retry-after-ms`, `retry-after` (seconds or a date), or when the used-up limits are reset.
pub(super) fn from_headers(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let now = header("date").and_then(http_date);
    let from_millis = || seconds(header("retry-after-ms")?.parse::<f64>().ok()? / 1000.0);
    let from_seconds = || seconds(header("retry-after")?.parse().ok()?);
    let from_date = || Some(until(http_date(header("retry-after")?)?, now?));
    let from_limits = || {
        let used_up = LIMITS
            .iter()
            .filter(|limit| header(&format!("anthropic-ratelimit-{limit}-remaining")) == Some("0"));
        let resets = used_up.filter_map(|limit| {
            let reset: Timestamp = header(&format!("anthropic-ratelimit-{limit}-reset"))?.parse().ok()?;
            Some(until(reset, now?))
        });
        resets.max()
    };
    from_millis().or_else(from_seconds).or_else(from_date).or_else(from_limits)
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

fn until(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

fn http_date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn check(headers: &[(&str, &str)], expected: Option<u64>) {
        let map: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect();
        assert_eq!(from_headers(&map), expected.map(Duration::from_millis), "{headers:?}");
    }

    #[test]
    fn retry_after_is_read_in_every_spelling() {
        const DATE: (&str, &str) = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        check(&[], None);
        check(&[("retry-after", "7")], Some(7_000));
        check(&[("retry-after", " 1.5 ")], Some(1_500));
        check(&[("retry-after", "0")], Some(0));
        check(&[("retry-after", "-3")], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after-ms", "250"), ("retry-after", "7")], Some(250));
        check(&[DATE, ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], Some(30_000));
        check(&[DATE, ("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT")], Some(0));
        check(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None);
        let reset = ("anthropic-ratelimit-tokens-reset", "2026-10-21T07:28:45Z");
        check(&[DATE, reset, ("anthropic-ratelimit-tokens-remaining", "0")], Some(45_000));
        check(&[DATE, reset, ("anthropic-ratelimit-tokens-remaining", "12")], None);
        check(&[reset, ("anthropic-ratelimit-tokens-remaining", "0")], None);
    }
}
