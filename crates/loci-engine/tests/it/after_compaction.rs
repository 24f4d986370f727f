//! What a compaction brings back besides files, and the one figure for how full the context is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_context::{Fullness, Level, Restorable, RestoreBudget};
use loci_core::entry::Entry;
use loci_core::message::Block;
use loci_core::permission::Rulebook;
use loci_engine::{
    Command, CompactionConfig, EngineEvent, Prompt, RestoreSource, Session, SessionConfig, TurnReport,
};
use loci_llm::{Client, Request};

use crate::auto_mode::config;

/// Skills that were used and an agent that runs, as they will plug in one day.
struct Pretended;

impl RestoreSource for Pretended {
    fn running(&self) -> Vec<String> {
        vec!["agent-7: compares the ports".to_owned()]
    }

    fn used(&self, _path: &[Arc<Entry>]) -> (Vec<Restorable>, RestoreBudget) {
        let item = |name: &str, text: &str, is_agents| Restorable {
            name: name.to_owned(),
            text: text.to_owned(),
            is_agents,
        };
        let used = vec![
            item("Skill release", "How to release: tag, build, push.", false),
            item("Skill private", "Only the agent read this.", true),
        ];
        (used, RestoreBudget::SKILLS)
    }
}

/// What a session sent and told.
#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    levels: Vec<Fullness>,
    reports: Vec<TurnReport>,
}

fn whole(request: &Request) -> String {
    let texts = request.messages.iter().map(|message| message.text());
    texts.collect::<Vec<_>>().join("\n---\n")
}

async fn play(prompts: &[&str]) -> Seen {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
    let requests = Arc::new(Mutex::new(Vec::new()));
    let sent = Arc::clone(&requests);
    let client = Client::scripted(
        move |request| {
            sent.lock().unwrap().push(whole(request));
            vec![Block::new_text("<summary>Ports were compared.</summary>")]
        },
        Duration::ZERO,
    );
    let (session, handle, mut events) = Session::new(SessionConfig {
        compaction: CompactionConfig { window: Some(100_000), ..CompactionConfig::default() },
        restore_sources: vec![Arc::new(Pretended)],
        ..config(&cwd, book, client)
    });
    let engine = tokio::spawn(session.run());
    let mut seen = Seen::default();
    for prompt in prompts {
        handle.send(Command::Prompt(Prompt::text(prompt)));
        loop {
            match events.recv().await {
                Some(EngineEvent::Context(fullness)) => seen.levels.push(fullness),
                Some(EngineEvent::TurnEnded(report)) => break seen.reports.push(*report),
                Some(_) => {}
                None => panic!("the session ended"),
            }
        }
    }
    handle.send(Command::Close);
    engine.await.unwrap();
    seen.requests = requests.lock().unwrap().clone();
    seen
}

/// Regression class 8: what was used comes back to be looked at, and not to be run again with what it was given then.
/// Regression class 12: what an agent used does not come back in the conversation that started it.
/// Regression class 7: an agent that runs is known after a compaction, by its id.
/// What is held is the seam that skills and agents plug into; `skills.rs` and `agents/*.rs` of the binary hold the whole.
/// Invariant 20 of `docs/design/compaction.md`.
#[tokio::test]
async fn restore_sources_outlast_a_compaction() {
    let seen = play(&["one", "two", "/compact", "three", "four"]).await;
    let (after, later) = (&seen.requests[3], &seen.requests[4]);
    assert_eq!(after.matches("How to release: tag, build, push.").count(), 1, "{after}");
    assert!(after.contains("to look at and not to run again"), "{after}");
    assert!(!after.contains("Only the agent read this."), "{after}");
    assert!(after.contains("Still running in the background:\n- agent-7: compares the ports"), "{after}");
    assert!(!seen.requests[1].contains("How to release"), "nothing comes back before anything is gone");
    assert!(later.starts_with(after.as_str()), "and it stays where it was put: {later}");
}

/// Each compaction brings it back anew, and once: what the one before brought is part of what is summarised.
/// Regression class 8: a skill's text is there to be looked at, and what it was called with is not put beside it.
/// Regression class 12: what an agent used stays with it, however often the conversation is compacted.
#[tokio::test]
async fn restore_sources_come_back_once_with_each_compaction() {
    let seen = play(&["/release v9.9", "two", "/compact", "three", "four", "/compact", "five", "six"]).await;
    let after: Vec<&String> = seen.requests[6..].iter().collect();
    assert_eq!(seen.requests.len(), 8);
    for request in &after {
        assert_eq!(request.matches("How to release: tag, build, push.").count(), 1, "{request}");
        assert_eq!(request.matches("agent-7: compares the ports").count(), 1, "{request}");
        assert!(!request.contains("Only the agent read this."), "{request}");
        assert!(!request.contains("v9.9"), "what it was called with is summarised: {request}");
    }
    assert!(after[1].starts_with(after[0].as_str()), "{}", after[1]);
}

/// The figure that is told when the level changes is the one that the turn ends with.
/// Invariant 22 of `docs/design/compaction.md`.
#[tokio::test]
async fn events_and_reports_have_one_figure() {
    let long = "word ".repeat(45_600);
    let seen = play(&["one", &long]).await;
    let levels: Vec<Level> = seen.levels.iter().map(|told| told.level).collect();
    assert_eq!(levels, [Level::Fine, Level::Warning], "told when it changes");
    assert_eq!(seen.levels[1], seen.reports[1].context);
}
