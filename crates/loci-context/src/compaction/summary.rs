//! What the model is asked for a summary, and what is made of its answer.

use super::clip::clip_tokens;

/// The request, as the last words of the conversation that is summarised.
const REQUEST: &str = include_str!("summary.md");
const FOCUS: &str = "{focus}";

/// The most tokens of what the user wants to be kept, so that the request fits whatever was pasted there.
const MOST_FOCUS: u64 = 1_000;

/// Returns the words that ask for a summary; `focus` is what the user wants to be kept above all.
pub fn summary_request(focus: Option<&str>) -> String {
    let focus = focus.map(str::trim).filter(|focus| !focus.is_empty());
    let focus = focus.map(|focus| clip_tokens(focus, MOST_FOCUS));
    let said = focus.map(|focus| format!("The user asks you to pay special attention to this: {focus}\n\n"));
    REQUEST.replace(FOCUS, said.as_deref().unwrap_or_default())
}

/// Takes the summary out of an answer: what stands between its tags, or all that is not scratch work. `None` when
/// nothing is left.
pub fn summary_of(answer: &str) -> Option<String> {
    let inside = between(answer, "<summary>", "</summary>");
    let summary = match inside {
        Some(summary) => summary.to_owned(),
        None => match between(answer, "<analysis>", "</analysis>") {
            Some(analysis) => answer.replacen(&format!("<analysis>{analysis}</analysis>"), "", 1),
            // Scratch work that was never finished is no summary.
            None if answer.contains("<analysis>") => String::new(),
            None => answer.to_owned(),
        },
    };
    Some(summary.trim().to_owned()).filter(|summary| !summary.is_empty())
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let start = text.find(open)? + open.len();
    let rest = &text[start..];
    // An answer that was cut still says what it says.
    Some(rest.rfind(close).map_or(rest, |end| &rest[..end]))
        .filter(|_| open == "<summary>" || rest.contains(close))
}

/// Returns the message that stands for what was summarised; `transcript` is where every word of it can be read.
pub fn summary_text(summary: &str, transcript: Option<&str>) -> String {
    let place = transcript
        .map(|path| {
            format!("\n\nNothing is lost: the whole conversation is in {path}, one JSON object a line; where you have \
                 the Recall tool, it finds and quotes any message of it.")
        })
        .unwrap_or_default();
    format!(
        "This conversation was compacted to make room. Its earlier part is summarised here; the messages after this \
         one are as they were.\n\n{summary}{place}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_found_in_the_answer() {
        for (answer, expected) in [
            ("<analysis>a</analysis>\n<summary>\n1. x\n</summary>\n", Some("1. x")),
            ("<summary>says </summary> inside</summary>", Some("says </summary> inside")),
            ("<summary>cut", Some("cut")),
            ("<analysis>a</analysis> rest", Some("rest")),
            ("plain words", Some("plain words")),
            ("<analysis>never ended", None),
            ("<summary>  </summary>", None),
            ("", None),
        ] {
            assert_eq!(summary_of(answer).as_deref(), expected, "{answer}");
        }
    }

    #[test]
    fn the_request_names_every_section_and_the_focus() {
        let plain = summary_request(None);
        for section in 1..=9 {
            assert!(plain.contains(&format!("\n{section}. ")), "{section}");
        }
        assert!(!plain.contains(FOCUS) && !plain.contains("special attention"));
        assert_eq!(summary_request(Some("  ")), plain);
        assert!(summary_request(Some("the API")).contains("special attention to this: the API"));
        let long = summary_request(Some(&"the API ".repeat(90_000)));
        assert!(long.len() < plain.len() + 4_200 && long.contains("characters left out"), "{}", long.len());
    }

    /// Regression class 16: what the user allowed and forbade is asked for word for word.
    #[test]
    fn summary_request_asks_for_permissions_word_for_word() {
        assert!(summary_request(None).contains("anything about what is or is not allowed word for word"));
    }

    #[test]
    fn summary_text_names_the_transcript() {
        let text = summary_text("Sum.", Some("/t.jsonl"));
        assert!(text.contains("\n\nSum.\n\n") && text.contains("/t.jsonl"), "{text}");
        assert!(!summary_text("Sum.", None).contains("JSON"));
    }
}
