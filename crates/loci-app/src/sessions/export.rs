//! A session as Markdown.
//!
//! What people and the model wrote is Markdown already and stays as it is. What tools were given and said is
//! fenced, with a fence longer than any within.

use loci_storage::sessions::SessionSummary;

use crate::reports::display as format;
use crate::sessions::transcript::{Call, Part, PartKind};

/// Returns a session as one document: a head with what is known of it, and its parts.
pub fn to_markdown(session: &SessionSummary, parts: &[Part]) -> String {
    let mut text = head(session);
    for part in parts {
        match &part.kind {
            PartKind::Prompt(words) => {
                text.push_str(&format!(
                    "\n## You, {}\n\n{}\n",
                    format::written(part.time.as_deref()),
                    words.trim_end()
                ));
            }
            PartKind::Answer(words) => text.push_str(&format!("\n{}\n", words.trim_end())),
            PartKind::Thinking(words) => {
                text.push_str(&format!("\n{}\n", quoted(&format!("*Thinking:* {words}"))));
            }
            PartKind::Call(call) => text.push_str(&rendered_call(call)),
            PartKind::Image { media_type, .. } => text.push_str(&format!("\n*[Image, {media_type}]*\n")),
            PartKind::Compaction(words) => {
                text.push_str(&format!("\n---\n\n*The conversation was {words}.*\n"));
            }
            PartKind::Summary(words) => text.push_str(&format!("\n{}\n", quoted(words))),
            PartKind::Command(words) | PartKind::CommandOutput(words) | PartKind::Note(words) => {
                text.push_str(&format!("\n{}\n", quoted(words)));
            }
            PartKind::Failure(words) => text.push_str(&format!("\n**The API failed:** {words}\n")),
        }
    }
    text
}

/// Returns what a session is called in a document.
pub fn title(session: &SessionSummary) -> &str {
    session.facts.headline().unwrap_or("Session")
}

fn head(session: &SessionSummary) -> String {
    let facts = &session.facts;
    let title = loci_stdx::single_line(title(session), 200);
    let mut text = format!("# {title}\n\n- Session: `{}`\n", session.place.id());
    let rows = [
        ("Directory", facts.cwd.clone()),
        ("Branch", facts.git_branch.clone()),
        ("Begun", facts.created.map(format::minute)),
        ("Last activity", Some(format::minute_of_ms(facts.newest_ms()))),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            text.push_str(&format!("- {name}: {value}\n"));
        }
    }
    text
}

fn rendered_call(call: &Call) -> String {
    let input = serde_json::to_string_pretty(&call.input).unwrap_or_else(|_| call.input.to_string());
    let mut text = format!("\n**{}**\n\n{}", call.name, fenced("json", &input));
    match &call.result {
        Some(result) if result.is_error => {
            text.push_str(&format!("\nIt failed:\n\n{}", fenced("", &result.text)));
        }
        Some(result) => text.push_str(&format!("\n{}", fenced("", &result.text))),
        None => text.push_str("\n*No result was recorded.*\n"),
    }
    text
}

/// Fences a text so that no line within can end the fence.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn quoted(text: &str) -> String {
    format::indented(text, "> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_within() {
        for (text, expected) in [
            ("plain", "```\nplain\n```\n"),
            ("a ```rust\nb\n```", "````\na ```rust\nb\n```\n````\n"),
            ("`````", "``````\n`````\n``````\n"),
        ] {
            assert_eq!(fenced("", text), expected);
        }
        assert_eq!(quoted("a\n\nb"), "> a\n>\n> b");
    }
}
