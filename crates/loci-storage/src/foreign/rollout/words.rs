//! Which words in the user's name are the user's.
//!
//! Codex sends instructions, the environment and news of its own as messages of the user. Newer files say of each part what
//! it is (`content_item_kinds`); in others such parts are told by how they begin.

use serde_json::{Value, json};

use super::item::RolloutItem;

/// How texts begin that Codex says to the model in the user's name.
const NOT_THE_USERS: [&str; 14] = [
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<environments_instructions>",
    "<permissions instructions>",
    "<apps_instructions>",
    "<skills_instructions>",
    "<plugins_instructions>",
    "<recommended_plugins>",
    "<skill>",
    "<codex_internal_context",
    "<goal_context>",
    "<hook_prompt",
    "<subagent_notification>",
];
const ABORTED: &str = "<turn_aborted>";

/// Returns what a message of the user says.
pub(super) fn prompt(payload: &Value) -> RolloutItem {
    let parts = payload["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kinds = &payload["internal_chat_message_metadata_passthrough"]["content_item_kinds"];
    let is_aborted =
        |part: &Value| part["text"].as_str().is_some_and(|text| text.trim_start().starts_with(ABORTED));
    if parts.iter().any(is_aborted) {
        return RolloutItem::Interrupted;
    }
    let is_users = |(idx, part): &(usize, &Value)| match kinds[*idx].as_str() {
        Some("unknown") | None => is_users_text(part["text"].as_str().unwrap_or_default()),
        Some(kind) => kind.starts_with("user"),
    };
    let own: Vec<Value> = parts.iter().enumerate().filter(is_users).map(|(_, part)| part.clone()).collect();
    let blocks = blocks(&Value::Array(own));
    if blocks.is_empty() { RolloutItem::Nothing } else { RolloutItem::Prompt(blocks) }
}

fn is_users_text(text: &str) -> bool {
    let text = text.trim_start();
    !NOT_THE_USERS.iter().any(|start| text.starts_with(start))
}

/// Returns parts as blocks that the Messages API takes: texts that say something, and pictures.
pub(super) fn blocks(parts: &Value) -> Vec<Value> {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let has_picture = parts.iter().any(|part| part["type"] == "input_image");
    let block = |part: &Value| match part["type"].as_str() {
        Some("input_image") => Some(picture(part["image_url"].as_str().unwrap_or_default())),
        _ => {
            let text = part["text"].as_str().filter(|text| !text.trim().is_empty())?;
            // Pictures stand between marks.
            let is_mark = text == "</image>" || (text.starts_with("<image") && text.ends_with('>'));
            (!(has_picture && is_mark)).then(|| json!({"type": "text", "text": text}))
        }
    };
    parts.iter().filter_map(block).collect()
}

/// Pictures lie in the file as data; what lies elsewhere cannot be relied on to be there.
fn picture(url: &str) -> Value {
    const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data.filter(|(media_type, data)| TYPES.contains(media_type) && !data.is_empty()) {
        Some((media_type, data)) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        None => json!({"type": "text", "text": "[a picture that is not in the file]"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt_item(parts: Value, kinds: Value) -> RolloutItem {
        prompt(
            &json!({"content": parts, "internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}}),
        )
    }

    fn text(text: &str) -> Value {
        json!({"type": "input_text", "text": text})
    }

    #[test]
    fn only_a_persons_words_are_a_prompt() {
        let block = |text: &str| json!({"type": "text", "text": text});
        for (parts, kinds, expected) in [
            (json!([text("Fix it")]), json!(null), RolloutItem::Prompt(vec![block("Fix it")])),
            (
                json!([text("# AGENTS.md instructions for /p\n…"), text("<environment_context>")]),
                json!(null),
                RolloutItem::Nothing,
            ),
            (
                json!([text("<environment_context>x"), text("Fix it")]),
                json!(null),
                RolloutItem::Prompt(vec![block("Fix it")]),
            ),
            (
                json!([text("<mine>x</mine>")]),
                json!(["user.text"]),
                RolloutItem::Prompt(vec![block("<mine>x</mine>")]),
            ),
            (
                json!([text("<skill>"), text("Go")]),
                json!(["user.text", "x.y"]),
                RolloutItem::Prompt(vec![block("<skill>")]),
            ),
            (json!([text("Sum")]), json!(["compaction.summary"]), RolloutItem::Nothing),
            (json!([text("<turn_aborted>\nx")]), json!(["harness"]), RolloutItem::Interrupted),
            (json!([text(" \n")]), json!(null), RolloutItem::Nothing),
            (json!("odd"), json!(null), RolloutItem::Nothing),
        ] {
            assert_eq!(prompt_item(parts.clone(), kinds), expected, "{parts}");
        }
    }

    #[test]
    fn pictures_are_taken_with_their_bytes() {
        let picture = |url: &str| json!({"type": "input_image", "image_url": url});
        let parts = json!([
            text("<image name=a>"),
            picture("data:image/png;base64,AAAA"),
            text("</image>"),
            text("look")
        ]);
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
        let expected =
            vec![json!({"type": "image", "source": source}), json!({"type": "text", "text": "look"})];
        assert_eq!(prompt_item(parts, json!(null)), RolloutItem::Prompt(expected));
        for url in ["https://example.com/x.png", "data:image/tiff;base64,AA", "data:image/png;base64,", ""] {
            let RolloutItem::Prompt(blocks) = prompt_item(json!([picture(url)]), json!(null)) else {
                panic!("{url}")
            };
            assert_eq!(blocks[0]["type"], "text", "{url}");
        }
    }
}
