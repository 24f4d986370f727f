//! A running program that a test talks to: lines in, lines out, signals.

use super::{Output, PATIENCE, collect, kill, output, received, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A running program; killed when dropped.
#[derive(Debug)]
pub struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    /// The lines read so far, kept for messages and for the output at the end.
    seen: Vec<String>,
    stderr: mpsc::Receiver<String>,
    limit: Duration,
}

impl Session {
    pub(super) fn new(mut child: Child, limit: Duration) -> Self {
        let stdin = child.stdin.take();
        let lines = read_lines(child.stdout.take().expect("stdout is piped"));
        let stderr = collect(child.stderr.take().expect("stderr is piped"));
        Self { child, stdin, lines, seen: Vec::new(), stderr, limit }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to standard input.
    ///
    /// # Panics
    ///
    /// If the program no longer reads, or the input has been closed.
    pub fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input has not been closed");
        let written = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
        written.unwrap_or_else(|error| panic!("write a line: {error}; read so far: {:#?}", self.seen));
    }

    /// Writes a JSON value as a line.
    pub fn write_json(&mut self, value: &Value) {
        self.write_line(&value.to_string());
    }

    /// Closes standard input.
    pub fn close_stdin(&mut self) {
        drop(self.stdin.take());
    }

    /// Returns the next line of standard output, or none when it has ended.
    ///
    /// # Panics
    ///
    /// If no line comes within the limit.
    pub fn next_line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(self.limit) {
            Ok(line) => {
                self.seen.push(line.clone());
                Some(line)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("no line within {:?}; read so far: {:#?}", self.limit, self.seen)
            }
        }
    }

    /// Returns the first of the next lines that is JSON and for which `is_it` holds.
    ///
    /// # Panics
    ///
    /// If the output ends before one comes, or none comes within the limit.
    pub fn wait_for_json(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + self.limit;
        while let Some(line) = self.next_line() {
            if let Ok(value) = serde_json::from_str(&line)
                && is_it(&value)
            {
                return value;
            }
            assert!(Instant::now() < deadline, "it has not come; read so far: {:#?}", self.seen);
        }
        panic!("the output ended before it came; read so far: {:#?}", self.seen)
    }

    /// Sends a signal to the program, and to it alone.
    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).expect("signal the child");
    }

    /// Sends `SIGINT`, as Ctrl-C does.
    #[cfg(unix)]
    pub fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    /// Sends `SIGTERM`.
    #[cfg(unix)]
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Sends `SIGKILL`, as a crash would end it, and returns what it left.
    pub fn crash(mut self) -> Output {
        let status = kill(&mut self.child);
        self.output(status)
    }

    /// Closes standard input and returns what the program left when it has ended.
    ///
    /// # Panics
    ///
    /// If it is still running at the limit; it is then killed first.
    pub fn finish(mut self) -> Output {
        self.close_stdin();
        let (status, in_time) = match wait_until(&mut self.child, Instant::now() + self.limit) {
            Some(status) => (status, true),
            None => (kill(&mut self.child), false),
        };
        let output = self.output(status);
        assert!(in_time, "still running: {output:?}");
        output
    }

    fn output(&mut self, status: std::process::ExitStatus) -> Output {
        // Not for ever: a grandchild may still hold the pipe open.
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(line);
        }
        let stdout = self.seen.iter().map(|it| format!("{it}\n")).collect();
        output(status, stdout, received(&self.stderr))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A child that has ended and been waited for is left alone: its id may be someone else's by now.
        if matches!(self.child.try_wait(), Ok(None)) {
            kill(&mut self.child);
        }
    }
}

/// Reads lines on a thread of its own, so that waiting for one can have a limit.
fn read_lines(pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
