//! The seams that extensions fill: a classifier for mode `auto`, hooks of turns and compactions, and what outlasts a
//! compaction.
//!
//! Every hook is asked without blocking the conversation's driver: its answer arrives in the inbox, and an interrupt ends
//! the wait. Without a hook nothing is awaited.

use std::future::Future;
use std::pin::Pin;

use loci_context::{Restorable, RestoreBudget, Trigger};
use loci_core::ids::ToolUseId;
use loci_core::permission::{Classified, HookVerdict};
use loci_core::tool::ToolOutcome;
use serde_json::Value;

use crate::event::AgentRef;

/// An answer that takes a while.
pub type HookFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A prompt that is about to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct BeforePrompt {
    /// Its text.
    pub prompt: String,
}

/// Whether a prompt is taken.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptGate {
    /// Yes; these attachments (`{"type": …}`) are recorded behind it.
    Go {
        /// What is added.
        attachments: Vec<Value>,
    },
    /// No; the turn ends, and the prompt is not recorded.
    Block {
        /// Why, for the user.
        reason: String,
    },
}

/// A call that was looked up and checked, and is about to be judged or has run.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    /// Its id.
    pub id: ToolUseId,
    /// The tool.
    pub tool: String,
    /// Its arguments, after defaulting.
    pub input: Value,
    /// The agent that makes it; none for the main line.
    pub agent: Option<AgentRef>,
}

/// What hooks say of a call before it is judged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallGate {
    /// Whether it may run. It travels with the call, so that whoever judges it sees it; rules that deny or ask stand above
    /// an allow.
    pub verdict: Option<HookVerdict>,
    /// Other arguments: they are checked and judged as a new call.
    pub input: Option<Value>,
}

/// A turn whose last answer makes no calls.
#[derive(Debug, Clone, PartialEq)]
pub struct BeforeEnd {
    /// What the model said last.
    pub text: String,
    /// Whether a hook has made this turn go on already.
    pub has_gone_on: bool,
    /// The agent whose turn it is; none for the main line.
    pub agent: Option<AgentRef>,
}

/// Whoever has a say in turns. The turn waits for the answers; an interrupt does not.
pub trait TurnHooks: Send + Sync {
    /// Asked before a prompt is recorded.
    fn before_prompt(&self, prompt: BeforePrompt) -> HookFuture<PromptGate>;

    /// Asked before a call is judged.
    fn before_call(&self, call: HookCall) -> HookFuture<CallGate>;

    /// Told what came of a call; returns what the model is told of it.
    fn after_call(&self, call: HookCall, outcome: ToolOutcome) -> HookFuture<ToolOutcome>;

    /// Asked before a turn ends with an answer; words mean that it goes on with them.
    fn before_end(&self, end: BeforeEnd) -> HookFuture<Option<String>>;
}

/// Blocks in a row after which people are asked instead.
const MOST_IN_A_ROW: u32 = 3;
/// Blocks in a session after which people are asked instead.
const MOST_IN_ALL: u32 = 20;

/// A call that nobody's rule decides.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassifierCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub input: Value,
    /// Why it would be asked about.
    pub reason: String,
}

/// An answer that takes a while; none means that it could not be told.
pub type ClassifierFuture = HookFuture<Option<Classified>>;

/// Judges calls in mode `auto`.
pub trait Classifier: Send + Sync {
    /// Says whether a call may run.
    fn classify(&self, call: ClassifierCall) -> ClassifierFuture;
}

/// How often the classifier said no.
#[derive(Debug, Default)]
pub(crate) struct ClassifierBlocks {
    in_a_row: u32,
    in_all: u32,
}

impl ClassifierBlocks {
    pub(crate) fn count(&mut self, said: &Classified) {
        match said {
            Classified::Pass(_) => self.in_a_row = 0,
            Classified::Block(_) => {
                self.in_a_row += 1;
                self.in_all += 1;
            }
        }
    }

    /// A person said yes: the classifier gets another chance.
    pub(crate) fn forgive(&mut self) {
        self.in_a_row = 0;
    }

    pub(crate) fn are_too_many(&self) -> bool {
        self.in_a_row >= MOST_IN_A_ROW || self.in_all >= MOST_IN_ALL
    }
}

/// A compaction that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeCompaction {
    /// Who wants it.
    pub trigger: Trigger,
    /// What the user wants to be kept above all.
    pub instructions: Option<String>,
}

/// Whether it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionGate {
    /// Yes; the summary is asked for with these instructions, too.
    Go {
        /// What to add.
        instructions: Option<String>,
    },
    /// No.
    Block {
        /// Why, for the user.
        reason: String,
    },
}

/// A compaction that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfterCompaction {
    /// Who wanted it.
    pub trigger: Trigger,
    /// What stands for the earlier conversation now.
    pub summary: String,
}

/// The answer, when it is there.
pub type GateFuture = HookFuture<CompactionGate>;
/// What the user is told of it, when it is over.
pub type NoticesFuture = HookFuture<Vec<String>>;

/// Whoever has a say in compactions. The conversation waits for both; an interrupt does not.
pub trait CompactionHooks: Send + Sync {
    /// Asked before each compaction.
    fn before(&self, compaction: BeforeCompaction) -> GateFuture;

    /// Told after each compaction that was made.
    fn after(&self, compaction: AfterCompaction) -> NoticesFuture;
}

/// A kind of thing that outlasts a compaction.
pub trait RestoreSource: Send + Sync {
    /// Returns what runs right now, a line each with its id.
    fn running(&self) -> Vec<String>;

    /// Returns what was used, the newest first, and how much of it may come back.
    fn used(&self) -> (Vec<Restorable>, RestoreBudget);
}
