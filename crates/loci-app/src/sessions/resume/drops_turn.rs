//! `--resume-drops-turn`: a session goes on from an earlier message only if all that is left out belongs to one prompt.
//!
//! Whoever cuts a turn off may not know what else the session heard meanwhile: a message that waited, the end of a task. Such
//! things are not dropped unseen.

use std::sync::Arc;

use loci_core::entry::{AttachmentKind, Entry, EntryKind};
use loci_core::ids::EntryId;
use loci_storage::layout::SessionPlace;
use loci_storage::sessions::load_live;
use serde_json::Value;

use crate::user_error::UserError;

/// How the refusal begins; clients look for it.
const REJECTED: &str = "Resume rejected by --resume-drops-turn:";

/// Refuses unless every entry behind `at` belongs to the turn of `prompt`.
pub(super) fn check_dropped_turn(place: &SessionPlace, at: &str, prompt: &str) -> Result<(), UserError> {
    let loaded = load_live(place.file()).map_err(|error| UserError::from_error(&error))?;
    let path = loaded.conversation.into_path();
    match foreign_entry(&path, at, prompt) {
        None => Ok(()),
        Some(why) => Err(UserError::new(format!("{REJECTED} {why}"))
            .hint("Go on with the session as it is, or look at what it would lose first.")),
    }
}

/// Says what is in the way: what is left out does not belong to the prompt alone.
fn foreign_entry(path: &[Arc<Entry>], at: &str, prompt: &str) -> Option<String> {
    let is = |entry: &Arc<Entry>, id: &str| entry.head().uuid.as_ref().is_some_and(|it| it.as_str() == id);
    let Some(cut) = path.iter().position(|entry| is(entry, at)) else {
        return Some(format!("the message {at} is not in the conversation as it stands"));
    };
    let dropped = &path[cut + 1..];
    let Some(first) = dropped.iter().find(|entry| is_prompt(entry) || is_queued(entry)) else {
        return (!dropped.is_empty()).then(|| format!("the prompt {prompt} is not among what is left out"));
    };
    if !is(first, prompt) {
        return Some(format!("what is left out begins with {} and not with {prompt}", name(first)));
    }
    let other = dropped.iter().find(|entry| (is_prompt(entry) || is_queued(entry)) && !is(entry, prompt))?;
    Some(format!("{} does not belong to the turn of {prompt}", name(other)))
}

fn name(entry: &Entry) -> String {
    let id = entry.head().uuid.as_ref().map(EntryId::as_str).unwrap_or("an entry without an id");
    if is_queued(entry) {
        format!("the message {id} that the session heard during a turn")
    } else {
        id.to_owned()
    }
}

/// Tells whether an entry is what somebody said, and no result of a call nor words of our own.
fn is_prompt(entry: &Entry) -> bool {
    if entry.head().kind != EntryKind::User || entry.fields().read::<bool>("isMeta") == Some(true) {
        return false;
    }
    let content = entry.fields().read::<Value>("message").map(|message| message["content"].clone());
    match content {
        Some(Value::Array(blocks)) => !blocks.iter().any(|block| block["type"] == "tool_result"),
        Some(Value::String(_)) => true,
        _ => false,
    }
}

/// Tells whether an entry is a message or a notification that came while a turn was under way.
fn is_queued(entry: &Entry) -> bool {
    entry.attachment_of_kind(AttachmentKind::QueuedCommand).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path() -> Vec<Arc<Entry>> {
        let user = |uuid: &str, content: Value| json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}});
        let said = |uuid: &str| json!({"type": "assistant", "uuid": uuid, "message": {"id": uuid, "role": "assistant", "content": []}});
        let queued = json!({"type": "attachment", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "x"}});
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]);
        let lines = [
            user("p1", json!("one")),
            said("a1"),
            user("p2", json!([{"type": "text", "text": "two"}])),
            said("a2"),
            user("r2", result),
            said("b2"),
            user("p3", json!("three")),
            queued,
            said("a3"),
        ];
        lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
    }

    #[test]
    fn only_the_named_turn_may_be_left_out() {
        let path = path();
        let check = |n: usize, at: &str, prompt: &str| foreign_entry(&path[..n], at, prompt);
        assert_eq!(check(6, "a1", "p2"), None, "a turn with results of calls");
        assert_eq!(check(6, "b2", "p2"), None, "nothing is left out");
        for (n, at, prompt, needle) in [
            (6, "a1", "p1", "begins with p2"),
            (7, "a1", "p2", "p3 does not belong"),
            (9, "b2", "p3", "during a turn"),
            (6, "a2", "p2", "not among"),
            (6, "zz", "p2", "not in the conversation"),
        ] {
            let why = check(n, at, prompt).unwrap_or_default();
            assert!(why.contains(needle), "{n} {at} {prompt}: {why}");
        }
    }
}
