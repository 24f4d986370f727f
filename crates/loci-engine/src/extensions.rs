//! The seams that extensions fill: a classifier for mode `auto`, hooks of turns and compactions, and what outlasts a
//! compaction.
//!
//! Every hook is asked without blocking the conversation's driver: its answer arrives in the inbox, and an interrupt ends
//! the wait. Without a hook nothing is awaited. What features beside turns ask is in `extension/feature_hooks.rs`.

mod feature_hooks;
pub(crate) mod hooks;
pub(crate) mod local_command;
pub(crate) mod mcp;
pub(crate) mod skills;
pub(crate) mod slash_command;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use loci_context::{Restorable, RestoreBudget, Trigger};
use loci_core::entry::{Attachment, Entry};
use loci_core::hooks::{EventInput, HookEvent, ToolBatchCall};
use loci_core::ids::ToolUseId;
use loci_core::permission::{Classified, HookVerdict, Update};
use loci_core::tool::{CallEffects, ToolOutcome};
use serde_json::Value;

use crate::command::Answer;
use crate::event::AgentRef;
use crate::turn::Objection;
pub use feature_hooks::{
    ElicitationReply, ElicitationRequest, ExpansionGate, FeatureHooks, McpToolCaller, PromptExpansion,
    ScopedHooks, ScopedHooksGuard, ShownBatch, TaskStep,
};

/// An answer that takes a while.
pub type HookFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How things stand when hooks are asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookMoment {
    /// The prompt at hand, once there was one.
    pub prompt: Option<String>,
    /// Where the conversation stands.
    pub cwd: PathBuf,
    /// The effort level of the model that is asked, where it takes one.
    pub effort: Option<String>,
    /// The agent whose conversation it is; none for the main line.
    pub agent: Option<AgentRef>,
}

/// A prompt that is about to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct BeforePrompt {
    /// Its text.
    pub prompt: String,
    /// What the session is called.
    pub title: Option<String>,
    /// How things stand.
    pub moment: HookMoment,
}

/// Whether a prompt is taken.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptGate {
    /// Yes; these attachments (`{"type": …}`) are recorded behind it.
    Go {
        /// What is added.
        attachments: Vec<Attachment>,
        /// What to call the session.
        title: Option<String>,
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
    /// Its arguments, after defaulting; paths of files are absolute.
    pub input: Value,
    /// What it would do, or did.
    pub effects: CallEffects,
    /// How things stand.
    pub moment: HookMoment,
}

/// What hooks say of a call before it is judged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallGate {
    /// Whether it may run. It travels with the call, so that whoever judges it sees it; rules that deny or ask stand above
    /// an allow.
    pub verdict: Option<HookVerdict>,
    /// Other arguments: they are checked and judged as a new call.
    pub input: Option<Value>,
    /// What is recorded behind the call's result.
    pub attachments: Vec<Attachment>,
    /// Why the turn ends here, if it does; the call does not run.
    pub halt: Option<String>,
    /// Whether the call is put off to another run of the session.
    pub defers: bool,
}

/// What a call came to, with what hooks add to it.
#[derive(Debug, Clone, PartialEq)]
pub struct AfterCall {
    /// What the model is told.
    pub outcome: ToolOutcome,
    /// Why the turn ends when the calls that run are done, if it does.
    pub halt: Option<String>,
    /// What a classifier of later calls may know of it.
    pub classifier_note: Option<String>,
}

/// All results of a response, before the model sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchResults {
    /// The calls, in the order of their results.
    pub calls: Vec<ToolBatchCall>,
    /// How things stand.
    pub moment: HookMoment,
}

/// What hooks say of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchGate {
    /// What is recorded behind them.
    pub attachments: Vec<Attachment>,
    /// Why the turn ends here, if it does.
    pub halt: Option<String>,
}

/// A question that a person would be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionQuestion {
    /// The call.
    pub call: HookCall,
    /// What would let it run from now on.
    pub suggestions: Vec<Update>,
}

/// A session that begins, or begins anew.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionBegin {
    /// `startup`, `resume`, `clear`, `compact` or `fork`.
    pub source: &'static str,
    /// The model, where it is told.
    pub model: Option<String>,
    /// What the session is called.
    pub title: Option<String>,
    /// How things stand.
    pub moment: HookMoment,
}

/// What hooks add to a session that begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionAdditions {
    /// What is recorded before the next prompt.
    pub attachments: Vec<Attachment>,
    /// What to call the session.
    pub title: Option<String>,
    /// A prompt that comes before all others.
    pub first_prompt: Option<String>,
    /// Whether skills are looked for again.
    pub reloads_skills: bool,
}

/// A turn whose last answer makes no calls.
#[derive(Debug, Clone, PartialEq)]
pub struct BeforeEnd {
    /// What the model said last.
    pub text: String,
    /// Whether a hook has made this turn go on already.
    pub has_gone_on: bool,
    /// What runs in the background, as the payload has it.
    pub background_tasks: Vec<Value>,
    /// What is scheduled, as the payload has it.
    pub session_crons: Vec<Value>,
    /// Where the agent whose turn it is writes down what it does; none for the main line.
    pub agent_transcript: Option<PathBuf>,
    /// How things stand.
    pub moment: HookMoment,
}

/// Whoever has a say in turns. The turn waits for the answers; an interrupt does not.
pub trait TurnHooks: Send + Sync {
    /// Tells whether anybody listens to an event right now; nobody is asked otherwise.
    fn listens_to(&self, event: HookEvent) -> bool;

    /// Asked when a session begins, or begins anew after a compaction.
    fn session_begins(&self, begin: SessionBegin) -> HookFuture<SessionAdditions>;

    /// Asked to make the project ready; returns what is recorded before the next prompt.
    fn set_up(&self, trigger: &'static str, moment: HookMoment) -> HookFuture<Vec<Attachment>>;

    /// Told when a session ends, and waited for no longer than it may take.
    fn session_ends(&self, reason: &'static str, moment: HookMoment) -> HookFuture<()>;

    /// Asked before a prompt is recorded.
    fn before_prompt(&self, prompt: BeforePrompt) -> HookFuture<PromptGate>;

    /// Asked before a call is judged.
    fn before_call(&self, call: HookCall) -> HookFuture<CallGate>;

    /// Asked in the place of a person; none means that they have nothing to say.
    fn permission_question(&self, question: PermissionQuestion) -> HookFuture<Option<Answer>>;

    /// Told that the classifier refused a call; returns what is recorded behind its result.
    fn permission_denied(&self, _call: HookCall, _reason: String) -> HookFuture<Vec<Attachment>> {
        Box::pin(async { Vec::new() })
    }

    /// Told what came of a call; returns what the model is told of it.
    fn after_call(&self, call: HookCall, outcome: ToolOutcome, taken: Duration) -> HookFuture<AfterCall>;

    /// Shown all results of a response before the model is.
    fn after_batch(&self, batch: BatchResults) -> HookFuture<BatchGate>;

    /// Asked before a turn ends with an answer; an objection means that it goes on with it.
    fn before_end(&self, end: BeforeEnd) -> HookFuture<Option<Objection>>;

    /// Told of something that nobody waits for: a notification, a failure, a change.
    fn notify(&self, event: EventInput, moment: HookMoment);
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
    /// What hooks said of the results of earlier calls, which the classifier does not see. Nobody has checked it.
    pub notes: Vec<ClassifierNote>,
}

/// What a hook says of the result of a call, for the classifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifierNote {
    /// The call.
    pub call: ToolUseId,
    /// The tool.
    pub tool: String,
    /// What is said.
    pub text: String,
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
#[derive(Debug, Clone, PartialEq)]
pub struct BeforeCompaction {
    /// Who wants it.
    pub trigger: Trigger,
    /// What the user wants to be kept above all.
    pub instructions: Option<String>,
    /// How things stand.
    pub moment: HookMoment,
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
#[derive(Debug, Clone, PartialEq)]
pub struct AfterCompaction {
    /// Who wanted it.
    pub trigger: Trigger,
    /// What stands for the earlier conversation now.
    pub summary: String,
    /// How things stand.
    pub moment: HookMoment,
}

/// The answer, when it is there.
pub type GateFuture = HookFuture<CompactionGate>;
/// What the user is told of it, when it is over.
pub type NoticesFuture = HookFuture<Vec<String>>;

/// Whoever has a say in compactions. The conversation waits for both; an interrupt does not.
pub trait CompactionHooks: Send + Sync {
    /// Tells whether anybody listens right now; nobody is asked otherwise.
    fn listens(&self) -> bool {
        true
    }

    /// Asked before each compaction.
    fn before(&self, compaction: BeforeCompaction) -> GateFuture;

    /// Told after each compaction that was made.
    fn after(&self, compaction: AfterCompaction) -> NoticesFuture;
}

/// A kind of thing that outlasts a compaction.
pub trait RestoreSource: Send + Sync {
    /// Returns what runs right now, a line each with its id.
    fn running(&self) -> Vec<String>;

    /// Returns what was used in a conversation whose entries these are, the newest first, and how much of it may come back.
    fn used(&self, path: &[Arc<Entry>]) -> (Vec<Restorable>, RestoreBudget);
}
