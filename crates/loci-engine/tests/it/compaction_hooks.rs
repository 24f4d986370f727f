//! Whoever has a say in compactions: asked before each, told after each, and able to say no.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::message::Block;
use loci_core::permission::Rulebook;
use loci_engine::turn::Outcome;
use loci_engine::{
    AfterCompaction, BeforeCompaction, Command, CompactionConfig, CompactionGate, CompactionHooks,
    EngineEvent, GateFuture, NoticesFuture, Prompt, Session, SessionConfig, TurnReport,
};
use loci_llm::{Client, Request};
use tokio::sync::Notify;

use crate::auto_mode::config;

/// Says the same every time, and remembers what it heard.
struct Says {
    leave: CompactionGate,
    heard: Arc<Mutex<Vec<String>>>,
    /// Never answers, but tells that it was asked.
    hangs: Option<Arc<Notify>>,
}

impl CompactionHooks for Says {
    fn before(&self, compaction: BeforeCompaction) -> GateFuture {
        let BeforeCompaction { trigger, instructions, .. } = compaction;
        self.heard.lock().unwrap().push(format!("before {} {instructions:?}", trigger.as_str()));
        let (leave, hangs) = (self.leave.clone(), self.hangs.clone());
        Box::pin(async move {
            if let Some(asked) = hangs {
                asked.notify_one();
                std::future::pending::<()>().await;
            }
            leave
        })
    }

    fn after(&self, compaction: AfterCompaction) -> NoticesFuture {
        let AfterCompaction { trigger, summary, .. } = compaction;
        let first = summary.lines().next().unwrap_or_default();
        self.heard.lock().unwrap().push(format!("after {} {first}", trigger.as_str()));
        Box::pin(async { vec!["The summary was filed.".to_owned()] })
    }
}

/// What a session did.
#[derive(Default)]
struct Seen {
    heard: Vec<String>,
    /// Requests for a summary.
    asked: Vec<String>,
    told: Vec<String>,
    reports: Vec<TurnReport>,
}

fn go(instructions: Option<&str>) -> CompactionGate {
    CompactionGate::Go { instructions: instructions.map(str::to_owned) }
}

fn last_words(request: &Request) -> String {
    request.messages.last().map(|message| message.text()).unwrap_or_default()
}

async fn play(leave: CompactionGate, hangs: Option<Arc<Notify>>, prompts: &[&str]) -> Seen {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let client = Client::scripted(
        move |request| {
            let words = last_words(request);
            if !words.contains("inside <summary> tags") {
                return vec![Block::new_text("ok")];
            }
            seen.lock().unwrap().push(words);
            vec![Block::new_text("<summary>Ports were compared.</summary>")]
        },
        Duration::ZERO,
    );
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hooks = Says { leave, heard: Arc::clone(&heard), hangs: hangs.clone() };
    let (session, handle, mut events) = Session::new(SessionConfig {
        compaction: CompactionConfig { window: Some(100_000), ..CompactionConfig::default() },
        turn_hooks: None,
        compaction_hooks: Some(Arc::new(hooks)),
        ..config(&cwd, book, client)
    });
    let engine = tokio::spawn(session.run());
    let mut seen = Seen::default();
    for prompt in prompts {
        handle.send(Command::Prompt(Prompt::text(prompt)));
        if let Some(asked) = hangs.as_ref().filter(|_| prompt.starts_with("/compact")) {
            asked.notified().await;
            handle.send(Command::Interrupt);
        }
        loop {
            match events.recv().await {
                Some(EngineEvent::Warning(text)) => seen.told.push(text),
                Some(EngineEvent::TurnEnded(report)) => break seen.reports.push(*report),
                Some(_) => {}
                None => panic!("the session ended"),
            }
        }
    }
    handle.send(Command::Close);
    engine.await.unwrap();
    seen.heard = heard.lock().unwrap().clone();
    seen.asked = asked.lock().unwrap().clone();
    seen
}

/// Invariant 15 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_wish_is_passed_on_and_can_be_added_to() {
    let prompts = ["one", "two", "/compact the ports", "three"];
    let seen = play(go(Some("Keep every name.")), None, &prompts).await;
    assert_eq!(
        seen.heard,
        [r#"before manual Some("the ports")"#, "after manual Ports were compared."],
        "once before, once after"
    );
    assert!(seen.asked[0].contains("this: the ports\nKeep every name."), "{}", seen.asked[0]);
    assert_eq!(seen.told, ["The summary was filed."]);
    assert!(seen.reports.iter().all(|report| report.outcome == Outcome::Completed));
}

/// Invariant 15 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_wish_that_is_blocked_is_told_why() {
    let block = CompactionGate::Block { reason: "not on Mondays".to_owned() };
    let seen = play(block, None, &["one", "two", "/compact", "three"]).await;
    assert_eq!((seen.heard.as_slice(), seen.asked.len()), (&["before manual None".to_owned()][..], 0));
    assert!(seen.reports[2].text.contains("blocked: not on Mondays"), "{}", seen.reports[2].text);
    assert_eq!(seen.reports[3].outcome, Outcome::Completed, "the conversation goes on");
}

/// A compaction nobody asked for: allowed it is made, blocked the conversation goes on as it is.
/// Invariant 15 of `docs/design/compaction.md`.
#[tokio::test]
async fn an_automatic_compaction_asks_too() {
    let long = "word ".repeat(36_000);
    let prompts = ["one", long.as_str(), long.as_str()];
    let seen = play(go(None), None, &prompts).await;
    assert_eq!(seen.heard, ["before auto None", "after auto Ports were compared."]);
    assert_eq!(seen.asked.len(), 1);
    let block = CompactionGate::Block { reason: "not now".to_owned() };
    let seen = play(block, None, &prompts).await;
    assert_eq!((seen.heard, seen.asked.len()), (vec!["before auto None".to_owned()], 0));
    assert_eq!(seen.reports[2].outcome, Outcome::Completed, "the request goes out as it is");
}

#[tokio::test]
async fn compaction_hooks_are_not_asked_when_there_is_nothing_to_compact() {
    let seen = play(go(None), None, &["/compact"]).await;
    assert_eq!(seen.heard, [""; 0]);
}

/// An interrupt does not wait for an answer.
#[tokio::test]
async fn an_answer_that_never_comes_can_be_interrupted() {
    let seen = play(go(None), Some(Arc::new(Notify::new())), &["one", "two", "/compact", "three"]).await;
    assert_eq!(seen.asked.len(), 0);
    assert!(matches!(seen.reports[2].outcome, Outcome::Interrupted(_)), "{:?}", seen.reports[2].outcome);
    assert_eq!(seen.reports[3].outcome, Outcome::Completed);
}
