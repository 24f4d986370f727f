//! ListAgents: which agents there are to speak to.

use loci_core::tool::{CallEffects, ToolDescriptor, ToolFacts, ToolOutcome};
use serde_json::{Value, json};

use super::{AgentRow, NO_AGENTS};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

/// The ListAgents tool.
pub(crate) struct ListAgents {
    descriptor: ToolDescriptor,
}

impl Default for ListAgents {
    fn default() -> Self {
        let descriptor = ToolDescriptor {
            name: "ListAgents".to_owned(),
            aliases: &[],
            description: include_str!("list_agents.md").trim_end().to_owned(),
            // Models name these, which mean something elsewhere.
            input_schema: json!({
                "type": "object",
                "properties": {
                    "channel": {"type": "string", "description": "Not used here"},
                    "q": {"type": "string", "description": "Not used here"},
                },
                "additionalProperties": false,
            }),
            max_result_chars: Some(30_000),
            facts: ToolFacts { needs_conversation: true, is_deferrable: true, ..ToolFacts::default() },
        };
        Self { descriptor }
    }
}

impl Tool for ListAgents {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn run<'a>(&'a self, _call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let Some(agents) = host.agents() else { return ToolOutcome::refusal(NO_AGENTS) };
            let rows = agents.list();
            let text = match rows.is_empty() {
                true => "No agent has been sent out in this session.".to_owned(),
                false => rows.iter().map(agent_row_text).collect::<Vec<_>>().join("\n"),
            };
            let list: Vec<Value> = rows
                .iter()
                .map(|row| {
                    json!({
                        "id": row.id.as_str(),
                        "name": row.name,
                        "type": row.kind,
                        "description": row.description,
                        "status": row.status,
                    })
                })
                .collect();
            ToolOutcome::text(text, json!({"agents": list}))
        })
    }
}

fn agent_row_text(row: &AgentRow) -> String {
    let name = row.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{}{name}: {}, {}: {}", row.id, row.kind, row.status, row.description)
}
