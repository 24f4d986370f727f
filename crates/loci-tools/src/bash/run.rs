//! A running command: its process tree and its output, followed until it ends or must not go on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use loci_sandbox::{SandboxReport, SandboxRun};
use loci_stdx::read_regular;

use tempfile::TempPath;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::capture::{Capture, SpillPath, Stream};
use super::process_tree::ProcessTree;

/// A command that writes more than this is stopped.
pub(crate) const MAX_OUTPUT_BYTES: u64 = 5 * 1024 * 1024 * 1024;

/// How long after the shell's end its pipes may stay silent before they are taken as done, and how long they are
/// read at all: a process left in the background may hold them open for ever.
const PIPE_SILENCE: Duration = Duration::from_millis(50);
const PIPE_GRACE: Duration = Duration::from_secs(1);

/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// How much of it at once.
const PROGRESS_BYTES: usize = 4096;

const BUFFER_BYTES: usize = 64 * 1024;

/// A started command. Dropping it kills every process it started.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pid: Option<u32>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    buffers: [Vec<u8>; 2],
    tree: ProcessTree,
    /// Where the shell writes its last directory; removed after the tree has gone.
    cwd_file: TempPath,
    /// What the helper tells, for one that runs in a sandbox.
    sandbox: Option<SandboxRun>,
}

/// Why following a command ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The shell has ended and so has its output, as far as it belongs to it.
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
    /// The user wants it to go on in the background.
    Backgrounded,
    /// It wrote more than [`Watch::max_bytes`].
    TooMuch,
    /// The system would not tell.
    Lost(std::io::Error),
}

/// What a command is followed with.
pub(crate) struct Watch<'a> {
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: &'a CancellationToken,
    /// Fires when it is to go on in the background, where it can.
    pub(crate) to_background: Option<&'a CancellationToken>,
    pub(crate) max_bytes: u64,
    pub(crate) spill: SpillPath<'a>,
    /// Told of new output a few times a second.
    pub(crate) progress: &'a (dyn Fn(&[u8]) + Send + Sync),
}

impl Running {
    pub(crate) fn new(mut child: Child, tree: ProcessTree, cwd_file: TempPath) -> Self {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let buffers = [vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]];
        Self { pid: child.id(), child, stdout, stderr, buffers, tree, cwd_file, sandbox: None }
    }

    /// Notes that it runs in a sandbox.
    pub(crate) fn sandboxed(self, sandbox: Option<SandboxRun>) -> Self {
        Self { sandbox, ..self }
    }

    /// Returns what the helper told, once the shell has ended; none without a sandbox.
    pub(crate) async fn sandbox_report(&mut self) -> Option<SandboxReport> {
        Some(self.sandbox.take()?.report().await)
    }

    /// Returns what it could not reach so far, in words; nothing without a sandbox.
    pub(crate) fn refused_hosts(&self) -> Vec<String> {
        self.sandbox.as_ref().map(SandboxRun::refused_hosts).unwrap_or_default()
    }

    /// Returns the directory the shell ended in, if it got to say so.
    pub(crate) fn last_cwd(&self) -> Option<PathBuf> {
        let written = read_regular(&self.cwd_file).ok()?;
        Some(PathBuf::from(OsStr::from_bytes(written.strip_suffix(b"\n")?)))
    }

    /// Collects output until the command ends or one of the bounds is met; it can be called again after a
    /// timeout.
    pub(crate) async fn follow(&mut self, capture: &mut Capture, watch: &Watch<'_>) -> End {
        let mut ticks = tokio::time::interval(PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut news: Vec<u8> = Vec::new();
        loop {
            let event = tokio::select! {
                () = watch.cancel.cancelled() => return End::Cancelled,
                () = fired(watch.to_background) => return End::Backgrounded,
                () = until(watch.deadline) => return End::TimedOut,
                _ = ticks.tick() => {
                    if !news.is_empty() {
                        (watch.progress)(&news);
                        news.clear();
                    }
                    continue;
                }
                event = self.next() => event,
            };
            match event {
                Event::Output(stream, n_bytes) => {
                    let chunk = self.chunk(stream, n_bytes);
                    remember(&mut news, chunk);
                    capture.push(stream, chunk, watch.spill).await;
                    if capture.total() > watch.max_bytes {
                        return End::TooMuch;
                    }
                }
                Event::Exited(status) => {
                    self.tree.root_has_ended();
                    tracing::debug!(target: "loci::process", pid = self.pid, %status, "bash ended");
                    self.drain(capture, watch).await;
                    return End::Exited(status);
                }
                Event::Lost(error) => return End::Lost(error),
            }
        }
    }

    /// Ends the command and everything it started, and takes what it had written.
    pub(crate) async fn kill(&mut self, capture: &mut Capture, watch: &Watch<'_>) {
        tracing::debug!(target: "loci::process", pid = self.pid, "bash killed");
        self.tree.kill().await;
        // Nothing is left of the tree, so there is no status worth knowing.
        self.child.wait().await.ok();
        self.tree.root_has_ended();
        self.drain(capture, watch).await;
    }

    /// Returns true when a process left in the background still holds a pipe.
    pub(crate) fn has_open_pipes(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Lets processes that the command left behind with output of their own live on.
    pub(crate) fn release(&mut self) {
        self.tree.release();
    }

    /// Reads what processes left in the background write, until they end or `cancel` fires; then they are killed.
    pub(crate) async fn outlive(mut self, capture: Option<&mut Capture>, cancel: &CancellationToken) {
        let nowhere = || Err(std::io::ErrorKind::Unsupported.into());
        let mut capture = capture;
        while self.has_open_pipes() {
            tokio::select! {
                () = cancel.cancelled() => {
                    self.tree.kill().await;
                    return;
                }
                (stream, n_bytes) = self.output() => {
                    if let Some(capture) = capture.as_deref_mut() {
                        capture.push(stream, self.chunk(stream, n_bytes), &nowhere).await;
                    }
                }
            }
        }
        self.release();
    }

    async fn next(&mut self) -> Event {
        let Self { child, sandbox, stdout, stderr, buffers: [out, err], .. } = self;
        tokio::select! {
            n_bytes = read(stdout, out) => Event::Output(Stream::Stdout, n_bytes),
            n_bytes = read(stderr, err) => Event::Output(Stream::Stderr, n_bytes),
            code = sandboxed_code(sandbox) => Event::Exited(ExitStatus::from_raw(i32::from(code) << 8)),
            status = child.wait() => status.map_or_else(Event::Lost, Event::Exited),
        }
    }

    async fn output(&mut self) -> (Stream, usize) {
        let Self { stdout, stderr, buffers: [out, err], .. } = self;
        tokio::select! {
            n_bytes = read(stdout, out) => (Stream::Stdout, n_bytes),
            n_bytes = read(stderr, err) => (Stream::Stderr, n_bytes),
        }
    }

    fn chunk(&self, stream: Stream, n_bytes: usize) -> &[u8] {
        let [out, err] = &self.buffers;
        match stream {
            Stream::Stdout => &out[..n_bytes],
            Stream::Stderr => &err[..n_bytes],
        }
    }

    async fn drain(&mut self, capture: &mut Capture, watch: &Watch<'_>) {
        let end = Instant::now() + PIPE_GRACE;
        while self.has_open_pipes() && Instant::now() < end {
            let Ok((stream, n_bytes)) = tokio::time::timeout(PIPE_SILENCE, self.output()).await else {
                return;
            };
            capture.push(stream, self.chunk(stream, n_bytes), watch.spill).await;
        }
    }
}

enum Event {
    Output(Stream, usize),
    Exited(ExitStatus),
    Lost(std::io::Error),
}

/// Returns the exit code as a shell would report it: 128 and the signal's number for a signal.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Waits until a sandbox says that all in it has ended; for ever, where there is none.
async fn sandboxed_code(sandbox: &mut Option<SandboxRun>) -> u8 {
    match sandbox {
        Some(sandbox) => sandbox.exit_code().await,
        None => std::future::pending().await,
    }
}

/// Reads some bytes; a pipe that has ended is taken away and gives nothing from then on.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(reader) = pipe else { return std::future::pending().await };
    let n_bytes = reader.read(buffer).await.unwrap_or(0);
    if n_bytes == 0 {
        *pipe = None;
    }
    n_bytes
}

/// Waits for a signal; for ever, where there is none.
async fn fired(signal: Option<&CancellationToken>) {
    match signal {
        Some(signal) => signal.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Keeps the newest output for the next word on progress.
fn remember(news: &mut Vec<u8>, chunk: &[u8]) {
    news.extend_from_slice(&chunk[chunk.len().saturating_sub(PROGRESS_BYTES)..]);
    if news.len() > PROGRESS_BYTES {
        news.drain(..news.len() - PROGRESS_BYTES);
    }
}
