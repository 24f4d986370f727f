//! The thread that reads the terminal.
//!
//! It waits for bytes and for signals at once, parses, and puts events into a mailbox; it never waits for an answer of
//! the terminal, a disk or a lock that is held while anything slow is done. When the mailbox is full it reads no more,
//! so that the system's own buffer holds what is typed. It can be paused, so that a child has the terminal alone.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::burst::BurstDetector;
use super::restore::Restorer;
use super::signals::end_process;
use super::{Parser, size_of};
use crate::key::{InputEvent, TerminalSignal};
use crate::mailbox::Mailbox;

/// Sizes that change within this time are told once.
const RESIZE_TIME: Duration = Duration::from_millis(50);

/// How long the thread that draws has to end after a hangup, and after being asked to.
const HANG_UP_PATIENCE: Duration = Duration::from_secs(1);
const TERMINATE_PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for room in the mailbox before looking whether to pause.
const ROOM_PATIENCE: Duration = Duration::from_millis(20);

/// Wakes the thread through the pipe of the signals; no signal has this number.
pub(super) const WAKE: u8 = 0;

/// A reader that runs, and may be paused.
#[derive(Debug)]
pub(super) struct Reader {
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Control {
    /// Guards what is wanted of the thread and what it does; held for a look.
    state: Mutex<ReaderState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ReaderState {
    pause: bool,
    stop: bool,
    is_paused: bool,
}

impl Reader {
    /// Starts the thread; `n_typed_ahead` bytes were typed before the terminal was raw.
    pub(super) fn start<N: Send + 'static>(
        restorer: Arc<Restorer>,
        pipe: PipeReader,
        parser: Parser,
        n_typed_ahead: usize,
        mailbox: Mailbox<N>,
    ) -> io::Result<Self> {
        let control = Arc::new(Control::default());
        let mut work = Work {
            control: Arc::clone(&control),
            restorer,
            pipe,
            parser,
            burst: BurstDetector::default(),
            mailbox,
            n_typed_ahead,
            sequence_deadline: None,
            resize_deadline: None,
            ending: None,
            is_closed: false,
        };
        let thread = std::thread::Builder::new().name("terminal".to_owned()).spawn(move || work.run())?;
        Ok(Self { control, thread: Some(thread) })
    }

    /// Returns once the thread leaves the terminal alone; `wake` makes it look.
    pub(super) fn pause(&self, wake: impl Fn()) {
        self.control.lock().pause = true;
        wake();
        let state = self.control.lock();
        let paused = self.control.changed.wait_while(state, |state| !state.is_paused && !state.stop);
        drop(paused.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets the thread read again; the size of the window is told anew.
    pub(super) fn go_on(&self) {
        self.control.lock().pause = false;
        self.control.changed.notify_all();
    }

    /// Ends the thread.
    pub(super) fn stop(&mut self, wake: impl Fn()) {
        self.control.lock().stop = true;
        self.control.changed.notify_all();
        wake();
        if let Some(thread) = self.thread.take() {
            // A panic there was told by the hook.
            drop(thread.join());
        }
    }
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Work<N> {
    control: Arc<Control>,
    restorer: Arc<Restorer>,
    pipe: PipeReader,
    parser: Parser,
    burst: BurstDetector,
    mailbox: Mailbox<N>,
    n_typed_ahead: usize,
    /// When an unfinished sequence is taken for what it can be.
    sequence_deadline: Option<Instant>,
    resize_deadline: Option<Instant>,
    /// When the process ends without the thread that draws, and by which signal.
    ending: Option<(Instant, libc::c_int)>,
    /// The terminal is gone.
    is_closed: bool,
}

impl<N> Work<N> {
    fn run(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        while self.pause_or_stop() {
            let has_room = self.mailbox.wait_for_room(ROOM_PATIENCE);
            let (has_input, has_signal) = self.wait(has_room && !self.is_closed);
            if has_signal {
                self.take_signals();
            }
            if has_input {
                self.read(&mut buffer);
            }
            self.fire_deadlines();
        }
        // Whoever waits for a pause must not wait for ever.
        self.control.lock().stop = true;
        self.control.changed.notify_all();
    }

    /// Pauses while that is wanted, and returns whether to go on.
    fn pause_or_stop(&mut self) -> bool {
        let mut state = self.control.lock();
        if state.pause && !state.stop {
            state.is_paused = true;
            self.control.changed.notify_all();
            let waited = self.control.changed.wait_while(state, |state| state.pause && !state.stop);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.is_paused = false;
            self.resize_deadline = Some(Instant::now());
        }
        !state.stop
    }

    /// Waits for bytes, signals or the next deadline.
    fn wait(&self, wants_input: bool) -> (bool, bool) {
        let deadlines = [
            self.sequence_deadline,
            self.burst.deadline(),
            self.resize_deadline,
            self.ending.map(|(at, _)| at),
        ];
        let next = deadlines.into_iter().flatten().min();
        let wait = next.map(|next| next.saturating_duration_since(Instant::now()));
        // Without room there is only the pipe to wait for, and not for long.
        let wait = if wants_input || self.is_closed {
            wait
        } else {
            Some(wait.unwrap_or_default().min(ROOM_PATIENCE))
        };
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let pipe = self.pipe.as_fd();
        let interest = if wants_input { PollFlags::IN } else { PollFlags::empty() };
        let mut fds =
            [PollFd::from_borrowed_fd(pipe, PollFlags::IN), PollFd::new(self.restorer.input(), interest)];
        let watched = if self.is_closed { &mut fds[..1] } else { &mut fds[..] };
        // An interruption is a signal, which is in the pipe by now.
        let is_ready = poll(watched, timeout.as_ref()).is_ok_and(|n_ready| n_ready > 0);
        let [pipe, input] = fds;
        (is_ready && wants_input && !input.revents().is_empty(), is_ready && !pipe.revents().is_empty())
    }

    fn read(&mut self, buffer: &mut [u8]) {
        match rustix::io::read(self.restorer.input(), &mut *buffer) {
            Ok(0) => self.close(),
            Ok(n_read) => {
                let bytes = &mut buffer[..n_read];
                self.n_typed_ahead -= unfold_typed_ahead(bytes, self.n_typed_ahead);
                let now = Instant::now();
                let events = self.parser.feed(bytes);
                self.sequence_deadline = self.parser.patience().map(|patience| now + patience);
                let events = self.burst.take(events, now);
                self.put(events);
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => self.close(),
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.ending.get_or_insert((Instant::now() + HANG_UP_PATIENCE, libc::SIGHUP));
        self.put(vec![InputEvent::Closed]);
    }

    fn take_signals(&mut self) {
        let mut numbers = [0; 64];
        let n_read = self.pipe.read(&mut numbers).unwrap_or(0);
        for number in &numbers[..n_read] {
            self.take_signal(libc::c_int::from(*number));
        }
    }

    fn take_signal(&mut self, number: libc::c_int) {
        let now = Instant::now();
        let signal = match number {
            libc::SIGWINCH => {
                self.resize_deadline.get_or_insert(now + RESIZE_TIME);
                return;
            }
            libc::SIGTERM => TerminalSignal::Terminate,
            libc::SIGHUP => TerminalSignal::HangUp,
            libc::SIGINT => TerminalSignal::Interrupt,
            libc::SIGTSTP => TerminalSignal::Suspend,
            libc::SIGCONT => TerminalSignal::Continued,
            _ => return,
        };
        match signal {
            TerminalSignal::HangUp => self.ending = Some((now + HANG_UP_PATIENCE, number)),
            TerminalSignal::Terminate | TerminalSignal::Interrupt => {
                self.ending.get_or_insert((now + TERMINATE_PATIENCE, number));
            }
            TerminalSignal::Suspend | TerminalSignal::Continued => {}
        }
        self.put(vec![InputEvent::Signal(signal)]);
    }

    fn fire_deadlines(&mut self) {
        let now = Instant::now();
        let is_over = |deadline: &Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if is_over(&self.sequence_deadline) {
            self.sequence_deadline = None;
            let events = self.parser.time_out();
            let events = self.burst.take(events, now);
            self.put(events);
        }
        if is_over(&self.burst.deadline()) {
            let events = self.burst.time_out();
            self.put(events);
        }
        if is_over(&self.resize_deadline) {
            self.resize_deadline = None;
            let (width, height) = size_of(&self.restorer);
            self.put(vec![InputEvent::Resize { width, height }]);
        }
        if let Some((at, signal)) = self.ending
            && at <= now
        {
            end_process(&self.restorer, signal);
        }
    }

    fn put(&self, events: Vec<InputEvent>) {
        if !events.is_empty() {
            self.mailbox.put_input(events);
        }
    }
}

/// Makes line ends Enter again among bytes that were typed while the terminal still turned Enter into a line end.
/// Returns how many of the bytes those were.
fn unfold_typed_ahead(bytes: &mut [u8], n_typed_ahead: usize) -> usize {
    let n_bytes = bytes.len().min(n_typed_ahead);
    bytes[..n_bytes].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'\r');
    n_bytes
}
