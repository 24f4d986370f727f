//! A program that is given some input and answers with some output, such as a hook: in a session of its own, without a
//! terminal, bounded in time and in what is kept of its output.
//!
//! Whatever it does costs itself only: one that writes without end is read and not kept, one that closes its pipes or
//! never reads its input is no error, and at the end of its time everything it started is ended with it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use loci_sandbox::SandboxRun;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bash::death_watch::DeathWatch;
use crate::bash::process_tree::{MARK_VARIABLE, ProcessTree};
use crate::bash::shell::{Confined, SandboxPlace, confine, follow, own_session};

/// How long after its end a program's pipes may stay silent before they are taken as done, and how long they are read at
/// all: what it left in the background may hold them open for ever.
const PIPE_SILENCE: Duration = Duration::from_millis(50);
const PIPE_GRACE: Duration = Duration::from_secs(1);
const BUFFER_BYTES: usize = 64 * 1024;
/// How long it is between two times that somebody is told of output.
const TELLING_PAUSE: Duration = Duration::from_secs(1);

/// A program to run.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// The program: a path, or a name that is looked up.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its whole environment; nothing is inherited.
    pub env: Vec<(String, String)>,
    /// What it may read.
    pub stdin: Vec<u8>,
    /// What no other program has: it marks the processes of this one.
    pub mark: String,
    /// Ends it, with everything it started, should we be killed.
    pub death_watch: DeathWatch,
    /// What it runs in, where it asks for that.
    pub sandbox: Option<SandboxPlace>,
}

/// What a program may take.
#[derive(Debug, Clone, Copy)]
pub struct ChildLimits {
    /// How long it may run.
    pub time: Duration,
    /// How much of each output is kept.
    pub n_bytes: usize,
}

/// What a program left.
#[derive(Debug)]
pub struct ChildOutput {
    /// How it ended.
    pub end: ChildEnd,
    /// What it wrote; bytes that are no text are replaced.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
    /// Whether it wrote more to its standard output than was kept.
    pub is_cut: bool,
}

/// How a program ended.
#[derive(Debug)]
pub enum ChildEnd {
    /// By itself, with this code; that of a signal is 128 and its number.
    Exited(i32),
    /// Its time was over, and it was ended with everything it started.
    TimedOut,
    /// It was not to go on.
    Cancelled,
    /// It could not be started, or was lost sight of.
    Failed(io::Error),
}

/// Is told what a program has written so far, and what it has complained about.
pub type OnOutput<'a> = &'a (dyn Fn(&str, &str) + Send + Sync);

/// Runs a program to its end, to that of its time, or until it is not to go on.
pub async fn run_child(spec: ChildSpec, limits: ChildLimits, cancel: &CancellationToken) -> ChildOutput {
    run_told_child(spec, limits, cancel, None).await
}

/// The same, and somebody is told of its output while it runs, once a second where there is more.
pub async fn run_told_child(
    spec: ChildSpec,
    limits: ChildLimits,
    cancel: &CancellationToken,
    on_output: Option<OnOutput<'_>>,
) -> ChildOutput {
    match RunningChild::start(spec, limits.n_bytes) {
        Ok(mut child) => {
            let end = child.follow(Instant::now() + limits.time, cancel, on_output).await;
            child.output(end)
        }
        Err(error) => ChildOutput {
            end: ChildEnd::Failed(error),
            stdout: String::new(),
            stderr: String::new(),
            is_cut: false,
        },
    }
}

struct RunningChild {
    child: Child,
    stdin: Option<(ChildStdin, Vec<u8>)>,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    tree: ProcessTree,
    /// Its sandbox, which tells why a program did not run.
    sandboxed: Option<SandboxRun>,
}

impl RunningChild {
    fn start(spec: ChildSpec, limit: usize) -> io::Result<Self> {
        let args = spec.args.iter().map(OsStr::new);
        let Confined { mut command, env, helper_handle } =
            confine(spec.sandbox.as_ref(), OsStr::new(&spec.program), args, spec.env)?;
        command.current_dir(&spec.cwd).env_clear().envs(env).env(MARK_VARIABLE, &spec.mark);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        own_session(&mut command);
        let watched = spec.death_watch.watch(&spec.mark);
        let mut child = command.spawn()?;
        // It holds the helper's end of the socket.
        drop(command);
        let sandboxed = follow(spec.sandbox.as_ref(), helper_handle)?;
        tracing::debug!(target: "loci::process", pid = child.id(), program = spec.program, "child started");
        let tree = ProcessTree::new(child.id(), spec.mark).watched(watched);
        Ok(Self {
            stdin: child.stdin.take().map(|stdin| (stdin, spec.stdin)),
            stdout: Pipe::new(child.stdout.take(), limit),
            stderr: Pipe::new(child.stderr.take(), limit),
            child,
            tree,
            sandboxed,
        })
    }

    async fn follow(
        &mut self,
        deadline: Instant,
        cancel: &CancellationToken,
        on_output: Option<OnOutput<'_>>,
    ) -> ChildEnd {
        let feeding = feed(self.stdin.take());
        tokio::pin!(feeding);
        let mut is_fed = false;
        let mut told_len = 0;
        let mut tick = Instant::now() + TELLING_PAUSE;
        loop {
            let n_bytes = self.stdout.kept.len() + self.stderr.kept.len();
            let on_output = on_output.filter(|_| n_bytes > told_len);
            tokio::select! {
                () = cancel.cancelled() => return self.kill(ChildEnd::Cancelled).await,
                () = tokio::time::sleep_until(deadline) => return self.kill(ChildEnd::TimedOut).await,
                () = &mut feeding, if !is_fed => is_fed = true,
                () = self.stdout.read() => {}
                () = self.stderr.read() => {}
                () = tokio::time::sleep_until(tick), if on_output.is_some() => {
                    if let Some(tell) = on_output {
                        tell(&self.stdout.text(), &self.stderr.text());
                    }
                    (told_len, tick) = (n_bytes, Instant::now() + TELLING_PAUSE);
                }
                status = self.child.wait() => {
                    self.tree.root_has_ended();
                    self.drain().await;
                    // What it left in the background lives on, as it would behind any command.
                    self.tree.release();
                    if let Some(why) = self.why_not_run().await {
                        return ChildEnd::Failed(io::Error::other(format!("its sandbox did not start it: {why}")));
                    }
                    return match status {
                        Ok(status) => ChildEnd::Exited(code(status)),
                        Err(error) => ChildEnd::Failed(error),
                    };
                }
            }
        }
    }

    async fn kill(&mut self, end: ChildEnd) -> ChildEnd {
        tracing::debug!(target: "loci::process", pid = self.child.id(), "child killed");
        self.tree.kill().await;
        // Nothing is left of the tree, so there is no status worth knowing.
        self.child.wait().await.ok();
        self.tree.root_has_ended();
        self.drain().await;
        end
    }

    /// Returns why its sandbox did not start it; none where it did, or where there is none.
    async fn why_not_run(&mut self) -> Option<String> {
        let run = self.sandboxed.take()?;
        tokio::time::timeout(PIPE_GRACE, run.report()).await.ok()?.why_not_run()
    }

    async fn drain(&mut self) {
        let end = Instant::now() + PIPE_GRACE;
        while (self.stdout.is_open() || self.stderr.is_open()) && Instant::now() < end {
            let next = async {
                tokio::select! {
                    () = self.stdout.read() => {}
                    () = self.stderr.read() => {}
                }
            };
            if tokio::time::timeout(PIPE_SILENCE, next).await.is_err() {
                return;
            }
        }
    }

    fn output(self, end: ChildEnd) -> ChildOutput {
        let is_cut = self.stdout.is_cut;
        ChildOutput { end, stdout: self.stdout.into_text(), stderr: self.stderr.into_text(), is_cut }
    }
}

/// Writes the input. A program that does not want it is no error.
async fn feed(stdin: Option<(ChildStdin, Vec<u8>)>) {
    if let Some((mut stdin, bytes)) = stdin {
        stdin.write_all(&bytes).await.ok();
    }
}

/// One output, of which no more is kept than the limit.
struct Pipe<R> {
    reader: Option<R>,
    buffer: Vec<u8>,
    kept: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: Option<R>, limit: usize) -> Self {
        Self { reader, buffer: vec![0; BUFFER_BYTES], kept: Vec::new(), limit, is_cut: false }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Reads what is there; never ends when nothing more will come.
    async fn read(&mut self) {
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        let n_read = reader.read(&mut self.buffer).await.unwrap_or(0);
        if n_read == 0 {
            self.reader = None;
            return;
        }
        let n_kept = n_read.min(self.limit.saturating_sub(self.kept.len()));
        self.kept.extend_from_slice(&self.buffer[..n_kept]);
        self.is_cut |= n_kept < n_read;
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }

    fn into_text(self) -> String {
        match String::from_utf8(self.kept) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(command: &str, stdin: &[u8], time: Duration) -> ChildOutput {
        let spec = ChildSpec {
            program: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), command.to_owned()],
            cwd: "/".into(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            stdin: stdin.to_vec(),
            mark: format!("loci-test-{}", fastrand_mark()),
            death_watch: DeathWatch::default(),
            sandbox: None,
        };
        run_child(spec, ChildLimits { time, n_bytes: 1000 }, &CancellationToken::new()).await
    }

    /// A mark that no other test has: the address of something that lives as long as the test.
    fn fastrand_mark() -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.path().file_name().unwrap().to_string_lossy().into_owned()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn program_gets_its_input_and_its_code_and_output_are_told() {
        let output = run("cat; echo no >&2; exit 3", b"{\"a\":1}", LONG).await;
        assert!(matches!(output.end, ChildEnd::Exited(3)), "{output:?}");
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("{\"a\":1}", "no\n"));
        assert!(matches!(run("kill -9 $$", b"", LONG).await.end, ChildEnd::Exited(137)));
    }

    #[tokio::test]
    async fn output_is_bounded_and_need_not_be_text() {
        let output = run("head -c 100000000 /dev/zero | tr '\\0' x; exit 2", b"", LONG).await;
        assert!(matches!(output.end, ChildEnd::Exited(2)), "{:?}", output.end);
        assert_eq!((output.stdout.len(), output.is_cut), (1000, true));
        let output = run("printf 'a\\377b'", b"", LONG).await;
        assert_eq!((output.stdout.as_str(), output.is_cut), ("a\u{fffd}b", false));
    }

    #[tokio::test]
    async fn program_that_reads_nothing_or_closes_its_pipes_is_no_error() {
        let input = vec![b'x'; 1 << 20];
        assert!(matches!(run("exit 0", &input, LONG).await.end, ChildEnd::Exited(0)));
        assert!(matches!(run("exec <&- >&- 2>&-; exit 5", &input, LONG).await.end, ChildEnd::Exited(5)));
    }

    #[tokio::test]
    async fn timeout_ends_everything_that_was_started_even_what_ignores_sigterm() {
        let short = Duration::from_millis(300);
        let dir = tempfile::tempdir().unwrap();
        let alive = dir.path().join("alive");
        let command = format!(
            "trap '' TERM; (trap '' TERM; while :; do touch {0}; sleep 0.02; done) & setsid sh -c 'while :; do touch {0}2; sleep 0.02; done' & while :; do :; done",
            alive.display()
        );
        let output = run(&command, b"", short).await;
        assert!(matches!(output.end, ChildEnd::TimedOut), "{output:?}");
        for name in [alive.clone(), alive.with_extension("2")] {
            std::fs::remove_file(&name).ok();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!alive.exists(), "nothing is left that could make it again");
    }

    #[tokio::test]
    async fn program_has_no_terminal_and_a_session_of_its_own() {
        let output = run("cat /proc/$$/stat; (echo > /dev/tty) 2>/dev/null && echo tty", b"", LONG).await;
        let fields: Vec<&str> = output.stdout.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let pid = output.stdout.split(' ').next().unwrap();
        assert_eq!((fields[2], fields[3], fields[4]), (pid, pid, "0"), "group, session and terminal");
        assert!(!output.stdout.contains("\ntty"));
    }

    #[tokio::test]
    async fn program_that_does_not_exist_is_an_error_and_leftovers_hold_nothing_up() {
        let spec = ChildSpec {
            program: "/no/such/program".to_owned(),
            args: Vec::new(),
            cwd: "/".into(),
            env: Vec::new(),
            stdin: Vec::new(),
            mark: fastrand_mark(),
            death_watch: DeathWatch::default(),
            sandbox: None,
        };
        let limits = ChildLimits { time: LONG, n_bytes: 10 };
        assert!(matches!(run_child(spec, limits, &CancellationToken::new()).await.end, ChildEnd::Failed(_)));
        let output = run("sleep 3 & echo done", b"", LONG).await;
        assert_eq!(output.stdout, "done\n");
    }
}
