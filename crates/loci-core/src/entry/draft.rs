//! Entries in the making: what the engine wants recorded, before it has an id, a time and a place.
//!
//! Key order follows the files other programs write. Listing tools look for raw text such as
//! `{"type":"tag"` or `"customTitle":"…"`, so metadata begins with `type` and nothing has spaces.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Attachment, BadEntry, Entry};
use crate::cost_state::COST_STATE;
use crate::ids::{AgentId, EntryId, PromptId, RequestId, SessionId, ToolUseId};

/// The fields every chain entry ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The session's id.
    pub session_id: SessionId,
    /// The real path of the working directory.
    pub cwd: String,
    /// The version of the format's reference that we write like.
    pub version: String,
    /// The branch; `HEAD` outside a repository.
    pub git_branch: String,
    /// `sdk-cli` for headless runs, `cli` for the terminal, or what an SDK says of itself.
    pub entrypoint: String,
    /// The session's name of three words, once a plan has made one.
    pub slug: Option<String>,
    /// The agent whose conversation it is; none for the main line. An agent's entries are a sidechain.
    pub agent: Option<AgentId>,
    /// The type of that agent, which its answers name.
    pub agent_type: Option<String>,
}

/// A chain entry in the making.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    body: DraftBody,
}

#[derive(Debug, Clone, PartialEq)]
enum DraftBody {
    Prompt {
        prompt: PromptId,
        content: Value,
        mode: String,
        origin: Option<&'static str>,
        source: &'static str,
    },
    Meta {
        prompt: Option<PromptId>,
        content: Value,
        origin: Option<&'static str>,
        call: Option<ToolUseId>,
    },
    Marker {
        prompt: PromptId,
        content: Value,
    },
    ToolResult {
        prompt: PromptId,
        block: Value,
        structured: Value,
        source: EntryId,
    },
    Assistant {
        message: Value,
        request: Option<RequestId>,
    },
    Synthetic {
        message: Value,
        error: Option<ApiErrorFields>,
    },
    Attachment(Attachment),
    System(Map<String, Value>),
    Boundary {
        after: Option<EntryId>,
        metadata: Value,
    },
    Summary {
        prompt: PromptId,
        text: String,
    },
}

impl DraftBody {
    /// Returns the prompt that it belongs to, where the format names one.
    fn prompt(&self) -> Option<&PromptId> {
        match self {
            Self::Prompt { prompt, .. }
            | Self::Marker { prompt, .. }
            | Self::ToolResult { prompt, .. }
            | Self::Summary { prompt, .. } => Some(prompt),
            Self::Meta { prompt, .. } => prompt.as_ref(),
            Self::Assistant { .. }
            | Self::Synthetic { .. }
            | Self::Attachment(_)
            | Self::System(_)
            | Self::Boundary { .. } => None,
        }
    }
}

/// What a stored API failure says besides its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiErrorFields {
    /// The category that headless clients know.
    pub category: String,
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
}

impl Draft {
    /// A prompt a person (or an SDK) submitted.
    pub fn prompt(prompt: PromptId, content: Value, mode: &str, source: &'static str) -> Self {
        Self { body: DraftBody::Prompt { prompt, content, mode: mode.to_owned(), origin: None, source } }
    }

    /// News of background work that begins a turn by itself.
    pub fn notification_prompt(prompt: PromptId, content: Value, mode: &str) -> Self {
        let origin = Some("task-notification");
        Self { body: DraftBody::Prompt { prompt, content, mode: mode.to_owned(), origin, source: "sdk" } }
    }

    /// Text for the model that people are not shown.
    pub fn meta(prompt: Option<PromptId>, content: Value) -> Self {
        Self { body: DraftBody::Meta { prompt, content, origin: None, call: None } }
    }

    /// News of background tasks for the model, which people are not shown.
    pub fn task_notification(prompt: PromptId, content: Value) -> Self {
        let origin = Some("task-notification");
        Self { body: DraftBody::Meta { prompt: Some(prompt), content, origin, call: None } }
    }

    /// The text of a skill that a call has used, for the model.
    pub fn skill_text(prompt: PromptId, content: Value, call: ToolUseId) -> Self {
        Self { body: DraftBody::Meta { prompt: Some(prompt), content, origin: None, call: Some(call) } }
    }

    /// Words in the user's name that the program wrote and people see, such as the mark of an interrupt.
    pub fn marker(prompt: PromptId, content: Value) -> Self {
        Self { body: DraftBody::Marker { prompt, content } }
    }

    /// The answer to a tool call; `source` is the entry that holds the call, and becomes the parent.
    pub fn tool_result(prompt: PromptId, block: Value, structured: Value, source: EntryId) -> Self {
        Self { body: DraftBody::ToolResult { prompt, block, structured, source } }
    }

    /// One block of a response; `message` is the whole message object with that block as its content.
    pub fn assistant(message: Value, request: Option<RequestId>) -> Self {
        Self { body: DraftBody::Assistant { message, request } }
    }

    /// An assistant message that no model wrote: filler, or what was said before an interrupt.
    pub fn synthetic(id: &str, text: &str) -> Self {
        Self { body: DraftBody::Synthetic { message: synthetic_message(id, text), error: None } }
    }

    /// A failure of the API, shown as the assistant's words and never sent.
    pub fn api_error(id: &str, text: &str, error: ApiErrorFields) -> Self {
        Self { body: DraftBody::Synthetic { message: synthetic_message(id, text), error: Some(error) } }
    }

    /// Context behind a prompt or a tool result.
    pub fn attachment(attachment: Attachment) -> Self {
        Self { body: DraftBody::Attachment(attachment) }
    }

    /// A note of the program.
    pub fn system(fields: Map<String, Value>) -> Self {
        Self { body: DraftBody::System(fields) }
    }

    /// The mark of a compaction: what is sent begins here. `after` is the last entry before it.
    pub fn boundary(after: Option<&EntryId>, metadata: Value) -> Self {
        Self { body: DraftBody::Boundary { after: after.cloned(), metadata } }
    }

    /// The summary behind a boundary.
    pub fn summary(prompt: PromptId, text: &str) -> Self {
        Self { body: DraftBody::Summary { prompt, text: text.to_owned() } }
    }

    /// Gives the draft its place, id and time, and writes its line.
    pub fn seal(
        &self,
        stamp: &Stamp,
        uuid: &EntryId,
        parent: Option<&EntryId>,
        timestamp: &str,
    ) -> Result<Entry, BadEntry> {
        let mut line = Map::new();
        let mut put = |key: &str, value: Value| {
            line.insert(key.to_owned(), value);
        };
        put("parentUuid", parent.map_or(Value::Null, |id| Value::from(id.as_str())));
        if let DraftBody::Boundary { after: Some(after), .. } = &self.body {
            put("logicalParentUuid", Value::from(after.as_str()));
        }
        put("isSidechain", Value::Bool(stamp.agent.is_some()));
        if let Some(prompt) = self.body.prompt() {
            put("promptId", Value::from(prompt.as_str()));
        }
        if let Some(agent) = &stamp.agent {
            put("agentId", Value::from(agent.as_str()));
        }
        let identity = [("uuid", Value::from(uuid.as_str())), ("timestamp", Value::from(timestamp))];
        self.put_body(&mut put, stamp, identity);
        put("userType", Value::from("external"));
        put("entrypoint", Value::from(stamp.entrypoint.as_str()));
        put("cwd", Value::from(stamp.cwd.as_str()));
        put("sessionId", Value::from(stamp.session_id.as_str()));
        put("version", Value::from(stamp.version.as_str()));
        put("gitBranch", Value::from(stamp.git_branch.as_str()));
        if let Some(slug) = &stamp.slug {
            put("slug", Value::from(slug.as_str()));
        }
        let attachment = if let DraftBody::Attachment(it) = &self.body { Some(it) } else { None };
        // Nothing in it can fail to be written; no line at all is no entry.
        let line = serde_json::to_string(&Line { fields: &line, attachment });
        Entry::parse(line.unwrap_or_default())
    }

    /// Puts what stands in the line of this kind of entry, in its order; `identity` is its id and its time.
    fn put_body(&self, put: &mut impl FnMut(&str, Value), stamp: &Stamp, identity: [(&str, Value); 2]) {
        match &self.body {
            DraftBody::Prompt { content, mode, origin, source, .. } => {
                put("type", Value::from("user"));
                put("message", json!({"role": "user", "content": content}));
                identity.into_iter().for_each(|(key, value)| put(key, value));
                put("permissionMode", Value::from(mode.as_str()));
                if let Some(origin) = origin {
                    put("origin", json!({"kind": origin}));
                }
                put("promptSource", Value::from(*source));
            }
            DraftBody::Meta { content, origin, call, .. } => {
                put("type", Value::from("user"));
                put("message", json!({"role": "user", "content": content}));
                put("isMeta", Value::Bool(true));
                if let Some(origin) = origin {
                    put("origin", json!({"kind": origin}));
                }
                if let Some(call) = call {
                    put("sourceToolUseID", Value::from(call.as_str()));
                }
                identity.into_iter().for_each(|(key, value)| put(key, value));
            }
            DraftBody::Marker { content, .. } => {
                put("type", Value::from("user"));
                put("message", json!({"role": "user", "content": content}));
                identity.into_iter().for_each(|(key, value)| put(key, value));
            }
            DraftBody::ToolResult { block, structured, source, .. } => {
                put("type", Value::from("user"));
                put("message", json!({"role": "user", "content": [block]}));
                identity.into_iter().for_each(|(key, value)| put(key, value));
                // An agent's file has what was said, and no more.
                if stamp.agent.is_none() {
                    put("toolUseResult", structured.clone());
                }
                put("sourceToolAssistantUUID", Value::from(source.as_str()));
            }
            DraftBody::Assistant { message, request } => {
                put("message", message.clone());
                if let Some(request) = request {
                    put("requestId", Value::from(request.as_str()));
                }
                if let Some(kind) = &stamp.agent_type {
                    put("attributionAgent", Value::from(kind.as_str()));
                }
                put("type", Value::from("assistant"));
                identity.into_iter().for_each(|(key, value)| put(key, value));
            }
            DraftBody::Synthetic { message, error } => {
                put("type", Value::from("assistant"));
                identity.into_iter().for_each(|(key, value)| put(key, value));
                put("message", message.clone());
                if let Some(error) = error {
                    put("error", Value::from(error.category.as_str()));
                }
                put("isApiErrorMessage", Value::Bool(error.is_some()));
                if let Some(status) = error.as_ref().and_then(|error| error.status) {
                    put("apiErrorStatus", Value::from(status));
                }
            }
            DraftBody::Attachment(_) => {
                // What is there may be long: it is written from where it is.
                put(ATTACHMENT, Value::Null);
                put("type", Value::from("attachment"));
                identity.into_iter().for_each(|(key, value)| put(key, value));
            }
            DraftBody::Boundary { metadata, .. } => {
                put("type", Value::from("system"));
                put("subtype", Value::from("compact_boundary"));
                put("content", Value::from("Conversation compacted"));
                put("isMeta", Value::Bool(false));
                identity.into_iter().rev().for_each(|(key, value)| put(key, value));
                put("level", Value::from("info"));
                put("compactMetadata", metadata.clone());
            }
            DraftBody::Summary { text, .. } => {
                put("type", Value::from("user"));
                put("message", json!({"role": "user", "content": text}));
                put("isVisibleInTranscriptOnly", Value::Bool(true));
                put("isCompactSummary", Value::Bool(true));
                identity.into_iter().for_each(|(key, value)| put(key, value));
            }
            DraftBody::System(fields) => {
                put("type", Value::from("system"));
                fields.iter().for_each(|(key, value)| put(key, value.clone()));
                identity.into_iter().for_each(|(key, value)| put(key, value));
            }
        }
    }

    /// Returns the entry a tool result hangs under, whatever was written last.
    pub fn fixed_parent(&self) -> Option<&EntryId> {
        match &self.body {
            DraftBody::ToolResult { source, .. } => Some(source),
            DraftBody::Prompt { .. }
            | DraftBody::Meta { .. }
            | DraftBody::Marker { .. }
            | DraftBody::Assistant { .. }
            | DraftBody::Synthetic { .. }
            | DraftBody::Attachment(_)
            | DraftBody::System(_)
            | DraftBody::Boundary { .. }
            | DraftBody::Summary { .. } => None,
        }
    }
}

const ATTACHMENT: &str = "attachment";

/// The fields of a line, one of which may lie elsewhere.
struct Line<'a> {
    fields: &'a Map<String, Value>,
    attachment: Option<&'a Attachment>,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(Some(self.fields.len()))?;
        for (key, value) in self.fields {
            match self.attachment {
                Some(attachment) if key == ATTACHMENT => line.serialize_entry(key, attachment)?,
                _ => line.serialize_entry(key, value)?,
            }
        }
        line.end()
    }
}

/// Returns a message of the assistant that no model wrote.
pub fn synthetic_message(id: &str, text: &str) -> Value {
    json!({
        "id": id,
        "container": null,
        "model": "<synthetic>",
        "role": "assistant",
        "stop_details": null,
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "type": "message",
        "usage": crate::usage::Usage::default().to_full_value(),
        "content": [{"type": "text", "text": text}],
        "context_management": null,
    })
}

/// The type of the line that names the agent which a session runs as.
pub const AGENT_SETTING: &str = "agent-setting";

/// The type of the line that says what goal a session works towards; it is our own.
pub const GOAL_STATE: &str = "loci-goal";

/// Metadata lines: no place in the tree, `type` first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metadata {
    /// A prompt entered the queue.
    Enqueue {
        /// What was asked.
        content: String,
    },
    /// A prompt left the queue and its turn begins.
    Dequeue,
    /// The leaf pointer: where the conversation stands.
    LastPrompt {
        /// The prompt, one line, cut at about 200 characters.
        prompt: Option<String>,
        /// The last entry of the chain.
        leaf: EntryId,
    },
    /// Results are sent as something else from here on.
    ContentReplacement {
        /// The call of each, and what is sent.
        replacements: Vec<(ToolUseId, String)>,
        /// The entry it comes behind.
        after: Option<EntryId>,
        /// About how many tokens that frees.
        freed_tokens: u64,
    },
    /// A stretch of the conversation is sent as its summary from here on.
    ContextCollapse {
        /// The fold's id.
        id: EntryId,
        /// The first entry of the stretch.
        first: EntryId,
        /// The last.
        last: EntryId,
        /// What stands for it.
        summary: String,
        /// The most tokens of the user's words beside it.
        said_tokens: u64,
        /// The entry it comes behind.
        after: Option<EntryId>,
        /// About how many tokens that frees.
        freed_tokens: u64,
    },
    /// What the session has used so far ([`CostState`](crate::cost_state::CostState)).
    CostState {
        /// Its fields.
        fields: Map<String, Value>,
    },
    /// The worktree that the session works in, or nothing when it has left it.
    WorktreeState {
        /// What is known of it.
        worktree: Value,
    },
    /// The agent that the main conversation runs as.
    AgentSetting {
        /// Its name.
        agent: String,
    },
    /// How input is read; the format has one value.
    Mode,
    /// The title a model made.
    GeneratedTitle {
        /// The title.
        title: String,
    },
    /// The title the user chose.
    CustomTitle {
        /// The title.
        title: String,
    },
    /// The goal that the session works towards; none takes it away.
    Goal {
        /// What is to hold.
        condition: Option<String>,
    },
    /// A tag; an empty one removes it.
    Tag {
        /// The tag.
        tag: String,
    },
}

impl Metadata {
    /// Writes the line.
    pub fn seal(&self, session: &SessionId, timestamp: &str) -> Result<Entry, BadEntry> {
        let session = session.as_str();
        let value = match self {
            Self::Enqueue { content } => {
                json!({"type": "queue-operation", "operation": "enqueue", "timestamp": timestamp, "sessionId": session, "content": content})
            }
            Self::Dequeue => {
                json!({"type": "queue-operation", "operation": "dequeue", "timestamp": timestamp, "sessionId": session})
            }
            Self::LastPrompt { prompt: Some(prompt), leaf } => {
                json!({"type": "last-prompt", "lastPrompt": prompt, "leafUuid": leaf.as_str(), "sessionId": session})
            }
            Self::LastPrompt { prompt: None, leaf } => {
                json!({"type": "last-prompt", "leafUuid": leaf.as_str(), "sessionId": session})
            }
            Self::ContentReplacement { replacements, after, freed_tokens } => {
                let replacements: Vec<Value> = replacements
                    .iter()
                    .map(|(call, content)| json!({"toolUseId": call.as_str(), "content": content}))
                    .collect();
                let after = after.as_ref().map(EntryId::as_str);
                json!({"type": "content-replacement", "sessionId": session, "replacements": replacements, "afterUuid": after, "freedTokens": freed_tokens})
            }
            Self::ContextCollapse { id, first, last, summary, said_tokens, after, freed_tokens } => {
                let after = after.as_ref().map(EntryId::as_str);
                json!({"type": "context-collapse", "sessionId": session, "collapseId": id.as_str(), "firstUuid": first.as_str(), "lastUuid": last.as_str(), "summary": summary, "saidTokens": said_tokens, "afterUuid": after, "freedTokens": freed_tokens})
            }
            Self::CostState { fields } => {
                let mut line = json!({"type": COST_STATE, "sessionId": session, "timestamp": timestamp});
                if let Value::Object(line) = &mut line {
                    line.extend(fields.clone());
                }
                line
            }
            Self::Mode => json!({"type": "mode", "mode": "normal", "sessionId": session}),
            Self::WorktreeState { worktree } => {
                json!({"type": "worktree-state", "worktreeSession": worktree, "sessionId": session})
            }
            Self::AgentSetting { agent } => {
                json!({"type": AGENT_SETTING, "agentSetting": agent, "sessionId": session})
            }
            Self::GeneratedTitle { title } => {
                json!({"type": "ai-title", "aiTitle": title, "sessionId": session})
            }
            Self::CustomTitle { title } => {
                json!({"type": "custom-title", "customTitle": title, "sessionId": session})
            }
            Self::Goal { condition } => {
                json!({"type": GOAL_STATE, "condition": condition, "sessionId": session})
            }
            Self::Tag { tag } => json!({"type": "tag", "tag": tag, "sessionId": session}),
        };
        Entry::parse(value.to_string())
    }
}
