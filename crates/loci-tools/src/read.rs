//! Read: shows the model a file, whatever kind it is.
//!
//! The kind is told by what the file is and by its first bytes, never by trust in its name: special files are
//! refused unopened, pictures and PDFs known by their magic bytes, notebooks by name and JSON, the rest is text
//! or refused as binary. Text goes through [`text`] and [`page`], which hold no more than a page of it.
//!
//! A read that shows exactly what an earlier Read result of the conversation shows answers with a short stub.

pub(crate) mod image;
mod missing;
mod notebook;
mod page;
#[cfg(feature = "pdf")]
mod pdf;
mod text;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::SystemTime;

use loci_core::tool::{CallEffects, MainArgument, PathEffect, ToolDescriptor, ToolFacts, ToolOutcome};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::files::disk_file::{OpenError, open_regular};
use crate::files::editor_file::{self, EditorAnswer};
use crate::files::text_file::{Charset, binary_kind, to_lf};
use crate::{FileState, Host, Tool, ToolCall, ToolFuture, Workspace};

/// Tokens a read of text may cost, unless the environment says otherwise.
const DEFAULT_TOKENS: usize = 25_000;

/// Tokens that one may cost which was asked to be large: half of the smallest window that a model has.
const LARGE_TOKENS: usize = 100_000;

/// The variable that changes [`DEFAULT_TOKENS`].
const TOKENS_VARIABLE: &str = "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS";

/// Bytes of UTF-8 taken for one token: four letters of English or code, a character or two of other scripts.
const BYTES_PER_TOKEN: usize = 4;

/// How much of a file is looked at to tell its kind and encoding.
const HEAD_BYTES: u64 = 256 * 1024;

/// Pictures, notebooks and PDF files beyond this are not read.
const MAX_WHOLE_BYTES: u64 = 100 * 1024 * 1024;

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
                        },
                        "allow_large": {
                            "type": "boolean",
                            "description": "Show a long text whole, up to about 100000 tokens; only where all of it is needed"
                        }
                    },
                    "required": ["file_path"],
                    "additionalProperties": false
                }),
                max_result_chars: None,
                facts: ToolFacts {
                    is_clearable: true,
                    is_bare: true,
                    read_argument: Some("file_path"),
                    main_argument: Some(MainArgument::alone("file_path")),
                    ..ToolFacts::default()
                },
            },
        }
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, Deserialize)]
struct Input {
    offset: Option<u64>,
    limit: Option<u64>,
    #[serde(default)]
    pages: Option<String>,
    /// Whether a text may be longer than usual.
    #[serde(default)]
    allow_large: bool,
}

/// What a read found: the answer, and what to remember of it.
struct Reading {
    outcome: ToolOutcome,
    state: Option<FileState>,
    /// Whether the answer shows that state and nothing else, so that it need not be given twice.
    is_plain: bool,
    /// Lines of the whole file, to tell when its pages have all been read.
    total_lines: u64,
}

impl Reading {
    /// Something that is not text, and so nothing an edit could rest on.
    fn unremembered(outcome: ToolOutcome) -> Self {
        Self { outcome, state: None, is_plain: false, total_lines: 0 }
    }
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

    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match input["file_path"].as_str() {
            Some(path) => CallEffects::read(place.resolve(path)),
            None => CallEffects { unknown: vec!["Read without a path".to_owned()], ..CallEffects::default() },
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
    let path = match call.judged_path() {
        Ok(path) => path,
        Err(problem) => return ToolOutcome::refusal(problem),
    };
    let input: Input = match serde_json::from_value(call.input) {
        Ok(input) => input,
        Err(error) => return ToolOutcome::invalid_input(error.to_string()),
    };
    let place = host.workspace();
    let max_tokens = match input.allow_large {
        true => max_tokens(host).max(LARGE_TOKENS),
        false => max_tokens(host),
    };
    let unsaved = match unsaved_text(&path, host, &call.cancel).await {
        Ok(unsaved) => unsaved,
        Err(message) => return ToolOutcome::error(message),
    };
    let work = {
        let (path, cancel) = (path.clone(), call.cancel.clone());
        tokio::task::spawn_blocking(move || read(&path, &input, unsaved, max_tokens, &cancel))
    };
    let result = tokio::select! {
        biased;
        () = call.cancel.cancelled() => {
            return ToolOutcome::error(format!("Read of `{}` was interrupted", path.requested.display()));
        }
        result = work => result,
    };
    match result {
        Ok(Ok(reading)) => remember(&path, reading, host),
        Ok(Err(Failure::Missing)) => ToolOutcome::error(missing_message(&place, &path.requested, host).await),
        Ok(Err(Failure::Said(message))) => ToolOutcome::error(message),
        Err(panic) => ToolOutcome::error(format!("Failed to read `{}`: {panic}", path.requested.display())),
    }
}

/// Returns the text of a file that the editor has, of one that is text on disk; the error is a sentence for the model.
async fn unsaved_text(
    path: &PathEffect,
    host: &dyn Host,
    cancel: &CancellationToken,
) -> Result<Option<String>, String> {
    if !host.editor().is_some_and(|editor| editor.abilities().reads_files) {
        return Ok(None);
    }
    let on_disk = path.clone();
    let is_text = tokio::task::spawn_blocking(move || is_plain_text(&on_disk)).await;
    if !is_text.unwrap_or(false) {
        return Ok(None);
    }
    match editor_file::read(path, host, cancel).await {
        EditorAnswer::Done(text) => Ok(Some(text)),
        EditorAnswer::Left => Ok(None),
        EditorAnswer::Unknown(why) => Err(format!("Failed to read `{}`: {why}", path.requested.display())),
    }
}

/// Tells whether a file begins as text that an editor would show.
fn is_plain_text(path: &PathEffect) -> bool {
    let Ok((file, _)) = open_regular(path) else { return false };
    let mut head = Vec::new();
    let has_read = file.take(HEAD_BYTES).read_to_end(&mut head).is_ok();
    let is_document = image::format_of(&head).is_some() || head.starts_with(b"%PDF-");
    has_read && !is_document && binary_kind(&head).is_none() && Charset::detect(&head) == Charset::UTF_8
}

fn max_tokens(host: &dyn Host) -> usize {
    let value = host.env().vars.non_empty(TOKENS_VARIABLE).and_then(|value| value.trim().parse().ok());
    value.filter(|tokens| *tokens > 0).unwrap_or(DEFAULT_TOKENS)
}

/// Keeps what was read, and answers with the stub when the conversation holds it already.
fn remember(path: &PathEffect, reading: Reading, host: &dyn Host) -> ToolOutcome {
    let Some(state) = reading.state else { return reading.outcome };
    let mut files = host.files().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !reading.is_plain {
        files.insert(path.requested.clone(), state);
        return reading.outcome;
    }
    if files.is_shown(&path.requested, &state) {
        let shown = path.requested.display().to_string();
        return ToolOutcome::text(
            format!("`{shown}` has not changed since you last read it: that result still holds."),
            json!({"type": "file_unchanged", "file": {"filePath": shown}}),
        );
    }
    match files.get(&path.requested).and_then(|before| text::join_pages(before, &state, reading.total_lines))
    {
        // Known, but shown in pieces.
        Some(joined) => files.insert(path.requested.clone(), joined),
        None => files.insert_shown(path.requested.clone(), state),
    }
    reading.outcome
}

/// Says that a file does not exist, and which one may have been meant.
pub(crate) async fn missing_message(place: &Workspace, path: &Path, host: &dyn Host) -> String {
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
    unsaved: Option<String>,
    max_tokens: usize,
    cancel: &CancellationToken,
) -> Result<Reading, Failure> {
    let shown = path.requested.display();
    let (mut file, metadata) = open_regular(path).map_err(|error| open_failure(path, error))?;
    let failed = |error: io::Error| Failure::Said(format!("Failed to read `{shown}`: {error}"));
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
    let file = Opened { head, file, size: metadata.len(), modified: metadata.modified().map_err(failed)? };
    if let Some(format) = image::format_of(&file.head) {
        return read_image(&shown.to_string(), file, format);
    }
    if file.head.starts_with(b"%PDF-") {
        return read_pdf(&shown.to_string(), file, input);
    }
    if let Some(kind) = binary_kind(&file.head) {
        return Err(Failure::Said(format!(
            "`{shown}` is a binary file ({kind}), which Read cannot show. Use a program that understands it through Bash."
        )));
    }
    let is_notebook =
        path.requested.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"));
    if is_notebook && input.offset.is_none() && input.limit.is_none() {
        return read_notebook(path, input, file, max_tokens, cancel);
    }
    match unsaved {
        Some(text) => {
            text::read_from(path, input, text.as_bytes(), io::empty(), file.modified, max_tokens, cancel)
        }
        None => text::read(path, input, file, max_tokens, cancel),
    }
}

/// A file, opened and begun.
struct Opened {
    head: Vec<u8>,
    file: File,
    size: u64,
    modified: SystemTime,
}

impl Opened {
    /// Reads the rest of the file, unless it is too large to be held; the error is a sentence for the model.
    fn into_bytes(mut self, shown: &str, max_bytes: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = std::mem::take(&mut self.head);
        let room = (max_bytes + 1).saturating_sub(bytes.len() as u64);
        self.file
            .take(room)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::Said(format!("Failed to read `{shown}`: {error}")))?;
        if bytes.len() as u64 > max_bytes {
            return Err(Failure::Said(format!(
                "`{shown}` has {} bytes, and files of its kind are read up to {max_bytes} only. Use a program that \
                 takes it apart through Bash.",
                self.size
            )));
        }
        Ok(bytes)
    }
}

fn read_image(shown: &str, file: Opened, format: ::image::ImageFormat) -> Result<Reading, Failure> {
    let bytes = file.into_bytes(shown, MAX_WHOLE_BYTES)?;
    let picture = image::prepare(&bytes, format)
        .map_err(|problem| Failure::Said(format!("The picture `{shown}` cannot be shown: {problem}")))?;
    let structured = json!({"type": "image", "file": picture.to_file_field(bytes.len())});
    Ok(Reading::unremembered(ToolOutcome::blocks(vec![picture.to_block()], structured)))
}

#[cfg(feature = "pdf")]
fn read_pdf(shown: &str, file: Opened, input: &Input) -> Result<Reading, Failure> {
    let pages = input.pages.as_deref().map(str::trim).filter(|pages| !pages.is_empty());
    let document =
        pdf::read(shown, file.into_bytes(shown, MAX_WHOLE_BYTES)?, pages).map_err(Failure::Said)?;
    Ok(Reading::unremembered(ToolOutcome::blocks(document.blocks, document.structured)))
}

#[cfg(not(feature = "pdf"))]
fn read_pdf(shown: &str, _file: Opened, input: &Input) -> Result<Reading, Failure> {
    let pages = input.pages.as_deref().unwrap_or("all pages");
    Err(Failure::Said(format!("`{shown}` ({pages}) is not shown: this build of loci cannot read PDF files.")))
}

fn read_notebook(
    path: &PathEffect,
    input: &Input,
    file: Opened,
    max_tokens: usize,
    cancel: &CancellationToken,
) -> Result<Reading, Failure> {
    let shown = path.requested.display().to_string();
    let modified = file.modified;
    let bytes = file.into_bytes(&shown, MAX_WHOLE_BYTES)?;
    let Some(notebook) = notebook::parse(&bytes) else {
        // A broken notebook is shown as the text it is, so that it can be mended.
        return text::read_from(path, input, &bytes, io::empty(), modified, max_tokens, cancel);
    };
    let n_tokens = notebook.text_bytes() / BYTES_PER_TOKEN;
    if n_tokens > max_tokens {
        return Err(Failure::Said(format!(
            "The cells of `{shown}` are about {n_tokens} tokens, more than the {max_tokens} one Read may return. Read \
             parts of its JSON with `offset` and `limit`, or take out cells with `jq` through Bash."
        )));
    }
    let structured = json!({"type": "notebook", "file": {"filePath": shown, "cells": notebook.cells}});
    let state = FileState {
        content: to_lf(&String::from_utf8_lossy(&bytes)).into_owned(),
        modified,
        offset: None,
        limit: None,
        is_partial_view: false,
    };
    let outcome = if notebook.parts.is_empty() {
        ToolOutcome::text("<system-reminder>The notebook has no cells.</system-reminder>", structured)
    } else {
        ToolOutcome::blocks(notebook.to_blocks(), structured)
    };
    Ok(Reading { outcome, state: Some(state), is_plain: false, total_lines: 0 })
}

fn open_failure(path: &PathEffect, error: OpenError) -> Failure {
    let shown = path.requested.display();
    match error {
        OpenError::Missing => Failure::Missing,
        OpenError::Directory => Failure::Said(format!(
            "`{shown}` is a directory, not a file. List it with Glob (pattern `*`) or with `ls` through Bash."
        )),
        OpenError::Special(_) | OpenError::ProcessSecret | OpenError::Moved => {
            Failure::Said(format!("`{shown}` is not read: {error}."))
        }
        OpenError::Io(error) => Failure::Said(format!("Failed to open `{shown}`: {error}")),
    }
}

#[cfg(test)]
mod tests;
