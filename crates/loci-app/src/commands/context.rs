//! `/context [all]`: what fills the window, as a picture, a table and, with `all`, a list.

use loci_context::{ContextCategory, ContextCell, ContextUsage};
use loci_engine::{LocalOutcome, SessionSnapshot};

use super::{cell, short_tokens};

/// The picture of the text: cells in a row, and rows.
const COLUMNS: usize = 20;
const ROWS: usize = 5;

/// Carries the command out.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    match argument {
        "" => LocalOutcome::text(to_markdown(&session.context, false)),
        "all" => LocalOutcome::text(to_markdown(&session.context, true)),
        other => LocalOutcome::error(format!(
            "`/context {other}`: say `/context`, or `/context all` for every piece"
        )),
    }
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
