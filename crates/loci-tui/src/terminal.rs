//! The terminal: taken once, given back as it was found on every way out.
//!
//! [`Terminal`] is the guard that owns every mode. It takes the terminal without waiting for an answer: questions are
//! sent at once, answers come as [`Reply`] events, and [`Terminal::accept_reply`] switches on what they allow. It is
//! given back when the guard is dropped or closed, before the message of a panic, by signals (`signals`), and when the
//! process is stopped or a child gets the terminal. `docs/design/terminal-input.md` has the whole list with its tests.
//!
//! Escape sequences of frames are written by `screen`, through [`Terminal::output`]; only the thread that owns the guard
//! writes.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use loci_stdx::Vars;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::termios::tcgetwinsize;

use self::reader::Reader;
use self::restore::Restorer;
use self::signals::Signals;
use crate::key::{InputEvent, Reply};
use crate::mailbox::Mailbox;

mod burst;
mod line_discipline;
mod modes;
mod parser;
mod reader;
mod restore;
mod signals;

pub use line_discipline::{read_secret, reset_terminal};
pub use modes::RESET_TERMINAL;
pub use parser::Parser;

/// Leaves the terminal that the process was started at, so that it goes on when that is closed. Fails in a process that leads
/// a group.
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid().map(drop).map_err(io::Error::from)
}

/// How long an answer that is still under way is waited for before the terminal is given back.
const LAST_ANSWER_PATIENCE: Duration = Duration::from_millis(50);

/// What is known of a terminal before it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOptions {
    /// No escape sequence is sent.
    pub is_dumb: bool,
    /// Questions are sent that old terminals answer with rubbish on the screen.
    pub may_ask: bool,
    /// Its word of another size comes after the change: a multiplexer draws for it, or it is kitty. It is asked for its size,
    /// behind every frame.
    pub tells_size_late: bool,
    /// How long to wait whether an Escape begins a sequence.
    pub escape_patience: Duration,
}

impl TerminalOptions {
    /// Reads what the environment says of the terminal.
    pub fn from_vars(vars: &Vars) -> Self {
        let term = vars.get("TERM").unwrap_or_default();
        let is_remote =
            ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"].iter().any(|name| vars.non_empty(name).is_some());
        let is_multiplexer = ["TMUX", "STY", "ZELLIJ"].iter().any(|name| vars.non_empty(name).is_some())
            || ["tmux", "screen"].iter().any(|name| term.starts_with(name));
        let is_kitty = term == "xterm-kitty";
        let is_old = term == "linux" || vars.get("TERM_PROGRAM") == Some("Apple_Terminal");
        Self {
            is_dumb: term.is_empty() || term == "dumb",
            may_ask: !is_old,
            tells_size_late: is_multiplexer || is_kitty,
            escape_patience: Duration::from_millis(if is_remote { 50 } else { 25 }),
        }
    }
}

/// Why the terminal could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// There is none.
    #[error("Failed to open the terminal: `/dev/tty`; use `-p` to run without one")]
    Open(#[source] io::Error),
    /// It could not be made raw, or the reader could not be started.
    #[error("Failed to set up the terminal")]
    SetUp(#[source] io::Error),
}

/// The terminal, while it is ours.
#[derive(Debug)]
pub struct Terminal {
    restorer: Arc<Restorer>,
    signals: Signals,
    wake: PipeWriter,
    reader: Reader,
    panics: Arc<Panics>,
    may_ask: bool,
    tells_size_late: bool,
    /// The last question was answered, so that no answer is under way.
    is_answered: bool,
}

impl Terminal {
    /// Takes the terminal and starts to read it into the mailbox. Whatever was typed already comes first.
    ///
    /// The thread that calls this is the one that draws.
    pub fn open<N: Send + 'static>(
        options: &TerminalOptions,
        mailbox: &Mailbox<N>,
    ) -> Result<Self, TerminalError> {
        let (input, output) = open_device().map_err(TerminalError::Open)?;
        Self::set_up(input, output, options, mailbox).map_err(TerminalError::SetUp)
    }

    fn set_up<N: Send + 'static>(
        input: OwnedFd,
        output: OwnedFd,
        options: &TerminalOptions,
        mailbox: &Mailbox<N>,
    ) -> io::Result<Self> {
        let wanted = modes::PASTE | modes::FOCUS | modes::COLORS;
        let restorer = Arc::new(Restorer::new(input, output, options.is_dumb, wanted)?);
        let (pipe, wake) = io::pipe()?;
        rustix::io::ioctl_fionbio(&wake, true)?;
        let signals = Signals::install(Arc::clone(&restorer), wake.try_clone()?.into())?;
        let panics = Panics::install(Arc::clone(&restorer));
        let n_typed_ahead = restorer.take().and_then(|()| Ok(rustix::io::ioctl_fionread(restorer.input())?));
        let n_typed_ahead =
            usize::try_from(n_typed_ahead.inspect_err(|_| restorer.give_back())?).unwrap_or(0);
        let parser = Parser::new(options.escape_patience);
        let reader = Reader::start(Arc::clone(&restorer), pipe, parser, n_typed_ahead, mailbox.clone())
            .inspect_err(|_| restorer.give_back())?;
        let mut terminal = Self {
            restorer,
            signals,
            wake,
            reader,
            panics,
            may_ask: options.may_ask,
            tells_size_late: options.tells_size_late,
            is_answered: true,
        };
        terminal.ask()?;
        Ok(terminal)
    }

    /// Asks the terminal what it can do; nothing waits for the answers.
    fn ask(&mut self) -> io::Result<()> {
        if self.restorer.is_dumb() {
            return Ok(());
        }
        self.restorer.write(modes::RESET_AT_START)?;
        if self.may_ask {
            if self.tells_size_late {
                self.restorer.write(b"\x1b[18t")?;
            }
            // Synchronized output, bracketed paste, kitty keyboard, background colour; and last what all answer.
            self.restorer.write(b"\x1b[?2026$p\x1b[?2004$p\x1b[?u\x1b]11;?\x1b\\\x1b[c")?;
            self.is_answered = false;
        }
        Ok(())
    }

    /// Takes an answer and switches on what it allows. Replies that say nothing about modes are left alone.
    pub fn accept_reply(&mut self, reply: &Reply) -> io::Result<()> {
        match reply {
            Reply::KeyboardFlags(flags) if !self.restorer.is_on(modes::KITTY) => {
                if *flags != 0 {
                    self.restorer.write(modes::CLEAR_KITTY)?;
                }
                self.restorer.switch(modes::OTHER_KEYS, false)?;
                self.restorer.switch(modes::KITTY, true)
            }
            Reply::Identity(identity) if identity.starts_with('?') => {
                self.is_answered = true;
                let has_kitty = self.restorer.is_on(modes::KITTY);
                self.restorer.switch(modes::OTHER_KEYS, self.may_ask && !has_kitty)
            }
            _ => Ok(()),
        }
    }

    /// Returns columns and rows.
    pub fn size(&self) -> (u16, u16) {
        size_of(&self.restorer)
    }

    /// Returns where frames are written to: each in one write.
    pub fn output(&self) -> io::Result<File> {
        Ok(File::from(self.restorer.output().try_clone()?))
    }

    /// Tells whether no escape sequence may be sent.
    pub fn is_dumb(&self) -> bool {
        self.restorer.is_dumb()
    }

    /// Notes how many rows of the live region stand below the cursor, or that the cursor is on a fresh row already
    /// (`None`), so that whatever ends the process leaves the cursor below everything.
    pub fn set_rows_below(&self, rows_below: Option<u16>) {
        self.restorer.set_rows_below(rows_below);
    }

    /// Switches reports of the mouse on or off.
    pub fn set_mouse(&self, is_on: bool) -> io::Result<()> {
        self.restorer.switch(modes::MOUSE, is_on)
    }

    /// Enters or leaves the alternate screen. Each screen has keyboard flags of its own, so they go along.
    pub fn set_alternate_screen(&self, is_on: bool) -> io::Result<()> {
        if self.restorer.is_on(modes::ALTERNATE) == is_on {
            return Ok(());
        }
        let has_kitty = self.restorer.is_on(modes::KITTY);
        if has_kitty {
            self.restorer.switch(modes::KITTY, false)?;
        }
        self.restorer.switch(modes::ALTERNATE, is_on)?;
        self.restorer.switch(modes::KITTY, has_kitty)
    }

    /// Sets the title of the window; the one that was found comes back at the end.
    pub fn set_title(&self, title: &str) -> io::Result<()> {
        if self.restorer.is_dumb() {
            return Ok(());
        }
        self.restorer.switch(modes::TITLE, true)?;
        let title: String = title.chars().filter(|char| !char.is_control()).collect();
        self.restorer.write(format!("\x1b]2;{title}\x1b\\").as_bytes())
    }

    /// Stops the process as Ctrl+Z at a shell does: the terminal is given back, and taken again when it goes on.
    /// What is shown must be drawn anew afterwards. Returns whether the terminal is ours again (`take_again`).
    pub fn suspend(&mut self) -> io::Result<bool> {
        let Self { restorer, reader, signals, wake, .. } = self;
        reader.pause(|| wake_up(wake));
        restorer.give_back();
        let stopped = signals.stop_process(Signal::TSTP);
        let taken = self.take_again();
        self.reader.go_on();
        stopped.and(taken)
    }

    /// Sets up the modes again after a stop that was not ours (`TerminalSignal::Continued`). Returns whether the terminal is
    /// ours (`take_again`).
    pub fn set_up_again(&mut self) -> io::Result<bool> {
        self.take_again()
    }

    /// Tells whether the terminal is ours now.
    pub fn is_ours(&self) -> bool {
        self.restorer.is_taken()
    }

    /// Takes the terminal once this process is in the foreground; until then it stays stopped, as any other that wants to change
    /// a terminal from the background. Returns false where it was told to end before that (`kill %1`): it ends then, and
    /// leaves a terminal alone that is the shell's.
    fn take_again(&self) -> io::Result<bool> {
        while !self.restorer.is_in_foreground() {
            if self.signals.is_ending() {
                self.restorer.set_rows_below(None);
                self.restorer.undo_modes();
                return Ok(false);
            }
            // Nothing stops a group that no shell could wake again.
            if !self.signals.stop_process(Signal::TTOU)? {
                break;
            }
        }
        self.restorer.take().map(|()| true)
    }

    /// Gives the terminal to whatever `run` starts, such as an editor, and takes it back afterwards. Keys of the
    /// keyboard that are signals are left to the child meanwhile. What is shown must be drawn anew.
    pub fn lend<T>(&mut self, run: impl FnOnce() -> T) -> io::Result<T> {
        let Self { restorer, reader, signals, wake, .. } = self;
        reader.pause(|| wake_up(wake));
        restorer.give_back();
        signals.set_lent(true);
        let ran = run();
        signals.set_lent(false);
        let taken = restorer.take().and_then(|()| restorer.write(b"\r"));
        reader.go_on();
        taken.map(|()| ran)
    }

    /// Returns what threads beside this one said when they panicked; it was kept from the screen.
    pub fn take_panics(&self) -> Vec<String> {
        self.panics.take()
    }

    /// Waits for an answer that is under way, and throws away what is typed but not read: it must not reach the shell.
    fn drain(&self) {
        let patience = if self.is_answered { Duration::ZERO } else { LAST_ANSWER_PATIENCE };
        let mut deadline = Instant::now() + patience;
        let mut parser = Parser::new(Duration::ZERO);
        let mut buffer = [0; 4096];
        // Bounded: somebody may lean on the keyboard.
        for _ in 0..256 {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
            let mut fds = [PollFd::new(self.restorer.input(), PollFlags::IN)];
            if !poll(&mut fds, left.as_ref()).is_ok_and(|n_ready| n_ready > 0) {
                return;
            }
            let n_read = rustix::io::read(self.restorer.input(), &mut buffer).unwrap_or(0);
            if n_read == 0 {
                return;
            }
            let is_last_answer = |event: &InputEvent| matches!(event, InputEvent::Reply(Reply::Identity(_)));
            if parser.feed(&buffer[..n_read]).iter().any(is_last_answer) {
                deadline = Instant::now();
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let Self { reader, wake, .. } = self;
        reader.stop(|| wake_up(wake));
        if self.restorer.undo_modes() {
            self.drain();
            self.restorer.leave_raw();
        }
        self.signals.uninstall();
        self.panics.close();
    }
}

/// Wakes the reader.
fn wake_up(mut wake: &PipeWriter) {
    // A full pipe wakes it as well.
    wake.write_all(&[reader::WAKE]).ok();
}

/// Opens the terminal to read from and to write to: what the process was started with, or the one it belongs to.
///
/// Standard input comes first, since `/dev/tty` cannot be waited for on macOS.
fn open_device() -> io::Result<(OwnedFd, OwnedFd)> {
    let device = || OpenOptions::new().read(true).write(true).open("/dev/tty").map(OwnedFd::from);
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let input = if stdin.is_terminal() { stdin.as_fd().try_clone_to_owned()? } else { device()? };
    let output = if stdout.is_terminal() { stdout.as_fd().try_clone_to_owned()? } else { device()? };
    Ok((input, output))
}

/// Columns and rows; a terminal that does not know gets what terminals once were.
fn size_of(restorer: &Restorer) -> (u16, u16) {
    match tcgetwinsize(restorer.output()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

/// What happens when something panics while the terminal is ours.
#[derive(Debug)]
struct Panics {
    owner: ThreadId,
    /// Messages of other threads; none is kept any more once the terminal is closed.
    kept: Mutex<Option<Vec<String>>>,
}

impl Panics {
    /// Gives the terminal back before the message of a panic of this thread, and keeps those of others from the screen.
    fn install(restorer: Arc<Restorer>) -> Arc<Self> {
        let panics =
            Arc::new(Self { owner: std::thread::current().id(), kept: Mutex::new(Some(Vec::new())) });
        let hook = Arc::clone(&panics);
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().id() == hook.owner {
                restorer.give_back();
            } else if hook.keep(|| info.to_string()) {
                return;
            }
            previous(info);
        }));
        panics
    }

    /// Keeps a message, unless the terminal is closed.
    fn keep(&self, message: impl FnOnce() -> String) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_mut().map(|kept| kept.push(message())).is_some()
    }

    fn take(&self) -> Vec<String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Tells what was kept, now that the screen is the shell's again.
    fn close(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        for message in kept.unwrap_or_default() {
            // There may be no standard error to tell it on.
            writeln!(io::stderr(), "{message}").ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_that_tells_late_is_asked_for_its_size() {
        for (vars, expected) in [
            (&[("TERM", "xterm-256color")][..], false),
            (&[("TERM", "xterm-256color"), ("TMUX", "/tmp/t")], true),
            (&[("TERM", "screen.xterm-256color"), ("STY", "1.pts")], true),
            (&[("TERM", "xterm-256color"), ("ZELLIJ", "0")], true),
            // At the other end of an ssh.
            (&[("TERM", "tmux-256color")], true),
            (&[("TERM", "xterm-kitty"), ("KITTY_WINDOW_ID", "1")], true),
        ] {
            let vars = vars.iter().fold(Vars::default(), |vars, (name, value)| vars.with(*name, *value));
            assert_eq!(TerminalOptions::from_vars(&vars).tells_size_late, expected, "{vars:?}");
        }
    }
}
