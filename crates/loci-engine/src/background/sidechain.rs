//! What a background agent said, kept beside the session: `subagents/agent-<id>.jsonl` with its own chain.
//!
//! Only what the agent added is written; before it stands the main conversation, which has a file of its own. What
//! cannot be written is not: the agent's work does not depend on it.

use std::path::Path;

use loci_core::entry::Entry;
use loci_core::entry::draft::Draft;
use loci_core::ids::{EntryId, PromptId, ToolUseId};
use loci_core::message::Block;
use loci_core::stream::{Ended, Started};
use loci_stdx::{WriteOptions, rfc3339_millis, write_atomic};
use loci_storage::SessionLog;
use serde_json::{Value, json};

use super::Backstage;
use crate::recorder::assistant_message;

/// The side file of one agent.
pub(super) struct Sidechain<'a> {
    stage: &'a Backstage,
    log: Option<SessionLog>,
    agent: String,
    prompt: PromptId,
    tail: Option<EntryId>,
}

impl<'a> Sidechain<'a> {
    /// Begins the file with what the agent was asked.
    pub(super) fn begin(stage: &'a Backstage, kind: &str, instruction: &str) -> Self {
        let hex: String =
            stage.env.random.uuid_v4().to_string().chars().filter(char::is_ascii_hexdigit).take(16).collect();
        let agent = format!("a{hex}");
        let log = stage.side_dir().map(|dir| {
            write_meta(&dir, &agent, kind);
            SessionLog::on_disk(&dir.join(format!("agent-{agent}.jsonl")))
        });
        let prompt = PromptId::new(stage.env.random.uuid_v4().to_string());
        let mut side = Self { stage, log, agent, prompt, tail: None };
        let draft = Draft::meta(Some(side.prompt.clone()), Value::from(instruction));
        side.append(&[draft]);
        side
    }

    /// Keeps an answer, one entry per block.
    pub(super) fn answered(&mut self, started: Option<&Started>, blocks: &[Block], ended: &Ended) {
        let Some(started) = started else { return };
        let drafts: Vec<Draft> = blocks
            .iter()
            .map(|block| {
                let message = assistant_message(started, block, Some(ended));
                Draft::assistant(message, started.request_id.clone())
            })
            .collect();
        self.append(&drafts);
    }

    /// Keeps the answer to a call.
    pub(super) fn result(&mut self, _call: &ToolUseId, block: &Block) {
        let draft = Draft::marker(self.prompt.clone(), json!([block.to_value()]));
        self.append(&[draft]);
    }

    fn append(&mut self, drafts: &[Draft]) {
        let entries: Vec<Entry> = drafts.iter().filter_map(|draft| self.seal(draft)).collect();
        if let Some(log) = &mut self.log {
            let lines: Vec<&Entry> = entries.iter().collect();
            drop(log.append(&lines));
        }
    }

    fn seal(&mut self, draft: &Draft) -> Option<Entry> {
        let env = &self.stage.env;
        let id = EntryId::new(env.random.uuid_v4().to_string());
        let timestamp = rfc3339_millis(env.clock.now());
        let entry = draft.seal(&self.stage.stamp, &id, self.tail.as_ref(), &timestamp).ok()?;
        let mut line: Value = serde_json::from_str(entry.line()).ok()?;
        line["isSidechain"] = Value::Bool(true);
        line["agentId"] = Value::from(self.agent.as_str());
        self.tail = Some(id);
        Entry::parse(line.to_string()).ok()
    }
}

fn write_meta(dir: &Path, agent: &str, kind: &str) {
    let meta = json!({"agentType": kind, "description": "background", "spawnDepth": 1});
    let path = dir.join(format!("agent-{agent}.meta.json"));
    let options = WriteOptions::private().creating_parents();
    drop(write_atomic(&path, meta.to_string().as_bytes(), &options));
}
