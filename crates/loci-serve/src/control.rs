//! Control requests a client makes of a running session.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_app::FlagSettings;
use loci_app::commands::SessionCommands;
use loci_app::settings_editor::SettingsContext;
use loci_core::agent::AgentRegistry;
use loci_core::ids::ToolUseId;
use loci_core::permission::Mode;
use loci_engine::{
    Command, CommandRegistry, DirectorySource, FilesRewound, InitializeRequest, McpAction, SideTask,
    resolve_model,
};
use loci_stdx::Store;
use serde_json::{Map, Value, json};

use crate::cost::Cost;
use crate::headless::OutputStyles;
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
}

impl ControlError {
    /// Says that there are no requests of this kind.
    fn unsupported(subtype: &str) -> Self {
        let message = format!("Unsupported control request subtype: {subtype}");
        Self { message, code: Some("unsupported_request") }
    }

    /// Says that plugins are not read while work is under way.
    pub(crate) fn busy() -> Self {
        let message = "Work is under way; plugins can be read anew once it is done".to_owned();
        Self { message, code: Some("reload_plugins_busy") }
    }
}

impl From<String> for ControlError {
    fn from(message: String) -> Self {
        Self { message, code: None }
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
    let refuse =
        |problem: String| ControlOutcome { answer: Some(Err(problem.into())), ..ControlOutcome::default() };
    let ask = |command| ControlOutcome { commands: vec![command], ..ControlOutcome::default() };
    let later = |action| ask(Command::Mcp { request: id.to_owned(), action });
    let subtype = text("subtype").unwrap_or_default();
    if let Some(query) = SessionQuery::parse(subtype, request) {
        let command = Command::Snapshot { request: id.to_owned() };
        return ControlOutcome { query: Some(query), ..ask(command) };
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
            let vars = &context.session_commands.env.vars;
            let answer = model.as_deref().map(|name| json!({"model": resolve_model(vars, name)}));
            say(Some(Command::SetModel(model)), answer)
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
            let answer = match text("tool_use_id") {
                Some(call) => json!({"backgrounded": context.foreground_calls.contains(call)}),
                None => json!({}),
            };
            let call = text("tool_use_id").map(ToolUseId::new);
            say(Some(Command::MoveToBackground { call }), Some(answer))
        }
        "register_repo_root" => match ["directory", "path", "root"].into_iter().find_map(text) {
            Some(directory) => ask(Command::AddDirectory {
                request: id.to_owned(),
                directory: directory.into(),
                source: DirectorySource::RegisterRepoRoot,
            }),
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
        "mcp_authenticate" => match text("serverName") {
            Some(server) => later(McpAction::Authenticate {
                server: server.to_owned(),
                redirect_uri: text("redirectUri").map(str::to_owned),
            }),
            None => refuse("mcp_authenticate needs serverName".to_owned()),
        },
        "mcp_oauth_callback_url" => match (text("serverName"), text("callbackUrl")) {
            (Some(server), Some(address)) => {
                later(McpAction::LoginAnswer { server: server.to_owned(), address: address.to_owned() })
            }
            _ => refuse("mcp_oauth_callback_url needs serverName and callbackUrl".to_owned()),
        },
        "mcp_clear_auth" => match text("serverName") {
            Some(server) => later(McpAction::ClearAuth { server: server.to_owned() }),
            None => refuse("mcp_clear_auth needs serverName".to_owned()),
        },
        "mcp_message" => match (text("server_name"), request.get("message")) {
            (Some(server), Some(message)) => {
                later(McpAction::Deliver { server: server.to_owned(), message: message.clone() })
            }
            _ => refuse("mcp_message needs server_name and message".to_owned()),
        },
        "mcp_call" => match text("tool") {
            Some(tool) => {
                let input = request.get("arguments").cloned().unwrap_or_else(|| json!({}));
                later(McpAction::CallTool { tool: tool.to_owned(), input })
            }
            None => refuse("mcp_call needs tool".to_owned()),
        },
        "mcp_read_resource" => match (text("serverName"), text("uri")) {
            (Some(server), Some(uri)) => {
                later(McpAction::ReadResource { server: server.to_owned(), uri: uri.to_owned() })
            }
            _ => refuse("mcp_read_resource needs serverName and uri".to_owned()),
        },
        "set_max_thinking_tokens" => {
            let most = request.get("max_thinking_tokens").and_then(Value::as_u64);
            let display = request.get("thinking_display");
            let display = display.map(|it| Command::SetThinkingDisplay(it.as_str().map(str::to_owned)));
            let mut outcome = say(Some(Command::SetThinking(most)), None);
            outcome.commands.extend(display);
            outcome
        }
        "apply_flag_settings" => match request.get("settings").and_then(Value::as_object) {
            Some(settings) => apply_flag_settings(settings, context),
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
        "get_task_output" => match text("task_id").and_then(|task| context.task_outputs.get(task)) {
            Some(file) => match task_output(file) {
                Ok(output) => say(None, Some(output)),
                Err(error) => refuse(format!("The output of the task cannot be read: {error}")),
            },
            None => refuse("There is no such task".to_owned()),
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
        other => ControlOutcome {
            answer: Some(Err(ControlError::unsupported(other))),
            ..ControlOutcome::default()
        },
    }
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

/// Settings that count while a session runs; others count from the next session on, and whoever gives them is told.
const LIVE_SETTINGS: [&str; 6] =
    ["permissions", "hooks", "env", "model", "effortLevel", "alwaysThinkingEnabled"];

/// Merges settings into those of the command line, and changes about the session at once what has a command of its own.
fn apply_flag_settings(settings: &Map<String, Value>, context: &ControlContext) -> ControlOutcome {
    let refuse =
        |problem: String| ControlOutcome { answer: Some(Err(problem.into())), ..ControlOutcome::default() };
    let text = |key: &str| settings.get(key).map(|value| value.as_str().map(str::to_owned));
    let mut commands: Vec<Command> = Vec::new();
    commands.extend(text("model").map(Command::SetModel));
    commands.extend(text("effortLevel").map(Command::SetEffort));
    let thinks = settings.get("alwaysThinkingEnabled").map(|value| value.as_bool() != Some(false));
    commands.extend(thinks.map(|thinks| Command::SetThinking(if thinks { None } else { Some(0) })));
    let mode = settings.get("permissions").and_then(|it| it.get("defaultMode")).and_then(Value::as_str);
    match mode.map(str::parse::<Mode>) {
        Some(Ok(Mode::BypassPermissions)) if !context.may_bypass => return refuse(NO_BYPASS.to_owned()),
        Some(Ok(mode)) => commands.push(Command::SetMode(mode)),
        Some(Err(bad)) => return refuse(bad.to_string()),
        None => {}
    }
    context.flag_settings.apply(settings);
    let idle: Vec<&str> =
        settings.keys().map(String::as_str).filter(|key| !LIVE_SETTINGS.contains(key)).collect();
    let notice = (!idle.is_empty())
        .then(|| format!("Settings that only count from the next session on: {}", idle.join(", ")));
    ControlOutcome { commands, answer: Some(Ok(None)), notice, ..ControlOutcome::default() }
}

/// How much of a task's output is passed on, its end.
const TASK_OUTPUT_BYTES: u64 = 256 * 1024;

fn task_output(file: &Path) -> std::io::Result<Value> {
    let mut file = loci_stdx::open_regular(file)?;
    let total = file.metadata()?.len();
    let skipped = total.saturating_sub(TASK_OUTPUT_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(TASK_OUTPUT_BYTES).read_to_end(&mut bytes)?;
    let output = String::from_utf8_lossy(&bytes);
    Ok(json!({"output": output, "total_bytes": total, "truncated": skipped > 0}))
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
            answer: Some(Err(problem.clone().into())),
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
    /// Whether it came before settings were read.
    pub(crate) has_awaited_initialize: bool,
    pub(crate) commands: Arc<Store<CommandRegistry>>,
    pub(crate) agents: Arc<Store<AgentRegistry>>,
    pub(crate) cost: Cost,
    /// The settings that whoever started the run has given.
    pub(crate) flag_settings: FlagSettings,
    /// What else is known beside the session.
    pub(crate) session_commands: SessionCommands,
    /// Prompts that have an id and wait for their turn.
    pub(crate) queued: Vec<String>,
    /// Where tasks write.
    pub(crate) task_outputs: BTreeMap<String, PathBuf>,
    /// Calls that are waited for and can go on in the background.
    pub(crate) foreground_calls: BTreeSet<String>,
    /// Whether a turn is under way or waits, or agents work.
    pub(crate) is_busy: bool,
    /// The permission mode.
    pub(crate) mode: Mode,
    /// Who serves the models.
    pub(crate) provider: &'static str,
}

impl ControlContext {
    /// Answers an interrupt: which prompts still wait.
    fn interrupted(&self) -> Value {
        json!({"still_queued": self.queued})
    }

    fn update_settings(&self, source: &str, settings: &Map<String, Value>) -> Result<(), String> {
        let files = SettingsContext::new(&self.session_commands.env);
        files.update_source(source, settings).map_err(|error| error.to_string())
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
            response
        }
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

    use loci_app::settings_editor::SettingsInputs;

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
            (json!({"subtype": "set_model", "model": "x"}), Some(Command::SetModel(Some("x".to_owned())))),
            (json!({"subtype": "set_model", "model": null}), Some(Command::SetModel(None))),
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
                json!({"subtype": "apply_flag_settings", "settings": {"model": "opus"}}),
                Some(Command::SetModel(Some("opus".to_owned()))),
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
            (json!({"subtype": "set_model", "model": "opus"}), json!({"model": "claude-opus-5-5"})),
        ] {
            assert_eq!(
                handle_request("r", &request, &context()).answer,
                Some(Ok(Some(expected))),
                "{request}"
            );
        }
        let unknown = handle_request("r", &json!({"subtype": "teleport"}), &context()).answer.unwrap();
        let response = response("r", unknown)["response"].take();
        assert_eq!(response["error"], "Unsupported control request subtype: teleport");
        assert_eq!(response["error_code"], "unsupported_request");
    }
}
