//! Control requests as data: what each leads to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loci_app::FlagSettings;
use loci_app::commands::SessionCommands;
use loci_app::settings::editor::SettingsInputs;
use loci_core::agent::AgentRegistry;
use loci_core::cost_state::CostState;
use loci_core::ids::SessionId;
use loci_core::session::{NewSession, SessionIdentity, Totals};
use loci_core::usage::Usage;
use loci_engine::{CommandRegistry, EarlierTotals};
use loci_stdx::Store;

use super::*;
use crate::cost::Cost;

fn context() -> ControlContext {
    ControlContext {
        session: SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
        version: "2.1.197".to_owned(),
        api_key_source: "none".to_owned(),
        may_bypass: false,
        models: vec!["m".to_owned()],
        output_style: "default".to_owned(),
        output_styles: Arc::new(|| vec!["default".to_owned()]),
        initialized: None,
        has_awaited_initialize: false,
        commands: Arc::new(Store::new(CommandRegistry::builtin())),
        agents: Arc::new(Store::new(AgentRegistry::default())),
        cost: cost(),
        flag_settings: FlagSettings::default(),
        session_commands: session_commands(),
        queued: vec!["u1".to_owned()],
        task_outputs: BTreeMap::new(),
        foreground_calls: BTreeSet::from(["t".to_owned()]),
        is_busy: true,
        mode: Mode::Default,
        provider: "firstParty",
    }
}

fn session_commands() -> SessionCommands {
    let env = loci_stdx::Env::for_test("/home/dev", "/p");
    let home = loci_storage::layout::ConfigHome::from_env(&env);
    let settings = SettingsInputs::default();
    SessionCommands { env, home, build: "test".to_owned(), settings, plugin_reload: None }
}

/// A session that used one million tokens before this process and one in it.
fn cost() -> Cost {
    let mut totals = Totals::default();
    let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
    totals.add("claude-sonnet-4-5", &loci_core::model::facts("claude-sonnet-4-5"), &usage);
    let mut identity = SessionIdentity::new(NewSession {
        id: SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
        project_dir: "/c/projects/-p".into(),
        cwd: "/p".into(),
        is_interactive: false,
        is_persistent: true,
    });
    identity.totals = totals.clone();
    let earlier = CostState { totals, ..CostState::default() };
    Cost::new(Arc::new(Store::new(identity)), EarlierTotals::new(move || earlier.clone()))
}

#[test]
fn session_cost_includes_earlier_runs() {
    let answer = |subtype: &str| {
        handle_request("r", &json!({"subtype": subtype}), &context()).answer.unwrap().unwrap().unwrap()
    };
    let text = answer("get_session_cost")["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("Total cost: $6.0000\nclaude-sonnet-4-5: 2000000 input,"), "{text}");
}

#[test]
fn requests_become_commands_and_answers() {
    for (request, command) in [
        (json!({"subtype": "interrupt"}), Some(Command::Interrupt)),
        (json!({"subtype": "set_permission_mode", "mode": "plan"}), Some(Command::SetMode(Mode::Plan))),
        (json!({"subtype": "initialize", "hooks": null}), None),
        (
            json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 9}),
            Some(Command::SetThinking(Some(9))),
        ),
        (
            json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": null}),
            Some(Command::SetThinking(None)),
        ),
        (
            json!({"subtype": "rename_session", "title": " T "}),
            Some(Command::Rename { title: "T".to_owned() }),
        ),
        (
            json!({"subtype": "rename_session", "title": "T", "session_id": "0a0a0a0a-0001-4000-8000-000000000001"}),
            Some(Command::Rename { title: "T".to_owned() }),
        ),
        (
            json!({"subtype": "apply_flag_settings", "settings": {"effortLevel": null}}),
            Some(Command::SetEffort(None)),
        ),
        (
            json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"defaultMode": "plan"}}}),
            Some(Command::SetMode(Mode::Plan)),
        ),
        (json!({"subtype": "set_has_subscribers", "has_subscribers": true}), None),
        (json!({"subtype": "background_tasks"}), Some(Command::MoveToBackground { call: None })),
        (
            json!({"subtype": "background_tasks", "tool_use_id": "t"}),
            Some(Command::MoveToBackground { call: Some(ToolUseId::new("t")) }),
        ),
    ] {
        let outcome = handle_request("r", &request, &context());
        assert_eq!(outcome.commands.first(), command.as_ref(), "{request}");
        assert!(outcome.answer.is_some_and(|answer| answer.is_ok()), "{request}");
    }
    for bad in [
        json!({"subtype": "teleport"}),
        json!({"subtype": "set_mcp_permission_mode_override", "serverName": "s"}),
        json!({"subtype": "set_mcp_permission_mode_override", "serverName": "s", "mode": "bypassPermissions"}),
        json!({"subtype": "reload_plugins", "refuse_if_busy": true}),
        json!({"subtype": "reload_plugins", "add_plugins": [{"type": "local", "path": "/p"}]}),
        json!({"subtype": "rewind_files"}),
        json!({"subtype": "stop_task"}),
        json!({"subtype": "register_repo_root"}),
        json!({"subtype": "rename_session", "title": " "}),
        json!({"subtype": "rename_session", "title": "T", "session_id": "0a0a0a0a-0001-4000-8000-000000000002"}),
        json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": "many"}),
        json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": -1}),
        json!({"subtype": "apply_flag_settings", "settings": {"effortLevel": "utmost"}}),
        json!({"subtype": "read_file"}),
        json!({"subtype": "apply_flag_settings"}),
        json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"defaultMode": "bypassPermissions"}}}),
        json!({"subtype": "update_settings", "source": "policySettings", "settings": {"model": "x"}}),
        json!({"subtype": "seed_read_state", "path": "a"}),
        json!({"subtype": "cancel_async_message"}),
        json!({"subtype": "get_task_output", "task_id": "none"}),
        json!({"subtype": "mcp_call"}),
        json!({"subtype": "side_question", "question": " "}),
        json!({"subtype": "mcp_read_resource", "serverName": "s"}),
        json!({"subtype": "set_permission_mode", "mode": "yolo"}),
        json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
    ] {
        let outcome = handle_request("r", &bad, &context());
        let is_refused = outcome.answer.is_some_and(|answer| answer.is_err());
        assert!(is_refused && outcome.commands.is_empty(), "{bad}");
    }
}

#[test]
fn answers_of_background_tasks_and_unsupported_requests_are_those_of_the_protocol() {
    for (request, expected) in [
        (json!({"subtype": "background_tasks"}), json!({})),
        (json!({"subtype": "background_tasks", "tool_use_id": "t"}), json!({"backgrounded": true})),
        (json!({"subtype": "background_tasks", "tool_use_id": "x"}), json!({"backgrounded": false})),
    ] {
        assert_eq!(handle_request("r", &request, &context()).answer, Some(Ok(Some(expected))), "{request}");
    }
    let unknown = handle_request("r", &json!({"subtype": "teleport"}), &context()).answer.unwrap();
    let response = response("r", unknown)["response"].take();
    assert_eq!(response["error"], "Unsupported control request subtype: teleport");
    assert_eq!(response["error_code"], "unsupported_request");
}

#[test]
fn initialize_answers_whether_its_hooks_count() {
    let request = |hooks: Value| json!({"subtype": "initialize", "hooks": hooks});
    let applied = |request: &Value, context: &ControlContext| {
        let answer = handle_request("r", request, context).answer.unwrap().unwrap().unwrap();
        answer.get("hooks_applied").cloned()
    };
    let hooks = request(json!({"PostToolUse": [{"hookCallbackIds": ["hook_0"]}]}));
    let others = request(json!({"PostToolUse": [{"hookCallbackIds": ["hook_1"]}]}));
    let first = ControlContext { initialized: parse_initialize(&hooks).ok(), ..context() };
    assert_eq!(applied(&hooks, &first), Some(json!(true)));
    assert_eq!(applied(&others, &first), Some(json!(false)), "a later request changes nothing");
    assert_eq!(applied(&hooks, &context()), Some(json!(false)), "a prompt came first");
    assert_eq!(applied(&request(Value::Null), &first), None);
}

#[test]
fn session_answers_who_asks_for_another_model() {
    for (request, model) in [
        (json!({"subtype": "set_model", "model": "x"}), Some("x")),
        (json!({"subtype": "set_model", "model": "default"}), None),
        (json!({"subtype": "set_model", "model": null}), None),
        (json!({"subtype": "set_model"}), None),
        (json!({"subtype": "apply_flag_settings", "settings": {"model": "opus"}}), Some("opus")),
    ] {
        let outcome = handle_request("r", &request, &context());
        let request_id = Some("r".to_owned());
        let command = Command::SetModel { request: request_id, model: model.map(str::to_owned) };
        assert_eq!((outcome.commands, outcome.answer), (vec![command], None), "{request}");
    }
}

#[test]
fn what_a_request_about_thinking_leaves_out_stays_as_it_is() {
    let display = json!({"subtype": "set_max_thinking_tokens", "thinking_display": "omitted"});
    let outcome = handle_request("r", &display, &context());
    assert_eq!(outcome.commands, [Command::SetThinkingDisplay(Some("omitted".to_owned()))]);
}
