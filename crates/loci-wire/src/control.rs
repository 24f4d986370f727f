//! Control requests a client makes of a running session.

mod context;
mod mcp;
mod settings;
mod task_output;

use loci_core::ids::ToolUseId;
use loci_core::permission::Mode;
use loci_engine::{Command, DirectorySource, FilesRewound, InitializeRequest, ModelRefusal, SideTask};
use serde_json::{Value, json};

pub(crate) use context::ControlContext;

use crate::initialize::{check_late_hooks, check_support, parse_initialize};
use crate::session_query::SessionQuery;

const NO_BYPASS: &str = "Cannot set permission mode to bypassPermissions: the session was not started with \
                         --dangerously-skip-permissions or --allow-dangerously-skip-permissions";

/// What a control request leads to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ControlOutcome {
    /// What the session is told, in order.
    pub(crate) commands: Vec<Command>,
    /// What the answer is made from, once the session has said how it stands.
    pub(crate) query: Option<SessionQuery>,
    /// What the client is answered, or why not; `None` when the session answers later.
    pub(crate) answer: Option<Result<Option<Value>, ControlError>>,
    /// What the client's user should know.
    pub(crate) notice: Option<String>,
    /// Whether there can be no run after this.
    pub(crate) is_fatal: bool,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlError {
    message: String,
    /// A word for programs.
    code: Option<&'static str>,
    /// The model that stays, where it is about one.
    model: Option<String>,
}

impl ControlError {
    /// Says that there are no requests of this kind.
    fn unsupported(subtype: &str) -> Self {
        let message = format!("Unsupported control request subtype: {subtype}");
        Self { message, code: Some("unsupported_request"), model: None }
    }

    /// Says that plugins are not read while work is under way.
    pub(crate) fn busy() -> Self {
        let message = "Work is under way; plugins can be read anew once it is done".to_owned();
        Self { message, code: Some("reload_plugins_busy"), model: None }
    }
}

impl From<ModelRefusal> for ControlError {
    fn from(refusal: ModelRefusal) -> Self {
        let code = refusal.blocked_with.is_some().then_some("blocked_by_hook");
        Self { message: refusal.to_string(), code, model: refusal.blocked_with }
    }
}

impl From<String> for ControlError {
    fn from(message: String) -> Self {
        Self { message, code: None, model: None }
    }
}

/// Reads a control request.
pub(crate) fn handle_request(id: &str, request: &Value, context: &ControlContext) -> ControlOutcome {
    let text = |key: &str| request.get(key).and_then(Value::as_str);
    let say = |command: Option<Command>, answer| ControlOutcome {
        commands: command.into_iter().collect(),
        answer: Some(Ok(answer)),
        ..ControlOutcome::default()
    };
    let fail = |error: ControlError| ControlOutcome { answer: Some(Err(error)), ..ControlOutcome::default() };
    let refuse = |problem: String| fail(problem.into());
    let ask = |command| ControlOutcome { commands: vec![command], ..ControlOutcome::default() };
    let subtype = text("subtype").unwrap_or_default();
    if let Some(query) = SessionQuery::parse(subtype, request) {
        let command = Command::Snapshot { request: id.to_owned() };
        return ControlOutcome { query: Some(query), ..ask(command) };
    }
    if let Some(parsed) = mcp::parse(subtype, request) {
        return match parsed {
            Ok(action) => ask(Command::Mcp { request: id.to_owned(), action }),
            Err(problem) => refuse(problem),
        };
    }
    match subtype {
        "initialize" => initialize(request, context),
        "interrupt" => say(Some(Command::Interrupt), Some(context.interrupted())),
        "set_permission_mode" => match text("mode").unwrap_or_default().parse::<Mode>() {
            Ok(Mode::BypassPermissions) if !context.may_bypass => refuse(NO_BYPASS.to_owned()),
            Ok(mode) => say(Some(Command::SetMode(mode)), Some(json!({"mode": mode.as_str()}))),
            Err(bad) => refuse(bad.to_string()),
        },
        "set_model" => {
            let model = text("model").filter(|model| *model != "default").map(str::to_owned);
            ask(Command::SetModel { request: Some(id.to_owned()), model })
        }
        "rewind_files" => match text("user_message_id").filter(|id| !id.is_empty()) {
            Some(prompt) => ask(Command::RewindFiles {
                request: id.to_owned(),
                prompt: prompt.into(),
                is_trial: request.get("dry_run").and_then(Value::as_bool).unwrap_or(false),
            }),
            None => refuse("rewind_files needs user_message_id".to_owned()),
        },
        "stop_task" => match text("task_id").filter(|id| !id.is_empty()) {
            Some(task) => ask(Command::StopTask { request: id.to_owned(), task: task.to_owned() }),
            None => refuse("stop_task needs task_id".to_owned()),
        },
        "background_tasks" => {
            let (command, answer) = move_to_background(text("tool_use_id"), context);
            say(Some(command), Some(answer))
        }
        "register_repo_root" => match ["directory", "path", "root"].into_iter().find_map(text) {
            Some(directory) => ask(Command::AddDirectory {
                request: id.to_owned(),
                directory: directory.into(),
                source: DirectorySource::RegisterRepoRoot,
            }),
            None => refuse("register_repo_root needs directory".to_owned()),
        },
        "set_max_thinking_tokens" => match set_thinking(request) {
            Ok(commands) => ControlOutcome { commands, ..say(None, None) },
            Err(error) => fail(error),
        },
        "apply_flag_settings" => match request.get("settings").and_then(Value::as_object) {
            Some(settings) => settings::apply_flag_settings(id, settings, context),
            None => refuse("apply_flag_settings needs settings, an object".to_owned()),
        },
        "update_settings" => match (text("source"), request.get("settings").and_then(Value::as_object)) {
            (Some(source), Some(settings)) => match context.update_settings(source, settings) {
                Ok(()) => say(None, None),
                Err(problem) => refuse(problem),
            },
            _ => refuse("update_settings needs source and settings".to_owned()),
        },
        "rename_session" => match text("title").map(str::trim).filter(|title| !title.is_empty()) {
            Some(_) if text("session_id").is_some_and(|id| id != context.session.as_str()) => {
                refuse("rename_session names a session that this process has left".to_owned())
            }
            Some(title) => say(Some(Command::Rename { title: title.to_owned() }), None),
            None => refuse("rename_session needs title".to_owned()),
        },
        "seed_read_state" => match (text("path"), request.get("mtime").and_then(Value::as_f64)) {
            (Some(path), Some(time)) if time >= 0.0 => {
                say(Some(Command::SeedReadState { path: path.into(), modified_ms: time as u64 }), None)
            }
            _ => refuse("seed_read_state needs path and mtime".to_owned()),
        },
        "cancel_async_message" => match text("message_uuid") {
            Some(prompt) => ask(Command::CancelPrompt { request: id.to_owned(), prompt: prompt.into() }),
            None => refuse("cancel_async_message needs message_uuid".to_owned()),
        },
        "reload_skills" => {
            let snapshot = Command::Snapshot { request: id.to_owned() };
            let commands = vec![Command::ReloadSkills, snapshot];
            ControlOutcome { commands, query: Some(SessionQuery::Skills), ..ControlOutcome::default() }
        }
        "reload_output_styles" => {
            say(None, Some(json!({"available_output_styles": (context.output_styles)()})))
        }
        "reload_plugins" => reload_plugins(id, request, context),
        "set_mcp_permission_mode_override" => match (text("serverName"), request.get("mode")) {
            (Some(server), Some(mode)) => set_server_mode(id, server, mode),
            _ => refuse("set_mcp_permission_mode_override needs serverName and mode".to_owned()),
        },
        "get_task_output" => match output_of_task(text("task_id"), context) {
            Ok(output) => say(None, Some(output)),
            Err(error) => fail(error),
        },
        "side_question" => match text("question").map(str::trim).filter(|question| !question.is_empty()) {
            Some(question) => {
                let task = SideTask::Question(question.to_owned());
                ask(Command::AskOnTheSide { request: id.to_owned(), task })
            }
            None => refuse("side_question needs question".to_owned()),
        },
        "set_has_subscribers" => say(None, None),
        "get_session_cost" => say(None, Some(context.cost.text())),
        "get_binary_version" => say(None, Some(json!({"version": context.version, "buildTime": null}))),
        "read_file" => refuse("read_file needs path".to_owned()),
        other => fail(ControlError::unsupported(other)),
    }
}

/// Has a call, or all of them, go on in the background; the answer says whether it was there to be moved.
fn move_to_background(call: Option<&str>, context: &ControlContext) -> (Command, Value) {
    let answer = match call {
        Some(call) => json!({"backgrounded": context.foreground_calls.contains(call)}),
        None => json!({}),
    };
    (Command::MoveToBackground { call: call.map(ToolUseId::new) }, answer)
}

/// Returns what changes how much is thought, and how that is shown; what is left out stays as it is.
fn set_thinking(request: &Value) -> Result<Vec<Command>, ControlError> {
    let most = request.get("max_thinking_tokens");
    if let Some(odd) = most.filter(|most| !most.is_null() && !most.is_u64()) {
        return Err(format!("max_thinking_tokens is a number of tokens or null, not {odd}").into());
    }
    let most = most.map(|it| Command::SetThinking(it.as_u64()));
    let display = request.get("thinking_display");
    let display = display.map(|it| Command::SetThinkingDisplay(it.as_str().map(str::to_owned)));
    Ok(most.into_iter().chain(display).collect())
}

/// Returns the end of what a task has put out.
fn output_of_task(task: Option<&str>, context: &ControlContext) -> Result<Value, ControlError> {
    let file = task.and_then(|task| context.task_outputs.get(task));
    let file = file.ok_or_else(|| ControlError::from("There is no such task".to_owned()))?;
    let output = task_output::tail(file);
    output.map_err(|error| format!("The output of the task cannot be read: {error}").into())
}

/// Reads plugins anew, unless that would disturb work and the client does not want it to.
fn reload_plugins(id: &str, request: &Value, context: &ControlContext) -> ControlOutcome {
    let added = request.get("add_plugins").and_then(Value::as_array).is_some_and(|added| !added.is_empty());
    let refusal = match (added, request["refuse_if_busy"] == true && context.is_busy) {
        (true, _) => Some("Plugins cannot be added to a session; give them when it starts".to_owned().into()),
        (false, true) => Some(ControlError::busy()),
        (false, false) => None,
    };
    if let Some(refusal) = refusal {
        return ControlOutcome { answer: Some(Err(refusal)), ..ControlOutcome::default() };
    }
    let request = id.to_owned();
    ControlOutcome {
        commands: vec![Command::ReloadPlugins { request: request.clone() }, Command::Snapshot { request }],
        query: Some(SessionQuery::Plugins),
        ..ControlOutcome::default()
    }
}

/// Has the calls of a server asked about; only what asks more often may be chosen.
fn set_server_mode(id: &str, server: &str, mode: &Value) -> ControlOutcome {
    let mode = match mode.as_str() {
        None if mode.is_null() => None,
        Some("default") => Some(Mode::Default),
        Some("auto") => Some(Mode::Auto),
        _ => {
            let problem = format!("The mode of a server is \"default\", \"auto\" or null, not {mode}");
            return ControlOutcome { answer: Some(Err(problem.into())), ..ControlOutcome::default() };
        }
    };
    let set = Command::SetServerMode { server: server.to_owned(), mode };
    ControlOutcome {
        commands: vec![set, Command::Snapshot { request: id.to_owned() }],
        query: Some(SessionQuery::ServerMode { server: server.to_owned(), is_set: mode.is_some() }),
        ..ControlOutcome::default()
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
                answer: Some(Ok(Some(context.initialize(&request, is_late(&request))))),
                notice: if is_late(&request) { Some(late.to_owned()) } else { unsupported },
                ..ControlOutcome::default()
            }
        }
        Err(problem) => ControlOutcome {
            answer: Some(Err(problem.clone().into())),
            notice: Some(problem),
            is_fatal: true,
            ..ControlOutcome::default()
        },
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
pub(crate) fn response(id: &str, answer: Result<Option<Value>, ControlError>) -> Value {
    let mut response = match answer {
        Ok(answer) => {
            let mut response = json!({"subtype": "success", "request_id": id});
            if let Some(answer) = answer {
                response["response"] = answer;
            }
            response
        }
        Err(error) => {
            let mut response = json!({"subtype": "error", "request_id": id, "error": error.message});
            if let Some(code) = error.code {
                response["error_code"] = json!(code);
            }
            if let Some(model) = error.model {
                response["model"] = json!(model);
            }
            response
        }
    };
    json!({"type": "control_response", "response": response.take()})
}

#[cfg(test)]
mod tests;
