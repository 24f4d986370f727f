//! kill -9 at any moment, again and again: the session goes on, and nothing the model was shown is lost.
//!
//! A few dozen kills run with the other tests; `cargo xtask torture kill` runs a thousand.

use crate::support::{World, print, stream, user};
use loci_testkit::{Recorded, Script, Step};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many kills; set by `cargo xtask torture kill`.
const RUNS: &str = "LOCI_TORTURE_KILLS";
/// Kills of one session, one after the other.
const KILLS_A_SESSION: usize = 4;
/// More than any run gets to before it is killed.
const PROMPTS: usize = 40;
/// How the prompt after a kill begins.
const AFTER: &str = "after kill";
const SESSION: &str = "0a0a0a0a-0001-4000-8000-00000000000c";

/// Invariants 1, 2, 5 and 8 of `docs/design/session-log.md`.
#[tokio::test]
async fn a_session_survives_being_killed_at_any_moment() {
    let n_kills: usize = std::env::var(RUNS).map_or(24, |runs| runs.parse().unwrap());
    let mut dice = Dice(n_kills as u64);
    let mut seen = Seen::default();
    for n_session in 0..n_kills.div_ceil(KILLS_A_SESSION) {
        let torture = Torture::new().await;
        for n_kill in 0..KILLS_A_SESSION.min(n_kills - n_session * KILLS_A_SESSION) {
            torture.kill_once(&mut dice, &mut seen);
            torture.resume(n_kill, &mut seen);
        }
    }
    println!("{n_kills} kills: {seen:?}");
    assert!(seen.requests > 0 && seen.calls > 0, "the kills met a session at work: {seen:?}");
}

/// What the kills met, so that a test that meets nothing fails.
#[derive(Debug, Default)]
struct Seen {
    requests: usize,
    calls: usize,
    before_the_file: usize,
    torn_lines: usize,
    unanswered_calls: usize,
}

/// One session that is killed over and over, and the model that keeps it busy.
struct Torture {
    world: World,
}

impl Torture {
    async fn new() -> Self {
        let n_steps = AtomicUsize::new(0);
        let busy = Step::dynamic(move |request| step(request, n_steps.fetch_add(1, Ordering::Relaxed)));
        Self { world: World::new(Script::new([busy.times(usize::MAX)])).await }
    }

    fn file(&self) -> Option<PathBuf> {
        self.world.home.sessions().pop()
    }

    /// Starts a run that is busy for long, and kills it at a moment that the dice choose.
    fn kill_once(&self, dice: &mut Dice, seen: &mut Seen) {
        let before = self.file().map(|file| fs::read(file).unwrap()).unwrap_or_default();
        let busy =
            stream(["--include-partial-messages", "--allowedTools", "Bash,Edit(ran.log),Read(//dev/zero)"])
                .args(self.which());
        let mut session = self.world.start(&busy);
        for n in 0..PROMPTS {
            session.write_json(&user(&format!("prompt {n} {}", "p".repeat(dice.below(6_000)))));
        }
        for _ in 0..dice.below(150) {
            session.next_line().expect("it has work for longer");
        }
        let moment = Instant::now() + Duration::from_micros(dice.below(4_000) as u64);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        let output = session.crash();
        let after = self.file().map(|file| fs::read(file).unwrap()).unwrap_or_default();
        assert!(after.starts_with(&before), "what was written stays as it is");
        seen.before_the_file += usize::from(after.is_empty());
        self.check_shown(&output.stdout, &after);
        let n_torn = n_broken(&after) - n_broken(&before);
        assert!(n_torn <= 1, "at most the line being written is lost");
        seen.torn_lines += n_torn;
    }

    /// The session goes on if there is one, and begins under the same id if not.
    fn which(&self) -> [&'static str; 2] {
        if self.file().is_some() { ["-r", SESSION] } else { ["--session-id", SESSION] }
    }

    /// What clients were told of prompts and results is on disk; only an answer may still be on its way there.
    fn check_shown(&self, stdout: &str, file: &[u8]) {
        let stored: HashSet<Value> = entries(file).iter().map(|entry| entry["uuid"].clone()).collect();
        for frame in stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let is_result =
                frame["type"] == "user" && frame["message"]["content"][0]["type"] == "tool_result";
            assert!(!is_result || stored.contains(&frame["uuid"]), "shown, but not stored: {frame}");
        }
    }

    /// Goes on with one prompt and compares what is sent with what was sent before the kill.
    fn resume(&self, n: usize, seen: &mut Seen) {
        let shown =
            self.world.model.main_requests().pop().map(|request| blocks(&request)).unwrap_or_default();
        assert!(shown.is_empty() || self.file().is_some(), "nothing is sent before it is stored");
        let prompt = format!("{AFTER} {n}");
        let output = self.world.run(&print([&prompt]).args(self.which()));
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Going on.\n"), "{output:?}");
        let sent = blocks(&self.world.last_request());
        for (n, (before, now)) in shown.iter().zip(&sent).enumerate() {
            assert_eq!(before, now, "block {n} of what the model was shown");
        }
        assert!(sent.len() > shown.len(), "the model is shown what it was shown before, and more");
        self.check_calls(&sent, seen);
        seen.requests += usize::from(!shown.is_empty());
    }

    /// Every call that ran did so once, is known to the model and has its one result.
    fn check_calls(&self, sent: &[(String, Value)], seen: &mut Seen) {
        let ran = fs::read_to_string(self.world.home.project().join("ran.log")).unwrap_or_default();
        let mut once = HashSet::new();
        let mut results: HashMap<&str, &Value> = HashMap::new();
        for (_, block) in sent.iter().filter(|(_, block)| block["type"] == "tool_result") {
            assert!(results.insert(block["tool_use_id"].as_str().unwrap(), block).is_none(), "{block}");
        }
        for id in ran.lines() {
            assert!(once.insert(id), "{id} ran twice");
            let call = sent
                .iter()
                .map(|(_, block)| block)
                .find(|block| block["type"] == "tool_use" && names(block, id));
            let call = call.unwrap_or_else(|| panic!("{id} ran and the model does not know of it"));
            let result = results[call["id"].as_str().unwrap()];
            seen.unanswered_calls += usize::from(result["is_error"] == true);
        }
        seen.calls += once.len();
    }
}

/// What the model says: words that stream, calls that leave a trace, and now and then an end to the turn.
fn step(request: &Recorded, n: usize) -> Step {
    if request.last_user_text().contains(AFTER) {
        return Step::text("Going on.");
    }
    let call = |more: &str| json!({"command": format!("echo call-{n}- >> ran.log{more}")});
    let step = match n % 6 {
        0 => Step::text("Word by word by word by word. ".repeat(10)).tool("Bash", call("")),
        1 => Step::call("Bash", call("; head -c 9000 /dev/zero | tr '\\0' x")),
        2 => Step::text("x".repeat(20_000)).chunk(2_000).tool("Bash", call("")),
        3 => Step::call("Bash", call("")).tool("Bash", json!({"command": "ls"})).thinking("Hm.", "c2ln"),
        4 => Step::text("Done for now. ".repeat(800)).chunk(1_000),
        _ => Step::call("Bash", call("; sleep 0.05")),
    };
    step.chunk_delay(Duration::from_micros(200))
}

fn names(call: &Value, id: &str) -> bool {
    call["input"]["command"].as_str().is_some_and(|command| command.starts_with(&format!("echo {id} ")))
}

/// The conversation of a request, block by block, without what changes from request to request.
fn blocks(request: &Recorded) -> Vec<(String, Value)> {
    let mut blocks = Vec::new();
    for message in request.messages() {
        let role = message["role"].as_str().unwrap();
        let content = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            content => content.as_array().unwrap().clone(),
        };
        blocks.extend(content.into_iter().map(|mut block| {
            block.as_object_mut().unwrap().remove("cache_control");
            (role.to_owned(), block)
        }));
    }
    // The date may change while the test runs.
    blocks.retain(|(_, block)| !block["text"].as_str().unwrap_or_default().starts_with("<system-reminder>"));
    blocks
}

fn entries(file: &[u8]) -> Vec<Value> {
    file.split(|byte| *byte == b'\n').filter_map(parse).collect()
}

fn n_broken(file: &[u8]) -> usize {
    let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.filter(|line| parse(line).is_none()).count()
}

fn parse(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line).ok()
}

/// Numbers that are the same in every run of the test.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}
