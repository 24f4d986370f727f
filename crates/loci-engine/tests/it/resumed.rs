//! A front end hears what was said before a session was resumed.

use std::sync::Arc;
use std::time::Duration;

use loci_core::entry::Entry;
use loci_core::permission::Rulebook;
use loci_engine::{EngineEvent, LoadedHistory, ResumedHistory, Session, SessionConfig};
use loci_llm::Client;

use crate::auto_mode::config;

fn history() -> Vec<Arc<Entry>> {
    let lines = [
        r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","message":{"role":"assistant","content":[]}}"#,
    ];
    lines.iter().map(|line| Arc::new(Entry::parse(*line).unwrap())).collect()
}

#[tokio::test]
async fn resumed_session_first_tells_its_history_and_a_new_one_none() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    for path in [history(), Vec::new()] {
        let client = Client::scripted(|_| Vec::new(), Duration::ZERO);
        let book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
        let loaded = LoadedHistory { path: path.clone(), ..LoadedHistory::default() };
        let (session, handle, mut events) =
            Session::new(SessionConfig { history: loaded, ..config(&cwd, book, client) });
        drop(handle);
        let engine = tokio::spawn(session.run());
        let mut told = Vec::new();
        while let Some(event) = events.recv().await {
            told.push(event);
        }
        engine.await.unwrap();
        let is_resumed = |event: &EngineEvent| matches!(event, EngineEvent::Resumed(_));
        assert_eq!(told.iter().filter(|event| is_resumed(event)).count(), usize::from(!path.is_empty()));
        if !path.is_empty() {
            assert_eq!(told[0], EngineEvent::Resumed(ResumedHistory { entries: path, lost: Vec::new() }));
        }
    }
}
