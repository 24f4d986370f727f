//! Named pipes: how a test waits for a command to run, holds it, and sees it end, without sleeping.

use loci_testkit::TestHome;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// How long to wait for the other side.
const PATIENCE: Duration = Duration::from_secs(30);

/// A named pipe in the project.
pub(crate) struct Pipe {
    path: PathBuf,
}

impl Pipe {
    pub(crate) fn new(home: &TestHome, name: &str) -> Self {
        let path = home.project().join(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        Self { path }
    }

    /// Waits until a command reads the pipe, and returns the end to write to.
    ///
    /// # Panics
    ///
    /// If none has come in time.
    pub(crate) fn reader_came(&self) -> File {
        let path = self.path.clone();
        in_time(move || OpenOptions::new().write(true).open(path)).expect("a command reads the pipe").unwrap()
    }

    /// Waits until a command writes to the pipe, and returns the end to read from.
    ///
    /// # Panics
    ///
    /// If none has come in time.
    pub(crate) fn writer_came(&self) -> File {
        let path = self.path.clone();
        in_time(move || File::open(path)).expect("a command writes to the pipe").unwrap()
    }
}

/// Asserts that every process that held the other end of a pipe has ended, now or soon.
pub(crate) fn assert_ended(mut pipe: File) {
    let read = in_time(move || pipe.read_to_end(&mut Vec::new()));
    read.expect("what the command started has ended").unwrap();
}

/// Runs what may wait for ever on a thread of its own, which can be given up.
fn in_time<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(wait()));
    receiver.recv_timeout(PATIENCE).ok()
}
