//! TaskOutput: how a background task is doing, and what is new in its output.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use loci_stdx::open_regular;

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::background_tasks::{BackgroundStatus, TaskKind};
use crate::bash::capture::decode;
use crate::{BackgroundTask, BackgroundTasks, Host, Tool, ToolCall, ToolFuture, Workspace};

const DEFAULT_OUTPUT_CHARS: usize = 32_000;
const MAX_OUTPUT_CHARS: usize = 160_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// The TaskOutput tool.
pub(crate) struct TaskOutput {
    descriptor: ToolDescriptor,
}

#[derive(Debug, Deserialize)]
struct Input {
    task_id: String,
    block: bool,
    timeout: f64,
}

impl Default for TaskOutput {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "TaskOutput".to_owned(),
            aliases: &["BashOutput"],
            description: include_str!("task_output.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "task_id": {"type": "string", "description": "The id of the task"},
                    "block": {
                        "type": "boolean",
                        "default": true,
                        "description": "Whether to wait for the task to end",
                    },
                    "timeout": {
                        "type": "number",
                        "minimum": 0,
                        "maximum": MAX_TIMEOUT_MS,
                        "default": 30_000,
                        "description": "How long to wait at most, in milliseconds",
                    },
                },
                "required": ["task_id", "block", "timeout"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts { is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for TaskOutput {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// The output of a task is the session's own.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            match Input::deserialize(&call.input) {
                Ok(input) => run(&input, &call, host).await,
                Err(error) => ToolOutcome::invalid_input(error.to_string()),
            }
        })
    }
}

async fn run(input: &Input, call: &ToolCall, host: &dyn Host) -> ToolOutcome {
    let tasks = host.tasks();
    let timeout = Duration::from_millis((input.timeout as u64).min(MAX_TIMEOUT_MS));
    let view = if input.block {
        tokio::select! {
            view = tasks.wait(&input.task_id, timeout) => view,
            () = call.cancel.cancelled() => {
                return ToolOutcome::error("The wait was interrupted. The task itself goes on.");
            }
        }
    } else {
        tasks.find(&input.task_id)
    };
    let Some(view) = view else { return ToolOutcome::refusal(unknown_task(tasks, &input.task_id)) };
    let max_chars = max_chars(host);
    let (path, from) = (view.output.clone(), tasks.n_shown(&view.id));
    let is_final = view.status != BackgroundStatus::Running;
    let read = tokio::task::spawn_blocking(move || News::read(&path, from, max_chars, is_final)).await;
    match read.map_err(io::Error::other).and_then(|news| news) {
        Ok(news) => {
            tasks.mark_shown(&view.id, news.end);
            if is_final {
                tasks.mark_known(&view.id);
            }
            outcome(&view, &news, input.block)
        }
        Err(error) => ToolOutcome::error(format!(
            "Failed to read the output of task {}: {error}",
            view.output.display()
        )),
    }
}

fn outcome(view: &BackgroundTask, news: &News, was_waited_for: bool) -> ToolOutcome {
    let said = text_of(view, news);
    let text = match (said.is_empty(), news.n_skipped) {
        (true, _) => "(no new output)".to_owned(),
        (false, n_skipped) if n_skipped > 0 && view.report.is_none() => {
            format!("[{n_skipped} earlier bytes are in the output file]\n{said}")
        }
        (false, _) => said.to_owned(),
    };
    let content =
        format!("Task {} {}. Output file: {}\n\n{text}", view.id, describe(view), view.output.display());
    let retrieval = match (&view.status, was_waited_for) {
        (BackgroundStatus::Running, true) => "timeout",
        (BackgroundStatus::Running, false) => "not_ready",
        (
            BackgroundStatus::Completed
            | BackgroundStatus::Failed(_)
            | BackgroundStatus::Broken(_)
            | BackgroundStatus::Killed(_),
            _,
        ) => "success",
    };
    let mut structured = json!({
        "retrieval_status": retrieval,
        "task": {
            "task_id": view.id,
            "task_type": view.kind.name(),
            "status": view.status.name(),
            "description": view.label(),
            "output": text_of(view, news),
        },
    });
    if view.agent_type().is_none() && view.kind != TaskKind::McpCall {
        structured["task"]["exitCode"] = json!(view.status.exit_code());
    }
    ToolOutcome::text(content, structured)
}

/// Returns what a task has to tell: an agent that is done its answer, anything else what is new in its file.
fn text_of<'a>(view: &'a BackgroundTask, news: &'a News) -> &'a str {
    view.report.as_ref().map_or(&news.text, |report| &report.text)
}

fn describe(view: &BackgroundTask) -> String {
    match &view.status {
        BackgroundStatus::Running => "is still running".to_owned(),
        BackgroundStatus::Completed if view.agent_type().is_some() || view.kind == TaskKind::McpCall => {
            "has completed".to_owned()
        }
        BackgroundStatus::Completed => "has completed (exit code 0)".to_owned(),
        BackgroundStatus::Failed(code) => format!("has failed (exit code {code})"),
        BackgroundStatus::Broken(why) => format!("has failed ({why})"),
        BackgroundStatus::Killed(why) => format!("was killed ({why})"),
    }
}

/// Says that there is no such task, and which there are.
pub(crate) fn unknown_task(tasks: &BackgroundTasks, id: &str) -> String {
    let known: Vec<String> =
        tasks.list().iter().map(|task| format!("{} ({})", task.id, task.status.name())).collect();
    if known.is_empty() {
        return format!("There is no task `{id}`: no background task has been started in this session.");
    }
    format!("There is no task `{id}`. Known tasks: {}.", known.join(", "))
}

fn max_chars(host: &dyn Host) -> usize {
    let asked = host.env().vars.get("TASK_MAX_OUTPUT_LENGTH").and_then(|chars| chars.trim().parse().ok());
    asked.filter(|chars| *chars > 0).unwrap_or(DEFAULT_OUTPUT_CHARS).min(MAX_OUTPUT_CHARS)
}

/// Output that has not been shown.
struct News {
    text: String,
    /// Bytes before `text` that are left out.
    n_skipped: u64,
    /// Where the next news begin.
    end: u64,
}

impl News {
    /// Reads a file from a place on, its last `max_chars` bytes at most. A character that is only half there is
    /// left for later, unless this is the end.
    fn read(path: &Path, from: u64, max_chars: usize, is_final: bool) -> io::Result<Self> {
        let mut file = match open_regular(path) {
            // Nothing has been written yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { text: String::new(), n_skipped: 0, end: from });
            }
            opened => opened?,
        };
        let length = file.metadata()?.len();
        let start = from.max(length.saturating_sub(max_chars as u64));
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(max_chars as u64).read_to_end(&mut bytes)?;
        if !is_final {
            bytes.truncate(whole_chars(&bytes));
        }
        Ok(Self {
            text: decode(&bytes).trim_end().to_owned(),
            n_skipped: start - from,
            end: start + bytes.len() as u64,
        })
    }
}

/// Returns the length without a character that breaks off at the end.
fn whole_chars(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(4);
    match std::str::from_utf8(&bytes[from..]) {
        Err(error) if error.error_len().is_none() => from + error.valid_up_to(),
        _ => bytes.len(),
    }
}
