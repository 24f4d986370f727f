//! Agents that work beside the conversation and never delay it.
//!
//! A background agent is asked with the very prefix of the main conversation (system prompt, tools, messages), so that
//! the prompt cache serves it; what it is to do is appended. Its calls are judged by a [`Policy`] first and by the
//! permission rules second, and nobody is ever asked. It writes nothing to the main transcript: what it said is kept
//! in a side file, and what it cost is counted with the session. It has no hold on the session, so it can start no
//! other agent and compact nothing.

mod ahead;
mod extractor;
mod folder;
mod lane;
mod latest;
mod notes;
mod policy;
mod sidechain;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use loci_context::with_request;
use loci_core::app_state::AppState;
use loci_core::entry::draft::Stamp;
use loci_core::message::{Block, Message, Role, ToolUse};
use loci_core::model::facts;
use loci_core::session::SessionIdentity;
use loci_core::stream::{Ended, Failure, FailureKind, Started, StreamEvent};
use loci_core::tool::{PathEffect, ToolOutcome};
use loci_llm::{Client, Request};
use loci_stdx::{Env, Store};
use loci_storage::{Author, SessionTmp};
use loci_tools::{FileStates, Host, MemoryTaskStore, Place, Toolbox};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::config::{Ambient, ModelConfig};
use crate::event::EngineEvent;
use crate::host::{HostParts, SessionHost, Spill, lock};
use crate::judge::{PreparedCall, judge, prepare};
use crate::memory::{self, MemoryDesk};
use crate::request::RequestBase;
use crate::state::change_identity;
use crate::turn::{OutputLimit, RequestPlan};
pub(crate) use ahead::Ahead;
pub(crate) use extractor::Extractor;
pub(crate) use folder::{Folded, Folder};
pub(crate) use lane::Lane;
pub(crate) use notes::NotesKeeper;
pub(crate) use policy::{Policy, admit};
use sidechain::Sidechain;

/// What background agents share with their session.
#[derive(Clone)]
pub(crate) struct Backstage {
    pub(crate) env: Env,
    pub(crate) client: Client,
    pub(crate) base: Arc<RequestBase>,
    /// Where people are told what concerns the whole session.
    pub(crate) events: UnboundedSender<EngineEvent>,
    pub(crate) toolbox: Toolbox,
    pub(crate) state: Arc<Store<AppState>>,
    pub(crate) identity: Arc<Store<SessionIdentity>>,
    pub(crate) ambient: Arc<Mutex<Ambient>>,
    pub(crate) tmp: SessionTmp,
    pub(crate) stamp: Stamp,
    pub(crate) max_budget_usd: Option<f64>,
    /// Keeps what calls change among memories.
    pub(crate) memory: Option<Arc<MemoryDesk>>,
}

/// How the main conversation stands when an agent is sent out.
#[derive(Clone)]
pub(crate) struct Standpoint {
    pub(crate) model: String,
    pub(crate) config: ModelConfig,
    /// The messages of the next request, word for word.
    pub(crate) messages: Vec<Message>,
    pub(crate) place: Place,
}

/// What an agent is sent out for.
pub(crate) struct Errand {
    /// The agent's type, as its side file says.
    pub(crate) kind: &'static str,
    pub(crate) standpoint: Standpoint,
    pub(crate) instruction: String,
    pub(crate) policy: Policy,
    pub(crate) max_turns: u32,
    /// What it has read before it begins.
    pub(crate) files: FileStates,
    /// Whose hand memories are written in.
    pub(crate) author: Author,
}

/// What came of an errand.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Files that its calls changed.
    pub(crate) written: Vec<PathEffect>,
    /// What it said last.
    pub(crate) text: String,
    pub(crate) end: End,
}

/// How an errand ended.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum End {
    /// The agent was done.
    Done,
    /// It made calls until its last turn.
    #[default]
    OutOfTurns,
    /// The session may not spend more.
    OutOfBudget,
    /// The API failed; the next errand tries again.
    Failed(Failure),
    /// It was called back.
    Cancelled,
}

/// One whole answer.
struct Answer {
    started: Option<Started>,
    blocks: Vec<Block>,
    ended: Ended,
}

/// Sends an agent out and waits for it.
pub(crate) async fn run(stage: &Backstage, errand: Errand, cancel: &CancellationToken) -> Report {
    let mut side = Sidechain::begin(stage, errand.kind, &errand.instruction);
    let host = Arc::new(stage.host(errand.files.clone(), errand.standpoint.place.clone()));
    let mut messages = with_request(
        errand.standpoint.messages.clone(),
        &format!("<system-reminder>\n{}\n</system-reminder>", errand.instruction),
    );
    let mut report = Report::default();
    for _ in 0..errand.max_turns {
        if stage.is_out_of_budget() {
            report.end = End::OutOfBudget;
            break;
        }
        let answer = match ask(stage, &errand.standpoint, messages.clone(), cancel).await {
            Some(Ok(answer)) => answer,
            Some(Err(failure)) => {
                report.end = End::Failed(failure);
                break;
            }
            None => {
                report.end = End::Cancelled;
                break;
            }
        };
        side.answered(answer.started.as_ref(), &answer.blocks, &answer.ended);
        // Words of refusal are no notes and no summary.
        if answer.ended.stop_reason.as_deref() == Some("refusal") {
            let failure = Failure::new(FailureKind::InvalidRequest, "The model declined to do it");
            report.end = End::Failed(failure);
            break;
        }
        report.text = answer.blocks.iter().filter_map(Block::text).collect();
        let calls: Vec<ToolUse> = answer.blocks.iter().filter_map(Block::tool_use).collect();
        // A call that the output limit cut short was never whole.
        if calls.is_empty() || answer.ended.stop_reason.as_deref() == Some("max_tokens") {
            report.end = End::Done;
            break;
        }
        messages.push(Message::new(Role::Assistant, answer.blocks));
        let mut results = Vec::new();
        for call in &calls {
            let outcome = stage.perform(&host, &errand, call, cancel, &mut report.written).await;
            let block = Block::new_tool_result(&call.id, &outcome.content.to_value(), outcome.is_error);
            side.result(&call.id, &block);
            results.push(block);
        }
        messages.push(Message::new(Role::User, results));
    }
    host.tasks().shutdown().await;
    report
}

/// Asks; `None` when it was cancelled. Failures are not retried: what is not done now is done next time. Only a server that
/// refuses to edit conversations is asked the same without at once, and by everybody from then on.
async fn ask(
    stage: &Backstage,
    standpoint: &Standpoint,
    messages: Vec<Message>,
    cancel: &CancellationToken,
) -> Option<Result<Answer, Failure>> {
    let plan = RequestPlan {
        model: standpoint.model.clone(),
        output: OutputLimit::Usual,
        is_streaming: true,
        may_compact: false,
    };
    let config = ModelConfig { wants_wire_events: false, ..standpoint.config.clone() };
    let request = Arc::new(stage.base.request(&plan, &config, messages));
    match listen(stage, Arc::clone(&request), cancel).await {
        Some(Err(failure)) if failure.kind == FailureKind::EditingRefused && request.edits_context => {
            if let Some(news) = stage.base.stop_edits(&failure) {
                // Without a listener there is nobody to tell.
                drop(stage.events.send(news));
            }
            let plain = Request { edits_context: false, ..Request::clone(&request) };
            listen(stage, Arc::new(plain), cancel).await
        }
        answer => answer,
    }
}

/// Sends a request and takes in the whole answer.
async fn listen(
    stage: &Backstage,
    request: Arc<Request>,
    cancel: &CancellationToken,
) -> Option<Result<Answer, Failure>> {
    let model = request.model.clone();
    let began = stage.env.clock.monotonic();
    let mut stream = stage.client.stream(request, cancel.clone());
    let (mut started, mut blocks) = (None, Vec::new());
    while let Some(item) = stream.next().await {
        match item {
            Ok(StreamEvent::Started(head)) => started = Some(head),
            Ok(StreamEvent::BlockDone { block, .. }) => blocks.push(block),
            Ok(StreamEvent::Ended(ended)) => {
                let taken = stage.env.clock.monotonic().saturating_sub(began);
                change_identity(&stage.identity, |identity| {
                    identity.totals.add(&model, &facts(&model), &ended.usage);
                    identity.totals.api += taken;
                });
                blocks.retain(|block| !block.is_blank());
                return Some(Ok(Answer { started, blocks, ended }));
            }
            Ok(_) => {}
            Err(failure) => return Some(Err(failure)),
        }
    }
    None
}

impl Backstage {
    /// Makes the house that an agent's calls see: the session's world, with a place and a memory of files of its own.
    fn host(&self, files: FileStates, place: Place) -> SessionHost {
        let (events, _) = unbounded_channel();
        let host = SessionHost::new(HostParts {
            ambient: Arc::clone(&self.ambient),
            place,
            spill: Spill::Temporary,
            tmp: self.tmp.clone(),
            events,
            state: Arc::clone(&self.state),
            // What it writes is kept in the book of memories, not with the files of the conversation.
            keeper: None,
            transcript: None,
            memory: None,
            // The conversation's list is not its own.
            task_store: Arc::new(MemoryTaskStore::default()),
        });
        *lock(host.files()) = files;
        host
    }

    pub(crate) fn is_out_of_budget(&self) -> bool {
        let spent = self.identity.get().totals.cost_usd();
        self.max_budget_usd.is_some_and(|limit| spent >= limit)
    }

    /// Returns where side files lie; nowhere, when the session leaves nothing.
    fn side_dir(&self) -> Option<PathBuf> {
        let identity = self.identity.get();
        identity.is_persistent().then(|| identity.companion_dir().join("subagents"))
    }

    async fn perform(
        &self,
        host: &Arc<SessionHost>,
        errand: &Errand,
        call: &ToolUse,
        cancel: &CancellationToken,
        written: &mut Vec<PathEffect>,
    ) -> ToolOutcome {
        let prepared = match prepare(&self.toolbox, host.as_ref(), call) {
            Ok((prepared, _)) => prepared,
            Err(outcome) => return *outcome,
        };
        let book = self.state.get().permission.rulebook.clone();
        let judged = judge(&self.toolbox, host.as_ref(), book, &prepared);
        let permit = errand.policy.permit(&prepared.tool, &prepared.input, &judged.effects);
        if let Err(why) = admit(permit, &judged.decision) {
            return ToolOutcome::refusal(why);
        }
        let Some(tool) = self.toolbox.find_shared(&prepared.tool) else {
            return ToolOutcome::error(format!("{} is no longer available", prepared.tool));
        };
        let writes = judged.effects.writes.clone();
        let call = PreparedCall { effects: judged.effects, ..prepared };
        let (desk, host, cancel) = (self.memory.as_deref(), Arc::clone(host), cancel.child_token());
        let outcome = memory::run(desk, errand.author, tool, host, call, cancel).await;
        if !outcome.is_failure() {
            written.extend(writes);
        }
        outcome
    }
}
