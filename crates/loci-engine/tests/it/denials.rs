//! Hooks beside the classifier of mode `auto`: told of its denials, and telling it of results.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::entry::{Entry, EntryKind};
use loci_core::hooks::{HookConfig, HookScope, HookSource};
use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_core::permission::{Classified, Mode, Rulebook};
use loci_engine::{
    Classifier, ClassifierCall, ClassifierFuture, ClassifierNote, Command, EngineEvent, LoadedHistory,
    Prompt, Session, SessionConfig,
};
use loci_llm::Client;
use loci_storage::sessions::SessionLog;
use serde_json::{Value, json};

use crate::auto_mode::config;

/// Lets the first call pass and blocks the second, and remembers what it was told.
#[derive(Default)]
struct SecondIsBlocked(Mutex<Vec<Vec<ClassifierNote>>>);

impl Classifier for SecondIsBlocked {
    fn classify(&self, call: ClassifierCall) -> ClassifierFuture {
        let mut told = self.0.lock().unwrap();
        told.push(call.notes);
        let said = match told.len() {
            1 => Classified::Pass("harmless".to_owned()),
            _ => Classified::Block("publishing was not asked for".to_owned()),
        };
        Box::pin(async move { Some(said) })
    }
}

fn hooks(cwd: &std::path::Path, value: &Value) -> HookConfig {
    let source = HookSource { scope: HookScope::Plugin("p".to_owned()), file: "test".into(), line: 0 };
    HookConfig::parse(value, source, cwd).0
}

/// Lets the model make two calls under hooks; returns what the classifier was told, the last request, and what hooks kept.
async fn play(value: Value) -> (Vec<Vec<ClassifierNote>>, String, String) {
    let root = tempfile::tempdir().unwrap();
    play_in(&root.path().canonicalize().unwrap(), value).await
}

/// Does so in a directory whose session, if it has one already, goes on.
async fn play_in(cwd: &Path, value: Value) -> (Vec<Vec<ClassifierNote>>, String, String) {
    let history = history_in(cwd);
    let n_before = history.path.iter().filter(|entry| entry.head().kind == EntryKind::Assistant).count();
    let cwd = cwd.to_path_buf();
    let classifier = Arc::new(SecondIsBlocked::default());
    let sent = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&sent);
    let client = Client::scripted(
        move |request| {
            *heard.lock().unwrap() = format!("{:?}", request.messages);
            let n_responses =
                request.messages.iter().filter(|message| message.role == Role::Assistant).count();
            let turn = n_responses - n_before;
            let id = ToolUseId::new(format!("toolu_{n_responses}"));
            vec![match turn {
                0 => Block::new_tool_use(&id, "Bash", &json!({"command": "touch a"})),
                1 => Block::new_tool_use(&id, "Bash", &json!({"command": "touch b"})),
                _ => Block::new_text("Done."),
            }]
        },
        Duration::ZERO,
    );
    let book =
        Rulebook { mode: Mode::Auto, dirs: vec![cwd.clone()], cwd: cwd.clone(), ..Rulebook::default() };
    let config = SessionConfig {
        classifier: Some(Arc::clone(&classifier) as Arc<dyn Classifier>),
        hooks: hooks(&cwd, &value),
        log: SessionLog::on_disk(&cwd.join(SESSION_FILE)),
        history,
        ..config(&cwd, book, client)
    };
    let (session, handle, mut events) = Session::new(config);
    let engine = tokio::spawn(session.run());
    handle.send(Command::Prompt(Prompt::text("go")));
    while let Some(event) = events.recv().await {
        if matches!(event, EngineEvent::TurnEnded(_)) {
            break;
        }
    }
    handle.send(Command::Close);
    engine.await.unwrap();
    let kept = std::fs::read_to_string(cwd.join("told")).unwrap_or_default();
    let told = classifier.0.lock().unwrap().clone();
    let sent = sent.lock().unwrap().clone();
    (told, sent, kept)
}

/// Where the session of a directory is written.
const SESSION_FILE: &str = "session.jsonl";

/// Reads what was said in a directory so far.
fn history_in(cwd: &Path) -> LoadedHistory {
    let text = std::fs::read_to_string(cwd.join(SESSION_FILE)).unwrap_or_default();
    let entries = text.lines().map(|line| Arc::new(Entry::parse(line).unwrap()));
    let path: Vec<Arc<Entry>> = entries.filter(|entry| entry.head().uuid.is_some()).collect();
    let leaf = path.last().and_then(|entry| entry.head().uuid.clone());
    LoadedHistory { path, leaf, ..LoadedHistory::default() }
}

fn said(event: &str, mut fields: Value) -> Value {
    fields["hookEventName"] = event.into();
    let answer = json!({"hookSpecificOutput": fields});
    json!([{"hooks": [{"type": "command", "command": format!("cat >> told; echo '{answer}'")}]}])
}

#[tokio::test]
async fn denial_of_the_classifier_is_told_and_the_model_may_retry_where_a_hook_says_so() {
    for retry in [true, false] {
        let (_, sent, kept) =
            play(json!({"PermissionDenied": said("PermissionDenied", json!({"retry": retry}))})).await;
        let told: Value = serde_json::from_str(kept.trim()).unwrap();
        assert_eq!(
            (&told["hook_event_name"], &told["tool_input"]["command"], &told["reason"]),
            (&json!("PermissionDenied"), &json!("touch b"), &json!("publishing was not asked for"))
        );
        assert_eq!(told["permission_mode"], "auto");
        assert!(sent.contains("publishing was not asked for"), "{sent}");
        assert_eq!(sent.contains("you may try this call again"), retry, "{sent}");
    }
}

#[tokio::test]
async fn classifier_is_told_what_hooks_say_of_results_and_the_model_is_not() {
    let long = "x".repeat(3000);
    for (text, n_chars) in [("staging, not production", 23), (long.as_str(), 2000)] {
        let (told, sent, _) =
            play(json!({"PostToolUse": said("PostToolUse", json!({"classifierContext": text}))})).await;
        assert_eq!(told[0], []);
        let [note] = &told[1][..] else { panic!("{told:?}") };
        assert_eq!((note.tool.as_str(), note.text.chars().count()), ("Bash", n_chars));
        assert!(!sent.contains(&text[..20]), "{sent}");
    }
}

#[tokio::test]
async fn classifier_of_a_resumed_session_is_told_what_hooks_said_of_earlier_results() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let hooks = json!({"PostToolUse": said("PostToolUse", json!({"classifierContext": "staging"}))});
    let (told, ..) = play_in(&cwd, hooks).await;
    let earlier = told[1].clone();
    assert_eq!(earlier.len(), 1, "{told:?}");
    let (told, sent, _) = play_in(&cwd, json!({})).await;
    assert_eq!(told[0], earlier, "no hook said it again");
    assert!(!sent.contains("staging"), "{sent}");
}
