//! Making the conversation shorter: when, from what, and what becomes of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loci_context::{
    CompactionAttempt, CompactionCarryover, CompactionGuard, CompactionInput, CompactionResult,
    CompactionStep, ContextAction, ContextRoom, ContextState, Fullness, Level, Notes, RestoreBudget,
    ResultBudget, Trigger, Window, context_tokens, estimate_path, next_context_action, prose_tokens,
    restored,
};
use loci_core::entry::{Attachment, Entry};
use loci_core::ids::ToolUseId;
use loci_core::message::Block;
use loci_core::stream::{Ended, Failure, FailureKind};
use loci_core::task_list;
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_tools::{Host, spill_preview};
use serde_json::json;

use super::summary_request::SummaryRequest;
use super::{Conversation, Prelude};
use crate::conversation::recorder::Shortened;
use crate::event::EngineEvent;
use crate::extensions::AfterCompaction;
use crate::session::instructions::Opening;
use crate::session::state::change_identity;
use crate::turn::{CompactionOutcome, CompactionRequest, OutputLimit, RequestPlan};

const SWITCHED_OFF: &str = "Compaction is switched off; unset DISABLE_COMPACT to use it";
const NOT_REACTIVE: &str =
    "Compaction after a refusal is switched off (compactionSteps.reactive); use /compact";
const NO_HELP: &str = "The conversation is nearly too long, and compacting it does not help any more. Ask for less \
     output at a time, or begin a new session.";

const REFUSED: &str = "The model declined to summarise the conversation";
const OUT_OF_BUDGET: &str = "The spending limit was reached while the conversation was being summarised";

/// What is remembered from one compaction to the next.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    guard: CompactionGuard,
    /// What a model summarised before it failed; the next attempt goes on from there.
    so_far: Option<Notes>,
    /// The level that was told last.
    told: Option<Level>,
    /// Whether it was told that what every request has leaves little room.
    has_told_crowd: bool,
}

impl Compactor {
    pub(super) fn on_response(&mut self) {
        self.guard.on_response();
    }
}

/// A compaction whose summary is being written.
pub(super) struct PendingCompaction {
    attempt: CompactionAttempt,
    room: ContextRoom,
    trigger: Trigger,
    /// Whether going on as it is would be refused.
    must: bool,
    tokens: u64,
    began: Duration,
    pub(super) asking: SummaryRequest,
}

impl Conversation {
    /// Tells whether the conversation is to be made shorter by a summary before a request. Old results are cleared
    /// first. When compacting has stopped helping, the user is told, once.
    pub(super) fn needs_room(&mut self, plan: &RequestPlan) -> bool {
        if !(plan.may_compact && self.compaction.is_automatic) {
            return false;
        }
        let room = self.room(plan);
        self.tell_crowd(&room);
        if room.is_filled() {
            return false;
        }
        loop {
            match next_context_action(&self.standing(plan)) {
                ContextAction::Nothing => return false,
                ContextAction::Clear(clearing) => {
                    self.recorder.clear(&clearing);
                    self.tell(EngineEvent::ResultsCleared {
                        n_results: clearing.replacements.len(),
                        freed_tokens: clearing.freed,
                    });
                }
                ContextAction::Compact => return true,
                ContextAction::NoHelp => {
                    if self.compactor.guard.take_news() {
                        self.tell(EngineEvent::Warning(NO_HELP.to_owned()));
                    }
                    return false;
                }
            }
        }
    }

    /// Tells people, once, that what every request has leaves a conversation little room, or none.
    fn tell_crowd(&mut self, room: &ContextRoom) {
        if room.is_crowded() && !std::mem::replace(&mut self.compactor.has_told_crowd, true) {
            self.tell(EngineEvent::Warning(crowd(room)));
        }
    }

    /// Returns what bounds the conversation before a request.
    pub(super) fn room(&self, plan: &RequestPlan) -> ContextRoom {
        ContextRoom::from_path(
            self.window(plan),
            self.overhead(),
            self.recorder.path(),
            self.recorder.replaced(),
        )
    }

    /// Returns what bounds a compaction. A window that somebody set, and that has no room for a conversation, bounds nothing
    /// once the server has refused a request: then the model's own does.
    fn room_for(&self, request: &CompactionRequest) -> ContextRoom {
        let plan = self.plan_for(&request.model);
        let Some(message) = &request.refusal else { return self.room(&plan) };
        let estimated = self.overhead() + estimate_path(self.recorder.path(), self.recorder.replaced());
        let window = self.window(&plan);
        let own =
            Window { tokens: window.tokens.max(self.model.catalog.facts(&request.model).window), ..window };
        let room = ContextRoom::new(window, self.overhead());
        let room = if room.is_filled() { ContextRoom::new(own, self.overhead()) } else { room };
        room.refused(message, estimated)
    }

    fn standing(&self, plan: &RequestPlan) -> ContextState<'_> {
        ContextState {
            path: self.recorder.path(),
            replaced: self.recorder.replaced(),
            tools: self.toolbox.facts(),
            window: self.window(plan),
            tokens: self.tokens(),
            compact_from: self.compact_from(plan),
            guard: &self.compactor.guard,
            snips: self.compaction.snips,
            clears_cold: self.compaction.clears_cold,
            now_ms: self.env.clock.now().as_millisecond(),
        }
    }

    /// Puts a result that takes too much of the window into a file, and a preview in its place.
    pub(super) fn within_budget(&mut self, call: &ToolUseId, outcome: &mut ToolOutcome) {
        let ToolContent::Text(text) = &outcome.content else { return };
        if !self.compaction.budgets_results {
            return;
        }
        let tokens = prose_tokens(text);
        let budget = ResultBudget::of(&self.room(&self.usual_plan()));
        if !budget.allows(tokens, self.run.result_tokens) {
            let shown = spill_preview(text, text.len() as u64, self.host.spill(call, text));
            outcome.content = ToolContent::Text(shown);
        }
        if let ToolContent::Text(text) = &outcome.content {
            self.run.result_tokens += prose_tokens(text);
        }
    }

    /// Returns how full the context is.
    pub(super) fn fullness(&self) -> Fullness {
        self.room(&self.usual_plan()).fullness(self.tokens())
    }

    /// Tells when the context has come to another level.
    pub(super) fn tell_level(&mut self) {
        let fullness = self.fullness();
        if self.compactor.told != Some(fullness.level) {
            self.compactor.told = Some(fullness.level);
            self.tell(EngineEvent::Context(fullness));
        }
    }

    /// Says why no prompt is taken, when nothing makes room unasked and there is none left.
    pub(super) fn refusal_of_prompts(&self) -> Option<String> {
        if self.compaction.is_automatic || self.fullness().level < Level::Blocked {
            return None;
        }
        let advice = match self.compaction.is_on {
            true => {
                "Make it shorter with /compact, or begin a new session. Automatic compaction is switched off."
            }
            false => "Begin a new session. Compaction is switched off (DISABLE_COMPACT).",
        };
        Some(format!("The conversation fills the model's window, and the prompt was not sent. {advice}"))
    }

    pub(super) fn window(&self, plan: &RequestPlan) -> Window {
        let facts = self.model.catalog.facts(&plan.model);
        self.compaction.window(&facts, self.base.max_tokens(plan, &self.model))
    }

    pub(super) fn usual_plan(&self) -> RequestPlan {
        self.plan_for(&self.current_model())
    }

    pub(super) fn plan_for(&self, model: &str) -> RequestPlan {
        RequestPlan {
            model: model.to_owned(),
            output: OutputLimit::Usual,
            is_streaming: true,
            may_compact: false,
        }
    }

    pub(super) fn tokens(&self) -> u64 {
        context_tokens(self.recorder.path(), self.recorder.replaced(), self.overhead())
    }

    /// Returns about how many tokens the conversation alone has: prompt, tools and instructions are in every request.
    pub(super) fn conversation_tokens(&self) -> u64 {
        self.tokens().saturating_sub(self.overhead())
    }

    /// Returns about how many tokens a request has besides the conversation.
    pub(super) fn overhead(&self) -> u64 {
        self.base.tokens() + self.prelude.tokens()
    }

    /// Makes the conversation shorter, or begins to.
    pub(super) fn begin_compaction(&mut self, request: &CompactionRequest) {
        if let Some(why) = self.why_not(request) {
            let failure = Failure::new(FailureKind::InvalidRequest, why);
            return self.compaction_over(CompactionOutcome::Failed(failure));
        }
        let subject = self.subject(request);
        let room = subject.room;
        let (notes, so_far) = (self.notes_for_compaction(), self.compactor.so_far.take());
        let Some(attempt) = CompactionAttempt::new(subject, request.keep, notes.as_ref(), so_far) else {
            let end = CompactionOutcome::NothingToDo;
            self.run.tally.text = end.failure().unwrap_or_default();
            return self.compaction_over(end);
        };
        let may_ask = request.trigger == Trigger::Manual || self.compactor.guard.may_ask();
        let step = if may_ask { attempt.begin() } else { CompactionStep::Record(attempt.last_resort()) };
        let tokens = self.tokens();
        let pending = PendingCompaction {
            attempt,
            room,
            trigger: request.trigger,
            must: request.refusal.is_some() || tokens >= room.at_least(room.window.thresholds().usable),
            tokens,
            began: self.env.clock.monotonic(),
            asking: SummaryRequest::new(
                self.turn_limits().models,
                &request.model,
                self.model.catalog.clone(),
            ),
        };
        match step {
            CompactionStep::Ask(messages) => self.ask_for_summary(pending, messages),
            CompactionStep::Record(shorter) => {
                let end = self.put_in_place(&shorter, &pending);
                self.compaction_over(end);
            }
        }
    }

    /// Says why there is no compaction: somebody switched it off, or it cannot help.
    fn why_not(&self, request: &CompactionRequest) -> Option<String> {
        match (self.compaction.is_on, request.refusal.is_some()) {
            (false, _) => Some(SWITCHED_OFF.to_owned()),
            (true, true) if !self.compaction.is_reactive => Some(NOT_REACTIVE.to_owned()),
            (true, _) => {
                let room = self.room_for(request);
                room.is_filled().then(|| crowd(&room))
            }
        }
    }

    pub(super) fn subject(&self, request: &CompactionRequest) -> CompactionInput {
        let (path, replaced) = (self.recorder.path(), self.recorder.replaced());
        let running = self.host.tasks().running().into_iter().map(|task| match task.agent_type() {
            Some(kind) => format!("{}: agent ({kind}): {}", task.id, task.label()),
            None => format!("{}: {}", task.id, task.command),
        });
        let elsewhere = self.ctx.restore_sources.iter().flat_map(|source| source.running());
        CompactionInput {
            path: path.to_vec(),
            replaced: replaced.clone(),
            room: self.room_for(request),
            context: self.opening_block().cloned().unwrap_or_else(|| Block::new_text("")),
            tasks: running.chain(elsewhere).collect(),
            to_do: self.to_do(),
            focus: request.focus.clone(),
            keep_from: self.run.keeps_from.clone(),
        }
    }

    /// Lists the tasks that are not done; a list that cannot be read is read again when the model asks for it.
    fn to_do(&self) -> Vec<String> {
        let list = self.host.task_store().read().unwrap_or_default();
        let open = list.tasks().iter().filter(|task| task.status != task_list::TaskStatus::Completed);
        let todos = self.host.todos();
        let noted = todos.iter().filter(|todo| todo.status != task_list::TaskStatus::Completed);
        let noted = noted.map(|todo| format!("[{}] {}", todo.status.as_str(), todo.content));
        open.map(|task| list.line(task)).chain(noted).collect()
    }

    /// Takes what the model said when it was asked for a summary: records it, asks on, or makes do without.
    pub(super) fn summarised(&mut self, said: Result<(String, Ended), Failure>) {
        let Some(mut pending) = self.run.pending.take() else { return };
        let step = match said {
            Ok((text, ended)) => {
                self.account_summary(&pending, &ended);
                self.next_compaction_step(&mut pending.attempt, &text, &ended)
            }
            // Without its pictures it may not be too large.
            Err(failure) if failure.kind == FailureKind::TooLarge => pending.attempt.as_text().ok_or(failure),
            Err(failure) => match self.wait_before_asking_again(&mut pending.asking, &failure) {
                Some(wait) => return self.send_summary_request(pending, wait),
                None => Err(failure),
            },
        };
        let end = match step {
            Ok(CompactionStep::Ask(messages)) => return self.ask_for_summary(pending, messages),
            Ok(CompactionStep::Record(shorter)) => self.put_in_place(&shorter, &pending),
            Err(failure) => self.fail(failure, &pending),
        };
        self.compaction_over(end);
    }

    /// Makes the next step of an answer; the error says why it is none.
    fn next_compaction_step(
        &self,
        attempt: &mut CompactionAttempt,
        text: &str,
        ended: &Ended,
    ) -> Result<CompactionStep, Failure> {
        if ended.stop_reason.as_deref() == Some("refusal") {
            return Err(Failure::new(FailureKind::InvalidRequest, REFUSED));
        }
        match attempt.on_answer(text) {
            Some(CompactionStep::Ask(_)) if self.is_out_of_budget() => {
                Err(Failure::new(FailureKind::SpendLimit, OUT_OF_BUDGET))
            }
            step => step.ok_or_else(|| Failure::new(FailureKind::Malformed, "The summary is empty")),
        }
    }

    fn is_out_of_budget(&self) -> bool {
        let spent = self.ctx.spent_usd();
        self.limits.max_budget_usd.is_some_and(|limit| spent >= limit)
    }

    fn account_summary(&mut self, pending: &PendingCompaction, ended: &Ended) {
        self.run.tally.usage.add(&ended.usage);
        let model = pending.asking.model();
        self.ctx.background_budget.record(self.is_background(), model, &ended.usage);
        let facts = self.model.catalog.facts(model);
        change_identity(&self.ctx.identity, |identity| {
            identity.totals.add(model, &facts, &ended.usage);
        });
    }

    /// No summary could be had. What must be shorter is made shorter by rule; anything else is left as it is.
    fn fail(&mut self, failure: Failure, pending: &PendingCompaction) -> CompactionOutcome {
        self.compactor.guard.failed();
        self.compactor.so_far = pending.attempt.so_far().cloned();
        match pending.must {
            true => self.put_in_place(&pending.attempt.last_resort(), pending),
            false => CompactionOutcome::Failed(failure),
        }
    }

    /// Puts a summary in the place of what it stands for.
    fn put_in_place(&mut self, shorter: &CompactionResult, pending: &PendingCompaction) -> CompactionOutcome {
        let past = self.recorder.path().to_vec();
        let shortened = self.recorder.compact(&Shortened {
            shorter,
            trigger: pending.trigger,
            tokens_before: pending.tokens,
            overhead: self.overhead(),
            duration: self.env.clock.monotonic().saturating_sub(pending.began),
        });
        let Some((boundary, summary)) = shortened else {
            return CompactionOutcome::Failed(Failure::new(
                FailureKind::Malformed,
                "The summary could not be written",
            ));
        };
        if pending.trigger == Trigger::Manual {
            self.run.tally.text = "The conversation goes on from its summary.".to_owned();
        }
        // What a fork goes on from is cached with all of its tools.
        if !matches!(self.prelude, Prelude::Fork { .. }) {
            self.drop_retired_tools();
        }
        self.reread_instructions();
        self.restore_plan();
        self.restore_used(&past, &pending.room);
        self.restore_files(RestoreBudget::FILES.within(self.room_left(&pending.room)));
        self.compactor.guard.succeeded();
        let tokens = self.conversation_tokens();
        self.helpers.context_compacted(tokens);
        self.tell(EngineEvent::Compacted {
            metadata: CompactionCarryover::strip(
                boundary.fields().read("compactMetadata").unwrap_or_default(),
            ),
        });
        self.tell_user(Some(&summary), None);
        self.tell_level();
        let (trigger, summary) = (pending.trigger, shorter.summary.clone());
        self.run.compacted = Some(AfterCompaction { trigger, summary, moment: self.hook_moment() });
        CompactionOutcome::Done
    }

    /// Puts the files that were read last before the model again: the summary does not hold their text.
    /// Instructions of the start are sent all the same; those met on the way come back with their files.
    fn restore_files(&mut self, budget: RestoreBudget) {
        let plan = self.ctx.plans.file();
        let is_told = |path: &Path| {
            plan.as_deref() == Some(path)
                || self.instructions.lazy.as_ref().is_some_and(|lazy| lazy.has(path))
        };
        let files = self.host.files_to_restore(budget, is_told);
        if let Some(lazy) = &mut self.instructions.lazy {
            lazy.forget();
        }
        for (path, content) in files {
            let n_lines = content.lines().count();
            let name = path.display().to_string();
            let shown = path.strip_prefix(&self.env.cwd).unwrap_or(&path).display().to_string();
            let file = json!({"filePath": name, "content": content, "numLines": n_lines, "startLine": 1, "totalLines": n_lines});
            let content = json!({"type": "text", "file": file});
            self.recorder.attachment(Attachment::File { filename: name, content, display_path: Some(shown) });
        }
    }

    /// Puts what else was used before the model again, as something to look at.
    fn restore_used(&mut self, past: &[Arc<Entry>], room: &ContextRoom) {
        for source in self.ctx.restore_sources.clone() {
            let (used, budget) = source.used(past);
            for item in restored(used, budget.within(self.room_left(room))) {
                self.recorder.attachment(item.attachment());
            }
        }
    }

    /// Returns how many tokens there are up to what a compaction aims at.
    fn room_left(&self, room: &ContextRoom) -> u64 {
        room.left(estimate_path(self.recorder.path(), self.recorder.replaced()))
    }

    /// Returns the words that open the conversation, where it has some of its own.
    pub(super) fn opening_block(&self) -> Option<&Block> {
        match &self.prelude {
            Prelude::Opening(opening) => opening.as_ref().map(Opening::block),
            Prelude::Fork { .. } => None,
        }
    }
}

/// Says what takes the room of a conversation, and what to do about it.
fn crowd(room: &ContextRoom) -> String {
    let (overhead, most) = (room.overhead, room.limit());
    let what = match room.is_filled() {
        true => "and compacting the conversation cannot help",
        false => "so there is little room for a conversation, and it will be compacted often",
    };
    format!(
        "The system prompt, tools and instruction files take about {overhead} of the {most} tokens that a request can \
         have, {what}. Make instruction files shorter, or choose a model with a larger window."
    )
}
