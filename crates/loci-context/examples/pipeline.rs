//! Prints what the steps before a request cost, by the size of the conversation; `cargo xtask bench context` runs it.
//!
//! With a step, a size and a number it does that step so many times and prints nothing, for tools that count
//! instructions: `pipeline fill 200000 11` less `pipeline fill 200000 1` is what ten times cost.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_context::{
    CompactionAttempt, CompactionGuard, CompactionInput, ContextRoom, ContextState, KeepRecent, Projection,
    Replaced, Window, context_tokens, next_context_action,
};
use loci_core::entry::Entry;
use loci_core::message::Block;
use loci_core::tool::{ToolFactTable, ToolFacts};
use serde_json::{Value, json};

const RUNS: usize = 15;
const OVERHEAD: u64 = 15_000;
/// An hour and a half after the last response, when old results may go because the cache is cold.
const LATE_MS: i64 = 1_767_268_800_000 + 90 * 60 * 1_000;

/// What is measured.
const STEPS: [(&str, &str, Step); 5] = [
    ("loaded", "the first time", loaded),
    ("below", "with room left", below),
    ("fill", "at the trigger", fill),
    ("messages", "the messages anew", messages),
    ("plan", "planning a compaction", plan),
];

type Step = fn(&Conversation);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [step, tokens, times] => repeat(step, tokens.parse().unwrap_or(0), times.parse().unwrap_or(0)),
        _ => table(),
    }
}

/// Does one step so many times. The first step of all is done on entries that nobody has looked at, read before.
fn repeat(name: &str, tokens: usize, times: usize) {
    let conversation = Conversation::of(tokens);
    for (_, _, step) in STEPS.iter().filter(|(step, ..)| *step == name) {
        fill(&conversation);
        for _ in 0..times {
            let fresh = (name == "loaded").then(|| conversation.reloaded());
            step(fresh.as_ref().unwrap_or(&conversation));
        }
    }
}

fn table() {
    let titles: Vec<&str> = STEPS.iter().map(|(_, title, _)| *title).collect();
    println!("| tokens | entries | {} |", titles.join(" | "));
    println!("|---|---|{}", "---|".repeat(STEPS.len()));
    for tokens in [25_000, 50_000, 100_000, 200_000, 400_000, 800_000] {
        let conversation = Conversation::of(tokens);
        let times =
            STEPS.map(|(name, _, step)| format_duration(median(&conversation, name == "loaded", step)));
        println!("| {tokens} | {} | {} |", conversation.path.len(), times.join(" | "));
    }
}

/// The first time is measured on entries that nobody has looked at.
fn median(conversation: &Conversation, is_first: bool, step: Step) -> Duration {
    let mut taken: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let fresh = is_first.then(|| conversation.reloaded());
            let conversation = fresh.as_ref().unwrap_or(conversation);
            let began = Instant::now();
            step(conversation);
            began.elapsed()
        })
        .collect();
    taken.sort();
    taken[RUNS / 2]
}

fn format_duration(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1_000.0)
}

struct Conversation {
    path: Vec<Arc<Entry>>,
    tokens: u64,
    replaced: Replaced,
}

impl Conversation {
    fn of(tokens: usize) -> Self {
        Self { path: path(tokens), tokens: tokens as u64, replaced: Replaced::default() }
    }

    fn reloaded(&self) -> Self {
        let read = |entry: &Arc<Entry>| Entry::parse(entry.line()).ok().map(Arc::new);
        Self {
            path: self.path.iter().filter_map(read).collect(),
            tokens: self.tokens,
            replaced: Replaced::default(),
        }
    }

    /// A window whose trigger lies so much above the conversation.
    fn window(&self, above: u64) -> Window {
        Window { tokens: self.tokens + above + 33_000, max_output: 20_000, percent: None }
    }

    fn next_context_action(&self, window: Window, tokens: u64, now_ms: i64) {
        let guard = CompactionGuard::default();
        let read = ToolFacts { is_clearable: true, ..ToolFacts::default() };
        let tools = &ToolFactTable::from_iter([("Read", read)]);
        let (path, replaced) = (self.path.as_slice(), &self.replaced);
        let compact_from = ContextRoom::from_path(window, OVERHEAD, path, replaced).trigger();
        let guard = &guard;
        let (snips, clears_cold) = (true, true);
        let state = ContextState {
            path,
            replaced,
            tools,
            window,
            tokens,
            compact_from,
            guard,
            snips,
            clears_cold,
            now_ms,
        };
        black_box(next_context_action(&state));
    }
}

/// A session was just loaded, after a pause: all there is is looked at for the first time.
fn loaded(conversation: &Conversation) {
    let tokens = context_tokens(&conversation.path, &conversation.replaced, OVERHEAD);
    conversation.next_context_action(conversation.window(0), tokens, LATE_MS);
}

fn below(conversation: &Conversation) {
    let tokens = context_tokens(&conversation.path, &conversation.replaced, OVERHEAD);
    conversation.next_context_action(conversation.window(50_000), tokens, 0);
}

/// The window is full, and old results are looked for.
fn fill(conversation: &Conversation) {
    let tokens = context_tokens(&conversation.path, &conversation.replaced, OVERHEAD);
    conversation.next_context_action(conversation.window(0), tokens + conversation.tokens, 0);
}

fn messages(conversation: &Conversation) {
    let path = conversation.path.iter().map(Arc::as_ref);
    black_box(Projection::with_replaced(path, &conversation.replaced).messages(None));
}

fn plan(conversation: &Conversation) {
    let input = CompactionInput {
        path: conversation.path.clone(),
        replaced: conversation.replaced.clone(),
        room: ContextRoom::new(conversation.window(0), OVERHEAD),
        context: Block::new_text("context"),
        tasks: Vec::new(),
        to_do: Vec::new(),
        focus: None,
        keep_from: None,
    };
    black_box(CompactionAttempt::new(input, KeepRecent::LastRound, None, None));
}

/// A conversation of about so many tokens: prompts, answers, calls and results.
fn path(tokens: usize) -> Vec<Arc<Entry>> {
    let mut lines: Vec<Value> = Vec::new();
    for n in 0..tokens / 1_000 {
        let message = |block: Value| {
            json!({"type": "assistant", "uuid": format!("a{n}"), "timestamp": "2026-01-01T12:00:00.000Z",
                "message": {"id": format!("m{n}"), "content": [block],
                    "usage": {"input_tokens": n * 1_000, "output_tokens": 100}}})
        };
        lines.push(json!({"type": "user", "uuid": format!("u{n}"), "message": {"content": "What does it say? ".repeat(10)}}));
        lines.push(message(json!({"type": "text", "text": "I will look at the file. ".repeat(10)})));
        let input = json!({"file_path": format!("/p/file{n}.rs")});
        lines.push(message(
            json!({"type": "tool_use", "id": format!("t{n}"), "name": "Read", "input": input}),
        ));
        let text = "    let value = compute(argument, \"text\");\n".repeat(80);
        // As Read records it: the text is there twice.
        let told = json!({"type": "text", "file": {"filePath": format!("/p/file{n}.rs"), "content": text}});
        lines.push(
            json!({"type": "user", "uuid": format!("r{n}"), "toolUseResult": told, "message": {"content":
            [{"type": "tool_result", "tool_use_id": format!("t{n}"), "content": text}]}}),
        );
    }
    lines.iter().filter_map(|line| Entry::parse(line.to_string()).ok()).map(Arc::new).collect()
}
