//! An earlier session that a prompt mentions (`@session:NAME`), as the model reads it.
//!
//! Prompts, answers, summaries and the names of calls are told; what tools said is left out, since it is the largest part and
//! the oldest news. Of a long session the end is told, and where the rest lies.

use loci_core::conversation::history;
use loci_engine::MentionedSession;
use loci_stdx::{Env, single_line};
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{load_transcript, resolve_session, session_summary};

use crate::sessions::export::to_markdown;
use crate::sessions::transcript::{Part, PartKind, parts};
use crate::user_error::UserError;

/// The most characters of a session that a prompt carries.
const MOST_CHARS: usize = 30_000;
/// The most characters of one message.
const MOST_PART: usize = 8_000;
/// The most characters of what a call was given.
const MOST_INPUT: usize = 200;

/// Reads a session by its id or title. Blocks.
pub(crate) fn read_mentioned(
    env: &Env,
    home: &ConfigHome,
    name: &str,
) -> Result<MentionedSession, UserError> {
    let failed = |error: &dyn std::error::Error| UserError::from_error(error);
    let place = resolve_session(home, &env.cwd, name).map_err(|error| failed(&error))?;
    let loaded = load_transcript(place.file()).map_err(|error| failed(&error))?;
    let nothing = || UserError::new("nothing was said in it");
    let session = session_summary(&place).ok().flatten().ok_or_else(nothing)?;
    let told: Vec<Part> = parts(&history(&loaded.entries)).into_iter().filter_map(shortened).collect();
    let first = first_that_fits(&told);
    let mut text = to_markdown(&session, told.get(first..).unwrap_or_default());
    if first > 0 {
        text.push_str(&format!(
            "\n(The first {first} parts are left out; the whole is in {}.)\n",
            place.file().display()
        ));
    }
    Ok(MentionedSession { id: place.id().to_string(), file: place.file().to_owned(), text })
}

/// Returns a part as it is told; none where it is left out.
fn shortened(part: Part) -> Option<Part> {
    let cut = |text: String| match loci_stdx::truncate_chars(&text, MOST_PART) {
        kept if kept.len() < text.len() => format!("{kept}…"),
        _ => text,
    };
    let kind = match part.kind {
        PartKind::Prompt(text) => PartKind::Prompt(cut(text)),
        PartKind::Answer(text) => PartKind::Answer(cut(text)),
        PartKind::Summary(text) => PartKind::Summary(cut(text)),
        PartKind::Compaction(text) => PartKind::Compaction(text),
        PartKind::Command(text) | PartKind::CommandOutput(text) | PartKind::Note(text) => {
            PartKind::Note(cut(text))
        }
        PartKind::Call(call) => {
            let input = single_line(&call.input.to_string(), MOST_INPUT);
            PartKind::Note(format!("{} {input}", call.name))
        }
        PartKind::Thinking(_) | PartKind::Image { .. } | PartKind::Failure(_) => return None,
    };
    Some(Part { kind, ..part })
}

/// Finds the first part from which on all of them fit.
fn first_that_fits(parts: &[Part]) -> usize {
    let mut room = MOST_CHARS;
    for (idx, part) in parts.iter().enumerate().rev() {
        let n_chars = match &part.kind {
            PartKind::Prompt(text)
            | PartKind::Answer(text)
            | PartKind::Thinking(text)
            | PartKind::Compaction(text)
            | PartKind::Summary(text)
            | PartKind::Command(text)
            | PartKind::CommandOutput(text)
            | PartKind::Note(text)
            | PartKind::Failure(text) => text.chars().count(),
            PartKind::Call(_) | PartKind::Image { .. } => 0,
        };
        match room.checked_sub(n_chars) {
            Some(left) => room = left,
            None => return idx + 1,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_testkit::TestHome;
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "0a0a0a0a-0001-4000-8000-000000000001";

    fn read(messages: &[(&str, Value)], name: &str) -> Result<MentionedSession, UserError> {
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.project());
        let config = ConfigHome::from_env(&env);
        let id = SessionId::parse(ID).unwrap();
        let file = config.session(&env.cwd, &id).file().to_owned();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut lines = vec![json!({"type": "custom-title", "sessionId": ID, "customTitle": "port"})];
        for (n, (role, content)) in messages.iter().enumerate() {
            let parent = n.checked_sub(1).map(|n| format!("u{n}"));
            lines.push(json!({
                "type": role, "uuid": format!("u{n}"), "parentUuid": parent, "sessionId": ID,
                "timestamp": "2026-01-01T00:00:00.000Z", "cwd": env.cwd, "isSidechain": false,
                "message": {"role": role, "content": content},
            }));
        }
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        std::fs::write(&file, format!("{}\n", lines.join("\n"))).unwrap();
        read_mentioned(&env, &config, name)
    }

    #[test]
    fn session_is_told_by_id_and_title_without_what_tools_said() {
        let messages = [
            ("user", json!("mend the port")),
            (
                "assistant",
                json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ss -tl"}}]),
            ),
            ("user", json!([{"type": "tool_result", "tool_use_id": "t", "content": "SECRET LISTING"}])),
            ("assistant", json!([{"type": "text", "text": "It is 8080 now."}])),
        ];
        for name in [ID, "port"] {
            let session = read(&messages, name).unwrap();
            assert_eq!(session.id, ID);
            let text = session.text;
            for said in ["mend the port", "It is 8080 now.", "Bash", "ss -tl"] {
                assert!(text.contains(said), "{said}: {text}");
            }
            assert!(!text.contains("SECRET LISTING"), "{text}");
        }
        assert!(read(&messages, "no such session").is_err());
    }

    #[test]
    fn of_a_long_session_the_end_is_told() {
        let long: Vec<(&str, Value)> =
            (0..40).map(|n| ("user", json!(format!("word{n} {}", "x".repeat(2_000))))).collect();
        let text = read(&long, ID).unwrap().text;
        assert!(text.contains("word39 ") && !text.contains("word0 "), "{}", text.len());
        assert!(text.contains("parts are left out") && text.len() < MOST_CHARS * 2, "{}", text.len());
    }
}
