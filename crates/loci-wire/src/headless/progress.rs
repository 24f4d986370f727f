//! What a client is told while it waits: that a call still runs, how much the model has thought, and that an agent waits
//! before it asks again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use loci_core::stream::Failure;
use loci_core::tool::ToolKind;
use loci_engine::AgentRef;
use serde_json::{Value, json};

/// How often a client hears of a call that runs.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How many characters of thinking are taken for a token.
const CHARS_PER_TOKEN: usize = 4;

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Calls of the main conversation, by id.
    calls: BTreeMap<String, RunningCall>,
    /// About how many tokens the block has that the model thinks in.
    thought: u64,
    /// Agents that wait before they ask again.
    retrying: BTreeSet<String>,
}

#[derive(Debug)]
struct RunningCall {
    tool: String,
    since: Duration,
    next_beat: Duration,
}

impl Progress {
    /// A call of the main conversation begins. Agents tell themselves how they are getting on.
    pub(super) fn begin(&mut self, call: &str, tool: &str, now: Duration) {
        if ToolKind::of_tool(tool) != ToolKind::Delegate {
            let running = RunningCall { tool: tool.to_owned(), since: now, next_beat: now + HEARTBEAT };
            self.calls.insert(call.to_owned(), running);
        }
    }

    /// A call has its result.
    pub(super) fn end(&mut self, call: &str) {
        self.calls.remove(call);
    }

    /// Returns when the client is to hear of a call next.
    pub(super) fn next_beat(&self) -> Option<Duration> {
        self.calls.values().map(|call| call.next_beat).min()
    }

    /// Returns what the client is to hear by now.
    pub(super) fn beats(&mut self, now: Duration) -> Vec<Value> {
        let due = self.calls.iter_mut().filter(|(_, call)| call.next_beat <= now);
        due.map(|(id, call)| {
            call.next_beat = now + HEARTBEAT;
            json!({
                "tool_use_id": id,
                "tool_name": call.tool,
                "parent_tool_use_id": null,
                "elapsed_time_seconds": now.saturating_sub(call.since).as_secs(),
                "heartbeat": true,
            })
        })
        .collect()
    }

    /// The model begins another block.
    pub(super) fn begin_block(&mut self) {
        self.thought = 0;
    }

    /// The model thinks; returns what is told of that.
    pub(super) fn think(&mut self, text: &str) -> Option<Value> {
        let tokens = text.chars().count().div_ceil(CHARS_PER_TOKEN) as u64;
        self.thought += tokens;
        (tokens > 0).then(|| json!({"estimated_tokens": self.thought, "estimated_tokens_delta": tokens}))
    }

    /// An agent waits before it asks again.
    pub(super) fn retry(
        &mut self,
        agent: &AgentRef,
        (attempt, max_retries, delay): (u32, u32, Duration),
        failure: &Failure,
    ) -> Value {
        self.retrying.insert(agent.id.to_string());
        let mut fields = of_agent(agent);
        fields["subagent_retry"] = json!({
            "agent_id": agent.id.as_str(),
            "attempt": attempt,
            "max_retries": max_retries,
            "retry_delay_ms": delay.as_millis() as u64,
            "error_status": failure.status,
            "error_category": match failure.category() {
                it @ ("rate_limit" | "overloaded" | "authentication_failed" | "server_error") => it,
                _ => "unknown",
            },
        });
        fields
    }

    /// An agent goes on; returns what is told of that, where it had waited.
    pub(super) fn go_on(&mut self, agent: &AgentRef) -> Option<Value> {
        self.retrying.remove(agent.id.as_str()).then(|| of_agent(agent))
    }
}

fn of_agent(agent: &AgentRef) -> Value {
    let call = agent.parent.as_ref().map(|call| call.as_str());
    json!({
        "tool_use_id": call,
        "tool_name": "Agent",
        "parent_tool_use_id": call,
        "elapsed_time_seconds": 0,
        "subagent_type": agent.kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_hears_of_a_call_every_thirty_seconds_and_never_of_agents() {
        let at = Duration::from_secs;
        let mut progress = Progress::default();
        assert_eq!(progress.next_beat(), None);
        progress.begin("a", "Bash", at(5));
        progress.begin("b", "Agent", at(6));
        progress.begin("c", "mcp__s__slow", at(20));
        assert_eq!(progress.next_beat(), Some(at(35)));
        assert!(progress.beats(at(34)).is_empty());
        let told = |beats: Vec<Value>| -> Vec<String> {
            beats.iter().map(|it| format!("{} {}", it["tool_name"], it["elapsed_time_seconds"])).collect()
        };
        assert_eq!(told(progress.beats(at(35))), [r#""Bash" 30"#]);
        assert_eq!(progress.next_beat(), Some(at(50)));
        assert_eq!(told(progress.beats(at(70))), [r#""Bash" 65"#, r#""mcp__s__slow" 50"#]);
        progress.end("a");
        progress.end("c");
        assert_eq!(progress.next_beat(), None, "what has ended is not heard of");
    }

    #[test]
    fn thinking_is_counted_block_by_block() {
        let mut progress = Progress::default();
        let mut told = |text: &str| progress.think(text).map(|it| it.to_string());
        assert_eq!(told("").as_deref(), None);
        assert_eq!(
            told("twenty characters ..").as_deref(),
            Some(r#"{"estimated_tokens":5,"estimated_tokens_delta":5}"#)
        );
        assert_eq!(told("déjà").as_deref(), Some(r#"{"estimated_tokens":6,"estimated_tokens_delta":1}"#));
        progress.begin_block();
        assert_eq!(progress.think("x").unwrap()["estimated_tokens"], 1);
    }
}
