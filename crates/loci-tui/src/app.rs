//! The application: its state, how events change it, and what it shows.
//!
//! [`App::update`] takes an event and the time, and returns what is to be done; it reads no clock, no file and no terminal,
//! so that tests drive it with events alone. [`App::view`] makes a [`Frame`](crate::screen::Frame) of the state: what has
//! become final since the last one, and the live region. The event loop (`event_loop`) is the rim around both.

mod action;
mod agent_logs;
mod away;
mod background;
mod block_log;
mod call_summary;
mod commands;
mod completion;
mod conversation;
mod dialogs;
mod engine_events;
mod event_loop;
mod focus;
mod front_task;
mod fullscreen;
mod history;
mod keys;
mod own_keys;
mod pager;
mod panels;
mod pictures;
mod prompt_box;
mod prompt_queue;
mod pull_request;
mod recall;
mod recap;
mod renderer;
mod shell_mode;
mod speech;
mod spoken_menu;
mod start;
mod submission;
mod suggestion;
mod switching;
mod task_view;
mod terminal_shell;
#[cfg(test)]
mod tests;
mod theming;
mod transcript;
mod view;
mod vim_keys;
mod virtual_list;
mod window;

pub use action::{
    Action, Effect, Elsewhere, Event, ExitReason, News, SecretText, SessionFacts, SwitchedFacts, UiAction,
};
pub(crate) use agent_logs::{AgentLog, AgentLogs};
pub use background::BackgroundRun;
pub(crate) use call_summary::{asked_diff, short_path};
pub use event_loop::{InterfaceOptions, RunEnd, run};
pub(crate) use history::{all_blocks, history_blocks, tail_blocks};
pub(crate) use pull_request::PullRequest;
pub use renderer::{FullscreenOptions, MouseCapture};
pub use speech::PlainMode;

pub use crate::panel::{PanelData, PanelRequest};

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use loci_app::helper_command::HelperSandboxes;
use loci_app::status_line::StatusViewer;
use loci_core::ids::EntryId;
use loci_core::permission::Mode;
use loci_core::task_list::Task;
use loci_engine::{BackgroundTask, CommandRegistry, Fullness};
use loci_stdx::Vars;

use crate::block::{Block, NoticeLevel};
use crate::dialog::ElicitationDialog;
use crate::input::{Draft, InputMode, Mention, VimMode};
use crate::interface_settings::{InterfaceSettings, ViewMode};
use crate::key::{InputEvent, Key, TerminalSignal};
use crate::keymap::{EXIT_TIME, Keymap};
use crate::panel::{Panel, SideThread};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::status::{AgentRows, OptionalModes, SPINNER_STEP, StatusLine, Work};
use crate::text::Row;
use crate::theme::{Backdrop, ColorDepth, Theme};
use away::AwayClock;
use block_log::BlockLog;
use completion::Completion;
use conversation::Conversation;
use dialogs::Dialogs;
use focus::CallTally;
use front_task::FrontTask;
use fullscreen::Fullscreen;
use prompt_box::PromptBox;
use prompt_queue::PromptQueue;
use recall::Recall;
use recap::RecapClock;
use switching::Switching;
use task_view::TaskView;
use theming::Theming;
use transcript::Transcript;

/// What the application is started with.
#[derive(Debug, Clone)]
pub struct AppOptions {
    /// The release, for the banner.
    pub version: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The home directory of the person.
    pub home: PathBuf,
    /// The same, as people read it.
    pub shown_cwd: String,
    /// The first prompt, if it was given at the start.
    pub prompt: Option<String>,
    /// Why everything is plain lines, where it is.
    pub plain: Option<PlainMode>,
    /// Whether everything is shown whole, whatever settings say.
    pub is_verbose: bool,
    /// Whether nothing moves by itself.
    pub is_still: bool,
    /// Whether somebody who was away is told what the session is about, whatever settings say.
    pub has_recap: Option<bool>,
    /// Whether the model is asked what may come next, whatever settings say.
    pub has_suggestions: Option<bool>,
    /// Whether the badge of a pull request is a link (`FORCE_HYPERLINK`).
    pub has_badge_link: bool,
    /// Whether there is an agent view, unless settings say otherwise (`CLAUDE_CODE_DISABLE_AGENT_VIEW`).
    pub has_agent_view: bool,
    /// Whether the cursor is always seen and stands at the marked row of a list (`CLAUDE_CODE_ACCESSIBILITY`).
    pub follows_mark: bool,
    /// Whether the working directory is left out at the start (`CLAUDE_CODE_HIDE_CWD`).
    pub hides_cwd: bool,
    /// Whether code has no colours, whatever settings say (`CLAUDE_CODE_SYNTAX_HIGHLIGHT`).
    pub is_plain_code: bool,
    /// The looks of the terminal.
    pub theme: Theme,
    /// What variables say of the fullscreen renderer.
    pub fullscreen: FullscreenOptions,
}

impl Default for AppOptions {
    fn default() -> Self {
        Self {
            version: String::new(),
            cwd: PathBuf::new(),
            home: PathBuf::new(),
            shown_cwd: String::new(),
            prompt: None,
            plain: None,
            is_verbose: false,
            is_still: false,
            has_recap: None,
            has_suggestions: None,
            has_badge_link: true,
            has_agent_view: true,
            follows_mark: false,
            hides_cwd: false,
            is_plain_code: false,
            theme: Theme::new(ColorDepth::Ansi, Backdrop::Dark),
            fullscreen: FullscreenOptions::default(),
        }
    }
}

impl AppOptions {
    /// Takes what variables say that may change when the settings of a session are known, whose `env` sets some.
    #[must_use]
    pub fn with_vars(self, vars: &Vars) -> Self {
        let said = |name: &str| vars.non_empty(name).map(|_| vars.is_truthy(name));
        Self {
            has_recap: said("CLAUDE_CODE_ENABLE_AWAY_SUMMARY"),
            has_suggestions: said("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION"),
            has_badge_link: vars.get("FORCE_HYPERLINK") != Some("0"),
            has_agent_view: !vars.is_truthy("CLAUDE_CODE_DISABLE_AGENT_VIEW"),
            follows_mark: vars.is_truthy("CLAUDE_CODE_ACCESSIBILITY"),
            hides_cwd: vars.is_truthy("CLAUDE_CODE_HIDE_CWD"),
            is_plain_code: said("CLAUDE_CODE_SYNTAX_HIGHLIGHT") == Some(false),
            ..self
        }
    }
}

/// The state of the interface.
#[derive(Debug)]
pub struct App {
    options: AppOptions,
    now: Duration,
    keymap: Keymap,
    prompt: PromptBox,
    recall: Recall,
    completion: Completion,
    /// What else than files can be mentioned.
    mentions: Vec<Mention>,
    interface: InterfaceSettings,
    /// After how long without a key a question of the model goes on, whatever settings say.
    answer_timeout: Option<Duration>,
    /// Whether the window has the focus, once the terminal has told.
    focus: Option<bool>,
    /// Whether everything that was said is to be shown once more.
    replays: bool,
    /// When everything in the background was asked to stop, for the first time.
    kill_armed: Option<Duration>,
    conversation: Conversation,
    /// What the last block that became final was, for the space between.
    last_final: Option<view::Spacing>,
    dialogs: Dialogs,
    /// Whether somebody is there to answer.
    away: AwayClock,
    /// The turn that is under way.
    work: Option<Work>,
    session: SessionState,
    /// What was typed and has not been heard yet.
    queue: PromptQueue,
    /// Whether what is typed is sent as soon as its pictures are read.
    submits_when_read: bool,
    /// The key that would do something if it were pressed again, and when it was pressed.
    armed: Option<(Key, Duration)>,
    /// Something that is said for a while.
    flash: Option<(String, Duration)>,
    is_exiting: bool,
    /// A new conversation has begun, and the turn of the `/clear` that asked for it is not over: its end says nothing about
    /// prompts that were sent since.
    is_clearing: bool,
    /// The task list, and whether it is shown.
    tasks: Vec<Task>,
    task_view: TaskView,
    /// Whether the keys are explained below the prompt.
    is_help_shown: bool,
    /// The panel that stands in the place of the prompt.
    panel: Option<Box<dyn Panel>>,
    /// How much room the panel had when it was last drawn.
    panel_space: Cell<Size>,
    /// When the panel last asked for what it shows.
    panel_asked: Duration,
    /// The transcript pager, where it is open.
    transcript: Option<Transcript>,
    /// What the pager was asked to write to the scrollback.
    dumped: Vec<Block>,
    /// What was asked on the side.
    side_thread: Rc<RefCell<SideThread>>,
    /// The answer to a menu that is being typed, where somebody listens.
    menu_answer: String,
    /// What was said lately.
    log: BlockLog,
    /// Work beside the conversation, oldest first.
    background: Vec<BackgroundTask>,
    /// What has ended beside the conversation, until it can be told.
    ended_tasks: Vec<String>,
    /// The command of the background that was brought to the front.
    front: Option<FrontTask>,
    /// What the agents of the session say and do; the agent view looks at it.
    agent_logs: Rc<RefCell<AgentLogs>>,
    /// The session that is to take the place of the one at hand.
    switching: Option<Switching>,
    /// The person's own status line.
    status_line: StatusLine,
    /// The open pull request of the branch at hand.
    pull_request: Option<PullRequest>,
    /// The agents at work.
    agent_rows: AgentRows,
    /// Makes the sandboxes that commands of the interface ask for.
    helper_sandboxes: HelperSandboxes,
    /// The last entries of the session that were shown before it was there.
    tail: Option<Vec<EntryId>>,
    /// Whether it is time to say what the session is about.
    recap: RecapClock,
    /// The model that is to be asked, until it is known how the session stands.
    model_wanted: Option<String>,
    /// A command of the shell that waits to be run on the terminal.
    terminal_command: Option<terminal_shell::TerminalCommand>,
    theming: Theming,
    /// How many turns there were, for what is said beside the spinner.
    n_turns: usize,
    /// The fullscreen renderer, while it shows the conversation.
    fullscreen: Option<Box<Fullscreen>>,
    /// What `/tui` has chosen.
    chosen_fullscreen: Option<bool>,
    /// The first block that was said in fullscreen and is to be written inline.
    unwritten: Option<usize>,
    /// Whether it was told that the mouse is taken.
    has_told_mouse: bool,
    /// Whether settings were read.
    has_settings: bool,
    /// What `/focus` has chosen.
    chosen_view: Option<ViewMode>,
    /// The calls of the last turn, for the focus view.
    tally: CallTally,
    /// The answer that the focus view holds back until the turn is over, inline.
    held_answer: Option<Rc<Vec<Row>>>,
}

/// What is known of the session.
#[derive(Debug, Default)]
struct SessionState {
    /// Whether it is there; until then prompts wait.
    is_started: bool,
    /// Whether it is only looked at.
    is_viewed: bool,
    id: Option<String>,
    /// The name it was given.
    title: Option<String>,
    /// Whether anything was said in it, so that it can be resumed.
    has_turns: bool,
    /// Whether the person has switched thinking off.
    is_thinking_off: bool,
    is_persistent: bool,
    model: String,
    mode: Mode,
    /// Modes that are in the circle here.
    optional_modes: OptionalModes,
    context: Option<Fullness>,
    /// How its sandbox stands, in words.
    sandbox: Option<String>,
    /// Whether its sandbox lets nothing run outside.
    is_sandbox_strict: bool,
    commands: Arc<CommandRegistry>,
    /// What is worked towards, and since when it is known here.
    goal: Option<(String, Duration)>,
    /// Agents that work beside the conversation, by id.
    agents: Vec<String>,
}

impl App {
    /// Makes the application as it is before anything happened.
    pub fn new(options: AppOptions) -> Self {
        let mut app = Self {
            now: Duration::ZERO,
            keymap: Keymap::default(),
            prompt: PromptBox::new(),
            recall: Recall::default(),
            completion: Completion::default(),
            mentions: Vec::new(),
            interface: InterfaceSettings::default(),
            answer_timeout: None,
            focus: None,
            replays: false,
            kill_armed: None,
            conversation: Conversation::new(&options.cwd),
            last_final: None,
            dialogs: Dialogs::default(),
            away: AwayClock::default(),
            work: None,
            session: SessionState {
                commands: Arc::new(CommandRegistry::builtin()),
                ..SessionState::default()
            },
            queue: PromptQueue::default(),
            submits_when_read: false,
            armed: None,
            flash: None,
            is_exiting: false,
            is_clearing: false,
            tasks: Vec::new(),
            task_view: TaskView::default(),
            is_help_shown: false,
            panel: None,
            panel_space: Cell::new(Size { width: 80, height: 24 }),
            panel_asked: Duration::ZERO,
            transcript: None,
            dumped: Vec::new(),
            side_thread: Rc::default(),
            menu_answer: String::new(),
            log: BlockLog::default(),
            background: Vec::new(),
            ended_tasks: Vec::new(),
            front: None,
            agent_logs: Rc::new(RefCell::new(AgentLogs::new(&options.cwd))),
            switching: None,
            status_line: StatusLine::default(),
            pull_request: None,
            agent_rows: AgentRows::default(),
            helper_sandboxes: HelperSandboxes::default(),
            tail: None,
            recap: RecapClock::default(),
            model_wanted: None,
            terminal_command: None,
            theming: Theming::default(),
            n_turns: 0,
            fullscreen: None,
            chosen_fullscreen: None,
            unwritten: None,
            has_told_mouse: false,
            has_settings: false,
            chosen_view: options.is_verbose.then_some(ViewMode::Verbose),
            tally: CallTally::default(),
            held_answer: None,
            options,
        };
        if let Some(PlainMode::ScreenReader(source)) = &app.options.plain {
            let text = format!("Screen reader mode is on ({source})");
            app.conversation.push(Block::Notice { level: NoticeLevel::Info, text });
        }
        app.conversation.push(app.banner());
        app.choose_renderer();
        app
    }

    fn banner(&self) -> Block {
        let AppOptions { version, shown_cwd, hides_cwd, .. } = &self.options;
        let text =
            if *hides_cwd { format!("loci {version}") } else { format!("loci {version} · {shown_cwd}") };
        match self.is_spoken() {
            true => Block::Notice { level: NoticeLevel::Info, text },
            false => Block::TurnEnd { text },
        }
    }

    /// Takes an event that came at `now`; returns what is to be done, in order.
    pub fn update(&mut self, event: Event, now: Duration) -> Vec<Effect> {
        self.now = now;
        self.forget_old(now);
        let mut actions = match event {
            Event::Input(input) => self.input(input),
            Event::News(news) => self.news(news),
            Event::Tick => {
                let expired = self.dialogs.take_expired(now);
                let mut actions = expired.map(|actions| self.carry_out(actions)).unwrap_or_default();
                actions.extend(self.refresh_panel());
                actions.extend(self.refresh_front());
                actions
            }
            Event::Drawn => {
                self.dialogs.drawn(now);
                Vec::new()
            }
        };
        if let Some(notice) = self.notice_for_away() {
            actions.extend(self.call_person(&notice));
            actions.push(Effect::Send(notice));
        }
        actions.extend(self.status_line.tick(now));
        actions.extend(self.agent_rows.tick(now));
        actions.extend(self.recap_for_away());
        actions
    }

    /// Returns what is to be done before anything happened: the prompt that was given at the start is sent.
    pub fn begin(&mut self) -> Vec<Effect> {
        match self.options.prompt.take().filter(|text| !text.trim().is_empty()) {
            Some(text) => self.submit_draft(Draft::plain(InputMode::Prompt, &text)),
            None => Vec::new(),
        }
    }

    /// Returns when the application wants to hear of the time again; never, when nothing moves.
    pub fn deadline(&self) -> Option<Duration> {
        let spinner = self.work.as_ref().map(|work| {
            if !self.is_still() {
                // Whatever happens is drawn with the spinner as it is then, so that a stream needs no ticks beside it.
                return self.now + SPINNER_STEP;
            }
            work.since + Duration::from_secs(self.now.saturating_sub(work.since).as_secs() + 1)
        });
        let armed = self.armed.map(|(_, since)| since + EXIT_TIME);
        let flash = self.flash.as_ref().map(|(_, until)| *until);
        let others = [
            self.dialogs.deadline(self.now),
            self.away.deadline(),
            self.status_line.deadline(),
            self.agent_rows.deadline(),
            self.recap_deadline(),
            self.panel_deadline(),
            self.front_deadline(),
        ];
        [spinner, armed, flash].into_iter().chain(others).flatten().min()
    }

    /// Returns what makes the sandboxes that commands of the interface ask for.
    pub(crate) fn helper_sandboxes(&self) -> HelperSandboxes {
        self.helper_sandboxes.clone()
    }

    /// Returns what the command of the status line may know beside the session.
    pub(crate) fn status_viewer(&self) -> StatusViewer {
        StatusViewer {
            version: self.options.version.clone(),
            vim_mode: self.prompt.vim_mode().map(VimMode::name),
            pull_request: None,
        }
    }

    /// Returns the id of the session, once there is one.
    pub(crate) fn session_id(&self) -> Option<&str> {
        self.session.id.as_deref()
    }

    /// Returns the line that says how to go on with the session, if there is something to go on with.
    pub fn resume_hint(&self) -> Option<String> {
        let id = self.session.id.as_ref().filter(|_| self.session.has_turns && self.session.is_persistent)?;
        Some(format!("Resume this session with: loci -r {id}"))
    }

    fn forget_old(&mut self, now: Duration) {
        self.armed = self.armed.filter(|(_, since)| now < *since + EXIT_TIME);
        if self.flash.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.flash = None;
        }
    }

    fn input(&mut self, input: InputEvent) -> Vec<Effect> {
        match input {
            InputEvent::Mouse(mouse) => {
                self.away.typed(self.now);
                self.recap.typed(self.now);
                self.mouse_moved(mouse)
            }
            InputEvent::Key(_) | InputEvent::Paste(_) => {
                self.away.typed(self.now);
                self.recap.typed(self.now);
                let before = self.before_deleting(&input);
                let mut actions = self.typed(input);
                if let Some(before) = before {
                    self.say_deleted(&before);
                }
                actions.extend(self.refresh_completion());
                actions
            }
            InputEvent::Closed => self.exit(ExitReason::HungUp),
            InputEvent::Signal(signal) => match signal {
                TerminalSignal::Terminate => self.exit(ExitReason::Terminated),
                TerminalSignal::HangUp => self.exit(ExitReason::HungUp),
                TerminalSignal::Interrupt => self.interrupt_or_leave(),
                TerminalSignal::Suspend => vec![Effect::Suspend],
                TerminalSignal::Continued => vec![Effect::Repaint],
            },
            InputEvent::Focus(is_focused) => {
                self.focus = Some(is_focused);
                is_focused.then(|| self.ask_pull_request()).flatten().into_iter().collect()
            }
            InputEvent::Resize { width, height } => {
                self.status_line.resized((width, height), self.now);
                Vec::new()
            }
            InputEvent::Reply(_) => Vec::new(),
        }
    }

    fn news(&mut self, news: News) -> Vec<Effect> {
        match news {
            News::Engine(event) => return self.runner_event(*event),
            News::Asked(question) => return self.ask_at_start(question),
            News::Started(facts) => return self.started(*facts),
            News::Tail { blocks, entries } => self.show_tail(blocks, entries),
            News::Viewing(blocks) => self.view_only(blocks),
            News::StartFailed(problem) => return self.start_failed(&problem),
            News::Ended { troubles, has_failed, .. } => {
                troubles.into_iter().for_each(|text| self.notice(NoticeLevel::Warning, text));
                let reason = if has_failed { ExitReason::Failed } else { ExitReason::Asked };
                return self.exit(reason);
            }
            News::Preview { question, diff } => self.dialogs.set_diff(&question, diff),
            News::Elicitation { request, payload } => {
                self.dialogs.push(ElicitationDialog::new(&request, &payload));
                return self.turn_mark(speech::TurnMark::Question);
            }
            News::RequestWithdrawn(request) => self.dialogs.withdraw(&request),
            News::Switched(facts) => self.switched(*facts),
            News::SwitchFailed(problem) => return self.switch_failed(problem),
            News::SessionInUse { target, holder } => return self.ask_in_use(target, &holder),
            News::PanelData(data) => return self.panel_data(data),
            News::Picture { number, read } => return self.picture_read(number, *read),
            News::Keys(read) => self.take_key_bindings(read),
            News::Themes(files) => self.take_themes(files),
            News::Edited(edited) => self.draft_edited(*edited),
            News::RanOnTerminal { command, ended } => return self.ran_on_terminal(command, ended),
            News::History(news) => self.history_news(news),
            News::Files(answer) => return self.files_found(answer),
            News::Mentions(mentions) => return self.mentions_listed(mentions),
            News::StatusLine(said) => {
                if let Some(why) = self.status_line.printed(said) {
                    self.notice(NoticeLevel::Warning, why);
                }
            }
            News::PullRequest(found) => self.take_pull_request(found),
            News::AgentRows(said) => {
                if let Some(why) = self.agent_rows.printed(said) {
                    self.notice(NoticeLevel::Warning, why);
                }
            }
            News::Output(blocks) => blocks.into_iter().for_each(|block| self.conversation.push(block)),
        }
        Vec::new()
    }

    /// Returns what renderers need to know.
    fn render_context(&self, width: u16) -> RenderContext {
        RenderContext {
            now: self.now,
            is_motion_reduced: self.is_still(),
            is_verbose: self.view_mode() == ViewMode::Verbose,
            highlighter: self.conversation.highlighter(),
            ..match self.is_spoken() {
                true => RenderContext::screen_reader(),
                false => RenderContext::new(usize::from(width.max(1)), self.options.theme),
            }
        }
    }

    /// Tells whether nothing moves by itself: where somebody wants that, and while the person is asked, however long that is.
    fn is_still(&self) -> bool {
        self.options.is_still || self.interface.is_motion_reduced || !self.dialogs.is_empty()
    }

    /// Tells the person something, in the conversation.
    fn notice(&mut self, level: NoticeLevel, text: impl Into<String>) {
        self.conversation.push(Block::Notice { level, text: text.into() });
    }

    /// Tells the person something for a while, below the prompt.
    fn flash(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.speak(text.clone());
        self.flash = Some((text, self.now + Duration::from_secs(3)));
    }

    fn exit(&mut self, reason: ExitReason) -> Vec<Effect> {
        if std::mem::replace(&mut self.is_exiting, true) {
            return Vec::new();
        }
        self.conversation.end_turn(self.now);
        self.work = None;
        let mut actions = self.remember_drafts();
        actions.push(Effect::Exit(reason));
        actions
    }
}
