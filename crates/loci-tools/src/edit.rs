//! Edit: replaces an exact piece of text in a file.
//!
//! The checks come in a fixed order: may the file be read at all, has the model read it, is the piece there, is
//! it there once. The piece is looked for in the text as the model sees it (line feeds only) and cut out of the
//! text as it is stored, so that every other byte of the file stays what it was.

mod find;

use std::path::Path;

use loci_core::agent::unescape_our_tags;
use loci_core::tool::{CallEffects, MainArgument, PathEffect, ToolDescriptor, ToolFacts, ToolOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::change::{self, ChangeError, Original};
use crate::files::patch::{self, Hunk};
use crate::files::text_file::{Charset, LfView, TextFile, to_lf};
use crate::read::missing_message;
use crate::{FileState, Host, Tool, ToolCall, ToolFuture, Workspace};

/// The Edit tool.
pub(crate) struct Edit {
    descriptor: ToolDescriptor,
}

impl Default for Edit {
    fn default() -> Self {
        Self {
            descriptor: ToolDescriptor {
                name: "Edit".to_owned(),
                aliases: &[],
                description: include_str!("edit.md").trim_end().to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "file_path": {"type": "string", "description": "The file to change, as an absolute path"},
                        "old_string": {"type": "string", "description": "The text to replace, exactly as it is in the file"},
                        "new_string": {"type": "string", "description": "The text to put in its place"},
                        "replace_all": {
                            "type": "boolean",
                            "default": false,
                            "description": "Whether to replace every occurrence instead of the only one"
                        }
                    },
                    "required": ["file_path", "old_string", "new_string"],
                    "additionalProperties": false
                }),
                max_result_chars: None,
                facts: ToolFacts {
                    is_clearable: true,
                    keeps_files: true,
                    is_bare: true,
                    main_argument: Some(MainArgument {
                        name: "file_path",
                        is_optional: false,
                        others: &[("old_string", ""), ("new_string", "")],
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
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl Tool for Edit {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match input["file_path"].as_str() {
            Some(path) => {
                let path = place.resolve(path);
                CallEffects { reads: vec![path.clone()], writes: vec![path], ..CallEffects::default() }
            }
            None => CallEffects { unknown: vec!["Edit without a path".to_owned()], ..CallEffects::default() },
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        if input["old_string"] == input["new_string"] {
            return Err(Box::new(ToolOutcome::refusal(
                "Nothing to change: old_string and new_string are the same.",
            )));
        }
        Ok(())
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move { run(call, host).await.unwrap_or_else(ToolOutcome::from) })
    }
}

async fn run(call: ToolCall, host: &dyn Host) -> Result<ToolOutcome, ChangeError> {
    let input: Input = serde_json::from_value(call.input.clone())
        .map_err(|error| ChangeError::Refuse(format!("Invalid input: {error}")))?;
    let place = host.workspace();
    let path = call.judged_path().map_err(ChangeError::Refuse)?;
    change::check_denied(&path, host)?;
    match change::load(&path, host, &call.cancel).await? {
        None if input.old_string.is_empty() => create(&call, &path, &input, host).await,
        None => Err(ChangeError::Fail(missing_message(&place, &path.requested, host).await)),
        Some(original) => edit(&call, &path, &input, &original, host).await,
    }
}

/// Makes a file that is not there yet.
async fn create(
    call: &ToolCall,
    path: &PathEffect,
    input: &Input,
    host: &dyn Host,
) -> Result<ToolOutcome, ChangeError> {
    let modified = change::replace(call, path, None, input.new_string.clone().into_bytes(), host).await?;
    let text = to_lf(&input.new_string).into_owned();
    let hunks = patch::hunks("", &text);
    let state = FileState { content: text, modified, offset: None, limit: None, is_partial_view: false };
    change::remember(&path.requested, state, host);
    let message = format!("Created `{}`.", path.requested.display());
    Ok(ToolOutcome::text(message, structured(&path.requested, input, Some(""), &hunks)))
}

/// A change worked out but not made.
struct Plan {
    bytes: Vec<u8>,
    /// Before and after, as the model sees them.
    old_text: String,
    new_text: String,
    n_places: usize,
}

async fn edit(
    call: &ToolCall,
    path: &PathEffect,
    input: &Input,
    original: &Original,
    host: &dyn Host,
) -> Result<ToolOutcome, ChangeError> {
    let shown = path.requested.display().to_string();
    let seen = change::last_seen(path, host);
    let has_changed = check_seen(&shown, input, original, seen.as_ref())?;
    let Some(file) = &original.file else {
        return Err(ChangeError::Refuse(format!(
            "`{shown}` is not changed: it is not text, or text in an encoding that cannot be written back as it was."
        )));
    };
    let plan = plan(&shown, input, file, has_changed)?;
    let hunks = patch::hunks(&plan.old_text, &plan.new_text);
    let modified = change::replace(call, path, Some(original), plan.bytes, host).await?;
    let mut message = match plan.n_places {
        1 => format!("Updated `{shown}`."),
        n_places => format!("Updated `{shown}` in {n_places} places."),
    };
    if has_changed {
        message.push_str(
            " The file had changed on disk since you read it; those other changes are still there. Read it again \
             before you rely on the rest of it.",
        );
    }
    message.push_str(" The changed lines are now:\n");
    message.push_str(&patch::snippet(&hunks));
    let outcome =
        ToolOutcome::text(message, structured(&path.requested, input, Some(&plan.old_text), &hunks));
    let knows_all = !has_changed && seen.is_none_or(|seen| seen.is_whole());
    change::remember(&path.requested, state_after(knows_all, plan.new_text, &hunks, modified), host);
    Ok(outcome)
}

/// Returns whether the file has changed since it was read; refuses when it was not read.
fn check_seen(
    shown: &str,
    input: &Input,
    original: &Original,
    seen: Option<&FileState>,
) -> Result<bool, ChangeError> {
    let is_empty = original.file.as_ref().is_some_and(|file| file.stored.is_empty());
    if input.old_string.is_empty() && is_empty {
        return Ok(false);
    }
    if input.old_string.is_empty() {
        return Err(ChangeError::Refuse(format!(
            "`{shown}` already exists and is not empty, so an empty old_string does not say what to replace. Give the \
             text to replace, or use Write to replace all of it."
        )));
    }
    match seen {
        None => Err(ChangeError::unread(shown)),
        Some(seen) if seen.is_partial_view => Err(ChangeError::Refuse(format!(
            "Only a shortened form of `{shown}` has been seen. Read it first before changing it."
        ))),
        Some(seen) => Ok(original.has_changed_since(seen)),
    }
}

/// Works out the new content, or says why the piece cannot be replaced.
fn plan(shown: &str, input: &Input, file: &TextFile, has_changed: bool) -> Result<Plan, ChangeError> {
    let view = LfView::new(&file.stored);
    let ending = view.ending();
    let (old, places) = find::places(&view.text, &input.old_string);
    let changed = if has_changed { " The file has changed on disk since you read it." } else { "" };
    match places.len() {
        0 => {
            let help = find::explain_missing(&view.text, &input.old_string);
            return Err(ChangeError::Refuse(format!(
                "old_string was not found in `{shown}`.{changed} {help}"
            )));
        }
        1 => {}
        n_places if has_changed => {
            return Err(ChangeError::Refuse(format!(
                "old_string occurs {n_places} times in `{shown}`.{changed} Read it again before you change more than \
                 one place."
            )));
        }
        n_places if !input.replace_all => {
            return Err(ChangeError::Refuse(format!(
                "old_string occurs {n_places} times in `{shown}` ({}). To change one of them, give more of the text \
                 around it; to change them all, set replace_all.",
                find::describe_lines(&view.text, &places),
            )));
        }
        _ => {}
    }
    let is_as_shown = *old != *input.old_string && *old == *unescape_our_tags(&input.old_string);
    let new =
        if is_as_shown { unescape_our_tags(&input.new_string) } else { input.new_string.as_str().into() };
    let new = ending.apply(&new);
    let mut stored = String::with_capacity(file.stored.len() + new.len());
    let mut at = 0;
    for place in &places {
        stored.push_str(&file.stored[at..view.stored_offset(*place)]);
        stored.push_str(&new);
        at = view.stored_offset(place + old.len());
    }
    stored.push_str(&file.stored[at..]);
    let bytes = encode(shown, file.charset, &stored)?;
    let new_text = to_lf(&stored).into_owned();
    Ok(Plan { bytes, new_text, n_places: places.len(), old_text: view.text.into_owned() })
}

fn encode(shown: &str, charset: Charset, stored: &str) -> Result<Vec<u8>, ChangeError> {
    charset.encode(stored).map_err(|error| {
        ChangeError::Refuse(format!(
            "`{shown}` is not changed: {error}. Leave that character out, or convert the file to UTF-8 first."
        ))
    })
}

/// Returns what the model knows after an edit: the whole file if it did before, else the lines it was shown.
fn state_after(
    knows_all: bool,
    new_text: String,
    hunks: &[Hunk],
    modified: std::time::SystemTime,
) -> FileState {
    let whole = FileState { content: new_text, modified, offset: None, limit: None, is_partial_view: false };
    match hunks.first() {
        Some(hunk) if !knows_all => {
            let lines = whole.content.split('\n').skip(hunk.new_start - 1).take(hunk.new_lines);
            FileState {
                content: lines.collect::<Vec<_>>().join("\n"),
                offset: Some(hunk.new_start as u64),
                limit: Some(hunk.new_lines as u64),
                ..whole
            }
        }
        _ => whole,
    }
}

fn structured(path: &Path, input: &Input, original: Option<&str>, hunks: &[Hunk]) -> Value {
    json!({
        "filePath": path.display().to_string(),
        "oldString": input.old_string,
        "newString": input.new_string,
        "originalFile": change::original_field(original),
        "structuredPatch": hunks,
        "userModified": false,
        "replaceAll": input.replace_all,
    })
}

#[cfg(test)]
mod tests;
