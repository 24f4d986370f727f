//! Tables: fitted to the width, or as "header: value" lines where the width is too small.

use super::blocks::Table;
use super::inline;
use crate::render::RenderContext;
use crate::text::{Row, Span, Style, clusters, wrap};
use crate::theme::Role;

/// Where a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Alignment {
    #[default]
    Left,
    Center,
    Right,
}

/// Blanks between two columns.
const GAP: usize = 2;

/// Returns the cells of a line.
pub(super) fn split_cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for c in line.trim().chars() {
        match (is_escaped, c) {
            (true, '|') => push(&mut cells, "|"),
            (true, c) => push(&mut cells, &format!("\\{c}")),
            (false, '\\') => {}
            (false, '|') => cells.push(String::new()),
            (false, c) => push(&mut cells, c.encode_utf8(&mut [0; 4])),
        }
        is_escaped = !is_escaped && c == '\\';
    }
    if is_escaped {
        push(&mut cells, "\\");
    }
    if cells.len() > 1 && cells.first().is_some_and(|cell| cell.trim().is_empty()) {
        cells.remove(0);
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn push(cells: &mut [String], text: &str) {
    if let Some(cell) = cells.last_mut() {
        cell.push_str(text);
    }
}

/// Returns the alignments that the line below a header tells, if it is one.
pub(super) fn parse_delimiter_row(line: &str) -> Option<Vec<Alignment>> {
    if !line.contains('-') || !line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ')) {
        return None;
    }
    split_cells(line)
        .iter()
        .map(|cell| {
            let dashes = cell.trim_matches(':');
            if dashes.is_empty() || !dashes.chars().all(|c| c == '-') {
                return None;
            }
            Some(match (cell.starts_with(':'), cell.ends_with(':')) {
                (true, true) => Alignment::Center,
                (false, true) => Alignment::Right,
                (true | false, false) => Alignment::Left,
            })
        })
        .collect()
}

/// Returns the rows of a table.
pub(super) fn render(table: &Table, row_width: usize, ctx: &RenderContext) -> Vec<Row> {
    let n_columns = table.header.len();
    let header = cells_of(&table.header, n_columns, ctx, ctx.theme.style(Role::Label));
    let rows: Vec<Cells> =
        table.rows.iter().map(|row| cells_of(row, n_columns, ctx, Style::default())).collect();
    let widths = if ctx.is_screen_reader { None } else { fit(&header, &rows, row_width) };
    let Some(widths) = widths else { return render_records(&header, &rows, row_width, ctx) };
    let mut out = render_row(&header, &widths, &table.alignments);
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let faint = ctx.theme.style(Role::Faint);
    out.push(Row::new(vec![Span::styled(rule.join(&" ".repeat(GAP)), faint)]));
    for row in &rows {
        out.extend(render_row(row, &widths, &table.alignments));
    }
    out
}

/// The text of each column of a row.
type Cells = Vec<Vec<Span>>;

fn cells_of(texts: &[String], n_columns: usize, ctx: &RenderContext, style: Style) -> Cells {
    let empty = String::new();
    (0..n_columns).map(|idx| inline::spans(texts.get(idx).unwrap_or(&empty), style, ctx)).collect()
}

/// Returns the width of each column, or none where a word would not fit.
fn fit(header: &Cells, rows: &[Cells], row_width: usize) -> Option<Vec<usize>> {
    let room = row_width.checked_sub(GAP * header.len().saturating_sub(1))?;
    let column = |idx: usize| std::iter::once(header).chain(rows).map(move |row| &row[idx]);
    let natural: Vec<usize> = (0..header.len())
        .map(|idx| column(idx).map(|cell| width_of(cell)).max().unwrap_or(0).max(1))
        .collect();
    let smallest: Vec<usize> = (0..header.len())
        .map(|idx| column(idx).map(|cell| longest_word(cell)).max().unwrap_or(0).max(natural[idx].min(6)))
        .collect();
    if smallest.iter().sum::<usize>() > room {
        return None;
    }
    // The widest column that can gives way, a cell at a time.
    let mut widths = natural;
    while widths.iter().sum::<usize>() > room {
        let (idx, width) = widths
            .iter()
            .enumerate()
            .filter(|(idx, width)| **width > smallest[*idx])
            .max_by_key(|(_, width)| **width)?;
        let excess = widths.iter().sum::<usize>() - room;
        let next = widths.iter().filter(|other| *other < width).max().copied().unwrap_or(0);
        let step = (width - next.max(smallest[idx])).clamp(1, excess);
        widths[idx] -= step;
    }
    Some(widths)
}

fn width_of(cell: &[Span]) -> usize {
    cell.iter().map(|span| crate::text::width(&span.text)).sum()
}

fn longest_word(cell: &[Span]) -> usize {
    wrap(cell, 1, &[], &[]).iter().map(Row::width).max().unwrap_or(0)
}

/// Returns the rows of one row of a table; the last column is not filled up.
fn render_row(cells: &Cells, widths: &[usize], alignments: &[Alignment]) -> Vec<Row> {
    let columns: Vec<Vec<Row>> =
        cells.iter().zip(widths).map(|(cell, width)| wrap(cell, *width, &[], &[])).collect();
    let n_rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    (0..n_rows)
        .map(|idx| {
            let mut row = Row::default();
            let mut blanks = 0;
            for (column, (width, rows)) in widths.iter().zip(&columns).enumerate() {
                let text = rows.get(idx).cloned().unwrap_or_default();
                let free = width.saturating_sub(text.width());
                let before = match alignments.get(column).copied().unwrap_or_default() {
                    Alignment::Left => 0,
                    Alignment::Center => free / 2,
                    Alignment::Right => free,
                };
                blanks += before;
                if text.width() > 0 {
                    row.push(Span::plain(" ".repeat(blanks)));
                    text.spans.into_iter().for_each(|span| row.push(span));
                    blanks = 0;
                } else {
                    blanks += text.width();
                }
                blanks += free - before + GAP;
            }
            row.spans.retain(|span| !span.text.is_empty());
            row
        })
        .collect()
}

/// Returns a table as a line for each value, with a blank row between its rows.
fn render_records(header: &Cells, rows: &[Cells], row_width: usize, ctx: &RenderContext) -> Vec<Row> {
    let mut out = Vec::new();
    for (idx, row) in rows.iter().enumerate() {
        if idx > 0 {
            out.push(Row::default());
        }
        for (name, value) in header.iter().zip(row) {
            let mut spans = name.clone();
            spans.push(Span::styled(": ", ctx.theme.style(Role::Label)));
            spans.extend(value.iter().cloned());
            out.extend(wrap(&spans, row_width, &[], &[]));
        }
    }
    if rows.is_empty() {
        let names: Vec<String> =
            header.iter().map(|cell| cell.iter().flat_map(|span| clusters(&span.text)).collect()).collect();
        out.extend(wrap(&[Span::plain(names.join(", "))], row_width, &[], &[]));
    }
    out
}
