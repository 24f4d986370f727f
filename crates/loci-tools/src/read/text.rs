//! Text files: the page asked for, the notices around it, and what is remembered of it.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use loci_core::tool::{PathEffect, ToolOutcome};
use loci_stdx::counted;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::page::{Page, Wanted, read_page};
use super::{BYTES_PER_TOKEN, Failure, Input, Opened, Reading};
use crate::FileState;

/// Lines of a read that names no limit.
const DEFAULT_LINES: u64 = 2_000;

/// Reads the part of a text file that was asked for.
pub(super) fn read(
    path: &PathEffect,
    input: &Input,
    file: Opened,
    max_tokens: usize,
    cancel: &CancellationToken,
) -> Result<Reading, Failure> {
    read_from(path, input, &file.head, file.file, file.modified, max_tokens, cancel)
}

/// Reads the part of a text that was asked for, its first bytes having been read already.
pub(super) fn read_from(
    path: &PathEffect,
    input: &Input,
    head: &[u8],
    rest: impl io::Read,
    modified: SystemTime,
    max_tokens: usize,
    cancel: &CancellationToken,
) -> Result<Reading, Failure> {
    let first = input.offset.unwrap_or(1).max(1);
    let wanted = Wanted {
        first,
        lines: input.limit.unwrap_or(if input.allow_large { u64::MAX } else { DEFAULT_LINES }),
        max_bytes: max_tokens.saturating_mul(BYTES_PER_TOKEN),
    };
    let page = read_page(head, rest, wanted, cancel)
        .map_err(|error| Failure::Said(format!("Failed to read `{}`: {error}", path.requested.display())))?;
    let is_explicit = input.offset.is_some() || input.limit.is_some();
    if page.is_over && is_explicit {
        return Err(Failure::Said(format!(
            "Lines {first} to {} of `{}` are more than the {max_tokens} tokens one Read may return. Use a `limit` of \
             {} or less here, or find the lines you need with Grep.",
            first.saturating_add(wanted.lines - 1).min(page.total_lines),
            path.requested.display(),
            page.n_lines,
        )));
    }
    Ok(Reading {
        outcome: text_outcome(&path.requested, input, &page, max_tokens),
        state: (page.n_lines > 0 || page.total_lines == 0).then(|| state_of(&page, first, modified)),
        is_plain: true,
        total_lines: page.total_lines,
    })
}

/// Adds a page to the pages read before it, if together they run from the first line on.
pub(super) fn join_pages(before: &FileState, page: &FileState, total_lines: u64) -> Option<FileState> {
    let (first, lines) = (page.offset?, page.limit?);
    let lines_before = before.limit.filter(|_| before.offset == Some(1))?;
    let is_next = first > 1 && first <= lines_before + 1 && first + lines > lines_before + 1;
    if !is_next || before.modified != page.modified || before.is_partial_view || page.is_partial_view {
        return None;
    }
    let overlap = usize::try_from(first - 1).ok()?;
    let mut content: String = before.content.split_inclusive('\n').take(overlap).collect();
    if !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(&page.content);
    let lines = first - 1 + lines;
    let is_whole = lines == total_lines;
    Some(FileState {
        content,
        offset: (!is_whole).then_some(1),
        limit: (!is_whole).then_some(lines),
        ..page.clone()
    })
}

fn state_of(page: &Page, first: u64, modified: SystemTime) -> FileState {
    let is_whole = first == 1 && page.n_lines == page.total_lines && page.kept.is_some();
    FileState {
        content: page.kept.clone().unwrap_or_else(|| page.shown.clone()),
        modified,
        offset: (!is_whole).then_some(first),
        limit: (!is_whole).then_some(page.n_lines),
        is_partial_view: false,
    }
}

fn text_outcome(path: &Path, input: &Input, page: &Page, max_tokens: usize) -> ToolOutcome {
    let first = input.offset.unwrap_or(1).max(1);
    let text = match notice(input, page, max_tokens) {
        Some(notice) if page.n_lines == 0 => format!("<system-reminder>{notice}</system-reminder>"),
        Some(notice) => format!("{}\n\n<system-reminder>{notice}</system-reminder>", page.numbered),
        None => page.numbered.clone(),
    };
    let file = json!({
        "filePath": path.display().to_string(),
        "content": page.shown,
        "numLines": page.n_lines,
        "startLine": first,
        "totalLines": page.total_lines,
    });
    ToolOutcome::text(text, json!({"type": "text", "file": file}))
}

/// Returns what the lines themselves do not say.
fn notice(input: &Input, page: &Page, max_tokens: usize) -> Option<String> {
    let first = input.offset.unwrap_or(1).max(1);
    let total = page.total_lines;
    if total == 0 {
        return Some("The file exists but is empty.".to_owned());
    }
    if page.n_lines == 0 {
        let lines = counted(total, "line", "lines");
        return Some(format!("The file has only {lines}: there is nothing at offset {first}."));
    }
    let last = first + page.n_lines - 1;
    if input.limit.is_some() || last == total {
        return None;
    }
    let lines = if input.allow_large { String::new() } else { format!("{DEFAULT_LINES} lines and ") };
    Some(format!(
        "PARTIAL view: lines {first} to {last} of {total} are shown, because one Read returns at most \
         {lines}about {max_tokens} tokens. To continue, Read with offset {}; to find something \
         in the rest, use Grep.",
        last + 1
    ))
}
