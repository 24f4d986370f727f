//! Timestamps of entries as numbers, and entries that were written long after their time.
//!
//! Lines are appended as things happen, so timestamps grow with the file. A node that is older than what stands
//! before it was written again: a block was replayed, or the clock was set back. What hangs from such a node may
//! lie anywhere in the file.

use super::Tree;

/// The longest gap, in milliseconds, that still counts as the same moment.
pub(super) const NEAR_MS: i64 = 5_000;

/// Tells for every entry whether something written before it is newer by more than a moment.
pub(super) fn late(tree: &Tree<'_>) -> Vec<bool> {
    let mut newest = i64::MIN;
    let is_late = |idx: usize| {
        let Some(time) = tree.time(idx).filter(|_| tree.is_placed(idx)) else { return false };
        newest = newest.max(time);
        time < newest.saturating_sub(NEAR_MS)
    };
    (0..tree.entries.len()).map(is_late).collect()
}

/// Reads `YYYY-MM-DDTHH:MM:SS[.fff]Z` as milliseconds since 1970.
pub fn millis(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let bytes = seconds.as_bytes();
    let shape = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if bytes.len() != 19 || !seconds.is_ascii() || shape.iter().any(|(at, byte)| bytes[*at] != *byte) {
        return None;
    }
    let number = |from: usize, to: usize| seconds[from..to].parse::<u32>().ok().map(i64::from);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let thousandths = fraction
        .bytes()
        .chain(*b"000")
        .take(3)
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))?;
    let of_day = (hour * 60 + minute) * 60 + second;
    Some((days_from_civil(year, month, day) * 86_400 + of_day) * 1_000 + thousandths)
}

/// Counts days from 1970-01-01 in the proleptic Gregorian calendar (years from March, eras of 400 years).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_as_milliseconds() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("1970-01-02T00:00:01.5Z", Some(86_401_500)),
            ("2026-01-02T03:04:05.678Z", Some(1_767_323_045_678)),
            ("2024-02-29T23:59:59Z", Some(1_709_251_199_000)),
            ("2024-02-29T23:59:59+00:00", None),
            ("2024-02-29", None),
            ("2024-0x-29T23:59:59Z", None),
            ("", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }
}
