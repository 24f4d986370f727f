//! Hooks hear when a session waits for a prompt.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loci_core::hooks::{HookConfig, HookScope, HookSource};
use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_core::permission::{Mode, Rulebook};
use loci_engine::{Command, EngineEvent, MemoryWatch, Prompt, Session, SessionConfig};
use loci_llm::{Client, Request};
use loci_tools::TaskNews;
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

/// A real command in the background of a session that loses its patience sooner than usual, on a machine that says of itself
/// what a file has.
#[tokio::test]
async fn commands_of_an_idle_session_make_room_when_memory_is_short() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let pressure = cwd.join("pressure");
    std::fs::write(&pressure, "some avg10=0.00\nfull avg10=0.00 avg60=0.00\n").unwrap();
    let book = Rulebook {
        dirs: vec![cwd.clone()],
        cwd: cwd.clone(),
        mode: Mode::BypassPermissions,
        ..Rulebook::default()
    };
    let asked: Arc<Mutex<String>> = Arc::default();
    let last = Arc::clone(&asked);
    let script = move |request: &Request| {
        let is_first = request.messages.iter().all(|message| message.role != Role::Assistant);
        *last.lock().unwrap() = format!("{:?}", request.messages.last());
        let input = json!({"command": "sleep 600", "description": "wait", "run_in_background": true});
        vec![match is_first {
            true => Block::new_tool_use(&ToolUseId::from("t1"), "Bash", &input),
            false => Block::new_text("Done."),
        }]
    };
    let client = Client::scripted(script, Duration::ZERO);
    let memory_watch = Some(MemoryWatch {
        patience: Duration::from_millis(20),
        interval: Duration::from_millis(20),
        file: pressure.clone(),
    });
    let (session, handle, mut events) =
        Session::new(SessionConfig { memory_watch, ..config(&cwd, book, client) });
    let engine = tokio::spawn(session.run());
    handle.send(Command::Prompt(Prompt::text("go")));
    while !matches!(events.recv().await.unwrap(), EngineEvent::TurnEnded(_)) {}
    std::fs::write(&pressure, "some avg10=90.00\nfull avg10=60.00 avg60=0.00\n").unwrap();
    let mut told = Vec::new();
    loop {
        match events.recv().await.unwrap() {
            EngineEvent::Warning(text) => told.push(text),
            EngineEvent::Task(TaskNews::Ended(_)) => break,
            _ => {}
        }
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("wait; the machine is short of memory"), "{told:?}");
    // Nothing is asked of the model for that; it hears of it with the next prompt.
    handle.send(Command::Prompt(Prompt::text("on")));
    while !matches!(events.recv().await.unwrap(), EngineEvent::TurnEnded(_)) {}
    let asked = asked.lock().unwrap().clone();
    assert!(asked.contains("on") && asked.contains("the machine is short of memory"), "{asked}");
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
