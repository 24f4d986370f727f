//! What the model is told about a command that has ended, and what is kept of it.

use loci_core::tool::ToolOutcome;
use loci_stdx::truncate_chars;
use serde_json::{Value, json};

use super::capture::{Capture, SpillPath};
use crate::spill_preview;

use super::exit_code;
use super::limits::FAILURE_CHARS;

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
    let stderr = capture.stderr.text();
    let note = note.unwrap_or_default();
    let shown = join(&stdout, &stderr);
    // What is ours stands below and is never cut.
    let is_long = capture.has_gap() || shown.chars().count() > output_chars;
    if is_long {
        capture.save(spill).await;
    }
    let saved = capture.finish().await;
    let mut structured = json!({
        "stdout": truncate_chars(&stdout, output_chars),
        "stderr": join(truncate_chars(&stderr, output_chars), &note),
        "interrupted": false,
        "isImage": false,
        "noOutputExpected": exit_code::is_silent(command),
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
            let saved = saved.map(|saved| (saved.path, saved.bytes));
            join(&spill_preview(&shown, capture.total(), saved), &note)
        }
        (_, saved) => {
            // More bytes than characters: it was saved but is not long after all.
            if let Some(Ok(saved)) = saved {
                tokio::fs::remove_file(saved.path).await.ok();
            }
            let shown = join(&shown, &note);
            match (shown.is_empty(), answer) {
                (false, _) => shown,
                (true, Some(answer)) => format!("({answer})"),
                (true, None) => "(no output)".to_owned(),
            }
        }
    };
    ToolOutcome { is_error: Some(false), ..ToolOutcome::text(text, structured) }
}

/// Returns what a command that worked printed, when the model was shown all of it.
pub(crate) fn whole_output(outcome: &ToolOutcome) -> Option<&str> {
    let result = outcome.structured.as_object()?;
    let is_whole = outcome.is_error == Some(false)
        && !result.contains_key("persistedOutputPath")
        && !result.contains_key("backgroundTaskId");
    result.get("stdout")?.as_str().filter(|_| is_whole)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_divide_the_characters_between_two_texts() {
        for (left, right, expected) in
            [(1, 1, (1, 9)), (20, 1, (9, 1)), (20, 20, (5, 5)), (0, 20, (0, 10)), (20, 0, (10, 0))]
        {
            assert_eq!(shares(left, right, 10), expected);
        }
    }
}
