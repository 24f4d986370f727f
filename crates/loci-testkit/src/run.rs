//! Runs a loci binary under a [`TestHome`]: cleared environment, hard time limits, no stray children.
//!
//! [`Binary::run`] is for a program that reads its input and ends; [`Binary::start`] gives a [`Session`] that
//! a test talks to line by line. A child that outlives its limit, or its `Session`, is killed by the id it was
//! started with.

#[cfg(unix)]
mod screen;
mod session;
#[cfg(unix)]
mod terminal;

#[cfg(unix)]
pub use screen::{Screen, ScreenEnd};
pub use session::Session;
#[cfg(unix)]
pub use terminal::Terminal;

use crate::home::TestHome;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long a run may take unless told otherwise.
const LIMIT: Duration = Duration::from_secs(60);

/// How long to wait for the end of a pipe once the program itself has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program to run, with its arguments and surroundings.
#[derive(Clone, Debug)]
pub struct Binary {
    path: PathBuf,
    args: Vec<String>,
    vars: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    limit: Duration,
}

/// What a finished program left.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
}

impl Output {
    /// Returns standard output as JSON, one value a line.
    ///
    /// # Panics
    ///
    /// If a line is not JSON, with everything the program said.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        self.stdout.lines().map(parse).collect()
    }
}

impl Binary {
    /// Names the program; in a test of the binary's own crate, `env!("CARGO_BIN_EXE_loci")`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        Self { path, args: Vec::new(), vars: BTreeMap::new(), cwd: None, limit: LIMIT }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable, over those of [`TestHome::env_vars`].
    pub fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.vars.insert(key.into(), value.into());
        self
    }

    /// Runs in this directory rather than in the project.
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        self.cwd = Some(cwd.as_ref().to_owned());
        self
    }

    /// Sets the limit: of a whole run, or of each wait in a session.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Returns the program and its arguments, for a program that runs it in turn.
    pub fn command_line(&self) -> Vec<String> {
        std::iter::once(self.path.display().to_string()).chain(self.args.iter().cloned()).collect()
    }

    /// Runs to the end with `stdin` as its whole input.
    ///
    /// # Panics
    ///
    /// If it cannot be started, or is still running at the limit; it is then killed first.
    pub fn run(&self, home: &TestHome, base_url: &str, stdin: &str) -> Output {
        let mut child = self.spawn(home, base_url);
        let input = child.stdin.take().expect("stdin is piped");
        let text = stdin.to_owned();
        thread::spawn(move || feed(input, &text));
        let stdout = collect(child.stdout.take().expect("stdout is piped"));
        let stderr = collect(child.stderr.take().expect("stderr is piped"));
        let (status, in_time) = match wait_until(&mut child, Instant::now() + self.limit) {
            Some(status) => (status, true),
            None => (kill(&mut child), false),
        };
        let output = output(status, received(&stdout), received(&stderr));
        assert!(in_time, "still running after {:?}: {output:?}", self.limit);
        output
    }

    /// Starts it and leaves it running, to be talked to.
    pub fn start(&self, home: &TestHome, base_url: &str) -> Session {
        Session::new(self.spawn(home, base_url), self.limit)
    }

    /// Starts it at a terminal of its own: standard input and standard error are the terminal, standard output
    /// is a pipe.
    #[cfg(unix)]
    pub fn start_at_terminal(&self, home: &TestHome, base_url: &str) -> Terminal {
        Terminal::new(self.command(home, base_url), self.limit, false)
    }

    /// Starts the program with a terminal for all it reads and shows.
    pub fn start_on_screen(&self, home: &TestHome, base_url: &str) -> Terminal {
        Terminal::new(self.command(home, base_url), self.limit, true)
    }

    /// Starts the program on a screen of this size that understands what it draws.
    pub fn start_screen(&self, home: &TestHome, base_url: &str, (width, height): (u16, u16)) -> Screen {
        let mut command = self.command(home, base_url);
        if !self.vars.contains_key("TERM") {
            command.env("TERM", "xterm-256color");
        }
        Screen::new(Terminal::new(command, self.limit, true), width, height)
    }

    fn spawn(&self, home: &TestHome, base_url: &str) -> Child {
        let mut command = self.command(home, base_url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("run `{}`: {error}", self.path.display()))
    }

    fn command(&self, home: &TestHome, base_url: &str) -> Command {
        let mut command = hearing_hang_ups(&self.path);
        command.args(&self.args).current_dir(self.cwd.clone().unwrap_or_else(|| home.project()));
        command.env_clear().envs(home.env_vars(base_url)).envs(&self.vars);
        command
    }
}

/// Begins a command that hears of hang-ups, also where whoever started the tests does not (`nohup`): that is inherited.
fn hearing_hang_ups(program: &Path) -> Command {
    static ARE_IGNORED: OnceLock<bool> = OnceLock::new();
    let are_ignored = ARE_IGNORED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        // The first bit is the first signal, SIGHUP.
        ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
    });
    if !are_ignored {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=HUP").arg(program);
    command
}

fn feed(mut input: impl Write, text: &str) {
    // A program may end without reading its input; that is no failure of the test.
    input.write_all(text.as_bytes()).ok();
}

/// Reads a pipe to its end on a thread of its own.
fn collect(mut pipe: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is still worth showing.
        pipe.read_to_end(&mut bytes).ok();
        sender.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    receiver
}

/// Returns what was collected, without waiting for ever on a pipe that a grandchild still holds.
fn received(pipe: &mpsc::Receiver<String>) -> String {
    pipe.recv_timeout(PATIENCE).unwrap_or_else(|_| "<still held open by a child>".into())
}

/// Waits for the child until `deadline`, looking often.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        let status = child.try_wait().expect("wait for the child");
        if status.is_some() || Instant::now() >= deadline {
            return status;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the child we started, and only it.
fn kill(child: &mut Child) -> ExitStatus {
    child.kill().expect("kill the child");
    child.wait().expect("wait for the child")
}

fn output(status: ExitStatus, stdout: String, stderr: String) -> Output {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    Output { stdout, stderr, code: status.code(), signal }
}
