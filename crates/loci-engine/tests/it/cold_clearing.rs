//! Old results go when the prompt cache has expired, by a clock that the test holds in its hand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_core::permission::Rulebook;
use loci_engine::{Command, CompactionConfig, EngineEvent, Prompt, Session, SessionConfig};
use loci_llm::{Client, Request};
use loci_stdx::{Env, FixedClock, Timestamp};
use serde_json::json;

use crate::auto_mode::config;

const CLEARED: &str = "[Old tool result content cleared]";
const N_FILES: usize = 8;

/// Reads eight files one after the other, then only talks.
fn answer(request: &Request) -> Vec<Block> {
    let n = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let id = ToolUseId::new(format!("toolu_{n}"));
    vec![match n {
        0..N_FILES => Block::new_tool_use(&id, "Read", &json!({"file_path": format!("long{n}.txt")})),
        _ => Block::new_text("Done."),
    }]
}

fn sent(request: &Request) -> String {
    request
        .messages
        .iter()
        .flat_map(|message| message.content.iter())
        .map(|block| block.json().as_str())
        .collect()
}

/// Has the files read, then sends a prompt after each pause; returns the last request of each turn, and how many results
/// front ends heard to be cleared.
async fn play(clears_cold: bool, pauses: &[Duration]) -> (Vec<String>, usize) {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    for n in 0..N_FILES {
        std::fs::write(
            cwd.join(format!("long{n}.txt")),
            format!("file {n} {}\n", "words ".repeat(40)).repeat(150),
        )
        .unwrap();
    }
    let book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let client = Client::scripted(
        move |request| {
            seen.lock().unwrap().push(sent(request));
            answer(request)
        },
        Duration::ZERO,
    );
    let clock = Arc::new(FixedClock::ticking(Timestamp::constant(1_767_323_045, 0)));
    let usual = config(&cwd, book, client);
    let (session, handle, mut events) = Session::new(SessionConfig {
        env: Env { clock: Arc::clone(&clock) as Arc<_>, ..usual.env.clone() },
        compaction: CompactionConfig { window: Some(200_000), clears_cold, ..CompactionConfig::default() },
        ..usual
    });
    let engine = tokio::spawn(session.run());
    let (mut last, mut n_told) = (Vec::new(), 0);
    for pause in std::iter::once(&Duration::ZERO).chain(pauses) {
        clock.advance(*pause);
        handle.send(Command::Prompt(Prompt::text("go on")));
        loop {
            match events.recv().await.expect("the session goes on") {
                EngineEvent::TurnEnded(_) => break,
                EngineEvent::ResultsCleared { n_results, freed_tokens } => {
                    assert!(freed_tokens > 0);
                    n_told += n_results;
                }
                _ => {}
            }
        }
        last.push(requests.lock().unwrap().last().cloned().unwrap());
    }
    handle.send(Command::Close);
    engine.await.unwrap();
    (last, n_told)
}

/// Up to an hour the cache may still be warm, and nothing is touched. Then all but the newest five go, and what was sent
/// once stays as it was sent.
#[tokio::test]
async fn old_results_go_when_the_cache_is_cold() {
    let minutes = |n: u64| Duration::from_secs(n * 60);
    let (turns, n_told) = play(true, &[minutes(59), minutes(61), minutes(1), minutes(61)]).await;
    assert_eq!(n_told, 3, "what is cleared is an event");
    let cleared: Vec<usize> = turns.iter().map(|request| request.matches(CLEARED).count()).collect();
    assert_eq!(cleared, [0, 0, 3, 3, 3]);
    for n in 0..N_FILES {
        let holds = |turn: &String| turn.contains(&format!("file {n} words"));
        assert!(holds(&turns[1]) && holds(&turns[2]) == (n >= 3), "file {n}");
    }
    assert!(turns[3].starts_with(turns[2].as_str()) && turns[4].starts_with(turns[3].as_str()));
}

/// Invariant 21 of `docs/design/compaction.md`.
#[tokio::test]
async fn nothing_goes_after_a_pause_without_the_step() {
    let (turns, n_told) = play(false, &[Duration::from_secs(100 * 60 * 60)]).await;
    assert_eq!((turns[1].matches(CLEARED).count(), n_told), (0, 0));
}
