//! What the session says, as changes of what is shown.

use std::sync::Arc;
use std::time::Duration;

use loci_core::permission::Mode;
use loci_core::tool::AskedChange;
use loci_engine::turn::Outcome;
use loci_engine::{
    AgentRef, Command, EngineEvent, Goal, GoalVerdict, HookRunStarted, Question, SessionSnapshot, TurnReport,
    UserMessage,
};
use serde_json::Value;

use super::commands::MODEL_REQUEST;
use super::conversation::result_text;
use super::pull_request::ask_pull_request;
use super::speech::TurnMark;
use super::suggestion::ask_suggestion;
use super::terminal_shell::{ASKED_FOR_TERMINAL, SHELL_REQUEST};
use super::{Action, App, Effect, UiAction, history_blocks};
use crate::block::{Block, NoticeLevel};
use crate::dialog::{PermissionDialog, UserQuestionsDialog};
use crate::interface_settings::InterfaceSettings;
use crate::notebook_preview::NOTEBOOK_EDIT;
use crate::panel::{ModelPanel, PanelData, PanelRequest};
use crate::status::{AGENTS_REQUEST, Activity, STATUS_REQUEST, mode_name, short_count, spent};

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
    pub(super) fn engine_event(&mut self, event: EngineEvent) -> Vec<Effect> {
        if changes_status(&event) {
            self.status.line.trigger(self.now);
        }
        self.transcript.tell_ended(&mut self.background);
        match event {
            EngineEvent::TurnStarted(start) => {
                let (is_awaited, has_tips) = (self.queue.has_sent(), !self.preferences.is_plain());
                let words = &self.preferences.interface.spinner_words;
                let work = self.session.turn_started(start, words, self.now);
                work.is_prompt_awaited = is_awaited;
                work.tip.take_if(|_| !has_tips);
                self.preferences.turn_mark(TurnMark::Begin)
            }
            EngineEvent::User(message) => self.user_message(&message),
            EngineEvent::TurnEnded(report) => self.turn_ended(&report),
            EngineEvent::Agent { agent, event } => self.agent_event(&agent, *event),
            EngineEvent::QuestionAsked(question) => self.enqueue_question(question),
            EngineEvent::TasksChanged(tasks) => match self.tasks.take(tasks, self.session.is_working()) {
                true => self.tasks.keep(self.session.is_started),
                false => Vec::new(),
            },
            EngineEvent::CommandsChanged(commands) => {
                self.session.commands = commands;
                let (prompt, ctx) = self.prompt_parts();
                let mut effects = prompt.commands_changed(&ctx);
                let actions = self.panel.servers_changed();
                effects.extend(self.carry_out(actions));
                effects
            }
            EngineEvent::Task(news) => self.task_news(news),
            EngineEvent::SideAnswered { request, outcome } => {
                self.panel_data(PanelData::SideAnswer { request, outcome })
            }
            EngineEvent::Snapshot { request, snapshot } => self.snapshot(&request, snapshot),
            EngineEvent::McpAnswered { outcome, .. } => {
                let page = |answer: Option<Value>| Some(answer?.get("authUrl")?.as_str()?.to_owned());
                self.panel_data(PanelData::ServersChanged(outcome.map(page)))
            }
            EngineEvent::AgentMessaged { outcome, .. } => self.panel_data(PanelData::AgentMessaged(outcome)),
            EngineEvent::LocalCommand(output) => {
                if !output.has_prompt {
                    self.session.await_prompt(false);
                    let typed =
                        format!("/{} {}", output.name, output.argument.as_deref().unwrap_or_default());
                    let block = self.queue.take_recorded(typed.trim().to_owned(), Vec::new());
                    self.transcript.push(block);
                }
                self.transcript.push(match output.is_error {
                    true => Block::Notice { level: NoticeLevel::Error, text: output.text.clone() },
                    false => Block::Output { markdown: output.text.clone() },
                });
                // What was changed about the interface counts at once.
                let is_setting = output.name == "config" && output.argument.is_some();
                is_setting.then_some(Effect::AskPanel(PanelRequest::Settings)).into_iter().collect()
            }
            EngineEvent::TerminalSequence(sequence) => vec![Effect::Write(sequence)],
            EngineEvent::Warning(text) => {
                self.transcript.notice(NoticeLevel::Warning, text);
                let actions = self.panel.servers_changed();
                self.carry_out(actions)
            }
            event => {
                self.turn_event(event);
                Vec::new()
            }
        }
    }

    /// Takes what the session says of the turn under way.
    fn turn_event(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::PromptRecorded { message, attached, .. } => {
                self.session.await_prompt(false);
                let block = self.queue.take_recorded(result_text(&message["content"]), attached);
                self.transcript.push(block);
            }
            EngineEvent::Dequeued { id, text, is_injected, attached } => {
                let block = self.queue.take_dequeued(&id, &text, is_injected, attached);
                if !is_injected {
                    self.session.await_prompt(true);
                }
                block.into_iter().for_each(|block| self.transcript.push(block));
            }
            EngineEvent::QueueTakenBack(prompts) => {
                self.queue.take_back(&prompts, &mut self.prompt.input);
            }
            EngineEvent::Requesting => self.session.requesting(),
            EngineEvent::Stream { event, .. } => {
                let conversation = &mut self.transcript.conversation;
                conversation.stream(&event, self.now);
                self.session.stream(&event, || conversation.waiting_summary(), self.now);
            }
            EngineEvent::Assistant(block) if block.error.is_some() => {
                let text = result_text(&block.message["content"]);
                if !self.session.is_told(&text) {
                    // The label says that it is an error.
                    let text = text.strip_prefix("API Error: ").unwrap_or(&text).to_owned();
                    self.transcript.notice(NoticeLevel::Error, text);
                }
            }
            EngineEvent::Retry { attempt, max_retries, delay, failure } => {
                self.transcript.conversation.drop_partial();
                let (text, at) = (failure.message, self.now + delay);
                let attempt = (attempt, max_retries);
                self.session.set_activity(Activity::Retrying { text, attempt, at });
            }
            EngineEvent::Fallback { from, to, failure } => {
                self.transcript.conversation.drop_partial();
                let text = format!("{from} failed ({}); {to} takes over for this turn", failure.message);
                self.transcript.notice(NoticeLevel::Warning, text);
            }
            EngineEvent::Compacting => self.session.set_activity(Activity::Compacting),
            EngineEvent::Compacted { metadata } => {
                let command = self.queue.take_compact_command(&mut self.session);
                command.into_iter().for_each(|block| self.transcript.push(block));
                let text = compaction_text(&metadata);
                self.transcript.push(Block::Compaction { text });
            }
            EngineEvent::CompactionEnded { failure: Some(failure) } => {
                // It was heard, and it would not go better if it stood in the prompt again.
                let command = self.queue.take_compact_command(&mut self.session);
                let was_asked_for = command.is_some();
                command.into_iter().for_each(|block| self.transcript.push(block));
                let text = format!("The conversation was not compacted: {failure}");
                self.transcript.notice(NoticeLevel::Warning, text);
                if was_asked_for {
                    self.session.note_told(failure);
                }
            }
            EngineEvent::QuestionWithdrawn { question } => {
                self.session.question_over(&question, &mut self.transcript.conversation);
                self.dialogs.withdraw(&question);
            }
            EngineEvent::Progress { call, progress } => {
                self.transcript.conversation.progress(&call, &progress);
            }
            EngineEvent::ShellStarted { call, command } => {
                self.queue.shell_started();
                self.session.shell_started(&command, self.now);
                self.transcript.conversation.begin_shell(call, command);
            }
            EngineEvent::ShellEnded { call, output } => {
                if self.transcript.end_shell(&call, &output) {
                    self.transcript.notice(NoticeLevel::Info, ASKED_FOR_TERMINAL);
                }
                self.session.set_activity(Activity::Waiting);
            }
            EngineEvent::HookStarted(HookRunStarted { status: Some(status), .. }) => {
                let status = loci_stdx::single_line(&status, MOST_STATUS);
                self.session.set_activity(Activity::Running(status));
            }
            EngineEvent::HookEnded(ended) => {
                // What it wanted shown while it ran goes with it.
                if ended.run.status.is_some() {
                    self.session.go_on(self.transcript.conversation.waiting_summary());
                }
                if let Some(why) = ended.objection {
                    let why = loci_stdx::single_line(&why, MOST_OBJECTION);
                    self.transcript.notice(NoticeLevel::Warning, format!("{} hook: {why}", ended.run.name));
                }
            }
            event => self.session_event(event),
        }
    }

    /// Takes what the session says of itself.
    fn session_event(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::Resumed(history) => {
                self.session.has_turns = true;
                // What came before the last compaction, too, is on disk alone.
                self.transcript.log.leave_out(1);
                if !self.transcript.has_shown(&history) {
                    let blocks = history_blocks(&history.entries, &self.preferences.options.cwd);
                    blocks.into_iter().for_each(|block| self.transcript.push(block));
                }
            }
            EngineEvent::ResultsCleared { n_results, freed_tokens } => {
                let text = format!(
                    "{n_results} old results of calls are sent as a short marker from now on ({} tokens less)",
                    short_count(freed_tokens)
                );
                self.transcript.notice(NoticeLevel::Info, text);
            }
            EngineEvent::Context(fullness) => self.session.context = Some(fullness),
            EngineEvent::ElicitationCompleted { server, .. } => {
                let text =
                    format!("The MCP server {server} says that what was to be done at its page is done");
                self.transcript.notice(NoticeLevel::Info, text);
            }
            // It is in force already.
            EngineEvent::ModeChanged(mode) => drop(self.set_mode(mode)),
            EngineEvent::ModelChanged(model) => {
                self.flash(format!("The model is {model} from now on"));
                self.session.model = model;
            }
            EngineEvent::ModelAnswered { outcome: Ok(choice), .. } => {
                let text = format!("The model is `{}` now, for this session only", choice.model);
                self.transcript.notice(NoticeLevel::Info, text);
            }
            EngineEvent::SandboxStatus(status) => {
                self.session.sandbox = Some(status.to_string());
                self.session.is_sandbox_strict = !status.allows_unsandboxed;
            }
            EngineEvent::SettingsChanged(settings) => {
                self.take_interface_settings(InterfaceSettings::from_value(&settings));
            }
            EngineEvent::ModelAnswered { outcome: Err(refusal), .. } => {
                self.transcript.notice(NoticeLevel::Warning, refusal.to_string());
            }
            EngineEvent::DirectoryAdded { outcome: Err(why), .. } => {
                self.transcript.notice(NoticeLevel::Warning, why);
            }
            EngineEvent::GoalChanged(goal) => {
                self.session.set_goal(goal.map(|goal| goal.condition), self.now);
            }
            EngineEvent::GoalChecked { goal, verdict, reason } => {
                let (level, text) = goal_verdict(&goal, &verdict, &reason);
                self.transcript.notice(level, text);
            }
            // What else the session says is for other front ends, or was taken before.
            _ => {}
        }
    }

    /// Takes how the session stands, for whoever asked.
    fn snapshot(&mut self, request: &str, snapshot: Arc<SessionSnapshot>) -> Vec<Effect> {
        match request {
            STATUS_REQUEST => self.status.line.run(snapshot).into_iter().collect(),
            AGENTS_REQUEST => self.status.agents.take(snapshot, self.now).into_iter().collect(),
            // While what was said is in the cache of the model at hand, the person is asked first.
            MODEL_REQUEST => match self.session.model_wanted.take() {
                None => Vec::new(),
                Some(name) if !(snapshot.is_cache_warm && snapshot.has_messages) => {
                    self.carry_out(vec![Action::Ui(UiAction::RunInSession(format!("/model {name}")))])
                }
                Some(name) => {
                    self.open_panel(ModelPanel::switching_to(name, Arc::clone(&snapshot)));
                    vec![Effect::AskPanel(PanelRequest::Models { snapshot })]
                }
            },
            SHELL_REQUEST => {
                let waits = self.transcript.is_fullscreen();
                let run = self.session.terminal_command.take().map(|command| command.run(&snapshot, waits));
                run.into_iter().collect()
            }
            _ => self.panel_data(PanelData::Snapshot(snapshot)),
        }
    }

    fn user_message(&mut self, message: &UserMessage) -> Vec<Effect> {
        let conversation = &mut self.transcript.conversation;
        if !conversation.user_message(message) {
            return Vec::new();
        }
        let took = self.session.call_ended(conversation.waiting_summary(), self.now);
        let has_pushed = conversation.take_pushed();
        let mut effects = match took {
            Some(took) if took > LONG_CALL => self.preferences.turn_mark(TurnMark::LongCall),
            _ => Vec::new(),
        };
        if has_pushed {
            effects.push(Effect::AskPullRequest { is_pushed: true });
        }
        effects
    }

    fn enqueue_question(&mut self, question: Question) -> Vec<Effect> {
        self.transcript.conversation.ask(&question);
        if question.agent.is_none() {
            self.session.set_activity(Activity::Asking);
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
                let dialog = PermissionDialog::new(question, &self.preferences.options.cwd);
                let dialog = match self.preferences.interface.explains_commands {
                    true => dialog.explained_by_model(),
                    false => dialog,
                };
                self.dialogs.push(match self.preferences.interface.offers_clear_with_plan {
                    true => dialog.offering_clear(),
                    false => dialog,
                });
            }
        }
        let mut actions = self.preferences.turn_mark(TurnMark::Question);
        actions.extend(preview);
        actions
    }

    /// An agent's own conversation is shown in the agent view alone: here its questions are, and that it works.
    fn agent_event(&mut self, agent: &AgentRef, event: EngineEvent) -> Vec<Effect> {
        self.background.take_agent_event(agent, &event, self.now);
        match event {
            EngineEvent::QuestionAsked(question) => return self.enqueue_question(question),
            EngineEvent::QuestionWithdrawn { question } => self.dialogs.withdraw(&question),
            EngineEvent::TurnStarted(_) | EngineEvent::TurnEnded(_) => self.status.agents.trigger(self.now),
            EngineEvent::Warning(text) => self.transcript.notice(NoticeLevel::Warning, text),
            _ => {}
        }
        Vec::new()
    }

    fn turn_ended(&mut self, report: &TurnReport) -> Vec<Effect> {
        self.transcript.conversation.end_turn(self.now);
        let work = self.session.turn_ended();
        let told = work.as_ref().and_then(|work| work.told.clone());
        let is_unanswered = work.as_ref().is_some_and(|work| work.is_unanswered);
        let is_refused = work.is_none_or(|work| work.is_prompt_awaited);
        if report.round_trips > 0 {
            self.schedule.turn_ended(self.now);
        }
        self.session.context = Some(report.context);
        let is_told = told.is_some() && told.as_deref() == failure_of(report);
        let (notice, has_line) = outcome_notice(report, is_told, is_unanswered);
        notice.into_iter().for_each(|(level, text)| self.transcript.notice(level, text));
        if has_line && self.preferences.interface.has_turn_duration {
            let tokens = short_count(report.usage.output_tokens);
            let text = format!("{} · ↓ {tokens} tokens", spent(report.duration));
            self.transcript.push(Block::TurnEnd { text });
        }
        self.transcript.tell_ended(&mut self.background);
        self.transcript.tell_about_mouse(self.preferences.options.fullscreen.mouse);
        if !report.is_saved && report.transcript.is_some() {
            let text = "This turn is not on disk; what becomes of it is said above, where saving failed";
            self.transcript.notice(NoticeLevel::Warning, text);
        }
        // A prompt that was never recorded was refused; why is said above.
        let is_clearing = std::mem::take(&mut self.session.is_clearing);
        if is_refused
            && !is_clearing
            && let Some(draft) = self.queue.take_sent()
        {
            self.prompt.input.prepend(&draft);
        }
        let mut actions = self.preferences.turn_mark(TurnMark::End);
        self.prompt.input.suggest(None);
        let is_idle = !self.queue.is_waiting() && self.prompt.input.is_empty();
        if is_idle && self.preferences.wants_suggestions() {
            actions.extend(ask_suggestion(report, &self.session));
        }
        actions.extend(ask_pull_request(&self.preferences, &self.session));
        actions.extend(self.send_held());
        actions
    }

    /// Changes the permission mode.
    pub(super) fn set_mode(&mut self, mode: Mode) -> Vec<Effect> {
        if self.session.set_mode(mode) {
            self.transcript.speak(format!("mode: {}", mode_name(mode).unwrap_or("default")));
        }
        vec![Effect::Send(Command::SetMode(mode))]
    }
}

/// Returns why a turn failed, where it did.
fn failure_of(report: &TurnReport) -> Option<&str> {
    match &report.outcome {
        Outcome::ApiError(failure) => Some(&failure.message),
        _ => None,
    }
}

/// Says how a turn went, where that is not seen; and whether a line about its time follows.
fn outcome_notice(
    report: &TurnReport,
    is_told: bool,
    is_unanswered: bool,
) -> (Option<(NoticeLevel, String)>, bool) {
    use NoticeLevel::{Error, Info, Warning};
    let asked = report.round_trips > 0;
    let (level, text, has_line) = match &report.outcome {
        Outcome::Completed | Outcome::CommandFailed if !asked => return (None, false),
        Outcome::ApiError(_) if !asked && is_told => return (None, false),
        Outcome::Completed if is_unanswered => {
            let text = "The model ended without an answer, though it was asked for one · say what to do next";
            (Warning, text.to_owned(), true)
        }
        Outcome::Completed
        | Outcome::CommandFailed
        | Outcome::Structured(_)
        | Outcome::Refused
        | Outcome::Halted(_) => return (None, true),
        Outcome::ApiError(failure) if !asked => (Error, failure.message.clone(), false),
        Outcome::ApiError(_) => return (None, true),
        Outcome::MaxStructuredAttempts(n) => {
            (Warning, format!("No answer of the shape that was asked for came in {n} attempts"), true)
        }
        Outcome::Blocked(reason) => (Warning, format!("A hook blocked the prompt: {reason}"), false),
        Outcome::Deferred(call) => (Info, format!("A hook put off the call of {}", call.name), false),
        Outcome::DeferredUnavailable(call) => {
            let text = format!(
                "The call of {} that was put off cannot be taken up: its tool is not there",
                call.name
            );
            (Warning, text, false)
        }
        Outcome::MaxTurns(limit) => (Warning, format!("Stopped at the limit of {limit} round trips"), true),
        Outcome::MaxBudget(limit) => (Warning, format!("Stopped at the spending limit of ${limit}"), true),
        Outcome::Interrupted(_) => {
            (Info, "Interrupted · what came is kept · tell loci what to do instead".to_owned(), false)
        }
    };
    (Some((level, text)), has_line)
}

/// Says how it stands with a goal.
fn goal_verdict(goal: &Goal, verdict: &GoalVerdict, reason: &str) -> (NoticeLevel, String) {
    use NoticeLevel::{Info, Warning};
    let (level, text) = match verdict {
        GoalVerdict::Reached => (Info, format!("◎ The goal is reached: {}", goal.condition)),
        GoalVerdict::NotYet => (Info, "◎ The goal is not reached yet".to_owned()),
        GoalVerdict::Impossible => (Warning, format!("◎ The goal is given up: {}", goal.condition)),
        GoalVerdict::Stalled => {
            let text = "◎ Nothing has happened for a while; the goal is still set, and you have the word";
            (Warning, text.to_owned())
        }
        GoalVerdict::Unknown => (Warning, "◎ Whether the goal is reached could not be found out".to_owned()),
    };
    if reason.is_empty() { (level, text) } else { (level, format!("{text}\n{reason}")) }
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
