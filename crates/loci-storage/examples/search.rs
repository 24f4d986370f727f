//! Measures searching: makes realistic transcripts, builds the index, and asks for rare and common words.
//!
//! `cargo run --release -p loci-storage --example search -- DIRECTORY MEGABYTES [SESSIONS] [common]` makes them, indexes and
//! searches; a directory that already has them is used as it is. The directory is an absolute path. With `common`, messages are
//! short and nearly each has the common words, which is as hard as it gets: five times as many passages have each. Beside
//! times on the clock it tells CPU time, which says more where others share the machine. With the variable `QUICK` an index that
//! is there is kept, and nothing is searched without it; `ONLY` names the one query to ask, and `RUNS` says how often: once in
//! a process of its own is as people ask.
#![allow(clippy::disallowed_methods, reason = "it reads what it wrote itself")]
#![expect(clippy::print_stdout, reason = "figures are for the person who runs this")]

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use loci_stdx::{Env, TimeZone};
use loci_storage::layout::ConfigHome;
use loci_storage::search::{IndexUse, NoObserver, SearchFilter, SearchQuery, search_sessions, update_index};
use loci_storage::sessions::{StatisticsQuery, session_statistics};
use serde_json::{Value, json};

/// How many sessions share the bytes, unless another number is given.
const SESSIONS: usize = 2_000;
/// How often each query is asked, unless the variable says otherwise.
const RUNS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("name a directory")?;
    let megabytes: usize = std::env::args().nth(2).unwrap_or_else(|| "100".to_owned()).parse()?;
    let n_sessions = std::env::args().nth(3).map_or(Ok(SESSIONS), |number| number.parse())?;
    let words = match std::env::args().nth(4).as_deref() {
        None => WordSpread::Natural,
        Some("common") => WordSpread::Common,
        Some(other) => return Err(format!("not a kind of transcript: {other}").into()),
    };
    let mut env = Env::for_test(Path::new(&dir), Path::new(&dir));
    env.vars = [("CLAUDE_CONFIG_DIR", dir.as_str())].into_iter().collect();
    let home = ConfigHome::from_env(&env);
    if !home.projects_dir().exists() {
        make(&home, megabytes, n_sessions, words)?;
    }
    let index = home.loci_dir().join("index");
    let is_quick = std::env::var_os("QUICK").is_some();
    if index.exists() && !is_quick {
        fs::remove_dir_all(&index)?;
    }
    let began = Instant::now();
    update_index(&home, "bench", &NoObserver)?;
    let built = began.elapsed();
    let size: u64 =
        fs::read_dir(&index)?.flatten().filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum();
    println!("| index | figure |\n|---|---:|");
    println!("| transcripts | {:.0} MB |", n_bytes(&home.projects_dir())? as f64 / 1e6);
    println!("| time to build | {:.1} s |", built.as_secs_f64());
    println!("| size | {:.0} MB |", size as f64 / 1e6);
    println!("| segments | {} |", fs::read_dir(&index)?.count() - 1);
    if !is_quick {
        count_responses(&home)?;
    }
    println!(
        "\n| query | passages | median | 95 of 100 | CPU time | scan without the index |\n|---|---:|---:|---:|---:|---:|"
    );
    let only = std::env::var("ONLY").ok();
    for (name, query) in QUERIES.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|it| it == *name))
    {
        println!("{}", ask(&home, name, query)?);
    }
    Ok(())
}

fn count_responses(home: &ConfigHome) -> Result<(), Box<dyn Error>> {
    let wish = StatisticsQuery::new(TimeZone::UTC);
    let began = Instant::now();
    let rows = session_statistics(home, &wish)?.rows;
    let counted = began.elapsed();
    let n_responses: u64 = rows.iter().map(|row| row.n_responses).sum();
    println!(
        "| counting what {n_responses} responses used (`loci stats`) | {:.1} s |",
        counted.as_secs_f64()
    );
    Ok(())
}

const QUERIES: [(&str, &str); 8] = [
    ("a word of one message", "needle000000"),
    ("a rare word", "w9999"),
    ("a common word", "the"),
    ("two common words", "the error"),
    ("a common and a rare word", "error w9999"),
    ("words together", "\"the error\""),
    ("three common words together", "\"file test error\""),
    ("any ending", "w1999*"),
];

fn ask(home: &ConfigHome, name: &str, query: &str) -> Result<String, Box<dyn Error>> {
    let wish = SearchQuery {
        text: query.to_owned(),
        is_regex: false,
        filter: SearchFilter::default(),
        skip: 0,
        limit: 20,
    };
    let n_runs = std::env::var("RUNS").map_or(Ok(RUNS), |number| number.parse())?.max(1);
    let mut times = Vec::new();
    let mut n_found = 0;
    let used = cpu_time();
    for _ in 0..n_runs {
        let began = Instant::now();
        n_found = search_sessions(home, &wish, IndexUse::AsItIs, "bench", &NoObserver)?.n_found;
        times.push(began.elapsed());
    }
    times.sort();
    let used = (cpu_time() - used) / u32::try_from(n_runs)?;
    let began = Instant::now();
    if std::env::var_os("QUICK").is_none() {
        search_sessions(home, &wish, IndexUse::None, "bench", &NoObserver)?;
    }
    let scanned = began.elapsed();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(format!(
        "| {name}: `{query}` | {n_found} | {:.1} ms | {:.1} ms | {:.1} ms | {:.0} ms |",
        ms(times[n_runs / 2]),
        ms(times[n_runs * 95 / 100]),
        ms(used),
        ms(scanned),
    ))
}

/// Returns how long this process has been computing, on all its threads; nothing where the system does not say.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().skip(11).take(2);
    // A tick is a hundredth of a second wherever this runs.
    Duration::from_millis(10 * fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>())
}

fn n_bytes(dir: &Path) -> Result<u64, Box<dyn Error>> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)?.flatten() {
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { n_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

/// How words are spread over messages.
#[derive(Clone, Copy)]
enum WordSpread {
    /// As people and models use them.
    Natural,
    /// The common ones are nearly everywhere.
    Common,
}

/// Writes sessions of many sizes: prompts, answers, calls with code, results with output and their structured copies.
fn make(
    home: &ConfigHome,
    megabytes: usize,
    n_sessions: usize,
    words: WordSpread,
) -> Result<(), Box<dyn Error>> {
    let mut random = Random(11);
    let vocabulary = vocabulary();
    let mut n_messages = 0;
    for session in 0..n_sessions {
        // A few sessions are long, most are short.
        let share = [4, 1, 1, 1, 1, 1, 1, 1, 20, 1][session % 10];
        let wanted = megabytes * 1_000_000 / n_sessions * share / 32 * 10;
        let dir = home.projects_dir().join(format!("-home-dev-project{}", session % 40));
        fs::create_dir_all(&dir)?;
        let file = dir.join(format!("0a0a0a0a-0001-4000-8000-{session:012}.jsonl"));
        let mut out = BufWriter::new(fs::File::create(file)?);
        let mut n_written = 0;
        let mut n = 0;
        while n_written < wanted {
            let line = match words {
                WordSpread::Natural => message(session, n, n_messages, &vocabulary, &mut random),
                WordSpread::Common => short_message(session, n, n_messages, &vocabulary, &mut random),
            };
            let line = line.to_string();
            n_written += line.len() + 1;
            writeln!(out, "{line}")?;
            n += 1;
            n_messages += 1;
        }
        out.flush()?;
    }
    Ok(())
}

/// Words by how common they are: a few make up most of any text.
fn vocabulary() -> Vec<String> {
    let common = [
        "the", "error", "file", "test", "a", "is", "to", "of", "and", "in", "function", "return", "let", "if",
    ];
    let rest = (common.len()..20_000).map(|n| format!("w{n}"));
    common.iter().map(|word| (*word).to_owned()).chain(rest).collect()
}

fn text(n_words: usize, vocabulary: &[String], random: &mut Random) -> String {
    let mut text = String::new();
    for n in 0..n_words {
        // The product of two even numbers is mostly small, which is how words are spread.
        let rank = random.below(20_000) * random.below(20_000) / 20_000 * random.below(1_000) / 1_000;
        text.push_str(&vocabulary[rank]);
        text.push_str(if n % 11 == 10 { "\n    " } else { " " });
        if n % 40 == 39 {
            text.push_str(&format!("{:08x} ", random.below(usize::MAX)));
        }
    }
    text
}

/// A prompt or an answer of some eighty words, every second of them one of six.
fn short_message(
    session: usize,
    n: usize,
    n_all: usize,
    vocabulary: &[String],
    random: &mut Random,
) -> Value {
    let mut said = format!("needle{n_all:06}");
    for _ in 0..40 + random.below(80) {
        let rank = if random.below(2) == 0 { random.below(6) } else { random.below(vocabulary.len()) };
        said.push(' ');
        said.push_str(&vocabulary[rank]);
    }
    let kind = if n.is_multiple_of(2) { "user" } else { "assistant" };
    line_of(session, n, n_all, (kind, json!([{"type": "text", "text": said}]), Value::Null), said.len() / 6)
}

fn message(session: usize, n: usize, n_all: usize, vocabulary: &[String], random: &mut Random) -> Value {
    let n_words = 5 + random.below(80);
    let (kind, content, structured) = match n % 4 {
        0 => ("user", json!(format!("needle{n_all:06} {}", text(n_words, vocabulary, random))), Value::Null),
        1 => ("assistant", json!([{"type": "text", "text": text(n_words, vocabulary, random)}]), Value::Null),
        2 => {
            let input = json!({"file_path": format!("/home/dev/project/src/f{}.rs", random.below(500)),
                "old_string": text(n_words, vocabulary, random), "new_string": text(n_words, vocabulary, random)});
            (
                "assistant",
                json!([{"type": "tool_use", "id": format!("t{n}"), "name": "Edit", "input": input}]),
                Value::Null,
            )
        }
        _ => {
            let output = text(n_words * 8, vocabulary, random);
            let block =
                json!([{"type": "tool_result", "tool_use_id": format!("t{}", n - 1), "content": output}]);
            ("user", block, json!({"stdout": output, "stderr": ""}))
        }
    };
    line_of(session, n, n_all, (kind, content, structured), n_words)
}

fn line_of(
    session: usize,
    n: usize,
    n_all: usize,
    (kind, content, structured): (&str, Value, Value),
    n_words: usize,
) -> Value {
    let minute = n_all % 500_000;
    let usage = json!({"input_tokens": n, "cache_read_input_tokens": 1_000 * n, "output_tokens": n_words});
    json!({"parentUuid": if n == 0 { Value::Null } else { json!(format!("m{session}-{}", n - 1)) }, "isSidechain": false,
        "type": kind, "message": {"id": format!("msg_{session}_{n}"), "role": kind, "model": "claude-sonnet-4-5", "content": content, "usage": usage}, "uuid": format!("m{session}-{n}"),
        "timestamp": format!("2026-{:02}-{:02}T{:02}:{:02}:00.000Z", 1 + minute / 43_200 % 12, 1 + minute / 1_440 % 28, minute / 60 % 24, minute % 60),
        "userType": "external", "entrypoint": "cli", "cwd": format!("/home/dev/project{}", session % 40),
        "sessionId": format!("0a0a0a0a-0001-4000-8000-{session:012}"), "version": "2.1.197", "gitBranch": "main",
        "toolUseResult": structured})
}

/// The same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
