//! WebFetch: a page of the web, read by a small model in a request of its own.
//!
//! The address was judged by its host; what is connected to must be that host, on a public address unless a rule names
//! it. What comes back is data: it reaches the conversation as an answer about the page, escaped and marked.

mod content;

use std::time::Instant;

use loci_core::agent::sanitize_result;
use loci_core::message::Block;
use loci_core::permission::{canonical_host, is_private_host};
use loci_core::tool::{CallEffects, MainArgument, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_core::web::{Page, PageAnswer, PageRequest, Redirect};
use loci_stdx::truncate_chars;
use serde::Deserialize;
use serde_json::{Value, json};

use self::content::{MAX_CHARS, file_ending, readable};
use crate::{FetchedText, Host, PageContent, Tool, ToolCall, ToolFuture, WebHost, Workspace};

/// The tool's name.
pub(crate) const NAME: &str = "WebFetch";
/// Addresses longer than this are nobody's.
const MAX_URL_CHARS: usize = 2_000;
/// The most characters of a page that one call reads.
const PART_CHARS: usize = 100_000;
/// A path or query longer than this, or a single word in it that is this long, could carry what the host should not know.
const LONG_QUERY: usize = 200;
const LONG_WORD: usize = 60;

/// The WebFetch tool.
pub(crate) struct WebFetch {
    descriptor: ToolDescriptor,
}

impl Default for WebFetch {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: NAME.to_owned(),
            aliases: &[],
            description: include_str!("web_fetch.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "url": {"type": "string", "format": "uri", "description": "The address of the page"},
                    "prompt": {"type": "string", "description": "What to find out from the page"},
                    "offset": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Where to go on in a page too long for one call, in characters: the number that the result before gave",
                    },
                },
                "required": ["url", "prompt"],
                "additionalProperties": false,
            }),
            max_result_chars: Some(100_000),
            facts: ToolFacts {
                needs_conversation: true,
                is_deferrable: true,
                is_clearable: true,
                main_argument: Some(MainArgument { others: &[("prompt", "")], ..MainArgument::alone("url") }),
                ..ToolFacts::default()
            },
        };
        Self { descriptor }
    }
}

#[derive(Deserialize)]
struct Input {
    url: String,
    prompt: String,
    #[serde(default)]
    offset: usize,
}

impl Tool for WebFetch {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, _place: &Workspace) -> CallEffects {
        let url = input["url"].as_str().unwrap_or_default();
        match canonical_host(url) {
            Some(host) => {
                CallEffects { hosts: vec![host], carries_data: carries_data(url), ..CallEffects::default() }
            }
            None => CallEffects::unknown(format!("the host of `{url}` cannot be told")),
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn validate(&self, input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let url = input["url"].as_str().unwrap_or_default();
        let problem = match url {
            _ if url.chars().count() > MAX_URL_CHARS => {
                format!("The address is longer than {MAX_URL_CHARS} characters.")
            }
            _ if canonical_host(url).is_none() && has_other_letters(url) => {
                format!(
                    "The host of `{url}` has letters beyond ASCII, and such letters can look like others. Write it as it is \
                     registered, each such part encoded (`xn--…`)."
                )
            }
            _ if canonical_host(url).is_none() => {
                format!(
                    "`{url}` is not an address of the web. Give a whole one, such as https://example.com/page."
                )
            }
            _ => return Ok(()),
        };
        Err(Box::new(ToolOutcome::error(problem)))
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let Some(web) = host.web() else {
                return ToolOutcome::error("This session has no way to the web.");
            };
            let Ok(input) = serde_json::from_value::<Input>(call.input.clone()) else {
                return ToolOutcome::error("The input needs `url` and `prompt`.");
            };
            tokio::select! {
                outcome = fetch(&call, input, host, web, began) => outcome.unwrap_or_else(ToolOutcome::error),
                () = call.cancel.cancelled() => ToolOutcome::error("The fetch was interrupted."),
            }
        })
    }
}

async fn fetch(
    call: &ToolCall,
    input: Input,
    host: &dyn Host,
    web: &dyn WebHost,
    began: Instant,
) -> Result<ToolOutcome, String> {
    let page = match web.cached_page(&input.url) {
        Some(page) => page,
        None => match download(call, &input.url, host, web).await? {
            Ok(page) => page,
            Err(redirect) => return Ok(moved(&input, &redirect, began)),
        },
    };
    let answer = match &page.content {
        _ if !(200..300).contains(&page.status.0) => {
            format!("The server answered with {} {}; there is no page to read.", page.status.0, page.status.1)
        }
        PageContent::Text(text) if text.is_empty() => {
            "The page has no text: it is empty, or made by scripts, which are not run here.".to_owned()
        }
        PageContent::Nothing => "The page has nothing that could be read as text.".to_owned(),
        PageContent::Text(text) if input.offset > 0 && part_of(text, input.offset).is_empty() => {
            format!(
                "The page has only {} characters: there is nothing at offset {}.",
                text.chars().count(),
                input.offset
            )
        }
        content => {
            let asked = web.read_page(question(content, &input), &call.cancel).await;
            sanitize_result(
                &asked.map_err(|why| format!("`{}` was fetched, but not read: {why}", input.url))?,
            )
        }
    };
    let rest = (200..300).contains(&page.status.0).then(|| rest_note(&page.content, input.offset)).flatten();
    let text = [Some(answer), rest, page.note.clone()].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    Ok(outcome(&input, (page.status, page.n_bytes), text, began))
}

/// Downloads a page and makes it readable; the inner error is a redirect to another host.
async fn download(
    call: &ToolCall,
    url: &str,
    host: &dyn Host,
    web: &dyn WebHost,
) -> Result<Result<FetchedText, Redirect>, String> {
    let judged = call.effects.hosts.first().ok_or("No host was judged for this call")?;
    let request = PageRequest {
        url: url.to_owned(),
        host: judged.clone(),
        // One that is private by its spelling was asked about, or allowed, as such.
        may_be_private: is_private_host(judged) || web.names_host(judged),
    };
    let page = match web.fetch_page(request).await? {
        PageAnswer::Page(page) => page,
        PageAnswer::Elsewhere(redirect) => return Ok(Err(redirect)),
    };
    // Large pages take a moment to convert.
    let (content, page) = tokio::task::spawn_blocking(move || (readable(&page), page))
        .await
        .map_err(|error| format!("The page could not be read: {error}"))?;
    let is_saved =
        matches!(content, PageContent::Nothing | PageContent::Pdf(_)) && (200..300).contains(&page.status);
    let note = (is_saved && !page.body.is_empty()).then(|| saved_note(call, &page, host));
    let fetched =
        FetchedText { status: (page.status, page.status_text), n_bytes: page.body.len(), content, note };
    if (200..300).contains(&page.status) {
        web.keep_page(url.to_owned(), fetched.clone());
    }
    Ok(Ok(fetched))
}

/// Saves what is no text beside the results of tools, and says where.
fn saved_note(call: &ToolCall, page: &Page, host: &dyn Host) -> String {
    let name = format!("webfetch-{}.{}", host.env().random.alphanumeric(12), file_ending(page));
    let saved = host.spill_path(&call.id).and_then(|path| {
        let path = path.with_file_name(name);
        std::fs::write(&path, &page.body).map(|()| path)
    });
    match saved {
        Ok(path) => format!("The file ({} bytes) was saved to {}", page.body.len(), path.display()),
        Err(error) => format!("The file ({} bytes) could not be saved: {error}", page.body.len()),
    }
}

/// Returns what the small model is given: the page as data, then the question.
fn question(content: &PageContent, input: &Input) -> Vec<Block> {
    let page = match content {
        PageContent::Text(text) => {
            // The page must not end the mark around it.
            let inner = part_of(text, input.offset).replace("</page", "&lt;/page");
            Block::new_text(&format!("<page>\n{inner}\n</page>"))
        }
        PageContent::Pdf(base64) => {
            let source = json!({"type": "base64", "media_type": "application/pdf", "data": base64});
            let block = Block::from_value(&json!({"type": "document", "source": source}));
            block.unwrap_or_else(|_| Block::new_text(""))
        }
        PageContent::Nothing => Block::new_text(""),
    };
    vec![page, Block::new_text(&format!("The question about the page: {}", input.prompt))]
}

/// Returns what of a page one call reads.
fn part_of(text: &str, offset: usize) -> &str {
    let at = text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at);
    truncate_chars(&text[at..], PART_CHARS)
}

/// Says where a page goes on that one call does not read to its end.
fn rest_note(content: &PageContent, offset: usize) -> Option<String> {
    let PageContent::Text(text) = content else { return None };
    let (n_chars, end) = (text.chars().count(), offset.saturating_add(PART_CHARS));
    let or_more = if n_chars == MAX_CHARS { " or more" } else { "" };
    (end < n_chars).then(|| {
        format!(
            "[Characters {offset} to {end} of {n_chars}{or_more} were read. Where the answer may stand further on, call {NAME} again \
             with the same `url` and `offset` {end}.]"
        )
    })
}

fn moved(input: &Input, redirect: &Redirect, began: Instant) -> ToolOutcome {
    let next = match canonical_host(&redirect.to) {
        Some(_) => format!("To read it, call {NAME} again with the new address."),
        None => "That is no address of the web.".to_owned(),
    };
    let text = format!(
        "The page has moved to another host and was not followed there.\nFrom: {}\nTo: {}\nStatus: {}\n{next}",
        redirect.from, redirect.to, redirect.status
    );
    outcome(input, ((redirect.status, "Moved".to_owned()), 0), sanitize_result(&text), began)
}

fn outcome(
    input: &Input,
    ((code, words), n_bytes): ((u16, String), usize),
    text: String,
    began: Instant,
) -> ToolOutcome {
    let structured = json!({
        "bytes": n_bytes,
        "code": code,
        "codeText": words,
        "result": text,
        "durationMs": began.elapsed().as_millis() as u64,
        "url": input.url,
    });
    ToolOutcome::text(text, structured)
}

/// Tells whether the host of an address has letters beyond ASCII.
fn has_other_letters(url: &str) -> bool {
    let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
    !after_scheme.split(['/', '?', '#']).next().unwrap_or_default().is_ascii()
}

/// Tells whether an address could carry more than the name of what is wanted (S-34).
fn carries_data(url: &str) -> bool {
    let after_host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_host.find(['/', '?', '#']).map_or("", |at| &after_host[at..]);
    let query = path.find('?').map_or("", |at| &path[at..]);
    let is_long_word = |word: &str| word.len() > LONG_WORD;
    query.len() > LONG_QUERY
        || path.len() > 2 * LONG_QUERY
        || path.split(|c: char| !(c.is_ascii_alphanumeric() || "%+_=".contains(c))).any(is_long_word)
}

#[cfg(test)]
pub(crate) mod tests;
