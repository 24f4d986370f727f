//! Measures what a compacted conversation still knows: facts are planted through long conversations, which are then
//! compacted with a summary that says nothing; how many facts are in the next request, and how many one lookup with a
//! plain question finds. No model is asked. Prints a table.
//!
//! `cargo run --release -p loci-storage --example recall -- DIRECTORY`
#![expect(clippy::print_stdout, reason = "figures are for the person who runs this")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use loci_context::Projection;
use loci_core::recall::{RecallQuery, RecallResult, RecallSearch};
use loci_storage::search::recall;
use loci_storage::sessions::load_live;
use serde_json::{Value, json};

/// Facts of one conversation.
const FACTS: usize = 240;
/// Messages between compactions.
const STRETCH: usize = 400;
/// What the tool shows of one lookup unless told otherwise.
const LIMIT: usize = 8;
const EXCERPT: usize = 900;

const QUALITIES: [&str; 12] = [
    "amber", "brisk", "copper", "distant", "eager", "frozen", "golden", "hollow", "iron", "jade", "keen",
    "lunar",
];
const THINGS: [&str; 12] = [
    "falcon", "harbour", "lantern", "meadow", "otter", "pebble", "quarry", "river", "sparrow", "timber",
    "valley", "willow",
];
const TRAITS: [&str; 6] = ["port", "token name", "retry limit", "bucket", "release date", "owner"];
const FILLER: [&str; 16] = [
    "the", "service", "returns", "an", "error", "when", "port", "limit", "config", "test", "we", "should",
    "check", "token", "owner", "build",
];

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("name a directory")?;
    println!(
        "| messages | compactions | size | facts | in the next request | found by one lookup | best match | a lookup, median | 95 of 100 |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for n_messages in [1_000, 4_000, 16_000] {
        let file = Path::new(&dir).join(format!("recall-{n_messages}.jsonl"));
        let facts = write(&file, n_messages)?;
        println!("{}", measure(&file, n_messages, &facts)?);
    }
    Ok(())
}

/// Something that was said once.
struct Fact {
    question: String,
    value: String,
}

fn measure(file: &Path, n_messages: usize, facts: &[Fact]) -> Result<String, Box<dyn Error>> {
    let path = load_live(file)?.conversation.into_path();
    let sent = serde_json::to_string(
        &Projection::from_path(path.iter().map(AsRef::as_ref))
            .messages(None)
            .iter()
            .flat_map(|message| message.content.iter().map(|block| block.to_value()).collect::<Vec<Value>>())
            .collect::<Vec<Value>>(),
    )?;
    let n_sent = facts.iter().filter(|fact| sent.contains(&fact.value)).count();
    let (mut n_found, mut n_best) = (0, 0);
    let mut times = Vec::new();
    for fact in facts {
        let search = RecallSearch {
            query: fact.question.clone(),
            voice: None,
            skip: 0,
            limit: LIMIT,
            excerpt: EXCERPT,
        };
        let began = Instant::now();
        let answer = recall(file, &RecallQuery::Search(search), &AtomicBool::new(false))?;
        times.push(began.elapsed());
        let RecallResult::Found { hits, .. } = answer else { return Err("not a search".into()) };
        let place = hits.iter().position(|hit| hit.excerpt.contains(&fact.value));
        n_found += usize::from(place.is_some());
        n_best += usize::from(place == Some(0));
    }
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(format!(
        "| {n_messages} | {} | {:.1} MB | {} | {n_sent} | {n_found} | {n_best} | {:.0} ms | {:.0} ms |",
        n_messages / STRETCH,
        fs::metadata(file)?.len() as f64 / 1e6,
        facts.len(),
        ms(times[times.len() / 2]),
        ms(times[times.len() * 95 / 100]),
    ))
}

/// Writes a conversation with its compactions and returns what was planted.
fn write(file: &Path, n_messages: usize) -> Result<Vec<Fact>, Box<dyn Error>> {
    let mut random = Random(7);
    let mut facts = Vec::new();
    let mut text = String::new();
    let mut parent: Option<String> = None;
    for n in 0..n_messages {
        let planted =
            (facts.len() < FACTS && n * FACTS / n_messages >= facts.len()).then(|| fact(facts.len()));
        let mut words = filler(&mut random);
        if let Some((fact, sentence)) = planted {
            words = format!("{words} {sentence} {}", filler(&mut random));
            facts.push(fact);
        }
        let uuid = format!("m{n:06}");
        text.push_str(&format!("{}\n", message(n, &uuid, parent.as_deref(), &words)));
        parent = Some(uuid);
        if n % STRETCH == STRETCH - 1 {
            let (boundary, summary) = (format!("b{n:06}"), format!("s{n:06}"));
            for line in compaction(&boundary, &summary, parent.as_deref()) {
                text.push_str(&format!("{line}\n"));
            }
            parent = Some(summary);
        }
    }
    fs::write(file, text)?;
    Ok(facts)
}

fn fact(n: usize) -> (Fact, String) {
    let (quality, thing) = (QUALITIES[n % 12], THINGS[n / 12 % 12]);
    let quality_of = TRAITS[(n + n / 12 + n / 144) % 6];
    let value = format!("v{:05}", 10_000 + n * 37);
    let sentence = format!("The {quality_of} of the {quality} {thing} cluster is {value}.");
    (Fact { question: format!("what was the {quality_of} of the {quality} {thing}"), value }, sentence)
}

/// A prompt, an answer, a call or a result by turns.
fn message(n: usize, uuid: &str, parent: Option<&str>, words: &str) -> Value {
    let (kind, content) = match n % 4 {
        0 => ("user", json!(words)),
        1 => ("assistant", json!([{"type": "text", "text": words}])),
        2 => (
            "assistant",
            json!([{"type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": {"command": words}}]),
        ),
        _ => {
            ("user", json!([{"type": "tool_result", "tool_use_id": format!("t{}", n - 1), "content": words}]))
        }
    };
    json!({"parentUuid": parent, "isSidechain": false, "type": kind, "uuid": uuid, "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"id": format!("msg{n}"), "role": kind, "content": content}})
}

fn compaction(boundary: &str, summary: &str, last: Option<&str>) -> [Value; 2] {
    [
        json!({"type": "system", "subtype": "compact_boundary", "uuid": boundary, "parentUuid": null,
            "logicalParentUuid": last, "sessionId": "s", "compactMetadata": {"trigger": "auto"}}),
        json!({"type": "user", "uuid": summary, "parentUuid": boundary, "isCompactSummary": true, "sessionId": "s",
            "message": {"role": "user", "content": "Work went on. Nothing in particular is kept."}}),
    ]
}

fn filler(random: &mut Random) -> String {
    let n_words = 10 + random.below(120);
    let words: Vec<&str> = (0..n_words)
        .map(|_| match random.below(12) {
            0 => QUALITIES[random.below(12)],
            1 => THINGS[random.below(12)],
            _ => FILLER[random.below(16)],
        })
        .collect();
    words.join(" ")
}

/// The same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
