//! What an attachment entry carries: context behind a prompt or a result.
//!
//! Whoever writes one names a variant, and whoever reads one matches on variants, so that a slip in a word is no reminder
//! lost. A kind that is not in the table is kept as its text ([`Attachment::Other`]) and written back byte for byte.
//!
//! Fields are read leniently, as all that others write, too: one that is missing or of another shape counts as empty.
//! What must stay true: a variant writes its `type` first and its fields in the order of the table, which is the order in
//! which other programs have come to know them.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::lenient::LenientValue;
use crate::raw::RawJson;

/// Declares the kinds: the `type` as it is written, the variant, its fields in the order in which they are written.
macro_rules! attachments {
    ($($(#[$doc:meta])* $name:literal $Kind:ident { $($(#[$field_doc:meta])* $field:ident: $Type:ty,)* })*) => {
        /// An attachment by its kind.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", rename_all_fields = "camelCase")]
        pub enum Attachment {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $Kind {
                    $($(#[$field_doc])* #[serde(default, deserialize_with = "lenient")] $field: $Type,)*
                },
            )*
            /// A kind that we do not know, or one as another session recorded it, with fields that we do not know.
            #[serde(untagged)]
            Other(OtherAttachment),
        }

        /// The kinds of attachment that we know.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AttachmentKind {
            $($(#[$doc])* $Kind,)*
        }

        impl AttachmentKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$Kind,)*];

            /// Returns the `type` as it is written.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Kind => $name,)*
                }
            }
        }

        impl Attachment {
            /// Returns the kind; none for what is not understood.
            pub fn kind(&self) -> Option<AttachmentKind> {
                match self {
                    $(Self::$Kind { .. } => Some(AttachmentKind::$Kind),)*
                    Self::Other(_) => None,
                }
            }
        }
    };
}

attachments! {
    /// Words that came while the model worked: of the user, of a task that ended, of another conversation.
    "queued_command" QueuedCommand {
        /// What was said: a text or blocks.
        prompt: Value,
        /// Who says it, where it is not the user.
        #[serde(skip_serializing_if = "Option::is_none")]
        command_mode: Option<String>,
    }
    /// A file that was read for the model.
    "file" File {
        /// Its path.
        filename: String,
        /// What Read had to say of it.
        content: Value,
        /// Its path as people are shown it.
        #[serde(skip_serializing_if = "Option::is_none")]
        display_path: Option<String>,
    }
    /// A directory that was listed for the model.
    "directory" Directory {
        /// Its path.
        path: String,
        /// The names, a line each.
        content: String,
        /// Its path as people are shown it.
        #[serde(skip_serializing_if = "Option::is_none")]
        display_path: Option<String>,
    }
    /// A type of agent that the user points at.
    "agent_mention" AgentMention {
        /// The type.
        agent_type: String,
    }
    /// An earlier session that the user points at.
    "session_mention" SessionMention {
        /// Its id.
        session_id: String,
        /// What was said in it.
        text: String,
    }
    /// A resource of an MCP server that was read for the model.
    "mcp_resource" McpResource {
        /// The server.
        server: String,
        /// The resource.
        uri: String,
        /// What it is called.
        name: String,
        /// What it says.
        text: String,
    }
    /// A prompt that looks like a command and is none.
    "unknown_command_fallback" UnknownCommand {
        /// What was typed, without the slash.
        command_name: String,
        /// Some of the commands that there are.
        available_command_names: Vec<String>,
        /// How many there are.
        available_command_count: u64,
    }
    /// The conversations that an agent can speak to by name.
    "agent_roster" AgentRoster {
        /// Their names.
        names: Vec<String>,
    }
    /// The user asks for deep thought.
    "ultrathink" Ultrathink {}
    /// A file that changed since the model read it.
    "edited_text_file" EditedTextFile {
        /// Its path.
        filename: String,
        /// The part that changed.
        snippet: String,
    }
    /// Instructions that a file met on the way brings with it.
    "nested_memory" NestedMemory {
        /// The file with the instructions.
        path: String,
        /// What it says.
        content: NestedMemoryContent,
        /// Its path as people are shown it.
        #[serde(skip_serializing_if = "Option::is_none")]
        display_path: Option<String>,
    }
    /// A plan is being made.
    "plan_mode" PlanMode {
        /// `full` or `sparse`.
        reminder_type: String,
        /// Whether an agent makes it.
        is_sub_agent: bool,
        /// Where the plan stands.
        plan_file_path: String,
        /// Whether something stands there.
        plan_exists: bool,
        /// False where nobody can be asked for leave; what is usual is not said.
        #[serde(skip_serializing_if = "Option::is_none")]
        can_exit: Option<bool>,
        /// How to plan, in the words of a client.
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    }
    /// Planning is over.
    "plan_mode_exit" PlanModeExit {
        /// Where the plan stands.
        plan_file_path: String,
        /// Whether something stands there.
        plan_exists: bool,
    }
    /// Something that was used before a compaction, to look at.
    "restored" Restored {
        /// What it is called.
        name: String,
        /// Its text.
        content: String,
    }
    /// Agents that came, changed or went.
    "agent_listing_delta" AgentListingDelta {
        /// Those that came or changed.
        added_types: Vec<String>,
        /// What is said of each.
        added_lines: Vec<String>,
        /// Those that went.
        removed_types: Vec<String>,
        /// Whether these are the agents of the beginning.
        is_initial: bool,
        /// A matter of other programs.
        show_concurrency_note: bool,
    }
    /// MCP servers that came with words on their tools.
    "mcp_instructions_delta" McpInstructionsDelta {
        /// The servers.
        added_names: Vec<String>,
        /// Their words.
        added_blocks: Vec<String>,
        /// Servers that went.
        removed_names: Vec<String>,
    }
    /// Another day.
    "date_change" DateChange {
        /// The date.
        new_date: String,
    }
    /// What a hook adds.
    "hook_additional_context" HookAdditionalContext {
        /// Its words.
        content: Vec<String>,
        /// The hook.
        hook_name: String,
        /// The call that it is about.
        #[serde(rename = "toolUseID")]
        tool_use_id: String,
        /// The event.
        hook_event: String,
    }
    /// What a hook objects to.
    "hook_blocking_error" HookBlockingError {
        /// The hook.
        hook_name: String,
        /// The call that it is about.
        #[serde(rename = "toolUseID")]
        tool_use_id: String,
        /// The event.
        hook_event: String,
        /// The objection.
        blocking_error: BlockingError,
    }
    /// A hook that failed.
    "hook_non_blocking_error" HookNonBlockingError {
        /// The hook.
        hook_name: String,
        /// The call that it is about.
        #[serde(rename = "toolUseID")]
        tool_use_id: String,
        /// The event.
        hook_event: String,
        /// What it complained about.
        stderr: String,
        /// What it printed.
        stdout: String,
        /// Its code.
        exit_code: i64,
        /// The command.
        command: String,
        /// How long it took.
        duration_ms: u64,
    }
    /// A hook that went well.
    "hook_success" HookSuccess {
        /// The hook.
        hook_name: String,
        /// The call that it is about.
        #[serde(rename = "toolUseID")]
        tool_use_id: String,
        /// The event.
        hook_event: String,
        /// What the model hears of it.
        content: String,
        /// What it printed.
        stdout: String,
        /// What it complained about.
        stderr: String,
        /// Its code.
        exit_code: i64,
        /// The command.
        command: String,
        /// How long it took.
        duration_ms: u64,
    }
    /// What a hook said of a result for the classifier of later calls. The model is never told.
    "hook_classifier_context" HookClassifierContext {
        /// Its words.
        content: String,
        /// The tool.
        tool_name: String,
        /// The call.
        #[serde(rename = "toolUseID")]
        tool_use_id: String,
        /// The event.
        hook_event: String,
    }
    /// A call that a hook put off to another run.
    "hook_deferred_tool" HookDeferredTool {
        /// The call.
        #[serde(rename = "toolUseID")]
        tool_use_id: String,
        /// The tool.
        tool_name: String,
        /// Its arguments.
        tool_input: Value,
        /// The event.
        hook_event: String,
    }
    /// The skills that the model was told of.
    "skill_listing" SkillListing {
        /// A line each.
        content: String,
        /// How many they are.
        skill_count: u64,
        /// Whether these are the first.
        is_initial: bool,
        /// Their names.
        names: Vec<String>,
        /// How it was sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        rendered: Option<String>,
        /// In whose name.
        #[serde(skip_serializing_if = "Option::is_none")]
        rendered_role: Option<String>,
    }
    /// The tools that the model can look for.
    "deferred_tools_delta" DeferredToolsDelta {
        /// Those it was not told of before.
        added_names: Vec<String>,
        /// Those that are gone.
        removed_names: Vec<String>,
        /// Those that it has found before.
        loaded_names: Vec<String>,
        /// How it was sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        rendered: Option<String>,
        /// In whose name.
        #[serde(skip_serializing_if = "Option::is_none")]
        rendered_role: Option<String>,
    }
    /// The output style that is in force.
    "output_style" OutputStyle {
        /// The style.
        style: String,
        /// How it was sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        rendered: Option<String>,
        /// In whose name.
        #[serde(skip_serializing_if = "Option::is_none")]
        rendered_role: Option<String>,
    }
    /// What a skill may do without asking.
    "command_permissions" CommandPermissions {
        /// Rules.
        allowed_tools: Vec<String>,
    }
    /// The turn ended at its limit of requests.
    "max_turns_reached" MaxTurnsReached {
        /// The limit.
        max_turns: u64,
        /// How many there would have been.
        turn_count: u64,
    }
    /// An answer of a given shape.
    "structured_output" StructuredOutput {
        /// The answer.
        data: Value,
    }
    /// The system prompt as it was sent.
    "prompt_snapshot" PromptSnapshot {
        /// Its blocks, a text each.
        system_prompt: Value,
    }
}

impl Attachment {
    /// Reads an attachment; whatever is not understood is kept as it is.
    pub fn parse(raw: &str) -> Self {
        let known = names_known_kind(raw).then(|| serde_json::from_str(raw).ok()).flatten();
        known.unwrap_or_else(|| Self::recorded(raw))
    }

    /// Keeps an attachment as it was recorded, so that it is written byte for byte whether we know its kind or not.
    pub fn recorded(raw: &str) -> Self {
        Self::Other(OtherAttachment(RawJson::from_text(raw)))
    }

    /// Returns it by its kind, where it is one that is kept as it was recorded.
    pub fn typed(&self) -> Cow<'_, Self> {
        match self {
            Self::Other(other) => Cow::Owned(Self::parse(other.as_str())),
            known => Cow::Borrowed(known),
        }
    }
}

/// Tells whether a text is an object of a kind in the table. Derived readers would take a list or a number for one, too.
fn names_known_kind(raw: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow, default)]
        name: LenientValue<'a>,
    }
    let kind =
        raw.trim_start().starts_with('{').then(|| serde_json::from_str::<Kind<'_>>(raw).ok()).flatten();
    kind.is_some_and(|kind| AttachmentKind::ALL.iter().any(|known| kind.name.text() == Some(known.name())))
}

/// An attachment as its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherAttachment(RawJson);

impl OtherAttachment {
    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// A text is kept by [`Attachment::parse`] alone: here all that is known is a value, which has lost its spelling.
impl<'de> Deserialize<'de> for OtherAttachment {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("an attachment that is not known"))
    }
}

/// The instructions of a nested file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NestedMemoryContent {
    /// The file.
    #[serde(default, deserialize_with = "lenient")]
    pub path: String,
    /// Whose they are.
    #[serde(default, deserialize_with = "lenient", rename = "type")]
    pub scope: String,
    /// What they say.
    #[serde(default, deserialize_with = "lenient")]
    pub content: String,
    /// Whether only a part of the file is there.
    #[serde(default, deserialize_with = "lenient")]
    pub content_differs_from_disk: bool,
    /// The files that they are for, where they are not for all.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// The file that imports it.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// What a hook objects to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockingError {
    /// Its words.
    #[serde(default, deserialize_with = "lenient")]
    pub blocking_error: String,
    /// The command.
    #[serde(default, deserialize_with = "lenient")]
    pub command: String,
}

/// Reads a field of any shape; another than the usual counts as empty.
fn lenient<'de, D: Deserializer<'de>, T: LenientField>(deserializer: D) -> Result<T, D::Error> {
    Value::deserialize(deserializer).map(T::from_any)
}

/// What a field is read as, whatever stands there.
trait LenientField {
    fn from_any(value: Value) -> Self;
}

impl LenientField for Value {
    fn from_any(value: Value) -> Self {
        value
    }
}

impl LenientField for String {
    fn from_any(value: Value) -> Self {
        if let Value::String(text) = value { text } else { Self::new() }
    }
}

impl LenientField for Option<String> {
    fn from_any(value: Value) -> Self {
        if let Value::String(text) = value { Some(text) } else { None }
    }
}

impl LenientField for Vec<String> {
    fn from_any(value: Value) -> Self {
        let Value::Array(items) = value else { return Self::new() };
        items.into_iter().filter_map(Option::<String>::from_any).collect()
    }
}

impl LenientField for bool {
    fn from_any(value: Value) -> Self {
        value == Value::Bool(true)
    }
}

impl LenientField for Option<bool> {
    fn from_any(value: Value) -> Self {
        value.as_bool()
    }
}

impl LenientField for u64 {
    fn from_any(value: Value) -> Self {
        value.as_u64().unwrap_or_default()
    }
}

impl LenientField for i64 {
    fn from_any(value: Value) -> Self {
        value.as_i64().unwrap_or_default()
    }
}

impl LenientField for NestedMemoryContent {
    fn from_any(value: Value) -> Self {
        serde_json::from_value(value).unwrap_or_default()
    }
}

impl LenientField for BlockingError {
    fn from_any(value: Value) -> Self {
        serde_json::from_value(value).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
