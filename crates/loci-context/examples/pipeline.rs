//! Prints what the steps before a request cost, by the size of the conversation; `cargo xtask bench context` runs it.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and prints"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_context::{
    Attempt, Guard, Keep, Projection, Replaced, Room, Standing, Subject, Window, context_tokens, need,
};
use loci_core::entry::Entry;
use loci_core::message::Block;
use serde_json::{Value, json};

const RUNS: usize = 15;

fn main() {
    println!("| tokens | entries | before a request | the messages anew | planning a compaction |");
    println!("|---|---|---|---|---|");
    for tokens in [25_000, 50_000, 100_000, 200_000, 400_000, 800_000] {
        let path = path(tokens);
        let window = Window { tokens: tokens as u64 + 33_000, max_output: 20_000, percent: None };
        let replaced = Replaced::default();
        let request = median(|| {
            let tokens = context_tokens(&path, &replaced, 15_000);
            let guard = Guard::default();
            let standing = Standing {
                path: &path,
                replaced: &replaced,
                window,
                tokens,
                guard: &guard,
                clears: true,
                now_ms: 0,
            };
            black_box(need(&standing));
        });
        let anew = median(|| {
            black_box(Projection::with_replaced(path.iter().map(Arc::as_ref), &replaced).messages(None));
        });
        let plan = median(|| {
            let subject = Subject {
                path: path.clone(),
                replaced: replaced.clone(),
                room: Room::new(window, 15_000),
                context: Block::new_text("context"),
                tasks: Vec::new(),
                to_do: Vec::new(),
                focus: None,
            };
            black_box(Attempt::new(subject, Keep::LastRound, None, None));
        });
        println!("| {tokens} | {} | {} | {} | {} |", path.len(), shown(request), shown(anew), shown(plan));
    }
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut taken: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    taken.sort();
    taken[RUNS / 2]
}

fn shown(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1_000.0)
}

/// A conversation of about so many tokens: prompts, answers, calls and results.
fn path(tokens: usize) -> Vec<Arc<Entry>> {
    let mut lines: Vec<Value> = Vec::new();
    for n in 0..tokens / 1_000 {
        let message = |block: Value| {
            json!({"type": "assistant", "uuid": format!("a{n}"), "message": {"id": format!("m{n}"), "content": [block],
            "usage": {"input_tokens": n * 1_000, "output_tokens": 100}}})
        };
        lines.push(json!({"type": "user", "uuid": format!("u{n}"), "message": {"content": "What does it say? ".repeat(10)}}));
        lines.push(message(json!({"type": "text", "text": "I will look at the file. ".repeat(10)})));
        let input = json!({"file_path": format!("/p/file{n}.rs")});
        lines.push(message(
            json!({"type": "tool_use", "id": format!("t{n}"), "name": "Read", "input": input}),
        ));
        let text = "    let value = compute(argument, \"text\");\n".repeat(80);
        lines.push(json!({"type": "user", "uuid": format!("r{n}"), "message": {"content":
            [{"type": "tool_result", "tool_use_id": format!("t{n}"), "content": text}]}}));
    }
    lines.iter().filter_map(|line| Entry::parse(line.to_string()).ok()).map(Arc::new).collect()
}
