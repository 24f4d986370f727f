//! Stores to be damaged: small, seeded, and fine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::conversation::Conversation;
use loci_core::file_history::backup_file_name;
use loci_core::ids::SessionId;
use loci_stdx::{Env, FixedClock};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::history::tree_history::BlobStore;
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::session_file::load_transcript;

/// The same numbers every time.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    pub(super) fn uuid(&mut self) -> String {
        let mut hex = String::new();
        while hex.len() < 32 {
            hex.push_str(&format!("{:07x}", self.below(1 << 28)));
        }
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
    }
}

/// A config home with sessions in two projects.
pub(super) struct Lab {
    _dir: TempDir,
    pub(super) env: Env,
    pub(super) home: ConfigHome,
    pub(super) dice: Dice,
    pub(super) cwds: Vec<PathBuf>,
    pub(super) places: Vec<SessionPlace>,
}

impl Lab {
    /// Makes a store with so many sessions.
    pub(super) fn new(seed: u64, n_sessions: usize) -> Self {
        // In memory where that can be had: hundreds of stores are made, and their repairs sync every step.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let cwds: Vec<PathBuf> = (0..2).map(|n| root.join(format!("home/project{n}"))).collect();
        cwds.iter().for_each(|cwd| fs::create_dir_all(cwd).unwrap());
        let mut env = Env::for_test(root.join("home"), &cwds[0]);
        // Far ahead, so that everything is old enough.
        env.clock = Arc::new(FixedClock::ticking("2099-01-01T00:00:00Z".parse().unwrap()));
        env.vars = env.vars.with("CLAUDE_CODE_TMPDIR", root.join("tmp").display().to_string());
        let home = ConfigHome::from_env(&env);
        let mut lab = Self { _dir: dir, env, home, dice: Dice::new(seed), cwds, places: Vec::new() };
        for n in 0..n_sessions {
            lab.add_session(n % 2);
        }
        if lab.home.root().exists() {
            close(lab.home.root());
        }
        lab
    }

    fn add_session(&mut self, project: usize) {
        let id = SessionId::parse(&self.dice.uuid()).unwrap();
        let place = self.home.session(&self.cwds[project], &id);
        fs::create_dir_all(place.file().parent().unwrap()).unwrap();
        let mut writer =
            Writer { lab: self, place: &place, project, lines: Vec::new(), parent: Value::Null, second: 0 };
        writer.session();
        let text: String = writer.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(place.file(), text).unwrap();
        self.places.push(place);
    }
}

/// Closes something to others, with all that is in it.
pub(super) fn close(path: &Path) {
    let is_dir = path.is_dir();
    fs::set_permissions(path, fs::Permissions::from_mode(if is_dir { 0o700 } else { 0o600 })).unwrap();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        close(&entry.path());
    }
}

/// Writes one session as a program would.
struct Writer<'a> {
    lab: &'a mut Lab,
    place: &'a SessionPlace,
    project: usize,
    lines: Vec<Value>,
    parent: Value,
    second: usize,
}

impl Writer<'_> {
    fn session(&mut self) {
        let n_turns = 3 + self.lab.dice.below(3);
        for turn in 0..n_turns {
            let prompt = self.entry("user", json!(format!("prompt {turn} with some words")), Value::Null);
            self.snapshot(&prompt, &prompt, false, json!({}));
            self.entry(
                "assistant",
                json!([{"type": "text", "text": format!("answer {turn} in words")}]),
                Value::Null,
            );
            match turn {
                0 => self.edit(&prompt, turn),
                1 => self.long_output(turn),
                _ => {}
            }
        }
        self.entry("assistant", json!([{"type": "text", "text": "done, in words"}]), Value::Null);
        self.subagent();
        self.tree_history();
        let id = self.place.id().as_str();
        self.lines.push(json!({"type": "custom-title", "customTitle": "a title", "sessionId": id}));
        self.lines.push(
            json!({"type": "last-prompt", "lastPrompt": "words", "leafUuid": self.parent, "sessionId": id}),
        );
    }

    fn entry(&mut self, kind: &str, content: Value, result: Value) -> String {
        let uuid = self.lab.dice.uuid();
        self.second += 7;
        let mut line = json!({"parentUuid": self.parent, "isSidechain": false, "type": kind,
            "message": {"role": kind, "content": content}, "uuid": uuid,
            "timestamp": format!("2026-01-01T00:{:02}:{:02}.000Z", self.second / 60, self.second % 60),
            "cwd": self.lab.cwds[self.project], "sessionId": self.place.id().as_str(), "gitBranch": "main"});
        if kind == "assistant" {
            line["message"]["id"] = json!(format!("msg_{}", &uuid[..8]));
        }
        if !result.is_null() {
            line["toolUseResult"] = result;
        }
        self.lines.push(line);
        self.parent = json!(uuid);
        uuid
    }

    fn snapshot(&mut self, written_for: &str, prompt: &str, is_update: bool, backups: Value) {
        self.lines.push(json!({"type": "file-history-snapshot", "messageId": written_for, "isSnapshotUpdate": is_update,
            "snapshot": {"messageId": prompt, "timestamp": "2026-01-01T00:00:00.000Z", "trackedFileBackups": backups}}));
    }

    /// A call that changed a file: its backup is made for the call, and a later prompt has another version.
    fn edit(&mut self, prompt: &str, turn: usize) {
        let path = self.lab.cwds[self.project].join("code.txt");
        let input = json!({"file_path": path, "old_string": "a", "new_string": "b"});
        let call =
            json!([{"type": "tool_use", "id": format!("toolu_{turn}"), "name": "Edit", "input": input}]);
        let caller = self.entry("assistant", call, Value::Null);
        let digest = Sha256::digest(path.to_string_lossy().as_bytes());
        let digest = loci_core::hex::to_hex(&digest);
        let dir = self.lab.home.file_history_dir(self.place.id());
        fs::create_dir_all(&dir).unwrap();
        let id = self.place.id().clone();
        let version = |version: u64| {
            let name = backup_file_name(&digest, version);
            fs::write(dir.join(&name), format!("content {version} of {id}\n")).unwrap();
            json!({"code.txt": {"backupFileName": name, "version": version, "backupTime": "2026-01-01T00:00:00.000Z"}})
        };
        let (first, second) = (version(1), version(2));
        self.snapshot(&caller, prompt, true, first);
        let result =
            json!([{"type": "tool_result", "tool_use_id": format!("toolu_{turn}"), "content": "changed"}]);
        self.entry("user", result, json!({"filePath": path, "originalFile": format!("content 1 of {id}\n")}));
        let next = self.entry("user", json!("a prompt in between, in words"), Value::Null);
        self.snapshot(&next, &next, false, second);
    }

    fn long_output(&mut self, turn: usize) {
        let id = format!("toolu_{turn}");
        let call =
            json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "seq 1 9000"}}]);
        self.entry("assistant", call, Value::Null);
        let path = self.place.tool_results_dir().join(format!("b{turn}.txt"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Of no other session, or nobody would notice that it is lost.
        let output = format!("one\ntwo\n{}\n", self.place.id());
        fs::write(&path, &output).unwrap();
        let shown = format!(
            "<persisted-output>\nOutput too large ({} bytes). Full output saved to: {}\n\nPreview (first 2KB):\none\n...\n</persisted-output>",
            output.len(),
            path.display()
        );
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": shown}]);
        self.entry(
            "user",
            result,
            json!({"stdout": "one\ntwo\n", "persistedOutputPath": path, "persistedOutputSize": output.len()}),
        );
    }

    fn subagent(&mut self) {
        let dir = self.place.subagents_dir();
        fs::create_dir_all(&dir).unwrap();
        let line = |uuid: &str, parent: Value| {
            json!({"parentUuid": parent, "isSidechain": true, "type": "user", "uuid": uuid, "agentId": "a1",
                "message": {"role": "user", "content": "an errand"}, "sessionId": self.place.id().as_str(),
                "cwd": self.lab.cwds[self.project]})
        };
        let text = format!("{}\n{}\n", line("s1", Value::Null), line("s2", json!("s1")));
        fs::write(dir.join("agent-a1.jsonl"), text).unwrap();
        fs::write(dir.join("agent-a1.meta.json"), "{}").unwrap();
    }

    /// A log of changes: one content that a file still holds, and one that nothing else does.
    fn tree_history(&mut self) {
        let path = self.lab.cwds[self.project].join(format!("watched-{}.txt", self.place.id()));
        fs::write(&path, format!("after {}\n", self.place.id())).unwrap();
        let blobs = BlobStore::new(&self.lab.home);
        let state = |content: String| {
            let digest = blobs.put(content.as_bytes()).unwrap();
            json!({"is": "file", "content": format!("sha256:{}", loci_core::hex::to_hex(&digest)), "mode": 420,
                "size": content.len()})
        };
        let id = self.place.id();
        let (before, after) = (state(format!("before {id}\n")), state(format!("after {id}\n")));
        let lines = [
            json!({"type": "point", "prompt": "p", "at": "2026-01-01T00:00:00.000Z"}),
            json!({"type": "change", "prompt": "p", "by": "Bash", "at": "2026-01-01T00:00:00.000Z",
                "root": self.lab.cwds[self.project], "changes": [{"path": path, "before": before, "after": after}]}),
        ];
        let log = crate::history::tree_history::log_path(&self.lab.home, id);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(log, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
}

/// What a session says: every message there is, and those that a resume would send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TranscriptTexts {
    pub(super) all: Vec<String>,
    pub(super) path: Vec<String>,
}

/// Loads a transcript, wherever it lies by now; none when it is nowhere.
pub(super) fn load_texts(lab: &Lab, id: &SessionId) -> Option<TranscriptTexts> {
    let file = every_file(&lab.home.projects_dir())
        .into_keys()
        .find(|path| path.file_name().is_some_and(|name| *name == *format!("{id}.jsonl")))?;
    let content = |entry: &loci_core::entry::Entry| {
        entry.fields().read::<Value>("message").map(|message| message["content"].to_string())
    };
    let entries = load_transcript(&file).unwrap().entries;
    let all = entries.iter().filter_map(|entry| content(entry)).collect();
    let path = Conversation::build(entries).into_path().iter().filter_map(|entry| content(entry)).collect();
    Some(TranscriptTexts { all, path })
}

/// Every file below a directory with its bytes.
pub(super) fn every_file(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(every_file(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    found
}
