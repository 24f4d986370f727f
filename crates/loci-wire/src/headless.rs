//! A run without a terminal: prompts in, frames or text out, an exit code at the end.

mod client_lines;
mod compaction_frames;
mod event_frames;
mod event_loop;
mod permission_tool;
mod progress;
mod session_state;
mod terminal_prompt;
mod terminal_questions;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use loci_app::commands::SessionCommands;
use loci_app::{FlagSettings, api_provider};
use loci_core::ids::SessionId;
use loci_core::permission::Mode;
use loci_engine::{ClientMessage, InitializeRequest, NewSession, Prompt, RenewSession, SessionRunner};
use loci_stdx::Env;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use crate::client_input::ClientInput;
use crate::control::ControlContext;
use crate::cost::Cost;
use crate::frame::Frames;
use crate::outgoing::OutgoingRequests;
use crate::output::Output;
use crate::result_frame::ResultContext;
use crate::signals::{Signal, Signals};
use crate::task_frames::LiveTasks;
use compaction_frames::CompactionFrames;
use progress::Progress;
use session_state::SessionState;

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// The answer's text.
    Text,
    /// One result object.
    Json,
    /// One object a line, as things happen.
    StreamJson,
}

/// How prompts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// One prompt, given at the start.
    Text,
    /// One object a line, at any time.
    StreamJson,
}

/// Who answers permission questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionPrompter {
    /// Nobody: they are denied.
    Nobody,
    /// The client, over the control channel.
    Client,
    /// Whoever sits at the terminal.
    Terminal,
    /// A tool of an MCP server, by the name that the model would know it by.
    Tool(String),
}

/// How a run ended, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With an answer.
    Success,
    /// With an error, which was said.
    Failure,
    /// By SIGTERM.
    Terminated,
    /// By SIGHUP: the terminal is gone.
    HungUp,
    /// The reader of standard output went away.
    BrokenPipe,
}

impl Exit {
    /// Returns the code for the shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Terminated => 143,
            Self::HungUp => 129,
            Self::BrokenPipe => 141,
        }
    }
}

/// Lists the names of output styles; files may be read for it.
pub type OutputStyles = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// What a headless run is started with.
pub struct Headless {
    /// The ambient world.
    pub env: Env,
    /// The session's id.
    pub session: SessionId,
    /// How answers are written.
    pub output: OutputFormat,
    /// Whether standard output is a terminal, which text must not talk to (S-46).
    pub is_terminal: bool,
    /// How prompts are read.
    pub input: InputFormat,
    /// Whether the model's events are passed on as they arrive.
    pub has_partial_messages: bool,
    /// Whether runs of hooks are told.
    pub has_hook_events: bool,
    /// Whether what agents say is passed on, too.
    pub forwards_agent_text: bool,
    /// Whether it is told what may be said next.
    pub suggests_prompts: bool,
    /// Whether accepted prompts are echoed.
    pub replays_prompts: bool,
    /// Who answers permission questions.
    pub prompter: PermissionPrompter,
    /// After how long without a line questions of the model to whoever sits at the terminal go on by themselves.
    pub question_timeout: Option<Duration>,
    /// Whether a client may switch to bypassing permissions.
    pub may_bypass: bool,
    /// The permission mode that it starts in.
    pub mode: Mode,
    /// The version clients are told.
    pub version: String,
    /// Where the credentials come from.
    pub api_key_source: String,
    /// The models a client may choose.
    pub models: Vec<String>,
    /// The output style.
    pub output_style: String,
    /// Lists the names of all there are, the usual one first.
    pub output_styles: OutputStyles,
    /// The first prompt, if it was given at the start.
    pub prompt: Option<Prompt>,
    /// What the client asked for before there was a session.
    pub initialize: Option<InitializeRequest>,
    /// Whether that was waited for before settings were read, so that its plugins and servers count.
    pub has_awaited_initialize: bool,
    /// What the process asks of the client, where there is one.
    pub client_requests: Option<UnboundedReceiver<ClientMessage>>,
    /// The settings that whoever started the run has given, which may change.
    pub flag_settings: FlagSettings,
    /// What is known beside the session, to answer questions about it.
    pub session_commands: SessionCommands,
}

/// How long a slow reader is waited for at the end.
const DRAIN: Duration = Duration::from_secs(30);
/// The same when the process was asked to end.
const SHORT_DRAIN: Duration = Duration::from_secs(1);

impl Headless {
    /// Runs a session to its end. `input` is what comes from outside; `stdout` gets the data, `stderr` what people should know; `renew` makes the
    /// session that takes its place when the user clears the conversation.
    pub async fn run(
        mut self,
        session: NewSession,
        input: ClientInput,
        stdout: impl Write + Send + 'static,
        stderr: &mut (dyn Write + Send),
        renew: Option<RenewSession>,
    ) -> Exit {
        let frames = Frames::new(self.env.clone(), self.session.clone(), &self.version);
        let runner = SessionRunner::start(session, renew);
        let context = ControlContext {
            session: self.session.clone(),
            version: self.version.clone(),
            api_key_source: self.api_key_source.clone(),
            may_bypass: self.may_bypass,
            models: self.models.clone(),
            output_style: self.output_style.clone(),
            output_styles: Arc::clone(&self.output_styles),
            initialized: self.initialize.take(),
            has_awaited_initialize: self.has_awaited_initialize,
            commands: runner.slash_commands(),
            agents: runner.agents(),
            cost: Cost::new(runner.identity(), runner.earlier_totals()),
            flag_settings: self.flag_settings.clone(),
            session_commands: self.session_commands.clone(),
            queued: Vec::new(),
            task_outputs: BTreeMap::new(),
            foreground_calls: BTreeSet::new(),
            is_busy: false,
            mode: self.mode,
            provider: api_provider(&self.env),
        };
        let output = Output::new(stdout);
        let client_requests = self.client_requests.take();
        let event_loop = event_loop::EventLoop {
            options: &self,
            frames,
            context,
            output: &output,
            stderr,
            session: runner,
            input,
            terminal: terminal_prompt::TerminalPrompt::new(self.question_timeout),
            requests: OutgoingRequests::default(),
            client_requests,
            exit: Exit::Success,
            has_reported_response: false,
            background_agents: BTreeSet::new(),
            has_untold_end: false,
            held_result: None,
            is_input_over: false,
            is_stopped: false,
            queries: Vec::new(),
            cancelled: BTreeSet::new(),
            results: ResultContext::default(),
            state: SessionState::new(&self.env),
            n_open_prompts: 0,
            tasks: LiveTasks::default(),
            has_other_tasks: false,
            limits: None,
            told_commands: None,
            named_prompts: BTreeSet::new(),
            cancelling: BTreeMap::new(),
            progress: Progress::default(),
            n_answers: 0,
            flag_models: BTreeMap::new(),
            compaction: CompactionFrames::default(),
            goal: None,
            answers: JoinSet::new(),
            ending: event_loop::Ending::None,
        };
        let (exit, has_failed) = event_loop.run().await;
        // What was said is written in any case.
        drain(output, if has_failed { Exit::Failure } else { exit }).await
    }

    /// Writes the result of a run that could not start, in the format that was asked for.
    pub fn report_failed_start(&self, error: &str, stdout: &mut dyn Write) -> std::io::Result<()> {
        let frames = Frames::new(self.env.clone(), self.session.clone(), &self.version);
        match self.output {
            OutputFormat::Text => Ok(()),
            OutputFormat::Json | OutputFormat::StreamJson => {
                writeln!(stdout, "{}", frames.failed_start(error))
            }
        }
    }
}

/// Lets what was said reach the reader, within reason: a stuck one must not keep the process from ending.
pub(crate) async fn drain(output: Output, exit: Exit) -> Exit {
    let patience = if matches!(exit, Exit::Terminated | Exit::HungUp) { SHORT_DRAIN } else { DRAIN };
    let mut signals = Signals::listen();
    let gave_up = if exit == Exit::Success { Exit::Failure } else { exit };
    tokio::select! {
        finished = tokio::task::spawn_blocking(move || output.finish()) => match finished {
            Ok(Ok(())) => exit,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::BrokenPipe,
            Ok(Err(_)) | Err(_) => Exit::Failure,
        },
        () = tokio::time::sleep(patience) => gave_up,
        signal = signals.next() => match signal {
            Signal::Terminate => Exit::Terminated,
            Signal::HangUp => Exit::HungUp,
            Signal::Interrupt => gave_up,
        },
    }
}
