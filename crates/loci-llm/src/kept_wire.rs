//! What a provider said and must hear again as it said it, kept beside the block that came of it.
//!
//! A block that another protocol gave has our own key [`KEPT_WIRE`]: `{"provider": NAME, "model": NAME/ID, "raw": ANYTHING}`.
//! It goes back to the same provider and model alone; to all others the block is sent without it, and reasoning not at all:
//! nobody else can check it, and as text it would be imitated.

use std::borrow::Cow;
use std::sync::LazyLock;

use loci_core::message::Block;
use loci_core::raw::RawObject;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::Value;

/// The key; no API has one like it.
pub(crate) const KEPT_WIRE: &str = "loci:wire";

/// Made once: every block of every request is looked through.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"loci:wire\""));

#[derive(Deserialize)]
struct KeptBlock {
    provider: String,
    model: String,
    #[serde(default)]
    raw: Value,
}

/// Tells whether a block came by another protocol.
fn has_kept(json: &str) -> bool {
    // Inside a JSON string the quotes would be escaped, so ordinary text is never taken for the key.
    MARK.find(json.as_bytes()).is_some()
}

/// Returns a block as the Messages API takes it; `None` for reasoning that came from elsewhere.
pub(crate) fn plain_block(block: &Block) -> Option<Cow<'_, str>> {
    let json = block.json().as_str();
    if !has_kept(json) {
        return Some(Cow::Borrowed(json));
    }
    match RawObject::parse(json) {
        Ok(object) if object.get(KEPT_WIRE).is_some() => {
            let mut object = object;
            object.remove(KEPT_WIRE);
            (!block.kind().is_thinking()).then(|| Cow::Owned(object.to_json()))
        }
        _ => Some(Cow::Borrowed(json)),
    }
}

/// Returns what was kept in a block for this provider and model.
pub(crate) fn kept_for(block: &Block, provider: &str, model: &str) -> Option<Value> {
    let json = block.json().as_str();
    if !has_kept(json) {
        return None;
    }
    let kept: KeptBlock = RawObject::parse(json).ok()?.read(KEPT_WIRE)?;
    (kept.provider == provider && kept.model == model).then_some(kept.raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(json: &str) -> Block {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn foreign_blocks_reach_the_messages_api_without_their_key() {
        for (json, expected) in [
            (r#"{"type":"text","text":"x"}"#, Some(r#"{"type":"text","text":"x"}"#)),
            (
                r#"{"type":"text","text":"say \"loci:wire\""}"#,
                Some(r#"{"type":"text","text":"say \"loci:wire\""}"#),
            ),
            (
                r#"{"type":"tool_use","id":"t","name":"A","input":{"n":1.50},"loci:wire":{"provider":"p","model":"m"}}"#,
                Some(r#"{"type":"tool_use","id":"t","name":"A","input":{"n":1.50}}"#),
            ),
            (
                r#"{"type":"tool_use","id":"t","name":"A","input":{"loci:wire":1}}"#,
                Some(r#"{"type":"tool_use","id":"t","name":"A","input":{"loci:wire":1}}"#),
            ),
            (r#"{"type":"thinking","thinking":"x","loci:wire":{"provider":"p","model":"m"}}"#, None),
            (
                r#"{"type":"thinking","thinking":"x","signature":"s"}"#,
                Some(r#"{"type":"thinking","thinking":"x","signature":"s"}"#),
            ),
        ] {
            assert_eq!(plain_block(&block(json)).as_deref(), expected);
        }
    }

    #[test]
    fn kept_words_go_back_to_their_own_model_alone() {
        let kept = block(
            r#"{"type":"thinking","thinking":"x","loci:wire":{"provider":"p","model":"p/m","raw":[1]}}"#,
        );
        assert_eq!(kept_for(&kept, "p", "p/m"), Some(serde_json::json!([1])));
        assert_eq!(kept_for(&kept, "p", "p/other"), None);
        assert_eq!(kept_for(&kept, "q", "p/m"), None);
    }
}
