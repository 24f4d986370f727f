//! What a resumed conversation has read: the file-state cache, rebuilt from the transcript.
//!
//! The structured results of Read, Write, Edit and NotebookEdit say what the model saw. When it was seen is not known to the
//! file system's precision, so a restored state matches no modification time: tools compare the text instead,
//! and a file that changed in between counts as changed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use loci_core::entry::{Entry, EntryKind};
use loci_core::task_list::Todo;
use loci_tools::{FileState, FileStates};
use serde_json::Value;

/// Files that are looked for, from the end of the path backwards; the cache holds no more.
const MOST_FILES: usize = 100;

/// Rebuilds the cache from a path.
pub(crate) fn file_states(path: &[Arc<Entry>]) -> FileStates {
    let mut found: Vec<(PathBuf, FileState)> = Vec::new();
    let mut known = HashSet::new();
    for entry in path.iter().rev().filter(|entry| entry.head().kind == EntryKind::User) {
        if let Some((file, state)) = file_state(entry)
            && known.insert(file.clone())
        {
            found.push((file, state));
        }
        if found.len() >= MOST_FILES {
            break;
        }
    }
    let mut states = FileStates::default();
    for (file, state) in found.into_iter().rev() {
        states.insert(file, state);
    }
    states
}

/// Returns the list that TodoWrite wrote last.
pub(crate) fn last_todos(path: &[Arc<Entry>]) -> Option<Vec<Todo>> {
    let users = path.iter().rev().filter(|entry| entry.head().kind == EntryKind::User);
    let mut results = users.filter_map(|entry| entry.fields().read::<Value>("toolUseResult"));
    let written = results.find_map(|result| result.get("newTodos").cloned())?;
    serde_json::from_value(written).ok()
}

/// Returns the file that a tool result showed the model, and what it showed.
fn file_state(entry: &Entry) -> Option<(PathBuf, FileState)> {
    let result: Value = entry.fields().read("toolUseResult")?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(file) = result.get("file") {
        let number = |key: &str| file.get(key).and_then(Value::as_u64);
        let is_whole = number("startLine") == Some(1) && number("numLines") == number("totalLines");
        let part = |value: Option<u64>| if is_whole { None } else { value };
        let state = restored(text(file, "content")?, part(number("startLine")), part(number("numLines")));
        return Some((text(file, "filePath")?.into(), state));
    }
    if let Some(path) = text(&result, "notebook_path") {
        return Some((path.into(), restored(text(&result, "updated_file")?, None, None)));
    }
    let path = PathBuf::from(text(&result, "filePath")?);
    match (text(&result, "content"), text(&result, "originalFile")) {
        (Some(content), _) => Some((path, restored(content, None, None))),
        (None, Some(original)) => {
            let (old, new) = (text(&result, "oldString")?, text(&result, "newString")?);
            let all = result.get("replaceAll").and_then(Value::as_bool).unwrap_or(false);
            let content = if all { original.replace(&old, &new) } else { original.replacen(&old, &new, 1) };
            Some((path, restored(content, None, None)))
        }
        (None, None) => None,
    }
}

fn restored(content: String, offset: Option<u64>, limit: Option<u64>) -> FileState {
    FileState { content, modified: SystemTime::UNIX_EPOCH, offset, limit, is_partial_view: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(results: &[Value]) -> Vec<Arc<Entry>> {
        results
            .iter()
            .map(|result| {
                let line = json!({"type": "user", "toolUseResult": result}).to_string();
                Arc::new(Entry::parse(line).unwrap())
            })
            .collect()
    }

    fn read(path: &str, content: &str, lines: u64, total: u64) -> Value {
        json!({"type": "text", "file": {"filePath": path, "content": content, "numLines": lines, "startLine": 1, "totalLines": total}})
    }

    #[test]
    fn the_last_word_on_each_file_counts() {
        let mut states = file_states(&path(&[
            read("/p/a", "one", 1, 1),
            json!({"filePath": "/p/a", "oldString": "one", "newString": "two", "originalFile": "one", "replaceAll": false}),
            json!({"type": "create", "filePath": "/p/b", "content": "new", "originalFile": null}),
            read("/p/c", "part", 1, 9),
            json!({"notebook_path": "/p/n.ipynb", "original_file": "{}", "updated_file": "{ }"}),
            json!({"stdout": "x"}),
            json!("Error: no"),
        ]));
        let content = |states: &mut FileStates, name: &str| {
            states.get(std::path::Path::new(name)).map(|state| (state.content.clone(), state.is_whole()))
        };
        assert_eq!(content(&mut states, "/p/a"), Some(("two".to_owned(), true)));
        assert_eq!(content(&mut states, "/p/b"), Some(("new".to_owned(), true)));
        assert_eq!(content(&mut states, "/p/c"), Some(("part".to_owned(), false)));
        assert_eq!(content(&mut states, "/p/n.ipynb"), Some(("{ }".to_owned(), true)));
        assert_eq!(states.len(), 4);
    }

    #[test]
    fn no_more_files_than_the_cache_holds() {
        let results: Vec<Value> = (0..300).map(|n| read(&format!("/p/{n}"), "x", 1, 1)).collect();
        let mut states = file_states(&path(&results));
        assert_eq!(states.len(), 100);
        assert!(states.get(std::path::Path::new("/p/299")).is_some());
        assert!(states.get(std::path::Path::new("/p/0")).is_none());
    }
}
