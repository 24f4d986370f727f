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
use loci_core::ids::{EntryId, ToolUseId};
use loci_core::message::Block;
use loci_core::stream::{Ended, Failure, FailureKind};
use loci_core::task_list;
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_tools::{Host, spill_preview};
use serde_json::json;

use super::context_sources::ContextSources;
use super::plan;
use super::running_turn::TurnCalls;
use super::scope::ConversationScope;
use super::summary_request::SummaryRequest;
use super::tally::Tally;
use super::tool_set::ToolSet;
use super::{Conversation, Helpers, Prelude};
use crate::conversation::recorder::{Recorder, Shortened};
use crate::event::EngineEvent;
use crate::extensions::AfterCompaction;
use crate::session::config::CompactionConfig;
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

/// Makes a conversation shorter, and remembers what came of it from one time to the next.
#[derive(Default)]
pub(crate) struct Compactor {
    pub(super) config: CompactionConfig,
    guard: CompactionGuard,
    /// What a model summarised before it failed; the next attempt goes on from there.
    so_far: Option<Notes>,
    /// The level that was told last.
    told: Option<Level>,
    /// Whether it was told that what every request has leaves little room.
    has_told_crowd: bool,
    /// Whether somebody was told that the server cuts prompts.
    pub(super) has_warned_of_cuts: bool,
    /// Whether the turn at hand is that of a command that makes the conversation shorter.
    pub(super) is_command: bool,
    /// The compaction whose summary is being written.
    pub(super) pending: Option<PendingCompaction>,
    /// The message from which on a compaction that the user wants keeps everything.
    pub(super) keeps_from: Option<EntryId>,
    /// What a compaction made, for those who want to know.
    pub(super) compacted: Option<AfterCompaction>,
}

impl Compactor {
    pub(super) fn new(config: CompactionConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Forgets what the last turn had under way.
    pub(super) fn begin_turn(&mut self) {
        (self.is_command, self.pending, self.keeps_from, self.compacted) = (false, None, None, None);
    }

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
    /// Makes the conversation shorter, or begins to.
    pub(super) fn begin_compaction(&mut self, request: &CompactionRequest) {
        if let Some(why) = self.compaction.why_not(&self.scope, &self.recorder, &self.sources, request) {
            let failure = Failure::new(FailureKind::InvalidRequest, why);
            return self.compaction.compaction_over(
                &self.scope,
                &self.recorder,
                &self.sources,
                &mut self.run.tasks,
                CompactionOutcome::Failed(failure),
            );
        }
        let subject = self.compaction.subject(&self.scope, &self.recorder, &self.sources, request);
        let room = subject.room;
        let (notes, so_far) =
            (self.helpers.notes_for_compaction(&self.recorder), self.compaction.so_far.take());
        let Some(attempt) = CompactionAttempt::new(subject, request.keep, notes.as_ref(), so_far) else {
            let end = CompactionOutcome::NothingToDo;
            self.run.tally.text = end.failure().unwrap_or_default();
            return self.compaction.compaction_over(
                &self.scope,
                &self.recorder,
                &self.sources,
                &mut self.run.tasks,
                end,
            );
        };
        let may_ask = request.trigger == Trigger::Manual || self.compaction.guard.may_ask();
        let step = if may_ask { attempt.begin() } else { CompactionStep::Record(attempt.last_resort()) };
        let tokens = self.sources.tokens(&self.recorder);
        let pending = PendingCompaction {
            attempt,
            room,
            trigger: request.trigger,
            must: request.refusal.is_some() || tokens >= room.at_least(room.window.thresholds().usable),
            tokens,
            began: self.scope.env.clock.monotonic(),
            asking: SummaryRequest::new(
                self.scope.turn_limits(&self.tools).models,
                &request.model,
                self.scope.model.catalog.clone(),
            ),
        };
        match step {
            CompactionStep::Ask(messages) => self.compaction.ask_for_summary(
                &self.scope,
                &self.sources,
                &mut self.run.tasks,
                pending,
                messages,
            ),
            CompactionStep::Record(shorter) => {
                let end = self.put_in_place(&shorter, &pending);
                self.compaction.compaction_over(
                    &self.scope,
                    &self.recorder,
                    &self.sources,
                    &mut self.run.tasks,
                    end,
                );
            }
        }
    }

    /// Takes what the model said when it was asked for a summary: records it, asks on, or makes do without.
    pub(super) fn summarised(&mut self, said: Result<(String, Ended), Failure>) {
        let Some(mut pending) = self.compaction.pending.take() else { return };
        let step = match said {
            Ok((text, ended)) => {
                self.scope.account_summary(&mut self.run.tally, &pending, &ended);
                self.scope.next_compaction_step(&mut pending.attempt, &text, &ended)
            }
            // Without its pictures it may not be too large.
            Err(failure) if failure.kind == FailureKind::TooLarge => pending.attempt.as_text().ok_or(failure),
            Err(failure) => {
                match self.sources.wait_before_asking_again(&self.scope, &mut pending.asking, &failure) {
                    Some(wait) => {
                        return self.compaction.send_summary_request(
                            &self.scope,
                            &self.sources,
                            &mut self.run.tasks,
                            pending,
                            wait,
                        );
                    }
                    None => Err(failure),
                }
            }
        };
        let end = match step {
            Ok(CompactionStep::Ask(messages)) => {
                return self.compaction.ask_for_summary(
                    &self.scope,
                    &self.sources,
                    &mut self.run.tasks,
                    pending,
                    messages,
                );
            }
            Ok(CompactionStep::Record(shorter)) => self.put_in_place(&shorter, &pending),
            Err(failure) => self.fail(failure, &pending),
        };
        self.compaction.compaction_over(&self.scope, &self.recorder, &self.sources, &mut self.run.tasks, end);
    }

    /// No summary could be had. What must be shorter is made shorter by rule; anything else is left as it is.
    fn fail(&mut self, failure: Failure, pending: &PendingCompaction) -> CompactionOutcome {
        self.compaction.guard.failed();
        self.compaction.so_far = pending.attempt.so_far().cloned();
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
            overhead: self.sources.overhead(),
            duration: self.scope.env.clock.monotonic().saturating_sub(pending.began),
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
        if !matches!(self.sources.prelude, Prelude::Fork { .. }) {
            self.tools.drop_retired_tools(&self.scope, &mut self.recorder, &mut self.sources);
        }
        self.sources.reread_instructions(&self.scope, &self.recorder);
        plan::restore_plan(&mut self.recorder, &self.scope);
        self.recorder.restore_used(&self.scope, &past, &pending.room);
        let budget = RestoreBudget::FILES.within(self.recorder.room_left(&pending.room));
        self.sources.restore_files(&self.scope, &mut self.recorder, budget);
        self.compaction.guard.succeeded();
        let tokens = self.sources.conversation_tokens(&self.recorder);
        self.helpers.context_compacted(tokens);
        self.scope.tell(EngineEvent::Compacted {
            metadata: CompactionCarryover::strip(
                boundary.fields().read("compactMetadata").unwrap_or_default(),
            ),
        });
        self.scope.tell_user(Some(&summary), None);
        self.compaction.tell_level(&self.scope, &self.recorder, &self.sources);
        let (trigger, summary) = (pending.trigger, shorter.summary.clone());
        self.compaction.compacted =
            Some(AfterCompaction { trigger, summary, moment: self.scope.hook_moment(&self.recorder) });
        CompactionOutcome::Done
    }
}

impl Compactor {
    /// Tells whether the conversation is to be made shorter by a summary before a request. Old results are cleared
    /// first. When compacting has stopped helping, the user is told, once.
    pub(super) fn needs_room(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        sources: &ContextSources,
        tool_set: &ToolSet,
        helpers: &Helpers,
        plan: &RequestPlan,
    ) -> bool {
        if !(plan.may_compact && self.config.is_automatic) {
            return false;
        }
        let room = self.room(scope, recorder, sources, plan);
        self.tell_crowd(scope, &room);
        if room.is_filled() {
            return false;
        }
        loop {
            match next_context_action(&self.standing(scope, recorder, sources, tool_set, helpers, plan)) {
                ContextAction::Nothing => return false,
                ContextAction::Clear(clearing) => {
                    recorder.clear(&clearing);
                    scope.tell(EngineEvent::ResultsCleared {
                        n_results: clearing.replacements.len(),
                        freed_tokens: clearing.freed,
                    });
                }
                ContextAction::Compact => return true,
                ContextAction::NoHelp => {
                    if self.guard.take_news() {
                        scope.tell(EngineEvent::Warning(NO_HELP.to_owned()));
                    }
                    return false;
                }
            }
        }
    }

    /// Tells people, once, that what every request has leaves a conversation little room, or none.
    fn tell_crowd(&mut self, scope: &ConversationScope, room: &ContextRoom) {
        if room.is_crowded() && !std::mem::replace(&mut self.has_told_crowd, true) {
            scope.tell(EngineEvent::Warning(crowd(room)));
        }
    }

    /// Returns what bounds the conversation before a request.
    pub(super) fn room(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        plan: &RequestPlan,
    ) -> ContextRoom {
        ContextRoom::from_path(
            self.window(scope, sources, plan),
            sources.overhead(),
            recorder.path(),
            recorder.replaced(),
        )
    }

    /// Returns what bounds a compaction. A window that somebody set, and that has no room for a conversation, bounds nothing
    /// once the server has refused a request: then the model's own does.
    fn room_for(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        request: &CompactionRequest,
    ) -> ContextRoom {
        let plan = scope.plan_for(&request.model);
        let Some(message) = &request.refusal else { return self.room(scope, recorder, sources, &plan) };
        let estimated = sources.overhead() + estimate_path(recorder.path(), recorder.replaced());
        let window = self.window(scope, sources, &plan);
        let own =
            Window { tokens: window.tokens.max(scope.model.catalog.facts(&request.model).window), ..window };
        let room = ContextRoom::new(window, sources.overhead());
        let room = if room.is_filled() { ContextRoom::new(own, sources.overhead()) } else { room };
        room.refused(message, estimated)
    }

    fn standing<'a>(
        &'a self,
        scope: &ConversationScope,
        recorder: &'a Recorder,
        sources: &ContextSources,
        tool_set: &'a ToolSet,
        helpers: &'a Helpers,
        plan: &RequestPlan,
    ) -> ContextState<'a> {
        ContextState {
            path: recorder.path(),
            replaced: recorder.replaced(),
            tools: tool_set.toolbox.facts(),
            window: self.window(scope, sources, plan),
            tokens: sources.tokens(recorder),
            compact_from: helpers.compact_from(scope, recorder, sources, self, plan),
            guard: &self.guard,
            snips: self.config.snips,
            clears_cold: self.config.clears_cold,
            now_ms: scope.env.clock.now().as_millisecond(),
        }
    }

    /// Puts a result that takes too much of the window into a file, and a preview in its place.
    pub(super) fn within_budget(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        turn_calls: &mut TurnCalls,
        call: &ToolUseId,
        outcome: &mut ToolOutcome,
    ) {
        let ToolContent::Text(text) = &outcome.content else { return };
        if !self.config.budgets_results {
            return;
        }
        let tokens = prose_tokens(text);
        let budget = ResultBudget::of(&self.room(scope, recorder, sources, &scope.usual_plan()));
        if !budget.allows(tokens, turn_calls.result_tokens) {
            let shown = spill_preview(text, text.len() as u64, scope.host.spill(call, text));
            outcome.content = ToolContent::Text(shown);
        }
        if let ToolContent::Text(text) = &outcome.content {
            turn_calls.result_tokens += prose_tokens(text);
        }
    }

    /// Returns how full the context is.
    pub(super) fn fullness(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
    ) -> Fullness {
        self.room(scope, recorder, sources, &scope.usual_plan()).fullness(sources.tokens(recorder))
    }

    /// Tells when the context has come to another level.
    pub(super) fn tell_level(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
    ) {
        let fullness = self.fullness(scope, recorder, sources);
        if self.told != Some(fullness.level) {
            self.told = Some(fullness.level);
            scope.tell(EngineEvent::Context(fullness));
        }
    }

    /// Says why no prompt is taken, when nothing makes room unasked and there is none left.
    pub(super) fn refusal_of_prompts(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
    ) -> Option<String> {
        if self.config.is_automatic || self.fullness(scope, recorder, sources).level < Level::Blocked {
            return None;
        }
        let advice = match self.config.is_on {
            true => {
                "Make it shorter with /compact, or begin a new session. Automatic compaction is switched off."
            }
            false => "Begin a new session. Compaction is switched off (DISABLE_COMPACT).",
        };
        Some(format!("The conversation fills the model's window, and the prompt was not sent. {advice}"))
    }

    pub(super) fn window(
        &self,
        scope: &ConversationScope,
        sources: &ContextSources,
        plan: &RequestPlan,
    ) -> Window {
        let facts = scope.model.catalog.facts(&plan.model);
        self.config.window(&facts, sources.base.max_tokens(plan, &scope.model))
    }

    /// Says why there is no compaction: somebody switched it off, or it cannot help.
    fn why_not(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        request: &CompactionRequest,
    ) -> Option<String> {
        match (self.config.is_on, request.refusal.is_some()) {
            (false, _) => Some(SWITCHED_OFF.to_owned()),
            (true, true) if !self.config.is_reactive => Some(NOT_REACTIVE.to_owned()),
            (true, _) => {
                let room = self.room_for(scope, recorder, sources, request);
                room.is_filled().then(|| crowd(&room))
            }
        }
    }

    pub(super) fn subject(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        sources: &ContextSources,
        request: &CompactionRequest,
    ) -> CompactionInput {
        let (path, replaced) = (recorder.path(), recorder.replaced());
        let running = scope.host.tasks().running().into_iter().map(|task| match task.agent_type() {
            Some(kind) => format!("{}: agent ({kind}): {}", task.id, task.label()),
            None => format!("{}: {}", task.id, task.command),
        });
        let elsewhere = scope.ctx.restore_sources.iter().flat_map(|source| source.running());
        CompactionInput {
            path: path.to_vec(),
            replaced: replaced.clone(),
            room: self.room_for(scope, recorder, sources, request),
            context: sources.opening_block().cloned().unwrap_or_else(|| Block::new_text("")),
            tasks: running.chain(elsewhere).collect(),
            to_do: scope.to_do(),
            focus: request.focus.clone(),
            keep_from: self.keeps_from.clone(),
        }
    }
}

impl ConversationScope {
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

    /// Lists the tasks that are not done; a list that cannot be read is read again when the model asks for it.
    fn to_do(&self) -> Vec<String> {
        let list = self.host.task_store().read().unwrap_or_default();
        let open = list.tasks().iter().filter(|task| task.status != task_list::TaskStatus::Completed);
        let todos = self.host.todos();
        let noted = todos.iter().filter(|todo| todo.status != task_list::TaskStatus::Completed);
        let noted = noted.map(|todo| format!("[{}] {}", todo.status.as_str(), todo.content));
        open.map(|task| list.line(task)).chain(noted).collect()
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

    fn account_summary(&self, tally: &mut Tally, pending: &PendingCompaction, ended: &Ended) {
        tally.usage.add(&ended.usage);
        let model = pending.asking.model();
        self.ctx.usage.background_budget.record(self.is_background(), model, &ended.usage);
        let facts = self.model.catalog.facts(model);
        change_identity(&self.ctx.identity, |identity| {
            identity.totals.add(model, &facts, &ended.usage);
        });
    }
}

impl ContextSources {
    pub(super) fn tokens(&self, recorder: &Recorder) -> u64 {
        context_tokens(recorder.path(), recorder.replaced(), self.overhead())
    }

    /// Returns about how many tokens the conversation alone has: prompt, tools and instructions are in every request.
    pub(super) fn conversation_tokens(&self, recorder: &Recorder) -> u64 {
        self.tokens(recorder).saturating_sub(self.overhead())
    }

    /// Returns about how many tokens a request has besides the conversation.
    pub(super) fn overhead(&self) -> u64 {
        self.base.tokens() + self.prelude.tokens()
    }

    /// Puts the files that were read last before the model again: the summary does not hold their text.
    /// Instructions of the start are sent all the same; those met on the way come back with their files.
    fn restore_files(&mut self, scope: &ConversationScope, recorder: &mut Recorder, budget: RestoreBudget) {
        let plan = scope.ctx.plans.file();
        let is_told = |path: &Path| {
            plan.as_deref() == Some(path)
                || self.instructions.lazy.as_ref().is_some_and(|lazy| lazy.has(path))
        };
        let files = scope.host.files_to_restore(budget, is_told);
        if let Some(lazy) = &mut self.instructions.lazy {
            lazy.forget();
        }
        for (path, content) in files {
            let n_lines = content.lines().count();
            let name = path.display().to_string();
            let shown = path.strip_prefix(&scope.env.cwd).unwrap_or(&path).display().to_string();
            let file = json!({"filePath": name, "content": content, "numLines": n_lines, "startLine": 1, "totalLines": n_lines});
            let content = json!({"type": "text", "file": file});
            recorder.attachment(Attachment::File { filename: name, content, display_path: Some(shown) });
        }
    }

    /// Returns the words that open the conversation, where it has some of its own.
    pub(super) fn opening_block(&self) -> Option<&Block> {
        match &self.prelude {
            Prelude::Opening(opening) => opening.as_ref().map(Opening::block),
            Prelude::Fork { .. } => None,
        }
    }
}

impl Recorder {
    /// Puts what else was used before the model again, as something to look at.
    fn restore_used(&mut self, scope: &ConversationScope, past: &[Arc<Entry>], room: &ContextRoom) {
        for source in scope.ctx.restore_sources.clone() {
            let (used, budget) = source.used(past);
            for item in restored(used, budget.within(self.room_left(room))) {
                self.attachment(item.attachment());
            }
        }
    }

    /// Returns how many tokens there are up to what a compaction aims at.
    fn room_left(&self, room: &ContextRoom) -> u64 {
        room.left(estimate_path(self.path(), self.replaced()))
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
