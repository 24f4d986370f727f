//! What happens in a session, as news for the editor: `session/update` of every kind that an event makes.
//!
//! Text is told as it streams; a block that came whole is told whole. A call is told when the model has made it, when it is
//! at work and what it says meanwhile, and what came of it. What needs a look at the whole session (options, title) is told
//! by the session itself.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use loci_core::model::is_price_unknown;
use loci_core::stream::{Delta, StreamEvent};
use loci_core::task_list::Task;
use loci_engine::{
    AgentRef, AssistantBlock, CommandRegistry, EngineEvent, Fullness, ToolProgress, TurnReport, UserMessage,
};
use serde_json::{Value, json};

use super::capabilities::ClientCapabilities;
use super::tool_call::{CallView, progress};

/// How much of what a call says while it runs is shown: its end.
const MOST_OUTPUT: usize = 16 * 1024;

/// Makes news of events.
pub(super) struct Updates {
    client: ClientCapabilities,
    pub(super) cwd: PathBuf,
    calls: HashMap<String, CallState>,
    /// The response at hand.
    message: Option<String>,
    /// Blocks of it that were told as they streamed, and are yet to come whole.
    streamed: Streamed,
    /// How many compactions there were.
    n_compactions: u64,
    /// What the session has cost, where that is known.
    cost: Option<f64>,
}

#[derive(Default)]
struct Streamed {
    seen: BTreeSet<usize>,
    n_texts: usize,
    n_thoughts: usize,
}

/// A call that was told and has not ended.
struct CallState {
    view: CallView,
    output: String,
}

impl Updates {
    pub(super) fn new(client: ClientCapabilities, cwd: PathBuf) -> Self {
        Self {
            client,
            cwd,
            calls: HashMap::new(),
            message: None,
            streamed: Streamed::default(),
            n_compactions: 0,
            cost: None,
        }
    }

    /// Returns the news that an event is.
    pub(super) fn of(&mut self, event: &EngineEvent) -> Vec<Value> {
        match event {
            EngineEvent::Stream { event, .. } => self.of_stream(event).into_iter().collect(),
            EngineEvent::Assistant(block) => self.of_block(block),
            EngineEvent::User(message) => self.of_results(message, None),
            EngineEvent::Agent { agent, event } => self.of_agent(agent, event),
            EngineEvent::Progress { call, progress } => {
                self.of_progress(call.as_str(), progress).into_iter().collect()
            }
            EngineEvent::TasksChanged(tasks) => vec![plan(tasks)],
            EngineEvent::ModeChanged(mode) => {
                vec![json!({"sessionUpdate": "current_mode_update", "currentModeId": mode.as_str()})]
            }
            EngineEvent::LocalCommand(output) => vec![message_chunk(&output.text, None)],
            EngineEvent::Context(fullness) => vec![self.usage(fullness)],
            EngineEvent::Compacting => {
                self.n_compactions += 1;
                self.compaction("in_progress", None)
            }
            EngineEvent::CompactionEnded { failure: None } => self.compaction("completed", None),
            EngineEvent::CompactionEnded { failure } => self.compaction("failed", failure.as_deref()),
            EngineEvent::TurnEnded(report) => {
                self.calls.clear();
                vec![self.of_report(report)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the news that a call may run and does.
    pub(super) fn begun(&self, call: &str) -> Option<Value> {
        self.calls.contains_key(call).then(|| progress(call, None))
    }

    fn of_stream(&mut self, event: &StreamEvent) -> Option<Value> {
        match event {
            StreamEvent::Started(started) => {
                self.message = Some(started.message_id.to_string());
                self.streamed = Streamed::default();
                None
            }
            StreamEvent::Delta { index, delta } => {
                let is_first = self.streamed.seen.insert(*index);
                match delta {
                    Delta::Text(text) => {
                        self.streamed.n_texts += usize::from(is_first);
                        Some(message_chunk(text, self.message.as_deref()))
                    }
                    Delta::Thinking(text) => {
                        self.streamed.n_thoughts += usize::from(is_first);
                        Some(thought_chunk(text, self.message.as_deref()))
                    }
                    Delta::InputJson(_) => None,
                }
            }
            StreamEvent::Wire(_)
            | StreamEvent::BlockStarted { .. }
            | StreamEvent::BlockDone { .. }
            | StreamEvent::Ended(_) => None,
        }
    }

    /// Tells of a block that is whole; failures are told as the answer to the prompt.
    fn of_block(&mut self, block: &AssistantBlock) -> Vec<Value> {
        if block.error.is_some() {
            return Vec::new();
        }
        let content = &block.message["content"][0];
        let text = |key: &str| content[key].as_str().filter(|text| !text.is_empty());
        let update = match content["type"].as_str() {
            Some("text") => match take_one(&mut self.streamed.n_texts) {
                true => None,
                false => text("text").map(|text| message_chunk(text, self.message.as_deref())),
            },
            Some("thinking") => match take_one(&mut self.streamed.n_thoughts) {
                true => None,
                false => text("thinking").map(|text| thought_chunk(text, self.message.as_deref())),
            },
            Some("tool_use") => self.announce(content),
            _ => None,
        };
        update.into_iter().collect()
    }

    /// Tells of a call, as the model made it.
    pub(super) fn announce(&mut self, block: &Value) -> Option<Value> {
        let id = block["id"].as_str()?;
        let view = CallView::new(block["name"].as_str()?, &block["input"]);
        let update = view.announce(id, &self.cwd);
        self.calls.insert(id.to_owned(), CallState { view, output: String::new() });
        Some(update)
    }

    fn of_results(&mut self, message: &UserMessage, parent: Option<&str>) -> Vec<Value> {
        let blocks = message.message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let results = blocks.iter().filter(|block| block["type"] == "tool_result");
        let updates = results.filter_map(|block| self.finish(block, message.tool_use_result.as_ref()));
        updates.map(|update| with_parent(update, parent)).collect()
    }

    /// Tells what came of a call; nothing where it was never told.
    pub(super) fn finish(&mut self, result: &Value, structured: Option<&Value>) -> Option<Value> {
        let id = result["tool_use_id"].as_str()?;
        let call = self.calls.remove(id)?;
        let structured = structured.filter(|value| value.is_object() || value.is_array());
        Some(call.view.finish(id, result, structured, &self.cwd))
    }

    /// Tells what an agent calls, of one that a call sent out; what it says comes with that call's result.
    fn of_agent(&mut self, agent: &AgentRef, event: &EngineEvent) -> Vec<Value> {
        let Some(parent) = agent.parent.as_ref().map(|parent| parent.as_str()) else { return Vec::new() };
        match event {
            EngineEvent::Assistant(block) if block.message["content"][0]["type"] == "tool_use" => {
                let update = self.announce(&block.message["content"][0]);
                update.map(|update| with_parent(update, Some(parent))).into_iter().collect()
            }
            EngineEvent::User(message) => self.of_results(message, Some(parent)),
            EngineEvent::Progress { call, progress } => {
                self.of_progress(call.as_str(), progress).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_progress(&mut self, id: &str, news: &ToolProgress) -> Option<Value> {
        let call = self.calls.get_mut(id)?;
        match news {
            ToolProgress::Output(text) => call.output.push_str(text),
            ToolProgress::Count(n) => call.output = n.to_string(),
            ToolProgress::Terminal(terminal) => {
                let mut update = progress(id, None);
                update["content"] = json!([{"type": "terminal", "terminalId": terminal}]);
                return Some(update);
            }
        }
        let cut = call.output.len().saturating_sub(MOST_OUTPUT);
        call.output.drain(..call.output.ceil_char_boundary(cut));
        Some(progress(id, Some(&call.output)))
    }

    fn of_report(&mut self, report: &TurnReport) -> Value {
        let is_known = !report.by_model.iter().any(|(model, usage)| is_price_unknown(model, usage));
        self.cost = is_known.then_some(report.total_cost_usd);
        self.usage(&report.context)
    }

    fn usage(&self, fullness: &Fullness) -> Value {
        let mut update =
            json!({"sessionUpdate": "usage_update", "used": fullness.tokens, "size": fullness.window});
        if let Some(cost) = self.cost {
            update["cost"] = json!({"amount": cost, "currency": "USD"});
        }
        update
    }

    fn compaction(&self, status: &str, error: Option<&str>) -> Vec<Value> {
        if !self.client.has_compactions {
            return Vec::new();
        }
        let mut update = json!({
            "sessionUpdate": "compaction_update",
            "compactionId": format!("compaction-{}", self.n_compactions),
            "status": status,
        });
        if let Some(error) = error {
            update["error"] = json!(error);
        }
        vec![update]
    }
}

fn take_one(n: &mut usize) -> bool {
    let had_one = *n > 0;
    *n = n.saturating_sub(1);
    had_one
}

/// Says of whose call it is a part.
fn with_parent(mut update: Value, parent: Option<&str>) -> Value {
    if let Some(parent) = parent {
        update["_meta"] = json!({"loci": {"parentToolCallId": parent}});
    }
    update
}

fn chunk(kind: &str, content: Value, message: Option<&str>) -> Value {
    let mut update = json!({"sessionUpdate": kind, "content": content});
    if let Some(message) = message {
        update["messageId"] = json!(message);
    }
    update
}

/// A piece of what the model says.
pub(super) fn message_chunk(text: &str, message: Option<&str>) -> Value {
    chunk("agent_message_chunk", json!({"type": "text", "text": text}), message)
}

/// A piece of what the model thinks.
pub(super) fn thought_chunk(text: &str, message: Option<&str>) -> Value {
    chunk("agent_thought_chunk", json!({"type": "text", "text": text}), message)
}

/// A piece of what the person said.
pub(super) fn user_chunk(content: Value, message: Option<&str>) -> Value {
    chunk("user_message_chunk", content, message)
}

/// A line that a person should know.
pub(super) fn notice(severity: &str, text: &str) -> Value {
    let (title, more) = text.split_once('\n').unwrap_or((text, ""));
    let mut update = json!({"sessionUpdate": "notice", "severity": severity, "title": title});
    if !more.trim().is_empty() {
        update["description"] = json!(more.trim());
    }
    update
}

/// The task list as a plan.
fn plan(tasks: &[Task]) -> Value {
    let entries: Vec<Value> = tasks
        .iter()
        .map(|task| json!({"content": task.subject, "priority": "medium", "status": task.status.as_str()}))
        .collect();
    json!({"sessionUpdate": "plan", "entries": entries})
}

/// The slash commands.
pub(super) fn available_commands(registry: &CommandRegistry) -> Value {
    let commands: Vec<Value> = registry
        .iter()
        .map(|command| {
            let mut shown = json!({"name": command.name, "description": command.description});
            if !command.argument_hint.is_empty() {
                shown["input"] = json!({"hint": command.argument_hint});
            }
            shown
        })
        .collect();
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}

#[cfg(test)]
mod tests;
