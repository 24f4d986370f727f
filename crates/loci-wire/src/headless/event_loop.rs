//! Between the client, the session and the signals.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use loci_core::ids::SessionId;
use loci_core::permission::Mode;
use loci_core::session::Totals;
use loci_core::stream::RateLimits;
use loci_core::tool::ToolKind;
use loci_engine::turn::Outcome;
use loci_engine::{
    ClientMessage, Command, EngineEvent, RunnerEvent, SessionRunner, SideTask, TaskNews, TurnReport,
};
use loci_stdx::escape_for_terminal;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::compaction_frames::CompactionFrames;
use super::permission_tool::{ask_tool, question_of, tool_verdict};
use super::progress::Progress;
use super::session_state::SessionState;
use super::terminal_prompt::{LineOutcome, TerminalLine, TerminalPrompt};
use super::{Exit, Headless, InputFormat, OutputFormat, PermissionPrompter};
use crate::client_input::{ClientInput, Incoming};
use crate::control::ControlContext;
use crate::cost::Cost;
use crate::frame::Frames;
use crate::outgoing::OutgoingRequests;
use crate::output::Output;
use crate::result_frame::{ResultContext, is_error, outcome_text};
use crate::session_query::SessionQuery;
use crate::signals::Signal;
use crate::task_frames::LiveTasks;

/// What a suggestion is asked for by: no id of a client's.
pub(super) const SUGGESTION_REQUEST: &str = "loci-prompt-suggestion";

/// A wait that is longer is told.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);
/// Before this attempt, the waits of half a second and its doubles come to about as much.
const ATTEMPTS_IN_SILENCE: u32 = 5;

pub(super) struct EventLoop<'a> {
    pub(super) options: &'a Headless,
    pub(super) frames: Frames,
    pub(super) context: ControlContext,
    pub(super) output: &'a Output,
    pub(super) stderr: &'a mut (dyn Write + Send),
    pub(super) session: SessionRunner,
    pub(super) input: ClientInput,
    pub(super) terminal: TerminalPrompt,
    /// What the client was asked and has not answered.
    pub(super) requests: OutgoingRequests,
    /// What else the process asks of it.
    pub(super) client_requests: Option<UnboundedReceiver<ClientMessage>>,
    pub(super) exit: Exit,
    /// Whether a response that answers nothing was reported; once is enough.
    pub(super) has_reported_response: bool,
    /// Work in the background that the answer may still come of: agents, and where there is one answer, commands.
    pub(super) background_agents: BTreeSet<String>,
    /// Whether an agent in the background has ended since the last turn that told of it.
    pub(super) has_untold_end: bool,
    /// The result of a turn that another may follow, since agents still work.
    pub(super) held_result: Option<TurnReport>,
    /// Whether no more prompts can come.
    pub(super) is_input_over: bool,
    /// Whether nothing more is to be written.
    pub(super) is_stopped: bool,
    /// Questions of the client that the session's next snapshots answer.
    pub(super) queries: Vec<(String, SessionQuery)>,
    /// Requests that the client has withdrawn: they are not answered.
    pub(super) cancelled: BTreeSet<String>,
    /// What the next result tells beside its turn.
    pub(super) results: ResultContext,
    /// What was told of the session's state.
    pub(super) state: SessionState,
    /// How many prompts are yet to be answered.
    pub(super) n_open_prompts: usize,
    /// What works beside the conversation.
    pub(super) tasks: LiveTasks,
    /// Whether what runs in the background is another set than was told.
    pub(super) has_other_tasks: bool,
    /// What was told of limits last.
    pub(super) limits: Option<RateLimits>,
    /// The slash commands as the client knows them, once it has asked.
    pub(super) told_commands: Option<Vec<Value>>,
    /// Prompts that the client gave an id; how far each has come is told.
    pub(super) named_prompts: BTreeSet<String>,
    /// Prompts that are being taken back, by the request that asks for it.
    pub(super) cancelling: BTreeMap<String, String>,
    /// What the client hears while it waits.
    pub(super) progress: Progress,
    /// How often the model has answered.
    pub(super) n_answers: usize,
    /// Models that become settings once the session has taken them, by the request that asks for it.
    pub(super) flag_models: BTreeMap<String, Value>,
    /// Frames of a compaction that wait for its end.
    pub(super) compaction: CompactionFrames,
    /// The goal that was told last, and the tokens that were used before it was set.
    pub(super) goal: Option<(String, u64)>,
    /// Answers that take their time: the id of the request, and what it is told.
    pub(super) answers: JoinSet<(String, Result<Value, String>)>,
    /// Whether a signal has asked for the end, and until when that is waited for.
    pub(super) ending: Ending,
}

/// What signals have asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing.
    None,
    /// The end, which comes by itself.
    Asked,
    /// The end, by this time, whatever is left to do.
    Until(Instant),
}

/// How long a session that was told to end may take for what it has to do before, and how long once it is told again.
const ENDING_WAIT: Duration = Duration::from_secs(5);
const SHORT_ENDING_WAIT: Duration = Duration::from_secs(1);

impl EventLoop<'_> {
    /// Runs until the session is over, or until a terminated one has stopped its turn.
    /// Returns the exit and whether a session failed.
    pub(super) async fn run(mut self) -> (Exit, bool) {
        let reader_gone = self.output.closed();
        self.begin();
        loop {
            let next_beat = self.until_next_beat();
            tokio::select! {
                event = self.session.next_event() => match event {
                    Some(RunnerEvent::Session(event)) => self.handle_event(&event),
                    Some(RunnerEvent::Renewed(id)) => self.renewed(id),
                    Some(RunnerEvent::RenewalFailed(problem)) => {
                        self.warn(&problem);
                        self.stop(Exit::Failure);
                    }
                    None => break,
                },
                incoming = self.input.next() => match incoming {
                    Incoming::Line(line) => self.handle_line(line),
                    Incoming::End => self.client_gone(),
                    Incoming::Signal(signal) => self.handle_signal(signal),
                },
                message = next_message(&mut self.client_requests) => {
                    if let Some(line) = self.requests.take(message) {
                        self.output.write_line(&line);
                    }
                }
                line = self.terminal.next_line() => self.handle_terminal_line(line),
                Some(Ok((request, answer))) = self.answers.join_next() => self.respond(&request, answer.map(Some)),
                () = sleep_for(next_beat) => self.tell_beats(),
                () = reader_gone.notified() => self.stop(Exit::BrokenPipe),
                () = time_is_over(self.ending) => return self.give_up().await,
            }
        }
        if matches!(self.exit, Exit::Terminated | Exit::HungUp) {
            return (self.exit, false);
        }
        self.finish().await
    }

    /// Waits for what is left to answer and for the sessions to end. Signals are still heard.
    async fn finish(&mut self) -> (Exit, bool) {
        loop {
            tokio::select! {
                Some(Ok((request, answer))) = self.answers.join_next() => self.respond(&request, answer.map(Some)),
                (troubles, has_failed) = self.session.finish(), if self.answers.is_empty() => {
                    troubles.iter().for_each(|trouble| self.warn(trouble));
                    return (self.exit, has_failed);
                }
                signal = self.input.next_signal() => self.handle_signal(signal),
                () = time_is_over(self.ending) => return self.give_up().await,
            }
        }
    }

    /// Speaks of another session from now on.
    fn renewed(&mut self, id: SessionId) {
        self.context.session = id.clone();
        self.frames = Frames::new(self.options.env.clone(), id, &self.options.version);
        self.context.cost = Cost::new(self.session.identity(), self.session.earlier_totals());
        self.context.commands = self.session.slash_commands();
        self.context.agents = self.session.agents();
        if self.options.output == OutputFormat::StreamJson {
            self.output.write_line(&self.frames.conversation_reset());
        }
    }

    /// Sends the first prompt; where no more can come, says so.
    fn begin(&mut self) {
        if let Some(prompt) = &self.options.prompt {
            self.n_open_prompts += 1;
            self.session.send(Command::Prompt(prompt.clone()));
        }
        // A session that is closed asks nobody.
        let is_asking = self.asks_by_itself();
        self.is_input_over = self.options.input == InputFormat::Text;
        if self.is_input_over && !is_asking {
            self.session.send(Command::Close);
        }
    }

    /// Tells whether questions are answered without the client, as long as the session is open.
    pub(super) fn asks_by_itself(&self) -> bool {
        matches!(self.options.prompter, PermissionPrompter::Terminal | PermissionPrompter::Tool(_))
    }

    /// Closes a session that answers its own questions once nothing is left to be asked: one that is closed asks nobody.
    pub(super) fn close_when_answered(&mut self) {
        if self.asks_by_itself() && self.is_input_over && self.n_open_prompts == 0 {
            self.session.send(Command::Close);
        }
    }

    fn handle_event(&mut self, event: &EngineEvent) {
        // Questions and warnings of an agent concern whoever is there, like any other.
        if let EngineEvent::Agent { event: inner, .. } = event
            && matches!(
                **inner,
                EngineEvent::QuestionAsked(_)
                    | EngineEvent::QuestionWithdrawn { .. }
                    | EngineEvent::Warning(_)
            )
        {
            return self.handle_event(inner);
        }
        match event {
            EngineEvent::Warning(trouble) => self.warn(trouble),
            EngineEvent::Task(news) => {
                self.note_task(news);
                // What is stopped now is stopped by nobody who asks.
                self.tasks.is_ending = self.is_input_over && self.n_open_prompts == 0;
                self.has_other_tasks = self.tasks.note(news);
            }
            EngineEvent::TerminalSequence(_) => {
                tracing::debug!(target: "loci::hooks", "a terminal sequence of a hook is not sent: there is no screen");
            }
            EngineEvent::QuestionAsked(question) if self.options.prompter == PermissionPrompter::Terminal => {
                let shown = self.terminal.ask(question.clone());
                self.show_on_terminal(shown);
            }
            EngineEvent::QuestionWithdrawn { question }
                if self.options.prompter == PermissionPrompter::Terminal =>
            {
                let shown = self.terminal.withdraw(question);
                self.show_on_terminal(shown);
            }
            EngineEvent::QuestionAsked(question) => {
                if let PermissionPrompter::Tool(tool) = &self.options.prompter {
                    self.session.send(ask_tool(tool, question));
                }
            }
            EngineEvent::McpAnswered { request, outcome } => {
                if let Some(question) = question_of(request) {
                    let result = tool_verdict(outcome);
                    return self.answer_question(question.to_owned(), result);
                }
            }
            EngineEvent::TurnEnded(report) => {
                let is_prompts = report.origin.is_none();
                self.n_open_prompts = self.n_open_prompts.saturating_sub(usize::from(is_prompts));
                // What a command needs no model for is not recorded as a prompt; still it waits no more.
                let n_answered = self.context.queued.len().saturating_sub(self.n_open_prompts);
                self.results.commands = self.context.queued.drain(..n_answered).collect();
                self.close_when_answered();
            }
            EngineEvent::TurnStarted(start) => {
                self.context.mode = start.mode;
                self.results.begin_turn(&start.model);
            }
            EngineEvent::ModeChanged(mode) => self.context.mode = *mode,
            EngineEvent::PromptRecorded { entry, .. } => {
                self.context.queued.retain(|queued| queued != entry.as_str());
                self.results.prompts.push(entry.to_string());
            }
            EngineEvent::Assistant(block) => self.note_call(&block.message),
            EngineEvent::AgentRefused(limit) => self.tasks.note_refusal(*limit),
            EngineEvent::Agent { event: inner, .. } => match &**inner {
                EngineEvent::Assistant(block) => self.tasks.note_call(&block.message["content"][0]),
                EngineEvent::AgentRefused(limit) => self.tasks.note_refusal(*limit),
                _ => {}
            },
            EngineEvent::User(message) => self.note_result(&message.message),
            EngineEvent::LocalCommand(output) => {
                self.results.local_command = (!output.is_unavailable).then(|| output.name.clone());
            }
            _ => {}
        }
        if self.is_stopped {
            return;
        }
        match self.options.output {
            OutputFormat::StreamJson => self.show_frames(event),
            OutputFormat::Text | OutputFormat::Json => self.say_wait(event),
        }
        match event {
            EngineEvent::TurnEnded(report) => self.end_turn(report),
            EngineEvent::TurnsOver { .. } => self.show_held_result(),
            _ => {}
        }
    }

    /// Says on stderr that a request is waited with, where nothing else would: people take a long silence for a hang.
    fn say_wait(&mut self, event: &EngineEvent) {
        if let EngineEvent::Agent { event, .. } = event {
            return self.say_wait(event);
        }
        let EngineEvent::Retry { attempt, max_retries, delay, failure } = event else { return };
        if *delay < LONGEST_SILENCE && *attempt < ATTEMPTS_IN_SILENCE {
            return;
        }
        let (why, seconds) = (escape_for_terminal(&failure.message), delay.as_secs_f64().ceil());
        self.warn(&format!("{why}; trying again in {seconds} s (attempt {attempt} of {max_retries})"));
    }

    /// Shows the result of a turn, or keeps it until the last: with no prompt to come, what agents in the background bring
    /// belongs to the answer. Of a stream every result is shown, of anything else the last one.
    fn end_turn(&mut self, report: &TurnReport) {
        self.exit = if is_error(&report.outcome) { Exit::Failure } else { Exit::Success };
        if self.held_result.is_some() && self.options.output == OutputFormat::StreamJson {
            self.show_held_result();
        }
        self.has_untold_end &= report.origin.is_none();
        let may_follow = !self.background_agents.is_empty() || self.has_untold_end;
        match self.is_input_over && may_follow {
            true => self.held_result = Some(report.clone()),
            false => {
                self.held_result = None;
                self.show_result(report);
                self.ask_suggestion(report);
            }
        }
    }

    /// Asks what may be said next, where the client wants to know and somebody could still say it.
    fn ask_suggestion(&mut self, report: &TurnReport) {
        self.n_answers += usize::from(report.round_trips > 0);
        let is_good = matches!(report.outcome, Outcome::Completed) && report.round_trips > 0;
        let is_wanted = self.options.suggests_prompts && self.options.output == OutputFormat::StreamJson;
        let is_idle = !self.is_input_over && self.n_open_prompts == 0;
        // After the first answer nobody knows what follows, and a plan is for its author to go on with.
        let is_time = self.n_answers > 1 && self.context.mode != Mode::Plan;
        if is_good && is_wanted && is_idle && is_time {
            let request = SUGGESTION_REQUEST.to_owned();
            self.session.send(Command::AskOnTheSide { request, task: SideTask::Suggestion });
        }
    }

    fn show_held_result(&mut self) {
        if let Some(report) = self.held_result.take() {
            self.show_result(&report);
        }
    }

    /// Tells how the session stands, where that is asked for and something has changed.
    pub(super) fn tell_state(&mut self, state: Option<&'static str>) {
        if let Some(state) = state.filter(|_| self.options.output == OutputFormat::StreamJson) {
            self.output.write_line(&self.frames.session_state(state, self.state.is_host_only));
        }
    }

    /// Takes note of a call that is waited for and could go on in the background.
    fn note_call(&mut self, message: &Value) {
        let block = &message["content"][0];
        if let (Some(call), Some(tool)) = (block["id"].as_str(), block["name"].as_str()) {
            self.progress.begin(call, tool, self.options.env.clock.monotonic());
        }
        self.tasks.note_call(block);
        let may_move = |tool: &str| tool == "Bash" || ToolKind::of_tool(tool) == ToolKind::Delegate;
        if block["type"] == "tool_use" && block["name"].as_str().is_some_and(may_move) {
            self.context.foreground_calls.extend(block["id"].as_str().map(str::to_owned));
        }
    }

    fn note_result(&mut self, message: &Value) {
        if let Some(call) = message["content"][0]["tool_use_id"].as_str() {
            self.context.foreground_calls.remove(call);
            self.progress.end(call);
        }
    }

    /// Returns how long it is until the client hears of a call that runs.
    fn until_next_beat(&self) -> Option<Duration> {
        let is_told = self.options.output == OutputFormat::StreamJson && !self.is_stopped;
        let next = self.progress.next_beat().filter(|_| is_told)?;
        Some(next.saturating_sub(self.options.env.clock.monotonic()))
    }

    fn tell_beats(&mut self) {
        for fields in self.progress.beats(self.options.env.clock.monotonic()) {
            self.output.write_line(&self.frames.tool_progress(fields));
        }
    }

    /// Tells how much of what the account may use is used, where that is news.
    pub(super) fn tell_limits(&mut self, limits: Option<&RateLimits>) {
        if let Some(limits) = limits.filter(|limits| self.limits.as_ref() != Some(limits)) {
            self.output.write_line(&self.frames.rate_limits(limits));
            self.limits = Some(limits.clone());
        }
    }

    /// Tells how far a prompt has come that the client gave an id.
    pub(super) fn tell_lifecycle(&mut self, prompt: &str, state: &str) {
        if self.named_prompts.contains(prompt) {
            self.output.write_line(&self.frames.command_lifecycle(prompt, state));
        }
    }

    /// Tells the client the slash commands, where they are others than it knows.
    pub(super) fn tell_commands(&mut self) {
        if self.told_commands.is_none() {
            return;
        }
        let commands = self.context.command_rows();
        if self.told_commands.as_ref() != Some(&commands) {
            self.output.write_line(&self.frames.commands_changed(commands.clone()));
            self.told_commands = Some(commands);
        }
    }

    /// Takes note of agents that work in the background.
    pub(super) fn note_task(&mut self, news: &TaskNews) {
        if let TaskNews::Started(task) | TaskNews::Backgrounded(task) = news {
            self.context.task_outputs.insert(task.id.clone(), task.output.clone());
        }
        match news {
            TaskNews::Started(task) | TaskNews::Backgrounded(task) if task.is_background => {
                // One document is one answer: there the end of a command is waited for, too, as long as the run waits.
                if task.agent_type().is_some() || self.options.output == OutputFormat::Json {
                    self.background_agents.insert(task.id.clone());
                }
            }
            TaskNews::Ended(task) => {
                // Its end is yet to be told, which may be a turn of its own.
                self.has_untold_end |= self.background_agents.remove(&task.id);
            }
            TaskNews::Started(_) | TaskNews::Backgrounded(_) | TaskNews::Progress { .. } => {}
        }
    }

    fn show_result(&mut self, report: &TurnReport) {
        self.results.n_queued = self.context.queued.len();
        if self.results.index == 0 {
            // What earlier runs of the session used is no share of this one.
            self.results.told = self.session.earlier_totals().plus(&Totals::default()).by_model;
        }
        self.results.subagents = self.tasks.subagent_stats();
        self.write_result(report);
        if self.options.output == OutputFormat::StreamJson {
            let commands = std::mem::take(&mut self.results.commands);
            commands.iter().for_each(|command| self.tell_lifecycle(command, "started"));
            for prompt in self.results.prompts.iter().chain(&commands).cloned().collect::<Vec<_>>() {
                self.tell_lifecycle(&prompt, "completed");
                self.named_prompts.remove(&prompt);
            }
        }
        self.results.index += 1;
        self.results.told.clone_from(&report.by_model);
        // A turn is owed while agents work, or prompts wait.
        let is_owed = !self.background_agents.is_empty() || self.has_untold_end || self.results.n_queued > 0;
        if !is_owed {
            let state = self.state.end();
            self.tell_state(state);
        }
    }

    fn write_result(&self, report: &TurnReport) {
        match self.options.output {
            OutputFormat::Text => {
                let text = outcome_text(report);
                let text =
                    if self.options.is_terminal { escape_for_terminal(&text).into_owned() } else { text };
                self.output.write(format!("{text}\n"));
            }
            OutputFormat::Json | OutputFormat::StreamJson => {
                self.output.write_line(&self.frames.result(report, &self.results));
            }
        }
    }

    /// Takes a line that was typed at the terminal; without a terminal nobody is left to ask.
    fn handle_terminal_line(&mut self, line: TerminalLine) {
        let LineOutcome { answer, shown } = match line {
            TerminalLine::Typed(line) => self.terminal.handle_line(Some(&line)),
            TerminalLine::Over => self.terminal.handle_line(None),
            TerminalLine::Away => self.terminal.handle_away(),
        };
        if let Some((question, answer)) = answer {
            self.session.send(Command::Answer { question, answer });
        }
        self.show_on_terminal(shown);
    }

    fn show_on_terminal(&mut self, text: String) {
        // Nobody is left to ask when stderr is gone: the terminal's end is noticed by reading.
        drop(self.stderr.write_all(text.as_bytes()).and_then(|()| self.stderr.flush()));
    }

    fn handle_signal(&mut self, signal: Signal) {
        tracing::debug!(target: "loci::control", "signal {signal:?}");
        self.ending = self.ending.after(signal);
        match signal {
            Signal::Interrupt => self.session.send(Command::Quit),
            Signal::Terminate => self.end_now(Exit::Terminated),
            Signal::HangUp => self.end_now(Exit::HungUp),
        }
    }

    /// Stops without waiting for what runs, which the second command asks for: it is killed, and its transcript is complete.
    fn end_now(&mut self, exit: Exit) {
        self.stop(exit);
        self.session.send(Command::Quit);
    }

    /// Gives up a session that does not end.
    async fn give_up(&mut self) -> (Exit, bool) {
        self.session.abort().await;
        match self.exit {
            Exit::Success => (Exit::Failure, false),
            exit => (exit, false),
        }
    }

    /// Stops the session for good; nothing more is written.
    pub(super) fn stop(&mut self, exit: Exit) {
        self.exit = exit;
        self.session.send(Command::Quit);
        self.is_stopped = true;
    }

    pub(super) fn warn(&mut self, text: &str) {
        // Nobody is left to tell when stderr is gone too.
        drop(writeln!(self.stderr, "{text}"));
    }
}

impl Ending {
    /// Returns what is asked for once a signal has come: whoever asks again has waited enough.
    fn after(self, signal: Signal) -> Self {
        match (self, signal) {
            (Self::None, Signal::Interrupt) => Self::Asked,
            (Self::None, Signal::Terminate | Signal::HangUp) => Self::Until(Instant::now() + ENDING_WAIT),
            (Self::Asked, _) => Self::Until(Instant::now() + SHORT_ENDING_WAIT),
            (Self::Until(time), _) => Self::Until(time.min(Instant::now() + SHORT_ENDING_WAIT)),
        }
    }
}

/// Waits until a session that was told to end is waited for no longer.
async fn time_is_over(ending: Ending) {
    match ending {
        Ending::None | Ending::Asked => std::future::pending().await,
        Ending::Until(time) => tokio::time::sleep_until(time).await,
    }
}

/// Ends after a while; never, without one.
async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Waits for what the process asks of the client, forever when there is none or nobody can ask any more.
async fn next_message(messages: &mut Option<UnboundedReceiver<ClientMessage>>) -> ClientMessage {
    match messages {
        Some(receiver) => match receiver.recv().await {
            Some(message) => message,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}
