//! Monitor: watches something by a command whose every line of output is told to the model, or by a web socket whose every
//! message is (`socket`).
//!
//! The command runs as a background task. Its lines reach the conversation with the next results, or by a turn of their own
//! between turns; what it complains about goes to the task's file alone. One that floods is stopped.

mod socket;

use std::path::PathBuf;
use std::time::Duration;

use loci_core::tool::{CallEffects, MainArgument, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::time::Instant;

use crate::background_tasks::{BackgroundStatus, NewTask, TaskKind, TaskLines};
use crate::bash::{self, DISABLE_BACKGROUND};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// How long a command is watched, unless the call says otherwise, and at most.
const USUAL_MS: u64 = 300_000;
const MOST_MS: u64 = 3_600_000;
/// How often new lines are looked for; those of one look are told together.
const LOOK: Duration = Duration::from_millis(200);
/// A command that writes more lines than this within a minute is stopped.
const MOST_LINES: usize = 300;
const MINUTE: Duration = Duration::from_secs(60);
/// The most characters of a line that are told.
const MOST_CHARS: usize = 2_000;

/// What is told when it is not watched any longer.
const TIME_IS_OVER: &str = "[Stopped: its time is over. Watch again if it is still of use.]";

/// The Monitor tool.
pub(crate) struct Monitor {
    descriptor: ToolDescriptor,
}

impl Default for Monitor {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "Monitor".to_owned(),
            aliases: &[],
            description: include_str!("monitor.md").trim_end().to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "A command that prints a line for each thing worth knowing, and nothing else"},
                    "ws": {
                        "type": "object",
                        "description": "In the place of `command`: a web socket, each of whose messages is an event",
                        "properties": {
                            "url": {"type": "string", "description": "Its address: ws:// or wss://, without a name or password"},
                            "protocols": {"type": "array", "items": {"type": "string"}, "description": "Protocols that may be spoken on it"},
                        },
                        "required": ["url"],
                        "additionalProperties": false,
                    },
                    "description": {"type": "string", "description": "What is watched, in a few words; it stands before each event"},
                    "timeout_ms": {"type": "number", "description": "How long it is watched, in milliseconds (default 300000, at most 3600000)"},
                    "persistent": {"type": "boolean", "description": "true: until it ends, TaskStop or the end of the session"},
                },
                "required": ["description"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts {
                runs_code: true,
                main_argument: Some(MainArgument::alone("command")),
                ..ToolFacts::default()
            },
        };
        Self { descriptor }
    }
}

impl Tool for Monitor {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// What its command would do in the background, or what opening its socket does.
    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match input.get("ws") {
            Some(source) => socket::effects(source),
            None => bash::background_effects(command(input), place),
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn validate(&self, input: &Value, host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let refusal = |text: String| Err(Box::new(ToolOutcome::refusal(text)));
        if host.env().vars.is_truthy(DISABLE_BACKGROUND) {
            return refusal(format!("Background tasks are switched off ({DISABLE_BACKGROUND})."));
        }
        match (input.get("ws"), input.get("command")) {
            (Some(source), None) => socket::check(source).or_else(refusal),
            (None, Some(_)) => bash::check_command(command(input)).or_else(refusal),
            (Some(_), Some(_)) => refusal("Give `command` or `ws`, not both.".to_owned()),
            (None, None) => refusal("Give a `command`, or a socket to watch (`ws`).".to_owned()),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move { start(&call, host).await.unwrap_or_else(ToolOutcome::error) })
    }
}

fn command(input: &Value) -> &str {
    input["command"].as_str().unwrap_or_default()
}

async fn start(call: &ToolCall, host: &dyn Host) -> Result<ToolOutcome, String> {
    let failed = |error: std::io::Error| format!("The command could not be started: {error}");
    let id = host.env().random.alphanumeric(9);
    let dir = host.task_dir().map_err(failed)?;
    let output = dir.join(format!("{id}.output"));
    let is_persistent = call.input["persistent"].as_bool().unwrap_or(false);
    let asked = call.input["timeout_ms"].as_f64().map_or(USUAL_MS, |ms| ms.clamp(1_000.0, 1e12) as u64);
    let limit = (!is_persistent).then(|| Duration::from_millis(asked.min(MOST_MS)));
    let description = call.input["description"].as_str().unwrap_or_default().to_owned();
    let until = match limit {
        Some(limit) => format!("for {} s", limit.as_secs()),
        None => "until it ends or is stopped".to_owned(),
    };
    // Whoever goes on with the session finds what ended with it by this name.
    let structured = json!({"taskId": id, "backgroundTaskId": id, "timeoutMs": limit.map(|it| it.as_millis() as u64), "persistent": is_persistent});
    if let Some(source) = call.input.get("ws") {
        let socket = socket::open(source, host).await?;
        let about = NewTask {
            output: output.clone(),
            id: id.clone(),
            kind: TaskKind::Monitor,
            tool_use_id: call.id.clone(),
            command: source["url"].as_str().unwrap_or_default().to_owned(),
            description,
        };
        let task = host.tasks().register(about, true);
        let shown = output.display().to_string();
        host.tasks().keep(tokio::spawn(async move { socket::listen(socket, task, limit, &output).await }));
        let text = format!(
            "Connected. Watching as task {id}, {until}. You are told of each message; go on with other work, or end your turn. \
             All messages are in {shown}; TaskStop ends it."
        );
        return Ok(ToolOutcome::text(text, structured));
    }
    let (running, capture, complaints) =
        bash::start_with_stderr(command(&call.input), &format!("{id}.stderr"), call, host)?;
    let about = NewTask {
        output: output.clone(),
        id: id.clone(),
        kind: TaskKind::Monitor,
        tool_use_id: call.id.clone(),
        command: command(&call.input).to_owned(),
        description,
    };
    let lines = host.tasks().start_monitor(about, running, capture).await.map_err(failed)?;
    host.tasks().keep(tokio::spawn(follow(lines, output.clone(), limit)));
    let text = format!(
        "Watching as task {id}, {until}. You are told of each line; go on with other work, or end your turn. All output is in {}, \
         what it complains about in {}; TaskStop ends it.",
        output.display(),
        complaints.display()
    );
    Ok(ToolOutcome::text(text, structured))
}

/// Reads what the command adds to its file and tells whole lines, until it has ended or is not to go on.
async fn follow(task: TaskLines, output: PathBuf, limit: Option<Duration>) {
    let end = limit.map(|limit| Instant::now() + limit);
    let (mut at, mut rest) = (0_u64, Vec::new());
    let (mut since, mut n_lines) = (Instant::now(), 0_usize);
    loop {
        let has_ended = task.status() != Some(BackgroundStatus::Running);
        if has_ended {
            // What it wrote last may be on its way to the file.
            tokio::time::sleep(LOOK).await;
        }
        let lines = new_lines(&output, &mut at, &mut rest, has_ended).await;
        if since.elapsed() > MINUTE {
            (since, n_lines) = (Instant::now(), 0);
        }
        n_lines += lines.len();
        task.tell(lines);
        if has_ended {
            return;
        }
        if n_lines > MOST_LINES {
            task.tell(vec![format!("[Stopped: it wrote more than {MOST_LINES} lines within a minute. Filter them and watch again.]")]);
            return task.stop();
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            task.tell(vec![TIME_IS_OVER.to_owned()]);
            return task.stop();
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the lines that are whole by now; at the end what is left is one, too.
async fn new_lines(file: &PathBuf, at: &mut u64, rest: &mut Vec<u8>, has_ended: bool) -> Vec<String> {
    let mut fresh = Vec::new();
    if let Ok(mut file) = tokio::fs::File::open(file).await
        && file.seek(std::io::SeekFrom::Start(*at)).await.is_ok()
    {
        // What cannot be read now is read at the next look.
        file.take(1 << 20).read_to_end(&mut fresh).await.ok();
    }
    *at += fresh.len() as u64;
    rest.append(&mut fresh);
    let n_whole = if has_ended {
        rest.len()
    } else {
        rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    };
    let whole: Vec<u8> = rest.drain(..n_whole).collect();
    let text = String::from_utf8_lossy(&whole);
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(|line| line.chars().take(MOST_CHARS).collect()).collect()
}

#[cfg(test)]
mod tests;
