//! What people are asked about calls.

use std::borrow::Cow;
use std::path::PathBuf;

use loci_core::ids::ToolUseId;
use loci_core::permission::Update;
use loci_core::tool::{CallEffects, Interaction, PathEffect};
use loci_core::user_question::{UserQuestion, parse_questions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::AgentRef;

/// A permission question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Its id, to answer by.
    pub id: String,
    /// The agent that asks; none for the main line.
    pub agent: Option<AgentRef>,
    /// The tool.
    pub tool: String,
    /// The MCP server whose tool it is.
    pub server: Option<ToolServer>,
    /// The call.
    pub call: ToolUseId,
    /// The arguments.
    pub input: Value,
    /// What a person is asked.
    pub kind: QuestionKind,
    /// Why it is asked.
    pub reason: String,
    /// The kind of that reason, in one word.
    pub reason_kind: Cow<'static, str>,
    /// The path that is in the way.
    pub blocked_path: Option<PathBuf>,
    /// Paths of the call that lead elsewhere than they say.
    pub links: Vec<PathEffect>,
    /// What would let it run from now on; nothing when it should be asked about every time.
    pub suggestions: Vec<Update>,
}

/// The MCP server of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolServer {
    /// What it is called.
    pub name: String,
    /// Who has brought it: `sdk` for the client, else where it was written down.
    pub source: Cow<'static, str>,
}

/// What a person is asked about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Whether it may run.
    Permission,
    /// These questions of the model, in order. A yes takes the call's input with the answers in it
    /// ([`loci_core::user_question::with_answers`], [`loci_core::user_question::with_response`]).
    Answers(Vec<UserQuestion>),
    /// Whether the plan in its input is good.
    PlanApproval,
}

impl QuestionKind {
    /// Says what a call needs of a person.
    pub fn of(input: &Value, effects: &CallEffects) -> Self {
        match effects.interaction {
            None | Some(Interaction::Confirmation) => Self::Permission,
            Some(Interaction::Answers) => Self::Answers(parse_questions(input).unwrap_or_default()),
            Some(Interaction::PlanApproval) => Self::PlanApproval,
        }
    }
}
