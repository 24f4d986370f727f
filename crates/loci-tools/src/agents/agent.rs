//! Agent: sends an agent out.

use std::sync::Arc;

use loci_core::agent::GENERAL_PURPOSE;
use loci_core::message::Block;
use loci_core::tool::{CallEffects, MainArgument, ToolDescriptor, ToolFacts, ToolOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AgentReply, AgentRequest, FinishedAgent, LaunchedAgent, NO_AGENTS};
use crate::bash::drop_background;
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace, spill_preview};

/// The most characters of an answer that are told; the rest is in a file.
const DEFAULT_OUTPUT_CHARS: usize = 32_000;
const MAX_OUTPUT_CHARS: usize = 160_000;

/// The Agent tool.
pub(crate) struct Agent {
    descriptor: ToolDescriptor,
}

/// Returns the Agent tool; `listing` says which types there are, a line each.
pub fn agent_tool(listing: &str) -> Arc<dyn Tool> {
    Arc::new(Agent::new(listing))
}

/// Returns the Agent tool of a session in which nothing runs in the background.
pub fn foreground_agent_tool(listing: &str) -> Arc<dyn Tool> {
    let mut agent = Agent::new(listing);
    drop_background(&mut agent.descriptor);
    agent.replace_choice(None);
    Arc::new(agent)
}

/// Returns the Agent tool of a session in which every agent works in the background: the model has no choice, and what it
/// says about that all the same is not minded.
pub fn background_agent_tool(listing: &str) -> Arc<dyn Tool> {
    let mut agent = Agent::new(listing);
    drop_background(&mut agent.descriptor);
    agent.replace_choice(Some(ALWAYS_IN_BACKGROUND));
    Arc::new(agent)
}

/// How the line of the description begins that speaks of the choice between foreground and background.
const CHOICE: &str = "- With `run_in_background`";

/// What stands in its place where there is none.
const ALWAYS_IN_BACKGROUND: &str = "- Agents work in the background: the call returns at once, and you are told when the \
    agent is done, with its answer. Go on with something else until then; do not wait for it, ask again and again, or say \
    what it found before it has answered.";

impl Agent {
    /// Has the description say something else, or nothing, about the choice between foreground and background.
    fn replace_choice(&mut self, line: Option<&str>) {
        let lines = self.descriptor.description.lines();
        let lines = lines.filter_map(|said| if said.starts_with(CHOICE) { line } else { Some(said) });
        self.descriptor.description = lines.collect::<Vec<_>>().join("\n");
    }

    pub(crate) fn new(listing: &str) -> Self {
        let mut description = include_str!("agent.md").trim_end().to_owned();
        if !listing.trim().is_empty() {
            description += &format!("\n\nThe types of agents, for `subagent_type`:\n{}", listing.trim_end());
        }
        let text = |description: &str| json!({"type": "string", "description": description});
        let descriptor = ToolDescriptor {
            name: "Agent".to_owned(),
            aliases: &["Task"],
            description,
            input_schema: json!({
                "type": "object",
                "properties": {
                    "description": text("What the agent is to do, in three to five words, for the user"),
                    "prompt": text("What the agent is to do, with all that it has to know"),
                    "subagent_type": text("The type of agent; general-purpose unless given"),
                    "model": text("The model it asks, such as sonnet, opus or haiku; usually left out"),
                    "effort": {
                        "type": "string",
                        "enum": ["low", "medium", "high", "xhigh", "max"],
                        "description": "How hard it thinks; only where the user or their instructions ask for it",
                    },
                    "run_in_background": {
                        "type": "boolean",
                        "description": "Return at once and be told when the agent is done",
                    },
                    "name": text("What to call it, to send it messages by"),
                    "isolation": {
                        "type": "string",
                        "enum": ["worktree"],
                        "description": "Work in a worktree of the repository that is its own",
                    },
                    "mode": text("The permission mode it works in, where that is stricter than the session's"),
                    "resume": text("The id of an agent that is to go on; SendMessage does the same"),
                    "max_turns": {"type": "integer", "minimum": 1, "description": "The most round trips to the model"},
                },
                "required": ["description", "prompt"],
                "additionalProperties": false,
            }),
            max_result_chars: None,
            facts: ToolFacts {
                needs_conversation: true,
                is_unbounded: true,
                main_argument: Some(MainArgument {
                    name: "subagent_type",
                    is_optional: false,
                    others: &[("description", "a task"), ("prompt", "a task")],
                }),
                ..ToolFacts::default()
            },
        };
        Self { descriptor }
    }
}

impl Tool for Agent {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// Sending one out does nothing: each of its calls is judged by itself.
    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        CallEffects::default()
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn validate(&self, input: &Value, host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        let refusal = |text: String| Err(Box::new(ToolOutcome::refusal(text)));
        let request = match AgentRequest::deserialize(input) {
            Ok(request) => request,
            Err(error) => return refusal(error.to_string()),
        };
        if request.prompt.trim().is_empty() {
            return refusal("`prompt` is empty. Say what the agent is to do.".to_owned());
        }
        let Some(agents) = host.agents() else { return refusal(NO_AGENTS.to_owned()) };
        agents.check(&request).or_else(refusal)
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let request = match AgentRequest::deserialize(&call.input) {
                Ok(request) => request,
                Err(error) => return ToolOutcome::invalid_input(error.to_string()),
            };
            let Some(agents) = host.agents() else { return ToolOutcome::refusal(NO_AGENTS) };
            match agents.run(request.clone(), &call).await {
                Ok(reply) => agent_outcome(&request, reply, &call, host),
                Err(why) => ToolOutcome::error(why),
            }
        })
    }
}

/// Returns what the model is told of an agent that it sent out.
pub fn agent_outcome(
    request: &AgentRequest,
    reply: AgentReply,
    call: &ToolCall,
    host: &dyn Host,
) -> ToolOutcome {
    match reply {
        AgentReply::Finished(agent) => finished(request, *agent, call, host),
        AgentReply::Launched(agent) => launched(request, &agent),
    }
}

fn finished(request: &AgentRequest, agent: FinishedAgent, call: &ToolCall, host: &dyn Host) -> ToolOutcome {
    let usage = format!(
        "<usage>subagent_tokens: {}\ntool_uses: {}\nduration_ms: {}</usage>",
        agent.total_tokens,
        agent.tool_uses,
        agent.duration.as_millis()
    );
    // One that is done and does not go on needs no id.
    let id = match agent.is_resumable || agent.failure.is_some() {
        true => format!("agentId: {} (SendMessage with this id lets it go on)", agent.id),
        false => String::new(),
    };
    let worktree = agent
        .worktree
        .as_ref()
        .map(|kept| format!("\nworktreePath: {}\nworktreeBranch: {}", kept.path.display(), kept.branch));
    let about = format!("{id}{}\n{usage}", worktree.unwrap_or_default());
    let about = about.trim_start().to_owned();
    let text = match &agent.failure {
        None => within_limit(agent.text, call, host),
        Some(why) if agent.text.is_empty() => {
            return ToolOutcome::error(format!("The agent failed: {why}\n{about}"));
        }
        Some(why) => format!(
            "{}\n\n[The agent did not come to its end: {why}. What stands above is what it had said.]",
            within_limit(agent.text, call, host)
        ),
    };
    let mut structured = json!({
        "status": "completed",
        "prompt": request.prompt,
        "agentId": agent.id.as_str(),
        "agentType": agent.kind,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": agent.model,
        "totalDurationMs": agent.duration.as_millis() as u64,
        "totalTokens": agent.total_tokens,
        "totalToolUseCount": agent.tool_uses,
        "usage": agent.usage,
        "toolStats": {
            "readCount": agent.stats.reads,
            "searchCount": agent.stats.searches,
            "bashCount": agent.stats.commands,
            "editFileCount": agent.stats.edits,
            "linesAdded": agent.stats.lines_added,
            "linesRemoved": agent.stats.lines_removed,
            "otherToolCount": agent.stats.others,
        },
    });
    if let Some(kept) = &agent.worktree {
        structured["worktreePath"] = json!(kept.path);
        structured["worktreeBranch"] = json!(kept.branch);
    }
    ToolOutcome::blocks(vec![Block::new_text(&text), Block::new_text(&about)], structured)
}

/// Moves an answer that is too long for the conversation to a file.
fn within_limit(text: String, call: &ToolCall, host: &dyn Host) -> String {
    let said = host.env().vars.get("TASK_MAX_OUTPUT_LENGTH").and_then(|chars| chars.trim().parse().ok());
    let limit = said.filter(|chars| *chars > 0).unwrap_or(DEFAULT_OUTPUT_CHARS).min(MAX_OUTPUT_CHARS);
    if text.len() <= limit || text.chars().count() <= limit {
        return text;
    }
    let saved = host.spill_path(&call.id).and_then(|path| std::fs::write(&path, &text).map(|()| path));
    let total = text.len() as u64;
    spill_preview(&text, total, saved.map(|path| (path, total)))
}

fn launched(request: &AgentRequest, agent: &LaunchedAgent) -> ToolOutcome {
    let text = launch_text(agent);
    let mut structured = json!({
        "isAsync": true,
        "status": "async_launched",
        "agentId": agent.id.as_str(),
        "description": request.description,
        "resolvedModel": agent.model,
        "prompt": request.prompt,
        "outputFile": agent.output,
        "canReadOutputFile": true,
    });
    if agent.is_moved {
        structured["backgroundedByUser"] = Value::Bool(true);
    }
    if let Some(kind) = &request.subagent_type {
        structured["agentType"] = json!(kind);
    }
    ToolOutcome::blocks(vec![Block::new_text(&text)], structured)
}

/// Tells the model of an agent that works in the background.
pub(super) fn launch_text(agent: &LaunchedAgent) -> String {
    let first = match (agent.is_moved, agent.is_late) {
        (true, _) => "The user moved the agent to the background, where it goes on.",
        (false, true) => "The agent takes long, so it goes on in the background.",
        (false, false) => "Async agent launched successfully.",
    };
    format!(
        "{first}\nagentId: {} (for SendMessage and TaskStop; nothing the user needs to know)\nThe agent works in the \
         background. You are told when it is done; until then go on with something else, and do not do its work \
         yourself.\noutput_file: {}\nThe file has what it does as it does it; look there only if the user asks how it is \
         getting on.",
        agent.id,
        agent.output.display()
    )
}

/// Returns the type that a request names.
pub fn requested_type(request: &AgentRequest) -> &str {
    request.subagent_type.as_deref().filter(|kind| !kind.trim().is_empty()).unwrap_or(GENERAL_PURPOSE)
}
