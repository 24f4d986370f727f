use loci_core::passage::Voice;
use loci_core::recall::{RecallHit, RecallQuery, RecallResult, RecallSource};
use loci_core::tool::ToolContent;
use serde_json::{Value, json};

use super::*;
use crate::testing::TestHost;

fn source(message: &str, voice: Voice) -> RecallSource {
    RecallSource {
        message: message.to_owned(),
        voice,
        tool: None,
        time: Some("2026-01-01T00:00:00.000Z".into()),
        place: RecallPlace::Here,
    }
}

fn hit(message: &str, excerpt: &str, n_chars: usize) -> RecallHit {
    RecallHit {
        source: source(message, Voice::Person),
        excerpt: excerpt.to_owned(),
        offset: 0,
        n_chars,
        is_compacted: true,
    }
}

fn record() -> Option<RecordDirs> {
    Some(RecordDirs { sessions: "/c/projects/p".into(), memory: Some("/c/projects/p/memory".into()) })
}

async fn check(input: Value, answer: RecallResult, expected: &str) {
    let host = TestHost::new();
    *host.recalled.lock().unwrap() = Some(answer);
    let outcome = host.call(&Recall::new(record()), input.clone()).await;
    let ToolContent::Text(text) = outcome.content else { panic!("{input}") };
    assert_eq!(text, expected, "{input}");
}

#[tokio::test]
async fn matches_are_shown_with_what_to_do_next() {
    let found = |n_found, hits| RecallResult::Found { n_found, n_searched: 40, hits };
    check(
        json!({"query": "port", "limit": 2}),
        found(3, vec![hit("m-1", "port 9000", 9), hit("m-2", "a long", 900)]),
        "Matches 1 to 2 of 3, the best first, word for word:\n\n\
         1. [m-1] user, 2026-01-01T00:00:00.000Z, before a compaction\nport 9000\n\n\
         2. [m-2] user, 2026-01-01T00:00:00.000Z, before a compaction\na long\n[from character 0 of 900; `message` shows all]\n\n\
         (Go on with `skip` 2.)",
    )
    .await;
    let none = "None of 40 earlier messages has a word of this. Try other words.";
    check(json!({"query": "port"}), found(0, vec![]), none).await;
    let over = "There are 3 matches and no more after them.";
    check(json!({"query": "port", "skip": 9}), found(3, vec![]), over).await;
}

#[tokio::test]
async fn a_long_message_is_read_page_by_page() {
    let page = |text: &str| RecallResult::Quoted {
        source: source("m", Voice::Model),
        text: text.to_owned(),
        n_chars: 9,
    };
    let head = "[m] assistant, 2026-01-01T00:00:00.000Z\n";
    check(json!({"message": "m"}), page("all of it"), &format!("{head}all of it")).await;
    let first = format!("{head}all\n(Characters 0 to 3 of 9. Go on with `offset` 3.)");
    check(json!({"message": "m"}), page("all"), &first).await;
    let last = format!("{head}it\n(Characters 7 to 9 of 9.)");
    check(json!({"message": "m", "offset": "7"}), page("it"), &last).await;
}

#[tokio::test]
async fn invalid_or_unanswerable_recall_is_refused() {
    let host = TestHost::new();
    for (input, needle) in [
        (json!({}), "Give `query`"),
        (json!({"query": " -- "}), "Give `query`"),
        (json!({"query": "x", "role": "nobody"}), "role"),
        (json!({"query": "x", "limit": 500}), "limit"),
        (json!({"query": "x"}), "nothing is kept"),
    ] {
        let outcome = host.call(&Recall::new(record()), input.clone()).await;
        let text = format!("{:?}", outcome.content);
        assert!(outcome.is_failure() && text.contains(needle), "{input}: {text}");
    }
    let none =
        "No message of this conversation has that id. Search with `query`; each match names its message.";
    check(json!({"message": "m"}), RecallResult::NoSuchMessage { n_matching: 0 }, none).await;
    let some = "2 messages have an id that begins so. Give more of it.";
    check(json!({"message": "m"}), RecallResult::NoSuchMessage { n_matching: 2 }, some).await;
}

/// Invariant 12 of `docs/design/memory.md`. What the model has seen is free; the rest is read, and judged as that.
#[test]
fn project_recall_reads_session_and_memory_dirs() {
    let place =
        Workspace { cwd: "/p".into(), project: "/p".into(), extra_dirs: Vec::new(), home: "/h".into() };
    let reads = |tool: &Recall, input: Value| {
        let effects = tool.effects(&input, &place);
        effects.reads.iter().map(|it| it.requested.display().to_string()).collect::<Vec<_>>()
    };
    let tool = Recall::new(record());
    assert_eq!(reads(&tool, json!({"query": "x"})), [""; 0]);
    assert_eq!(reads(&tool, json!({"query": "x", "where": "conversation"})), [""; 0]);
    assert_eq!(reads(&tool, json!({"message": "m"})), [""; 0]);
    let both = ["/c/projects/p/memory", "/c/projects/p"];
    assert_eq!(reads(&tool, json!({"query": "x", "where": "project"})), both);
    assert_eq!(reads(&tool, json!({"message": "m", "session": "s"})), ["/c/projects/p"]);
    let has_where = |tool: &Recall| tool.descriptor().input_schema["properties"].get("where").is_some();
    assert!(has_where(&tool) && !has_where(&Recall::new(None)));
}

#[tokio::test]
async fn matches_of_other_sessions_name_their_session() {
    let there = |place: RecallPlace, n_chars| {
        let mut found = RecallHit { is_compacted: false, ..hit("m-1", "port 9000", n_chars) };
        found.source.place = place;
        found
    };
    let hits = vec![there(RecallPlace::Memory, 90), there(RecallPlace::Session("s-1".to_owned()), 90)];
    check(
        json!({"query": "port", "where": "project"}),
        RecallResult::Found { n_found: 2, n_searched: 7, hits },
        "Matches 1 to 2 of 2, the best first, word for word:\n\n\
         1. [m-1] a memory of this project\nport 9000\n[from character 0 of 90; Read shows all]\n\n\
         2. [m-1] user, 2026-01-01T00:00:00.000Z, session s-1\nport 9000\n\
         [from character 0 of 90; `message` with `session` shows all]",
    )
    .await;
    let none = "Nothing in memories and 7 earlier sessions has a word of this.";
    let nothing = RecallResult::Found { n_found: 0, n_searched: 7, hits: vec![] };
    check(json!({"query": "port", "where": "project"}), nothing, none).await;
}

#[test]
fn output_is_bounded() {
    for limit in 1..=MOST {
        let Ok(RecallQuery::Search(search)) = parse_query(&json!({"query": "x", "limit": limit})) else {
            panic!()
        };
        assert!(search.excerpt * search.limit <= ALL_EXCERPTS && search.excerpt >= 400, "{limit}");
    }
}
