//! From what a server sends to what the model is shown: texts as they are, pictures as pictures once they were looked at,
//! everything else as a file and a line that names it.

use std::io;
use std::path::PathBuf;

use base64::Engine;
use loci_core::agent::escape_our_tags;
use loci_core::message::Block;
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_mcp::{CallResult, ContentPart};
use loci_tools::{picture_block, spill_preview};
use serde_json::Value;

/// About how many characters a token has.
const CHARS_A_TOKEN: usize = 4;
/// Types whose files have a name of their own.
const EXTENSIONS: [(&str, &str); 12] = [
    ("application/json", "json"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("audio/mpeg", "mp3"),
    ("audio/wav", "wav"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/webp", "webp"),
    ("text/html", "html"),
    ("video/mp4", "mp4"),
];

/// Names the file that a long result goes to.
pub(super) type Spill<'a> = &'a (dyn Fn() -> io::Result<PathBuf> + Sync);

/// How much of a result goes into the conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResultLimits {
    chars: usize,
}

impl ResultLimits {
    /// Takes the general limit, unless the tool asks for another.
    pub(super) fn new(tokens: usize, asked: Option<usize>) -> Self {
        Self { chars: asked.unwrap_or(tokens.saturating_mul(CHARS_A_TOKEN)) }
    }
}

/// Returns what the model is shown of a result; `misfit` says what is wrong with its data, as the tool's schema has it.
pub(super) fn outcome(
    tool: &str,
    result: CallResult,
    misfit: Option<String>,
    limits: ResultLimits,
    spill: Spill<'_>,
) -> ToolOutcome {
    let is_error = result.is_error || misfit.is_some();
    let content = content(readable_parts(result, misfit), limits, spill);
    let content = match content {
        ToolContent::Text(text) if text.is_empty() => {
            ToolContent::Text(format!("({tool} answered with nothing)"))
        }
        content => content,
    };
    let structured = match &content {
        ToolContent::Text(text) if is_error => Value::from(format!("Error: {text}")),
        content => content.to_value(),
    };
    ToolOutcome { content, is_error: is_error.then_some(true), structured, attachments: Vec::new() }
}

/// Returns the parts of a result that are shown. Data that does not fit the tool's schema is told apart from what the
/// server says in words, which stands for it where there is any.
pub(super) fn readable_parts(result: CallResult, misfit: Option<String>) -> Vec<ContentPart> {
    let CallResult { mut parts, structured, .. } = result;
    let has_text = parts.iter().any(|part| matches!(part, ContentPart::Text(_)));
    match (structured, &misfit) {
        (Some(structured), None) => {
            // The same as data is clearer than as text.
            parts.retain(|part| !matches!(part, ContentPart::Text(_)));
            parts.insert(0, ContentPart::Text(escape_our_tags(&structured.to_string()).into_owned()));
        }
        (Some(structured), Some(_)) if !has_text => {
            parts.insert(0, ContentPart::Text(escape_our_tags(&structured.to_string()).into_owned()));
        }
        (Some(_) | None, _) => {}
    }
    if let Some(misfit) = misfit {
        let said = format!(
            "The data of this result does not fit the schema that its tool declares:\n{misfit}\nWhat came:"
        );
        parts.insert(0, ContentPart::Text(said));
    }
    parts
}

/// Returns parts as the model is shown them; texts that are too long go to a file.
pub(super) fn content(parts: Vec<ContentPart>, limits: ResultLimits, spill: Spill<'_>) -> ToolContent {
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for (at, part) in parts.into_iter().enumerate() {
        match part {
            ContentPart::Text(text) => texts.push(text),
            ContentPart::Link { uri, name, description } => {
                let what = description.map(|text| format!(": {text}")).unwrap_or_default();
                texts.push(format!("[resource {name} at {uri}{what}]"));
            }
            ContentPart::Image { mime_type, base64 } => match decode(&base64) {
                Some(bytes) => match picture_block(&bytes) {
                    Some(Ok(picture)) => pictures.push(picture),
                    Some(Err(problem)) => texts.push(format!("[a picture that cannot be shown: {problem}]")),
                    // What calls itself a picture and is none spoils the request.
                    None => texts.push(saved(&bytes, &mime_type, None, at, spill)),
                },
                None => texts.push(format!("[{mime_type}, whose bytes cannot be read]")),
            },
            ContentPart::Blob { mime_type, base64, uri } => texts.push(match decode(&base64) {
                Some(bytes) => saved(&bytes, &mime_type, uri.as_deref(), at, spill),
                None => format!("[{mime_type}, whose bytes cannot be read]"),
            }),
        }
    }
    let text = within(texts.join("\n"), limits, spill);
    if pictures.is_empty() {
        return ToolContent::Text(text);
    }
    let text = (!text.is_empty()).then(|| Block::new_text(&text));
    ToolContent::Blocks(text.into_iter().chain(pictures).collect())
}

/// Moves a text that is too long to a file and leaves a preview.
fn within(text: String, limits: ResultLimits, spill: Spill<'_>) -> String {
    if text.len() <= limits.chars || text.chars().count() <= limits.chars {
        return text;
    }
    let total = text.len() as u64;
    let saved = spill().and_then(|path| std::fs::write(&path, &text).map(|()| (path, total)));
    spill_preview(&text, total, saved)
}

/// Keeps bytes in a file and says where.
fn saved(bytes: &[u8], mime_type: &str, uri: Option<&str>, at: usize, spill: Spill<'_>) -> String {
    let known = EXTENSIONS.iter().find(|(mime, _)| *mime == mime_type);
    let extension = known.map_or("bin", |(_, extension)| extension);
    let from = uri.map(|uri| format!(" from {uri}")).unwrap_or_default();
    match save(bytes, extension, at, spill) {
        Ok(path) => format!("[{mime_type}{from}, {} bytes, saved to {}]", bytes.len(), path.display()),
        Err(error) => {
            format!("[{mime_type}{from}, {} bytes, which could not be saved: {error}]", bytes.len())
        }
    }
}

fn save(bytes: &[u8], extension: &str, at: usize, spill: Spill<'_>) -> io::Result<PathBuf> {
    let text = spill()?;
    let stem = text.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let path = text.with_file_name(format!("{stem}-{at}.{extension}"));
    std::fs::write(&path, bytes)?;
    Ok(path)
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(base64.trim()).ok()
}
