//! What the turn machine hears.

use loci_core::entry::Attachment;
use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::stream::{Ended, Failure, StreamEvent};
use loci_core::tool::ToolOutcome;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// There is a prompt; it is recorded when those who have a say in it let it pass.
    Prompt,
    /// The prompt is recorded; the turn may begin.
    Begin,
    /// Somebody who has a say in prompts did not want this one, and it was not recorded.
    PromptBlocked {
        /// Why, for the user.
        reason: String,
    },
    /// What the turn was to begin with is done, and the model is not asked about it.
    NothingToAsk,
    /// What the turn was to begin with has failed, and the model is not asked about it.
    CommandFailed,
    /// A call that an earlier run put off is taken up again.
    TakeUp(ToolUse),
    /// The user wants the conversation compacted, and nothing else.
    Compact {
        /// What should be kept above all.
        focus: Option<String>,
    },
    /// The request was not sent: the conversation is too long for it.
    TooLong,
    /// The compaction is over; the process has spent so much.
    Compacted {
        /// What came of it.
        end: CompactionOutcome,
        /// US dollars spent by this process, summaries included.
        spent_usd: f64,
    },
    /// The model says something.
    Stream(StreamEvent),
    /// The response is complete; the process has spent so much.
    Ended {
        /// How it ended.
        ended: Ended,
        /// US dollars spent by this process, this response included.
        spent_usd: f64,
    },
    /// The request failed.
    Failed {
        /// Why.
        failure: Failure,
        /// A random number in `[0, 1)`, for the wait.
        jitter: f64,
    },
    /// The wait before a retry is over.
    WaitOver,
    /// The calls were looked up and checked, in the order they were given.
    Prepared(Vec<Preparation>),
    /// It was decided whether a call may run.
    Permission {
        /// Which.
        call: ToolUseId,
        /// May it run?
        permission: CallPermission,
    },
    /// A call is done.
    Finished {
        /// Which.
        call: ToolUseId,
        /// What came of it.
        outcome: ToolOutcome,
    },
    /// Those who have a say in it have seen all results of a response.
    BatchSeen {
        /// Why the turn ends here, if it does.
        halt: Option<String>,
    },
    /// Somebody who has a say in it wants the turn to end, as soon as what runs is done.
    Halt {
        /// Why, for the user.
        reason: String,
    },
    /// Those who have a say in it were asked whether the turn may end.
    MayEnd {
        /// What the model is told instead; without it the turn is over.
        objection: Option<Objection>,
    },
    /// The user wants it to stop; what runs is cancelled and waited for.
    Interrupt,
    /// The user will not wait: what runs is given up.
    Abandon,
}

/// What somebody had against the end of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Objection {
    /// What the model is told, in their words; may be empty.
    pub text: String,
    /// Context that is recorded behind it (`{"type": …}`).
    pub attachments: Vec<Attachment>,
}

/// What came of a compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum CompactionOutcome {
    /// The conversation begins with a summary now.
    Done,
    /// There is nothing older than what would be kept.
    NothingToDo,
    /// Somebody who has a say in it did not want it; this is why.
    Blocked(String),
    /// It is as it was.
    Failed(Failure),
}

impl CompactionOutcome {
    /// Returns why the conversation is no shorter, for people.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Done => None,
            Self::NothingToDo => Some(
                "There is too little to compact: the conversation has no more than its last exchange."
                    .to_owned(),
            ),
            Self::Blocked(reason) => Some(format!("The compaction was blocked: {reason}")),
            Self::Failed(failure) => Some(failure.message.clone()),
        }
    }
}

/// What looking a call up and checking its input came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Preparation {
    /// It can be judged.
    Ready {
        /// Which.
        call: ToolUseId,
        /// Whether it may share its time.
        concurrency: Concurrency,
    },
    /// It can never run: unknown tool, bad input.
    Refused {
        /// Which.
        call: ToolUseId,
        /// What the model is told.
        outcome: ToolOutcome,
    },
}

/// Whether a call may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// Read-only and safe beside others of its kind.
    Shared,
    /// Safe beside others, and so little work here that it counts for nothing: others do it.
    Unbounded,
    /// By itself, in order.
    Exclusive,
}

/// May a call run?
#[derive(Debug, Clone, PartialEq)]
pub enum CallPermission {
    /// Yes.
    Run,
    /// No; the model is told why and goes on.
    Refuse(ToolOutcome),
    /// No, and the turn stops here.
    Stop(ToolOutcome),
    /// Not in this run: the turn ends, and the call waits in the transcript for another. Only for a call that is alone.
    Defer,
}
