//! What the model is told about a command that has ended, and what is kept of it.

use std::io;
use std::path::Path;

use loci_core::tool::ToolOutcome;
use serde_json::{Value, json};

use super::capture::{Capture, Saved, SpillPath};
use super::exit;
use super::limits::FAILURE_CHARS;

/// Characters of a saved output that are shown.
const PREVIEW_CHARS: usize = 2_000;

/// The result of a command that worked.
pub(crate) async fn success(
    command: &str,
    mut capture: Capture,
    output_chars: usize,
    answer: Option<&str>,
    note: Option<String>,
    spill: SpillPath<'_>,
) -> ToolOutcome {
    let stdout = capture.stdout.text();
    let stderr = join(&capture.stderr.text(), note.as_deref().unwrap_or_default());
    let shown = join(&stdout, &stderr);
    let is_long = capture.has_gap() || shown.chars().count() > output_chars;
    if is_long {
        capture.save(spill).await;
    }
    let saved = capture.finish().await;
    let mut structured = json!({
        "stdout": first_chars(&stdout, output_chars),
        "stderr": first_chars(&stderr, output_chars),
        "interrupted": false,
        "isImage": false,
        "noOutputExpected": exit::is_silent(command),
    });
    if let Some(answer) = answer {
        structured["returnCodeInterpretation"] = Value::from(answer);
    }
    let text = match (is_long, saved) {
        (true, Some(saved)) => {
            if let Ok(saved) = &saved {
                structured["persistedOutputPath"] = Value::from(saved.path.display().to_string());
                structured["persistedOutputSize"] = Value::from(saved.bytes);
            }
            persisted(&shown, capture.total(), saved)
        }
        (_, saved) => {
            // More bytes than characters: it was saved but is not long after all.
            if let Some(Ok(saved)) = saved {
                tokio::fs::remove_file(saved.path).await.ok();
            }
            match (shown.is_empty(), answer) {
                (false, _) => shown,
                (true, Some(answer)) => format!("({answer})"),
                (true, None) => "(no output)".to_owned(),
            }
        }
    };
    ToolOutcome { is_error: Some(false), ..ToolOutcome::text(text, structured) }
}

/// The result of a command that failed, or was stopped: a first line that says so, then its output.
pub(crate) async fn failure(
    first_line: &str,
    mut capture: Capture,
    note: Option<String>,
    spill: SpillPath<'_>,
) -> ToolOutcome {
    let (stdout, stderr) = (&capture.stdout, &capture.stderr);
    let (n_out, n_err) = (stdout.text().chars().count(), stderr.text().chars().count());
    let (out_chars, err_chars) = shares(n_out, n_err, FAILURE_CHARS);
    let mut text = join(&stdout.excerpt(out_chars), &stderr.excerpt(err_chars));
    if capture.has_gap() || n_out + n_err > FAILURE_CHARS {
        capture.save(spill).await;
        let whole = match capture.finish().await {
            Some(Ok(saved)) => format!("[whole output: {}]", saved.path.display()),
            Some(Err(error)) => format!("[the whole output could not be saved: {error}]"),
            None => String::new(),
        };
        text = join(&text, &whole);
    } else if let Some(Ok(saved)) = capture.finish().await {
        tokio::fs::remove_file(saved.path).await.ok();
    }
    let text = join(&text, note.as_deref().unwrap_or_default());
    ToolOutcome::error(join(first_line, &text))
}

/// Divides room between two texts: half each, and what one does not need goes to the other.
fn shares(left: usize, right: usize, room: usize) -> (usize, usize) {
    let half = room / 2;
    if left <= half {
        (left, room - left)
    } else if right <= half {
        (room - right, right)
    } else {
        (half, half)
    }
}

/// Puts the second text on a new line below the first.
pub(crate) fn join(first: &str, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second.to_owned(),
        (_, true) => first.to_owned(),
        (false, false) => format!("{first}\n{second}"),
    }
}

fn first_chars(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

/// Shows where a long output was saved, and how it begins; the form is that of the transcript format.
fn persisted(text: &str, total: u64, saved: io::Result<Saved>) -> String {
    let place = match saved {
        Ok(saved) if saved.bytes < total => format!(
            "Output too large ({}). First {} saved to: {}",
            size(total),
            size(saved.bytes),
            saved.path.display()
        ),
        Ok(saved) => saved_line(total, &saved.path),
        Err(error) => format!("Output too large ({}). It could not be saved: {error}", size(total)),
    };
    let preview = first_chars(text, PREVIEW_CHARS);
    let preview = match preview.rfind('\n') {
        Some(end) if end > preview.len() / 2 => &preview[..end],
        _ => preview,
    };
    format!("<persisted-output>\n{place}\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>")
}

fn saved_line(total: u64, path: &Path) -> String {
    format!("Output too large ({}). Full output saved to: {}", size(total), path.display())
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
    fn room_is_shared() {
        for (left, right, expected) in
            [(1, 1, (1, 9)), (20, 1, (9, 1)), (20, 20, (5, 5)), (0, 20, (0, 10)), (20, 0, (10, 0))]
        {
            assert_eq!(shares(left, right, 10), expected);
        }
    }
}
