//! Engine events as the lines of the headless protocol.
//!
//! One JSON object a line. Every frame has a `uuid` and the `session_id`; frames of entries carry the entry's id.

use std::collections::BTreeMap;

use loci_core::entry::draft::synthetic_message;
use loci_core::ids::{SessionId, ToolUseId};
use loci_core::model::{facts, is_price_unknown};
use loci_core::plugin::PluginProblem;
use loci_core::stream::{Failure, StreamEvent};
use loci_core::usage::ModelUsage;
use loci_engine::turn::{Interruption, Outcome};
use loci_engine::{
    AgentRef, AssistantBlock, BackgroundStatus, BackgroundTask, EngineEvent, HookRunEnded, HookRunStarted,
    LocalCommandOutput, McpServerError, TaskNews, TaskUsage, TurnReport, TurnStart, UserMessage,
    task_summary,
};
use loci_stdx::Env;
use serde_json::{Map, Value, json};

/// What every frame needs to know.
pub(crate) struct Frames {
    env: Env,
    session: SessionId,
    version: String,
}

impl Frames {
    pub(crate) fn new(env: Env, session: SessionId, version: &str) -> Self {
        Self { env, session, version: version.to_owned() }
    }

    /// Returns the frame of an event; events that only terminals show have none.
    pub(crate) fn of(&self, event: &EngineEvent) -> Option<Value> {
        Some(match event {
            EngineEvent::Agent { agent, event } => return self.of_agent(agent, event),
            EngineEvent::TurnStarted(start) => self.init(start),
            EngineEvent::Stream { event: StreamEvent::Wire(wire), first_after } => {
                let mut frame = json!({
                    "type": "stream_event",
                    "event": serde_json::from_str::<Value>(wire.as_str()).unwrap_or_default(),
                    "parent_tool_use_id": null,
                });
                if let Some(after) = first_after {
                    frame["ttft_ms"] = json!(after.as_millis() as u64);
                }
                self.sealed(frame, None)
            }
            EngineEvent::Requesting => self.system("status", json!({"status": "requesting"})),
            EngineEvent::Assistant(block) => self.assistant(block),
            EngineEvent::LocalCommand(output) => self.local_command(output),
            EngineEvent::User(message) => self.user(message),
            EngineEvent::Retry { attempt, max_retries, delay, failure } => self.system(
                "api_retry",
                json!({
                    "attempt": attempt,
                    "max_retries": max_retries,
                    "retry_delay_ms": delay.as_millis() as u64,
                    "error_status": failure.status,
                    "error": failure.category(),
                }),
            ),
            EngineEvent::Fallback { from, to, failure } => self.system(
                "model_fallback",
                json!({
                    "trigger": failure.category(),
                    "original_model": from,
                    "fallback_model": to,
                    "content": fallback_text(from, to, failure),
                }),
            ),
            EngineEvent::ModeChanged(mode) => {
                self.system("status", json!({"status": null, "permissionMode": mode.as_str()}))
            }
            EngineEvent::ResultsCleared { n_results, freed_tokens } => self.system(
                "results_cleared",
                json!({"cleared_results": n_results, "freed_tokens": freed_tokens}),
            ),
            EngineEvent::Compacting => self.system("status", json!({"status": "compacting"})),
            EngineEvent::CompactionEnded { failure } => {
                self.system("status", compaction_status(failure.as_deref()))
            }
            EngineEvent::Compacted { metadata } => {
                self.system("compact_boundary", json!({"compact_metadata": snake_case(metadata)}))
            }
            EngineEvent::HookStarted(run) => self.system("hook_started", hook_run(run)),
            EngineEvent::HookEnded(ended) => self.system("hook_response", hook_response(ended)),
            EngineEvent::Resumed(_)
            | EngineEvent::Task(_)
            | EngineEvent::StopAnswered { .. }
            | EngineEvent::TurnEnded(_)
            | EngineEvent::Stream { .. }
            | EngineEvent::PromptRecorded { .. }
            | EngineEvent::Dequeued { .. }
            | EngineEvent::QueueTakenBack(_)
            | EngineEvent::QuestionAsked(_)
            | EngineEvent::QuestionWithdrawn { .. }
            | EngineEvent::Context(_)
            | EngineEvent::Progress { .. }
            | EngineEvent::ShellStarted { .. }
            | EngineEvent::ShellEnded { .. }
            | EngineEvent::TasksChanged(_)
            | EngineEvent::FilesRewound { .. }
            | EngineEvent::DirectoryAdded { .. }
            | EngineEvent::McpAnswered { .. }
            | EngineEvent::SideAnswered { .. }
            | EngineEvent::Snapshot { .. }
            | EngineEvent::ModelChanged(_)
            | EngineEvent::SettingsChanged(_)
            | EngineEvent::TurnsOver { .. }
            | EngineEvent::TerminalSequence(_)
            | EngineEvent::Warning(_) => return None,
        })
    }

    /// Returns the frame of what an agent says or is told; it names the call that the agent works for.
    pub(crate) fn of_agent(&self, agent: &AgentRef, event: &EngineEvent) -> Option<Value> {
        match event {
            EngineEvent::Assistant(_) | EngineEvent::User(_) | EngineEvent::Stream { .. } => {
                let mut frame = self.of(event)?;
                frame["parent_tool_use_id"] = json!(agent.parent.as_ref().map(ToolUseId::as_str));
                frame["subagent_type"] = json!(agent.kind);
                frame["task_description"] = json!(agent.description);
                // The result of an agent's own call is told by its content alone.
                if let Some(fields) = frame.as_object_mut() {
                    fields.remove("tool_use_result");
                }
                Some(frame)
            }
            _ => None,
        }
    }

    /// Returns the frames of a step of work beside the conversation.
    pub(crate) fn of_task(&self, news: &TaskNews) -> Vec<Value> {
        match news {
            TaskNews::Started(task) => vec![self.system("task_started", task_started(task))],
            TaskNews::Backgrounded(task) => {
                let patch = json!({"is_backgrounded": true});
                vec![self.system("task_updated", json!({"task_id": task.id, "patch": patch}))]
            }
            TaskNews::Progress { task, description, last_tool, usage } => {
                let mut fields = json!({
                    "task_id": task.id,
                    "tool_use_id": task.tool_use_id.as_str(),
                    "description": description,
                    "subagent_type": task.agent_type(),
                    "usage": task_usage(usage),
                });
                if let Some(tool) = last_tool {
                    fields["last_tool_name"] = json!(tool);
                }
                vec![self.system("task_progress", fields)]
            }
            TaskNews::Ended(task) => {
                let mut patch = json!({
                    "status": task.status.name(),
                    "end_time": self.env.clock.now().as_millisecond(),
                });
                if let BackgroundStatus::Broken(why) = &task.status {
                    patch["error"] = json!(why);
                }
                vec![
                    self.system("task_updated", json!({"task_id": task.id, "patch": patch})),
                    self.system("task_notification", task_notification(task)),
                ]
            }
        }
    }

    /// Echoes an accepted prompt, for clients that asked for it.
    pub(crate) fn replay(&self, entry: &str, message: &Value, timestamp: &str) -> Value {
        let frame = json!({
            "type": "user",
            "message": message,
            "parent_tool_use_id": null,
            "timestamp": timestamp,
            "isReplay": true,
        });
        self.sealed(frame, Some(entry))
    }

    fn init(&self, start: &TurnStart) -> Value {
        let memory = start.memory_dir.as_ref().map(|dir| json!({"auto": format!("{}/", dir.display())}));
        let servers: Vec<Value> =
            start.mcp_servers.iter().map(|it| json!({"name": it.name, "status": it.status})).collect();
        let plugins: Vec<Value> = start
            .plugins
            .plugins
            .iter()
            .map(|it| json!({"name": it.name, "path": it.path, "source": it.source}))
            .collect();
        let mut fields = json!({
                "cwd": start.cwd.display().to_string(),
                "tools": start.tools.iter().map(|tool| if tool == "Agent" { "Task" } else { tool }).collect::<Vec<_>>(),
                "mcp_servers": servers,
                "model": start.model,
                "permissionMode": start.mode.as_str(),
                "slash_commands": start.commands.iter().map(|command| command.name.as_str()).collect::<Vec<_>>(),
                "apiKeySource": start.api_key_source,
                "claude_code_version": self.version,
                "output_style": start.output_style,
                "agents": start.agents,
                "skills": start.skills,
                "plugins": plugins,
                "memory_paths": memory.unwrap_or_else(|| json!({})),
                "fast_mode_state": "off",
                "analytics_disabled": true,
                "product_feedback_disabled": true,
        });
        if !start.mcp_errors.is_empty() {
            let error =
                |it: &McpServerError| json!({"name": it.name, "type": it.kind, "message": it.message});
            fields["mcp_server_errors"] = start.mcp_errors.iter().map(error).collect();
        }
        if !start.plugins.problems.is_empty() {
            let error =
                |it: &PluginProblem| json!({"plugin": it.plugin, "type": it.kind, "message": it.message});
            fields["plugin_errors"] = start.plugins.problems.iter().map(error).collect();
        }
        self.system("init", fields)
    }

    fn assistant(&self, block: &AssistantBlock) -> Value {
        let mut frame = json!({
            "type": "assistant",
            "message": block.message,
            "parent_tool_use_id": null,
        });
        if let Some(request) = &block.request {
            frame["request_id"] = json!(request.as_str());
        }
        if let Some(error) = block.error {
            frame["error"] = json!(error);
        }
        self.sealed(frame, Some(block.entry.as_str()))
    }

    /// Returns what a command said that needed no model: words of nobody, in the place of an answer.
    fn local_command(&self, output: &LocalCommandOutput) -> Value {
        let id = self.env.random.uuid_v4().to_string();
        let message = synthetic_message(&id, &output.text);
        self.sealed(json!({"type": "assistant", "message": message, "parent_tool_use_id": null}), None)
    }

    fn user(&self, message: &UserMessage) -> Value {
        let mut frame = json!({
            "type": "user",
            "message": message.message,
            "parent_tool_use_id": null,
            "timestamp": message.timestamp,
        });
        if let Some(result) = &message.tool_use_result {
            frame["tool_use_result"] = result.clone();
        }
        self.sealed(frame, Some(message.entry.as_str()))
    }

    /// Returns the last frame of a turn.
    pub(crate) fn result(&self, report: &TurnReport) -> Value {
        let ending = Ending::of(&report.outcome);
        let mut frame = json!({
            "type": "result",
            "subtype": ending.subtype,
            "is_error": ending.is_error,
            "api_error_status": ending.status,
            "duration_ms": report.duration.as_millis() as u64,
            "duration_api_ms": report.api_duration.as_millis() as u64,
            "num_turns": report.round_trips,
            "stop_reason": report.stop_reason,
            "session_id": self.session.as_str(),
            "total_cost_usd": report.total_cost_usd,
            "usage": report.usage.to_full_value(),
            "modelUsage": usage_in_window(report),
            "permission_denials": report.denials.iter().map(|denial| json!({
                "tool_name": denial.tool_name,
                "tool_use_id": denial.tool_use_id,
                "tool_input": denial.tool_input,
            })).collect::<Vec<_>>(),
            "fast_mode_state": "off",
            "loci": {"context": {
                "tokens": report.context.tokens,
                "window": report.context.window,
                "compact_at": report.context.thresholds.compact,
                "level": report.context.level.as_str(),
            }},
        });
        let unpriced = report.by_model.iter().filter(|(model, usage)| is_price_unknown(model, usage));
        let unpriced: Vec<&str> = unpriced.map(|(model, _)| model.as_str()).collect();
        if !unpriced.is_empty() {
            frame["loci"]["price_unknown"] = json!(unpriced);
        }
        for (key, after) in
            [("ttft_ms", report.first_event_after), ("time_to_request_ms", report.first_request_after)]
        {
            if let Some(after) = after {
                frame[key] = json!(after.as_millis() as u64);
            }
        }
        if !report.is_saved {
            frame["loci"]["session_saved"] = json!(false);
        }
        if ending.subtype == "success" {
            frame["result"] = json!(report.shown_text.as_ref().unwrap_or(&report.text));
        }
        if let Outcome::Deferred(call) | Outcome::DeferredUnavailable(call) = &report.outcome {
            frame["deferred_tool_use"] = json!({"id": call.id, "name": call.name, "input": call.input});
        }
        if let Some(error) = ending.error {
            frame["errors"] = json!([error]);
        }
        if let Some(origin) = report.origin {
            frame["origin"] = json!({"kind": origin});
        }
        if let Some(reason) = ending.terminal_reason {
            frame["terminal_reason"] = json!(reason);
        }
        self.sealed(frame, None)
    }

    /// Returns a result for a run that failed before its first turn.
    pub(crate) fn failed_start(&self, error: &str) -> Value {
        let frame = json!({
            "type": "result",
            "subtype": "error_during_execution",
            "is_error": true,
            "duration_ms": 0,
            "duration_api_ms": 0,
            "num_turns": 0,
            "session_id": self.session.as_str(),
            "total_cost_usd": 0,
            "usage": loci_core::usage::Usage::default().to_full_value(),
            "modelUsage": {},
            "permission_denials": [],
            "errors": [error],
        });
        self.sealed(frame, None)
    }

    /// Returns the frame that says why a prompt was blocked.
    pub(crate) fn blocked_prompt(&self, reason: &str) -> Value {
        let fields = json!({"content": reason, "level": "warning", "prevent_continuation": true});
        self.system("informational", fields)
    }

    fn system(&self, subtype: &str, fields: Value) -> Value {
        let mut frame = Map::new();
        frame.insert("type".to_owned(), json!("system"));
        frame.insert("subtype".to_owned(), json!(subtype));
        if let Value::Object(fields) = fields {
            frame.extend(fields);
        }
        self.sealed(Value::Object(frame), None)
    }

    fn sealed(&self, mut frame: Value, entry: Option<&str>) -> Value {
        frame["session_id"] = json!(self.session.as_str());
        frame["uuid"] = match entry {
            Some(entry) => json!(entry),
            None => json!(self.env.random.uuid_v4().to_string()),
        };
        frame
    }
}

fn task_started(task: &BackgroundTask) -> Value {
    let mut fields = json!({
        "task_id": task.id,
        "tool_use_id": task.tool_use_id.as_str(),
        "description": task.label(),
    });
    if let Some(kind) = task.agent_type() {
        fields["subagent_type"] = json!(kind);
    }
    fields["task_type"] = json!(task.kind.name());
    if task.agent_type().is_some() {
        fields["prompt"] = json!(task.command);
    }
    fields
}

/// Tells how work beside the conversation ended; of what was waited for, the result of its call tells the rest.
fn task_notification(task: &BackgroundTask) -> Value {
    let status = match task.status {
        BackgroundStatus::Killed(_) => "stopped",
        ref status => status.name(),
    };
    let (output, summary) = match task.is_background {
        true => (task.output.display().to_string(), task_summary(task)),
        false => (String::new(), task.label().to_owned()),
    };
    let mut fields = json!({
        "task_id": task.id,
        "tool_use_id": task.tool_use_id.as_str(),
        "status": status,
        "output_file": output,
        "summary": summary,
    });
    if let Some(report) = &task.report {
        fields["usage"] = task_usage(&report.usage);
    }
    fields
}

fn task_usage(usage: &TaskUsage) -> Value {
    json!({
        "total_tokens": usage.total_tokens,
        "tool_uses": usage.tool_uses,
        "duration_ms": usage.duration.as_millis() as u64,
    })
}

/// How an outcome reads in a result frame.
struct Ending {
    subtype: &'static str,
    is_error: bool,
    status: Option<u16>,
    error: Option<String>,
    terminal_reason: Option<&'static str>,
}

impl Ending {
    fn of(outcome: &Outcome) -> Self {
        let ending = |subtype, is_error, terminal_reason| Self {
            subtype,
            is_error,
            status: None,
            error: None,
            terminal_reason,
        };
        match outcome {
            Outcome::Completed => ending("success", false, Some("completed")),
            Outcome::Blocked(_) | Outcome::Halted(_) => ending("success", false, Some("completed")),
            Outcome::Deferred(_) => ending("success", false, None),
            Outcome::DeferredUnavailable(_) => ending("success", true, None),
            Outcome::CommandFailed => ending("success", true, Some("completed")),
            Outcome::Refused => ending("success", true, Some("completed")),
            Outcome::ApiError(failure) => {
                Self { status: failure.status, ..ending("success", true, Some("completed")) }
            }
            Outcome::MaxTurns(limit) => Self {
                error: Some(format!("Reached maximum number of turns ({limit})")),
                ..ending("error_max_turns", true, Some("max_turns"))
            },
            Outcome::MaxBudget(limit) => Self {
                error: Some(format!("Reached maximum budget (${limit})")),
                ..ending("error_max_budget_usd", true, None)
            },
            Outcome::Interrupted(Interruption::Streaming) => {
                ending("error_during_execution", true, Some("aborted_streaming"))
            }
            Outcome::Interrupted(Interruption::Tools) => {
                ending("error_during_execution", true, Some("aborted_tools"))
            }
        }
    }
}

/// Returns true when a run that ended so should exit with an error.
pub(crate) fn is_error(outcome: &Outcome) -> bool {
    Ending::of(outcome).is_error
}

/// Returns what a person reads of an outcome that has no answer.
pub(crate) fn outcome_text(report: &TurnReport) -> String {
    match (&report.outcome, Ending::of(&report.outcome).error) {
        (_, Some(error)) => format!("Error: {error}"),
        (Outcome::Interrupted(_), None) => "Interrupted".to_owned(),
        (Outcome::Deferred(call), None) => {
            format!("A call of {} was put off: go on with `loci -p --resume {}`", call.name, report.session)
        }
        _ => report.shown_text.clone().unwrap_or_else(|| report.text.clone()),
    }
}

/// Returns what each model used; the window of one that we know nothing of is the one in force.
fn usage_in_window(report: &TurnReport) -> Value {
    let mut usage = usage_by_model(&report.by_model);
    let unknown = report
        .by_model
        .iter()
        .filter(|(model, used)| used.context_window.is_none() && !facts(model).is_known);
    for (model, _) in unknown {
        usage[model]["contextWindow"] = json!(report.context.window);
    }
    usage
}

/// Returns what each model used, as clients are told it.
pub(crate) fn usage_by_model(by_model: &BTreeMap<String, ModelUsage>) -> Value {
    let row = |model: &str, usage: &ModelUsage| {
        let facts = facts(model);
        let mut value = serde_json::to_value(usage).unwrap_or_default();
        value["contextWindow"] = json!(usage.context_window.unwrap_or(facts.window));
        value["maxOutputTokens"] = json!(usage.max_output_tokens.unwrap_or(facts.default_output));
        if is_price_unknown(model, usage) {
            value["priceUnknown"] = json!(true);
        }
        value
    };
    by_model.iter().map(|(model, usage)| (model.clone(), row(model, usage))).collect::<Map<_, _>>().into()
}

fn fallback_text(from: &str, to: &str, failure: &Failure) -> String {
    format!("{from} is not answering ({failure}); {to} takes over for this turn")
}
fn compaction_status(failure: Option<&str>) -> Value {
    match failure {
        None => json!({"status": null, "compact_result": "success"}),
        Some(error) => json!({"status": null, "compact_result": "failed", "compact_error": error}),
    }
}

/// Spells the keys of the transcript as the stream does.
fn snake_case(value: &Value) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let spelled = fields.iter().map(|(key, value)| {
        let key: String = key
            .chars()
            .flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase()))
            .collect();
        (key, snake_case(value))
    });
    Value::Object(spelled.collect())
}

/// Tells which hook is being run.
fn hook_run(run: &HookRunStarted) -> Value {
    json!({"hook_id": run.id, "hook_name": run.name, "hook_event": run.event.name()})
}

/// Tells how a hook ended.
fn hook_response(ended: &HookRunEnded) -> Value {
    let mut fields = hook_run(&ended.run);
    let output: Vec<&str> =
        [ended.stdout.as_str(), &ended.stderr].into_iter().filter(|text| !text.is_empty()).collect();
    fields["output"] = output.join("\n").into();
    fields["stdout"] = ended.stdout.as_str().into();
    fields["stderr"] = ended.stderr.as_str().into();
    fields["exit_code"] = ended.exit_code.map_or(Value::Null, Value::from);
    fields["outcome"] = ended.outcome.into();
    fields
}
