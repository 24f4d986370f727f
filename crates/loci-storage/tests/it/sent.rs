//! What is sent after a resume is what an uninterrupted run would have sent, byte for byte.
//!
//! A session is written entry by entry as the engine does, and projected as it grows. After every entry the file is
//! loaded again and projected from its path: both must give the same bytes, or the prompt cache is lost.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use loci_context::Projection;
use loci_core::conversation::Conversation;
use loci_core::entry::Attachment;
use loci_core::entry::Entry;
use loci_core::entry::draft::{Draft, Stamp};
use loci_core::ids::{EntryId, PromptId};
use loci_core::message::Message;
use loci_storage::sessions::{load_live, load_transcript};
use serde_json::{Value, json};

use crate::support::{World, session_id};

/// A session that is running: its file, and what the model has been shown.
struct Running {
    _world: World,
    file: PathBuf,
    stamp: Stamp,
    /// The entries in the order they were sent.
    path: Vec<Arc<Entry>>,
    tail: Option<EntryId>,
    projection: Projection,
    n_entries: usize,
}

impl Running {
    fn new() -> Self {
        let world = World::new();
        let stamp = Stamp {
            session_id: session_id(1),
            cwd: "/p".to_owned(),
            version: "2.1.197".to_owned(),
            git_branch: "HEAD".to_owned(),
            entrypoint: "cli".to_owned(),
            slug: None,
            agent: None,
            agent_type: None,
        };
        let file = world.write("s.jsonl", "");
        let (path, projection) = (Vec::new(), Projection::default());
        Self { _world: world, file, stamp, path, tail: None, projection, n_entries: 0 }
    }

    /// Appends an entry, shows it to the model, and checks that a resume at this moment would show the same.
    fn add(&mut self, draft: &Draft) -> EntryId {
        let entry = self.write(draft);
        self.projection.push(&entry);
        self.path.push(Arc::clone(&entry));
        self.check();
        self.tail.clone().unwrap()
    }

    fn write(&mut self, draft: &Draft) -> Arc<Entry> {
        let id = EntryId::new(format!("0a0a0a0a-0001-4000-8000-{:012}", self.n_entries));
        let time = format!("2026-01-01T00:{:02}:{:02}.000Z", self.n_entries / 60, self.n_entries % 60);
        self.n_entries += 1;
        let parent = draft.fixed_parent().cloned().or(self.tail.take());
        let entry = draft.seal(&self.stamp, &id, parent.as_ref(), &time).unwrap();
        self.append(entry.line());
        self.tail = Some(id);
        Arc::new(entry)
    }

    fn append(&self, line: &str) {
        let mut file = OpenOptions::new().append(true).open(&self.file).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn check(&self) {
        let expected = bytes(&self.projection.messages(None));
        let live = load_live(&self.file).unwrap();
        assert_eq!(bytes(&projected(&live.conversation)), expected);
        let whole = Conversation::build(load_transcript(&self.file).unwrap().entries);
        assert_eq!(bytes(&projected(&whole)), expected);
    }

    fn prompt(&mut self, text: &str) {
        self.add(&Draft::prompt(PromptId::new("p"), json!(text), "default", "sdk"));
    }

    fn block(&mut self, message: &str, block: Value) -> EntryId {
        let usage = json!({"input_tokens": 10, "output_tokens": 5});
        let message = json!({"id": message, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [block], "stop_reason": "tool_use", "usage": usage});
        self.add(&Draft::assistant(message, None))
    }

    fn result(&mut self, call: &str, content: &Value, source: &EntryId) {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": content});
        self.add(&Draft::tool_result(PromptId::new("p"), block, json!({}), source.clone()));
    }

    /// A turn with thinking, two calls at once, whose results come the other way round, and attachments between.
    fn turn(&mut self, name: &str) {
        self.prompt(&format!("Please do {name}."));
        let file = json!({"type": "file", "filename": "/p/a", "content": {"file": {"content": "one\ntwo"}}});
        self.add(&Draft::attachment(Attachment::parse(&file.to_string())));
        let message = format!("msg_{name}");
        self.block(&message, json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}));
        self.block(&message, json!({"type": "text", "text": "I look \u{1f600} and \"see\"."}));
        let (first, second) = (format!("toolu_{name}_1"), format!("toolu_{name}_2"));
        let input = json!({"z": 1, "a": [1.50, 1e3], "path": "/p/\u{e4}"});
        let one =
            self.block(&message, json!({"type": "tool_use", "id": first, "name": "Read", "input": input}));
        let two =
            self.block(&message, json!({"type": "tool_use", "id": second, "name": "Bash", "input": {}}));
        self.result(&second, &json!([{"type": "text", "text": "out"}]), &two);
        let memory = json!({"path": "/p/sub/CLAUDE.md", "type": "Project", "content": "Be brief."});
        let memory = json!({"type": "nested_memory", "content": memory});
        self.add(&Draft::attachment(Attachment::parse(&memory.to_string())));
        self.result(&first, &json!("in"), &one);
        let queued = Attachment::QueuedCommand { prompt: json!("And be quick."), command_mode: None };
        self.add(&Draft::attachment(queued));
        self.block(&format!("{message}_end"), json!({"type": "text", "text": format!("{name} is done.")}));
    }

    /// A compaction that keeps the last `n_kept` entries.
    fn compact(&mut self, n_kept: usize) {
        let kept = self.path.split_off(self.path.len() - n_kept);
        let uuid = |entry: &Arc<Entry>| entry.head().uuid.clone();
        let uuids: Vec<EntryId> = kept.iter().filter_map(uuid).collect();
        let anchor = format!("0a0a0a0a-0001-4000-8000-{:012}", self.n_entries + 1);
        let mut fields = json!({"subtype": "compact_boundary", "content": "Conversation compacted",
            "logicalParentUuid": self.tail, "compactMetadata": {"trigger": "auto"}});
        if let (Some(head), Some(tail)) = (uuids.first(), uuids.last()) {
            let segment = json!({"headUuid": head, "anchorUuid": anchor, "tailUuid": tail});
            fields["compactMetadata"]["preservedSegment"] = segment;
            fields["compactMetadata"]["preservedMessages"] = json!({"anchorUuid": anchor, "uuids": uuids});
        }
        self.tail = None;
        let boundary = self.write(&Draft::system(fields.as_object().unwrap().clone()));
        let summary = self.write(&Draft::meta(None, json!("Summary: things were done.")));
        // The mark of a summary is not in the draft's vocabulary yet; the last line is written again with it.
        let summary = Arc::new(summary.with_field("isCompactSummary", &json!(true)).unwrap());
        self.append(summary.line());
        self.path = vec![boundary, summary];
        self.path.extend(kept);
        self.projection = Projection::from_path(self.path.iter().map(|entry| &**entry));
        self.check();
    }
}

fn projected(conversation: &Conversation) -> Vec<Message> {
    Projection::from_path(conversation.path().iter().map(|entry| &**entry)).messages(None)
}

fn bytes(messages: &[Message]) -> String {
    let line = |message: &Message| {
        format!("{} {}\n", message.role.as_str(), serde_json::to_string(&message.content[..]).unwrap())
    };
    messages.iter().map(line).collect()
}

/// Invariant 6 of `docs/design/session-log.md`.
#[test]
fn a_resume_at_any_moment_sends_the_same_bytes() {
    let mut running = Running::new();
    running.turn("one");
    running.turn("two");
    let command = json!({"subtype": "local_command", "content": "<command-name>/cost</command-name>"});
    running.add(&Draft::system(command.as_object().unwrap().clone()));
    running.turn("three");
}

/// Regression class 11: what is loaded begins at the boundary.
/// Invariant 6 of `docs/design/session-log.md`.
#[test]
fn a_resume_after_a_compaction_sends_the_same_bytes() {
    for n_kept in [0, 1, 10] {
        let mut running = Running::new();
        for name in ["one", "two", "three"] {
            running.turn(name);
        }
        running.compact(n_kept);
        running.turn("four");
        running.compact(n_kept);
        running.turn("five");
    }
}

#[test]
fn content_replacements_are_restored_in_order() {
    let mut running = Running::new();
    running.turn("one");
    for n in 0..3 {
        let replaced = json!({"toolUseId": format!("toolu_{n}"), "content": "preview"});
        running.append(&json!({"type": "content-replacement", "replacements": [replaced]}).to_string());
    }
    running.check();
    let live = load_live(&running.file).unwrap();
    let lines: Vec<&str> = live.metadata.iter().map(|entry| entry.line()).collect();
    assert!(lines[0].contains("toolu_0") && lines[1].contains("toolu_1") && lines[2].contains("toolu_2"));
}
