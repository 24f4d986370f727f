//! Engine events as the lines of the headless protocol.
//!
//! The shape of a frame is here; which frames an event is shown as, and in which order, is in `headless/event_frames.rs`.
//! One JSON object a line. Every frame has a `uuid` and the `session_id`; frames of entries carry the entry's id.

use std::path::Path;

use loci_core::entry::draft::synthetic_message;
use loci_core::ids::{SessionId, ToolUseId};
use loci_core::plugin::PluginProblem;
use loci_core::stream::{Failure, RateLimits, StreamEvent};
use loci_engine::{
    AgentRef, AssistantBlock, EngineEvent, Goal, GoalVerdict, HookRunEnded, HookRunStarted,
    LocalCommandOutput, McpServerError, TurnStart, UserMessage,
};
use loci_stdx::{Env, rfc3339_millis};
use serde_json::{Map, Value, json};

/// What clients may rely on: an interrupt answers with the prompts that still wait, and may take them back; the way of a
/// prompt is told; servers in the client may change their tools; resources of servers can be read; plugins are not read anew
/// while work is under way, where that is asked for.
pub(crate) const CAPABILITIES: [&str; 6] = [
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    "msg_lifecycle_v1",
    "sdk_mcp_tools_list_changed",
    "mcp_read_resource_v1",
    "reload_plugins_refuse_if_busy_v1",
];

/// How many bytes of lines go into one frame of a mirrored transcript: clients refuse lines over 1 MiB.
const MIRROR_BYTES: usize = 512 * 1024;

/// What every frame needs to know.
pub(crate) struct Frames {
    pub(crate) env: Env,
    pub(crate) session: SessionId,
    version: String,
}

fn verdict_word(verdict: &GoalVerdict) -> &'static str {
    match verdict {
        GoalVerdict::Reached => "reached",
        GoalVerdict::NotYet => "not_yet",
        GoalVerdict::Impossible => "impossible",
        GoalVerdict::Stalled => "stalled",
        GoalVerdict::Unknown => "unknown",
    }
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
            EngineEvent::ElicitationCompleted { server, id } => {
                self.system("elicitation_complete", json!({"mcp_server_name": server, "elicitation_id": id}))
            }
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
            EngineEvent::HookProgress(progress) => {
                let mut fields = hook_run(&progress.run);
                add_hook_output(&mut fields, &progress.stdout, &progress.stderr);
                self.system("hook_progress", fields)
            }
            EngineEvent::HookEnded(ended) => self.system("hook_response", hook_response(ended)),
            EngineEvent::GoalChecked { goal, verdict, reason } => self.system(
                "goal_status",
                json!({
                    "condition": goal.condition,
                    "status": verdict_word(verdict),
                    "checks": goal.n_checks,
                    "reason": reason,
                }),
            ),
            EngineEvent::PermissionDenied { tool, call, reason_kind, message } => self.system(
                "permission_denied",
                json!({
                    "tool_name": tool,
                    "tool_use_id": call.as_str(),
                    "decision_reason_type": reason_kind,
                    "message": message,
                }),
            ),
            EngineEvent::Resumed(_)
            | EngineEvent::Task(_)
            | EngineEvent::StopAnswered { .. }
            | EngineEvent::AgentMessaged { .. }
            | EngineEvent::AgentRefused(_)
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
            | EngineEvent::CommandsChanged(_)
            | EngineEvent::FilesRewound { .. }
            | EngineEvent::DirectoryAdded { .. }
            | EngineEvent::McpAnswered { .. }
            | EngineEvent::SideAnswered { .. }
            | EngineEvent::GoalChanged(_)
            | EngineEvent::Snapshot { .. }
            | EngineEvent::ModelChanged(_)
            | EngineEvent::ModelAnswered { .. }
            | EngineEvent::SandboxStatus(_)
            | EngineEvent::SettingsChanged(_)
            | EngineEvent::TurnsOver { .. }
            | EngineEvent::TerminalSequence(_)
            | EngineEvent::TranscriptLines { .. }
            | EngineEvent::PromptCancelled { .. }
            | EngineEvent::PluginsReloaded { .. } => return None,
            EngineEvent::Warning(text) => self.notification(text),
        })
    }

    /// Returns the frame of what an agent says or is told; it names the call that the agent works for.
    pub(crate) fn of_agent(&self, agent: &AgentRef, event: &EngineEvent) -> Option<Value> {
        match event {
            EngineEvent::Assistant(_) | EngineEvent::User(_) | EngineEvent::Stream { .. } => {
                let mut frame = self.of(event)?;
                frame["parent_tool_use_id"] = json!(agent.parent.as_ref().map(ToolUseId::as_str));
                frame["agent_id"] = json!(agent.id.as_str());
                frame["subagent_type"] = json!(agent.kind);
                frame["task_description"] = json!(agent.description);
                // The result of an agent's own call is told by its content alone.
                if let Some(fields) = frame.as_object_mut() {
                    fields.remove("tool_use_result");
                }
                Some(frame)
            }
            EngineEvent::PermissionDenied { .. } => {
                let mut frame = self.of(event)?;
                frame["agent_id"] = json!(agent.id.as_str());
                Some(frame)
            }
            _ => None,
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
        let servers: Vec<Value> = start
            .mcp_servers
            .iter()
            .map(|it| json!({"name": it.name, "status": it.status, "source": it.source}))
            .collect();
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
        fields["original_cwd"] = json!(start.cwd.display().to_string());
        fields["additional_directories"] = json!(start.dirs);
        fields["capabilities"] = json!(CAPABILITIES);
        fields["per_turn_effort_active"] = json!(false);
        fields["view_mode"] = json!("default");
        if let Some(effort) = &start.effort {
            fields["effort"] = json!(effort);
        }
        if !start.betas.is_empty() {
            fields["betas"] = json!(start.betas);
        }
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
            "timestamp": self.timestamp(),
        });
        if let Some(request) = &block.request {
            frame["request_id"] = json!(request.as_str());
        }
        if let Some(error) = &block.error {
            frame["error"] = json!(error);
        }
        if block.is_aborted {
            frame["aborted"] = json!(true);
        }
        self.sealed(frame, Some(block.entry.as_str()))
    }

    /// Returns the frame of something that people should know.
    fn notification(&self, text: &str) -> Value {
        self.system("notification", json!({"key": "warning", "text": text, "priority": "medium"}))
    }

    /// Returns what a command said that changed something, as words of the user's side that nobody is to answer.
    pub(crate) fn command_replay(&self, text: &str) -> Value {
        let content = format!("<local-command-stdout>{text}</local-command-stdout>");
        let frame = json!({
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": null,
            "timestamp": self.timestamp(),
            "isReplay": true,
        });
        self.sealed(frame, None)
    }

    /// Returns what a command said that needed no model: words of nobody, in the place of an answer.
    pub(crate) fn local_command(&self, output: &LocalCommandOutput) -> Value {
        let id = self.env.random.uuid_v4().to_string();
        let mut frame = json!({
            "type": "assistant",
            "message": synthetic_message(&id, &output.text),
            "parent_tool_use_id": null,
            "timestamp": self.timestamp(),
            "local_command_source": format!("<local-command-stdout>{}</local-command-stdout>", output.text),
        });
        match output.is_unavailable {
            true => frame["local_command_outcome"] = json!({"kind": "unavailable_headless"}),
            false => {
                let args = output.argument.clone().unwrap_or_default();
                frame["local_command_run"] = json!({"command": output.name, "args": args});
            }
        }
        self.sealed(frame, None)
    }

    /// Returns the moment, as transcripts have it.
    fn timestamp(&self) -> String {
        rfc3339_millis(self.env.clock.now())
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
        if message.is_synthetic {
            frame["isSynthetic"] = json!(true);
        }
        self.sealed(frame, Some(message.entry.as_str()))
    }

    /// Returns the frame that says whether the session works, waits for an answer of the client, or is idle. One that is
    /// sent for the sake of an SDK alone says so.
    pub(crate) fn session_state(&self, state: &str, is_host_only: bool) -> Value {
        let mut fields = json!({"state": state});
        if is_host_only {
            fields["sdk_host_only"] = json!(true);
        }
        self.system("session_state_changed", fields)
    }

    /// Returns the frame that says that another conversation has taken the place of the one before.
    pub(crate) fn conversation_reset(&self) -> Value {
        let frame = json!({
            "type": "conversation_reset",
            "new_conversation_id": self.session.as_str(),
            "trigger": "clear",
            "timestamp": self.timestamp(),
        });
        self.sealed(frame, None)
    }

    /// Returns the frame that tells the way of a prompt: `queued`, `started`, `completed` or `cancelled`.
    pub(crate) fn command_lifecycle(&self, prompt: &str, state: &str) -> Value {
        self.sealed(json!({"type": "command_lifecycle", "command_uuid": prompt, "state": state}), None)
    }

    /// Returns the frame that says that a request which takes its time was taken up.
    pub(crate) fn request_started(&self, request: &str) -> Value {
        self.system("control_request_progress", json!({"request_id": request, "status": "started"}))
    }

    /// Returns the frame that tells how much of what the account may use is used.
    pub(crate) fn rate_limits(&self, limits: &RateLimits) -> Value {
        let mut told = json!({"status": limits.status});
        let rest = [
            ("resetsAt", json!(limits.resets_at)),
            ("rateLimitType", json!(limits.kind)),
            ("utilization", json!(limits.utilization)),
            ("surpassedThreshold", json!(limits.surpassed_threshold)),
            ("overageStatus", json!(limits.overage_status)),
            ("overageResetsAt", json!(limits.overage_resets_at)),
            ("overageDisabledReason", json!(limits.overage_disabled_reason)),
        ];
        for (key, value) in rest.into_iter().filter(|(_, value)| !value.is_null()) {
            told[key] = value;
        }
        self.sealed(json!({"type": "rate_limit_event", "rate_limit_info": told}), None)
    }

    /// Returns the frame that says that the model would not answer, and that nobody else is asked.
    pub(crate) fn refused(&self, model: &str, prompt: Option<&str>) -> Value {
        let fields = json!({
            "original_model": model,
            "request_id": null,
            "refused_user_message_uuid": prompt,
            "content": format!("{model} declined to answer, and no other model is asked"),
        });
        self.system("model_refusal_no_fallback", fields)
    }

    /// Returns the frame that has the slash commands, which are others than before.
    pub(crate) fn commands_changed(&self, commands: Vec<Value>) -> Value {
        self.system("commands_changed", json!({"commands": commands}))
    }

    /// Returns the frame that has what is worked towards until it holds, and the tokens that were used before.
    pub(crate) fn active_goal(&self, goal: Option<(&Goal, u64)>) -> Value {
        let clock = &self.env.clock;
        let value = goal.map(|(goal, tokens)| {
            let age = clock.monotonic().saturating_sub(goal.since).as_millis() as i64;
            let mut value = json!({
                "condition": goal.condition,
                "iterations": goal.n_checks,
                "set_at": clock.now().as_millisecond() - age,
                "tokens_at_start": tokens,
            });
            if let Some(reason) = &goal.reason {
                value["last_reason"] = json!(reason);
            }
            value
        });
        self.sealed(json!({"type": "active_goal", "value": value}), None)
    }

    /// Returns the frame that says why a prompt was blocked.
    pub(crate) fn blocked_prompt(&self, reason: &str) -> Value {
        let fields = json!({"content": reason, "level": "warning", "prevent_continuation": true});
        self.system("informational", fields)
    }

    /// Returns the frame that has what a hook wants the user to be told, or what went wrong with it.
    pub(crate) fn hook_message(&self, ended: &HookRunEnded) -> Option<Value> {
        let level = if ended.outcome == "success" { "info" } else { "warning" };
        let mut fields = json!({"content": ended.message.as_ref()?, "level": level});
        if ended.is_stop {
            fields["prevent_continuation"] = json!(true);
        }
        Some(self.system("informational", fields))
    }

    pub(crate) fn system(&self, subtype: &str, fields: Value) -> Value {
        let mut frame = Map::new();
        frame.insert("type".to_owned(), json!("system"));
        frame.insert("subtype".to_owned(), json!(subtype));
        if let Value::Object(fields) = fields {
            frame.extend(fields);
        }
        self.sealed(Value::Object(frame), None)
    }

    /// Returns the frame with what may be said next.
    pub(crate) fn prompt_suggestion(&self, suggestion: &str) -> Value {
        self.sealed(json!({"type": "prompt_suggestion", "suggestion": suggestion}), None)
    }

    /// Returns the frame that says how a call is getting on.
    pub(crate) fn tool_progress(&self, mut fields: Value) -> Value {
        fields["type"] = json!("tool_progress");
        self.sealed(fields, None)
    }

    pub(crate) fn sealed(&self, mut frame: Value, entry: Option<&str>) -> Value {
        frame["session_id"] = json!(self.session.as_str());
        frame["uuid"] = match entry {
            Some(entry) => json!(entry),
            None => json!(self.env.random.uuid_v4().to_string()),
        };
        frame
    }
}

/// Returns the lines that pass lines of a transcript on, each as it was written.
pub(crate) fn transcript_mirror(file: &Path, lines: &[String]) -> Vec<String> {
    let file = Value::from(file.display().to_string());
    let mut batches: Vec<Vec<&str>> = Vec::new();
    let mut n_bytes = 0;
    for line in lines {
        n_bytes += line.len();
        match batches.last_mut().filter(|_| n_bytes <= MIRROR_BYTES) {
            Some(batch) => batch.push(line),
            None => {
                n_bytes = line.len();
                batches.push(vec![line]);
            }
        }
    }
    let frame = |batch: Vec<&str>| {
        format!(r#"{{"type":"transcript_mirror","filePath":{file},"entries":[{}]}}"#, batch.join(",")) + "\n"
    };
    batches.into_iter().map(frame).collect()
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

/// Adds what a hook has printed.
fn add_hook_output(fields: &mut Value, stdout: &str, stderr: &str) {
    let output: Vec<&str> = [stdout, stderr].into_iter().filter(|text| !text.is_empty()).collect();
    fields["output"] = output.join("\n").into();
    fields["stdout"] = stdout.into();
    fields["stderr"] = stderr.into();
}

/// Tells how a hook ended.
fn hook_response(ended: &HookRunEnded) -> Value {
    let mut fields = hook_run(&ended.run);
    add_hook_output(&mut fields, &ended.stdout, &ended.stderr);
    // A callback of the client has none.
    if let Some(code) = ended.exit_code {
        fields["exit_code"] = code.into();
    }
    fields["outcome"] = json!(ended.outcome);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrored_lines_keep_their_bytes_and_no_frame_is_too_long() {
        let small = [r#"{"a":1}"#.to_owned(), r#"{"b" : 2}"#.to_owned()];
        assert_eq!(
            transcript_mirror(Path::new("/p/s.jsonl"), &small),
            [
                "{\"type\":\"transcript_mirror\",\"filePath\":\"/p/s.jsonl\",\"entries\":[{\"a\":1},{\"b\" : 2}]}\n"
            ]
        );
        let large: Vec<String> = (0..5).map(|_| format!("\"{}\"", "x".repeat(300_000))).collect();
        let frames = transcript_mirror(Path::new("/p/s.jsonl"), &large);
        assert_eq!(frames.len(), 5);
        assert!(frames.iter().all(|frame| frame.len() < 1024 * 1024));
    }
}
