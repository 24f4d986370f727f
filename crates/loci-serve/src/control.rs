//! Control requests a client makes of a running session.

use std::sync::Arc;

use loci_core::agent::AgentRegistry;
use loci_core::ids::ToolUseId;
use loci_core::permission::Mode;
use loci_engine::{Command, CommandRegistry, DirectorySource, FilesRewound, InitializeRequest, McpAction};
use loci_stdx::Store;
use serde_json::{Value, json};

use crate::cost::Cost;
use crate::headless::OutputStyles;
use crate::initialize::{check_late_hooks, check_support, parse_initialize};

/// What a control request leads to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ControlOutcome {
    /// What the session is told.
    pub(crate) command: Option<Command>,
    /// What the client is answered, or why not; `None` when the session answers later.
    pub(crate) answer: Option<Result<Option<Value>, String>>,
    /// What the client's user should know.
    pub(crate) notice: Option<String>,
    /// Whether there can be no run after this.
    pub(crate) is_fatal: bool,
}

/// Reads a control request.
pub(crate) fn handle_request(id: &str, request: &Value, context: &ControlContext) -> ControlOutcome {
    let text = |key: &str| request.get(key).and_then(Value::as_str);
    let say =
        |command, answer| ControlOutcome { command, answer: Some(Ok(answer)), ..ControlOutcome::default() };
    let refuse = |problem: String| ControlOutcome { answer: Some(Err(problem)), ..ControlOutcome::default() };
    let later = |action| ControlOutcome {
        command: Some(Command::Mcp { request: id.to_owned(), action }),
        ..ControlOutcome::default()
    };
    match text("subtype").unwrap_or_default() {
        "initialize" => initialize(request, context),
        "interrupt" => say(Some(Command::Interrupt), None),
        "set_permission_mode" => match text("mode").unwrap_or_default().parse::<Mode>() {
            Ok(Mode::BypassPermissions) if !context.may_bypass => refuse(
                "Cannot set permission mode to bypassPermissions: the session was not started with \
                 --dangerously-skip-permissions or --allow-dangerously-skip-permissions"
                    .to_owned(),
            ),
            Ok(mode) => say(Some(Command::SetMode(mode)), Some(json!({"mode": mode.as_str()}))),
            Err(bad) => refuse(bad.to_string()),
        },
        "set_model" => {
            let model = text("model").filter(|model| *model != "default").map(str::to_owned);
            say(Some(Command::SetModel(model)), None)
        }
        "rewind_files" => match text("user_message_id").filter(|id| !id.is_empty()) {
            Some(prompt) => ControlOutcome {
                command: Some(Command::RewindFiles {
                    request: id.to_owned(),
                    prompt: prompt.into(),
                    is_trial: request.get("dry_run").and_then(Value::as_bool).unwrap_or(false),
                }),
                ..ControlOutcome::default()
            },
            None => refuse("rewind_files needs user_message_id".to_owned()),
        },
        "stop_task" => match text("task_id").filter(|id| !id.is_empty()) {
            Some(task) => ControlOutcome {
                command: Some(Command::StopTask { request: id.to_owned(), task: task.to_owned() }),
                ..ControlOutcome::default()
            },
            None => refuse("stop_task needs task_id".to_owned()),
        },
        "background_tasks" => {
            let call = text("tool_use_id").map(ToolUseId::new);
            say(Some(Command::MoveToBackground { call }), Some(json!({})))
        }
        "register_repo_root" => match ["directory", "path", "root"].into_iter().find_map(text) {
            Some(directory) => ControlOutcome {
                command: Some(Command::AddDirectory {
                    request: id.to_owned(),
                    directory: directory.into(),
                    source: DirectorySource::RegisterRepoRoot,
                }),
                ..ControlOutcome::default()
            },
            None => refuse("register_repo_root needs directory".to_owned()),
        },
        "mcp_status" => later(McpAction::Status),
        "mcp_reconnect" => match text("serverName") {
            Some(server) => later(McpAction::Reconnect { server: server.to_owned() }),
            None => refuse("mcp_reconnect needs serverName".to_owned()),
        },
        "mcp_toggle" => match (text("serverName"), request.get("enabled").and_then(Value::as_bool)) {
            (Some(server), Some(is_on)) => later(McpAction::Toggle { server: server.to_owned(), is_on }),
            _ => refuse("mcp_toggle needs serverName and enabled".to_owned()),
        },
        "mcp_set_servers" => match request.get("servers").filter(|servers| servers.is_object()) {
            Some(servers) => later(McpAction::SetServers { servers: servers.clone() }),
            None => refuse("mcp_set_servers needs servers, an object".to_owned()),
        },
        "mcp_message" => match (text("server_name"), request.get("message")) {
            (Some(server), Some(message)) => {
                later(McpAction::Deliver { server: server.to_owned(), message: message.clone() })
            }
            _ => refuse("mcp_message needs server_name and message".to_owned()),
        },
        "get_session_cost" => say(None, Some(context.cost.text())),
        "get_usage" => say(None, Some(context.cost.usage())),
        "get_binary_version" => say(None, Some(json!({"version": context.version}))),
        other => refuse(format!("Unsupported control request subtype: {other}")),
    }
}

/// Answers `initialize`. What it asks for was taken up before there was a session, if it came first; what could not be
/// is said, and where a run without it would not be safe there is none.
fn initialize(request: &Value, context: &ControlContext) -> ControlOutcome {
    let is_late = |request: &InitializeRequest| {
        *request != InitializeRequest::default() && context.initialized.as_ref() != Some(request)
    };
    let parsed = parse_initialize(request);
    let checked = parsed.and_then(|request| match is_late(&request) {
        true => check_late_hooks(&request).map(|()| request),
        false => Ok(request),
    });
    match checked {
        Ok(request) => {
            let unsupported = check_support(&request);
            let late = "An initialize request that is not the first has no effect";
            ControlOutcome {
                answer: Some(Ok(Some(context.initialize()))),
                notice: if is_late(&request) { Some(late.to_owned()) } else { unsupported },
                ..ControlOutcome::default()
            }
        }
        Err(problem) => ControlOutcome {
            answer: Some(Err(problem.clone())),
            notice: Some(problem),
            is_fatal: true,
            ..ControlOutcome::default()
        },
    }
}

/// What `initialize` tells a client.
#[derive(Clone)]
pub(crate) struct ControlContext {
    pub(crate) version: String,
    pub(crate) api_key_source: String,
    pub(crate) may_bypass: bool,
    pub(crate) models: Vec<String>,
    pub(crate) output_style: String,
    pub(crate) output_styles: OutputStyles,
    /// The request that the session was made by.
    pub(crate) initialized: Option<InitializeRequest>,
    pub(crate) commands: Arc<Store<CommandRegistry>>,
    pub(crate) agents: Arc<Store<AgentRegistry>>,
    pub(crate) cost: Cost,
}

impl ControlContext {
    fn initialize(&self) -> Value {
        let models: Vec<Value> = self
            .models
            .iter()
            .map(|model| json!({"value": model, "resolvedModel": model, "displayName": model, "description": ""}))
            .collect();
        let commands = self.commands.get();
        let commands: Vec<Value> = commands
            .iter()
            .map(|command| {
                json!({
                    "name": command.name,
                    "description": command.description,
                    "argumentHint": command.argument_hint,
                })
            })
            .collect();
        let agents: Vec<Value> = self
            .agents
            .get()
            .iter()
            .map(|agent| json!({"name": agent.name, "description": agent.description}))
            .collect();
        json!({
            "commands": commands,
            "agents": agents,
            "output_style": self.output_style,
            "available_output_styles": (self.output_styles)(),
            "models": models,
            "account": {"tokenSource": "none", "apiKeySource": self.api_key_source, "apiProvider": "firstParty"},
            "pid": std::process::id(),
        })
    }
}

/// Says what came of a rewind of files. What was left alone is named beside what the protocol knows.
pub(crate) fn rewound(outcome: &Result<FilesRewound, String>) -> Result<Option<Value>, String> {
    let done = outcome.as_ref().map_err(String::clone)?;
    let mut answer = json!({
        "canRewind": true,
        "filesChanged": done.changed,
        "insertions": done.insertions,
        "deletions": done.deletions,
    });
    if !done.left.is_empty() {
        let left = done.left.iter().map(|(path, reason)| json!({"path": path, "reason": reason}));
        answer["conflicts"] = left.collect();
    }
    if !done.ignored.is_empty() {
        answer["ignored"] = json!(done.ignored);
    }
    Ok(Some(answer))
}

/// Wraps an answer for the client.
pub(crate) fn response(id: &str, answer: Result<Option<Value>, String>) -> Value {
    let mut response = match answer {
        Ok(answer) => {
            let mut response = json!({"subtype": "success", "request_id": id});
            if let Some(answer) = answer {
                response["response"] = answer;
            }
            response
        }
        Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
    };
    json!({"type": "control_response", "response": response.take()})
}

#[cfg(test)]
mod tests {
    use loci_core::cost_state::CostState;
    use loci_core::ids::SessionId;
    use loci_core::session::{NewSession, SessionIdentity, Totals};
    use loci_core::usage::Usage;
    use loci_engine::EarlierTotals;

    use super::*;

    fn context() -> ControlContext {
        ControlContext {
            version: "2.1.197".to_owned(),
            api_key_source: "none".to_owned(),
            may_bypass: false,
            models: vec!["m".to_owned()],
            output_style: "default".to_owned(),
            output_styles: Arc::new(|| vec!["default".to_owned()]),
            initialized: None,
            commands: Arc::new(Store::new(CommandRegistry::builtin())),
            agents: Arc::new(Store::new(AgentRegistry::default())),
            cost: cost(),
        }
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
        let session = answer("get_usage")["session"].clone();
        assert_eq!(session["total_cost_usd"], 6.0);
        assert_eq!(session["model_usage"]["claude-sonnet-4-5"]["inputTokens"], 2_000_000);
        let text = answer("get_session_cost")["text"].as_str().unwrap().to_owned();
        assert!(text.starts_with("Total cost: $6.0000\nclaude-sonnet-4-5: 2000000 input,"), "{text}");
    }

    #[test]
    fn requests_become_commands_and_answers() {
        for (request, command) in [
            (json!({"subtype": "interrupt"}), Some(Command::Interrupt)),
            (json!({"subtype": "set_permission_mode", "mode": "plan"}), Some(Command::SetMode(Mode::Plan))),
            (json!({"subtype": "set_model", "model": "x"}), Some(Command::SetModel(Some("x".to_owned())))),
            (json!({"subtype": "set_model", "model": null}), Some(Command::SetModel(None))),
            (json!({"subtype": "initialize", "hooks": null}), None),
            (json!({"subtype": "background_tasks"}), Some(Command::MoveToBackground { call: None })),
            (
                json!({"subtype": "background_tasks", "tool_use_id": "t"}),
                Some(Command::MoveToBackground { call: Some(ToolUseId::new("t")) }),
            ),
        ] {
            let outcome = handle_request("r", &request, &context());
            assert_eq!(outcome.command, command, "{request}");
            assert!(outcome.answer.is_some_and(|answer| answer.is_ok()), "{request}");
        }
        for bad in [
            json!({"subtype": "teleport"}),
            json!({"subtype": "rewind_files"}),
            json!({"subtype": "stop_task"}),
            json!({"subtype": "register_repo_root"}),
            json!({"subtype": "set_permission_mode", "mode": "yolo"}),
            json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
        ] {
            let outcome = handle_request("r", &bad, &context());
            let is_refused = outcome.answer.is_some_and(|answer| answer.is_err());
            assert!(is_refused && outcome.command.is_none(), "{bad}");
        }
    }
}
