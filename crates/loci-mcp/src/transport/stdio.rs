//! Servers that are programs: a line each way is a message, and what they complain about goes to their log.
//!
//! A program runs in a process group of its own. It is ended by closing its input, then by asking the group to end, then
//! by ending it; nothing that it started in that group is left. One task moves all its bytes, so that an idle server costs
//! a task and two small buffers.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use loci_sandbox::{Sandbox, SandboxRun};
use loci_stdx::{own_group, terminate_then_kill};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::line_reader::{Line, LineReader};
use super::oversized::{OversizedLine, OversizedMessage};
use super::{Inbound, InboundSender, Transport, TransportError, Travel};
use crate::log::ServerLog;
use crate::message::Message;
use crate::names::brief;
use crate::program_watch::{ProgramWatch, WatchedProgram};
use crate::sandboxed_program::Confined;

/// How much of what it complains about is read at once.
const BUFFER: usize = 8 << 10;
/// How long a program has to end by itself once its input is closed, and once it was asked to.
const LEAVE: Duration = Duration::from_millis(150);
const GRACE: Duration = Duration::from_millis(500);
/// How much of its last complaints is told when it ends.
const LAST_WORDS: usize = 2 << 10;
/// Lines that are no message and are noted; the others are counted.
const NOTED_LINES: u32 = 20;

/// A program to run.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    /// Its whole environment.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: PathBuf,
    /// Ends it should we be killed.
    pub(crate) watch: Option<Arc<dyn ProgramWatch>>,
    /// What it runs in, where it asks for that.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
}

/// A running program.
pub(crate) struct StdioTransport {
    lines: UnboundedSender<Vec<u8>>,
    ending: CancellationToken,
    ended: CancellationToken,
}

impl StdioTransport {
    /// Starts a program; what it says goes to `inbound`.
    pub(crate) fn start(
        program: &Program,
        inbound: InboundSender,
        log: Arc<ServerLog>,
    ) -> Result<Self, TransportError> {
        let Program { command, args, env, cwd, .. } = program;
        let mut confined = Confined::new(program.sandbox.as_ref(), command, args, env.clone())?;
        let command = &mut confined.command;
        command.current_dir(cwd).env_clear().envs(std::mem::take(&mut confined.env));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        own_group(command.as_std_mut());
        let mut watched = program.watch.as_ref().map(|watch| watch.watch());
        command.envs(watched.as_ref().map(|watched| watched.mark()));
        let mut child = command.spawn().map_err(|error| {
            TransportError::Failed(format!("`{}` could not be started: {error}", program.command))
        })?;
        tracing::debug!(target: "loci::mcp", pid = child.id(), command = program.command, "server started");
        if let (Some(watched), Some(pid)) = (&mut watched, child.id()) {
            watched.started(pid);
        }
        let sandboxed = confined.follow()?;
        let (lines, outgoing) = unbounded_channel();
        let (ending, ended) = (CancellationToken::new(), CancellationToken::new());
        let running = Running {
            pid: child.id(),
            stdin: child.stdin.take(),
            stdout: LineReader::new(child.stdout.take()),
            stderr: child.stderr.take(),
            child,
            outgoing,
            writing: VecDeque::new(),
            inbound,
            log,
            n_rubbish: 0,
            last_words: Vec::new(),
            sandboxed,
            _watched: watched,
        };
        let (stop, done) = (ending.clone(), ended.clone());
        tokio::spawn(async move {
            running.run(stop).await;
            done.cancel();
        });
        Ok(Self { lines, ending, ended })
    }
}

impl Transport for StdioTransport {
    fn send(&self, message: Value) -> Travel<'_, Result<(), TransportError>> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        let sent = self.lines.send(line);
        let sent = sent.map_err(|_| TransportError::Closed("it has ended".to_owned()));
        Box::pin(async move { sent })
    }

    fn close(&self) -> Travel<'_, ()> {
        self.ending.cancel();
        Box::pin(self.ended.cancelled())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

struct Running {
    child: Child,
    pid: Option<u32>,
    stdin: Option<ChildStdin>,
    stdout: LineReader<ChildStdout>,
    stderr: Option<ChildStderr>,
    outgoing: UnboundedReceiver<Vec<u8>>,
    /// Lines that are being written, and how far the first has got.
    writing: VecDeque<(Vec<u8>, usize)>,
    inbound: InboundSender,
    log: Arc<ServerLog>,
    n_rubbish: u32,
    /// The end of what it complained about.
    last_words: Vec<u8>,
    /// Its sandbox, which tells why a program did not run.
    sandboxed: Option<SandboxRun>,
    /// Lets it go when it has ended.
    _watched: Option<Box<dyn WatchedProgram>>,
}

impl Running {
    async fn run(mut self, stop: CancellationToken) {
        let mut complaints = vec![0; BUFFER];
        let reason = loop {
            tokio::select! {
                () = stop.cancelled() => break None,
                line = self.stdout.next() => match line {
                    Some(line) => {
                        let stopped = tokio::select! {
                            () = self.take_line(line) => false,
                            () = stop.cancelled() => true,
                        };
                        if stopped {
                            break None;
                        }
                    }
                    None => break Some(self.how_it_ended().await),
                },
                n = read_some(&mut self.stderr, &mut complaints) => self.take_complaint(&complaints[..n]),
                Some(line) = self.outgoing.recv() => self.writing.push_back((line, 0)),
                () = write_some(&mut self.stdin, &mut self.writing) => {}
            }
        };
        self.end().await;
        if let Some(reason) = reason {
            // Whoever listened may have gone.
            drop(self.inbound.send(Inbound::Closed(reason)).await);
        }
    }

    async fn take_line(&mut self, line: Line) {
        match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => {}
            Line::Whole(line) => self.take_message(&line).await,
            Line::TooLong(line) => self.take_oversized(&line).await,
        }
    }

    /// Whoever waits for what was too long to be read hears that it will not come.
    async fn take_oversized(&mut self, line: &OversizedLine) {
        let error = TransportError::TooLarge { n_bytes: line.n_bytes };
        self.log.note(&format!("a line of {} bytes was skipped: no more than 64 MiB are read", line.n_bytes));
        let lost = match line.message() {
            OversizedMessage::Answer(Some(id)) => Inbound::Lost { id, error },
            OversizedMessage::Answer(None) => Inbound::LostUnknown(error),
            OversizedMessage::Other => return,
        };
        // Without a listener the program is about to be ended.
        drop(self.inbound.send(lost).await);
    }

    async fn take_message(&mut self, line: &[u8]) {
        match Message::parse(line) {
            Ok(messages) => {
                for message in messages {
                    // Without a listener the program is about to be ended.
                    drop(self.inbound.send(Inbound::Message(message)).await);
                }
            }
            Err(problem) => {
                self.n_rubbish += 1;
                let shown = brief(&String::from_utf8_lossy(&line[..line.len().min(400)]));
                match self.n_rubbish {
                    ..=NOTED_LINES => {
                        self.log.note(&format!("skipped a line that is no message ({problem}): {shown}"));
                    }
                    21 => self.log.note("further lines that are no messages are skipped without a word"),
                    _ => {}
                }
            }
        }
    }

    /// Takes what it wrote to its standard error; nothing means the end.
    fn take_complaint(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.stderr = None;
            return;
        }
        self.log.append(bytes);
        self.last_words.extend_from_slice(bytes);
        let n_over = self.last_words.len().saturating_sub(LAST_WORDS);
        self.last_words.drain(..n_over);
    }

    /// Says why its output has ended.
    async fn how_it_ended(&mut self) -> String {
        let mut complaints = vec![0; BUFFER];
        let reading = async {
            while self.stderr.is_some() {
                let n = read_some(&mut self.stderr, &mut complaints).await;
                self.take_complaint(&complaints[..n]);
            }
        };
        drop(tokio::time::timeout(LEAVE, reading).await);
        let how = match tokio::time::timeout(LEAVE, self.child.wait()).await {
            Ok(Ok(status)) => format!("its program ended ({status})"),
            Ok(Err(error)) => format!("its program was lost sight of: {error}"),
            Err(_) => "it closed its output".to_owned(),
        };
        if let Some(run) = self.sandboxed.take()
            && let Ok(report) = tokio::time::timeout(LEAVE, run.report()).await
            && let Some(why) = report.why_not_run()
        {
            return format!("its sandbox did not start it: {why}");
        }
        let said = String::from_utf8_lossy(&self.last_words);
        match said.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("{how}: {}", brief(line)),
            None => how,
        }
    }

    /// Ends the program and its group.
    async fn end(&mut self) {
        self.stdin = None;
        // What it still says must not keep it from ending.
        let leaves = async {
            let mut complaints = vec![0; BUFFER];
            loop {
                tokio::select! {
                    status = self.child.wait() => break status.is_ok(),
                    line = self.stdout.next(), if self.stdout.is_open() => drop(line),
                    n = read_some(&mut self.stderr, &mut complaints) => match n {
                        0 => self.stderr = None,
                        n => self.log.append(&complaints[..n]),
                    },
                }
            }
        };
        drop(tokio::time::timeout(LEAVE, leaves).await);
        let Some(pid) = self.pid else { return };
        // Its group may have members although it has ended itself.
        let ended = tokio::task::spawn_blocking(move || terminate_then_kill(pid, GRACE)).await;
        if let Ok(Err(error)) = ended {
            self.log.note(&format!("its process group {pid} could not be ended: {error}"));
        }
        drop(tokio::time::timeout(GRACE, self.child.wait()).await);
        tracing::debug!(target: "loci::mcp", pid, "server ended");
    }
}

/// Reads what is there; never ends when nothing more will come.
async fn read_some(reader: &mut Option<ChildStderr>, buffer: &mut [u8]) -> usize {
    match reader {
        Some(reader) => reader.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Writes some of what waits; never ends when nothing does. Nothing is lost when it is dropped.
async fn write_some(stdin: &mut Option<ChildStdin>, writing: &mut VecDeque<(Vec<u8>, usize)>) {
    let (Some(pipe), Some((line, at))) = (stdin.as_mut(), writing.front_mut()) else {
        return std::future::pending().await;
    };
    match pipe.write(&line[*at..]).await {
        Ok(n) => {
            *at += n;
            if *at == line.len() {
                writing.pop_front();
            }
        }
        // It reads no more; that its output ends too is how it is noticed.
        Err(_) => *stdin = None,
    }
}
