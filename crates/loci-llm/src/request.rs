//! What is asked of a model, in the engine's words: no protocol, no provider.

use std::sync::Arc;

use loci_core::message::Message;
use loci_core::raw::RawJson;
use loci_core::stream::{Failure, FailureKind};
use loci_stdx::Env;
use serde_json::{Map, Value};

/// One request to a model. Build it from [`Request::new`] and set what differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The model's id, aliases resolved; a `[1m]` at its end asks for the large window and is not sent.
    pub model: String,
    /// The most the model may write.
    pub max_tokens: u64,
    /// The system prompt.
    pub system: Vec<SystemBlock>,
    /// The tools the model may call; shared, because they rarely change between requests.
    pub tools: Arc<[ToolSpec]>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// How the model is asked to think.
    pub thinking: Thinking,
    /// How its thinking is shown, where somebody says so.
    pub thinking_display: Option<String>,
    /// The effort level (`low` to `max`), for models that take one.
    pub effort: Option<String>,
    /// Tokens that the model is told it may spend on the task.
    pub task_budget: Option<u64>,
    /// Old results of tools that the server is to clear before the model reads the conversation, where it can.
    pub clear_results: Option<ClearResults>,
    /// Whether the server may be asked to edit the conversation at all; some refuse the field.
    pub edits_context: bool,
    /// Beta features the caller wants beyond those the fields above imply.
    pub betas: Vec<String>,
    /// `metadata.user_id`: a string that itself holds JSON.
    pub user_id: Option<String>,
    /// The session, for gateways that attribute usage.
    pub session_id: Option<String>,
    /// The subagent that asks, for gateways that attribute usage.
    pub agent_id: Option<String>,
    /// The subagent that sent that one out, if one did.
    pub parent_agent_id: Option<String>,
    /// Our own id for this attempt, for matching logs of both sides.
    pub client_request_id: Option<String>,
    /// Fields merged over the body (`CLAUDE_CODE_EXTRA_BODY`); `messages` among them is ignored.
    pub extra_body: Option<Map<String, Value>>,
    /// Whether each server event is also passed on unchanged.
    pub wants_wire_events: bool,
    /// Whether the answer comes as a stream, as it should unless streams fail.
    pub is_streaming: bool,
}

impl Request {
    /// Makes a streaming request with everything optional left out.
    pub fn new(model: impl Into<String>, max_tokens: u64, messages: Vec<Message>) -> Self {
        Self {
            model: model.into(),
            max_tokens,
            system: Vec::new(),
            tools: Arc::from([]),
            messages,
            thinking: Thinking::Unset,
            thinking_display: None,
            effort: None,
            task_budget: None,
            clear_results: None,
            edits_context: true,
            betas: Vec::new(),
            user_id: None,
            session_id: None,
            agent_id: None,
            parent_agent_id: None,
            client_request_id: None,
            extra_body: None,
            wants_wire_events: false,
            is_streaming: true,
        }
    }

    /// Returns the model's id as the provider of this name knows it.
    pub(crate) fn model_in(&self, provider: &str) -> &str {
        let model = self.model.trim();
        model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model)
    }

    /// Returns the model's id as it is sent, and whether the large window was asked for.
    pub(crate) fn model_and_window(&self) -> (&str, bool) {
        match self.model.trim().strip_suffix("[1m]") {
            Some(id) => (id.trim_end(), true),
            None => (self.model.trim(), false),
        }
    }
}

/// One block of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemBlock {
    /// The text.
    pub text: String,
    /// Whether the prompt cache may end here.
    pub is_cached: bool,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// The tool's name.
    pub name: String,
    /// The whole wire object (`name`, `description`, `input_schema`), serialised once.
    pub json: RawJson,
    /// Whether results may refer to it, or it makes such results.
    pub uses_references: bool,
}

/// Which results of tools a server clears. What it clears it replaces by a word of its own; call and result stay a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearResults {
    /// Only when the request has more tokens than this.
    pub above_tokens: u64,
    /// So many of the newest calls keep their results.
    pub keep: usize,
    /// Only when that frees so many tokens.
    pub at_least: u64,
    /// Results of these tools are kept whatever their age.
    pub except: Arc<[String]>,
}

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// The model decides how much.
    Adaptive,
    /// Up to so many tokens.
    Budget(u64),
    /// Not at all, said aloud.
    Disabled,
    /// Nothing is said; for models that do not know the field.
    Unset,
}

impl Thinking {
    /// Returns true when the model may think.
    pub fn is_on(self) -> bool {
        match self {
            Self::Adaptive | Self::Budget(_) => true,
            Self::Disabled | Self::Unset => false,
        }
    }
}

/// Reads `CLAUDE_CODE_EXTRA_BODY`, a JSON object, for [`Request::extra_body`].
pub fn extra_body_from_env(env: &Env) -> Result<Option<Map<String, Value>>, Failure> {
    const NAME: &str = "CLAUDE_CODE_EXTRA_BODY";
    let Some(text) = env.vars.non_empty(NAME) else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| {
        Failure::new(FailureKind::InvalidRequest, format!("`{NAME}` is not a JSON object: {error}"))
            .with_hint(format!("Set {NAME} to an object such as {{\"top_k\": 5}}, or unset it."))
    })
}
