//! Making the conversation shorter: when, how the summary is asked for, and what becomes of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use loci_context::{
    CompactionPlan, Projection, Trigger, Window, context_tokens, summary_of, summary_request,
};
use loci_core::message::{Block, Message as Said, Role};
use loci_core::model::facts;
use loci_core::stream::{Ended, Failure, FailureKind, StreamEvent};
use loci_llm::EventStream;
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use super::{Message, Session, Underway};
use crate::config::CompactionConfig;
use crate::event::EngineEvent;
use crate::instructions::resume;
use crate::recorder::Shortened;
use crate::state::change_identity;
use crate::turn::{Compacted, CompactionWish, Event, OutputLimit, RequestPlan};

/// Failures in a row after which nothing is compacted unasked.
const MOST_FAILURES: u32 = 3;
/// Compactions in a row, each needed at once after the other, after which nothing is compacted unasked.
const MOST_REFILLS: u32 = 3;

/// Files that are put before the model again.
const MOST_FILES: usize = 5;
/// And their tokens in all.
const MOST_FILE_TOKENS: u64 = 50_000;

const SWITCHED_OFF: &str = "Compaction is switched off; unset DISABLE_COMPACT to use it";
const NOTHING_TO_COMPACT: &str =
    "There is too little to compact: the conversation has no more than its last exchange.";

/// What is remembered from one compaction to the next.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    failures: u32,
    refills: u32,
    /// Responses since the last compaction; `None` before the first.
    responses_since: Option<u32>,
    has_warned: bool,
}

impl Compactor {
    pub(super) fn heard_response(&mut self) {
        if let Some(n) = &mut self.responses_since {
            *n += 1;
        }
    }

    /// Tells whether it is worth trying; notes that room is needed again.
    fn may_try(&mut self) -> bool {
        let is_refill = self.responses_since.is_some_and(|n| n <= 1);
        self.refills = if is_refill { self.refills + 1 } else { 0 };
        self.failures < MOST_FAILURES && self.refills < MOST_REFILLS
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.responses_since = Some(0);
    }
}

/// A compaction whose summary is being written.
pub(super) struct Pending {
    plan: CompactionPlan,
    wish: CompactionWish,
    model: String,
    tokens: u64,
    began: Duration,
}

impl Session {
    /// Tells whether the conversation is to be made shorter before a request. When that has stopped helping, the user
    /// is told, once.
    pub(super) fn needs_room(&mut self, plan: &RequestPlan) -> bool {
        let config = self.compaction;
        if !(plan.may_compact
            && config.is_automatic
            && self.tokens() >= self.window(plan).thresholds().compact)
        {
            return false;
        }
        let may_try = self.compactor.may_try();
        if !may_try && !std::mem::replace(&mut self.compactor.has_warned, true) {
            let text = "The conversation is nearly too long, and compacting it does not help any more. Ask for less \
                        output at a time, or begin a new session.";
            self.tell(EngineEvent::Trouble(text.to_owned()));
        }
        may_try
    }

    fn window(&self, plan: &RequestPlan) -> Window {
        let CompactionConfig { window, percent, .. } = self.compaction;
        Window {
            tokens: window.unwrap_or(facts(&plan.model).window),
            max_output: self.base.max_tokens(plan, &self.model),
            percent,
        }
    }

    pub(super) fn tokens(&self) -> u64 {
        context_tokens(self.recorder.path(), self.base.tokens())
    }

    /// Asks for a summary of what is not kept.
    pub(super) fn compact(&mut self, wish: CompactionWish, underway: &mut Underway) {
        self.tell(EngineEvent::Compacting);
        if !self.compaction.is_on {
            let failure = Failure::new(FailureKind::InvalidRequest, SWITCHED_OFF);
            return self.compaction_over(underway, Compacted::Failed(failure));
        }
        let path = self.recorder.path();
        let Some(plan) = CompactionPlan::new(path, wish.keep) else {
            underway.tally.text = NOTHING_TO_COMPACT.to_owned();
            return self.compaction_over(underway, Compacted::NothingToDo);
        };
        let older = Projection::of(path[plan.summarised.clone()].iter().map(Arc::as_ref));
        let messages =
            asking(older.messages(Some(&self.context_block())), &summary_request(wish.focus.as_deref()));
        let model = self.current_model();
        let request_plan = RequestPlan {
            model: model.clone(),
            output: OutputLimit::Usual,
            is_streaming: true,
            may_compact: false,
        };
        let request = Arc::new(self.base.request(&request_plan, &self.model, messages));
        underway.pending =
            Some(Pending { plan, wish, model, tokens: self.tokens(), began: self.env.clock.monotonic() });
        underway.generation += 1;
        underway.request = CancellationToken::new();
        let stream = self.client.stream(request, underway.request.clone());
        tokio::spawn(listen(stream, underway.inbox.clone(), underway.generation));
    }

    /// Puts the summary in the place of what it stands for.
    pub(super) fn summarised(
        &mut self,
        said: Result<(String, Ended), Failure>,
        underway: &mut Underway,
    ) -> Event {
        let Some(pending) = underway.pending.take() else { return Event::Compacted(Compacted::NothingToDo) };
        let end = self.shorten(said, &pending, underway);
        match &end {
            Compacted::Done => self.compactor.succeeded(),
            Compacted::Failed(_) => self.compactor.failures += 1,
            Compacted::NothingToDo => {}
        }
        self.tell(EngineEvent::CompactionEnded { failure: failure_of(&end) });
        Event::Compacted(end)
    }

    fn shorten(
        &mut self,
        said: Result<(String, Ended), Failure>,
        pending: &Pending,
        underway: &mut Underway,
    ) -> Compacted {
        let (text, ended) = match said {
            Ok(said) => said,
            Err(failure) => return Compacted::Failed(failure),
        };
        underway.tally.usage.add(&ended.usage);
        change_identity(&self.identity, |identity| {
            identity.totals.add(&pending.model, &facts(&pending.model), &ended.usage);
        });
        let Some(summary) = summary_of(&text) else {
            return Compacted::Failed(Failure::new(FailureKind::Malformed, "The summary is empty"));
        };
        let duration = self.env.clock.monotonic().saturating_sub(pending.began);
        let shortened = self.recorder.compact(&Shortened {
            plan: &pending.plan,
            trigger: pending.wish.trigger,
            summary: &summary,
            tokens_before: pending.tokens,
            overhead: self.base.tokens(),
            duration,
        });
        let Some((boundary, summary)) = shortened else {
            return Compacted::Failed(Failure::new(
                FailureKind::Malformed,
                "The summary could not be written",
            ));
        };
        if pending.wish.trigger == Trigger::Manual {
            underway.tally.text = "The conversation goes on from its summary.".to_owned();
        }
        self.reread_instructions();
        self.restore_files();
        self.note_compaction();
        self.tell(EngineEvent::Compacted {
            metadata: boundary.fields().read("compactMetadata").unwrap_or_default(),
        });
        self.tell_user(Some(&summary), None);
        Compacted::Done
    }

    /// Takes the instruction files as they are on disk by now; those met on the way are met again when they matter.
    fn reread_instructions(&mut self) {
        let Some(read) = &mut self.read_instructions else { return };
        let (found, mut lazy) = read();
        if let Some(lazy) = &mut lazy {
            resume(lazy, self.recorder.path().iter().map(Arc::as_ref));
        }
        self.instructions = found;
        self.lazy_instructions = lazy;
        self.make_context();
    }

    /// Puts the files that were read last before the model again: the summary does not hold their text.
    /// Instructions of the start are sent all the same; those met on the way come back with their files.
    fn restore_files(&mut self) {
        let is_told = |path: &Path| self.lazy_instructions.as_ref().is_some_and(|lazy| lazy.has(path));
        let files = self.host.files_to_restore(MOST_FILES, MOST_FILE_TOKENS, is_told);
        if let Some(lazy) = &mut self.lazy_instructions {
            lazy.forget();
        }
        for (path, content) in files {
            let n_lines = content.lines().count();
            let name = path.display().to_string();
            let shown = path.strip_prefix(&self.env.cwd).unwrap_or(&path).display().to_string();
            let file = json!({"filePath": name, "content": content, "numLines": n_lines, "startLine": 1, "totalLines": n_lines});
            self.recorder.attachment(json!({
                "type": "file",
                "filename": name,
                "content": {"type": "text", "file": file},
                "displayPath": shown,
            }));
        }
    }

    fn compaction_over(&mut self, underway: &Underway, end: Compacted) {
        self.tell(EngineEvent::CompactionEnded { failure: failure_of(&end) });
        drop(underway.inbox.send(Message::Other(Event::Compacted(end))));
    }

    pub(super) fn context_block(&self) -> Block {
        self.context.clone().unwrap_or_else(|| Block::new_text(""))
    }
}

fn failure_of(end: &Compacted) -> Option<String> {
    match end {
        Compacted::Done => None,
        Compacted::NothingToDo => Some(NOTHING_TO_COMPACT.to_owned()),
        Compacted::Failed(failure) => Some(failure.message.clone()),
    }
}

/// Appends the request to the last words of the user, so that the prefix stays the one that is cached.
fn asking(mut messages: Vec<Said>, request: &str) -> Vec<Said> {
    let block = Block::new_text(request);
    match messages.last_mut().filter(|last| last.role == Role::User) {
        Some(last) => {
            let content: Vec<Block> = last.content.iter().cloned().chain([block]).collect();
            *last = Said::new(Role::User, content);
        }
        None => messages.push(Said::new(Role::User, vec![block])),
    }
    messages
}

/// Listens to the summary. Calls that the model makes all the same are not run.
async fn listen(mut stream: EventStream, inbox: UnboundedSender<Message>, generation: u64) {
    let mut text = String::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(StreamEvent::BlockDone { block, .. }) => text.push_str(&block.text().unwrap_or_default()),
            Ok(StreamEvent::Ended(ended)) => {
                drop(inbox.send(Message::Summary(generation, Ok((text, ended)))));
                return;
            }
            Ok(_) => {}
            Err(failure) => {
                drop(inbox.send(Message::Summary(generation, Err(failure))));
                return;
            }
        }
    }
}
