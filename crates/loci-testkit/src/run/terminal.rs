//! A program at a terminal: what it shows is waited for, what a person would type is typed.

use super::{Output, collect, kill, output, received, wait_until};
use rustix::pty::OpenptFlags;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A running program whose standard input and standard error are a terminal; killed when dropped.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: File,
    screen: mpsc::Receiver<Vec<u8>>,
    /// What was shown so far.
    shown: String,
    /// How much of it was waited for already.
    passed: usize,
    stdout: mpsc::Receiver<String>,
    limit: Duration,
    /// The program's side, kept open where its modes are looked at after its end.
    device: Option<File>,
}

impl Terminal {
    /// Starts a program; `shows_stdout` puts its standard output on the terminal too, instead of a pipe.
    pub(super) fn new(mut command: Command, limit: Duration, shows_stdout: bool) -> Self {
        let (keys, device) = open_pair();
        let clone = || Stdio::from(device.try_clone().expect("clone the terminal"));
        command.stdin(clone()).stderr(clone()).stdout(if shows_stdout { clone() } else { Stdio::piped() });
        own_terminal(&mut command);
        let mut child = command.spawn().expect("start at a terminal");
        // What is left of the device in this process would keep the terminal from ending, unless that is wanted.
        drop(command);
        let device = shows_stdout.then_some(device);
        let screen = read_screen(keys.try_clone().expect("clone the terminal"));
        let stdout = match child.stdout.take() {
            Some(pipe) => collect(pipe),
            None => collect(std::io::empty()),
        };
        Self { child, keys, screen, shown: String::new(), passed: 0, stdout, limit, device }
    }

    /// Waits until `text` is shown, behind what was waited for before, and returns what was shown up to it.
    ///
    /// # Panics
    ///
    /// If it is not shown within the limit, or the terminal ends before.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + self.limit;
        loop {
            if let Some(at) = self.shown[self.passed..].find(text) {
                let end = self.passed + at + text.len();
                let shown = self.shown[self.passed..end].to_owned();
                self.passed = end;
                return shown;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                // What goes on writing is no reason to go on waiting.
                Ok(bytes) if !left.is_zero() => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Ok(_) | Err(_) => panic!("`{text}` is not shown; shown so far:\n{}", self.shown),
            }
        }
    }

    /// Waits for more that is shown, and returns it.
    pub(super) fn next_bytes(&mut self, patience: Duration) -> Option<Vec<u8>> {
        let bytes = self.screen.recv_timeout(patience).ok()?;
        self.shown.push_str(&String::from_utf8_lossy(&bytes));
        Some(bytes)
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Changes the size of the window.
    pub(super) fn set_size(&self, width: u16, height: u16) {
        let size = rustix::termios::Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.keys, size).expect("set the size of the terminal");
    }

    /// Tells whether the terminal echoes and takes lines.
    pub(super) fn is_cooked(&self) -> bool {
        let modes =
            rustix::termios::tcgetattr(&self.keys).expect("read the modes of the terminal").local_modes;
        modes.contains(rustix::termios::LocalModes::ECHO | rustix::termios::LocalModes::ICANON)
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("send a signal");
    }

    /// Waits for the end of the program.
    pub(super) fn wait(&mut self) {
        wait_until(&mut self.child, Instant::now() + self.limit);
    }

    pub(super) fn type_bytes(&mut self, bytes: &[u8]) {
        self.keys.write_all(bytes).expect("type");
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        self.keys.write_all(format!("{line}\n").as_bytes()).expect("type a line");
    }

    /// Types a single key, such as `\x04` for the end of input.
    pub fn type_key(&mut self, key: char) {
        self.keys.write_all(key.to_string().as_bytes()).expect("type a key");
    }

    /// Waits for the end and returns what the program left; standard error is what the terminal showed.
    ///
    /// # Panics
    ///
    /// If it is still running at the limit; it is then killed first.
    pub fn finish(mut self) -> Output {
        let (status, in_time) = match wait_until(&mut self.child, Instant::now() + self.limit) {
            Some(status) => (status, true),
            None => (kill(&mut self.child), false),
        };
        drop(self.device.take());
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_millis(500)) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        let output = output(status, received(&self.stdout), std::mem::take(&mut self.shown));
        assert!(in_time, "still running: {output:?}");
        output
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            kill(&mut self.child);
        }
    }
}

/// Opens a terminal: the side of the person, and the side of the program.
fn open_pair() -> (File, File) {
    let person = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("open a terminal");
    rustix::pty::grantpt(&person).expect("grant the terminal");
    rustix::pty::unlockpt(&person).expect("unlock the terminal");
    let name = rustix::pty::ptsname(&person, Vec::new()).expect("name the terminal");
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let device = OpenOptions::new().read(true).write(true).open(path).expect("open the terminal's device");
    (File::from(person), device)
}

/// Makes standard input the terminal of a session of the program's own.
fn own_terminal(command: &mut Command) {
    #[expect(unsafe_code, reason = "setsid, ioctl and signal are async-signal-safe and allocate nothing")]
    // SAFETY: between fork and exec only setsid(2), ioctl(2) and signal(2) are called, which POSIX allows there.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            // `nohup`, or a shell that runs the tests in the background, has set them aside for whoever is started.
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// Reads what is shown on a thread of its own, so that waiting can have a limit.
fn read_screen(mut screen: File) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        // A terminal that nobody uses any more is an error to read from.
        while let Ok(n_read) = screen.read(&mut buffer) {
            if n_read == 0 || sender.send(buffer[..n_read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
