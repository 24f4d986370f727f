//! Prompts that are sent while a turn is under way.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_core::permission::{Mode, Rulebook};
use loci_core::stream::StreamEvent;
use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_engine::{Command, EngineEvent, Prompt, QueuedPrompt, Session, SessionHandle, ToolChanges};
use loci_llm::Client;
use loci_tools::{Host, Tool, ToolCall, ToolFuture, Workspace};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::auto_mode::config;

const NAME: &str = "mcp__slow__wait";

/// A tool that is done when the test says so.
struct Wait(ToolDescriptor, Arc<Semaphore>);

impl Tool for Wait {
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
        Box::pin(async {
            self.1.acquire().await.unwrap().forget();
            ToolOutcome::text("done", Value::Null)
        })
    }
}

/// A session whose model calls the slow tool when it is told to wait, and else answers.
struct Playing {
    handle: SessionHandle,
    events: UnboundedReceiver<EngineEvent>,
    /// The last message of each request.
    sent: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
    _root: tempfile::TempDir,
}

impl Playing {
    fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().canonicalize().unwrap();
        let mode = Mode::BypassPermissions;
        let book = Rulebook { dirs: vec![cwd.clone()], cwd: cwd.clone(), mode, ..Rulebook::default() };
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&sent);
        let client = Client::scripted(
            move |request| {
                let last = request.messages.last().unwrap();
                log.lock().unwrap().push(last.text());
                vec![match last.role == Role::User && last.text().contains("wait") {
                    true => Block::new_tool_use(&ToolUseId::new("toolu_1"), NAME, &json!({})),
                    false => Block::new_text("Done."),
                }]
            },
            Duration::ZERO,
        );
        let (session, handle, events) = Session::new(config(&cwd, book, client));
        tokio::spawn(session.run());
        let gate = Arc::new(Semaphore::new(0));
        let descriptor = ToolDescriptor {
            name: NAME.to_owned(),
            aliases: &[],
            description: "Waits.".to_owned(),
            input_schema: json!({"type": "object"}),
            max_result_chars: None,
            facts: ToolFacts::default(),
        };
        let tool: Arc<dyn Tool> = Arc::new(Wait(descriptor, Arc::clone(&gate)));
        handle.send(Command::ChangeTools(ToolChanges { added: vec![tool], removed: Vec::new() }));
        Self { handle, events, sent, gate, _root: root }
    }

    fn queue(&self, id: &str, text: &str) {
        let queued = QueuedPrompt { id: id.to_owned(), prompt: Prompt::text(text) };
        self.handle.send(Command::Queue(queued));
    }

    /// Waits for an event that is told of in a word or two; returns those before it, too.
    async fn wait_for(&mut self, word: &str) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let text = match self.events.recv().await.unwrap() {
                EngineEvent::Dequeued { id, is_injected: true, .. } => format!("injected {id}"),
                EngineEvent::Dequeued { id, is_injected: false, .. } => format!("turn {id}"),
                EngineEvent::QueueTakenBack(prompts) => {
                    let ids: Vec<String> = prompts.into_iter().map(|queued| queued.id).collect();
                    format!("taken back {}", ids.join(" "))
                }
                EngineEvent::ModeChanged(_) => "mode".to_owned(),
                EngineEvent::TurnEnded(_) => "ended".to_owned(),
                EngineEvent::User(_) => "result".to_owned(),
                EngineEvent::Assistant(_) => "said".to_owned(),
                _ => continue,
            };
            told.push(text.clone());
            if text == word {
                return told;
            }
        }
    }

    /// Begins a turn whose call waits.
    async fn begin(&mut self) {
        self.handle.send(Command::Prompt(Prompt::text("wait")));
        self.wait_for("said").await;
    }

    fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }
}

/// Whoever looks on knows from it that the model waits, and what it has used.
#[tokio::test]
async fn end_of_an_answer_is_told_while_its_call_runs() {
    let mut playing = Playing::start();
    playing.begin().await;
    loop {
        match playing.events.recv().await.unwrap() {
            EngineEvent::Stream { event: StreamEvent::Ended(_), .. } => break,
            EngineEvent::User(_) | EngineEvent::TurnEnded(_) => panic!("the call cannot have ended"),
            _ => {}
        }
    }
    playing.gate.add_permits(1);
    assert_eq!(playing.wait_for("ended").await, ["result", "said", "ended"]);
}

#[tokio::test]
async fn queued_prompts_are_heard_with_the_next_results() {
    let mut playing = Playing::start();
    playing.begin().await;
    playing.queue("a", "also this");
    playing.queue("b", "and that");
    playing.handle.send(Command::SetMode(Mode::AcceptEdits));
    playing.wait_for("mode").await;
    playing.gate.add_permits(1);
    let told = playing.wait_for("ended").await;
    assert_eq!(told, ["result", "injected a", "injected b", "said", "ended"]);
    let sent = playing.sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(sent[1].contains("also this") && sent[1].contains("and that"), "{sent:?}");
}

#[tokio::test]
async fn queued_command_and_what_follows_it_wait_for_turns_of_their_own() {
    let mut playing = Playing::start();
    playing.begin().await;
    playing.queue("a", "/compact");
    playing.queue("b", "later");
    playing.handle.send(Command::SetMode(Mode::AcceptEdits));
    playing.wait_for("mode").await;
    playing.gate.add_permits(1);
    let told = playing.wait_for("ended").await;
    assert_eq!(told, ["result", "said", "ended"], "neither is heard in this turn");
    assert_eq!(playing.wait_for("turn a").await.last().unwrap(), "turn a");
    assert_eq!(playing.wait_for("turn b").await.last().unwrap(), "turn b");
    playing.wait_for("ended").await;
    assert!(playing.sent().last().unwrap().contains("later"));
}

#[tokio::test]
async fn queue_that_is_taken_back_is_not_heard() {
    let mut playing = Playing::start();
    playing.begin().await;
    playing.queue("a", "never mind");
    playing.handle.send(Command::TakeBackQueue);
    playing.wait_for("taken back a").await;
    playing.gate.add_permits(1);
    let told = playing.wait_for("ended").await;
    assert_eq!(told, ["result", "said", "ended"]);
    assert!(playing.sent().iter().all(|text| !text.contains("never mind")));
}

#[tokio::test]
async fn interrupt_sends_what_was_queued_as_the_next_turn() {
    let mut playing = Playing::start();
    playing.begin().await;
    playing.queue("a", "do this instead");
    playing.handle.send(Command::Interrupt);
    let told = playing.wait_for("turn a").await;
    assert!(told.contains(&"ended".to_owned()), "{told:?}");
    playing.wait_for("ended").await;
    assert!(playing.sent().last().unwrap().contains("do this instead"));
}
