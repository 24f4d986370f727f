//! `/context [all|time]`: what fills the window, as a picture, a table and, with `all`, a list; with `time`, how it has
//! filled.

use loci_context::{ContextCategory, ContextCell, ContextUsage};
use loci_engine::{LocalOutcome, SessionSnapshot};

use super::{cell, short_tokens};
use crate::sessions::command::{ContextPart, ContextPoint, columns, condensed, context_history};
use crate::user_error::UserError;

/// The picture of the text: cells in a row, and rows.
const COLUMNS: usize = 20;
const ROWS: usize = 5;
/// The picture over time.
const HISTORY_COLUMNS: usize = 60;
const HISTORY_ROWS: usize = 8;

/// Carries the command out.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    match argument {
        "" => LocalOutcome::text(to_markdown(&session.context, false)),
        "all" => LocalOutcome::text(to_markdown(&session.context, true)),
        "time" => match history(session) {
            Ok(points) => LocalOutcome::text(history_markdown(&points)),
            Err(error) => super::refused(&error),
        },
        other => LocalOutcome::error(format!(
            "`/context {other}`: say `/context`, `/context all` for every piece, or `/context time`"
        )),
    }
}

/// Reads how the context of a session has filled, after each answer.
pub fn history(session: &SessionSnapshot) -> Result<Vec<ContextPoint>, UserError> {
    let Some(file) = session.transcript.as_ref().filter(|file| file.exists()) else { return Ok(Vec::new()) };
    let is_fixed = |category: &ContextCategory| *category != ContextCategory::Messages;
    let fixed = session.context.categories().into_iter().filter(|(category, _)| is_fixed(category));
    context_history(file, fixed.map(|(_, tokens)| tokens).sum())
}

fn history_markdown(points: &[ContextPoint]) -> String {
    let most = points.iter().map(ContextPoint::total).max().unwrap_or(0);
    if most == 0 {
        return "Nothing was answered yet.\n".to_owned();
    }
    let shown = condensed(points, HISTORY_COLUMNS);
    let rows: Vec<String> = columns(&shown, HISTORY_ROWS, most)
        .iter()
        .map(|row| row.iter().map(|cell| cell.map_or(' ', ContextPart::letter)).collect::<String>())
        .map(|row| row.trim_end().to_owned())
        .collect();
    let marks: String = shown.iter().map(|point| if point.is_compacted { '^' } else { '-' }).collect();
    let legend: Vec<String> =
        ContextPart::ALL.iter().map(|part| format!("{} {}", part.letter(), part.title())).collect();
    format!(
        "## Context over time\n\n{} answers, at most {} tokens\n\n```text\n{}\n{marks}\n```\n\n{}; ^ compacted\n",
        points.len(),
        short_tokens(most),
        rows.join("\n"),
        legend.join(", ")
    )
}

/// Returns the letter of a cell in pictures without colours.
pub fn symbol(cell: ContextCell) -> char {
    match cell {
        ContextCell::Used(category) => match category {
            ContextCategory::SystemPrompt => 'S',
            ContextCategory::Tools => 'T',
            ContextCategory::McpTools => 'P',
            ContextCategory::Agents => 'A',
            ContextCategory::Skills => 'K',
            ContextCategory::MemoryFiles => 'F',
            ContextCategory::Messages => 'M',
        },
        ContextCell::Free => '·',
        ContextCell::Buffer => '▒',
    }
}

/// Says what the whole comes to.
pub fn headline(usage: &ContextUsage) -> String {
    let (tokens, window) = (usage.fullness.tokens, usage.fullness.window);
    let past = match tokens.checked_sub(window) {
        Some(past) if past > 0 => format!(", {} past it", short_tokens(past)),
        _ => String::new(),
    };
    format!(
        "{}: {} of {} tokens ({}%){past}",
        usage.model,
        short_tokens(tokens),
        short_tokens(window),
        usage.percentage()
    )
}

/// Returns the rows of the legend: cell, title, tokens.
pub fn legend(usage: &ContextUsage) -> Vec<(ContextCell, &'static str, u64)> {
    let used = usage.categories().into_iter();
    let mut rows: Vec<_> =
        used.map(|(category, tokens)| (ContextCell::Used(category), category.title(), tokens)).collect();
    rows.push((ContextCell::Free, "Free space", usage.free()));
    if usage.buffer() > 0 {
        rows.push((ContextCell::Buffer, "Autocompact buffer", usage.buffer()));
    }
    rows
}

/// Returns it for people and programs that read Markdown.
pub fn to_markdown(usage: &ContextUsage, is_whole: bool) -> String {
    let cells: Vec<char> = usage.grid(COLUMNS * ROWS).into_iter().map(symbol).collect();
    let picture: Vec<String> = cells
        .chunks(COLUMNS)
        .map(|row| row.iter().map(char::to_string).collect::<Vec<_>>().join(" "))
        .collect();
    let mut text = format!("## Context\n\n{}\n\n```text\n{}\n```\n", headline(usage), picture.join("\n"));
    text.push_str("\n| | Category | Tokens | Share |\n|---|---|---:|---:|\n");
    for (kind, title, tokens) in legend(usage) {
        let share = tokens as f64 * 100.0 / usage.fullness.window.max(1) as f64;
        text.push_str(&format!("| {} | {title} | {} | {share:.1}% |\n", symbol(kind), short_tokens(tokens)));
    }
    text.push_str(match usage.is_automatic {
        true => "",
        false => "\nAutomatic compaction is off.\n",
    });
    if is_whole {
        for (category, _) in usage.categories() {
            text.push_str(&format!(
                "\n### {}\n\n| Piece | Source | Tokens |\n|---|---|---:|\n",
                category.title()
            ));
            let mut items: Vec<_> = usage.items.iter().filter(|item| item.category == category).collect();
            items.sort_by_key(|item| std::cmp::Reverse(item.tokens));
            for item in items {
                let (name, source) = (cell(&item.name), cell(&item.source));
                text.push_str(&format!("| {name} | {source} | {} |\n", short_tokens(item.tokens)));
            }
        }
    }
    let suggestions = usage.suggestions();
    if !suggestions.is_empty() {
        text.push('\n');
        suggestions.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
    text
}
