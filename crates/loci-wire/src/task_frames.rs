//! Frames of work beside the conversation (agents, commands in the background), and what results tell of it all in all.

use std::collections::{BTreeMap, BTreeSet};

use loci_core::tool::ToolKind;
use loci_engine::{
    AgentLimit, BackgroundStatus, BackgroundTask, LostTask, TaskNews, TaskUsage, task_summary,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::frame::Frames;

/// What is under way, and what was sent out so far.
#[derive(Debug, Default)]
pub(crate) struct LiveTasks {
    /// What runs in the background, by id.
    background: BTreeMap<String, Value>,
    /// How deep each agent stands; the first below the main line is at one.
    depths: BTreeMap<String, u64>,
    stats: SubagentStats,
    /// What calls said of where their agents are to work, until those are sent out.
    asked: BTreeMap<String, Option<bool>>,
    /// Tasks that a call is to stop.
    stopped_by_calls: BTreeSet<String>,
    /// Whether the run is being ended from outside.
    pub(crate) is_ending: bool,
}

/// What became of the agents of a run.
#[derive(Debug, Default)]
struct SubagentStats {
    spawned: u64,
    in_background: u64,
    by_agents: u64,
    completed: u64,
    failed: u64,
    killed: Killed,
    requested: Requested,
    refused: Refused,
    by_type: BTreeMap<String, u64>,
}

/// Who stopped agents.
#[derive(Debug, Default, Serialize)]
struct Killed {
    parent: u64,
    user: u64,
    system: u64,
}

/// Where agents were to work, as their calls said.
#[derive(Debug, Default, Serialize)]
struct Requested {
    background: u64,
    foreground: u64,
    unset: u64,
}

/// Why agents were not sent out. None is refused for their number: they wait.
#[derive(Debug, Default, Serialize)]
struct Refused {
    depth_limit: u64,
    concurrency_limit: u64,
    budget: u64,
}

impl LiveTasks {
    /// Takes note of a step; tells whether what runs in the background is another set now.
    pub(crate) fn note(&mut self, news: &TaskNews) -> bool {
        match news {
            TaskNews::Started(task) => {
                self.count_start(task);
                self.add(task)
            }
            TaskNews::Backgrounded(task) => self.add(task),
            TaskNews::Progress { .. } => false,
            TaskNews::Ended(task) => {
                if task.agent_type().is_some() {
                    match task.status {
                        BackgroundStatus::Killed(_) => self.count_kill(&task.id),
                        BackgroundStatus::Broken(_) => self.stats.failed += 1,
                        _ => self.stats.completed += 1,
                    }
                }
                self.background.remove(&task.id).is_some()
            }
        }
    }

    /// Takes note of a call, of the main conversation or of an agent's.
    pub(crate) fn note_call(&mut self, block: &Value) {
        let (Some(call), input) = (block["id"].as_str(), &block["input"]) else { return };
        match block["name"].as_str() {
            Some(tool) if ToolKind::of_tool(tool) == ToolKind::Delegate => {
                self.asked.insert(call.to_owned(), input["run_in_background"].as_bool());
            }
            Some("TaskStop" | "KillShell") => {
                let task = ["task_id", "shell_id"].iter().find_map(|key| input[*key].as_str());
                self.stopped_by_calls.extend(task.map(str::to_owned));
            }
            _ => {}
        }
    }

    /// An agent was not sent out.
    pub(crate) fn note_refusal(&mut self, limit: AgentLimit) {
        match limit {
            AgentLimit::Depth => self.stats.refused.depth_limit += 1,
            AgentLimit::Budget => self.stats.refused.budget += 1,
        }
    }

    fn count_kill(&mut self, task: &str) {
        let killed = &mut self.stats.killed;
        match (self.stopped_by_calls.remove(task), self.is_ending) {
            (true, _) => killed.parent += 1,
            (false, true) => killed.system += 1,
            (false, false) => killed.user += 1,
        }
    }

    fn count_start(&mut self, task: &BackgroundTask) {
        let Some(kind) = task.agent_type() else { return };
        let above = task.owner.as_ref().map_or(0, |owner| self.depth(owner.as_str()));
        self.depths.insert(task.id.clone(), above + 1);
        self.stats.spawned += 1;
        match self.asked.remove(task.tool_use_id.as_str()).flatten() {
            Some(true) => self.stats.requested.background += 1,
            Some(false) => self.stats.requested.foreground += 1,
            None => self.stats.requested.unset += 1,
        }
        self.stats.in_background += u64::from(task.is_background);
        self.stats.by_agents += u64::from(task.owner.is_some());
        *self.stats.by_type.entry(kind.to_owned()).or_default() += 1;
    }

    fn add(&mut self, task: &BackgroundTask) -> bool {
        if !task.is_background {
            return false;
        }
        let mut row = json!({"task_id": task.id, "task_type": task.kind.name(), "description": task.label()});
        if let Some(kind) = task.agent_type() {
            row["subagent_type"] = json!(kind);
        }
        if let Some(owner) = &task.owner {
            row["parent_task_id"] = json!(owner.as_str());
        }
        self.background.insert(task.id.clone(), row).is_none()
    }

    fn depth(&self, id: &str) -> u64 {
        self.depths.get(id).copied().unwrap_or(0)
    }

    /// Returns the ids of what runs in the background.
    pub(crate) fn background_ids(&self) -> Vec<String> {
        self.background.keys().cloned().collect()
    }

    /// Returns what a result tells of the agents of the run.
    pub(crate) fn subagent_stats(&self) -> Value {
        let stats = &self.stats;
        json!({
            "spawned": stats.spawned,
            "requested": stats.requested,
            "started_in_background": stats.in_background,
            "max_depth": self.depths.values().max().copied().unwrap_or(0),
            "spawned_by_subagents": stats.by_agents,
            "completed": stats.completed,
            "failed": stats.failed,
            "killed": stats.killed,
            "refused": stats.refused,
            "by_type": stats.by_type,
        })
    }
}

impl Frames {
    /// Returns the frame that has all that runs in the background.
    pub(crate) fn background_tasks_changed(&self, tasks: &LiveTasks) -> Value {
        let rows: Vec<&Value> = tasks.background.values().collect();
        self.system("background_tasks_changed", json!({"tasks": rows}))
    }

    /// Returns the frame of work that ended with the process that had begun it.
    pub(crate) fn lost_task(&self, lost: &LostTask) -> Value {
        let (status, summary) = match &lost.answer {
            Some(answer) => ("completed", answer.clone()),
            None => ("stopped", format!("Not running any more, because the session ended: {}", lost.what)),
        };
        let fields = json!({"task_id": lost.id, "status": status, "output_file": "", "summary": summary});
        self.system("task_notification", fields)
    }

    /// Returns the frames of a step of work beside the conversation.
    pub(crate) fn of_task(&self, news: &TaskNews, tasks: &LiveTasks) -> Vec<Value> {
        match news {
            TaskNews::Started(task) => {
                let mut fields = task_started(task);
                if task.agent_type().is_some() {
                    fields["spawn_depth"] = json!(tasks.depth(&task.id));
                }
                if let Some(owner) = &task.owner {
                    fields["parent_task_id"] = json!(owner.as_str());
                }
                vec![self.system("task_started", fields)]
            }
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
}

fn task_started(task: &BackgroundTask) -> Value {
    let mut fields = json!({
        "task_id": task.id,
        "tool_use_id": task.tool_use_id.as_str(),
        "description": task.label(),
        "is_backgrounded": task.is_background,
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

/// Tells how work beside the conversation ended; of an agent that came to its end, what it answered.
fn task_notification(task: &BackgroundTask) -> Value {
    let status = match task.status {
        BackgroundStatus::Killed(_) => "stopped",
        ref status => status.name(),
    };
    let is_agent = task.agent_type().is_some();
    let answer = task.report.as_ref().map(|report| report.text.as_str()).filter(|text| !text.is_empty());
    let summary = match answer.filter(|_| is_agent && task.status == BackgroundStatus::Completed) {
        Some(answer) => answer.to_owned(),
        None if task.is_background => task_summary(task),
        None => task.label().to_owned(),
    };
    let output = match task.is_background || is_agent {
        true => task.output.display().to_string(),
        false => String::new(),
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
