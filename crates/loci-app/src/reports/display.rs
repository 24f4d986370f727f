//! How things are written for people: times, sizes, money, text that may hold anything.

use std::path::Path;

use jiff::tz::TimeZone;
use loci_stdx::Timestamp;

/// Returns a moment in local time, to the minute.
pub fn minute(moment: Timestamp) -> String {
    minute_in(&TimeZone::system(), moment)
}

/// Returns a moment given in milliseconds since 1970.
pub fn minute_of_ms(ms: i64) -> String {
    minute_of_ms_in(&TimeZone::system(), ms)
}

/// Returns the same in a zone that is at hand, for thousands of them.
pub fn minute_of_ms_in(zone: &TimeZone, ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| "-".to_owned(), |moment| minute_in(zone, moment))
}

fn minute_in(zone: &TimeZone, moment: Timestamp) -> String {
    let local = zone.to_datetime(moment);
    let (year, month, day) = (local.year(), local.month(), local.day());
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", local.hour(), local.minute())
}

/// Says how long ago something was, both in milliseconds since 1970.
pub fn ago(now_ms: i64, ms: i64) -> String {
    let minutes = (now_ms - ms).max(0) / 60_000;
    match minutes {
        0 => "now".to_owned(),
        1..60 => format!("{minutes} m ago"),
        60..1_440 => format!("{} h ago", minutes / 60),
        1_440..43_200 => format!("{} d ago", minutes / 1_440),
        43_200..525_600 => format!("{} mo ago", minutes / 43_200),
        _ => format!("{} y ago", minutes / 525_600),
    }
}

/// Returns the moment an entry was written, in local time, or nothing.
pub fn written(timestamp: Option<&str>) -> String {
    timestamp.and_then(|text| text.parse::<Timestamp>().ok()).map(minute).unwrap_or_default()
}

/// Returns a number of bytes in three digits or fewer and a unit.
pub fn size(n_bytes: u64) -> String {
    let mut amount = n_bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if amount < 999.5 {
            let digits = usize::from(unit != "B" && amount < 9.95);
            return format!("{amount:.digits$} {unit}");
        }
        amount /= 1000.0;
    }
    format!("{amount:.1} TB")
}

/// Returns US dollars, to the cent, or closer where a cent is too much.
pub fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// Returns a path with the home directory written `~`.
pub fn path(home: &Path, path: &str) -> String {
    match Path::new(path).strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.to_owned(),
    }
}

/// Returns text that cannot move the cursor or change colours: control characters but line breaks and tabs go.
pub fn plain(text: &str) -> String {
    loci_stdx::printable(text)
}

/// Returns the first lines of a text, and how many were left out.
pub fn first_lines(text: &str, n_lines: usize) -> (String, usize) {
    let lines: Vec<&str> = text.lines().collect();
    let kept = &lines[..lines.len().min(n_lines)];
    (kept.join("\n"), lines.len() - kept.len())
}

/// Returns `text` with every line moved to the right.
pub fn indented(text: &str, margin: &str) -> String {
    text.lines().map(|line| format!("{margin}{line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (n_bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (12_345, "12 kB"),
            (999_600, "1.0 MB"),
            (10_500_000, "10 MB"),
            (3_200_000_000, "3.2 GB"),
        ] {
            assert_eq!(size(n_bytes), expected, "{n_bytes}");
        }
    }

    #[test]
    fn ages_are_short() {
        for (minutes, expected) in [
            (0, "now"),
            (59, "59 m ago"),
            (60, "1 h ago"),
            (1_440, "1 d ago"),
            (43_200, "1 mo ago"),
            (600_000, "1 y ago"),
            (-5, "now"),
        ] {
            assert_eq!(ago(0, -minutes * 60_000), expected);
        }
    }

    #[test]
    fn money_is_to_the_cent() {
        for (amount, expected) in [(0.0, "$0.00"), (0.0012, "$0.0012"), (1.239, "$1.24")] {
            assert_eq!(dollars(amount), expected);
        }
    }

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(plain("a\u{1b}[31mb\r\n\tc\0"), "a[31mb\n\tc");
        assert_eq!(path(Path::new("/home/dev"), "/home/dev/p"), "~/p");
        assert_eq!(first_lines("a\nb\nc", 2), ("a\nb".to_owned(), 1));
    }
}
