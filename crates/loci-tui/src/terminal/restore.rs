//! Giving the terminal back, from wherever it must be done.
//!
//! A [`Restorer`] is shared by the guard, the panic hook, the reader and the signal handlers. All it changes is in
//! atomics; [`Restorer::give_back`] allocates nothing, takes no lock and calls only `write` and `tcsetattr`, so that a
//! signal handler may call it. It acts once for each time the terminal was taken.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr};

use super::modes;

/// Nothing of ours is on the screen.
const NOTHING_DRAWN: u32 = u32::MAX;

/// A terminal as it was found, and what was changed in it.
#[derive(Debug)]
pub(super) struct Restorer {
    input: OwnedFd,
    output: OwnedFd,
    found: Termios,
    /// Whether escape sequences may be sent at all.
    is_dumb: bool,
    /// The terminal is ours now.
    is_taken: AtomicBool,
    /// Modes that are to be on whenever the terminal is ours.
    wanted: AtomicU16,
    /// How many rows of ours stand below the cursor.
    rows_below: AtomicU32,
}

impl Restorer {
    pub(super) fn new(input: OwnedFd, output: OwnedFd, is_dumb: bool, wanted: u16) -> io::Result<Self> {
        let found = tcgetattr(&input)?;
        Ok(Self {
            input,
            output,
            found,
            is_dumb,
            is_taken: AtomicBool::new(false),
            wanted: AtomicU16::new(if is_dumb { 0 } else { wanted }),
            rows_below: AtomicU32::new(NOTHING_DRAWN),
        })
    }

    pub(super) fn input(&self) -> &OwnedFd {
        &self.input
    }

    pub(super) fn output(&self) -> &OwnedFd {
        &self.output
    }

    pub(super) fn is_dumb(&self) -> bool {
        self.is_dumb
    }

    /// Tells whether the terminal is ours now.
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Acquire)
    }

    /// Tells whether no shell has put another group of processes to the front.
    pub(super) fn is_in_foreground(&self) -> bool {
        tcgetpgrp(&self.input).map_or(true, |front| front == getpgrp())
    }

    /// Takes the terminal: raw, without losing what was typed already, and with the modes that are wanted.
    pub(super) fn take(&self) -> io::Result<()> {
        let mut raw = self.found.clone();
        raw.make_raw();
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        // In the background this stops the process until it is in the foreground again, as it should.
        tcsetattr(&self.input, OptionalActions::Now, &raw)?;
        self.is_taken.store(true, Ordering::Release);
        self.write(&modes::set_up(self.wanted.load(Ordering::Acquire)))
    }

    /// Undoes the modes and puts the cursor on a fresh row; the terminal stays raw until [`leave_raw`](Self::leave_raw).
    ///
    /// Returns whether there was anything to undo.
    pub(super) fn undo_modes(&self) -> bool {
        if !self.is_taken.swap(false, Ordering::AcqRel) {
            return false;
        }
        if !self.is_dumb {
            let mut buffer = [0; modes::UNDO_LIMIT];
            let n_written = modes::undo(self.wanted.load(Ordering::Acquire), &mut buffer);
            self.write_whole(&buffer[..n_written]);
        }
        let rows_below = self.rows_below.swap(NOTHING_DRAWN, Ordering::AcqRel);
        if rows_below != NOTHING_DRAWN {
            self.write_whole(b"\r");
            // No screen is higher, and a wrong number must not keep a handler busy.
            (0..=rows_below.min(1000)).for_each(|_| self.write_whole(b"\n"));
            if !self.is_dumb {
                self.write_whole(b"\x1b[K");
            }
        }
        true
    }

    /// Makes the line discipline what it was found as.
    pub(super) fn leave_raw(&self) {
        // There is nobody left to tell: the terminal may be gone.
        tcsetattr(&self.input, OptionalActions::Now, &self.found).ok();
    }

    /// Gives the terminal back as it was found, if it is ours.
    pub(super) fn give_back(&self) {
        if self.undo_modes() {
            self.leave_raw();
        }
    }

    /// Switches a mode on or off, now and whenever the terminal is taken again.
    pub(super) fn switch(&self, mode: u16, is_on: bool) -> io::Result<()> {
        if self.is_dumb || self.is_on(mode) == is_on {
            return Ok(());
        }
        if is_on {
            // First noted, then done: undoing a mode that is off does no harm.
            self.wanted.fetch_or(mode, Ordering::AcqRel);
        }
        self.write(modes::switch(mode, is_on))?;
        if !is_on {
            self.wanted.fetch_and(!mode, Ordering::AcqRel);
        }
        Ok(())
    }

    pub(super) fn is_on(&self, mode: u16) -> bool {
        self.wanted.load(Ordering::Acquire) & mode != 0
    }

    /// Notes how many rows stand below the cursor, or that nothing of ours is on the screen.
    pub(super) fn set_rows_below(&self, rows_below: Option<u16>) {
        self.rows_below.store(rows_below.map_or(NOTHING_DRAWN, u32::from), Ordering::Release);
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::write(self.output.as_fd(), rest) {
                Ok(n_written) => rest = &rest[n_written..],
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes what can be written; bounded, and without a word about failures, since this runs in signal handlers.
    fn write_whole(&self, bytes: &[u8]) {
        let mut rest = bytes;
        for _ in 0..16 {
            match rustix::io::write(self.output.as_fd(), rest) {
                Ok(n_written) if n_written < rest.len() => rest = &rest[n_written..],
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}
