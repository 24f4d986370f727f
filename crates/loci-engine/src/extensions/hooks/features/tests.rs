//! Features ask, real commands answer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::hooks::{CommonInput, EventInput, HandlerEnd, HookInput};
use loci_core::hooks::{HookConfig, HookScope, HookSource, TaskFields};
use loci_core::ids::AgentId;
use serde_json::{Value, json};

use super::super::trial::tests::service;
use super::*;
use crate::event::AgentRef;
use crate::extensions::McpToolCaller;

fn hooks(scope: HookScope, hooks: &Value) -> HookConfig {
    let source = HookSource { scope, file: "test".into(), line: 0 };
    HookConfig::parse(hooks, source, Path::new("/")).0
}

fn settings(value: &Value) -> HookConfig {
    hooks(HookScope::Plugin("p".to_owned()), value)
}

fn command(line: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": line}]}])
}

fn moment(dir: &Path) -> HookMoment {
    HookMoment { cwd: dir.to_owned(), ..HookMoment::default() }
}

fn agent_moment(dir: &Path, id: &str) -> HookMoment {
    let agent = AgentRef {
        id: AgentId::new(id),
        kind: "Explore".to_owned(),
        parent: Some("toolu_1".into()),
        description: String::new(),
        depth: 1,
    };
    HookMoment { agent: Some(agent), ..moment(dir) }
}

fn task() -> TaskFields {
    TaskFields {
        task_id: "1".to_owned(),
        task_subject: "Sort".to_owned(),
        task_description: None,
        teammate_name: None,
        team_name: None,
    }
}

#[tokio::test]
async fn features_without_hooks_are_answered_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (service, at) = (service(HookConfig::default(), dir.path(), None), || moment(dir.path()));
    assert!(service.subagent_begins(at()).await.is_empty());
    assert_eq!(service.before_task(TaskStep::Created, task(), at()).await, Ok(()));
    assert_eq!(service.before_idle("a".to_owned(), "t".to_owned(), at()).await, None);
    assert_eq!(service.create_worktree("w".to_owned(), at()).await, None);
    assert_eq!(service.before_elicitation(ElicitationRequest::default(), at()).await, None);
}

#[tokio::test]
async fn subagent_hook_is_told_its_agent_and_adds_context() {
    let dir = tempfile::tempdir().unwrap();
    let said = json!({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "mind"}});
    let config = json!({"SubagentStart": [
        {"matcher": "Explore", "hooks": [{"type": "command", "command": format!("cat > told; echo '{said}'")}]},
        {"matcher": "Plan", "hooks": [{"type": "command", "command": "touch wrong"}]},
    ]});
    let service = service(settings(&config), dir.path(), None);
    let added = service.subagent_begins(agent_moment(dir.path(), "a1")).await;
    let [Attachment::HookAdditionalContext { content, .. }] = added.as_slice() else { panic!("{added:?}") };
    assert_eq!(content, &["mind"]);
    let told: Value = serde_json::from_slice(&std::fs::read(dir.path().join("told")).unwrap()).unwrap();
    assert_eq!((&told["agent_id"], &told["agent_type"]), (&json!("a1"), &json!("Explore")));
    assert!(!dir.path().join("wrong").exists());
}

#[tokio::test]
async fn task_is_refused_with_what_the_hook_says() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({
        "TaskCreated": command("echo no ticket >&2; exit 2"),
        "TaskCompleted": command("echo '{\"continue\": false}'"),
    });
    let service = service(settings(&config), dir.path(), None);
    let refused = service.before_task(TaskStep::Created, task(), moment(dir.path())).await;
    assert_eq!(refused, Err("no ticket".to_owned()));
    // The event does not stop anything.
    assert_eq!(service.before_task(TaskStep::Completed, task(), moment(dir.path())).await, Ok(()));
}

#[tokio::test]
async fn teammate_goes_on_with_what_the_hook_says_unless_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    for (line, expected) in [
        ("echo build first >&2; exit 2", Some("[echo build first >&2; exit 2]: build first")),
        ("echo '{\"continue\": false, \"stopReason\": \"enough\"}'", None),
        ("true", None),
    ] {
        let service = service(settings(&json!({"TeammateIdle": command(line)})), dir.path(), None);
        let said = service.before_idle("a".to_owned(), "t".to_owned(), moment(dir.path())).await;
        assert_eq!(said.as_deref(), expected, "{line}");
    }
}

#[tokio::test]
async fn worktree_is_where_the_hook_says_and_any_failure_is_one() {
    let dir = tempfile::tempdir().unwrap();
    for (line, expected) in [
        ("echo banner; echo /w/try", Ok(PathBuf::from("/w/try"))),
        ("echo below", Ok(PathBuf::from("below"))),
        ("echo /w/try; echo no room >&2; exit 1", Err("no room")),
        ("true", Err("no WorktreeCreate hook printed the path of a worktree")),
    ] {
        let service = service(settings(&json!({"WorktreeCreate": command(line)})), dir.path(), None);
        let made = service.create_worktree("try".to_owned(), moment(dir.path())).await;
        assert_eq!(made, Some(expected.map_err(str::to_owned)), "{line}");
    }
}

#[tokio::test]
async fn elicitation_is_answered_or_declined_by_hooks() {
    let dir = tempfile::tempdir().unwrap();
    let reply =
        |action: &str, content: Option<Value>| ElicitationReply { action: action.to_owned(), content };
    let accept = json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"size": "L"}}});
    for (line, expected) in [
        (format!("echo '{accept}'"), Some(reply("accept", Some(json!({"size": "L"}))))),
        ("exit 2".to_owned(), Some(reply("decline", None))),
        ("true".to_owned(), None),
    ] {
        let service = service(settings(&json!({"Elicitation": command(&line)})), dir.path(), None);
        let request = ElicitationRequest { server: "shop".to_owned(), ..ElicitationRequest::default() };
        assert_eq!(service.before_elicitation(request, moment(dir.path())).await, expected, "{line}");
    }
    for (line, expected) in [("exit 2", "decline"), ("true", "accept")] {
        let service = service(settings(&json!({"ElicitationResult": command(line)})), dir.path(), None);
        let request = ElicitationRequest { server: "shop".to_owned(), ..ElicitationRequest::default() };
        let said = service.after_elicitation(request, reply("accept", None), moment(dir.path())).await;
        assert_eq!(said.action, expected, "{line}");
    }
}

#[tokio::test]
async fn hooks_of_an_agent_count_in_its_conversation_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let service = service(HookConfig::default(), dir.path(), None);
    let config = hooks(HookScope::Agent("x".to_owned()), &json!({"Stop": command("echo x >> runs")}));
    let guard = service
        .add_scoped(ScopedHooks { config: config.into_agent_hooks(), agent: Some(AgentId::new("a1")) });
    let end = |id: &str| {
        let event = EventInput::SubagentStop {
            stop_hook_active: false,
            agent_transcript_path: PathBuf::new(),
            last_assistant_message: String::new(),
            background_tasks: Vec::new(),
            session_crons: Vec::new(),
        };
        service.input(event, agent_moment(dir.path(), id))
    };
    let runs = || std::fs::read_to_string(dir.path().join("runs")).unwrap_or_default().len() / 2;
    service.fire(end("a2"), None, None).await;
    assert_eq!(runs(), 0, "another agent's end");
    service.fire(end("a1"), None, None).await;
    assert_eq!(runs(), 1);
    drop(guard);
    service.fire(end("a1"), None, None).await;
    assert_eq!((runs(), service.has(HookEvent::SubagentStop)), (1, false));
}

#[tokio::test]
async fn hooks_of_a_skill_stay_and_run_once_where_they_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let service = service(HookConfig::default(), dir.path(), None);
    let group = json!([{"hooks": [
        {"type": "command", "command": "echo x >> once", "once": true},
        {"type": "command", "command": "echo x >> always"},
    ]}]);
    let n = |file: &str| std::fs::read_to_string(dir.path().join(file)).unwrap_or_default().len() / 2;
    for _ in 0..3 {
        let config = hooks(HookScope::Skill("s".to_owned()), &json!({"PostToolBatch": group}));
        service.add_scoped(ScopedHooks { config, agent: None }).keep();
        let event = EventInput::PostToolBatch { tool_calls: Vec::new() };
        service.fire(service.input(event, moment(dir.path())), None, None).await;
    }
    assert_eq!((n("once"), n("always")), (1, 3));
}

/// Answers for one server, and remembers what it was asked.
#[derive(Default)]
struct Server(Mutex<Vec<Value>>);

impl McpToolCaller for Server {
    fn call_tool(&self, server: &str, tool: &str, input: Value) -> HookFuture<Result<String, String>> {
        self.0.lock().unwrap().push(input);
        let answer = match (server, tool) {
            ("scan", "look") => Ok(r#"{"decision": "block", "reason": "found one"}"#.to_owned()),
            _ => Err(format!("the MCP server `{server}` is not connected")),
        };
        Box::pin(async { answer })
    }
}

#[tokio::test]
async fn tool_of_a_server_is_called_with_fields_of_the_input_and_read_like_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let server = Arc::new(Server::default());
    let handler = |server: &str| json!([{"hooks": [{"type": "mcp_tool", "server": server, "tool": "look", "input": {"of": "${task_subject}"}}]}]);
    for (name, caller, expected) in [
        ("scan", Some(Arc::clone(&server) as Arc<dyn McpToolCaller>), Err("found one".to_owned())),
        ("gone", Some(Arc::clone(&server) as Arc<dyn McpToolCaller>), Ok(())),
        ("scan", None, Ok(())),
    ] {
        let service = service(settings(&json!({"TaskCreated": handler(name)})), dir.path(), caller);
        assert_eq!(
            service.before_task(TaskStep::Created, task(), moment(dir.path())).await,
            expected,
            "{name}"
        );
    }
    assert_eq!(server.0.lock().unwrap().as_slice(), [json!({"of": "Sort"}), json!({"of": "Sort"})]);
    // Nothing is called for a handler that cannot be reached, and that is an error of the handler's.
    let input = HookInput { common: CommonInput::default(), event: EventInput::TaskCreated { task: task() } };
    let service = service(settings(&json!({"TaskCreated": handler("scan")})), dir.path(), None);
    let (runs, _) = service.run_all(&input, None, None).await;
    assert!(matches!(&runs[0].end, HandlerEnd::Failed(why) if why.contains("not connected")));
}
