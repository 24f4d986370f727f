//! Looking up earlier messages in a session's own file.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use loci_core::passage::Voice;
use loci_core::recall::{RecallHit, RecallPlace, RecallQuery, RecallResult, RecallSearch};
use loci_storage::search::{ProjectRecord, recall};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::World;

fn line(uuid: &str, kind: &str, content: Value) -> Value {
    json!({"type": kind, "uuid": uuid, "parentUuid": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": kind, "content": content}, "sessionId": "s"})
}

fn write(world: &World, lines: &[Value]) -> PathBuf {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write("s.jsonl", text)
}

fn search(query: &str) -> RecallSearch {
    RecallSearch { query: query.to_owned(), voice: None, skip: 0, limit: 8, excerpt: 400 }
}

fn search_file(file: &Path, search: RecallSearch) -> (usize, Vec<RecallHit>) {
    let recalled = recall(file, &RecallQuery::Search(search), &AtomicBool::new(false)).unwrap();
    let found = match recalled {
        RecallResult::Found { n_found, hits, .. } => Some((n_found, hits)),
        RecallResult::Quoted { .. } | RecallResult::NoSuchMessage { .. } => None,
    };
    found.unwrap()
}

fn ids(hits: &[RecallHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.source.message.as_str()).collect()
}

/// A compaction between what was said about ports.
fn compacted(world: &World) -> PathBuf {
    let call =
        json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "grep port conf"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "port=48213 # staging"}]);
    let own = json!([{"type": "tool_use", "id": "t2", "name": "Recall", "input": {"query": "staging port"}}]);
    let answer =
        json!([{"type": "tool_result", "tool_use_id": "t2", "content": "staging port staging port"}]);
    write(
        world,
        &[
            line("u1", "user", json!("Use the staging port, never the other one.")),
            line("a1", "assistant", call),
            line("r1", "user", result),
            line("a2", "assistant", json!([{"type": "text", "text": "Noted, something else entirely."}])),
            line("k1", "assistant", json!([{"type": "text", "text": "The staging port is kept."}])),
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
                "compactMetadata": {"preservedMessages": {"uuids": ["k1"]}}}),
            json!({"type": "user", "uuid": "s", "isCompactSummary": true, "message": {"content": "staging port"}}),
            line("a3", "assistant", own),
            line("r3", "user", answer),
            line("u2", "user", json!("Which staging port was it?")),
        ],
    )
}

#[test]
fn recall_prefers_messages_before_a_compaction() {
    let world = World::new();
    let file = compacted(&world);
    let (n_found, hits) = search_file(&file, search("staging port"));
    assert_eq!(n_found, 6, "the lookup's own call and result are left out");
    let mut best = ids(&hits)[..2].to_vec();
    best.sort_unstable();
    assert_eq!(best, ["r1", "u1"]);
    let compacted: Vec<&str> =
        hits.iter().filter(|hit| hit.is_compacted).map(|hit| hit.source.message.as_str()).collect();
    assert!(
        compacted.contains(&"r1") && !compacted.contains(&"k1") && !compacted.contains(&"u2"),
        "{compacted:?}"
    );
    let result = hits.iter().find(|hit| hit.source.message == "r1").unwrap();
    assert_eq!((result.source.voice, result.source.tool.as_deref()), (Voice::Result, Some("Bash")));
    assert_eq!(result.excerpt, "port=48213 # staging");
}

fn boundary(uuid: &str) -> Value {
    json!({"type": "system", "subtype": "compact_boundary", "uuid": uuid, "parentUuid": null,
        "compactMetadata": {"trigger": "auto"}})
}

/// What the model still sees is not crowded out by much that is like it.
#[test]
fn recall_marks_messages_that_are_still_sent() {
    let world = World::new();
    let like = |n: usize| format!("The port of the amber lantern in zone {n} is open, the falcon is not.");
    let mut lines: Vec<Value> =
        (0..40).map(|n| line(&format!("u{n}-"), "user", json!(like(n)))).chain([boundary("b")]).collect();
    lines.push(line("exact", "user", json!("The port of the amber falcon is 48213.")));
    let file = write(&world, &lines);
    let (n_found, hits) = search_file(&file, search("what was the port of the amber falcon"));
    assert_eq!(n_found, 41);
    assert!(ids(&hits)[..4].contains(&"exact"), "{:?}", ids(&hits));
    assert!(hits[0].is_compacted, "what it no longer sees comes first");
}

/// A long passage is shown where the words of the question stand together, not where most of them are strewn about.
#[test]
fn an_excerpt_shows_where_the_words_stand_together() {
    let world = World::new();
    let strewn =
        "the of the port, and the falcon; of the port and more, then amber of the falcon ".repeat(20);
    let text = format!(
        "{} The port of the amber falcon cluster is 48213. {}{strewn}",
        "x ".repeat(600),
        "x ".repeat(600)
    );
    let file = write(&world, &[line("u1", "user", json!(text))]);
    let (_, hits) = search_file(&file, search("what was the port of the amber falcon"));
    assert!(hits[0].excerpt.contains("48213"), "{}", hits[0].excerpt);
    assert!(hits[0].excerpt.len() <= 400);
}

/// Facts that were said once, among much that has the same words: one lookup finds each, in view or not.
#[test]
fn every_fact_is_found_by_one_lookup() {
    let world = World::new();
    let (places, things) = (["north", "south", "east", "west"], ["gate", "mill", "bridge", "dock", "tower"]);
    let fact = |n: usize| (places[n % 4], things[n / 4 % 5]);
    let noise = |n: usize| {
        let (place, thing) = fact(n * 7 + n / 3);
        format!("we should check the {place} side, then the {thing} and its key, of which there is more ")
            .repeat(n % 9 + 1)
    };
    let mut lines = Vec::new();
    for n in 0..200 {
        let (place, thing) = fact(n / 10);
        let said = match n % 10 {
            4 => format!("{} The key of the {place} {thing} is k{n}. {}", noise(n), noise(n + 1)),
            _ => noise(n),
        };
        lines.push(line(&format!("m{n}-"), if n % 2 == 0 { "user" } else { "assistant" }, json!(said)));
        lines.extend((n == 90 || n == 150).then(|| boundary(&format!("b{n}"))));
    }
    let file = write(&world, &lines);
    for n in (4..200).step_by(10) {
        let (place, thing) = fact(n / 10);
        let (_, hits) = search_file(&file, search(&format!("which key has the {place} {thing}")));
        assert!(hits.iter().any(|hit| hit.excerpt.contains(&format!("is k{n}."))), "{n}: {:?}", ids(&hits));
    }
}

#[test]
fn a_search_can_be_narrowed_and_gone_on_with() {
    let world = World::new();
    let file = compacted(&world);
    let calls = RecallSearch { voice: Some(Voice::Call), ..search("port") };
    assert_eq!(ids(&search_file(&file, calls).1), ["a1"]);
    let quoted = search_file(&file, search("\"STAGING port, never\""));
    assert_eq!((quoted.0, ids(&quoted.1)), (1, vec!["u1"]));
    let (_, all) = search_file(&file, search("port"));
    let pages: Vec<RecallHit> = (0..4)
        .flat_map(|page| search_file(&file, RecallSearch { skip: page * 2, limit: 2, ..search("port") }).1)
        .collect();
    assert_eq!(pages, all);
    assert_eq!(search_file(&file, search("absent")), (0, vec![]));
}

#[test]
fn a_message_is_quoted_word_for_word() {
    let world = World::new();
    let file = compacted(&world);
    let quote = |message: &str, offset, limit| {
        let wish = RecallQuery::Quote { message: message.to_owned(), offset, limit };
        recall(&file, &wish, &AtomicBool::new(false)).unwrap()
    };
    let RecallResult::Quoted { text, n_chars, source } = quote("r1", 0, 100) else { panic!() };
    assert_eq!((text.as_str(), n_chars), ("port=48213 # staging", 20));
    assert_eq!((source.voice, source.tool.as_deref()), (Voice::Result, Some("Bash")), "by its call");
    let RecallResult::Quoted { text, .. } = quote("r1", 5, 5) else { panic!() };
    assert_eq!(text, "48213");
    assert_eq!(quote("nobody", 0, 9), RecallResult::NoSuchMessage { n_matching: 0 });
    assert_eq!(quote("u", 0, 9), RecallResult::NoSuchMessage { n_matching: 2 });
    assert_eq!(quote("", 0, 9), RecallResult::NoSuchMessage { n_matching: 0 });
}

/// Writes a session file beside the others.
fn write_as(world: &World, name: &str, lines: &[Value]) -> PathBuf {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write(&format!("p/{name}.jsonl"), text)
}

fn summary(uuid: &str, place: &str) -> Value {
    let text =
        format!("It was about a port. The whole conversation is in {place}.jsonl, one JSON object a line.");
    json!({"type": "user", "uuid": uuid, "isCompactSummary": true, "message": {"content": text}})
}

/// A fork begins with a summary; what that covers is in the file it was forked from, and in those before.
/// Invariant 8 of `docs/design/compaction.md`.
#[test]
fn a_fork_finds_what_its_source_had_before_a_compaction() {
    let world = World::new();
    let say = |uuid: &str, text: &str| line(uuid, "user", json!(text));
    let source = [
        say("u1", "The staging port is 48213."),
        say("k1", "The staging port is kept."),
        boundary("b1"),
        summary("s1", "/h/p/source"),
        say("x1", "The staging port was changed after the fork."),
    ];
    write_as(&world, "source", &source);
    let child = [
        source[1].clone(),
        source[2].clone(),
        source[3].clone(),
        say("u2", "Look at the staging port again."),
        boundary("b2"),
        summary("s2", "/h/p/child"),
        say("x2", "The staging port of the child."),
    ];
    let child_file = write_as(&world, "child", &child);
    let grandchild = [child[4].clone(), child[5].clone(), say("u3", "And now?")];
    let grandchild_file = write_as(&world, "grandchild", &grandchild);
    for (file, expected) in
        [(&child_file, vec!["k1", "u1", "u2", "x2"]), (&grandchild_file, vec!["k1", "u1", "u2"])]
    {
        let (n_found, hits) = search_file(file, search("staging"));
        let mut found = ids(&hits);
        found.sort_unstable();
        assert_eq!((n_found, found), (expected.len(), expected), "{}", file.display());
        assert!(hits.iter().find(|hit| hit.source.message == "u1").unwrap().is_compacted);
        let quote = |message: &str| {
            let wish = RecallQuery::Quote { message: message.to_owned(), offset: 0, limit: 100 };
            recall(file, &wish, &AtomicBool::new(false)).unwrap()
        };
        let RecallResult::Quoted { text, source, .. } = quote("u1") else { panic!() };
        assert_eq!((text.as_str(), source.place), ("The staging port is 48213.", RecallPlace::Here));
        assert_eq!(quote("x1"), RecallResult::NoSuchMessage { n_matching: 0 }, "it was said after the fork");
    }
    // A summary may say anything: what has not the same boundary, or lies elsewhere, is another conversation.
    world.write("q/source.jsonl", say("q1", "The staging port of others.").to_string());
    for place in ["/h/p/source", "/h/q/source", "../q/source", "liar"] {
        let liar = [boundary("b9"), summary("s9", place), say("u9", "staging")];
        let liar = write_as(&world, "liar", &liar);
        assert_eq!(ids(&search_file(&liar, search("staging")).1), ["u9"], "{place}");
    }
    std::fs::remove_file(child_file.with_file_name("source.jsonl")).unwrap();
    let (_, hits) = search_file(&grandchild_file, search("staging"));
    assert_eq!(ids(&hits), ["k1", "u2"], "what is gone is gone, and that is no error");
}

#[test]
fn recall_skips_only_broken_lines() {
    let world = World::new();
    let good = line("u1", "user", json!("the port"));
    let file = world
        .write("s.jsonl", format!("null\n{{\"type\":\"user\",\"uu\n{good}{good}\n\0\0\n[1]\n{{\"type\""));
    let (n_found, hits) = search_file(&file, search("port"));
    assert_eq!((n_found, ids(&hits)), (1, vec!["u1"]), "the same message twice is one");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever was said is found by any of its words, and quoted as it was said.
    /// Invariant 8 of `docs/design/compaction.md`.
    #[test]
    fn recall_finds_every_message(texts in prop::collection::vec("[a-c é日_]{0,6}[a-d]{1,3}\\PC{0,20}", 1..20), at in 0_usize..20) {
        let world = World::new();
        let lines: Vec<Value> =
            texts.iter().enumerate().map(|(idx, text)| line(&format!("m{idx}-"), "user", json!(text))).collect();
        let file = write(&world, &lines);
        let at = at % texts.len();
        let word = loci_core::search::words(&texts[at]).remove(0);
        let wish = RecallSearch { limit: 100, excerpt: 4_000, ..search(&format!("\"{word}\"")) };
        let (n_found, hits) = search_file(&file, wish);
        let expected = texts.iter().filter(|text| loci_core::search::words(text).contains(&word)).count();
        prop_assert_eq!(n_found, expected);
        let hit = hits.iter().find(|hit| hit.source.message == format!("m{at}-")).unwrap();
        prop_assert_eq!(&hit.excerpt, &texts[at]);
        let quote = RecallQuery::Quote { message: format!("m{at}-"), offset: 0, limit: 4_000 };
        let RecallResult::Quoted { text, .. } = recall(&file, &quote, &AtomicBool::new(false)).unwrap() else { panic!() };
        prop_assert_eq!(&text, &texts[at]);
    }
}

/// Invariant 12 of `docs/design/memory.md`. Memories first, then other sessions of the project; neither the conversation
/// that asks nor other projects.
#[test]
fn memories_and_earlier_sessions_of_the_project_are_found() {
    let world = World::new();
    let ids = ["aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"];
    let sessions = world.home.project_dir(world.cwd());
    let record = |project: &Path, id: &str, uuid: &str, text: &str| {
        std::fs::create_dir_all(project).unwrap();
        let mut line = line(uuid, "user", json!(text));
        line["sessionId"] = json!(id);
        let file = project.join(format!("{id}.jsonl"));
        std::fs::write(&file, format!("{line}\n")).unwrap();
        file
    };
    record(&sessions, ids[0], "u-old", "The relay port is 4711.");
    let own = record(&sessions, ids[1], "u-own", "Which relay port was it?");
    let elsewhere = world.home.projects_dir().join("-elsewhere");
    record(&elsewhere, "aaaaaaaa-0000-4000-8000-000000000003", "u-else", "The relay port is 9999.");
    let memory = sessions.join("memory");
    std::fs::create_dir_all(&memory).unwrap();
    std::fs::write(memory.join("relay.md"), "---\nname: relay\n---\nThe relay has a port of its own.\n")
        .unwrap();
    std::fs::write(memory.join("other.md"), "Nothing about it.\n").unwrap();
    let record = ProjectRecord { home: world.home, sessions, own, memory: Some(memory) };
    let stop = AtomicBool::new(false);
    let found = |search: &RecallSearch| match record.search(search, &stop).unwrap() {
        RecallResult::Found { n_found, hits, .. } => (n_found, hits),
        other => panic!("{other:?}"),
    };
    let (n_found, hits) = found(&search("relay port"));
    assert_eq!((n_found, hits.len()), (2, 2), "{hits:?}");
    assert_eq!((hits[0].source.message.as_str(), &hits[0].source.place), ("relay.md", &RecallPlace::Memory));
    assert_eq!(
        (hits[1].source.message.as_str(), hits[1].excerpt.as_str()),
        ("u-old", "The relay port is 4711.")
    );
    assert_eq!(hits[1].source.place, RecallPlace::Session(ids[0].to_owned()));
    let (_, second) = found(&RecallSearch { skip: 1, limit: 1, ..search("relay port") });
    assert_eq!(second, hits[1..]);
    let (_, said) = found(&RecallSearch { voice: Some(Voice::Person), ..search("relay port") });
    assert_eq!(said, hits[1..], "a memory is nobody's words");

    let quoted = |session: &str| record.quote(session, "u-old", 4, 5, &stop).unwrap();
    match quoted(ids[0]) {
        RecallResult::Quoted { text, source, .. } => {
            assert_eq!((text.as_str(), source.place), ("relay", RecallPlace::Session(ids[0].to_owned())));
        }
        other => panic!("{other:?}"),
    }
    for session in [ids[1], "../-elsewhere/aaaaaaaa-0000-4000-8000-000000000003", "none", ""] {
        assert_eq!(quoted(session), RecallResult::NoSuchMessage { n_matching: 0 }, "{session}");
    }
}
