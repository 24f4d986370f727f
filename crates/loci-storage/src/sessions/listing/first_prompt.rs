//! What a session was first asked, as listings show it.
//!
//! The rules are those of the official SDK, so that two listings of one session read alike: tool results,
//! hidden entries, summaries, output of local commands, interruption marks and an editor's context are passed
//! over; a slash command counts only when nothing better follows; one line of at most 200 characters.

use loci_core::entry::{Entry, EntryKind};
use loci_stdx::truncate_chars;
use memchr::memmem;

use super::scan;

/// The most characters that are shown.
const LIMIT: usize = 200;

/// Texts that programs put in the user's mouth.
const NOT_A_PROMPT: [&str; 5] =
    ["<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>", "[Request interrupted by user"];

/// Returns the first prompt within the beginning of a file.
pub(super) fn first_prompt(head: &[u8]) -> Option<String> {
    let mut command = None;
    for line in loci_stdx::lines(head) {
        if !may_be_prompt(line.bytes) {
            continue;
        }
        for text in texts(line.bytes) {
            let text = text.replace('\n', " ");
            let text = text.trim();
            if let Some(name) = command_name(text) {
                command.get_or_insert_with(|| name.to_owned());
            } else if !text.is_empty() && !is_machine_text(text) {
                return Some(shortened(text));
            }
        }
    }
    command
}

fn may_be_prompt(line: &[u8]) -> bool {
    scan::has_pair(line, "type", "user")
        && memmem::find(line, br#""tool_result""#).is_none()
        && !scan::has_flag(line, "isMeta")
        && !scan::has_flag(line, "isCompactSummary")
}

fn texts(line: &[u8]) -> Vec<String> {
    match Entry::parse(scan::lossy(line).as_ref()) {
        Ok(entry) if entry.head().kind == EntryKind::User => {
            entry.blocks().iter().filter_map(loci_core::message::Block::text).collect()
        }
        Ok(_) => Vec::new(),
        // A prompt longer than what was read: its beginning is enough.
        Err(_) => scan::first_text(line, "content")
            .or_else(|| scan::first_text(line, "text"))
            .map(|text| truncate_chars(&text, LIMIT + 1).to_owned())
            .into_iter()
            .collect(),
    }
}

fn command_name(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<command-name>")?;
    Some(rest.split_once("</command-name>")?.0)
}

fn is_machine_text(text: &str) -> bool {
    let is_wrapped =
        |tag: &str| text.starts_with(&format!("<{tag}>")) && text.ends_with(&format!("</{tag}>"));
    NOT_A_PROMPT.iter().any(|start| text.starts_with(start))
        || is_wrapped("ide_opened_file")
        || is_wrapped("ide_selection")
}

fn shortened(text: &str) -> String {
    let cut = truncate_chars(text, LIMIT);
    if cut.len() == text.len() { text.to_owned() } else { format!("{}…", cut.trim_end()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn user(content: Value) -> String {
        json!({"type": "user", "message": {"role": "user", "content": content}}).to_string()
    }

    #[test]
    fn the_first_words_of_a_person_are_shown() {
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "x"}]);
        let meta = json!({"type": "user", "isMeta": true, "message": {"content": "hidden"}}).to_string();
        let summary =
            json!({"type": "user", "isCompactSummary": true, "message": {"content": "s"}}).to_string();
        let hi = user(json!("  Fix\nit "));
        let command = user(json!("<command-name>/init</command-name>"));
        for (lines, expected) in [
            (vec![hi.clone()], Some("Fix it")),
            (vec![user(result), meta, summary, hi.clone()], Some("Fix it")),
            (vec![user(json!([{"type": "image"}, {"type": "text", "text": "look"}]))], Some("look")),
            (vec![user(json!("[Request interrupted by user]")), hi.clone()], Some("Fix it")),
            (vec![user(json!("<ide_selection>a</ide_selection>")), hi.clone()], Some("Fix it")),
            (
                vec![user(json!("<ide_selection>a</ide_selection> why?"))],
                Some("<ide_selection>a</ide_selection> why?"),
            ),
            (vec![command.clone(), hi], Some("Fix it")),
            (vec![command], Some("/init")),
            (vec!["nonsense \"type\":\"user\"".to_owned()], None),
            (vec![], None),
        ] {
            assert_eq!(first_prompt(lines.join("\n").as_bytes()).as_deref(), expected, "{lines:?}");
        }
    }

    #[test]
    fn long_prompts_are_cut() {
        let long = first_prompt(user(json!("é".repeat(300))).as_bytes()).unwrap();
        assert_eq!((long.chars().count(), long.ends_with('…')), (201, true));
        let line = user(json!("word ".repeat(1_000)));
        let cut = first_prompt(&line.as_bytes()[..2_000]).unwrap();
        assert!(cut.starts_with("word word") && cut.ends_with('…'), "{cut}");
    }
}
