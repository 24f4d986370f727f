//! How much of what an account may use is used: the headers `anthropic-ratelimit-unified-*` of an answer.

use loci_core::stream::{RateLimits, RateWindow};
use reqwest::header::HeaderMap;

/// The limits that have figures of their own, by what the headers call them and what clients do.
const WINDOWS: [(&str, &str); 2] = [("five_hour", "5h"), ("seven_day", "7d")];

/// Reads the headers; none where the server says nothing of it.
pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Box<RateLimits>> {
    let header = |name: &str| {
        let value = headers.get(format!("anthropic-ratelimit-unified-{name}"))?.to_str().ok()?.trim();
        Some(value.to_owned()).filter(|value| !value.is_empty())
    };
    let seconds = |name: &str| header(name)?.parse::<f64>().ok().filter(|at| *at >= 0.0).map(|at| at as u64);
    let share = |name: &str| header(name)?.parse::<f64>().ok().filter(|share| share.is_finite());
    let status = header("status")?;
    let kind = header("representative-claim");
    let window =
        WINDOWS.iter().find(|(claim, _)| kind.as_deref().is_some_and(|kind| kind.starts_with(claim)));
    let of_window = |name: &str| share(&format!("{}-{name}", window?.1));
    let rate_window = |(claim, short): (&str, &str)| {
        let is_nearest = window.is_some_and(|(nearest, _)| *nearest == claim);
        Some(RateWindow {
            utilization: share(&format!("{short}-utilization"))?,
            resets_at: seconds(&format!("{short}-reset")).or_else(|| seconds("reset").filter(|_| is_nearest)),
        })
    };
    let [five_hour, seven_day] = WINDOWS.map(rate_window);
    Some(Box::new(RateLimits {
        resets_at: seconds("reset"),
        utilization: of_window("utilization"),
        surpassed_threshold: of_window("surpassed-threshold"),
        overage_status: header("overage-status"),
        overage_resets_at: seconds("overage-reset"),
        overage_disabled_reason: header("overage-disabled-reason"),
        five_hour,
        seven_day,
        kind,
        status,
    }))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn read(headers: &[(&str, &'static str)]) -> Option<Box<RateLimits>> {
        let named = headers.iter().map(|(name, value)| {
            let name = HeaderName::try_from(format!("anthropic-ratelimit-unified-{name}")).unwrap();
            (name, HeaderValue::from_static(value))
        });
        from_headers(&named.collect())
    }

    #[test]
    fn unified_headers_tell_the_nearest_limit() {
        let told = read(&[
            ("status", "allowed_warning"),
            ("reset", "1800000000"),
            ("representative-claim", "five_hour"),
            ("5h-utilization", "0.91"),
            ("7d-utilization", "0.2"),
            ("7d-reset", "1800500000"),
            ("5h-surpassed-threshold", "0.9"),
            ("overage-status", "rejected"),
            ("overage-disabled-reason", "org_level_disabled"),
        ]);
        let expected = RateLimits {
            status: "allowed_warning".to_owned(),
            resets_at: Some(1_800_000_000),
            kind: Some("five_hour".to_owned()),
            utilization: Some(0.91),
            surpassed_threshold: Some(0.9),
            overage_status: Some("rejected".to_owned()),
            overage_resets_at: None,
            overage_disabled_reason: Some("org_level_disabled".to_owned()),
            five_hour: Some(RateWindow { utilization: 0.91, resets_at: Some(1_800_000_000) }),
            seven_day: Some(RateWindow { utilization: 0.2, resets_at: Some(1_800_500_000) }),
        };
        assert_eq!(told, Some(Box::new(expected)));
    }

    #[test]
    fn without_a_status_nothing_is_told_and_odd_figures_are_left_out() {
        assert_eq!(read(&[("reset", "5")]), None);
        let odd = read(&[("status", "allowed"), ("reset", "soon"), ("5h-utilization", "0.5")]).unwrap();
        assert_eq!((odd.status.as_str(), odd.resets_at, odd.utilization), ("allowed", None, None));
        assert_eq!(odd.five_hour, Some(RateWindow { utilization: 0.5, resets_at: None }));
        assert_eq!(odd.seven_day, None);
    }
}
