//! A program on a screen: its escape sequences are understood, and what a person would see is waited for.

use std::num::NonZero;
use std::time::{Duration, Instant};

use super::Output;
use super::terminal::Terminal;

/// A running program and the screen that it draws on.
pub struct Screen {
    terminal: Terminal,
    parser: vt100::Parser,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.contents())
    }
}

/// What a program left on its screen.
#[derive(Debug)]
pub struct ScreenEnd {
    /// How it ended; standard error is all that was written to the terminal.
    pub output: Output,
    /// What is seen at last.
    pub contents: String,
    /// Whether the terminal echoes and takes lines, as shells want it.
    pub is_cooked: bool,
}

impl Screen {
    pub(super) fn new(terminal: Terminal, width: u16, height: u16) -> Self {
        terminal.set_size(width, height);
        Self { terminal, parser: vt100::Parser::new(cells(height), cells(width), 1000) }
    }

    /// Returns what is seen, with blanks at the ends of rows cut off.
    pub fn contents(&self) -> String {
        let contents = self.parser.screen().contents();
        let rows: Vec<&str> = contents.lines().map(str::trim_end).collect();
        rows.join("\n")
    }

    /// Waits until a text is seen; returns the whole screen.
    ///
    /// # Panics
    ///
    /// If it is not seen within the limit.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait_until(text, |contents| contents.contains(text))
    }

    /// Waits until a text is no longer seen.
    ///
    /// # Panics
    ///
    /// If it is still seen at the limit.
    pub fn wait_gone(&mut self, text: &str) -> String {
        self.wait_until(&format!("no {text}"), |contents| !contents.contains(text))
    }

    /// Waits until the screen is as it should be.
    ///
    /// # Panics
    ///
    /// If it is not within the limit.
    pub fn wait_until(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + self.terminal.limit();
        loop {
            let contents = self.contents();
            if is_it(&contents) {
                return contents;
            }
            // What goes on writing, as a spinner does, is no reason to go on waiting.
            let left = deadline.saturating_duration_since(Instant::now());
            match self.terminal.next_bytes(left).filter(|_| !left.is_zero()) {
                Some(bytes) => self.parser.process(&bytes),
                None => panic!("waited for `{what}`; the screen is:\n{contents}"),
            }
        }
    }

    /// Types text or keys, as the bytes that a terminal would send.
    pub fn type_text(&mut self, text: &str) {
        self.terminal.type_bytes(text.as_bytes());
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.parser.screen_mut().set_size(cells(height), cells(width));
        self.terminal.set_size(width, height);
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: rustix::process::Signal) {
        self.terminal.signal(signal);
    }

    /// Waits for the end.
    ///
    /// # Panics
    ///
    /// If it does not come within the limit.
    pub fn finish(mut self) -> ScreenEnd {
        self.terminal.wait();
        while let Some(bytes) = self.terminal.next_bytes(Duration::from_millis(200)) {
            self.parser.process(&bytes);
        }
        let is_cooked = self.terminal.is_cooked();
        let contents = self.contents();
        ScreenEnd { output: self.terminal.finish(), contents, is_cooked }
    }
}

/// A screen has at least one cell.
fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap_or(NonZero::<u16>::MIN)
}
