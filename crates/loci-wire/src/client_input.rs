//! What comes from outside while a run lasts: the client's lines and the signals.
//!
//! The first line is looked at before there is a conversation, since `initialize` says what that is to be. Nothing is
//! taken away by looking: whoever reads on gets every line and every signal.

use std::collections::VecDeque;
use std::io;

use loci_engine::InitializeRequest;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::initialize::parse_initialize;
use crate::input::{self, Line};
use crate::signals::{Signal, Signals};

/// The client's lines and the signals.
pub struct ClientInput {
    lines: Option<UnboundedReceiver<io::Result<String>>>,
    /// Lines that were looked at and not handled.
    looked_at: VecDeque<io::Result<String>>,
    signals: Signals,
    signal: Option<Signal>,
}

impl ClientInput {
    /// Listens to signals alone: no lines will come.
    pub fn none() -> Self {
        Self { lines: None, looked_at: VecDeque::new(), signals: Signals::listen(), signal: None }
    }

    /// Reads lines from standard input.
    pub fn stdin() -> Self {
        Self { lines: Some(read_lines()), ..Self::none() }
    }

    /// Waits for the first line that says something and returns its request if it is an `initialize` that can be read.
    /// A signal, or the end of the lines, ends the waiting.
    pub async fn initialize(&mut self) -> Option<InitializeRequest> {
        let lines = self.lines.as_mut()?;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line?,
                signal = self.signals.next() => {
                    self.signal = Some(signal);
                    return None;
                }
            };
            let parsed = line.as_deref().map_or(Line::Cancel(String::new()), parse_line);
            self.looked_at.push_back(line);
            match parsed {
                Line::Ignored => {}
                Line::Control { request, .. } if request["subtype"] == "initialize" => {
                    return parse_initialize(&request).ok();
                }
                Line::Control { .. } | Line::Prompt(..) | Line::Response(_) | Line::Cancel(_) => return None,
            }
        }
    }

    /// Waits for the next line or signal.
    pub(crate) async fn next(&mut self) -> Incoming {
        if let Some(signal) = self.signal.take() {
            return Incoming::Signal(signal);
        }
        if let Some(line) = self.looked_at.pop_front() {
            return Incoming::Line(line);
        }
        tokio::select! {
            line = next_line(&mut self.lines) => match line {
                Some(line) => Incoming::Line(line),
                None => {
                    self.lines = None;
                    Incoming::End
                }
            },
            signal = self.signals.next() => Incoming::Signal(signal),
        }
    }

    /// Waits for the next signal, once lines no longer count.
    pub(crate) async fn next_signal(&mut self) -> Signal {
        match self.signal.take() {
            Some(signal) => signal,
            None => self.signals.next().await,
        }
    }
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A line, or why it cannot be read.
    Line(io::Result<String>),
    /// No more lines will come.
    End,
    /// A signal.
    Signal(Signal),
}

/// Reads a line as far as it matters here: one that is wrong is somebody else's to report.
fn parse_line(line: &str) -> Line {
    match line.trim().is_empty() {
        true => Line::Ignored,
        false => input::parse(line).unwrap_or(Line::Cancel(String::new())),
    }
}

/// Reads lines on a thread of its own: standard input cannot be waited for in any other way.
fn read_lines() -> UnboundedReceiver<io::Result<String>> {
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(forward_lines(BufReader::new(tokio::io::stdin()), sender));
    receiver
}

/// Hands lines on. Bytes that are no text are replaced, as other programs do, so that one line costs no other.
async fn forward_lines(mut input: impl AsyncBufRead + Unpin, sender: UnboundedSender<io::Result<String>>) {
    loop {
        let mut line = Vec::new();
        let line = match input.read_until(b'\n', &mut line).await {
            Ok(0) => return,
            Ok(_) => Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned()),
            Err(error) => Err(error),
        };
        let is_over = line.is_err();
        if sender.send(line).is_err() || is_over {
            return;
        }
    }
}

async fn next_line(lines: &mut Option<UnboundedReceiver<io::Result<String>>>) -> Option<io::Result<String>> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds lines, looks for an initialize, and renders whether there is one and what is read afterwards.
    async fn check(lines: &[&str], expected: (bool, usize)) {
        let (sender, receiver) = unbounded_channel();
        for line in lines {
            sender.send(Ok((*line).to_owned())).unwrap();
        }
        drop(sender);
        let mut input = ClientInput { lines: Some(receiver), ..ClientInput::none() };
        let has_one = input.initialize().await.is_some();
        let mut n_read = 0;
        while let Incoming::Line(line) = input.next().await {
            assert_eq!(line.unwrap(), lines[n_read], "{lines:?}");
            n_read += 1;
        }
        assert_eq!((has_one, n_read), expected, "{lines:?}");
    }

    #[tokio::test]
    async fn line_that_is_no_text_costs_no_other_line() {
        let (sender, mut receiver) = unbounded_channel();
        forward_lines(&b"one\n{\"a\": \"\xff\"}\r\n\nlast"[..], sender).await;
        let mut lines = Vec::new();
        while let Some(line) = receiver.recv().await {
            lines.push(line.unwrap());
        }
        assert_eq!(lines, ["one", "{\"a\": \"\u{fffd}\"}", "", "last"]);
    }

    #[tokio::test]
    async fn initialize_is_found_only_first_and_no_line_is_lost() {
        let initialize = r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize"}}"#;
        let bad =
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":5}}"#;
        let other = r#"{"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}"#;
        let prompt = r#"{"type":"user","message":{"content":"hi"}}"#;
        let keep_alive = r#"{"type":"keep_alive"}"#;
        check(&[], (false, 0)).await;
        check(&[initialize, prompt], (true, 2)).await;
        check(&["", keep_alive, initialize], (true, 3)).await;
        check(&[prompt, initialize], (false, 2)).await;
        check(&[other, initialize], (false, 2)).await;
        check(&[bad, prompt], (false, 2)).await;
        check(&["nonsense", initialize], (false, 2)).await;
    }
}
