//! A date that changes while a session runs is told behind the prompt; what was sent before stays as it was.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::message::Block;
use loci_core::permission::Rulebook;
use loci_engine::{Command, EngineEvent, Prompt, Session, SessionConfig};
use loci_llm::Client;
use loci_stdx::{Env, FixedClock};

use crate::auto_mode::config;

/// Invariant 5 of `docs/design/memory.md`.
#[tokio::test]
async fn a_new_date_is_told_once_and_the_prefix_stays() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let client = Client::scripted(
        move |request| {
            let texts: Vec<String> = request.messages.iter().map(|message| message.text()).collect();
            seen.lock().unwrap().push(texts);
            vec![Block::new_text("ok")]
        },
        Duration::ZERO,
    );
    let clock = Arc::new(FixedClock::new("2026-01-02T23:59:00Z".parse().unwrap()));
    let base = config(&cwd, book, client);
    let env = Env { clock: Arc::clone(&clock) as Arc<dyn loci_stdx::Clock>, ..base.env.clone() };
    let (session, handle, mut events) = Session::new(SessionConfig { env, ..base });
    let engine = tokio::spawn(session.run());
    for hours in [0, 1, 0] {
        clock.advance(Duration::from_secs(hours * 3600));
        handle.send(Command::Prompt(Prompt::text("go")));
        while !matches!(events.recv().await, Some(EngineEvent::TurnEnded(_))) {}
    }
    handle.send(Command::Close);
    engine.await.unwrap();
    let sent = sent.lock().unwrap().clone();
    assert!(sent[0][0].contains("Today is 2026-01-02") && !sent[0][0].contains("The date is now"));
    assert!(sent[1][2].contains("The date is now 2026-01-03"), "{sent:?}");
    assert!(!sent[2][4].contains("The date is now"), "said once: {sent:?}");
    assert_eq!(sent[0][0], sent[2][0], "the prefix stays");
    assert_eq!(sent[1][..3], sent[2][..3]);
}
