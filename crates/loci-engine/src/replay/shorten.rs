//! Differences short enough to be read.

use loci_core::tool::{ToolContent, ToolOutcome};
use loci_stdx::counted;

/// Lines of a difference that are shown.
const MOST_LINES: usize = 40;
/// Characters of a line that are shown.
const MOST_CHARS: usize = 300;

/// Returns the first lines of a difference, each no longer than can be read, and says how many are left out.
pub(super) fn shorten(diff: &str) -> String {
    let lines: Vec<&str> = diff.lines().collect();
    let mut text: String =
        lines.iter().take(MOST_LINES).map(|line| format!("{}\n", clip_line(line))).collect();
    if lines.len() > MOST_LINES {
        let n_more = (lines.len() - MOST_LINES) as u64;
        text.push_str(&format!("(and {})\n", counted(n_more, "more line", "more lines")));
    }
    text
}

/// Cuts a line and says how much is gone.
pub(super) fn clip_line(line: &str) -> String {
    let n_chars = line.chars().count();
    match n_chars > MOST_CHARS {
        true => {
            let kept: String = line.chars().take(MOST_CHARS).collect();
            let n_more = (n_chars - MOST_CHARS) as u64;
            format!("{kept}… ({})", counted(n_more, "more character", "more characters"))
        }
        false => line.to_owned(),
    }
}

/// Returns an outcome as lines: whether it is a failure, then what it says.
pub(super) fn outcome_lines(outcome: &ToolOutcome) -> String {
    let head = if outcome.is_failure() { "(error)\n" } else { "" };
    let text = match &outcome.content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(blocks) => {
            let lines = blocks.iter().map(|block| match block.text() {
                Some(text) => text,
                None => block.json().as_str().to_owned(),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    format!("{head}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_text_says_what_is_left_out() {
        let long: String = (0..50).map(|n| format!("-{n}\n")).collect();
        assert!(shorten(&long).ends_with("-39\n(and 10 more lines)\n"));
        assert_eq!(shorten("-a\n+b\n"), "-a\n+b\n");
        assert_eq!(clip_line(&"ä".repeat(301)), format!("{}… (1 more character)", "ä".repeat(300)));
    }

    #[test]
    fn an_error_is_told_from_a_result_that_says_the_same() {
        let fine = ToolOutcome::text("gone", serde_json::Value::Null);
        assert_ne!(outcome_lines(&fine), outcome_lines(&ToolOutcome::error("gone")));
    }
}
