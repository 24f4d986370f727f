//! NotebookEdit: replaces, inserts or removes one cell of a Jupyter notebook.
//!
//! The rest of the file keeps its bytes. As with Edit, the notebook must have been read and not have changed since.

mod cells;

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::change::{self, ChangeError, Original};
use crate::files::text_file::LfView;
use crate::{FileState, Host, Tool, ToolCall, ToolFuture, Workspace};
use cells::{Change, Changed};

/// The NotebookEdit tool.
pub(crate) struct NotebookEdit {
    descriptor: ToolDescriptor,
}

impl Default for NotebookEdit {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "NotebookEdit".to_owned(),
            aliases: &[],
            description: include_str!("notebook_edit.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "notebook_path": {"type": "string", "description": "The .ipynb file, as an absolute path"},
                    "cell_id": {
                        "type": "string",
                        "description": "The cell to change; with insert, the cell that the new one follows",
                    },
                    "new_source": {"type": "string", "description": "The new source of the cell"},
                    "cell_type": {"type": "string", "enum": ["code", "markdown"], "description": "Needed for insert"},
                    "edit_mode": {"type": "string", "enum": ["replace", "insert", "delete"], "default": "replace"},
                },
                "required": ["notebook_path", "new_source"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, keeps_files: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

#[derive(Debug, Deserialize)]
struct Input {
    cell_id: Option<String>,
    new_source: String,
    cell_type: Option<String>,
    edit_mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Replace,
    Insert,
    Delete,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Insert => "insert",
            Self::Delete => "delete",
        }
    }
}

impl Tool for NotebookEdit {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match input["notebook_path"].as_str() {
            Some(path) => CallEffects::write(place.resolve(path)),
            None => CallEffects {
                unknown: vec!["NotebookEdit without a path".to_owned()],
                ..CallEffects::default()
            },
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let says = |text: &str| Err(Box::new(ToolOutcome::refusal(text.to_owned())));
        let path = input["notebook_path"].as_str().unwrap_or_default();
        let is_absent = |name: &str| input.get(name).is_none_or(Value::is_null);
        match input["edit_mode"].as_str() {
            _ if !path.ends_with(".ipynb") => {
                says("`notebook_path` does not name a notebook (.ipynb). Use Edit for other files.")
            }
            Some("insert") if is_absent("cell_type") => {
                says("`cell_type` is missing: insert needs code or markdown.")
            }
            Some("replace" | "delete") | None if is_absent("cell_id") => {
                says("`cell_id` is missing. Read shows the ids of the cells.")
            }
            _ => Ok(()),
        }
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
    let Some(original) = change::load(&path, host, &call.cancel).await? else {
        return Err(ChangeError::Refuse(format!("`{shown}` does not exist. Create it with Write first.")));
    };
    check_seen(&shown, &original, change::last_seen(&path, host).as_ref())?;
    let file =
        original.file.as_ref().ok_or_else(|| ChangeError::Refuse(format!("`{shown}` is no text file.")))?;
    let view = LfView::new(&file.stored);
    let new_id = host.env().random.hex(8);
    let changed = cells::change(&view.text, input.cell_id.as_deref(), input.change(&new_id))
        .map_err(|why| ChangeError::Refuse(format!("`{shown}` is not changed: {why}.")))?;
    let bytes = file
        .charset
        .encode(&view.ending().apply(&changed.text))
        .map_err(|error| ChangeError::Refuse(format!("`{shown}` is not changed: {error}.")))?;
    let before = view.text.to_string();
    let modified = change::replace(&call, &path, Some(&original), bytes, host).await?;
    let outcome = outcome(&shown, &input, &changed, &before);
    let state =
        FileState { content: changed.text, modified, offset: None, limit: None, is_partial_view: false };
    change::remember(&path.requested, state, host);
    Ok(outcome)
}

impl Input {
    fn change<'a>(&'a self, new_id: &'a str) -> Change<'a> {
        let source = &self.new_source;
        match self.edit_mode {
            Mode::Replace => Change::Replace { source, kind: self.cell_type.as_deref() },
            Mode::Insert => {
                Change::Insert { source, kind: self.cell_type.as_deref().unwrap_or("code"), new_id }
            }
            Mode::Delete => Change::Delete,
        }
    }
}

fn check_seen(shown: &str, original: &Original, seen: Option<&FileState>) -> Result<(), ChangeError> {
    match seen {
        None => Err(ChangeError::unread(shown)),
        Some(seen) if original.has_changed_since(seen) => Err(ChangeError::Refuse(format!(
            "`{shown}` has changed on disk since it was read, by the user or a program. Read it again before changing \
             it."
        ))),
        Some(_) => Ok(()),
    }
}

fn outcome(shown: &str, input: &Input, changed: &Changed, before: &str) -> ToolOutcome {
    let cell = changed.cell_id.as_deref().unwrap_or("the first cell");
    let message = match input.edit_mode {
        Mode::Replace => format!("Cell `{cell}` of `{shown}` has its new source."),
        Mode::Insert => format!("The new cell `{cell}` is in `{shown}`."),
        Mode::Delete => format!("Cell `{cell}` is gone from `{shown}`."),
    };
    let structured = json!({
        "new_source": input.new_source,
        "old_source": changed.old_source,
        "cell_type": changed.cell_kind,
        "language": changed.language,
        "edit_mode": input.edit_mode.as_str(),
        "cell_id": changed.cell_id,
        "error": "",
        "notebook_path": shown,
        "original_file": change::original_field(Some(before)),
        "updated_file": change::original_field(Some(&changed.text)),
    });
    ToolOutcome::text(message, structured)
}

#[cfg(test)]
mod tests;
