//! What the model is asked beside the conversation.

use serde::{Deserialize, Serialize};

/// What the model is asked beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideTask {
    /// Explain a call that somebody is asked about.
    ExplainCall {
        /// The tool.
        tool: String,
        /// What would run, as it is shown.
        call: String,
    },
    /// A question of the person.
    Question(String),
    /// A question behind others that were asked beside the conversation, which the model is told of.
    FollowUp {
        /// Those, the oldest first.
        earlier: Vec<SideExchange>,
        /// The question.
        question: String,
    },
    /// What the session is about, in a line or two, for somebody who was away.
    Recap,
    /// What the person may want to say next.
    Suggestion,
    /// A summary of all that was said from a prompt on.
    SummaryFrom {
        /// The prompt, or its beginning.
        prompt: String,
        /// What to pay attention to.
        focus: Option<String>,
    },
}

/// A question beside the conversation, and what the model said to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideExchange {
    /// What was asked.
    pub question: String,
    /// The answer, as Markdown.
    pub answer: String,
}
