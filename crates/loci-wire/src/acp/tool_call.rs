//! Calls as editors show them: what kind, of what, where, and what came of it.

use std::path::{Path, PathBuf};

use loci_core::tool::{AskedChange, AskedText, KnownTool, ToolKind};
use loci_stdx::{read_regular_to_string, single_line, visible};
use serde_json::{Value, json};

/// The most letters of a title.
const TITLE: usize = 200;
/// Files beyond this are not read to be shown as what a call replaces.
const MOST_BYTES: u64 = 1024 * 1024;

/// A call, as the model made it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallView {
    /// The tool.
    pub(super) tool: String,
    /// Its arguments.
    pub(super) input: Value,
}

impl CallView {
    pub(super) fn new(tool: &str, input: &Value) -> Self {
        Self { tool: tool.to_owned(), input: input.clone() }
    }

    /// Returns the editor's word for what kind of call it is.
    pub(super) fn kind(&self) -> &'static str {
        match ToolKind::of_tool(&self.tool) {
            ToolKind::Read => "read",
            ToolKind::Search => "search",
            ToolKind::Fetch => "fetch",
            ToolKind::Edit => "edit",
            ToolKind::Execute => "execute",
            ToolKind::Delegate => "think",
            ToolKind::Mode => "switch_mode",
            ToolKind::Other => "other",
        }
    }

    /// Returns what it does, in a line. Nothing in it is hidden: it is what a person allows (S-7).
    pub(super) fn title(&self, cwd: &Path) -> String {
        let title =
            KnownTool::find(&self.tool).and_then(|tool| match (tool.kind, tool.subject_of(&self.input)) {
                (ToolKind::Execute, Some(command)) => Some(format!("`{command}`")),
                (ToolKind::Delegate, Some(task)) => Some(task.to_owned()),
                (kind, Some(path)) if kind.is_about_file() => {
                    Some(format!("{} {}", tool.verb, short(path, cwd)))
                }
                (_, Some(subject)) => Some(format!("{} {subject}", tool.verb)),
                (_, None) => tool.subject.is_none().then(|| tool.verb.to_owned()),
            });
        single_line(&visible(&title.unwrap_or_else(|| self.tool.clone())), TITLE)
    }

    /// Returns the files that it is about.
    pub(super) fn locations(&self, cwd: &Path) -> Vec<Value> {
        let path =
            ["file_path", "notebook_path", "path"].into_iter().find_map(|key| self.input.get(key)?.as_str());
        let Some(path) = path.filter(|_| self.kind() != "other") else { return Vec::new() };
        let mut location = json!({"path": absolute(path, cwd)});
        if let Some(line) = self.input.get("offset").and_then(Value::as_u64).filter(|line| *line > 0) {
            location["line"] = json!(line);
        }
        vec![location]
    }

    /// Returns what it would change, or what is to be looked at before it runs. Reads the file that it replaces.
    pub(super) fn preview(&self, cwd: &Path) -> Vec<Value> {
        if let Some(change) = AskedChange::from_call(&self.tool, &self.input) {
            let path = absolute(change.path, cwd);
            return vec![match change.text {
                AskedText::Whole(content) => diff(&path, small_file(&path).as_deref(), content),
                AskedText::Replaced { old, new, .. } => {
                    diff(&path, Some(old).filter(|old| !old.is_empty()), new)
                }
            }];
        }
        let shown = match ToolKind::of_tool(&self.tool) {
            ToolKind::Mode => "plan",
            ToolKind::Execute => "description",
            _ => return Vec::new(),
        };
        self.input.get(shown).and_then(Value::as_str).map(text_content).into_iter().collect()
    }

    /// Returns the news that there is such a call.
    pub(super) fn announce(&self, id: &str, cwd: &Path) -> Value {
        json!({
            "sessionUpdate": "tool_call",
            "toolCallId": id,
            "title": self.title(cwd),
            "name": self.tool,
            "kind": self.kind(),
            "status": "pending",
            "content": self.preview(cwd),
            "locations": self.locations(cwd),
            "rawInput": self.input,
        })
    }

    /// Returns the call as a permission request shows it.
    pub(super) fn permission_request(&self, id: &str, cwd: &Path) -> Value {
        json!({
            "toolCallId": id,
            "title": self.title(cwd),
            "kind": self.kind(),
            "status": "pending",
            "content": self.preview(cwd),
            "locations": self.locations(cwd),
            "rawInput": self.input,
        })
    }

    /// Returns the news of what came of it: the result's content as the model hears it, and what the tool says to programs.
    pub(super) fn finish(&self, id: &str, result: &Value, structured: Option<&Value>, cwd: &Path) -> Value {
        let is_error = result["is_error"] == true;
        let changes = structured.filter(|_| !is_error).and_then(|it| changed(it, cwd));
        let mut update = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": id,
            "status": if is_error { "failed" } else { "completed" },
            "content": match &changes {
                Some((diff, _)) => vec![diff.clone()],
                None => result_content(&result["content"]),
            },
        });
        if let Some((_, Some(location))) = changes {
            update["locations"] = json!([location]);
        }
        update["rawOutput"] = match structured {
            Some(structured) => without_original(structured),
            None => json!({"content": result["content"]}),
        };
        update
    }
}

/// Returns the news that a call is at work, with what it has said so far.
pub(super) fn progress(id: &str, output: Option<&str>) -> Value {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"});
    if let Some(output) = output {
        update["content"] = json!([text_content(output)]);
    }
    update
}

/// Returns the change that a structured result tells of, and where it begins.
fn changed(structured: &Value, cwd: &Path) -> Option<(Value, Option<Value>)> {
    let path = absolute(structured.get("filePath")?.as_str()?, cwd);
    let hunks = structured.get("structuredPatch")?.as_array()?;
    let text = |key: &str| structured.get(key).and_then(Value::as_str);
    let shown = match (text("content"), text("oldString"), text("newString")) {
        (Some(content), _, _) => diff(&path, text("originalFile"), content),
        (None, Some(old), Some(new)) => diff(&path, Some(old).filter(|old| !old.is_empty()), new),
        _ => return None,
    };
    let line = hunks.first().and_then(|hunk| hunk["newStart"].as_u64());
    Some((shown, line.map(|line| json!({"path": path, "line": line}))))
}

/// Leaves out the whole file that was there before: the change says what matters of it.
fn without_original(structured: &Value) -> Value {
    let mut value = structured.clone();
    if let Value::Object(fields) = &mut value {
        fields.remove("originalFile");
    }
    value
}

/// Returns the content of a result: a text, or blocks.
fn result_content(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![text_content(text)],
        Value::Array(blocks) => blocks.iter().filter_map(block_content).collect(),
        _ => Vec::new(),
    }
}

fn block_content(block: &Value) -> Option<Value> {
    let content = match block["type"].as_str()? {
        "text" => json!({"type": "text", "text": block["text"].as_str()?}),
        "image" => image(&block["source"])?,
        other => json!({"type": "text", "text": format!("[{other}]")}),
    };
    Some(json!({"type": "content", "content": content}))
}

/// Returns a picture of the API as one of the protocol.
pub(super) fn image(source: &Value) -> Option<Value> {
    let (data, mime) = (source["data"].as_str()?, source["media_type"].as_str()?);
    Some(json!({"type": "image", "data": data, "mimeType": mime}))
}

fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn diff(path: &Path, old: Option<&str>, new: &str) -> Value {
    json!({"type": "diff", "path": path, "oldText": old, "newText": new})
}

fn absolute(path: &str, cwd: &Path) -> PathBuf {
    cwd.join(path)
}

fn short(path: &str, cwd: &Path) -> String {
    let path = Path::new(path);
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}

fn small_file(path: &Path) -> Option<String> {
    let is_small = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MOST_BYTES);
    is_small.then(|| read_regular_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(tool: &str, input: Value) -> CallView {
        CallView::new(tool, &input)
    }

    #[test]
    fn calls_have_a_kind_a_title_and_locations() {
        let cwd = Path::new("/p");
        for (tool, input, kind, title, locations) in [
            ("Bash", json!({"command": "ls\nrm x"}), "execute", "`ls rm x`", json!([])),
            (
                "Read",
                json!({"file_path": "/p/a.rs", "offset": 7}),
                "read",
                "Read a.rs",
                json!([{"path": "/p/a.rs", "line": 7}]),
            ),
            ("Edit", json!({"file_path": "a.rs"}), "edit", "Edit a.rs", json!([{"path": "/p/a.rs"}])),
            (
                "Grep",
                json!({"pattern": "x", "path": "src"}),
                "search",
                "Search x",
                json!([{"path": "/p/src"}]),
            ),
            ("mcp__a__b", json!({"path": "src"}), "other", "mcp__a__b", json!([])),
            ("Write", json!({}), "edit", "Write", json!([])),
        ] {
            let call = view(tool, input);
            assert_eq!((call.kind(), call.title(cwd).as_str()), (kind, title), "{call:?}");
            assert_eq!(json!(call.locations(cwd)), locations, "{call:?}");
        }
    }

    #[test]
    fn characters_that_hide_text_are_visible_in_titles() {
        let title = view("Bash", json!({"command": "ls \u{202e}fdp"})).title(Path::new("/p"));
        assert!(!title.contains('\u{202e}'), "{title}");
    }

    #[test]
    fn changes_are_diffs_before_and_after() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("old"), "before\n").unwrap();
        let preview = |tool: &str, input: Value| json!(view(tool, input).preview(dir.path()));
        let old = dir.path().join("old");
        assert_eq!(
            preview("Write", json!({"file_path": "old", "content": "after\n"})),
            json!([{"type": "diff", "path": old, "oldText": "before\n", "newText": "after\n"}])
        );
        assert_eq!(preview("Write", json!({"file_path": "new", "content": "x"}))[0]["oldText"], Value::Null);
        assert_eq!(
            preview("Edit", json!({"file_path": "old", "old_string": "", "new_string": "x"}))[0]["oldText"],
            Value::Null
        );
        let structured = json!({"filePath": "old", "oldString": "a", "newString": "b", "originalFile": "secret",
            "structuredPatch": [{"newStart": 4}]});
        let done = view("Edit", json!({})).finish(
            "t1",
            &json!({"content": "Updated"}),
            Some(&structured),
            dir.path(),
        );
        assert_eq!(done["status"], "completed");
        assert_eq!(done["content"], json!([{"type": "diff", "path": old, "oldText": "a", "newText": "b"}]));
        assert_eq!(done["locations"], json!([{"path": old, "line": 4}]));
        assert!(!done.to_string().contains("secret"));
    }

    #[test]
    fn results_are_text_and_pictures_and_failures_say_so() {
        let call = view("Bash", json!({}));
        let finish = |result: Value| call.finish("t", &result, None, Path::new("/p"));
        let failed = finish(json!({"content": "no", "is_error": true}));
        assert_eq!(
            (failed["status"].as_str(), failed["content"][0]["content"]["text"].as_str()),
            (Some("failed"), Some("no"))
        );
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AA"});
        let blocks =
            json!([{"type": "text", "text": "see"}, {"type": "image", "source": source}, {"type": "x"}]);
        let done = finish(json!({"content": blocks}));
        assert_eq!(
            done["content"],
            json!([
                {"type": "content", "content": {"type": "text", "text": "see"}},
                {"type": "content", "content": {"type": "image", "data": "AA", "mimeType": "image/png"}},
                {"type": "content", "content": {"type": "text", "text": "[x]"}},
            ])
        );
        assert_eq!(finish(json!({"content": ""}))["content"], json!([]));
    }
}
