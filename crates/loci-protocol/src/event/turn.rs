//! How a turn begins and ends, and what is said in it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_core::app_state::Denial;
use loci_core::ids::{EntryId, RequestId, SessionId};
use loci_core::message::ToolUse;
use loci_core::permission::Mode;
use loci_core::plugin::PluginList;
use loci_core::serde_form::{millis, opt_millis};
use loci_core::stream::Failure;
use loci_core::usage::{ModelUsage, Usage};
use loci_core::window::Fullness;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mcp::{McpServerError, McpServerState};
use crate::slash_command::CommandRegistry;

/// How things stand when a turn begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnStart {
    /// The session.
    pub session: SessionId,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The model that will be asked.
    pub model: String,
    /// What may run.
    pub mode: Mode,
    /// The tools on offer.
    pub tools: Vec<String>,
    /// The agents that can be sent out.
    pub agents: Vec<String>,
    /// The MCP servers, and how they are doing.
    pub mcp_servers: Vec<McpServerState>,
    /// What is wrong with how they are configured.
    pub mcp_errors: Vec<McpServerError>,
    /// The plugins, and what is wrong with them.
    pub plugins: Arc<PluginList>,
    /// The slash commands.
    pub commands: Arc<CommandRegistry>,
    /// Where the credentials come from.
    pub api_key_source: String,
    /// Where memories lie, if any are kept.
    pub memory_dir: Option<PathBuf>,
    /// The skills.
    pub skills: Vec<String>,
    /// The output style.
    pub output_style: String,
    /// Directories that it works in besides.
    pub dirs: Vec<PathBuf>,
    /// The effort that is asked for, where the model takes one.
    pub effort: Option<String>,
    /// Beta features that were asked for by name.
    pub betas: Vec<String>,
    /// Whether it is the turn of a command that makes the conversation shorter.
    pub is_compaction: bool,
}

/// One complete block of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantBlock {
    /// The entry it becomes in the transcript.
    pub entry: EntryId,
    /// The message object with this block as its content.
    pub message: Value,
    /// The request it answers.
    pub request: Option<RequestId>,
    /// The category of the failure, for messages that report one.
    pub error: Option<Cow<'static, str>>,
    /// Whether an interrupt cut it short.
    pub is_aborted: bool,
}

/// Something said in the user's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Its transcript entry.
    pub entry: EntryId,
    /// The message object.
    pub message: Value,
    /// A tool's structured output.
    pub tool_use_result: Option<Value>,
    /// Whether nobody said it: a summary, or something that loci tells the model.
    pub is_synthetic: bool,
    /// When.
    pub timestamp: String,
}

/// How a turn went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnReport {
    /// How it ended.
    pub outcome: Outcome,
    /// What it began with, where that was no prompt of a person: `task-notification`.
    pub origin: Option<Cow<'static, str>>,
    /// The text of the last assistant message.
    pub text: String,
    /// What a hook wants shown in its place; the transcript and the model keep the text.
    pub shown_text: Option<String>,
    /// Why the model stopped last.
    pub stop_reason: Option<String>,
    /// Round trips to the model.
    pub round_trips: u32,
    /// Tokens of this turn.
    pub usage: Usage,
    /// Cost of the session so far, in US dollars.
    pub total_cost_usd: f64,
    /// Usage of the session so far, by model.
    pub by_model: BTreeMap<String, ModelUsage>,
    /// Calls that were denied in this turn.
    pub denials: Vec<Denial>,
    /// From prompt to end.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// Time spent waiting for the API.
    #[serde(rename = "api_duration_ms", with = "millis")]
    pub api_duration: Duration,
    /// From prompt to the first event of the first response.
    #[serde(rename = "first_event_after_ms", with = "opt_millis", default)]
    pub first_event_after: Option<Duration>,
    /// From prompt to the first complete block of an answer.
    #[serde(rename = "first_content_after_ms", with = "opt_millis", default)]
    pub first_content_after: Option<Duration>,
    /// From the process's start to the first request.
    #[serde(rename = "first_request_after_ms", with = "opt_millis", default)]
    pub first_request_after: Option<Duration>,
    /// How full the context is.
    pub context: Fullness,
    /// The session.
    pub session: SessionId,
    /// Where it was saved, unless it is not kept.
    pub transcript: Option<PathBuf>,
    /// Whether all of it is on disk, where it is to be kept; what is not waits in memory.
    pub is_saved: bool,
}

/// How a turn ended, in one word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer.
    Completed,
    /// The model refused.
    Refused,
    /// The prompt was blocked, and why.
    Blocked(String),
    /// Somebody who has a say in it wanted it to end, and why.
    Halted(String),
    /// A call was put off, and waits in the transcript for another run.
    Deferred(ToolUse),
    /// A call that was put off cannot be taken up: its tool is not there.
    DeferredUnavailable(ToolUse),
    /// A command that needs no model failed, as the text says.
    CommandFailed,
    /// The API failed for good.
    ApiError(Failure),
    /// At the limit of round trips.
    MaxTurns(u32),
    /// At the spending limit.
    MaxBudget(f64),
    /// With an answer of the shape that was asked for.
    Structured(Value),
    /// Without one, after so many attempts.
    MaxStructuredAttempts(u32),
    /// By the user.
    Interrupted(Interruption),
}

/// What was going on when the user stopped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// The model was speaking, or about to.
    Streaming,
    /// Calls were running.
    Tools,
}
