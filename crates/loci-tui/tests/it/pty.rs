//! A program on a pty whose other side the test holds.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// Shows what a terminal sends.
pub(crate) const KEYS: &str = env!("CARGO_BIN_EXE_terminal-keys");

/// No step takes nearly as long, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A program that runs on a pty; killed when dropped.
pub(crate) struct Pty {
    master: Option<File>,
    child: Child,
    screen: mpsc::Receiver<Vec<u8>>,
    shown: Vec<u8>,
    passed: usize,
    found: String,
    is_closed: Arc<AtomicBool>,
}

impl Pty {
    /// Starts `terminal-keys`; `typed` is typed before it starts.
    pub(crate) fn keys(variables: &[(&str, &str)], typed: &str) -> Self {
        let mut command = Command::new(KEYS);
        command.env_clear().envs(variables.iter().copied());
        Self::start(command, typed)
    }

    /// Starts any program.
    pub(crate) fn start(mut command: Command, typed: &str) -> Self {
        let (mut master, device) = open_pair();
        let found = line_discipline(&master);
        master.write_all(typed.as_bytes()).unwrap();
        let clone = || Stdio::from(device.try_clone().unwrap());
        command.env("HOME", "/nonexistent").env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(clone()).stdout(clone()).stderr(clone());
        own_terminal(&mut command);
        let child = command.spawn().unwrap();
        drop((command, device));
        let is_closed = Arc::new(AtomicBool::new(false));
        let screen = read_screen(master.try_clone().unwrap(), Arc::clone(&is_closed));
        Self { master: Some(master), child, screen, shown: Vec::new(), passed: 0, found, is_closed }
    }

    /// Types bytes.
    pub(crate) fn send(&mut self, bytes: &str) {
        self.master().write_all(bytes.as_bytes()).unwrap();
    }

    /// Waits until `text` is shown behind what was waited for before; returns what was shown up to it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let fresh = &self.shown[self.passed..];
            if let Some(at) = fresh.windows(text.len()).position(|window| window == text.as_bytes()) {
                let end = self.passed + at + text.len();
                let shown = String::from_utf8_lossy(&self.shown[self.passed..end]).into_owned();
                self.passed = end;
                return shown;
            }
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.shown.extend(bytes),
                Err(_) => panic!("{text:?} is not shown: {:?}", self.text()),
            }
        }
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.master.as_ref().unwrap(), size).unwrap();
    }

    /// Tells whether the line discipline is as it was found.
    pub(crate) fn is_as_found(&self) -> bool {
        line_discipline(self.master.as_ref().unwrap()) == self.found
    }

    /// Closes the window.
    pub(crate) fn close(&mut self) {
        self.master = None;
        self.is_closed.store(true, Ordering::Release);
    }

    /// Waits for the program's end; everything it wrote is in [`text`](Self::text) then.
    pub(crate) fn finish(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "still running: {:?}", self.text());
            thread::sleep(Duration::from_millis(5));
        };
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_millis(200)) {
            self.shown.extend(bytes);
        }
        status
    }

    /// Everything that was shown.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    fn master(&mut self) -> &mut File {
        self.master.as_mut().unwrap()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// The modes that are still on after these bytes.
pub(crate) fn modes_left_on(text: &str) -> Vec<String> {
    let mut on: Vec<String> = Vec::new();
    for sequence in text.split("\x1b[").skip(1) {
        let end = sequence.find(|char: char| ('@'..='~').contains(&char)).unwrap_or(sequence.len() - 1);
        let (parameters, last) = sequence.split_at(end);
        let Some(last) = last.chars().next() else { continue };
        let (name, is_on) = match (parameters.chars().next(), last) {
            (Some('?'), 'h') if parameters == "?25" => ("cursor hidden".to_owned(), false),
            (Some('?'), 'l') if parameters == "?25" => ("cursor hidden".to_owned(), true),
            (Some('?'), 'h' | 'l') => (parameters.to_owned(), last == 'h'),
            (Some('>' | '<'), 'u') => ("kitty".to_owned(), parameters.starts_with('>')),
            (Some('>'), 'm') => ("other keys".to_owned(), parameters != ">4;0"),
            (Some('2'), 't') => ("title".to_owned(), parameters.starts_with("22")),
            _ => continue,
        };
        on.retain(|mode| *mode != name);
        if is_on {
            on.push(name);
        }
    }
    on
}

fn line_discipline(master: &File) -> String {
    let found = tcgetattr(master).unwrap();
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        found.input_modes, found.output_modes, found.control_modes, found.local_modes, found.special_codes
    )
}

fn open_pair() -> (File, File) {
    // Nobody who is started may keep the window open, whatever another test starts at this very moment.
    #[cfg(target_os = "linux")]
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = rustix::pty::openpt(flags).unwrap();
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let device = OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
    (File::from(master), device)
}

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

/// Reads what is shown on a thread of its own, until the program ends or the window is closed.
fn read_screen(mut screen: File, is_closed: Arc<AtomicBool>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        let pause = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        while !is_closed.load(Ordering::Acquire) {
            if poll(&mut [PollFd::new(&screen, PollFlags::IN)], Some(&pause)).unwrap() == 0 {
                continue;
            }
            match screen.read(&mut buffer) {
                Ok(n_read) if n_read > 0 && sender.send(buffer[..n_read].to_vec()).is_ok() => {}
                _ => return,
            }
        }
    });
    receiver
}
