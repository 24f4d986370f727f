//! Measures what a start and `loci memory` spend on ten thousand memories.
//!
//! `cargo xtask bench memory` runs it. Each line of output is a piece of work, and the median, the 95th percentile and
//! the first of many rounds, in microseconds.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement talks, and stops when it cannot go on"
)]

use std::time::Instant;

use loci_context::{MemoryFile, contradictions, index_line, most_related, render_index, same_subject};
use loci_stdx::Env;
use loci_storage::config::strip_html_comments;
use loci_storage::layout::ConfigHome;
use loci_storage::memory::{
    Author, ChangeKind, ChangeRequest, Edit, MEMORY_INDEX, MemoryJournal, memory_files, memory_names,
    memory_texts, read_memory,
};

const MEMORIES: usize = 10_000;
const PROPOSALS: usize = 100;
/// As many as `loci memory review` compares proposals with.
const COMPARED: usize = 200;
const ROUNDS: usize = 30;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let env = Env::for_test(&root, &root);
    let journal = MemoryJournal::new(&ConfigHome::from_env(&env), &root.join("m"));
    fill(&env, &journal);
    report("index", || index(&journal));
    report("review", || review(&journal));
    report("list", || list(&journal));
}

fn report(name: &str, work: impl Fn() -> usize) {
    let mut times: Vec<u128> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            assert!(work() > 0, "{name} found nothing");
            started.elapsed().as_micros()
        })
        .collect();
    let first = times[0];
    times.sort_unstable();
    println!("{name} {} {} {first}", times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
}

/// What a start reads.
fn index(journal: &MemoryJournal) -> usize {
    let text = read_memory(journal.dir(), MEMORY_INDEX).unwrap().unwrap();
    let body = MemoryFile::parse(&strip_html_comments(&text)).body;
    render_index(&body, "MEMORY.md").len()
}

/// What `loci memory review` reads: the proposals, the journal for where they come from, and memories that may say
/// otherwise.
fn review(journal: &MemoryJournal) -> usize {
    let changes = journal.recent_changes().unwrap();
    let proposals = journal.pending();
    let read = proposals.iter().map(|it| MemoryFile::parse(&it.text)).filter(|it| it.problems.is_empty());
    let mut all: Vec<(String, MemoryFile)> =
        read.zip(&proposals).map(|(memory, it)| (it.file.clone(), memory)).collect();
    assert_eq!(all.len(), PROPOSALS);
    let texts: Vec<&str> = proposals.iter().map(|it| it.text.as_str()).collect();
    let names = most_related(memory_names(journal.dir()), &texts, COMPARED);
    let others = memory_texts(journal.dir(), names).into_iter();
    all.extend(others.map(|it| (it.file, MemoryFile::parse(&it.text))));
    let read = || all.iter().map(|(file, memory)| (file.as_str(), memory));
    changes.len() + contradictions(read()).len()
}

/// What `loci memory list` reads: every memory, compared with all others, and the whole journal.
fn list(journal: &MemoryJournal) -> usize {
    let changes = journal.changes().unwrap();
    let files = memory_files(journal.dir());
    let read: Vec<(String, MemoryFile)> =
        files.into_iter().map(|it| (it.file, MemoryFile::parse(&it.text))).collect();
    let flags = same_subject(read.iter().map(|(file, memory)| (file.as_str(), memory)));
    let others = contradictions(read.iter().map(|(file, memory)| (file.as_str(), memory)));
    assert!(!others.is_empty(), "some of them say otherwise");
    changes.len() + flags.len() + others.len() + read.len()
}

const THINGS: [&str; 16] = [
    "parser",
    "gateway",
    "scheduler",
    "importer",
    "ledger",
    "renderer",
    "cache",
    "exporter",
    "mailer",
    "router",
    "indexer",
    "watcher",
    "planner",
    "broker",
    "archive",
    "console",
];
const PLACES: [&str; 6] =
    ["staging", "production", "Tuesdays", "the build machine", "a laptop", "the cluster"];

/// A memory like those that people have: sentences of its own, of which few are about what another is about. Every
/// fiftieth says otherwise than the one before it.
fn text(n: usize) -> String {
    let is_odd = n % 50 == 1;
    let about = if is_odd { n - 1 } else { n };
    let (thing, other) = (THINGS[about % THINGS.len()], THINGS[(about / THINGS.len() + 5) % THINGS.len()]);
    let (subject, place) = (format!("{thing}-{about}"), PLACES[about % PLACES.len()]);
    let (port, word) = if is_odd { (9000 + n, "Never") } else { (8000 + n, "Always") };
    format!(
        "---\nname: {subject}\ndescription: what was decided about the {subject}\ntype: project\n---\n\
         The {subject} listens on port {port} in {place}. It was slow before the {other} was rewritten, because every call \
         waited for a lock.\n\n{word} restart the {subject} with `make restart-{n}` after a change of its schema. The owner \
         of the {subject} is the team of the {other}; ask them before you touch `src/{thing}/mod{n}.rs`.\n\n\
         - Timeout: {} seconds\n- Tests of it take {} minutes on {place}, so run them one by one.\n\
         - Whoever changes the format of {other} number {n} writes a migration and asks for two reviews.\n\n\
         **Why:** an outage of number {n} began with a deploy on a Friday.\n\
         **How to apply:** look at the board of the {other} first; say so when something is missing.\n",
        n % 90,
        n % 40 + 2,
    )
}

fn fill(env: &Env, journal: &MemoryJournal) {
    std::fs::create_dir_all(journal.dir()).unwrap();
    let mut lines = String::new();
    let mut edits = Vec::new();
    for n in 0..MEMORIES {
        let file = format!("memory-{n}.md");
        std::fs::write(journal.dir().join(&file), text(n)).unwrap();
        lines.push_str(&index_line(&format!("memory-{n}"), &file, "what it is about"));
        lines.push('\n');
        edits.push((Edit::memory(&file, None, Some(text(n).into())), Some(text(n).into())));
    }
    std::fs::write(journal.dir().join(MEMORY_INDEX), lines).unwrap();
    // The journal has a line for every memory; they are recorded in a hundred changes to make it quickly.
    let request =
        |act| ChangeRequest { act, by: Author::Model, session: Some("s".to_owned()), message: None };
    for some in edits.chunks(MEMORIES / 100) {
        journal.record(env, &request(ChangeKind::Write), some.to_vec()).unwrap();
    }
    // As others would put them: about what is known, and not the same.
    let proposals =
        (0..PROPOSALS).map(|n| Edit::pending(&format!("new-{n}.md"), None, Some(text(50 * n + 1).into())));
    journal.apply(env, &request(ChangeKind::Propose), proposals.collect()).unwrap();
}
