//! Moments as people write them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use loci_app::UserError;
use loci_stdx::Timestamp;

/// Which end of a day is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DayEdge {
    Start,
    End,
}

/// Reads a day, a moment, or how long ago, and returns milliseconds since 1970.
pub(crate) fn parse_time(text: &str, now: Timestamp, edge: DayEdge) -> Result<i64, UserError> {
    let text = text.trim();
    let found = ago(text, now)
        .or_else(|| text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond))
        .or_else(|| day(text, edge));
    found.ok_or_else(|| {
        UserError::new(format!("Not a day or a time: `{text}`"))
            .hint("Write a day such as 2026-01-31, a moment such as 2026-01-31T12:00:00Z, or 12h, 7d or 3w.")
    })
}

fn ago(text: &str, now: Timestamp) -> Option<i64> {
    let unit = text.chars().last()?;
    let number: i64 = text.strip_suffix(unit)?.parse().ok().filter(|number| *number >= 0)?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 24 * 7,
        _ => return None,
    };
    now.as_millisecond().checked_sub(number.checked_mul(hours)?.checked_mul(3_600_000)?)
}

fn day(text: &str, edge: DayEdge) -> Option<i64> {
    let day: Date = text.parse().ok()?;
    let day = match edge {
        DayEdge::Start => day,
        DayEdge::End => day.tomorrow().ok()?,
    };
    Some(day.to_zoned(TimeZone::system()).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_times_and_durations_are_parsed() {
        let now: Timestamp = "2026-02-01T00:00:00Z".parse().unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        assert_eq!(parse_time("2d", now, DayEdge::Start).ok(), Some(at("2026-01-30T00:00:00Z")));
        assert_eq!(parse_time("1w", now, DayEdge::Start).ok(), Some(at("2026-01-25T00:00:00Z")));
        assert_eq!(
            parse_time("2026-01-02T03:04:05Z", now, DayEdge::End).ok(),
            Some(at("2026-01-02T03:04:05Z"))
        );
        let day = parse_time("2026-01-02", now, DayEdge::Start).ok().unwrap();
        assert_eq!(parse_time("2026-01-01", now, DayEdge::End).ok(), Some(day));
        for text in ["", "yesterday", "-3d", "9999999999999999999d", "2026-13-01"] {
            assert!(parse_time(text, now, DayEdge::Start).is_err(), "{text}");
        }
    }
}
