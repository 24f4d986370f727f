//! What a fork goes on from, found again when the fork itself goes on: in the conversation as it is, or, where that no
//! longer shows it, in the transcript up to the entry that the fork's meta file names.

use std::path::Path;
use std::sync::Arc;

use loci_context::{Projection, Replaced, estimate_path, prose_tokens};
use loci_core::conversation::Conversation;
use loci_core::entry::{Entry, EntryKind};
use loci_core::ids::{AgentId, EntryId};
use loci_core::message::{Block, Message, ToolUse};
use loci_storage::sessions::{AgentMeta, ForkedFrom, agent_transcript, load_transcript};

use super::conversation::{fork_messages, forked_results};
use super::plan::Spawner;
use super::{AgentService, ForkStart};
use crate::conversation::ForkPoint;

impl AgentService {
    /// Says for the meta file what a fork goes on from.
    pub(super) fn forked_from(&self, fork: &ForkStart) -> Option<ForkedFrom> {
        let session_id = self.deps.ctx.identity.get().id().to_string();
        fork.point.leaf.clone().map(|message_uuid| ForkedFrom { session_id, message_uuid })
    }

    /// Finds what a fork went on from: everything up to the response that sent it out, or to where the person did.
    pub(super) async fn fork_origin(
        &self,
        meta: &AgentMeta,
        from: &Spawner<'_>,
        id: &str,
    ) -> Result<ForkStart, String> {
        let gone = || {
            format!(
                "The fork `{id}` cannot go on: what it went on from is no longer in this conversation as it was. Send out another"
            )
        };
        let start = from.context.fork.clone().ok_or_else(gone)?;
        let call = meta.tool_use_id.as_deref().unwrap_or_default();
        if let Some(messages) = up_to_call(&start.point.messages, call) {
            return Ok(begin_at(start, messages));
        }
        let leaf = meta.forked_from.clone().ok_or_else(gone)?.message_uuid;
        let origin = self.read_origin(from.agent.clone(), leaf, start.opening.clone()).await;
        let (messages, tokens) = origin.ok_or_else(gone)?;
        let messages = up_to_call(&messages, call).unwrap_or(messages);
        let start = ForkStart { point: ForkPoint { tokens, ..start.point }, ..start };
        Ok(begin_at(start, messages))
    }

    /// Reads what was said up to an entry from the transcript of whoever sent the fork out.
    async fn read_origin(
        &self,
        owner: Option<AgentId>,
        leaf: EntryId,
        opening: Option<Block>,
    ) -> Option<(Vec<Message>, u64)> {
        let file = match &owner {
            Some(agent) => agent_transcript(&self.dir()?, agent),
            None => self.deps.ctx.identity.get().transcript_path(),
        };
        let read = move || messages_at(&file, owner.is_some(), &leaf, opening.as_ref());
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }
}

/// Returns the calls of the last message, which nothing has answered.
pub(crate) fn open_calls(messages: &[Message]) -> Vec<ToolUse> {
    messages.last().into_iter().flat_map(|last| last.content.iter()).filter_map(Block::tool_use).collect()
}

fn begin_at(start: ForkStart, messages: Vec<Message>) -> ForkStart {
    let results = forked_results(&open_calls(&messages));
    ForkStart { point: ForkPoint { messages, ..start.point }, results, opening: None }
}

/// Returns the messages up to the response that made a call; none where it is not among them.
fn up_to_call(messages: &[Message], call: &str) -> Option<Vec<Message>> {
    let sent_out = |message: &Message| {
        message.content.iter().filter_map(|block| block.tool_use()).any(|it| it.id.as_str() == call)
    };
    let at = messages.iter().position(sent_out)?;
    fork_messages(messages[..=at].to_vec()).map(|(messages, _)| messages)
}

/// Returns what a conversation sent when an entry was its last, and about how many tokens that is. What was cleared or
/// folded later was still whole then.
fn messages_at(
    file: &Path,
    is_agents: bool,
    leaf: &EntryId,
    opening: Option<&Block>,
) -> Option<(Vec<Message>, u64)> {
    let mut entries = load_transcript(file).ok()?.entries;
    if is_agents {
        entries = entries.iter().map(|entry| Arc::new(entry.as_main_line())).collect();
    }
    let at = entries.iter().position(|entry| entry.head().uuid.as_ref() == Some(leaf))?;
    let is_behind_leaf = |entry: &Entry| {
        entry.head().kind == EntryKind::Metadata
            && entry.fields().read::<EntryId>("afterUuid").as_ref() == Some(leaf)
    };
    let earlier = entries[..at].iter().chain(entries[at..].iter().filter(|entry| is_behind_leaf(entry)));
    let replaced = Replaced::from_metadata(earlier.map(Arc::as_ref));
    // A compaction that came later may have kept the entry, and put it behind its summary.
    entries.truncate(at + 1);
    let path = replaced.view(Conversation::build_at(entries, leaf)?.into_path());
    let opened = opening.and_then(Block::text).map_or(0, |text| prose_tokens(&text));
    let tokens = estimate_path(&path, &replaced) + opened;
    let messages = Projection::with_replaced(path.iter().map(Arc::as_ref), &replaced).messages(opening);
    (!messages.is_empty()).then_some((messages, tokens))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(id: &str, parent: Option<&str>, role: &str, text: &str) -> Value {
        json!({"type": role, "uuid": id, "parentUuid": parent,
            "message": {"id": format!("m-{id}"), "role": role, "content": [{"type": "text", "text": text}]}})
    }

    /// Returns what was sent when an entry was the last, as one text.
    fn sent(lines: &[Value], leaf: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.jsonl");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, text).unwrap();
        let opening = Block::new_text("opening");
        let (messages, _) = messages_at(&file, false, &leaf.into(), Some(&opening))?;
        let texts = messages.iter().flat_map(|it| it.content.iter()).filter_map(|block| block.text());
        Some(texts.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn origin_of_a_fork_is_read_as_it_was_whatever_came_later() {
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
            "logicalParentUuid": "u2", "compactMetadata": {"trigger": "auto"}});
        let mut summary = said("s", Some("b"), "user", "summary");
        summary["isCompactSummary"] = json!(true);
        let lines = [
            said("u1", None, "user", "one"),
            said("a1", Some("u1"), "assistant", "two"),
            said("u2", Some("a1"), "user", "three"),
            boundary,
            summary,
            said("a2", Some("s"), "assistant", "four"),
        ];
        for (leaf, expected) in [
            ("a1", Some("opening one two")),
            ("u1", Some("opening one")),
            ("a2", Some("opening summary four")),
            ("nowhere", None),
        ] {
            assert_eq!(sent(&lines, leaf).as_deref(), expected, "{leaf}");
        }
    }

    #[test]
    fn what_was_cleared_after_the_fork_is_whole_in_it() {
        let call = json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "long"});
        let message = |id: &str, parent: &str, role: &str, block: Value| {
            json!({"type": role, "uuid": id, "parentUuid": parent,
                "message": {"id": format!("m-{id}"), "role": role, "content": [block]}})
        };
        let cleared = |after: &str| {
            json!({"type": "content-replacement", "afterUuid": after, "freedTokens": 1,
                "replacements": [{"toolUseId": "t1", "content": "gone"}]})
        };
        let lines = |after: &str| {
            [
                said("u1", None, "user", "one"),
                message("a1", "u1", "assistant", call.clone()),
                message("r1", "a1", "user", result.clone()),
                said("a2", Some("r1"), "assistant", "read"),
                said("u2", Some("a2"), "user", "next"),
                cleared(after),
            ]
        };
        let result_at = |after: &str| {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("s.jsonl");
            std::fs::write(&file, lines(after).iter().map(|line| format!("{line}\n")).collect::<String>())
                .unwrap();
            let (messages, _) = messages_at(&file, false, &"a2".into(), None).unwrap();
            serde_json::to_string(&messages[2].content[0].to_value()["content"]).unwrap()
        };
        assert_eq!(result_at("u2"), "\"long\"");
        assert_eq!(result_at("a2"), "\"gone\"");
    }
}
