//! Blocks as rows.

use crate::block::{Block, CallBlock, CallState, FileDiff, NoticeLevel};
use crate::layout::{bold, code, error, faint, paragraph, warning};
use crate::text::{Row, Style};

/// The most rows of a result that are seen.
const MOST_OUTPUT_ROWS: usize = 6;

/// Returns the rows of a block.
pub(super) fn block_rows(block: &Block, width: u16) -> Vec<Row> {
    match block {
        Block::Prompt { text, .. } => paragraph("❯ ", text, bold(), width),
        Block::Answer { markdown } | Block::Output { markdown } => answer_rows(markdown, width),
        Block::Thinking { .. } => paragraph("", "Thought for a while", faint(), width),
        Block::Call(call) => call_rows(call, width),
        Block::Shell { command, output, .. } => {
            let mut rows = paragraph("! ", command, code(), width);
            rows.extend(paragraph("  ", output, faint(), width));
            rows
        }
        Block::Notice { level, text } => match level {
            NoticeLevel::Info => paragraph("", text, faint(), width),
            NoticeLevel::Warning => paragraph("! ", text, warning(), width),
            NoticeLevel::Error => paragraph("! ", text, error(), width),
        },
        Block::Compaction { text } | Block::TurnEnd { text } => paragraph("", text, faint(), width),
    }
}

/// Returns the rows of an answer.
pub(super) fn answer_rows(markdown: &str, width: u16) -> Vec<Row> {
    paragraph("", markdown.trim_end(), Style::default(), width)
}

/// Returns the rows of a call.
pub(super) fn call_rows(call: &CallBlock, width: u16) -> Vec<Row> {
    let mark = match call.state {
        CallState::Arriving | CallState::Waiting | CallState::Running => "◦ ",
        CallState::Done => "● ",
        CallState::Failed => "✗ ",
        CallState::Refused => "○ ",
    };
    let mut rows = paragraph(mark, &format!("{} {}", call.tool, call.summary), code(), width);
    if matches!(call.state, CallState::Done | CallState::Failed) {
        let lines: Vec<&str> = call.output.lines().collect();
        for text in lines.iter().take(MOST_OUTPUT_ROWS) {
            rows.extend(paragraph("    ", text, faint(), width));
        }
        if lines.len() > MOST_OUTPUT_ROWS {
            let more = format!("… {} more lines", lines.len() - MOST_OUTPUT_ROWS);
            rows.extend(paragraph("    ", &more, faint(), width));
        }
    }
    rows
}

/// Returns the rows of a change.
pub(crate) fn diff_rows(diff: &FileDiff, width: u16) -> Vec<Row> {
    let before = diff.before.lines().flat_map(|text| paragraph("- ", text, error(), width));
    let after = diff.after.lines().flat_map(|text| paragraph("+ ", text, code(), width));
    before.chain(after).collect()
}
