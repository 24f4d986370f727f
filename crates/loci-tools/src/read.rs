//! Read: shows the model a file, whatever kind it is.
//!
//! The kind is told by what the file is and by its first bytes, never by trust in its name: special files are
//! refused unopened, pictures and PDFs known by their magic bytes, notebooks by name and JSON, the rest is text
//! or refused as binary. Text goes through [`page`], which holds no more than a page of it.
//!
//! A read that shows exactly what an earlier Read result of the conversation shows answers with a short stub.

mod missing;
mod page;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use loci_core::tool::{Effects, PathEffect, ToolDescriptor, ToolOutcome};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::disk_file::{OpenError, open_regular};
use crate::text_file::binary_kind;
use crate::{FileState, Host, Place, Tool, ToolCall, ToolFuture};
use page::{Page, Wanted, read_page};

/// Lines of a read that names no limit.
const DEFAULT_LINES: u64 = 2_000;

/// Tokens a read of text may cost, unless the environment says otherwise.
const DEFAULT_TOKENS: usize = 25_000;

/// The variable that changes [`DEFAULT_TOKENS`].
const TOKENS_VARIABLE: &str = "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS";

/// Bytes of UTF-8 taken for one token: four letters of English or code, a character or two of other scripts.
const BYTES_PER_TOKEN: usize = 4;

/// How much of a file is looked at to tell its kind and encoding.
const HEAD_BYTES: u64 = 256 * 1024;

/// The Read tool.
pub(crate) struct Read {
    descriptor: ToolDescriptor,
}

impl Default for Read {
    fn default() -> Self {
        Self {
            descriptor: ToolDescriptor {
                name: "Read".to_owned(),
                aliases: &[],
                description: include_str!("read.md").trim_end().to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "file_path": {"type": "string", "description": "The file to read, as an absolute path"},
                        "offset": {
                            "type": "integer",
                            "minimum": 0,
                            "description": "First line to show, counted from 1; for files too long for one call"
                        },
                        "limit": {
                            "type": "integer",
                            "exclusiveMinimum": 0,
                            "description": "How many lines to show; for files too long for one call"
                        },
                        "pages": {
                            "type": "string",
                            "description": "Pages of a PDF file, such as \"3\" or \"1-5\"; at most 20"
                        }
                    },
                    "required": ["file_path"],
                    "additionalProperties": false
                }),
                max_result_chars: None,
            },
        }
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, Deserialize)]
struct Input {
    file_path: String,
    offset: Option<u64>,
    limit: Option<u64>,
    #[serde(default)]
    pages: Option<String>,
}

/// What a read found: the answer, and what to remember of it.
struct Reading {
    outcome: ToolOutcome,
    state: Option<FileState>,
    /// Lines of the whole file, to tell when its pages have all been read.
    total_lines: u64,
}

/// Why a read failed.
enum Failure {
    /// There is no such file.
    Missing,
    /// Anything else, in words for the model.
    Said(String),
}

impl Tool for Read {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, place: &Place) -> Effects {
        match input["file_path"].as_str() {
            Some(path) => Effects::read(place.resolve(path)),
            None => Effects { unknown: vec!["Read without a path".to_owned()], ..Effects::default() },
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(run(call, host))
    }
}

async fn run(call: ToolCall, host: &dyn Host) -> ToolOutcome {
    let input: Input = match serde_json::from_value(call.input) {
        Ok(input) => input,
        Err(error) => return ToolOutcome::invalid_input(error.to_string()),
    };
    let place = host.place();
    let path = place.resolve(&input.file_path);
    let max_tokens = max_tokens(host);
    let work = {
        let (path, cancel) = (path.clone(), call.cancel.clone());
        tokio::task::spawn_blocking(move || read(&path, &input, max_tokens, &cancel))
    };
    let result = tokio::select! {
        result = work => result,
        () = call.cancel.cancelled() => return ToolOutcome::error(format!("Read of `{}` was interrupted", path.requested.display())),
    };
    match result {
        Ok(Ok(reading)) => remember(&path, reading, host),
        Ok(Err(Failure::Missing)) => ToolOutcome::error(missing_message(&place, &path.requested, host).await),
        Ok(Err(Failure::Said(message))) => ToolOutcome::error(message),
        Err(panic) => ToolOutcome::error(format!("Failed to read `{}`: {panic}", path.requested.display())),
    }
}

fn max_tokens(host: &dyn Host) -> usize {
    let value = host.env().vars.non_empty(TOKENS_VARIABLE).and_then(|value| value.trim().parse().ok());
    value.filter(|tokens| *tokens > 0).unwrap_or(DEFAULT_TOKENS)
}

/// Keeps what was read, and answers with the stub when the conversation holds it already.
fn remember(path: &PathEffect, reading: Reading, host: &dyn Host) -> ToolOutcome {
    let Some(state) = reading.state else { return reading.outcome };
    let mut files = host.files().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if files.is_shown(&path.requested, &state) {
        let shown = path.requested.display().to_string();
        return ToolOutcome::text(
            format!("`{shown}` has not changed since you last read it: that result still holds."),
            json!({"type": "file_unchanged", "file": {"filePath": shown}}),
        );
    }
    match files.get(&path.requested).and_then(|before| join_pages(before, &state, reading.total_lines)) {
        // Known, but shown in pieces.
        Some(joined) => files.insert(path.requested.clone(), joined),
        None => files.insert_shown(path.requested.clone(), state),
    }
    reading.outcome
}

/// Adds a page to the pages read before it, if together they run from the first line on.
fn join_pages(before: &FileState, page: &FileState, total_lines: u64) -> Option<FileState> {
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

/// Says that a file does not exist, and which one may have been meant.
pub(crate) async fn missing_message(place: &Place, path: &Path, host: &dyn Host) -> String {
    let mut message =
        format!("File does not exist. Note: your current working directory is {}.", place.cwd.display());
    let wanted = path.to_path_buf();
    let similar = tokio::task::spawn_blocking(move || missing::similar_files(&wanted)).await;
    let similar: Vec<String> = similar
        .unwrap_or_default()
        .iter()
        .filter(|path| !host.is_read_denied(path))
        .map(|path| format!("`{}`", path.display()))
        .collect();
    if !similar.is_empty() {
        message.push_str(&format!(" Did you mean {}?", similar.join(" or ")));
    }
    message
}

/// Reads a file of any kind; runs where blocking is fine.
fn read(
    path: &PathEffect,
    input: &Input,
    max_tokens: usize,
    cancel: &CancellationToken,
) -> Result<Reading, Failure> {
    let shown = path.requested.display();
    let (mut file, metadata) = open_regular(path).map_err(|error| open_failure(path, error))?;
    let failed = |error: io::Error| Failure::Said(format!("Failed to read `{shown}`: {error}"));
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
    if let Some(kind) = binary_kind(&head) {
        return Err(Failure::Said(format!(
            "`{shown}` is a binary file ({kind}), which Read cannot show. Use a program that understands it through Bash."
        )));
    }
    let modified = metadata.modified().map_err(failed)?;
    read_text(path, input, TextSource { head, file, modified }, max_tokens, cancel)
}

fn open_failure(path: &PathEffect, error: OpenError) -> Failure {
    let shown = path.requested.display();
    match error {
        OpenError::Missing => Failure::Missing,
        OpenError::Directory => Failure::Said(format!(
            "`{shown}` is a directory, not a file. List it with Glob (pattern `*`) or with `ls` through Bash."
        )),
        OpenError::Special(_) | OpenError::ProcessSecret => {
            Failure::Said(format!("`{shown}` is not read: {error}."))
        }
        OpenError::Io(error) => Failure::Said(format!("Failed to open `{shown}`: {error}")),
    }
}

/// A text file, opened and begun.
struct TextSource {
    head: Vec<u8>,
    file: File,
    modified: std::time::SystemTime,
}

fn read_text(
    path: &PathEffect,
    input: &Input,
    source: TextSource,
    max_tokens: usize,
    cancel: &CancellationToken,
) -> Result<Reading, Failure> {
    let first = input.offset.unwrap_or(1).max(1);
    let wanted = Wanted {
        first,
        lines: input.limit.unwrap_or(DEFAULT_LINES),
        max_bytes: max_tokens.saturating_mul(BYTES_PER_TOKEN),
    };
    let page = read_page(&source.head, source.file, wanted, cancel)
        .map_err(|error| Failure::Said(format!("Failed to read `{}`: {error}", path.requested.display())))?;
    let is_explicit = input.offset.is_some() || input.limit.is_some();
    if page.is_over && is_explicit {
        return Err(Failure::Said(format!(
            "Lines {first} to {} of `{}` are more than the {max_tokens} tokens one Read may return. Use a `limit` of \
             {} or less here, or find the lines you need with Grep.",
            (first + wanted.lines - 1).min(page.total_lines),
            path.requested.display(),
            page.n_lines,
        )));
    }
    Ok(Reading {
        outcome: text_outcome(&path.requested, input, &page, max_tokens),
        state: (page.n_lines > 0 || page.total_lines == 0).then(|| state_of(&page, first, source.modified)),
        total_lines: page.total_lines,
    })
}

fn state_of(page: &Page, first: u64, modified: std::time::SystemTime) -> FileState {
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
        return Some(format!("The file has only {total} lines: there is nothing at offset {first}."));
    }
    let last = first + page.n_lines - 1;
    if input.limit.is_some() || last == total {
        return None;
    }
    Some(format!(
        "PARTIAL view: lines {first} to {last} of {total} are shown, because one Read returns at most \
         {DEFAULT_LINES} lines and about {max_tokens} tokens. To continue, Read with offset {}; to find something \
         in the rest, use Grep.",
        last + 1
    ))
}

#[cfg(test)]
mod tests;
