//! What the turns of a conversation changed in files, as the results of their calls tell it.

use std::path::Path;
use std::sync::Arc;

use loci_core::conversation::history;
use loci_core::entry::{Entry, EntryKind};
use loci_core::file_history::prompts_of;
use loci_stdx::single_line;
use loci_storage::sessions::load_transcript;
use serde_json::Value;

use super::CommandContext;
use crate::commands::diff::ChangedFile;
use crate::reports::display::written;
use crate::user_error::UserError;

/// The longest prompt that is shown.
const MOST_TEXT: usize = 200;
/// The most lines of a new file that are shown.
const MOST_NEW_LINES: usize = 2_000;

/// What one turn changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnChanges {
    /// What was asked, in a line.
    pub line: String,
    /// When, in local time.
    pub time: String,
    /// The files, in the order in which they were first changed.
    pub files: Vec<ChangedFile>,
}

/// Returns what the turns of the session's conversation changed, the newest first; those that changed nothing are left out.
pub fn turn_changes(ctx: &CommandContext) -> Result<Vec<TurnChanges>, UserError> {
    let place = ctx.place();
    if !place.file().exists() {
        return Ok(Vec::new());
    }
    let entries = load_transcript(place.file()).map_err(|error| UserError::from_error(&error))?.entries;
    Ok(changes_of(&history(&entries), &ctx.env.cwd))
}

fn changes_of(path: &[Arc<Entry>], cwd: &Path) -> Vec<TurnChanges> {
    let mut turns: Vec<TurnChanges> = Vec::new();
    for entry in path.iter().filter(|entry| entry.head().kind == EntryKind::User) {
        if let Some(prompt) = prompts_of(std::slice::from_ref(entry)).pop() {
            let line = single_line(&prompt.text, MOST_TEXT);
            turns.push(TurnChanges { line, time: written(Some(&prompt.timestamp)), files: Vec::new() });
            continue;
        }
        let changed = entry.fields().read::<Value>("toolUseResult").and_then(|it| changed_file(&it, cwd));
        let (Some(changed), Some(turn)) = (changed, turns.last_mut()) else { continue };
        match turn.files.iter_mut().find(|file| file.path == changed.path) {
            Some(file) => {
                file.added += changed.added;
                file.removed += changed.removed;
                file.lines.extend(changed.lines);
            }
            None => turn.files.push(changed),
        }
    }
    turns.retain(|turn| !turn.files.is_empty());
    turns.reverse();
    turns
}

/// Reads what a call changed out of its result.
pub(super) fn changed_file(result: &Value, cwd: &Path) -> Option<ChangedFile> {
    let path = Path::new(result.get("filePath")?.as_str()?);
    let hunks = result.get("structuredPatch")?.as_array()?;
    let mut lines = Vec::new();
    for hunk in hunks {
        let number = |key: &str| hunk[key].as_u64().unwrap_or_default();
        lines.push(format!(
            "@@ -{},{} +{},{} @@",
            number("oldStart"),
            number("oldLines"),
            number("newStart"),
            number("newLines")
        ));
        lines.extend(hunk["lines"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    if hunks.is_empty() {
        // A new file has no patch.
        let content = result.get("content").and_then(Value::as_str)?;
        let n_lines = content.lines().count();
        lines.push(format!("@@ -0,0 +1,{n_lines} @@"));
        lines.extend(content.lines().take(MOST_NEW_LINES).map(|line| format!("+{line}")));
        if n_lines > MOST_NEW_LINES {
            lines.push(format!("@@ and {} lines more @@", n_lines - MOST_NEW_LINES));
        }
    }
    let count = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
    Some(ChangedFile {
        path: path.strip_prefix(cwd).unwrap_or(path).display().to_string(),
        added: count('+'),
        removed: count('-'),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_gathered_by_turn_and_file() {
        let prompt = |text: &str| {
            json!({"type": "user", "uuid": text, "timestamp": "2026-01-01T00:00:00.000Z",
                "message": {"role": "user", "content": text}})
        };
        let result = |structured: Value| {
            json!({"type": "user", "uuid": "r", "toolUseResult": structured,
                "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}})
        };
        let patch = |path: &str, lines: &[&str]| {
            result(json!({"filePath": path, "structuredPatch": [
                {"oldStart": 3, "oldLines": 1, "newStart": 3, "newLines": 2, "lines": lines}]}))
        };
        let lines = [
            prompt("first"),
            patch("/p/a.rs", &["-old", "+new", "+more"]),
            patch("/p/a.rs", &[" same", "+last"]),
            result(json!({"filePath": "/p/b.rs", "structuredPatch": [], "content": "one\ntwo\n"})),
            prompt("looks only"),
            result(json!({"stdout": "x"})),
            prompt("second\nmore"),
            patch("/elsewhere/c", &["-gone"]),
        ];
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        let turns = changes_of(&entries, Path::new("/p"));
        let told: Vec<_> = turns
            .iter()
            .map(|turn| {
                let files =
                    turn.files.iter().map(|it| (it.path.as_str(), it.added, it.removed, it.lines.len()));
                (turn.line.as_str(), files.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(
            told,
            [
                ("second more", vec![("/elsewhere/c", 0, 1, 2)]),
                ("first", vec![("a.rs", 3, 1, 7), ("b.rs", 2, 0, 3)]),
            ]
        );
    }
}
