//! Hooks hear when a session waits for a prompt.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_core::hooks::{HookConfig, HookScope, HookSource};
use loci_core::message::Block;
use loci_core::permission::Rulebook;
use loci_engine::{Command, EngineEvent, Prompt, Session, SessionConfig};
use loci_llm::Client;
use serde_json::{Value, json};

use crate::auto_mode::config;

/// A real command, run by a real session that loses its patience sooner than usual.
#[tokio::test]
async fn session_that_waits_for_a_prompt_tells_hooks_once_a_turn() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let kept = cwd.join("kept.jsonl");
    let hooks = json!({"Notification": [{"matcher": "idle_prompt", "hooks": [
        {"type": "command", "command": format!("cat >> '{}'", kept.display())}
    ]}]});
    let source =
        HookSource { scope: HookScope::Plugin("p".to_owned()), file: Arc::from("hooks.json"), line: 1 };
    let (hooks, problems) = HookConfig::parse(&hooks, source, &cwd);
    assert_eq!(problems, []);
    let book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
    let client = Client::scripted(|_| vec![Block::new_text("Done.")], Duration::ZERO);
    let idle_notice = Duration::from_millis(20);
    let (session, handle, mut events) =
        Session::new(SessionConfig { hooks, idle_notice, ..config(&cwd, book, client) });
    let engine = tokio::spawn(session.run());
    for n_told in [1, 2] {
        handle.send(Command::Prompt(Prompt::text("go")));
        while !matches!(events.recv().await.unwrap(), EngineEvent::TurnEnded(_)) {}
        let told = wait_for_lines(&kept, n_told).await;
        assert_eq!(told.len(), n_told, "{told:?}");
        assert_eq!(told[n_told - 1]["notification_type"], "idle_prompt");
    }
    handle.send(Command::Close);
    engine.await.unwrap();
}

async fn wait_for_lines(file: &std::path::Path, n: usize) -> Vec<Value> {
    let last = Instant::now() + Duration::from_secs(60);
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        if lines.len() >= n || Instant::now() > last {
            return lines;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
