//! Tasks that outlive sessions, as a project keeps them in `.claude/scheduled_tasks.json`.
//!
//! The file is `{"tasks": [{"id", "cron", "prompt", "createdAt", "recurring", "createdBySessionId", "createdByPid",
//! "createdByProcStart"}]}`, times in milliseconds since 1970. We add `lastFiredAt` to a recurring task: whoever says its
//! prompt writes that first, under a lock, so that of several processes one does. What else stands there is kept.

use serde_json::{Value, json};

use super::{Cron, ScheduledTask, When};

/// A task of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableTask {
    /// The task.
    pub task: ScheduledTask,
    /// The session that made it.
    pub made_by: String,
    /// When it last fired, in seconds since 1970.
    pub last_fired: Option<i64>,
}

/// Who makes a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMaker {
    /// The session.
    pub session: String,
    /// The process.
    pub pid: u32,
    /// When the process started, in the kernel's ticks.
    pub proc_start: Option<u64>,
}

/// Returns a task as the file has it; a wake-up is its session's alone.
pub fn durable_entry(task: &ScheduledTask, maker: &TaskMaker) -> Option<Value> {
    let (cron, recurring) = match &task.when {
        When::Every(cron) => (cron, true),
        When::Once(cron) => (cron, false),
        When::At(_) => return None,
    };
    let mut entry = json!({
        "id": task.id,
        "cron": cron.to_string(),
        "prompt": task.prompt,
        "createdAt": task.created_at * 1000,
        "recurring": recurring,
        "createdBySessionId": maker.session,
        "createdByPid": maker.pid,
    });
    if let Some(start) = maker.proc_start {
        entry["createdByProcStart"] = json!(start.to_string());
    }
    Some(entry)
}

/// Reads an entry of the file; none where it is no task.
pub fn parse_durable(entry: &Value) -> Option<DurableTask> {
    let text = |key: &str| entry.get(key)?.as_str().map(str::to_owned);
    let seconds = |key: &str| Some(entry.get(key)?.as_f64()? as i64 / 1000);
    let cron = Cron::parse(&text("cron")?).ok()?;
    let is_recurring = entry.get("recurring").and_then(Value::as_bool).unwrap_or(false);
    let id = text("id").filter(|id| !id.is_empty() && id.len() <= 64)?;
    Some(DurableTask {
        task: ScheduledTask {
            id,
            when: if is_recurring { When::Every(cron) } else { When::Once(cron) },
            prompt: text("prompt").filter(|prompt| !prompt.trim().is_empty())?,
            created_at: seconds("createdAt")?,
            is_durable: true,
            next: None,
        },
        made_by: text("createdBySessionId")?,
        last_fired: seconds("lastFiredAt"),
    })
}

/// Returns the id of an entry.
pub fn entry_id(entry: &Value) -> Option<&str> {
    entry.get("id")?.as_str()
}

/// Notes that a task fired.
pub fn mark_fired(entry: &mut Value, now: i64) {
    entry["lastFiredAt"] = json!(now * 1000);
}
