//! What stands in the conversation for a result that was saved to a file; the form is that of the transcript
//! format.

use std::io;
use std::path::PathBuf;

use loci_stdx::truncate_chars;

/// Characters of a saved result that are shown.
const PREVIEW_CHARS: usize = 2_000;

/// Shows where a result of `total` bytes was saved, with how many of its bytes, and how its text begins.
pub fn spill_preview(text: &str, total: u64, saved: io::Result<(PathBuf, u64)>) -> String {
    let place = match saved {
        Ok((path, bytes)) if bytes < total => {
            format!("Output too large ({}). First {} saved to: {}", size(total), size(bytes), path.display())
        }
        Ok((path, _)) => {
            format!("Output too large ({}). Full output saved to: {}", size(total), path.display())
        }
        Err(error) => format!("Output too large ({}). It could not be saved: {error}", size(total)),
    };
    let preview = truncate_chars(text, PREVIEW_CHARS);
    let preview = match preview.rfind('\n') {
        Some(end) if end > preview.len() / 2 => &preview[..end],
        _ => preview,
    };
    format!("<persisted-output>\n{place}\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>")
}

/// Puts what is to be known of a result beside it: behind one that is shown whole, before one that only a preview may be
/// left of. A total, or that something is missing, must not be what the preview cuts off.
pub(crate) fn with_notes(body: String, notes: Vec<String>) -> String {
    let is_shown_whole = body.len() < PREVIEW_CHARS / 2;
    let parts = if is_shown_whole { [vec![body], notes] } else { [notes, vec![body]] };
    parts.concat().join("\n\n")
}

/// Shows a number of bytes the way the format does: `512 bytes`, `42.9KB`, `3MB`.
fn size(bytes: u64) -> String {
    let units = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let number = format!("{:.1}", bytes as f64 / unit as f64);
            format!("{}{name}", number.strip_suffix(".0").unwrap_or(&number))
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal() {
        for (bytes, expected) in
            [(12, "12 bytes"), (1024, "1KB"), (43_893, "42.9KB"), (3 << 20, "3MB"), ((3 << 30) / 2, "1.5GB")]
        {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn the_preview_ends_with_a_line_and_says_where_the_rest_is() {
        let text = "line of output\n".repeat(1_000);
        let total = text.len() as u64;
        for (saved, needle) in [
            (Ok(("/s/a.txt".into(), total)), "Full output saved to: /s/a.txt"),
            (Ok(("/s/a.txt".into(), 1024)), "First 1KB saved to: /s/a.txt"),
            (Err(io::Error::other("no room")), "could not be saved: no room"),
        ] {
            let shown = spill_preview(&text, total, saved);
            assert!(shown.contains(needle), "{shown}");
            assert!(shown.ends_with("line of output\n...\n</persisted-output>"), "{shown}");
            assert!(shown.len() < 2_300);
        }
    }
}
