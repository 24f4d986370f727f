//! Starting a program inside: the command line of the helper, and what it tells while it runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use crate::HELPER_NAME;
use crate::control::{self, Message, ProxyPort};
use crate::policy::Policy;

/// Takes connections of the proxy's ports; called within a runtime.
pub type Connections = Arc<dyn Fn(ProxyConnection) + Send + Sync>;

/// What one command could not reach, in words: a list that its connections share, and that its report has in the end.
#[derive(Debug, Clone, Default)]
pub struct RefusedHosts(Arc<Mutex<Vec<String>>>);

impl RefusedHosts {
    /// How many are told of one command.
    const MOST: usize = 20;

    /// Remembers a refusal; a program that tries again and again is told of once.
    pub(crate) fn note(&self, text: String) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused.contains(&text) && refused.len() < Self::MOST {
            refused.push(text);
        }
    }

    /// Returns what there is so far, in words.
    pub fn told(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection to one of the proxy's ports.
#[derive(Debug)]
pub struct ProxyConnection {
    /// Which port.
    pub port: ProxyPort,
    /// The connection.
    pub stream: std::net::TcpStream,
    /// The command that made it, for people; where somebody has said which one runs.
    pub command: Option<Arc<str>>,
    /// What the command could not reach.
    pub refused: RefusedHosts,
}

/// What the helper told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxReport {
    /// Whether the program was started, with all layers in place.
    pub is_ready: bool,
    /// Why the program did not run.
    pub failure: Option<String>,
    /// What was removed after the command, in words.
    pub removed: Vec<String>,
    /// What the command could not reach, in words.
    pub refused_hosts: Vec<String>,
    /// The program's code, where the helper told that everything has ended and is cleaned up.
    pub exit_code: Option<u8>,
}

impl SandboxReport {
    /// Returns why the program never ran; none when it did.
    pub fn why_not_run(&self) -> Option<String> {
        match (&self.failure, self.is_ready) {
            (Some(why), _) => Some(why.clone()),
            (None, true) => None,
            (None, false) => Some("the sandbox ended before the program was started".to_owned()),
        }
    }

    fn take(&mut self, message: Message) -> Option<(ProxyPort, OwnedFd)> {
        match message {
            Message::Ready => self.is_ready = true,
            Message::Failed(why) => self.failure = Some(why),
            Message::Removed(what) => self.removed.push(what),
            Message::Done(code) => self.exit_code = Some(code),
            Message::Connection(port, fd) => return Some((port, fd)),
        }
        None
    }
}

/// Our end of the helper's socket. Everything in the sandbox ends when it is dropped.
#[derive(Debug)]
pub struct HelperHandle {
    socket: OwnedFd,
    command: Option<Arc<str>>,
}

/// Makes the command that runs a program inside. Its environment, directory and streams are the caller's to set; they
/// are those of the program.
pub fn launch<S: AsRef<OsStr>>(
    helper: &Path,
    policy: &Policy,
    program: &OsStr,
    args: impl IntoIterator<Item = S>,
) -> io::Result<(Command, HelperHandle)> {
    let text = serde_json::to_vec(policy).map_err(io::Error::other)?;
    let (mut command, socket, mut file) = helper_command(helper, HelperOrder::Run, None)?;
    file.write_all(&text)?;
    file.rewind()?;
    command.arg(program).args(args);
    Ok((command, HelperHandle::new(socket)))
}

/// What the helper is told by its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelperOrder {
    /// To run the words behind its descriptors, under the policy in its file.
    Run,
    /// To prepare what the word behind its descriptors says, and to wait for its program ([`crate::standby`]).
    Wait,
}

impl HelperOrder {
    /// Returns the word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Wait => "wait",
        }
    }
}

/// Makes the command that starts the helper, our end of its socket, and the file that it reads what to do from. It has
/// another descriptor behind those two where one is given.
pub(crate) fn helper_command(
    helper: &Path,
    order: HelperOrder,
    another: Option<OwnedFd>,
) -> io::Result<(Command, OwnedFd, File)> {
    let (ours, theirs) = control::pair()?;
    let file = in_memory()?;
    let inherited = file.as_fd().try_clone_to_owned()?;
    let mut command = Command::new(helper);
    command.arg0(HELPER_NAME).arg(order.word());
    let kept: Vec<OwnedFd> = [inherited, theirs].into_iter().chain(another).collect();
    command.args(kept.iter().map(|fd| fd.as_raw_fd().to_string()));
    keep_open(&mut command, kept);
    Ok((command, ours, file))
}

#[cfg(target_os = "linux")]
fn in_memory() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("loci-sandbox-policy", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

#[cfg(target_os = "linux")]
fn keep_open(command: &mut Command, fds: Vec<OwnedFd>) {
    crate::linux::sys::keep_open(command, fds);
}

#[cfg(not(target_os = "linux"))]
fn in_memory() -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "there is no sandbox on this system"))
}

#[cfg(not(target_os = "linux"))]
fn keep_open(_command: &mut Command, _fds: Vec<OwnedFd>) {}

impl HelperHandle {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, command: None }
    }

    /// Waits, in this thread, until everything in the sandbox has ended. Connections are refused.
    pub fn wait(self) -> io::Result<SandboxReport> {
        let mut report = SandboxReport::default();
        while report.exit_code.is_none()
            && let Some(message) = control::receive(self.socket.as_fd())?
        {
            drop(report.take(message));
        }
        Ok(report)
    }

    /// Names the command that runs, for people who are asked about a host that it wants to reach.
    pub fn of_command(self, command: &str) -> Self {
        Self { command: Some(Arc::from(command)), ..self }
    }

    /// Listens beside the caller until everything in the sandbox has ended.
    pub fn watch(self, connections: Option<Connections>) -> io::Result<SandboxRun> {
        rustix::io::ioctl_fionbio(&self.socket, true)?;
        #[expect(
            unsafe_code,
            reason = "the descriptor is owned by what registers it and closed by nobody else"
        )]
        // SAFETY: an `OwnedFd` gives the same descriptor each time and is closed when the registration is dropped.
        let socket = unsafe { AsyncFd::register(self.socket)? };
        let command = self.command;
        let refused = RefusedHosts::default();
        let task = tokio::spawn(listen(socket, connections, command, refused.clone()));
        Ok(SandboxRun { task, report: None, refused })
    }
}

async fn listen(
    socket: AsyncFd<OwnedFd>,
    connections: Option<Connections>,
    command: Option<Arc<str>>,
    refused: RefusedHosts,
) -> SandboxReport {
    let mut report = SandboxReport::default();
    while report.exit_code.is_none() {
        let Ok(mut ready) = socket.readable().await else { return report };
        let received = match ready.try_io(|socket| control::receive(socket.as_fd())) {
            Ok(received) => received,
            Err(_would_block) => continue,
        };
        match received {
            Ok(Some(message)) => {
                if let (Some((port, fd)), Some(connections)) = (report.take(message), &connections) {
                    let (stream, command) = (fd.into(), command.clone());
                    connections(ProxyConnection { port, stream, command, refused: refused.clone() });
                }
            }
            Ok(None) => return report,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => {
                tracing::debug!(target: "loci::sandbox", %error, "the helper was lost sight of");
                return report;
            }
        }
    }
    report
}

/// A program inside.
#[derive(Debug)]
pub struct SandboxRun {
    task: JoinHandle<SandboxReport>,
    /// What the helper told, once that is known.
    report: Option<SandboxReport>,
    /// What it could not reach.
    refused: RefusedHosts,
}

impl SandboxRun {
    /// Waits until everything has ended and is cleaned up, and returns the program's code; for ever, where the helper does
    /// not tell, whose own end says the rest. Nothing is lost when it is not waited for to the end.
    pub async fn exit_code(&mut self) -> u8 {
        if self.report.is_none() {
            self.report = Some((&mut self.task).await.unwrap_or_default());
        }
        match self.report.as_ref().and_then(|report| report.exit_code) {
            Some(code) => code,
            None => std::future::pending().await,
        }
    }

    /// Returns what the helper told, once it has ended.
    pub async fn report(self) -> SandboxReport {
        let report = match self.report {
            Some(report) => report,
            None => self.task.await.unwrap_or_default(),
        };
        SandboxReport { refused_hosts: self.refused.told(), ..report }
    }

    /// Returns what the program could not reach so far, in words.
    pub fn refused_hosts(&self) -> Vec<String> {
        self.refused.told()
    }
}
