//! What a model of a named provider can do, and a request made fit for it.

use std::sync::Arc;

use loci_core::message::{Block, BlockKind, Message};
use serde_json::{Value, json};

use crate::request::Request;

/// What stands where an image was.
const NO_IMAGE: &str = "[An image was here; this model takes no images.]";

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTraits {
    /// Whether it can call tools.
    pub tools: bool,
    /// Whether it can see images.
    pub images: bool,
    /// Whether it writes its reasoning into the answer, in `<think>` tags.
    pub has_think_tags: bool,
}

impl Default for ModelTraits {
    /// What is assumed of a model of which nobody says anything.
    fn default() -> Self {
        Self { tools: true, images: true, has_think_tags: false }
    }
}

impl ModelTraits {
    /// Returns the request with what the model does not take left out; the same one, where it takes everything.
    pub(crate) fn fit(&self, request: &Arc<Request>) -> Arc<Request> {
        let has_tools = !self.tools && !request.tools.is_empty();
        let has_images =
            !self.images && request.messages.iter().flat_map(|it| it.content.iter()).any(shows_image);
        if !has_tools && !has_images {
            return Arc::clone(request);
        }
        let mut fit = Request::clone(request);
        if has_tools {
            fit.tools = Arc::from([]);
        }
        if has_images {
            fit.messages = fit.messages.iter().map(without_images).collect();
        }
        Arc::new(fit)
    }
}

fn shows_image(block: &Block) -> bool {
    match block.kind() {
        BlockKind::Image => true,
        BlockKind::ToolResult => block.json().as_str().contains("\"image\""),
        BlockKind::Text
        | BlockKind::Thinking
        | BlockKind::RedactedThinking
        | BlockKind::ToolUse
        | BlockKind::Document
        | BlockKind::Other => false,
    }
}

fn without_images(message: &Message) -> Message {
    if !message.content.iter().any(shows_image) {
        return message.clone();
    }
    let blocks = message.content.iter().map(|block| match block.kind() {
        BlockKind::Image => Block::new_text(NO_IMAGE),
        _ if shows_image(block) => result_without_images(block),
        _ => block.clone(),
    });
    Message::new(message.role, blocks.collect::<Vec<_>>())
}

fn result_without_images(block: &Block) -> Block {
    let mut value = block.to_value();
    if let Some(Value::Array(parts)) = value.get_mut("content") {
        for part in parts.iter_mut().filter(|part| part["type"] == "image") {
            *part = json!({"type": "text", "text": NO_IMAGE});
        }
    }
    Block::from_value(&value).unwrap_or_else(|_| block.clone())
}

#[cfg(test)]
mod tests {
    use loci_core::message::Role;

    use super::*;

    #[test]
    fn text_stands_for_images_that_a_model_does_not_take() {
        let result = Block::new_tool_result(
            &"t".into(),
            &json!([{"type": "text", "text": "a"}, {"type": "image", "source": {}}]),
            None,
        );
        let blocks = vec![Block::new_text("look"), Block::new_image("image/png", "AA=="), result];
        let request = Arc::new(Request::new("p/m", 1, vec![Message::new(Role::User, blocks)]));
        let blind = ModelTraits { images: false, ..ModelTraits::default() }.fit(&request);
        let text = serde_json::to_string(&*blind.messages[0].content).unwrap();
        assert_eq!(text.matches(NO_IMAGE).count(), 2, "{text}");
        assert!(!text.contains("\"image\""), "{text}");
        assert!(Arc::ptr_eq(&ModelTraits::default().fit(&request), &request));
    }
}
