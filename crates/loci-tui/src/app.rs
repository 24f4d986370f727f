//! The application: its state, how events change it, and what it shows.
//!
//! [`App::update`] takes an event and the time, and returns what is to be done; it reads no clock, no file and no terminal,
//! so that tests drive it with events alone. Its state is divided into parts by what lives together, each in a file of its own
//! with what it does and its tests: a part takes what it has to know as arguments, and asks for what concerns others by an
//! [`Action`]. What goes on between parts is here and in the `impl App` beside it. [`App::view`] makes a [`Frame`](crate::screen::Frame) of the state: what has
//! become final since the last one, and the live region. The event loop (`event_loop`) is the rim around both.

mod action;
mod agent_logs;
mod away;
mod background;
mod background_work;
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
mod pager;
mod panel_host;
mod panels;
mod preferences;
mod prompt_area;
mod prompt_box;
mod prompt_queue;
mod pull_request;
mod recall;
mod recap;
mod renderer;
mod schedule;
mod session_mirror;
mod shell_mode;
mod speech;
mod spoken_menu;
mod start;
mod status_area;
mod submission;
mod suggestion;
mod switching;
mod task_view;
mod terminal_shell;
#[cfg(test)]
mod tests;
mod theming;
mod transcript;
mod transcript_view;
mod view;
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

use std::path::PathBuf;
use std::time::Duration;

use loci_app::interface::status_line::StatusViewer;
use loci_engine::RunnerEvent;
use loci_stdx::Vars;

use crate::block::NoticeLevel;
use crate::dialog::ElicitationDialog;
use crate::input::{Draft, InputMode, VimMode};
use crate::key::{InputEvent, TerminalSignal};
use crate::keymap::Keymap;
use crate::render::RenderContext;
use crate::status::SPINNER_STEP;
use crate::theme::{Backdrop, ColorDepth, Theme};
use background_work::BackgroundWork;
use dialogs::Dialogs;
use panel_host::PanelHost;
use preferences::Preferences;
use prompt_area::{PromptArea, PromptContext};
use prompt_queue::PromptQueue;
use pull_request::ask_pull_request;
use schedule::Schedule;
use session_mirror::SessionMirror;
use spoken_menu::MenuAnswer;
use status_area::StatusArea;
use switching::in_use_dialog;
use task_view::TaskView;
use terminal_shell::ran_on_terminal;
use transcript_view::{TranscriptView, ViewContext};

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

/// The interface: parts that own their state, and what goes on between them.
#[derive(Debug)]
pub struct App {
    now: Duration,
    /// What was chosen: options, settings, the theme.
    preferences: Preferences,
    keymap: Keymap,
    /// Where is typed.
    prompt: PromptArea,
    /// What was typed and has not been heard yet.
    queue: PromptQueue,
    /// What was said, and what is seen of it.
    transcript: TranscriptView,
    /// Questions that wait for an answer.
    dialogs: Dialogs,
    /// The panel that stands in the place of the prompt.
    panel: PanelHost,
    /// The answer to a menu that is being typed, where somebody listens.
    menu_answer: MenuAnswer,
    /// What is known of the session.
    session: SessionMirror,
    /// Work beside the conversation.
    background: BackgroundWork,
    /// The task list.
    tasks: TaskView,
    /// What stands below the prompt.
    status: StatusArea,
    /// What comes by itself.
    schedule: Schedule,
    is_exiting: bool,
}

impl App {
    /// Makes the application as it is before anything happened.
    pub fn new(options: AppOptions) -> Self {
        let preferences = Preferences::new(options);
        let cwd = &preferences.options.cwd;
        let mut app = Self {
            now: Duration::ZERO,
            keymap: Keymap::default(),
            prompt: PromptArea::default(),
            queue: PromptQueue::default(),
            transcript: TranscriptView::new(cwd, preferences.is_plain()),
            dialogs: Dialogs::default(),
            panel: PanelHost::default(),
            menu_answer: MenuAnswer::default(),
            session: SessionMirror::new(),
            background: BackgroundWork::new(cwd),
            tasks: TaskView::default(),
            status: StatusArea::default(),
            schedule: Schedule::default(),
            is_exiting: false,
            preferences,
        };
        app.preferences.highlighter = app.transcript.conversation.highlighter();
        if let Some(PlainMode::ScreenReader(source)) = &app.preferences.options.plain {
            let text = format!("Screen reader mode is on ({source})");
            app.transcript.notice(NoticeLevel::Info, text);
        }
        app.transcript.push(app.preferences.banner());
        app.choose_renderer();
        app
    }

    /// Takes an event that came at `now`; returns what is to be done, in order.
    pub fn update(&mut self, event: Event, now: Duration) -> Vec<Effect> {
        self.now = now;
        self.prompt.forget_old(now);
        self.status.forget_old(now);
        let mut effects = match event {
            Event::Input(input) => self.input(input),
            Event::News(news) => self.news(news),
            Event::Tick => {
                let mut actions = self.dialogs.take_expired(now).unwrap_or_default();
                actions.extend(self.panel.refresh(now));
                let mut effects = self.carry_out(actions);
                effects.extend(self.background.front.refresh(now));
                effects
            }
            Event::Drawn => {
                self.dialogs.drawn(now);
                Vec::new()
            }
        };
        effects.extend(self.schedule.step(self.dialogs.waiting(&self.session), now));
        effects.extend(self.status.tick(now));
        effects.extend(self.schedule.ask_recap(self.is_quiet(), now));
        effects
    }

    /// Returns what is to be done before anything happened: the prompt that was given at the start is sent.
    pub fn begin(&mut self) -> Vec<Effect> {
        match self.preferences.options.prompt.take().filter(|text| !text.trim().is_empty()) {
            Some(text) => self.submit_draft(Draft::plain(InputMode::Prompt, &text)),
            None => Vec::new(),
        }
    }

    /// Returns when the application wants to hear of the time again; never, when nothing moves.
    pub fn deadline(&self) -> Option<Duration> {
        let spinner = self.session.work.as_ref().map(|work| {
            if !self.preferences.is_still(!self.dialogs.is_empty()) {
                // Whatever happens is drawn with the spinner as it is then, so that a stream needs no ticks beside it.
                return self.now + SPINNER_STEP;
            }
            work.since + Duration::from_secs(self.now.saturating_sub(work.since).as_secs() + 1)
        });
        let parts = [
            spinner,
            self.prompt.deadline(),
            self.status.deadline(),
            self.dialogs.deadline(self.now),
            self.schedule.deadline(self.is_quiet()),
            self.panel.deadline(),
            self.background.front.deadline(),
            self.transcript.conversation.deadline(self.now),
        ];
        parts.into_iter().flatten().min()
    }

    /// Returns what was chosen.
    pub(crate) fn preferences(&self) -> &Preferences {
        &self.preferences
    }

    /// Returns what is known of the session.
    pub(crate) fn session(&self) -> &SessionMirror {
        &self.session
    }

    /// Returns what the command of the status line may know beside the session.
    pub(crate) fn status_viewer(&self) -> StatusViewer {
        StatusViewer {
            version: self.preferences.options.version.clone(),
            vim_mode: self.prompt.input.vim_mode().map(VimMode::name),
            pull_request: None,
        }
    }

    /// Tells who hears of the mouse, where everything is drawn on the alternate screen, with nothing of it on the terminal's own.
    pub(crate) fn own_screen(&self) -> Option<MouseCapture> {
        self.transcript.owns_screen().then_some(self.preferences.options.fullscreen.mouse)
    }

    /// Takes what the terminal says of its backdrop.
    pub fn set_backdrop(&mut self, backdrop: Backdrop) {
        self.preferences.theming.set_backdrop(backdrop);
        self.apply_theme();
    }

    fn input(&mut self, input: InputEvent) -> Vec<Effect> {
        match input {
            InputEvent::Mouse(mouse) => {
                self.schedule.typed(self.now);
                self.mouse_moved(mouse)
            }
            InputEvent::Key(_) | InputEvent::Paste(_) => {
                self.schedule.typed(self.now);
                let before = match &input {
                    InputEvent::Key(key) if self.preferences.is_spoken() => self.prompt.before_deleting(*key),
                    _ => None,
                };
                let mut effects = self.typed(input);
                if let Some(deleted) = before.and_then(|before| self.prompt.deleted_since(&before)) {
                    self.transcript.speak(format!("deleted {deleted}"));
                }
                effects.extend(self.refresh_completion());
                effects
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
                self.schedule.focused(is_focused);
                is_focused
                    .then(|| ask_pull_request(&self.preferences, &self.session))
                    .flatten()
                    .into_iter()
                    .collect()
            }
            InputEvent::Resize { width, height } => {
                self.status.line.resized((width, height), self.now);
                Vec::new()
            }
            InputEvent::Reply(_) => Vec::new(),
        }
    }

    fn news(&mut self, news: News) -> Vec<Effect> {
        match news {
            News::Engine(event) => match *event {
                RunnerEvent::Session(event) => return self.engine_event(event),
                RunnerEvent::Renewed(id) => return self.renewed(id.to_string()),
                RunnerEvent::RenewalFailed(problem) => self.transcript.notice(NoticeLevel::Error, problem),
            },
            News::Asked(question) => return self.ask_at_start(question),
            News::Started(facts) => return self.started(*facts),
            News::Tail { blocks, entries } => self.transcript.show_tail(blocks, entries),
            News::Viewing(blocks) => {
                self.session.is_viewed = true;
                self.transcript.show_viewed(blocks);
            }
            News::StartFailed(problem) => {
                self.transcript.notice(NoticeLevel::Error, problem);
                return self.exit(ExitReason::Failed);
            }
            News::Ended { troubles, has_failed, .. } => {
                troubles.into_iter().for_each(|text| self.transcript.notice(NoticeLevel::Warning, text));
                let reason = if has_failed { ExitReason::Failed } else { ExitReason::Asked };
                return self.exit(reason);
            }
            News::Preview { question, diff } => self.dialogs.set_diff(&question, diff),
            News::Elicitation { request, payload } => {
                self.dialogs.push(ElicitationDialog::new(&request, &payload));
                return self.preferences.turn_mark(speech::TurnMark::Question);
            }
            News::RequestWithdrawn(request) => self.dialogs.withdraw(&request),
            News::Switched(facts) => {
                if let Some(switching) = &mut self.session.switching {
                    switching.facts = Some(*facts);
                }
            }
            News::SwitchFailed(problem) => {
                self.session.switching = None;
                self.transcript.notice(NoticeLevel::Error, problem);
                return self.send_held();
            }
            News::SessionInUse { target, holder } => {
                self.session.switching = None;
                self.dialogs.push(in_use_dialog(target, &holder));
                return self.send_held();
            }
            News::PanelData(data) => return self.panel_data(data),
            News::Output(blocks) => blocks.into_iter().for_each(|block| self.transcript.push(block)),
            news => return self.prompt_news(news),
        }
        Vec::new()
    }

    /// Takes news of what the interface itself has read, run or asked beside this thread.
    fn prompt_news(&mut self, news: News) -> Vec<Effect> {
        let problem = match news {
            News::Picture { number, read } => {
                let (image, problem) = match *read {
                    Ok(image) => (Some(image), None),
                    Err(why) => (None, Some(why)),
                };
                problem.into_iter().for_each(|why| self.transcript.notice(NoticeLevel::Warning, why));
                let draft = self.prompt.picture_read(number, image);
                return draft.map(|draft| self.submit_draft(draft)).unwrap_or_default();
            }
            News::Keys(read) => {
                let warnings = self.keymap.take_overrides(read);
                warnings
                    .into_iter()
                    .for_each(|warning| self.transcript.notice(NoticeLevel::Warning, warning));
                None
            }
            News::Themes(files) => {
                let files = self.preferences.theming.take_files(files);
                self.apply_theme();
                let actions = self.panel.receive(PanelData::Themes(files));
                return self.carry_out(actions);
            }
            News::Edited(edited) => edited.map(|draft| self.prompt.input.set_draft(&draft)).err(),
            News::RanOnTerminal { command, ended: Ok(exit_code) } => {
                let has_sandbox = self.session.sandbox.is_some();
                return vec![ran_on_terminal(command, exit_code, has_sandbox)];
            }
            News::RanOnTerminal { ended: Err(problem), .. } => {
                self.queue.shell_started();
                let text = format!("Failed to run `bash` for the command: {problem}");
                self.transcript.notice(NoticeLevel::Error, text);
                return self.send_held();
            }
            News::History(news) => {
                let trouble = self.prompt.take_history(news);
                trouble.map(|why| format!("The input history is not kept: {why}"))
            }
            News::Files(answer) => {
                let (prompt, ctx) = self.prompt_parts();
                let (awaited, mut effects) = prompt.files_found(answer, &ctx);
                awaited.failure.into_iter().for_each(|failure| self.flash(failure));
                if awaited.submits {
                    effects.extend(self.submit_prompt());
                    effects.extend(self.refresh_completion());
                }
                return effects;
            }
            News::Mentions(mentions) => {
                let (prompt, ctx) = self.prompt_parts();
                return prompt.mentions_listed(mentions, &ctx);
            }
            News::StatusLine(said) => self.status.line.printed(said),
            News::AgentRows(said) => self.status.agents.printed(said),
            News::PullRequest(found) => {
                self.status.take_pull_request(found.as_ref(), self.now);
                None
            }
            _ => None,
        };
        problem.into_iter().for_each(|why| self.transcript.notice(NoticeLevel::Warning, why));
        Vec::new()
    }

    fn refresh_completion(&mut self) -> Vec<Effect> {
        let (prompt, ctx) = self.prompt_parts();
        prompt.refresh(&ctx)
    }

    /// Returns the prompt, and what it has to know.
    fn prompt_parts(&mut self) -> (&mut PromptArea, PromptContext<'_>) {
        (&mut self.prompt, PromptContext::new(&self.preferences, &self.session))
    }

    /// Returns the conversation, and what decides how it is shown at a width.
    fn transcript_parts(&mut self, width: u16) -> (&mut TranscriptView, ViewContext<'_>) {
        let ctx = ViewContext {
            render: self.render_context(width),
            is_focused: self.preferences.is_focused(),
            is_working: self.session.is_working(),
            queue: &self.queue,
        };
        (&mut self.transcript, ctx)
    }

    /// Returns what renderers need to know.
    fn render_context(&self, width: u16) -> RenderContext {
        self.preferences.render_context(self.now, self.preferences.is_still(!self.dialogs.is_empty()), width)
    }

    /// Tells whether nothing is under way or open, so that somebody who comes back may be told what the session is about.
    fn is_quiet(&self) -> bool {
        let is_idle = !self.session.is_working() && self.dialogs.is_empty() && !self.panel.is_open();
        let is_away = self.prompt.input.is_empty() && self.transcript.pager.is_none();
        is_idle && is_away && self.preferences.wants_recap()
    }

    /// Puts the theme in force that is wanted.
    fn apply_theme(&mut self) {
        if let Some(why) = self.preferences.apply_theme(self.session.is_started) {
            self.transcript.notice(NoticeLevel::Warning, why);
        }
    }

    /// Takes up which renderer is wanted.
    fn choose_renderer(&mut self) {
        let (is_on, mouse) = (self.preferences.wants_fullscreen(), self.preferences.options.fullscreen.mouse);
        self.transcript.set_fullscreen(is_on, mouse);
    }

    /// Tells the person something for a while, below the prompt.
    fn flash(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.transcript.speak(text.clone());
        self.status.flash(text, self.now);
    }

    fn exit(&mut self, reason: ExitReason) -> Vec<Effect> {
        if std::mem::replace(&mut self.is_exiting, true) {
            return Vec::new();
        }
        self.transcript.conversation.end_turn(self.now);
        self.session.turn_ended();
        let (prompt, ctx) = self.prompt_parts();
        let mut effects = prompt.remember_drafts(&ctx);
        effects.push(Effect::Exit(reason));
        effects
    }
}
