//! What a prompt holds: text, pictures, files that the editor attaches.
//!
//! The baseline of the protocol is text and links. A link to a file becomes a mention, which the engine reads as if a person
//! had typed it, so that rules about reading count; what is embedded stands in the prompt as it is, with its address.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use loci_app::picture_block;
use loci_core::hex::decode_percent;
use loci_core::message::{Block, Content};
use loci_engine::Prompt;
use serde_json::Value;

use super::rpc::RpcError;

/// Reads the content of a prompt. May take a while, for large pictures.
pub(super) fn read_prompt(blocks: &Value) -> Result<Prompt, RpcError> {
    let content = prompt_content(blocks)?;
    let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
    let has_embedded = blocks.iter().any(|block| block["type"] == "resource");
    let words = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].as_str().map(str::to_owned),
        Some("resource_link") => link(block).ok(),
        _ => None,
    };
    let mut prompt = Prompt::new(content, None);
    // An attached file may hold an `@` that nobody typed.
    prompt.mentions_from = has_embedded.then(|| blocks.iter().filter_map(words).collect());
    Ok(prompt)
}

fn prompt_content(blocks: &Value) -> Result<Content, RpcError> {
    let blocks =
        blocks.as_array().ok_or_else(|| RpcError::params("`prompt` must be a list of content blocks"))?;
    let mut parts: Vec<Block> = Vec::new();
    let mut text = String::new();
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" => text.push_str(field(block, "text")?),
            "resource_link" => text.push_str(&link(block)?),
            "resource" => match &block["resource"]["text"] {
                Value::String(content) => {
                    text.push_str(&embedded(field(&block["resource"], "uri")?, content));
                }
                _ => push_picture(&mut parts, &mut text, field(&block["resource"], "blob")?)?,
            },
            "image" => push_picture(&mut parts, &mut text, field(block, "data")?)?,
            other => {
                return Err(RpcError::params(format!("A prompt cannot hold a block of type `{other}` here")));
            }
        }
    }
    if parts.is_empty() && text.trim().is_empty() {
        return Err(RpcError::params("The prompt is empty"));
    }
    if parts.is_empty() {
        return Ok(Content::Text(text));
    }
    push_text(&mut parts, &mut text);
    Ok(Content::Blocks(parts))
}

fn field<'a>(block: &'a Value, key: &str) -> Result<&'a str, RpcError> {
    block[key].as_str().ok_or_else(|| RpcError::params(format!("A content block has no `{key}`")))
}

fn push_text(parts: &mut Vec<Block>, text: &mut String) {
    if !text.trim().is_empty() {
        parts.push(Block::new_text(text));
    }
    text.clear();
}

fn push_picture(parts: &mut Vec<Block>, text: &mut String, data: &str) -> Result<(), RpcError> {
    let bytes =
        STANDARD.decode(data).map_err(|error| RpcError::params(format!("This is not base64: {error}")))?;
    let picture =
        picture_block(&bytes).ok_or_else(|| RpcError::params("Only PNG, JPEG, GIF and WebP are taken"))?;
    push_text(parts, text);
    parts.push(picture.map_err(|error| RpcError::params(format!("The picture cannot be used: {error}")))?);
    Ok(())
}

/// Returns a link as words: a file as a mention, anything else by its name and address.
fn link(block: &Value) -> Result<String, RpcError> {
    let uri = field(block, "uri")?;
    Ok(match file_path(uri) {
        Some((path, lines)) if path.contains([' ', '"']) => {
            format!(" @\"{}\"{lines} ", path.replace('"', ""))
        }
        Some((path, lines)) => format!(" @{path}{lines} "),
        None => format!(" [{}]({uri}) ", block["name"].as_str().unwrap_or(uri)),
    })
}

/// Returns the path that an address of a file names, and the lines as mentions have them.
fn file_path(uri: &str) -> Option<(String, String)> {
    let rest = uri.strip_prefix("file://")?;
    let (path, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    let path = decode_percent(path)?;
    let lines = match fragment.strip_prefix('L') {
        Some(lines) => match lines.split_once(':') {
            Some((first, last)) => format!("#L{first}-{}", last.trim_start_matches('L')),
            None => format!("#L{}", lines.replace("-L", "-")),
        },
        None => String::new(),
    };
    path.starts_with('/').then_some((path, lines))
}

/// Returns what the editor embeds: its text between marks that name it.
fn embedded(uri: &str, content: &str) -> String {
    let name = uri.replace(['"', '\n', '\r', '<', '>'], "_");
    let end = if content.ends_with('\n') { "" } else { "\n" };
    format!("\n<context ref=\"{name}\">\n{content}{end}</context>\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A picture of one dot.
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    fn text(blocks: Value) -> Result<String, String> {
        prompt_content(&blocks).map(|content| content.text()).map_err(|error| error.message)
    }

    #[test]
    fn text_links_and_embedded_files_become_words() {
        for (blocks, expected) in [
            (json!([{"type": "text", "text": "Hi"}]), "Hi"),
            (
                json!([{"type": "text", "text": "See"}, {"type": "resource_link", "uri": "file:///p/a.rs", "name": "a"}]),
                "See @/p/a.rs ",
            ),
            (
                json!([{"type": "resource_link", "uri": "file:///p/a%20b.rs#L3:9", "name": "a"}]),
                " @\"/p/a b.rs\"#L3-9 ",
            ),
            (json!([{"type": "resource_link", "uri": "file:///p/a.rs#L3", "name": "a"}]), " @/p/a.rs#L3 "),
            (
                json!([{"type": "resource_link", "uri": "https://x.test/", "name": "X"}]),
                " [X](https://x.test/) ",
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "file:///p/a\">.rs", "text": "fn"}}]),
                "\n<context ref=\"file:///p/a__.rs\">\nfn\n</context>\n",
            ),
        ] {
            assert_eq!(text(blocks.clone()).as_deref(), Ok(expected), "{blocks}");
        }
    }

    #[test]
    fn mentions_are_looked_for_in_what_was_typed_alone() {
        let file = json!({"type": "resource", "resource": {"uri": "file:///p/a", "text": "@/etc/passwd"}});
        let link = json!({"type": "resource_link", "uri": "file:///p/b", "name": "b"});
        let prompt = read_prompt(&json!([{"type": "text", "text": "See @c"}, file, link])).unwrap();
        assert_eq!(prompt.mentions_from.as_deref(), Some("See @c @/p/b "));
        assert!(prompt.content.text().contains("@/etc/passwd"));
        assert_eq!(read_prompt(&json!([{"type": "text", "text": "@c"}])).unwrap().mentions_from, None);
    }

    #[test]
    fn pictures_are_blocks_between_texts() {
        let blocks = json!([{"type": "text", "text": "a"}, {"type": "image", "data": DOT, "mimeType": "image/png"},
            {"type": "text", "text": "b"}, {"type": "resource", "resource": {"uri": "x", "blob": DOT}}]);
        let Ok(Content::Blocks(parts)) = prompt_content(&blocks) else { panic!("{blocks}") };
        let kinds: Vec<Value> = parts.iter().map(|part| part.to_value()["type"].clone()).collect();
        assert_eq!(kinds, ["text", "image", "text", "image"]);
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for blocks in [
            json!("text"),
            json!([]),
            json!([{"type": "text", "text": " "}]),
            json!([{"type": "text"}]),
            json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
            json!([{"type": "image", "data": "??", "mimeType": "image/png"}]),
            json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
            json!([{"type": "resource", "resource": {"uri": "x"}}]),
        ] {
            assert!(text(blocks.clone()).is_err(), "{blocks}");
        }
    }
}
