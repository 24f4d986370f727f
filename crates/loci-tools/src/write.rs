//! Write: creates a file or replaces its whole content.
//!
//! An existing file is replaced only when the model has seen all of it as it is now, so that nothing unseen is
//! lost; its mode, encoding and line endings are kept.

use loci_core::tool::{CallEffects, MainArgument, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_stdx::counted;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::change::{self, ChangeError, Original};
use crate::files::patch;
use crate::files::text_file::{Charset, LfView, LineEnding, to_lf};
use crate::{FileState, Host, Tool, ToolCall, ToolFuture, Workspace};

/// The Write tool.
pub(crate) struct Write {
    descriptor: ToolDescriptor,
}

impl Default for Write {
    fn default() -> Self {
        Self {
            descriptor: ToolDescriptor {
                name: "Write".to_owned(),
                aliases: &[],
                description: include_str!("write.md").trim_end().to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "file_path": {"type": "string", "description": "The file to write, as an absolute path"},
                        "content": {"type": "string", "description": "The whole new content of the file"}
                    },
                    "required": ["file_path", "content"],
                    "additionalProperties": false
                }),
                max_result_chars: None,
                facts: ToolFacts {
                    is_clearable: true,
                    keeps_files: true,
                    main_argument: Some(MainArgument {
                        name: "file_path",
                        is_optional: false,
                        others: &[("content", "")],
                    }),
                    ..ToolFacts::default()
                },
            },
        }
    }
}

/// The arguments of a call.
#[derive(Debug, Deserialize)]
struct Input {
    content: String,
}

impl Tool for Write {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match input["file_path"].as_str() {
            Some(path) => CallEffects::write(place.resolve(path)),
            None => {
                CallEffects { unknown: vec!["Write without a path".to_owned()], ..CallEffects::default() }
            }
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move { run(call, host).await.unwrap_or_else(ToolOutcome::from) })
    }
}

async fn run(call: ToolCall, host: &dyn Host) -> Result<ToolOutcome, ChangeError> {
    let path = call.judged_path().map_err(ChangeError::Refuse)?;
    let input: Input = serde_json::from_value(call.input.clone())
        .map_err(|error| ChangeError::Refuse(format!("Invalid input: {error}")))?;
    let shown = path.requested.display().to_string();
    change::check_denied(&path, host)?;
    let original = change::load(&path, host, &call.cancel).await?;
    if let Some(original) = &original {
        check_seen(&shown, original, change::last_seen(&path, host).as_ref())?;
    }
    let (charset, ending) = form(original.as_ref());
    let bytes = charset.encode(&ending.apply(&input.content)).map_err(|error| {
        ChangeError::Refuse(format!(
            "`{shown}` is not changed: {error}. Leave that character out, or convert the file to UTF-8 first."
        ))
    })?;
    let modified = change::replace(&call, &path, original.as_ref(), bytes, host).await?;
    let text = to_lf(&input.content).into_owned();
    let outcome = outcome(&shown, &input.content, &text, original.as_ref());
    let state = FileState { content: text, modified, offset: None, limit: None, is_partial_view: false };
    change::remember(&path.requested, state, host);
    Ok(outcome)
}

/// Refuses to replace what the model has not seen.
fn check_seen(shown: &str, original: &Original, seen: Option<&FileState>) -> Result<(), ChangeError> {
    let Some(seen) = seen else {
        return Err(ChangeError::unread(shown));
    };
    if !seen.is_whole() {
        return Err(ChangeError::Refuse(format!(
            "Only a part of `{shown}` has been read. Read all of it before replacing it, or change the part you know \
             with Edit."
        )));
    }
    if original.has_changed_since(seen) {
        return Err(ChangeError::Refuse(format!(
            "`{shown}` has changed on disk since it was read, by the user or a program. Read it again before writing \
             to it."
        )));
    }
    Ok(())
}

/// Returns the encoding and line endings to write with: those of the file that is there.
fn form(original: Option<&Original>) -> (Charset, LineEnding) {
    match original.and_then(|original| original.file.as_ref()) {
        Some(file) => (file.charset, LfView::new(&file.stored).ending()),
        None => (Charset::UTF_8, LineEnding::Lf),
    }
}

fn outcome(shown: &str, content: &str, text: &str, original: Option<&Original>) -> ToolOutcome {
    let (kind, message) = match original {
        None => ("create", format!("Created `{shown}` ({}).", line_count(text))),
        Some(_) => ("update", format!("Updated `{shown}`, now {}.", line_count(text))),
    };
    let before = original.and_then(Original::text);
    let hunks = before.as_deref().map(|before| patch::hunks(before, text)).unwrap_or_default();
    let structured = json!({
        "type": kind,
        "filePath": shown,
        "content": content,
        "structuredPatch": hunks,
        "originalFile": change::original_field(before.as_deref()),
        "userModified": false,
    });
    ToolOutcome::text(message, structured)
}

fn line_count(text: &str) -> String {
    counted(text.lines().count() as u64, "line", "lines")
}

#[cfg(test)]
mod tests;
