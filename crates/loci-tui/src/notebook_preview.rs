//! What a change of a notebook would change: the source of its cell before and after.
//!
//! It is read as the tool reads it: a cell by its id, or by its place where cells have no ids. What cannot be read so has
//! no preview, and the call is shown as it stands.

use std::path::Path;

use serde_json::Value;

use crate::app::short_path;
use crate::block::FileDiff;

/// The tool that changes cells.
pub(crate) const NOTEBOOK_EDIT: &str = "NotebookEdit";

/// Returns what a call would change in a notebook of this text.
pub(crate) fn preview_cell(input: &Value, notebook: &str, cwd: &Path) -> Option<FileDiff> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let notebook: Value = serde_json::from_str(notebook).ok()?;
    let cells = notebook["cells"].as_array()?;
    let id = text("cell_id");
    let cell = match id {
        Some(id) => Some(find_cell(cells, id)?),
        None => None,
    };
    let new = text("new_source").unwrap_or_default().to_owned();
    let (what, before, after) = match (text("edit_mode").unwrap_or("replace"), id, cell) {
        ("insert", id, _) => {
            let kind = text("cell_type").unwrap_or("code");
            let place = id.map_or("at the beginning".to_owned(), |id| format!("behind {id}"));
            (format!("new {kind} cell {place}"), String::new(), new)
        }
        ("delete", Some(id), Some(cell)) => (format!("cell {id} removed"), source(cell), String::new()),
        ("replace", Some(id), Some(cell)) => {
            let kind = text("cell_type").map(|kind| format!(" as {kind}")).unwrap_or_default();
            (format!("cell {id}{kind}"), source(cell), new)
        }
        _ => return None,
    };
    let path = format!("{} ({what})", short_path(text("notebook_path")?, cwd));
    Some(FileDiff { path, before, after, first_line: 1 })
}

fn find_cell<'a>(cells: &'a [Value], id: &str) -> Option<&'a Value> {
    let by_place =
        || cells.get(id.strip_prefix("cell-")?.parse::<usize>().ok()?).filter(|it| it["id"].is_null());
    cells.iter().find(|cell| cell["id"] == id).or_else(by_place)
}

/// Returns the source of a cell, which is a text or a list of lines.
fn source(cell: &Value) -> String {
    match &cell["source"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn change_of_a_cell_is_shown_as_it_would_be_made() {
        let cells = json!([{"id": "a", "source": ["x = 1\n", "y"]}, {"source": "z"}]);
        let notebook = json!({"cells": cells}).to_string();
        for (input, expected) in [
            (json!({"cell_id": "a", "new_source": "x = 2"}), Some(("(cell a)", "x = 1\ny", "x = 2"))),
            (
                json!({"cell_id": "cell-1", "new_source": "w", "cell_type": "markdown"}),
                Some(("(cell cell-1 as markdown)", "z", "w")),
            ),
            (json!({"cell_id": "a", "edit_mode": "delete"}), Some(("(cell a removed)", "x = 1\ny", ""))),
            (
                json!({"cell_id": "a", "edit_mode": "insert", "new_source": "n"}),
                Some(("(new code cell behind a)", "", "n")),
            ),
            (
                json!({"edit_mode": "insert", "new_source": "n", "cell_type": "markdown"}),
                Some(("(new markdown cell at the beginning)", "", "n")),
            ),
            (json!({"cell_id": "cell-0", "new_source": "n"}), None),
            (json!({"cell_id": "nosuch", "edit_mode": "insert", "new_source": "n"}), None),
            (json!({"new_source": "n"}), None),
        ] {
            let mut input = input;
            input["notebook_path"] = json!("/p/n.ipynb");
            let shown = preview_cell(&input, &notebook, Path::new("/p"));
            let expected = expected.map(|(what, before, after)| FileDiff {
                path: format!("n.ipynb {what}"),
                before: before.to_owned(),
                after: after.to_owned(),
                first_line: 1,
            });
            assert_eq!(shown, expected, "{input}");
        }
    }
}
