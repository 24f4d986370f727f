//! Prints what a compaction from notes adds between a response and the next request; `cargo xtask bench context` runs it.
//!
//! `compacting PATH` starts the loci at that path against the scripted model, once a run. Prompts fill the window, and the
//! notes agent keeps notes as it would. In the last turn the model calls Read twice: after the first response there is room
//! left, after the second there is none. Both gaps are measured from the moment an answer may be sent to the moment the next
//! request has arrived in full, so that they have the same work in them but for the compaction.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends where it cannot go on"
)]

use std::time::{Duration, Instant};

use loci_testkit::{Binary, Gate, Recorded, Script, ScriptedModel, Session, Step, TestHome};
use serde_json::{Value, json};

const RUNS: usize = 5;
/// What users may be made to wait.
const TARGET_MS: f64 = 50.0;
/// Windows, in tokens.
const WINDOWS: [u64; 4] = [100_000, 200_000, 400_000, 1_000_000];
/// From how much on a window is full is the window less this.
const RESERVE: u64 = 33_000;
/// The least that a prompt takes: after as much notes are due.
const LEAST_PROMPT: u64 = 6_000;
/// How many prompts fill a window.
const N_PROMPTS: u64 = 20;
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const NOTES_MARK: &str = "You keep running notes of this conversation in ";
const WORKLOG: &str =
    "_Step by step, in as few words as possible: what was tried and done. The newest at the end._";

#[tokio::main]
async fn main() {
    let loci = std::env::args().nth(1).expect("the path of the loci to measure");
    println!("| window | tokens sent before | the gap without | with a compaction | added | under 50 ms |");
    println!("|---:|---:|---:|---:|---:|---|");
    for window in WINDOWS {
        let mut gaps = Vec::new();
        for _ in 0..RUNS {
            gaps.push(Run::new(&loci, window).await.measure().await);
        }
        println!("{}", row(window, &gaps));
    }
}

/// What one run came to.
struct Gaps {
    tokens: u64,
    without: Duration,
    with: Duration,
}

fn row(window: u64, gaps: &[Gaps]) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let without = median(gaps.iter().map(|gap| ms(gap.without)).collect());
    let with = median(gaps.iter().map(|gap| ms(gap.with)).collect());
    let added = median(gaps.iter().map(|gap| ms(gap.with) - ms(gap.without)).collect());
    let tokens = median(gaps.iter().map(|gap| gap.tokens as f64).collect());
    let verdict = if added < TARGET_MS { "met" } else { "missed" };
    format!("| {window} | {tokens:.0} | {without:.1} ms | {with:.1} ms | {added:.1} ms | {verdict} |")
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A conversation that grows.
struct Run {
    home: TestHome,
    model: ScriptedModel,
    session: Session,
    window: u64,
    /// The answers before and behind the measured gaps.
    gates: [Gate; 2],
}

impl Run {
    async fn new(loci: &str, window: u64) -> Self {
        let home = TestHome::new();
        home.write("source.rs", "    let value = compute(argument, \"text\");\n".repeat(40));
        let gates = [Gate::new(), Gate::new()];
        let (before, full) = (gates[0].clone(), gates[1].clone());
        let talk = Step::dynamic(move |request| answer(request, window, &before, &full));
        let script = Script::new([talk.times(usize::MAX)]).answer_when(Step::dynamic(keep_notes), is_notes);
        let model = ScriptedModel::start(script).await;
        let binary = Binary::new(loci)
            .args(["-p", "--model", "claude-sonnet-4-5", "--verbose"])
            .args(["--input-format", "stream-json", "--output-format", "stream-json"])
            .env("LOCI_SESSION_MEMORY", "1")
            .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", window.to_string());
        let session = binary.start(&home, model.base_url());
        Self { home, model, session, window, gates }
    }

    async fn measure(mut self) -> Gaps {
        let prompt = (self.window / N_PROMPTS).max(LEAST_PROMPT);
        let text = "What does the next part of it say? ".repeat(usize::try_from(prompt * 4 / 35).unwrap());
        let mut tokens = 0;
        while tokens + prompt * 3 / 2 < self.window - RESERVE {
            self.ask(&text);
            let result = self.session.wait_for_json(|frame| frame["type"] == "result");
            tokens = result["loci"]["context"]["tokens"].as_u64().unwrap();
        }
        self.wait_for_notes();
        self.ask("measure");
        let mut sent = Vec::new();
        for gate in &self.gates {
            gate.reached().await;
            sent.push(Instant::now());
            gate.release();
        }
        self.session.wait_for_json(|frame| frame["type"] == "result");
        self.model.requests_valid().unwrap();
        let mut main = self.main();
        let last = main.split_off(main.len() - 3);
        let is_shorter =
            |request: &Recorded| request.json["messages"].to_string().contains("was compacted to make room");
        assert!(!is_shorter(&last[1]) && is_shorter(&last[2]), "compacted between the last two requests");
        assert!(last[2].json["messages"].to_string().contains("- asked what it says"), "from notes");
        let gap = |n: usize| last[n + 1].arrived.duration_since(sent[n]);
        let gaps = Gaps { tokens: size(&last[1]), without: gap(0), with: gap(1) };
        self.session.finish();
        gaps
    }

    fn ask(&mut self, text: &str) {
        self.session.write_json(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    fn main(&self) -> Vec<Recorded> {
        self.model.main_requests().into_iter().filter(|request| !is_notes(request)).collect()
    }

    /// Waits until the notes cover the last prompt.
    fn wait_for_notes(&self) {
        let transcript = self
            .home
            .sessions()
            .into_iter()
            .find(|path| !path.to_string_lossy().contains("subagents"))
            .unwrap();
        let entries = self.home.read_session(&transcript);
        let said =
            entries.iter().rev().filter(|entry| entry["type"] == "assistant" || entry["type"] == "user");
        let last: Vec<Value> = said.take(2).map(|entry| entry["uuid"].clone()).collect();
        let state = transcript.with_extension("").join("session-memory/state.json");
        let covers = || -> Option<Value> {
            let text = std::fs::read_to_string(&state).ok()?;
            Some(serde_json::from_str::<Value>(&text).ok()?["covers"].clone())
        };
        let began = Instant::now();
        while covers().is_none_or(|covered| !last.contains(&covered)) {
            assert!(began.elapsed() < PATIENCE, "the notes were not brought up to date");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn is_notes(request: &Recorded) -> bool {
    request.messages().iter().any(|message| message["content"].to_string().contains(NOTES_MARK))
}

/// About how many tokens a request has.
fn size(request: &Recorded) -> u64 {
    request.body.len() as u64 / 4
}

/// What the model says: to each prompt a few words, to the last two calls.
fn answer(request: &Recorded, window: u64, before: &Gate, full: &Gate) -> Step {
    let trigger = window - RESERVE;
    let counted = |step: Step, tokens: u64| step.usage(10, 20, tokens - 30, 0);
    let read = || Step::call("Read", json!({"file_path": "source.rs", "limit": 40}));
    let text = request.json["messages"].to_string();
    if text.contains("was compacted to make room") || text.matches("\"tool_use\"").count() > 1 {
        return Step::text("Done.");
    }
    let n_results = request.tool_results().len();
    match (request.last_user_text().contains("measure"), n_results) {
        (true, _) => counted(read(), trigger - 500).wait_before_headers(before.clone()),
        (false, 1..) => counted(read(), trigger + 10).wait_before_headers(full.clone()),
        (false, 0) => counted(Step::text("It says that much. ".repeat(20)), size(request)),
    }
}

/// What the notes agent does: a line more, then an end.
fn keep_notes(request: &Recorded) -> Step {
    let text = request.last_user_text();
    let Some(path) = text.split(NOTES_MARK).nth(1).and_then(|rest| rest.split(".md").next()) else {
        return Step::text("Noted.");
    };
    Step::call(
        "Edit",
        json!({
            "file_path": format!("{path}.md"),
            "old_string": WORKLOG,
            "new_string": format!("{WORKLOG}\n- asked what it says"),
        }),
    )
}
