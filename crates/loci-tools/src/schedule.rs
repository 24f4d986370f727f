//! Prompts that a session gives itself later: the tools that schedule them, and the session as they see it.

pub(crate) mod cron_create;
pub(crate) mod cron_delete;
pub(crate) mod cron_list;
pub(crate) mod schedule_wakeup;

use loci_core::schedule::{Cron, ScheduledTask};
use loci_core::tool::ToolOutcome;
use serde_json::{Value, json};

use crate::Host;

/// The names of the tools that schedule prompts.
pub const SCHEDULE_TOOLS: [&str; 4] = ["CronCreate", "CronDelete", "CronList", "ScheduleWakeup"];

/// Why nothing can be scheduled.
const NOT_HERE: &str = "Nothing can be scheduled in this session.";

/// What is to be scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleRequest {
    /// A prompt by an expression.
    Cron {
        /// When.
        cron: Cron,
        /// What is said then.
        prompt: String,
        /// Whether it is said more than once.
        is_recurring: bool,
        /// Whether it outlives the session.
        is_durable: bool,
    },
    /// The session wakes itself, once.
    Wakeup {
        /// After so many seconds.
        delay: u64,
        /// What is said then.
        prompt: String,
    },
}

/// The schedule of a session, as tools see it.
pub trait ScheduleHost: Send + Sync {
    /// Takes something in; the error says why not.
    fn add(&self, request: ScheduleRequest) -> Result<ScheduledTask, String>;

    /// Takes a task out; false where there is none of this id.
    fn remove(&self, id: &str) -> Result<bool, String>;

    /// Has the session not wake itself; false where it would not have.
    fn cancel_wakeup(&self) -> Result<bool, String>;

    /// Returns what is scheduled, oldest first.
    fn tasks(&self) -> Vec<ScheduledTask>;

    /// Returns a time, in seconds since 1970, as a clock on the wall shows it.
    fn local_text(&self, at: i64) -> String;
}

/// Does something with the schedule, where there is one.
fn with_schedule(
    host: &dyn Host,
    act: impl FnOnce(&dyn ScheduleHost) -> Result<ToolOutcome, String>,
) -> ToolOutcome {
    match host.schedule() {
        Some(schedule) => act(schedule).unwrap_or_else(ToolOutcome::error),
        None => ToolOutcome::error(NOT_HERE),
    }
}

/// Returns a task as it is told.
fn task_json(task: &ScheduledTask, schedule: &dyn ScheduleHost) -> Value {
    json!({
        "id": task.id,
        "cron": task.schedule_text(),
        "prompt": task.prompt,
        "recurring": task.is_recurring(),
        "durable": task.is_durable,
        "next": task.next().map(|at| schedule.local_text(at)),
    })
}

#[cfg(test)]
pub(crate) mod tests;
