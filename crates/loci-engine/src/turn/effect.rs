//! What the turn machine wants done.

use std::time::Duration;

use loci_context::{KeepRecent, Trigger};
use loci_core::ids::ToolUseId;
use loci_core::message::{Block, ToolUse};
use loci_core::stream::{Ended, Failure, Started, StreamEvent};
use loci_core::tool::ToolOutcome;
pub use loci_protocol::event::{Interruption, Outcome};

use super::{Objection, OutputLimit};

/// Something to be done. Effects are performed in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask those who have a say in it and record the prompt, then say [`super::Event::Begin`] or
    /// [`super::Event::PromptBlocked`].
    OpenPrompt,
    /// Append to the transcript; done before whatever follows.
    Record(Record),
    /// Ask the model with the transcript as it stands, or say [`super::Event::TooLong`] where it would not fit and
    /// may be compacted.
    Request(RequestPlan),
    /// Make the conversation shorter, then say [`super::Event::Compacted`].
    Compact(CompactionRequest),
    /// Ask for no edits of the conversation any more: the server refused them.
    StopEdits(Failure),
    /// Stop the request; its later events are ignored.
    CancelRequest,
    /// Let time pass, then say [`super::Event::WaitOver`].
    Wait(Duration),
    /// Look the calls up and check their input.
    Prepare(Vec<ToolUse>),
    /// Decide whether a call may run; this may ask the user.
    CheckPermission(ToolUseId),
    /// Run a call.
    Run(ToolUseId),
    /// Cancel every running call; each still finishes.
    CancelCalls,
    /// Let those who have a say in it see all results of a response, then say [`super::Event::BatchSeen`].
    ShowBatch,
    /// Ask those who have a say in it whether the turn may end, then say [`super::Event::MayEnd`].
    AskBeforeEnd {
        /// Whether the turn has gone on because of them already.
        has_gone_on: bool,
    },
    /// Tell the front ends.
    Tell(Notice),
    /// The turn is over.
    End(TurnEnd),
}

/// How to ask.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestPlan {
    /// The model.
    pub model: String,
    /// How much it may write.
    pub output: OutputLimit,
    /// Whether the answer is streamed.
    pub is_streaming: bool,
    /// Whether a conversation that is too long may be compacted first; once is enough for a request.
    pub may_compact: bool,
}

/// How to make a conversation shorter.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionRequest {
    /// Who wants it.
    pub trigger: Trigger,
    /// What is kept word for word.
    pub keep: KeepRecent,
    /// What the user wants to be kept above all.
    pub focus: Option<String>,
    /// What the server said when it refused the conversation for its length.
    pub refusal: Option<String>,
    /// The model that the conversation is to fit.
    pub model: String,
}

/// Something for the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A response, one entry per block; `ended` is absent when it was cut short.
    Response {
        /// Its head.
        started: Started,
        /// Its complete blocks.
        blocks: Vec<Block>,
        /// Its end.
        ended: Option<Ended>,
    },
    /// Text of a block that an interrupt cut short.
    PartialText(String),
    /// The answer to a call.
    ToolResult {
        /// Which.
        call: ToolUseId,
        /// What came of it.
        outcome: ToolOutcome,
    },
    /// Words to the model that no person wrote.
    Nudge(&'static str),
    /// The mark of a call that waits for another run.
    Deferred(ToolUse),
    /// What somebody who has a say in it had against the end of the turn.
    Objection(Objection),
    /// The request failed for good.
    ApiError(Failure),
    /// The response broke off after complete blocks, which were kept.
    Incomplete(Failure),
    /// The model refused.
    Refusal,
    /// The user stopped it.
    Interrupted(Interruption),
    /// The limit of round trips was reached.
    MaxTurns {
        /// The limit.
        limit: u32,
    },
}

/// News for the front ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// A request goes out.
    Requesting,
    /// The model says something.
    Stream(StreamEvent),
    /// A failed request will be repeated.
    Retry {
        /// Counted from one.
        attempt: u32,
        /// How many there may be.
        max_retries: u32,
        /// How long from now.
        delay: Duration,
        /// What failed.
        failure: Failure,
    },
    /// Another model takes over for this turn.
    Fallback {
        /// The model that failed.
        from: String,
        /// The one that takes over.
        to: String,
        /// What failed.
        failure: Failure,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// In one word.
    pub outcome: Outcome,
    /// Round trips to the model, the one that a limit forbade included.
    pub round_trips: u32,
    /// Why the model stopped last.
    pub stop_reason: Option<String>,
}
