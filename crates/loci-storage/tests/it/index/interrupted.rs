//! Indexing that is stopped or killed: what was read is kept, and the next one goes on from there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::search::{IndexUse, SearchObserver, update_index};

use super::{add, check_same, index_dir, prompt, search, search_for, segments, update};
use crate::support::World;

const SESSIONS: u32 = 12;
/// Where a child indexes.
const CHILD_HOME: &str = "LOCI_STORAGE_TEST_INDEXER_HOME";

/// Says stop once so many bytes were read, and remembers how many there were to read.
struct Impatient {
    most: u64,
    n_done: AtomicU64,
    n_total: AtomicU64,
}

impl Impatient {
    fn after(most: u64) -> Self {
        Self { most, n_done: AtomicU64::new(0), n_total: AtomicU64::new(0) }
    }

    fn n_total(&self) -> u64 {
        self.n_total.load(Ordering::Relaxed)
    }
}

impl SearchObserver for Impatient {
    fn is_stopped(&self) -> bool {
        self.n_done.load(Ordering::Relaxed) >= self.most
    }

    fn progress(&self, n_done: u64, n_total: u64) {
        self.n_done.fetch_max(n_done, Ordering::Relaxed);
        self.n_total.store(n_total, Ordering::Relaxed);
    }
}

fn world() -> World {
    let world = World::new();
    for n in 0..SESSIONS {
        let long = "water ".repeat(40 + n as usize);
        add(&world, n, &[prompt(&format!("u{n}"), "a port of call"), prompt(&format!("v{n}"), &long)]);
    }
    world
}

/// Brings the index up to date and returns how many bytes it did not know.
fn n_unknown(world: &World, unique: &str) -> u64 {
    let watch = Impatient::after(u64::MAX);
    assert!(update_index(&world.home, unique, &watch).unwrap());
    watch.n_total()
}

/// Invariant 14 of `docs/design/index.md`.
#[test]
fn indexing_that_is_stopped_goes_on_from_there() {
    let world = world();
    let plain = search(&world, &search_for("port"), IndexUse::None);
    let mut left = Vec::new();
    for attempt in 0..=SESSIONS {
        let watch = Impatient::after(1);
        assert!(update_index(&world.home, &format!("a{attempt:02}"), &watch).unwrap());
        assert_eq!(check_same(&world, &search_for("port")), plain);
        match watch.n_total() {
            0 => break,
            n_total => left.push(n_total),
        }
    }
    assert!(left.len() > 1 && left.windows(2).all(|pair| pair[1] < pair[0]), "each goes on: {left:?}");
    assert_eq!(n_unknown(&world, "last"), 0, "nothing is left");
}

/// Invariant 14 of `docs/design/index.md`.
#[test]
fn indexing_that_is_killed_goes_on_from_what_was_written() {
    let world = world();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "index::interrupted::child_indexes", "--quiet", "--nocapture"]);
    let mut child = command.env(CHILD_HOME, &world.env.home).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let told = output.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("of ")?.parse().ok());
    child.kill().unwrap();
    child.wait().unwrap();
    let n_total: u64 = told.expect("the child has come half way");
    assert!(!segments(&world).is_empty(), "some of it is written");

    let plain = search(&world, &search_for("port"), IndexUse::None);
    assert_eq!(check_same(&world, &search_for("port")), plain);
    let n_left = n_unknown(&world, "next");
    assert!(0 < n_left && n_left < n_total, "{n_left} of {n_total} are left");
    let resumed =
        ["port", "water", "port call", "\"of call\""].map(|text| check_same(&world, &search_for(text)));
    std::fs::remove_dir_all(index_dir(&world)).unwrap();
    update(&world, "fresh");
    let fresh =
        ["port", "water", "port call", "\"of call\""].map(|text| check_same(&world, &search_for(text)));
    assert_eq!(resumed, fresh);
}

/// Writes every file it has read at once, says when it has come half way, and waits there to be killed.
struct HalfWay;

impl SearchObserver for HalfWay {
    fn max_unsaved_bytes(&self) -> u64 {
        1
    }

    fn progress(&self, n_done: u64, n_total: u64) {
        if n_done * 2 > n_total {
            std::io::stdout().write_all(format!("\nof {n_total}\n").as_bytes()).unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

/// One process that never comes to an end by itself.
#[test]
fn child_indexes() {
    let Ok(home) = std::env::var(CHILD_HOME) else { return };
    let env = Env::for_test(&home, &home);
    update_index(&ConfigHome::from_env(&env), "child", &HalfWay).unwrap();
    panic!("it came to an end");
}
