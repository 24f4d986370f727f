//! Which skills a conversation has used, read from its entries: so a session that was resumed knows as much as one that
//! went on, and an agent knows its own.
//!
//! A typed skill is a prompt of two blocks for each: tags with its name, and its text. One that a call has used stands in
//! an entry that names the call. After a compaction both come back as attachments, which a later one finds again.

use std::collections::HashMap;
use std::sync::Arc;

use loci_context::Restorable;
use loci_core::entry::{Attachment, AttachmentKind, Entry};
use loci_core::message::{Block, BlockKind};
use loci_tools::{SKILL_TOOL, skill_name};

/// What the name of something that comes back begins with.
const RESTORED: &str = "The skill ";
/// What the tags of a typed skill begin with.
const TAGS: &str = "<command-message>";

/// Returns the skills whose text a conversation holds, the newest first, each once.
pub(crate) fn used_skills(path: &[Arc<Entry>]) -> Vec<Restorable> {
    let mut used: Vec<Restorable> = Vec::new();
    for (name, text) in skill_texts(path) {
        let name = format!("{RESTORED}{name}");
        used.retain(|other| other.name != name);
        used.push(Restorable { name, text, is_agents: false });
    }
    used.reverse();
    used
}

/// Tells whether a conversation holds this very text of a skill already.
pub(crate) fn has_skill_text(path: &[Arc<Entry>], name: &str, text: &str) -> bool {
    let last = skill_texts(path).into_iter().rev().find(|(other, _)| other == name);
    last.is_some_and(|(_, held)| held == text)
}

/// Returns names and texts in the order in which they were used.
fn skill_texts(path: &[Arc<Entry>]) -> Vec<(String, String)> {
    let mut calls: HashMap<String, String> = HashMap::new();
    let mut texts = Vec::new();
    for entry in path {
        let line = entry.line();
        if line.contains(SKILL_TOOL) {
            calls.extend(skill_calls(entry));
        }
        if line.contains("sourceToolUseID") {
            let call: Option<String> = entry.fields().read("sourceToolUseID");
            let name = call.and_then(|call| calls.remove(&call));
            texts.extend(name.map(|name| (name, entry.blocks().iter().filter_map(Block::text).collect())));
        } else if line.contains(TAGS) {
            texts.extend(typed_texts(&entry.blocks()));
        } else if line.contains("\"restored\"") {
            texts.extend(restored_text(entry));
        }
    }
    texts
}

/// Returns the calls of the Skill tool in an entry: id and name of the skill.
fn skill_calls(entry: &Entry) -> Vec<(String, String)> {
    let calls = entry.blocks().into_iter().filter(|block| block.kind() == BlockKind::ToolUse);
    let calls = calls.filter_map(|block| block.tool_use()).filter(|call| call.name == SKILL_TOOL);
    calls.map(|call| (call.id.to_string(), skill_name(&call.input).to_owned())).collect()
}

fn typed_texts(blocks: &[Block]) -> Vec<(String, String)> {
    let texts: Vec<String> = blocks.iter().filter_map(Block::text).collect();
    let pairs = texts.windows(2).filter(|pair| pair[0].starts_with(TAGS) && !pair[1].starts_with(TAGS));
    pairs.filter_map(|pair| Some((tagged_name(&pair[0])?, pair[1].clone()))).collect()
}

fn tagged_name(tags: &str) -> Option<String> {
    let (name, _) = tags.strip_prefix(TAGS)?.split_once("</command-message>")?;
    Some(name.to_owned())
}

fn restored_text(entry: &Entry) -> Option<(String, String)> {
    let restored = entry.attachment_of_kind(AttachmentKind::Restored)?;
    let Attachment::Restored { name, content } = restored else { return None };
    Some((name.strip_prefix(RESTORED)?.to_owned(), content))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn path(lines: &[Value]) -> Vec<Arc<Entry>> {
        lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
    }

    fn user(content: Value) -> Value {
        json!({"type": "user", "message": {"role": "user", "content": content}})
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn typed_called_and_restored_skills_are_found_in_the_entries() {
        let tags = |name: &str| {
            text(&format!("<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"))
        };
        let call = json!({"type": "assistant", "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "Skill", "input": {"skill": "/ship"}}]}});
        let mut called = user(json!([text("Ship it.")]));
        called["sourceToolUseID"] = json!("toolu_1");
        let path = path(&[
            json!({"type": "attachment", "attachment": {"type": "restored", "name": "The skill old", "content": "Old."}}),
            user(json!([tags("one"), text("One."), tags("two"), text("Two.")])),
            user(json!("<command-message>loose</command-message>")),
            call,
            called,
            user(json!([tags("one"), text("One again.")])),
        ]);
        let used: Vec<String> =
            used_skills(&path).into_iter().map(|it| format!("{}: {}", it.name, it.text)).collect();
        let expected = [
            "The skill one: One again.",
            "The skill ship: Ship it.",
            "The skill two: Two.",
            "The skill old: Old.",
        ];
        assert_eq!(used, expected);
        assert!(has_skill_text(&path, "ship", "Ship it.") && has_skill_text(&path, "one", "One again."));
        assert!(!has_skill_text(&path, "one", "One."), "the newest counts");
        assert!(!has_skill_text(&path, "gone", "Ship it."));
    }
}
