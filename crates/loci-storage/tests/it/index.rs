//! Searching sessions: the index against a plain look at every passage, whatever happens to the index.

mod damage;
mod filters;
mod interrupted;
mod plain;
mod property;

use std::fs;
use std::path::{Path, PathBuf};

use loci_storage::search::{
    IndexUse, NoObserver, SearchFilter, SearchQuery, SearchResults, search_sessions, update_index,
};
use serde_json::{Value, json};

use crate::support::{World, session_id};

/// A line of a conversation.
fn line(uuid: &str, kind: &str, content: Value) -> Value {
    json!({"type": kind, "uuid": uuid, "parentUuid": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": kind, "content": content}, "gitBranch": "main", "sessionId": "s", "cwd": "/p"})
}

fn prompt(uuid: &str, text: &str) -> Value {
    line(uuid, "user", json!(text))
}

/// The file of the `n`th session.
fn file_of(world: &World, n: u32) -> PathBuf {
    world.home.projects_dir().join(format!("-p{}/{}.jsonl", n % 3, session_id(n)))
}

fn append(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let known = fs::read(file).unwrap_or_default();
    // As sessions are written: appended in place.
    let mut options = fs::OpenOptions::new();
    let mut out = options.create(true).append(true).open(file).unwrap();
    std::io::Write::write_all(&mut out, text.as_bytes()).unwrap();
    assert!(fs::read(file).unwrap().starts_with(&known));
}

fn add(world: &World, n: u32, lines: &[Value]) -> PathBuf {
    let file = file_of(world, n);
    append(&file, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    file
}

fn search_for(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        is_regex: false,
        filter: SearchFilter::default(),
        skip: 0,
        limit: 1_000,
    }
}

fn search(world: &World, wish: &SearchQuery, how: IndexUse) -> SearchResults {
    search_sessions(&world.home, wish, how, "test", &NoObserver).unwrap()
}

/// Brings the index up to date, in a file of its own.
fn update(world: &World, unique: &str) {
    assert!(update_index(&world.home, unique, &NoObserver).unwrap());
}

fn index_dir(world: &World) -> PathBuf {
    world.home.loci_dir().join("index")
}

fn segments(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(index_dir(world)).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "seg")).collect();
    paths.sort();
    paths
}

/// What was found, without the scores.
fn messages(found: &SearchResults) -> Vec<String> {
    found.hits.iter().map(|hit| hit.message.clone().unwrap_or_default()).collect()
}

/// The same search with the index and without.
fn check_same(world: &World, wish: &SearchQuery) -> SearchResults {
    let plain = search(world, wish, IndexUse::None);
    assert_eq!(search(world, wish, IndexUse::AsItIs), plain, "{wish:?}");
    plain
}

/// What was written a moment ago is found, indexed or not.
/// Invariant 3 of `docs/design/index.md`.
#[test]
fn search_finds_entries_written_after_indexing() {
    let world = World::new();
    add(&world, 1, &[prompt("u1", "the first port")]);
    update(&world, "a");
    assert_eq!(messages(&check_same(&world, &search_for("port"))), ["u1"]);
    add(&world, 1, &[prompt("u2", "port port")]);
    add(&world, 2, &[prompt("u3", "another port of call")]);
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 3);
    update(&world, "b");
    // Each of those who read writes its own.
    assert!((2..=3).contains(&segments(&world).len()), "{:?}", segments(&world));
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 3);
}

#[test]
fn search_results_are_ranked_and_paged() {
    let world = World::new();
    let texts =
        ["a long text about nothing much, with a port somewhere in it", "staging port", "port", "none"];
    let lines: Vec<Value> =
        texts.iter().enumerate().map(|(idx, text)| prompt(&format!("u{idx}"), text)).collect();
    add(&world, 1, &lines);
    update(&world, "a");
    let all = check_same(&world, &search_for("port"));
    assert_eq!(
        (messages(&all), all.n_found, all.is_exact),
        (vec!["u2".into(), "u1".into(), "u0".into()], 3, true)
    );
    let page = check_same(&world, &SearchQuery { skip: 1, limit: 1, ..search_for("port") });
    assert_eq!((messages(&page), page.n_found), (vec!["u1".to_owned()], 3));
    assert_eq!(messages(&check_same(&world, &search_for("staging port"))), ["u1"]);
    assert_eq!(messages(&check_same(&world, &search_for("stag*"))), ["u1"]);
    assert_eq!(messages(&check_same(&world, &search_for("\"port somewhere\""))), ["u0"]);
    assert!(check_same(&world, &search_for("\"somewhere port\"")).hits.is_empty());
    assert!(check_same(&world, &search_for("absent")).hits.is_empty());
}

#[test]
fn search_finds_subagent_messages() {
    let world = World::new();
    let file = add(&world, 1, &[prompt("u1", "go")]);
    let agent = file.with_extension("").join("subagents/agent-a1.jsonl");
    append(&agent, &format!("{}\n", prompt("s1", "deep water")));
    update(&world, "a");
    let found = check_same(&world, &search_for("water"));
    assert_eq!(
        (found.hits[0].agent.as_deref(), found.hits[0].session.file()),
        (Some("agent-a1"), file.as_path())
    );
}

#[test]
fn regex_search_reads_every_passage() {
    let world = World::new();
    add(&world, 1, &[prompt("u1", "port=48213\nnext"), prompt("u2", "port=x")]);
    update(&world, "a");
    let expression = |text: &str| SearchQuery { is_regex: true, ..search_for(text) };
    assert_eq!(messages(&search(&world, &expression(r"^port=\d+$"), IndexUse::Normal)), ["u1"]);
    assert!(search_sessions(&world.home, &expression("("), IndexUse::Normal, "t", &NoObserver).is_err());
    assert!(search_sessions(&world.home, &search_for("--"), IndexUse::Normal, "t", &NoObserver).is_err());
}

/// Many small segments become few, and nothing is lost on the way.
/// Invariant 6 of `docs/design/index.md`.
#[test]
fn many_index_segments_are_merged() {
    let world = World::new();
    for n in 0..40 {
        add(&world, n % 7, &[prompt(&format!("u{n}"), &format!("word{n} port"))]);
        update(&world, &format!("{n:03}"));
        if n == 20 {
            fs::remove_file(file_of(&world, 3)).unwrap();
        }
    }
    assert!(segments(&world).len() <= 17, "{:?}", segments(&world));
    let found = check_same(&world, &search_for("port"));
    assert!(found.hits.len() > 30);
    for n in [21, 30, 39] {
        assert_eq!(messages(&check_same(&world, &search_for(&format!("word{n}")))), [format!("u{n}")]);
    }
}

/// Another process that is indexing does not keep anybody from searching.
/// Invariant 5 of `docs/design/index.md`.
#[test]
fn one_process_indexes_and_others_scan() {
    let world = World::new();
    add(&world, 1, &[prompt("u1", "port")]);
    fs::create_dir_all(index_dir(&world)).unwrap();
    let lock = loci_stdx::FileLock::try_acquire(&index_dir(&world).join("lock")).unwrap().unwrap();
    assert!(!update_index(&world.home, "b", &NoObserver).unwrap());
    assert_eq!(messages(&search(&world, &search_for("port"), IndexUse::Normal)), ["u1"]);
    drop(lock);
    update(&world, "c");
    assert_eq!(segments(&world).len(), 1);
}

/// Which passages have the words of a phrase in its order is told by positions: files in which they stand otherwise are not
/// read. Those here are changed behind the index's back, so that whoever reads them finds the phrase.
#[test]
fn phrase_is_answered_from_positions_without_reading_other_files() {
    let world = World::new();
    add(&world, 0, &[prompt("u0", "here alpha beta gamma stands")]);
    let decoys: Vec<PathBuf> = (1..40)
        .map(|n| add(&world, n, &[prompt(&format!("u{n}"), "alpha here gamma stands beta")]))
        .collect();
    update(&world, "a");
    let found = search(&world, &search_for("\"alpha beta gamma\""), IndexUse::AsItIs);
    assert_eq!((messages(&found), found.n_found), (vec!["u0".to_owned()], 1));
    for decoy in &decoys {
        let modified = fs::metadata(decoy).unwrap().modified().unwrap();
        let text = fs::read_to_string(decoy).unwrap();
        let changed = text.replace("alpha here gamma stands beta", "here alpha beta gamma stands");
        assert_eq!(changed.len(), text.len());
        fs::write(decoy, changed).unwrap();
        fs::File::options().write(true).open(decoy).unwrap().set_modified(modified).unwrap();
    }
    let found = search(&world, &search_for("\"alpha beta gamma\""), IndexUse::AsItIs);
    assert_eq!((messages(&found), found.n_found), (vec!["u0".to_owned()], 1), "no decoy was read");
    // The same words without quotes do lead there.
    assert_eq!(search(&world, &search_for("alpha beta gamma"), IndexUse::AsItIs).n_found, 40);
    assert_eq!(search(&world, &search_for("\"alpha beta gamma\""), IndexUse::None).n_found, 40);
}
