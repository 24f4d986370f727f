//! What the session says, as changes of what is shown.

use std::sync::Arc;
use std::time::Duration;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_core::permission::Mode;
use loci_core::stream::{Delta, StreamEvent};
use loci_core::tool::AskedChange;
use loci_engine::turn::Outcome;
use loci_engine::{
    AgentRef, Command, EngineEvent, Goal, GoalVerdict, HookRunStarted, LocalCommandOutput, ModelChoice,
    ModelRefusal, Question, ResumedHistory, RunnerEvent, TurnReport, TurnStart, UserMessage,
};
use serde_json::Value;

use super::commands::MODEL_REQUEST;
use super::conversation::result_text;
use super::speech::TurnMark;
use super::terminal_shell::SHELL_REQUEST;
use super::{App, Effect, history_blocks};
use crate::block::{Block, NoticeLevel};
use crate::dialog::{PermissionDialog, UserQuestionsDialog};
use crate::input::{Draft, InputMode};
use crate::interface_settings::InterfaceSettings;
use crate::notebook_preview::NOTEBOOK_EDIT;
use crate::panel::{PanelData, PanelRequest};
use crate::status::{AGENTS_REQUEST, Activity, STATUS_REQUEST, Work, mode_name, short_count, spent};

/// The most letters of what a hook wants shown.
const MOST_STATUS: usize = 80;
/// The most of a hook's objection that is shown.
const MOST_OBJECTION: usize = 300;

/// Whoever listens is told of the end of a call that took longer.
const LONG_CALL: Duration = Duration::from_secs(5);

/// Tells whether the status line may have something else to show after an event.
fn changes_status(event: &EngineEvent) -> bool {
    matches!(
        event,
        EngineEvent::Assistant(_)
            | EngineEvent::Compacted { .. }
            | EngineEvent::ModeChanged(_)
            | EngineEvent::ModelChanged(_)
            | EngineEvent::SandboxStatus(_)
            | EngineEvent::TurnEnded(_)
            | EngineEvent::Resumed(_)
    )
}

impl App {
    pub(super) fn runner_event(&mut self, event: RunnerEvent) -> Vec<Effect> {
        match event {
            RunnerEvent::Session(event) => self.engine_event(event),
            RunnerEvent::Renewed(id) => {
                self.status_line.trigger(self.now);
                // The one that takes its place tells what it works towards.
                self.session.goal = None;
                self.renewed(id.to_string())
            }
            RunnerEvent::RenewalFailed(problem) => {
                self.notice(NoticeLevel::Error, problem);
                Vec::new()
            }
        }
    }

    fn engine_event(&mut self, event: EngineEvent) -> Vec<Effect> {
        if changes_status(&event) {
            self.status_line.trigger(self.now);
        }
        self.tell_ended_tasks();
        match event {
            EngineEvent::Resumed(history) => {
                self.session.has_turns = true;
                // What came before the last compaction, too, is on disk alone.
                self.log.leave_out(1);
                if self.has_shown(&history) {
                    return Vec::new();
                }
                let blocks = history_blocks(&history.entries, &self.options.cwd);
                blocks.into_iter().for_each(|block| self.conversation.push(block));
            }
            EngineEvent::Agent { agent, event } => return self.agent_event(&agent, *event),
            EngineEvent::TurnStarted(start) => {
                self.turn_started(start);
                return self.turn_mark(TurnMark::Begin);
            }
            EngineEvent::PromptRecorded { message, attached, .. } => self.prompt_recorded(&message, attached),
            EngineEvent::Dequeued { id, text, is_injected, attached } => {
                self.dequeued(&id, &text, is_injected, attached);
            }
            EngineEvent::QueueTakenBack(prompts) => self.queue_taken_back(&prompts),
            EngineEvent::Requesting => {
                self.set_activity(Activity::Waiting);
                if let Some(work) = &mut self.work {
                    work.is_unanswered = true;
                }
            }
            EngineEvent::Stream { event, .. } => self.stream(&event),
            EngineEvent::Assistant(block) => {
                if block.error.is_some() {
                    let text = result_text(&block.message["content"]);
                    if !self.is_told(&text) {
                        // The label says that it is an error.
                        let text = text.strip_prefix("API Error: ").unwrap_or(&text).to_owned();
                        self.notice(NoticeLevel::Error, text);
                    }
                }
            }
            EngineEvent::User(message) => return self.user_message(&message),
            EngineEvent::Retry { attempt, max_retries, delay, failure } => {
                self.conversation.drop_partial();
                let text = format!("{} (attempt {attempt} of {max_retries})", failure.message);
                self.set_activity(Activity::Retrying { text, at: self.now + delay });
            }
            EngineEvent::Fallback { from, to, failure } => {
                self.conversation.drop_partial();
                let text = format!("{from} failed ({}); {to} takes over for this turn", failure.message);
                self.notice(NoticeLevel::Warning, text);
            }
            EngineEvent::ResultsCleared { n_results, freed_tokens } => {
                let text = format!(
                    "{n_results} old results of calls are sent as a short marker from now on ({} tokens less)",
                    short_count(freed_tokens)
                );
                self.notice(NoticeLevel::Info, text);
            }
            EngineEvent::Compacting => self.set_activity(Activity::Compacting),
            EngineEvent::Compacted { metadata } => {
                self.show_compact_command();
                let text = compaction_text(&metadata);
                self.conversation.push(Block::Compaction { text });
            }
            EngineEvent::CompactionEnded { failure } => {
                if let Some(failure) = failure {
                    // It was heard, and it would not go better if it stood in the prompt again.
                    let was_asked_for = self.show_compact_command();
                    self.notice(
                        NoticeLevel::Warning,
                        format!("The conversation was not compacted: {failure}"),
                    );
                    if was_asked_for {
                        self.note_told(failure);
                    }
                }
            }
            EngineEvent::Context(fullness) => self.session.context = Some(fullness),
            EngineEvent::QuestionAsked(question) => return self.enqueue_question(question),
            EngineEvent::QuestionWithdrawn { question } => {
                self.question_over(&question);
                self.dialogs.withdraw(&question);
            }
            EngineEvent::Progress { call, progress } => self.conversation.progress(&call, &progress),
            EngineEvent::ShellStarted { call, command } => self.shell_started(call, command),
            EngineEvent::ShellEnded { call, output } => self.shell_ended(&call, &output),
            EngineEvent::TasksChanged(tasks) => return self.take_tasks(tasks),
            EngineEvent::CommandsChanged(commands) => {
                let mut actions = self.take_commands(commands);
                actions.extend(self.servers_changed());
                return actions;
            }
            EngineEvent::ElicitationCompleted { server, .. } => {
                let text =
                    format!("The MCP server {server} says that what was to be done at its page is done");
                self.notice(NoticeLevel::Info, text);
            }
            EngineEvent::ModeChanged(mode) => self.say_mode(mode),
            EngineEvent::ModelChanged(model) => {
                self.flash(format!("The model is {model} from now on"));
                self.session.model = model;
            }
            EngineEvent::SandboxStatus(status) => {
                self.session.sandbox = Some(status.to_string());
                self.session.is_sandbox_strict = !status.allows_unsandboxed;
            }
            EngineEvent::SettingsChanged(settings) => {
                self.take_interface_settings(InterfaceSettings::from_value(&settings));
            }
            EngineEvent::HookStarted(HookRunStarted { status: Some(status), .. }) => {
                self.set_activity(Activity::Running(loci_stdx::single_line(&status, MOST_STATUS)));
            }
            EngineEvent::Task(news) => return self.task_news(news),
            EngineEvent::SideAnswered { request, outcome } => {
                return self.panel_data(PanelData::SideAnswer { request, outcome });
            }
            EngineEvent::Snapshot { request, snapshot } if request == STATUS_REQUEST => {
                return self.status_line.run(snapshot).into_iter().collect();
            }
            EngineEvent::Snapshot { request, snapshot } if request == AGENTS_REQUEST => {
                return self.agent_rows.take(snapshot, self.now).into_iter().collect();
            }
            EngineEvent::Snapshot { request, snapshot } if request == MODEL_REQUEST => {
                return self.switch_model(snapshot);
            }
            EngineEvent::Snapshot { request, snapshot } if request == SHELL_REQUEST => {
                return self.run_on_terminal(&snapshot);
            }
            EngineEvent::Snapshot { snapshot, .. } => return self.panel_data(PanelData::Snapshot(snapshot)),
            EngineEvent::McpAnswered { outcome, .. } => {
                let page = |answer: Option<Value>| Some(answer?.get("authUrl")?.as_str()?.to_owned());
                return self.panel_data(PanelData::ServersChanged(outcome.map(page)));
            }
            EngineEvent::DirectoryAdded { outcome, .. } => {
                if let Err(why) = outcome {
                    self.notice(NoticeLevel::Warning, why);
                }
            }
            EngineEvent::LocalCommand(output) => {
                self.local_command(&output);
                // What was changed about the interface counts at once.
                if output.name == "config" && output.argument.is_some() {
                    return vec![Effect::AskPanel(PanelRequest::Settings)];
                }
            }
            EngineEvent::AgentMessaged { outcome, .. } => {
                return self.panel_data(PanelData::AgentMessaged(outcome));
            }
            EngineEvent::GoalChanged(goal) => self.goal_changed(goal.map(|goal| goal.condition)),
            EngineEvent::GoalChecked { goal, verdict, reason } => self.goal_checked(&goal, &verdict, &reason),
            EngineEvent::TerminalSequence(sequence) => return vec![Effect::Write(sequence)],
            EngineEvent::Warning(text) => {
                self.notice(NoticeLevel::Warning, text);
                return self.servers_changed();
            }
            EngineEvent::ModelAnswered { outcome, .. } => self.model_answered(outcome),
            EngineEvent::TurnEnded(report) => return self.turn_ended(&report),
            EngineEvent::HookEnded(ended) => {
                self.hook_status_over(&ended.run);
                if let Some(why) = ended.objection {
                    let why = loci_stdx::single_line(&why, MOST_OBJECTION);
                    self.notice(NoticeLevel::Warning, format!("{} hook: {why}", ended.run.name));
                }
            }
            EngineEvent::HookStarted(_)
            | EngineEvent::HookProgress(_)
            | EngineEvent::PermissionDenied { .. }
            | EngineEvent::AgentRefused(_)
            | EngineEvent::PluginsReloaded { .. }
            | EngineEvent::TranscriptLines { .. }
            | EngineEvent::PromptCancelled { .. }
            | EngineEvent::TurnsOver { .. }
            | EngineEvent::StopAnswered { .. }
            | EngineEvent::FilesRewound { .. } => {}
        }
        Vec::new()
    }

    /// Shows the end of a session that goes on, before it is there.
    pub(super) fn show_tail(&mut self, blocks: Vec<Block>, entries: Vec<EntryId>) {
        self.tail = Some(entries);
        blocks.into_iter().for_each(|block| self.conversation.push(block));
    }

    /// Tells whether the end of what was said before is shown already. Where the session goes on with another branch than the
    /// one that the end of its file has, that is told, and the right one is shown.
    fn has_shown(&mut self, history: &ResumedHistory) -> bool {
        let Some(shown) = self.tail.take() else { return false };
        let ids = |entries: &[Arc<Entry>]| -> Vec<EntryId> {
            entries.iter().filter_map(|entry| entry.head().uuid.clone()).collect()
        };
        let whole = ids(&history.entries);
        if whole.ends_with(&shown) || shown.ends_with(&whole) {
            return true;
        }
        let text = "The session goes on with another branch than the one above, with this one:";
        self.notice(NoticeLevel::Info, text);
        false
    }

    /// Tells what came of asking another model for this session alone.
    fn model_answered(&mut self, outcome: Result<ModelChoice, ModelRefusal>) {
        match outcome {
            Ok(choice) => {
                let text = format!("The model is `{}` now, for this session only", choice.model);
                self.notice(NoticeLevel::Info, text);
            }
            Err(refusal) => self.notice(NoticeLevel::Warning, refusal.to_string()),
        }
    }

    /// What a hook wanted shown while it ran goes with it.
    fn hook_status_over(&mut self, run: &HookRunStarted) {
        if run.status.is_some() {
            let next = self.conversation.waiting_summary();
            self.set_activity(next.map_or(Activity::Waiting, Activity::Running));
        }
    }

    fn turn_started(&mut self, start: TurnStart) {
        self.session.model = start.model;
        self.session.mode = start.mode;
        self.session.commands = start.commands;
        self.session.has_turns = true;
        let words = &self.interface.spinner_words;
        let tip = words.tip(self.n_turns).filter(|_| self.options.plain.is_none()).map(str::to_owned);
        let verb = words.verb(self.n_turns).map(str::to_owned);
        self.n_turns += 1;
        let is_prompt_awaited = self.queue.has_sent();
        self.work = Some(Work { since: self.now, verb, tip, is_prompt_awaited, ..Work::default() });
    }

    /// Notes why a compaction failed: it is told as an answer that failed, too, and as a turn that did.
    fn note_told(&mut self, failure: String) {
        if let Some(work) = &mut self.work {
            work.told = Some(failure);
        }
    }

    fn is_told(&self, text: &str) -> bool {
        self.work.as_ref().and_then(|work| work.told.as_deref()).is_some_and(|told| text.ends_with(told))
    }

    fn prompt_recorded(&mut self, message: &Value, attachments: Vec<String>) {
        let text = self
            .take_sent()
            .map_or_else(|| result_text(&message["content"]), |draft| draft.display().trim().to_owned());
        self.conversation.push(Block::Prompt { text, attachments });
    }

    /// Takes the prompt that the turn at hand has heard. Others that were sent have turns of their own.
    fn take_sent(&mut self) -> Option<Draft> {
        if let Some(work) = &mut self.work {
            work.is_prompt_awaited = false;
        }
        self.queue.take_sent()
    }

    /// Shows the command that asked for a compaction, if one did; nothing else tells that it was heard.
    fn show_compact_command(&mut self) -> bool {
        let is_command = |draft: &Draft| draft.display().trim_start().starts_with("/compact");
        if self.queue.sent().next().is_some_and(is_command)
            && let Some(draft) = self.take_sent()
        {
            let text = draft.display().trim().to_owned();
            self.conversation.push(Block::Prompt { text, attachments: Vec::new() });
            return true;
        }
        false
    }

    /// Shows what a command said that needed no model.
    fn local_command(&mut self, output: &LocalCommandOutput) {
        if !output.has_prompt {
            let typed = format!("/{} {}", output.name, output.argument.as_deref().unwrap_or_default());
            let sent = self.take_sent().map(|draft| draft.display());
            let text = sent.unwrap_or(typed).trim().to_owned();
            self.conversation.push(Block::Prompt { text, attachments: Vec::new() });
        }
        match output.is_error {
            true => self.notice(NoticeLevel::Error, output.text.clone()),
            false => self.conversation.push(Block::Output { markdown: output.text.clone() }),
        }
    }

    fn dequeued(&mut self, id: &str, text: &str, is_injected: bool, attachments: Vec<String>) {
        let draft = self.queue.take_queued(id).unwrap_or_else(|| Draft::plain(InputMode::Prompt, text));
        match is_injected {
            true => {
                let text = draft.display().trim().to_owned();
                self.conversation.push(Block::Prompt { text, attachments });
            }
            // The turn that begins with it records it.
            false => {
                self.queue.push_sent_first(draft);
                if let Some(work) = &mut self.work {
                    work.is_prompt_awaited = true;
                }
            }
        }
    }

    fn set_activity(&mut self, activity: Activity) {
        if let Some(work) = &mut self.work {
            work.activity = activity;
        }
    }

    fn stream(&mut self, event: &StreamEvent) {
        self.conversation.stream(event, self.now);
        let Some(work) = &mut self.work else { return };
        work.is_unanswered &= !says_something(event);
        match event {
            StreamEvent::Delta { delta, .. } => {
                let (text, activity) = match delta {
                    Delta::Text(text) => (text, Activity::Answering),
                    Delta::Thinking(text) => (text, Activity::Thinking),
                    Delta::InputJson(text) => (text, Activity::Answering),
                };
                work.letters += text.len();
                if work.activity != activity {
                    work.activity = activity;
                }
            }
            StreamEvent::Ended(ended) => {
                work.tokens += ended.usage.output_tokens;
                work.letters = 0;
                work.calls_since = Some(self.now);
                work.activity = match self.conversation.waiting_summary() {
                    Some(summary) => Activity::Running(summary),
                    None => Activity::Waiting,
                };
            }
            StreamEvent::Wire(_)
            | StreamEvent::Started(_)
            | StreamEvent::BlockStarted { .. }
            | StreamEvent::BlockDone { .. } => {}
        }
    }

    fn user_message(&mut self, message: &UserMessage) -> Vec<Effect> {
        if !self.conversation.user_message(message) {
            return Vec::new();
        }
        let next = self.conversation.waiting_summary();
        self.set_activity(next.map_or(Activity::Waiting, Activity::Running));
        let since = self.work.as_mut().and_then(|work| work.calls_since.replace(self.now));
        let mut actions = match since {
            Some(since) if self.now.saturating_sub(since) > LONG_CALL => self.turn_mark(TurnMark::LongCall),
            _ => Vec::new(),
        };
        if self.conversation.take_pushed() {
            actions.push(Effect::AskPullRequest { is_pushed: true });
        }
        actions
    }

    fn enqueue_question(&mut self, question: Question) -> Vec<Effect> {
        self.conversation.ask(&question);
        if question.agent.is_none() {
            self.set_activity(Activity::Asking);
        }
        let is_change = question.tool == NOTEBOOK_EDIT
            || AskedChange::from_call(&question.tool, &question.input).is_some();
        let preview = is_change.then(|| Effect::Preview {
            question: question.id.clone(),
            tool: question.tool.clone(),
            input: question.input.clone(),
        });
        match UserQuestionsDialog::new(&question, self.dialogs.patience) {
            Some(dialog) => self.dialogs.push(dialog),
            None => {
                let dialog = PermissionDialog::new(question, &self.options.cwd);
                let dialog = match self.interface.explains_commands {
                    true => dialog.explained_by_model(),
                    false => dialog,
                };
                self.dialogs.push(match self.interface.offers_clear_with_plan {
                    true => dialog.offering_clear(),
                    false => dialog,
                });
            }
        }
        let mut actions = self.turn_mark(TurnMark::Question);
        actions.extend(preview);
        actions
    }

    /// A question was answered, or withdrawn; unless another is open, its call runs.
    pub(super) fn question_over(&mut self, question: &str) {
        self.conversation.answered(question);
        let is_asking = self.work.as_ref().is_some_and(|work| work.activity == Activity::Asking);
        if is_asking && !self.conversation.is_asking() {
            let next = self.conversation.waiting_summary();
            self.set_activity(next.map_or(Activity::Waiting, Activity::Running));
        }
    }

    /// An agent's own conversation is shown in the agent view alone: here its questions are, and that it works.
    fn agent_event(&mut self, agent: &AgentRef, event: EngineEvent) -> Vec<Effect> {
        self.agent_logs.borrow_mut().take_event(agent, &event, self.now);
        let id = agent.id.to_string();
        if matches!(event, EngineEvent::TurnStarted(_) | EngineEvent::TurnEnded(_)) {
            self.agent_rows.trigger(self.now);
        }
        match event {
            EngineEvent::QuestionAsked(question) => return self.enqueue_question(question),
            EngineEvent::QuestionWithdrawn { question } => self.dialogs.withdraw(&question),
            EngineEvent::TurnStarted(_) if !self.session.agents.contains(&id) => self.session.agents.push(id),
            EngineEvent::TurnEnded(_) => self.session.agents.retain(|known| *known != id),
            EngineEvent::Warning(text) => self.notice(NoticeLevel::Warning, text),
            _ => {}
        }
        Vec::new()
    }

    /// Tells what was said of the goal.
    fn goal_changed(&mut self, condition: Option<String>) {
        let is_known = self.session.goal.as_ref().map(|(known, _)| known) == condition.as_ref();
        if !is_known {
            self.session.goal = condition.map(|condition| (condition, self.now));
        }
    }

    fn goal_checked(&mut self, goal: &Goal, verdict: &GoalVerdict, reason: &str) {
        let (level, text) = match verdict {
            GoalVerdict::Reached => (NoticeLevel::Info, format!("◎ The goal is reached: {}", goal.condition)),
            GoalVerdict::NotYet => (NoticeLevel::Info, "◎ The goal is not reached yet".to_owned()),
            GoalVerdict::Impossible => {
                (NoticeLevel::Warning, format!("◎ The goal is given up: {}", goal.condition))
            }
            GoalVerdict::Stalled => {
                let text = "◎ Nothing has happened for a while; the goal is still set, and you have the word";
                (NoticeLevel::Warning, text.to_owned())
            }
            GoalVerdict::Unknown => {
                (NoticeLevel::Warning, "◎ Whether the goal is reached could not be found out".to_owned())
            }
        };
        let text = if reason.is_empty() { text } else { format!("{text}\n{reason}") };
        self.notice(level, text);
    }

    fn turn_ended(&mut self, report: &TurnReport) -> Vec<Effect> {
        self.conversation.end_turn(self.now);
        let work = self.work.take();
        let told = work.as_ref().and_then(|work| work.told.clone());
        let is_unanswered = work.as_ref().is_some_and(|work| work.is_unanswered);
        let is_refused = work.is_none_or(|work| work.is_prompt_awaited);
        if report.round_trips > 0 {
            self.recap.turn_ended(self.now);
        }
        self.session.context = Some(report.context);
        self.end_line(report, told.as_deref(), is_unanswered);
        self.tell_ended_tasks();
        self.tell_about_mouse();
        if !report.is_saved && report.transcript.is_some() {
            let text = "This turn is not on disk; what becomes of it is said above, where saving failed";
            self.notice(NoticeLevel::Warning, text);
        }
        // A prompt that was never recorded was refused; why is said above.
        let is_clearing = std::mem::take(&mut self.is_clearing);
        if is_refused
            && !is_clearing
            && let Some(draft) = self.queue.take_sent()
        {
            self.prompt.prepend(&draft);
        }
        let mut actions = self.turn_mark(TurnMark::End);
        actions.extend(self.ask_suggestion(report));
        actions.extend(self.ask_pull_request());
        actions.extend(self.send_held());
        actions
    }

    /// Says how the turn went.
    fn end_line(&mut self, report: &TurnReport, told: Option<&str>, is_unanswered: bool) {
        match &report.outcome {
            Outcome::Completed | Outcome::CommandFailed if report.round_trips == 0 => return,
            Outcome::CommandFailed => {}
            Outcome::Completed if is_unanswered => {
                let text =
                    "The model ended without an answer, though it was asked for one · say what to do next";
                self.notice(NoticeLevel::Warning, text);
            }
            Outcome::Completed | Outcome::Structured(_) | Outcome::Refused | Outcome::Halted(_) => {}
            Outcome::MaxStructuredAttempts(n) => {
                let text = format!("No answer of the shape that was asked for came in {n} attempts");
                self.notice(NoticeLevel::Warning, text);
            }
            Outcome::ApiError(failure) if report.round_trips == 0 && told == Some(&failure.message) => return,
            Outcome::ApiError(failure) if report.round_trips == 0 => {
                return self.notice(NoticeLevel::Error, failure.message.clone());
            }
            Outcome::ApiError(_) => {}
            Outcome::Blocked(reason) => {
                return self.notice(NoticeLevel::Warning, format!("A hook blocked the prompt: {reason}"));
            }
            Outcome::Deferred(call) => {
                return self.notice(NoticeLevel::Info, format!("A hook put off the call of {}", call.name));
            }
            Outcome::DeferredUnavailable(call) => {
                let text = format!(
                    "The call of {} that was put off cannot be taken up: its tool is not there",
                    call.name
                );
                return self.notice(NoticeLevel::Warning, text);
            }
            Outcome::MaxTurns(limit) => {
                self.notice(NoticeLevel::Warning, format!("Stopped at the limit of {limit} round trips"));
            }
            Outcome::MaxBudget(limit) => {
                self.notice(NoticeLevel::Warning, format!("Stopped at the spending limit of ${limit}"));
            }
            Outcome::Interrupted(_) => {
                let text = "Interrupted · what came is kept · tell loci what to do instead";
                return self.notice(NoticeLevel::Info, text);
            }
        }
        if !self.interface.has_turn_duration {
            return;
        }
        let tokens = short_count(report.usage.output_tokens);
        let text = format!("{} · ↓ {tokens} tokens", spent(report.duration));
        self.conversation.push(Block::TurnEnd { text });
    }

    /// Changes the permission mode.
    pub(super) fn set_mode(&mut self, mode: Mode) -> Vec<Effect> {
        self.say_mode(mode);
        vec![Effect::Send(Command::SetMode(mode))]
    }

    fn say_mode(&mut self, mode: Mode) {
        if std::mem::replace(&mut self.session.mode, mode) != mode {
            self.speak(format!("mode: {}", mode_name(mode).unwrap_or("default")));
        }
    }
}

/// Tells whether something of an answer is in an event: words, or a call.
fn says_something(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::Delta { delta: Delta::Text(text), .. } => !text.trim().is_empty(),
        StreamEvent::BlockDone { block, .. } => {
            block.tool_use().is_some() || block.text().is_some_and(|text| !text.trim().is_empty())
        }
        StreamEvent::Delta { .. }
        | StreamEvent::BlockStarted { .. }
        | StreamEvent::Wire(_)
        | StreamEvent::Started(_)
        | StreamEvent::Ended(_) => false,
    }
}

/// Says how much a compaction saved.
fn compaction_text(metadata: &Value) -> String {
    let number = |keys: [&str; 2]| keys.iter().find_map(|key| metadata.get(key).and_then(Value::as_u64));
    match (number(["preTokens", "pre_tokens"]), number(["postTokens", "post_tokens"])) {
        (Some(before), Some(after)) => {
            format!("Compacted: {} tokens became {}", short_count(before), short_count(after))
        }
        (Some(before), None) => format!("Compacted at {} tokens", short_count(before)),
        (None, _) => "Compacted".to_owned(),
    }
}
