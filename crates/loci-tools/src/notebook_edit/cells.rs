//! Changing one cell of a notebook's text; every byte outside of it stays.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// What is to be done to a notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// The cell gets another source, and another kind where one is named.
    Replace { source: &'a str, kind: Option<&'a str> },
    /// A new cell goes behind the named one, or to the front.
    Insert { source: &'a str, kind: &'a str, new_id: &'a str },
    /// The cell goes.
    Delete,
}

/// A notebook after the change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) text: String,
    /// The cell that was changed, made or removed.
    pub(super) cell_id: Option<String>,
    pub(super) cell_kind: String,
    pub(super) old_source: String,
    pub(super) language: String,
}

#[derive(Deserialize)]
struct Book<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
}

/// A cell's own fields and where they stand.
#[derive(Deserialize)]
struct Cell<'a> {
    id: Option<String>,
    #[serde(default, borrow)]
    cell_type: Option<&'a RawValue>,
    #[serde(default, borrow)]
    source: Option<&'a RawValue>,
    #[serde(default, borrow)]
    outputs: Option<&'a RawValue>,
    #[serde(default, borrow)]
    execution_count: Option<&'a RawValue>,
}

/// Changes the cell of this id; `cell-3` is the fourth where cells have no ids.
pub(super) fn change(text: &str, id: Option<&str>, change: Change<'_>) -> Result<Changed, String> {
    let book: Book<'_> = serde_json::from_str(text).map_err(|error| format!("it is no notebook: {error}"))?;
    let raw: Vec<&RawValue> =
        serde_json::from_str(book.cells.get()).map_err(|error| format!("its cells are no list: {error}"))?;
    let cells: Vec<Cell<'_>> = raw
        .iter()
        .map(|cell| serde_json::from_str(cell.get()))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("one of its cells is none: {error}"))?;
    let at = id.map(|id| find(&cells, id)).transpose()?;
    let spans: Vec<Range<usize>> = raw.iter().map(|cell| span(text, cell)).collect();
    let language = language(&book.metadata);
    match (change, at) {
        (Change::Insert { source, kind, new_id }, at) => {
            let has_ids = (book.nbformat, book.nbformat_minor) >= (4, 5);
            let list = span(text, book.cells);
            let layout = Layout::of(text, list.start, spans.first().map(|first| first.start));
            let cell = layout.new_cell(source, kind, has_ids.then_some(new_id));
            let edit = layout.insertion(&list, &spans, at, &cell);
            let index = at.map_or(0, |at| at + 1);
            let cell_id = Some(if has_ids { new_id.to_owned() } else { format!("cell-{index}") });
            Ok(changed(apply(text, vec![edit]), cell_id, kind.to_owned(), String::new(), language))
        }
        (_, None) => Err("`cell_id` is missing. Read shows the ids of the cells".to_owned()),
        (Change::Delete, Some(at)) => {
            let edit = (without(text, &spans, at), String::new());
            let (kind, old) = (kind_of(&cells[at]), source_of(&cells[at]));
            Ok(changed(apply(text, vec![edit]), id.map(str::to_owned), kind, old, language))
        }
        (Change::Replace { source, kind }, Some(at)) => {
            let cell = &cells[at];
            let next = kind.map_or_else(|| kind_of(cell), str::to_owned);
            let edits = replacement(text, cell, &spans[at], source, &next)?;
            Ok(changed(apply(text, edits), id.map(str::to_owned), next, source_of(cell), language))
        }
    }
}

fn changed(text: String, cell_id: Option<String>, kind: String, old: String, language: String) -> Changed {
    Changed { text, cell_id, cell_kind: kind, old_source: old, language }
}

fn find(cells: &[Cell<'_>], id: &str) -> Result<usize, String> {
    let by_id = cells.iter().position(|cell| cell.id.as_deref() == Some(id));
    let by_place = || {
        let n: usize = id.strip_prefix("cell-")?.parse().ok()?;
        cells.get(n).filter(|cell| cell.id.is_none()).map(|_| n)
    };
    by_id.or_else(by_place).ok_or_else(|| {
        let known: Vec<String> = cells
            .iter()
            .enumerate()
            .take(20)
            .map(|(n, cell)| cell.id.clone().unwrap_or_else(|| format!("cell-{n}")))
            .collect();
        format!("it has no cell `{id}`; the first are: {}", known.join(", "))
    })
}

/// Lists what replacing a cell changes. A cell of code forgets what its old source printed.
fn replacement(
    text: &str,
    cell: &Cell<'_>,
    place: &Range<usize>,
    source: &str,
    kind: &str,
) -> Result<Vec<(Range<usize>, String)>, String> {
    let old = cell.source.ok_or("the cell has no source")?;
    let indent = indent_before(text, span(text, old).start);
    let mut edits = vec![(span(text, old), lines_of(source, indent, unit(text, place.start)))];
    let was = kind_of(cell);
    if was != kind {
        if let Some(field) = cell.cell_type {
            edits.push((span(text, field), json!(kind).to_string()));
        }
        // Only code has these; a cell that becomes code gets them, one that is no more keeps them empty.
        if kind == "code" && cell.outputs.is_none() {
            let end = span(text, old).end;
            let comma = separator(text, place.start);
            let more = format!(",{comma}\"outputs\": [],{comma}\"execution_count\": null");
            edits.push((end..end, more));
        }
    }
    if was == "code" {
        edits.extend(cell.outputs.map(|field| (span(text, field), "[]".to_owned())));
        edits.extend(cell.execution_count.map(|field| (span(text, field), "null".to_owned())));
    }
    Ok(edits)
}

/// Returns where a value stands in the text it was read from.
fn span(text: &str, value: &RawValue) -> Range<usize> {
    let start = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + value.get().len()
}

fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    text
}

/// Returns the range of a cell together with the comma that goes with it.
fn without(text: &str, spans: &[Range<usize>], at: usize) -> Range<usize> {
    match (at.checked_sub(1).map(|before| &spans[before]), spans.get(at + 1)) {
        (Some(before), _) => before.end..spans[at].end,
        (None, Some(after)) => spans[at].start..after.start,
        (None, None) => {
            let start = text[..spans[at].start].trim_end().len();
            let end = spans[at].end + text[spans[at].end..].len() - text[spans[at].end..].trim_start().len();
            start..end
        }
    }
}

fn kind_of(cell: &Cell<'_>) -> String {
    let kind = cell.cell_type.and_then(|kind| serde_json::from_str(kind.get()).ok());
    kind.unwrap_or_else(|| "code".to_owned())
}

fn source_of(cell: &Cell<'_>) -> String {
    match cell.source.map(|source| serde_json::from_str(source.get())) {
        Some(Ok(Value::String(text))) => text,
        Some(Ok(Value::Array(lines))) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn language(metadata: &Map<String, Value>) -> String {
    let field = |object: &str, name: &str| metadata.get(object)?.get(name)?.as_str().map(str::to_owned);
    field("language_info", "name")
        .or_else(|| field("kernelspec", "language"))
        .unwrap_or_else(|| "python".to_owned())
}

/// Returns the blanks a line begins with, up to a place in it; `None` where something else precedes on the line.
fn leading(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let blank = &text[start..at];
    blank.bytes().all(|byte| matches!(byte, b' ' | b'\t')).then_some(blank)
}

/// Returns the indentation of the line that a place is on; `None` when the text has but one line.
fn indent_before(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let rest = &text[start..];
    Some(&rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()])
}

/// Returns what one more level is indented by: cells stand two levels deep.
fn unit(text: &str, cell: usize) -> &str {
    let indent = leading(text, cell).unwrap_or(" ");
    &indent[..(indent.len() / 2).max(1).min(indent.len())]
}

/// Returns what stands between two fields of a cell.
fn separator(text: &str, cell: usize) -> String {
    match leading(text, cell) {
        Some(indent) => format!("\n{indent}{}", unit(text, cell)),
        None => " ".to_owned(),
    }
}

/// Writes a source as the list of its lines, each with its newline, as notebooks have it.
fn lines_of(source: &str, indent: Option<&str>, unit: &str) -> String {
    let lines: Vec<String> = source.split_inclusive('\n').map(|line| json!(line).to_string()).collect();
    match indent {
        _ if lines.is_empty() => "[]".to_owned(),
        Some(indent) => format!("[\n{indent}{unit}{}\n{indent}]", lines.join(&format!(",\n{indent}{unit}"))),
        None => format!("[{}]", lines.join(", ")),
    }
}

/// How a notebook is laid out.
struct Layout {
    /// The blanks before a cell, and one level of them; `None` for a notebook on one line.
    indent: Option<(String, String)>,
}

impl Layout {
    fn of(text: &str, list: usize, first: Option<usize>) -> Self {
        let indent = match first {
            Some(first) => {
                leading(text, first).map(|indent| (indent.to_owned(), unit(text, first).to_owned()))
            }
            None => indent_before(text, list).map(|indent| (indent.repeat(2), indent.to_owned())),
        };
        Self { indent }
    }

    fn new_cell(&self, source: &str, kind: &str, id: Option<&str>) -> String {
        let mut fields = vec![format!("\"cell_type\": {}", json!(kind))];
        if kind == "code" {
            fields.push("\"execution_count\": null".to_owned());
        }
        fields.extend(id.map(|id| format!("\"id\": {}", json!(id))));
        fields.push("\"metadata\": {}".to_owned());
        if kind == "code" {
            fields.push("\"outputs\": []".to_owned());
        }
        match &self.indent {
            Some((indent, unit)) => {
                let inner = format!("{indent}{unit}");
                fields.push(format!("\"source\": {}", lines_of(source, Some(&inner), unit)));
                format!("{{\n{inner}{}\n{indent}}}", fields.join(&format!(",\n{inner}")))
            }
            None => {
                fields.push(format!("\"source\": {}", lines_of(source, None, " ")));
                format!("{{{}}}", fields.join(", "))
            }
        }
    }

    /// Returns where a cell goes and with what around it.
    fn insertion(
        &self,
        list: &Range<usize>,
        spans: &[Range<usize>],
        at: Option<usize>,
        cell: &str,
    ) -> (Range<usize>, String) {
        let gap = self.indent.as_ref().map_or_else(|| " ".to_owned(), |(indent, _)| format!("\n{indent}"));
        match (at, spans.first()) {
            (Some(at), _) => (spans[at].end..spans[at].end, format!(",{gap}{cell}")),
            (None, Some(first)) => (first.start..first.start, format!("{cell},{gap}")),
            (None, None) => {
                let close = self.indent.as_ref().map_or_else(String::new, |(_, unit)| format!("\n{unit}"));
                let open = self.indent.as_ref().map_or_else(String::new, |(indent, _)| format!("\n{indent}"));
                (list.clone(), format!("[{open}{cell}{close}]"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
