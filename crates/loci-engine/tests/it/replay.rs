//! Recorded sessions are played again: what is sent is what was sent, and what runs is what may run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use expect_test::expect;
use loci_core::entry::Entry;
use loci_core::ids::SessionId;
use loci_engine::{ReplayOptions, ReplayReport, replay};
use loci_stdx::Env;
use loci_storage::layout::{ConfigHome, SessionTmp};
use serde_json::{Value, json};

const ID: &str = "0a0a0a0a-0001-4000-8000-000000000001";

/// Every transcript of the reference client that there is.
fn fixtures() -> BTreeMap<String, Vec<Arc<Entry>>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let sessions = files.filter(|file| file.extension().is_some_and(|it| it == "jsonl"));
    let named = |file: &Path| file.file_stem().unwrap().to_string_lossy().into_owned();
    sessions.map(|file| (named(&file), entries(&std::fs::read_to_string(&file).unwrap()))).collect()
}

fn entries(file: &str) -> Vec<Arc<Entry>> {
    file.lines().filter_map(|line| Entry::parse(line).ok()).map(Arc::new).collect()
}

async fn dry(entries: Vec<Arc<Entry>>) -> ReplayReport {
    let root = tempfile::tempdir().unwrap();
    let env = Env::for_test(root.path(), root.path());
    let home = ConfigHome::from_env(&env);
    let tmp = SessionTmp::below(root.path().join("tmp"));
    let session = SessionId::parse(ID).unwrap();
    replay(ReplayOptions { env, home, tmp, session, entries, sandbox: None }).await
}

/// What a report comes to, in a line.
fn sketch(report: &ReplayReport) -> String {
    let taken: Vec<usize> = report.taken_over.iter().map(|taken| taken.n_entries).collect();
    format!(
        "requests {} calls {} taken over {taken:?} compactions {} unanswered {} reordered {}",
        report.requests.len(),
        report.calls.len(),
        report.n_compactions,
        report.n_unanswered,
        report.n_reordered
    )
}

/// Invariant 1 of `docs/design/replay.md`.
#[tokio::test]
async fn the_reference_sessions_are_sent_as_they_were() {
    let mut seen = String::new();
    for (name, entries) in fixtures() {
        let report = dry(entries).await;
        assert!(!report.differs(), "{name}: {report:#?}");
        seen.push_str(&format!("{name}: {}\n", sketch(&report)));
    }
    expect![[r#"
        api_error: requests 2 calls 0 taken over [3] compactions 0 unanswered 0 reordered 0
        branched: requests 3 calls 1 taken over [] compactions 0 unanswered 0 reordered 0
        compacted_auto: requests 6 calls 2 taken over [2] compactions 1 unanswered 1 reordered 0
        compacted_manual: requests 4 calls 1 taken over [] compactions 1 unanswered 2 reordered 0
        compacted_manual_continued: requests 5 calls 1 taken over [9] compactions 1 unanswered 0 reordered 0
        error_tool_result: requests 3 calls 2 taken over [] compactions 0 unanswered 0 reordered 2
        file_history: requests 6 calls 4 taken over [] compactions 0 unanswered 0 reordered 0
        forked: requests 6 calls 4 taken over [] compactions 0 unanswered 0 reordered 1
        handed_back: requests 7 calls 5 taken over [] compactions 0 unanswered 0 reordered 2
        hooks: requests 3 calls 1 taken over [] compactions 0 unanswered 0 reordered 0
        image: requests 1 calls 0 taken over [] compactions 0 unanswered 0 reordered 0
        interactive_interrupted: requests 5 calls 2 taken over [6] compactions 0 unanswered 0 reordered 0
        killed_mid_tool: requests 1 calls 0 taken over [] compactions 0 unanswered 1 reordered 0
        parallel_tools: requests 4 calls 4 taken over [] compactions 0 unanswered 0 reordered 1
        persisted_output: requests 2 calls 1 taken over [] compactions 0 unanswered 0 reordered 0
        resumed_twice: requests 5 calls 4 taken over [] compactions 0 unanswered 0 reordered 1
        simple: requests 1 calls 0 taken over [] compactions 0 unanswered 0 reordered 0
        subagent: requests 2 calls 2 taken over [] compactions 0 unanswered 0 reordered 0
        taken_over: requests 7 calls 5 taken over [] compactions 0 unanswered 0 reordered 0
        tasks: requests 3 calls 3 taken over [] compactions 0 unanswered 0 reordered 0
        thinking: requests 3 calls 1 taken over [] compactions 0 unanswered 0 reordered 0
        truncated_tail: requests 4 calls 4 taken over [] compactions 0 unanswered 1 reordered 1
    "#]]
    .assert_eq(&seen);
}

/// A recording, entry after entry.
#[derive(Default)]
struct Tape {
    lines: Vec<Value>,
    last: Option<String>,
}

impl Tape {
    fn entry(mut self, mut entry: Value) -> Self {
        let id = format!("e{}", self.lines.len());
        entry["uuid"] = json!(id);
        entry["parentUuid"] = json!(self.last);
        self.last = Some(id);
        self.lines.push(entry);
        self
    }

    fn line(mut self, line: Value) -> Self {
        self.lines.push(line);
        self
    }

    fn says(self, text: &str) -> Self {
        self.entry(json!({"type": "user", "message": {"role": "user", "content": text}}))
    }

    fn nudges(self, text: &str) -> Self {
        let content = json!([{"type": "text", "text": text}]);
        self.entry(json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": content}}))
    }

    fn block(self, block: Value, stop: &str) -> Self {
        let id = format!("m{}", self.lines.len());
        self.entry(json!({"type": "assistant", "message": {"id": id, "model": "claude-sonnet-4-5", "role": "assistant",
            "content": [block], "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1}}}))
    }

    fn answers(self, text: &str) -> Self {
        self.block(json!({"type": "text", "text": text}), "end_turn")
    }

    fn calls(self, id: &str, result: &str) -> Self {
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "x"}});
        let block = json!({"tool_use_id": id, "type": "tool_result", "content": result, "is_error": false});
        self.block(call, "tool_use")
            .entry(json!({"type": "user", "message": {"role": "user", "content": [block]}}))
    }

    async fn play(self) -> ReplayReport {
        let file: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        dry(entries(&file)).await
    }
}

fn n_different(report: &ReplayReport) -> usize {
    report.requests.iter().filter(|request| request.difference.is_some()).count()
}

/// Invariant 1 of `docs/design/replay.md`: what the engine says by itself is compared with what it said then.
#[tokio::test]
async fn what_the_engine_would_not_have_sent_is_found() {
    let tape = |nudge: &str| {
        let cut = json!({"type": "text", "text": "One, two,"});
        Tape::default().says("Count.").block(cut, "max_tokens").nudges(nudge).answers("three.")
    };
    let report = tape("Carry on.").says("Again.").answers("One.").play().await;
    assert_eq!((report.requests.len(), n_different(&report)), (3, 1), "{report:#?}");
    let difference = report.requests[1].difference.as_ref().unwrap();
    assert!(difference.contains("-{\"type\":\"text\",\"text\":\"Carry on.\"}"), "{difference}");
    assert_ne!(report.requests[1].sha256, report.requests[1].recorded_sha256);
    assert!(report.differs());
    // What it says now, found out above, is no difference.
    let ours =
        difference.lines().find_map(|line| line.strip_prefix("+{\"type\":\"text\",\"text\":\"")).unwrap();
    let report = tape(ours.strip_suffix("\"}").unwrap()).says("Again.").answers("One.").play().await;
    assert_eq!((report.requests.len(), n_different(&report)), (3, 0), "{report:#?}");
}

/// Invariant 1 of `docs/design/replay.md`: results that were cleared on the way are sent as they were then, before and after.
#[tokio::test]
async fn replaced_results_are_replaced_from_their_place_on() {
    let tape = |is_cleared: bool| {
        let start = Tape::default().says("Look.").calls("t1", "a long result").calls("t2", "another");
        let line = json!({"type": "content-replacement", "replacements": [{"toolUseId": "t1", "content": "(cleared)"}]});
        let start = if is_cleared { start.line(line) } else { start };
        start.answers("Seen.").says("And?").answers("Done.")
    };
    let (plain, cleared) = (tape(false).play().await, tape(true).play().await);
    assert!(!plain.differs() && !cleared.differs(), "{cleared:#?}");
    let same: Vec<bool> =
        plain.requests.iter().zip(&cleared.requests).map(|(one, other)| one.sha256 == other.sha256).collect();
    assert_eq!(same, [true, true, false, false]);
}

/// A recording that no session can have made is said to be one, and ends all the same.
#[tokio::test]
async fn a_recording_that_cannot_be_played_is_said_to_be_one() {
    let report = Tape::default().answers("Out of the blue.").says("Who?").answers("Me.").play().await;
    assert!(report.differs() && report.derailed.len() == 1, "{report:#?}");
    assert_eq!((report.requests.len(), n_different(&report)), (1, 0));
    assert_eq!(
        sketch(&dry(Vec::new()).await),
        "requests 0 calls 0 taken over [] compactions 0 unanswered 0 reordered 0"
    );
}

/// Invariant 3 of `docs/design/replay.md`.
#[tokio::test]
async fn many_results_come_in_their_recorded_order() {
    let ids: Vec<String> = (0..40).map(|n| format!("t{n}")).collect();
    let calls = |id: &String| json!({"type": "tool_use", "id": id, "name": "Anything", "input": {}});
    let mut tape = Tape::default().says("All at once.");
    for id in &ids {
        tape = tape
            .entry(json!({"type": "assistant", "message": {"id": "m", "model": "m", "role": "assistant",
            "content": [calls(id)], "stop_reason": "tool_use"}}));
    }
    for id in ids.iter().rev() {
        let result = json!({"tool_use_id": id, "type": "tool_result", "content": id});
        tape = tape.entry(json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }
    let report = tape.answers("Done.").play().await;
    assert!(!report.differs(), "{report:#?}");
    let order: Vec<&str> = report.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(order, ids.iter().rev().map(String::as_str).collect::<Vec<_>>());
}
