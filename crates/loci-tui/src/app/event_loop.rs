//! The loop of the thread that draws: letters in, frames out.
//!
//! What was typed is drawn at once. News of a stream is drawn at most sixty times a second, the spinner ten times; when
//! nothing happens there is no timer. A terminal that takes its time makes frames rarer, never input.

mod actions;
mod open_answers;
mod own_files;
mod reader_pace;
mod size_check;

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loci_app::interface::status_line::{PullRequests, StatusScript};
use loci_app::start::SessionStart;
use loci_engine::Command;
use loci_stdx::Env;

use super::fullscreen::FullView;
use super::window::WindowState;
use super::{App, AppOptions, BackgroundRun, Elsewhere, Event, ExitReason, MouseCapture, News, PlainMode};
use own_files::{OwnFiles, TypingPause};
use reader_pace::ReaderPace;
use size_check::{SizeAnswer, SizeCheck};

use crate::input::{FileCompleter, FileSource, HistoryFile, PastPrompt};
use crate::key::{InputEvent, Reply};
use crate::mailbox::{Letter, Mailbox};
use crate::notification::TerminalFacts;
use crate::screen::{Frame, FullScreen, PlainWriter, Size, Surface, Writer, WriterOptions};
use crate::session::{SessionThread, ToSession};
use crate::terminal::{Terminal, TerminalError, TerminalOptions};
use crate::theme::Backdrop;

/// The least time between two frames that nobody typed for.
const FRAME_TIME: Duration = Duration::from_millis(16);
/// How many letters are taken before a frame is drawn.
const MOST_LETTERS: usize = 256;
/// How long the session may take to end once the person has left.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// The same where the process was told to end.
const SHORT_PATIENCE: Duration = Duration::from_millis(950);

/// What the interface is started with.
#[derive(Debug, Clone)]
pub struct InterfaceOptions {
    /// What the application is started with.
    pub app: AppOptions,
    /// The ambient world.
    pub env: Env,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// The exit code.
    pub code: u8,
    /// What is to be told below, now that the terminal is the shell's again.
    pub farewell: Vec<String>,
    /// Whether the demo is to be played in the place of a session.
    pub plays_demo: bool,
    /// Where it is to go on.
    pub elsewhere: Option<Elsewhere>,
    /// How it is to go on without a terminal.
    pub background: Option<BackgroundRun>,
}

/// Runs the interface on the calling thread until the person leaves. The prompt is painted before the session is begun.
pub fn run(options: InterfaceOptions, start: SessionStart) -> Result<RunEnd, TerminalError> {
    let mailbox = Mailbox::default();
    let terminal = Terminal::open(&TerminalOptions::from_vars(&options.env.vars), &mailbox)?;
    let output = terminal.output().map_err(TerminalError::SetUp)?;
    let size = size_of(&terminal);
    let plain = options.app.plain.clone();
    let terminal_facts = TerminalFacts::from_vars(&options.env.vars);
    let pace = match &plain {
        Some(PlainMode::ScreenReader(_)) => ReaderPace::new(&options.env.vars, Instant::now()),
        Some(PlainMode::Dumb) | None => ReaderPace::default(),
    };
    let writer_options = WriterOptions::from_vars(&options.env.vars);
    let mut event_loop = EventLoop {
        pace,
        app: App::new(options.app),
        env: options.env,
        writer: match plain {
            Some(_) => Surface::Plain(PlainWriter::default()),
            None => Surface::Inline(Writer::new(size, writer_options)),
        },
        output,
        terminal,
        mailbox,
        began: Instant::now(),
        session: None,
        history: None,
        own_files: Arc::default(),
        typing_pause: TypingPause::default(),
        terminal_facts,
        may_pass: Arc::default(),
        window: WindowState::default(),
        unsaved: Vec::new(),
        completer: None,
        size,
        drawn_at: None,
        ticked_at: None,
        resized_at: None,
        size_check: SizeCheck::default(),
        exit: None,
        plays_demo: false,
        elsewhere: None,
        background: None,
        status_script: StatusScript::default(),
        agent_rows_script: StatusScript::default(),
        pull_requests: PullRequests::default(),
        full_screen: None,
        was_lent: false,
    };
    event_loop.start_below().and_then(|()| event_loop.draw()).map_err(TerminalError::SetUp)?;
    let session = SessionThread::spawn(start, event_loop.mailbox.clone()).map_err(TerminalError::SetUp)?;
    event_loop.session = Some(session);
    event_loop.open_history();
    event_loop.read_own_files();
    event_loop.ask_tmux();
    let first = event_loop.app.begin();
    event_loop.perform(first);
    Ok(event_loop.run())
}

fn size_of(terminal: &Terminal) -> Size {
    let (width, height) = terminal.size();
    Size { width, height }
}

/// What is known of the screen that the conversation is on, once it is shown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnScreen {
    /// Where its live region is.
    AsItWas,
    /// The terminal has yet to say where the cursor went.
    Unknown,
}

struct EventLoop {
    /// When something may be written for a screen reader.
    pace: ReaderPace,
    app: App,
    env: Env,
    writer: Surface,
    output: File,
    terminal: Terminal,
    mailbox: Mailbox<News>,
    began: Instant,
    session: Option<SessionThread>,
    history: Option<HistoryFile>,
    /// The person's key bindings and themes, as they were last read.
    own_files: Arc<Mutex<OwnFiles>>,
    /// Tells when somebody types again who may have changed them meanwhile.
    typing_pause: TypingPause,
    terminal_facts: TerminalFacts,
    /// Whether tmux lets sequences through.
    may_pass: Arc<AtomicBool>,
    /// What the window shows around the text.
    window: WindowState,
    /// Prompts for it that wait for the id of the session.
    unsaved: Vec<PastPrompt>,
    completer: Option<(FileSource, FileCompleter)>,
    size: Size,
    drawn_at: Option<Instant>,
    /// When time last brought something: no more often than a frame is drawn, whatever is due.
    ticked_at: Option<Duration>,
    /// When the size last changed; the frame after it waits for the terminal to say where the cursor went.
    resized_at: Option<Instant>,
    size_check: SizeCheck,
    exit: Option<ExitReason>,
    plays_demo: bool,
    elsewhere: Option<Elsewhere>,
    background: Option<BackgroundRun>,
    /// The command of the status line.
    status_script: StatusScript,
    /// The command for the rows of agents.
    agent_rows_script: StatusScript,
    /// What the status line may say of the branch's pull request.
    pull_requests: PullRequests,
    /// The writer of the alternate screen while that is shown, and the size at which it was entered.
    full_screen: Option<(FullScreen, Size)>,
    /// Whether somebody else had the terminal while the alternate screen was shown.
    was_lent: bool,
}

impl EventLoop {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn run(mut self) -> RunEnd {
        let mut is_dirty = true;
        while self.exit.is_none() {
            let (has_input, has_news) = self.take_letters(is_dirty);
            is_dirty |= has_news;
            is_dirty |= self.resized_at.is_some();
            if let Some(resized) = self.resized_at {
                if resized.elapsed() < self.size_check.patience() {
                    continue;
                }
                let tracks = self.size_check.give_up();
                self.track_frames(tracks);
            }
            let is_due = self.drawn_at.is_none_or(|drawn| drawn.elapsed() >= FRAME_TIME);
            if self.exit.is_none() && (has_input || is_dirty && is_due) {
                is_dirty = false;
                if self.draw().is_err() {
                    // Nobody can see it any more.
                    self.exit = Some(ExitReason::HungUp);
                }
            }
        }
        self.end()
    }

    /// Takes what is in the mailbox, waiting for it as long as nothing is to be drawn; returns whether something was typed
    /// and whether there was news, or time has brought some.
    fn take_letters(&mut self, is_dirty: bool) -> (bool, bool) {
        let (mut has_input, mut has_news) = (false, false);
        let mut patience = self.patience(is_dirty);
        if is_dirty && self.resized_at.is_none() {
            self.mailbox.wait_for_input(patience.unwrap_or_default());
            patience = Some(Duration::ZERO);
        }
        for _ in 0..MOST_LETTERS {
            let event = match self.mailbox.take(patience) {
                Letter::Input(event) => {
                    has_input |= !matches!(event, InputEvent::Reply(Reply::TextArea { .. }));
                    self.apply_to_terminal(&event);
                    Event::Input(event)
                }
                Letter::News(news) => {
                    has_news = true;
                    // The end of a session is waited for as a key's echo is.
                    has_input |= matches!(news, News::Tail { .. });
                    if let News::Started(facts) = &news
                        && let Some(vars) = &facts.vars
                    {
                        self.env.vars = vars.clone();
                    }
                    Event::News(news)
                }
                Letter::Nothing => {
                    let is_time = self.app.deadline().is_some_and(|deadline| deadline <= self.now());
                    if is_time {
                        let now = self.now();
                        self.ticked_at = Some(now);
                        let actions = self.app.update(Event::Tick, now);
                        self.perform(actions);
                    }
                    let is_heard = self.pace.end_when_due(Instant::now());
                    return (has_input, has_news || is_time || is_heard);
                }
            };
            let now = self.now();
            let actions = self.app.update(event, now);
            self.perform(actions);
            if self.exit.is_some() {
                break;
            }
            patience = Some(Duration::ZERO);
        }
        (has_input, has_news)
    }

    /// Returns how long to wait for the next letter.
    fn patience(&self, is_dirty: bool) -> Option<Duration> {
        let frame =
            self.drawn_at.filter(|_| is_dirty).map(|drawn| FRAME_TIME.saturating_sub(drawn.elapsed()));
        let resize =
            self.resized_at.map(|resized| self.size_check.patience().saturating_sub(resized.elapsed()));
        let frame = resize.or(frame);
        let next_tick = self.ticked_at.map_or(Duration::ZERO, |ticked| ticked + FRAME_TIME);
        let deadline = self.app.deadline().map(|due| due.max(next_tick).saturating_sub(self.now()));
        [frame, deadline, self.pace.patience(Instant::now())].into_iter().flatten().min()
    }

    /// Does what an event means to the terminal itself.
    fn apply_to_terminal(&mut self, event: &InputEvent) {
        let seen = match event {
            InputEvent::Resize { width, height } if self.full_screen.is_some() => {
                // A whole screen is drawn anew, wherever the cursor went.
                self.size = Size { width: *width, height: *height };
                Ok(())
            }
            // It was seen before the word of it came.
            InputEvent::Resize { width, height }
                if (Size { width: *width, height: *height }) == self.size
                    && self.resized_at.is_none()
                    && !self.size_check.answers() =>
            {
                Ok(())
            }
            InputEvent::Resize { width, height } => {
                self.size = Size { width: *width, height: *height };
                self.writer.expect_moved_rows();
                match self.terminal.is_dumb() || self.writer.is_plain() {
                    true => {
                        self.resized_at = Some(Instant::now());
                        Ok(())
                    }
                    false => self.ask_for_window(),
                }
            }
            InputEvent::Key(_) | InputEvent::Paste(_) => {
                self.pace.end_quiet();
                if self.typing_pause.is_over(self.began.elapsed()) {
                    self.read_own_files();
                }
                Ok(())
            }
            InputEvent::Focus(true) => {
                self.read_own_files();
                Ok(())
            }
            InputEvent::Reply(reply) => {
                self.apply_terminal_reply(reply);
                self.terminal.accept_reply(reply)
            }
            _ => Ok(()),
        };
        if seen.is_err() {
            self.exit = Some(ExitReason::HungUp);
        }
    }

    /// Takes what the terminal says of itself, as far as drawing is concerned.
    fn apply_terminal_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Mode { mode: 2026, state } => {
                let is_forced = self.env.vars.is_truthy("CLAUDE_CODE_FORCE_SYNC_OUTPUT");
                let is_synchronized = is_forced || matches!(state, 1..=3);
                self.writer.set_synchronized(is_synchronized);
                if let Some((screen, _)) = &mut self.full_screen {
                    screen.set_options(self.writer.options());
                }
            }
            Reply::Color { osc: 11, rgb } => self.app.set_backdrop(Backdrop::from_rgb(*rgb)),
            Reply::ColorScheme { is_dark } => {
                self.app.set_backdrop(if *is_dark { Backdrop::Dark } else { Backdrop::Light });
            }
            Reply::TextArea { first, second } => self.take_size_answer(*first, *second),
            Reply::CursorPosition { row, column }
                if self.size_check.take_cursor() && self.resized_at.is_some() =>
            {
                self.writer.report_cursor(*row, *column);
                self.resized_at = None;
            }
            _ => {}
        }
    }

    /// Takes the size that the terminal says it has.
    fn take_size_answer(&mut self, first: u16, second: u16) {
        match self.size_check.take_size(first, second, size_of(&self.terminal)) {
            SizeAnswer::Offered => self.track_frames(self.size_check.answers()),
            SizeAnswer::Window => {}
            SizeAnswer::Frame(size) => {
                // The word of the change is under way.
                if !self.writer.answer_frame(size) && self.full_screen.is_none() {
                    self.resized_at.get_or_insert_with(Instant::now);
                }
            }
        }
    }

    fn track_frames(&mut self, is_on: bool) {
        if is_on != self.writer.tracks_frames() {
            self.writer.track_frames(is_on);
        }
    }

    /// Waits with the next frame until the terminal has said what has become of the window.
    fn ask_for_window(&mut self) -> io::Result<()> {
        self.resized_at = Some(Instant::now());
        self.output.write_all(self.size_check.ask_for_window())
    }

    fn start_below(&mut self) -> io::Result<()> {
        let bytes = self.writer.start_below(self.size);
        self.output.write_all(&bytes)
    }

    fn draw(&mut self) -> io::Result<()> {
        self.resized_at = None;
        // In the background the terminal is the shell's.
        if !self.terminal.is_ours() || self.is_behind_the_window() {
            return Ok(());
        }
        self.save_history(false);
        if let Some(view) = self.app.full_screen(self.size) {
            return self.draw_full_screen(&view);
        }
        if self.leave_full_screen()? == OwnScreen::Unknown {
            return Ok(());
        }
        let mut frame = self.app.view(self.size);
        if self.pace.is_quiet() {
            frame.live.clear();
            frame.caret = None;
        }
        let mut bytes = self.writer.draw(&frame, self.size);
        if !bytes.is_empty() {
            if !self.writer.is_plain() {
                bytes.extend_from_slice(self.size_check.ask_behind_frame());
            }
            if let Some(prepark) = self.pace.prepark_before(&bytes) {
                self.output.write_all(b"\r")?;
                std::thread::sleep(prepark);
            }
            self.output.write_all(&bytes)?;
        }
        let n_rows = frame.live.len().max(1) - 1;
        let below = n_rows.saturating_sub(frame.caret.map_or(n_rows, |(row, _)| row));
        self.terminal.set_rows_below(Some(u16::try_from(below).unwrap_or(0)));
        self.show_window()?;
        self.drawn_at = Some(Instant::now());
        let now = self.now();
        let actions = self.app.update(Event::Drawn, now);
        self.perform(actions);
        Ok(())
    }

    /// Tells whether the window has another size than the frame would be for, and takes that size: a frame that is written for
    /// the old one lands in the wrong rows, and the word of the change may come after it.
    fn is_behind_the_window(&mut self) -> bool {
        let Size { width, height } = size_of(&self.terminal);
        if (Size { width, height }) == self.size || self.writer.is_plain() {
            return false;
        }
        let event = InputEvent::Resize { width, height };
        self.apply_to_terminal(&event);
        let now = self.now();
        let actions = self.app.update(Event::Input(event), now);
        self.perform(actions);
        self.resized_at.is_some()
    }

    /// Draws on the alternate screen, and goes there first where it is not shown.
    fn draw_full_screen(&mut self, view: &FullView) -> io::Result<()> {
        if self.writer.is_plain() {
            let (live, caret) = (view.rows.clone(), view.caret);
            let frame = Frame { live, caret, is_tall: true, ..Frame::default() };
            let bytes = self.writer.draw(&frame, self.size);
            self.drawn_at = Some(Instant::now());
            return self.output.write_all(&bytes);
        }
        if self.full_screen.is_none() {
            if self.app.own_screen().is_some() {
                // Nothing of ours stays on the other screen; a pager leaves it as it is.
                let bytes = self.writer.leave();
                self.output.write_all(&bytes)?;
                self.terminal.set_rows_below(None);
            }
            self.terminal.set_alternate_screen(true)?;
            self.full_screen = Some((FullScreen::new(self.writer.options()), self.size));
        }
        let takes_mouse = self.app.own_screen().is_some_and(|mouse| mouse != MouseCapture::Off);
        self.terminal.set_mouse(takes_mouse)?;
        if let Some((screen, _)) = &mut self.full_screen {
            if self.app.preferences().repaints_all() {
                *screen = FullScreen::new(self.writer.options());
            }
            let bytes = screen.draw_scrolling(&view.rows, view.n_scrolling, view.caret, self.size);
            if !bytes.is_empty() {
                self.output.write_all(&bytes)?;
            }
        }
        self.show_window()?;
        self.drawn_at = Some(Instant::now());
        let now = self.now();
        let actions = self.app.update(Event::Drawn, now);
        self.perform(actions);
        Ok(())
    }

    /// Goes back to the screen that the conversation is on; what it shows is as it was, unless the window has changed or
    /// somebody else had the terminal.
    fn leave_full_screen(&mut self) -> io::Result<OwnScreen> {
        let Some((_, size)) = self.full_screen.take() else { return Ok(OwnScreen::AsItWas) };
        self.terminal.set_mouse(false)?;
        self.terminal.set_alternate_screen(false)?;
        self.size = size_of(&self.terminal);
        if std::mem::take(&mut self.was_lent) {
            let bytes = self.writer.leave();
            self.output.write_all(&bytes)?;
            self.start_below()?;
        } else if size != self.size {
            if size.height > self.size.height && !self.writer.options().reflows {
                // Such a terminal cuts rows off and pushes the cursor up, onto whatever stands there.
                self.output.write_all(b"\n")?;
            }
            // The window changed while another screen was shown: as after any other change, the terminal is asked first.
            self.ask_for_window()?;
            return Ok(OwnScreen::Unknown);
        }
        Ok(OwnScreen::AsItWas)
    }

    fn facts(&self) -> TerminalFacts {
        TerminalFacts { may_pass: self.may_pass.load(Ordering::Relaxed), ..self.terminal_facts }
    }

    /// Shows what has changed around the text: title and progress.
    fn show_window(&mut self) -> io::Result<()> {
        if self.terminal.is_dumb() {
            return Ok(());
        }
        let next = WindowState::new(self.app.preferences(), self.app.session());
        if next.title != self.window.title && !self.env.vars.is_truthy("CLAUDE_CODE_DISABLE_TERMINAL_TITLE") {
            self.terminal.set_title(next.title.as_deref().unwrap_or("loci"))?;
        }
        if next.is_working != self.window.is_working {
            self.output.write_all(&self.facts().progress(next.is_working))?;
        }
        self.window = next;
        Ok(())
    }

    fn repaint(&mut self) -> io::Result<()> {
        self.size = size_of(&self.terminal);
        self.size_check.clear();
        self.drawn_at = None;
        // Whoever had the terminal meanwhile had its title, too.
        self.window = WindowState::default();
        if let Some((screen, _)) = &mut self.full_screen {
            *screen = FullScreen::new(self.writer.options());
            self.was_lent = true;
            return Ok(());
        }
        self.start_below()
    }

    fn tell(&self, message: ToSession) {
        if let Some(session) = &self.session {
            session.send(message);
        }
    }

    /// Ends the session within reason, and gives the terminal back.
    fn end(mut self) -> RunEnd {
        self.save_history(true);
        let reason = self.exit.unwrap_or(ExitReason::Asked);
        let is_hurried = matches!(reason, ExitReason::Terminated | ExitReason::HungUp);
        let mut farewell = Vec::new();
        let mut has_failed = reason == ExitReason::Failed;
        if let Some(session) = self.session.take() {
            if reason == ExitReason::Asked {
                // As hooks are told of it.
                let reason = "prompt_input_exit";
                session.send(ToSession::Command(Command::Leave { title: None, reason }));
            }
            session.send(ToSession::Command(Command::Quit));
            session.send(ToSession::End);
            let patience = if is_hurried { SHORT_PATIENCE } else { LAST_PATIENCE };
            let deadline = Instant::now() + patience;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match self.mailbox.take(Some(left)) {
                    Letter::News(News::Ended { troubles, has_failed: failed, cost_usd }) => {
                        farewell.extend(troubles);
                        farewell.extend(self.app.preferences().cost_farewell(cost_usd));
                        has_failed |= failed;
                        session.join();
                        break;
                    }
                    Letter::News(news) => {
                        let now = self.now();
                        // Nothing is sent any more; what is said is still shown.
                        drop(self.app.update(Event::News(news), now));
                    }
                    // Nobody acts on keys any more; an answer that came is not waited for.
                    Letter::Input(InputEvent::Reply(reply)) => self.apply_terminal_reply(&reply),
                    Letter::Input(_) => {}
                    Letter::Nothing => break,
                }
            }
        }
        if reason != ExitReason::HungUp && self.terminal.is_ours() {
            // Nobody is left to see it when this fails.
            drop(self.take_open_answers());
            // Nobody is left to see it when this fails. The size may have changed since it was last told.
            drop(self.leave_full_screen());
            self.size = size_of(&self.terminal);
            let frame = self.app.last_view(self.size);
            // Nobody is left to see it when this fails.
            let mut bytes = self.writer.draw(&frame, self.size);
            bytes.extend(self.writer.leave());
            drop(self.output.write_all(&bytes));
            if self.window.is_working {
                drop(self.output.write_all(&self.facts().progress(false)));
            }
            self.terminal.set_rows_below(None);
        }
        farewell.extend(self.app.session().resume_hint());
        let code = match reason {
            ExitReason::Asked if has_failed => 1,
            reason => reason.code(),
        };
        RunEnd {
            code,
            farewell,
            plays_demo: self.plays_demo,
            elsewhere: self.elsewhere,
            background: self.background,
        }
    }
}
