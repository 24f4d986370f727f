//! Tools that come and go while a session runs, as servers of tools will bring and take them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_core::permission::{Mode, RuleList, RuleOrigin, RuleSource, Rulebook};
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_engine::{Command, EngineEvent, Prompt, Session, SessionHandle, ToolChanges};
use loci_llm::Client;
use loci_tools::{Host, Tool, ToolCall, ToolFuture, Workspace};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::auto_mode::config;

const NAME: &str = "mcp__late__ping";

/// A tool that answers with one word.
struct Ping(ToolDescriptor);

impl Ping {
    fn shared(name: &str) -> Arc<dyn Tool> {
        Arc::new(Self(ToolDescriptor {
            name: name.to_owned(),
            aliases: &[],
            description: "Answers.".to_owned(),
            input_schema: json!({"type": "object"}),
            max_result_chars: None,
            facts: ToolFacts::default(),
        }))
    }
}

impl Tool for Ping {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.0
    }

    fn effects(&self, _input: &Value, _workspace: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, _call: ToolCall, _host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async { ToolOutcome::text("pong", Value::Null) })
    }
}

/// What one request offered, and the message it ended with.
#[derive(Clone)]
struct Sent {
    tools: Vec<String>,
    last: String,
}

impl Sent {
    fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.contains(&format!("\"name\":\"{name}\"")))
    }
}

/// A session whose model calls the late tool once for every prompt with "ping" in it.
struct Playing {
    handle: SessionHandle,
    events: UnboundedReceiver<EngineEvent>,
    sent: Arc<Mutex<Vec<Sent>>>,
    _root: tempfile::TempDir,
}

impl Playing {
    fn start(deny: Option<&str>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().canonicalize().unwrap();
        let mut book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
        book.mode = Mode::BypassPermissions;
        if let Some(rule) = deny {
            book.add(RuleList::Deny, rule, &RuleOrigin::new(RuleSource::Session, cwd.as_path()));
        }
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&sent);
        let client = Client::scripted(
            move |request| {
                let last = request.messages.last().unwrap();
                let tools = request.tools.iter().map(|tool| tool.json.as_str().to_owned()).collect();
                log.lock().unwrap().push(Sent { tools, last: format!("{:?}", last.content) });
                vec![match last.role == Role::User && last.text().contains("ping") {
                    true => Block::new_tool_use(&ToolUseId::new("toolu_1"), NAME, &json!({})),
                    false => Block::new_text("<summary>Done.</summary>"),
                }]
            },
            Duration::ZERO,
        );
        let (session, handle, events) = Session::new(config(&cwd, book, client));
        tokio::spawn(session.run());
        Self { handle, events, sent, _root: root }
    }

    fn change(&self, added: &[&str], removed: &[&str]) {
        let added = added.iter().map(|name| Ping::shared(name)).collect();
        let removed = removed.iter().map(|&name| name.to_owned()).collect();
        self.handle.send(Command::ChangeTools(ToolChanges { added, removed }));
    }

    /// Plays a turn; returns its requests and the warnings that came.
    async fn turn(&mut self, prompt: &str) -> (Vec<Sent>, Vec<String>) {
        self.handle.send(Command::Prompt(Prompt::text(prompt)));
        let mut warnings = Vec::new();
        loop {
            match self.events.recv().await.unwrap() {
                EngineEvent::Warning(text) => warnings.push(text),
                EngineEvent::TurnEnded(_) => break,
                _ => {}
            }
        }
        (std::mem::take(&mut *self.sent.lock().unwrap()), warnings)
    }
}

#[tokio::test]
async fn tool_that_comes_late_is_offered_behind_the_others_and_runs() {
    let mut playing = Playing::start(None);
    let (before, _) = playing.turn("hello").await;
    assert!(!before[0].offers(NAME));
    playing.change(&[NAME], &[]);
    let (after, warnings) = playing.turn("ping").await;
    assert!(after[0].tools.starts_with(&before[0].tools) && after[0].offers(NAME), "{:?}", after[0].tools);
    assert!(after[1].last.contains("pong") && warnings.is_empty(), "{} {warnings:?}", after[1].last);
}

#[tokio::test]
async fn tool_that_went_keeps_its_bytes_until_a_compaction_and_runs_no_more() {
    let mut playing = Playing::start(None);
    playing.change(&[NAME], &[]);
    let (before, _) = playing.turn("ping").await;
    playing.change(&[], &[NAME]);
    let (after, _) = playing.turn("ping").await;
    assert_eq!(after[0].tools, before[0].tools);
    assert!(!after[1].last.contains("pong"), "{}", after[1].last);
    playing.turn("/compact").await;
    let (fresh, _) = playing.turn("hello").await;
    assert!(!fresh[0].offers(NAME));
}

#[tokio::test]
async fn tool_that_is_denied_as_a_whole_or_there_already_is_not_offered() {
    let mut playing = Playing::start(Some(NAME));
    playing.change(&[NAME, "Bash"], &[]);
    let (sent, warnings) = playing.turn("hello").await;
    assert!(!sent[0].offers(NAME));
    assert_eq!(warnings, ["A tool is not offered: There is a tool `Bash` already"]);
}
