//! A directory where lines are run, and commands that write down how they were called.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commands that lines are made of.
pub(super) const COMMANDS: &[&str] = &["alpha", "beta", "gamma", "delta"];

/// Ends the words of a call in the log.
const END: &str = "\u{1e}";

/// What a line did.
pub(super) struct Ran {
    /// Calls of our commands, words joined by blanks.
    pub(super) calls: Vec<String>,
    /// Files that are there now.
    pub(super) written: Vec<PathBuf>,
}

pub(super) struct Scratch {
    root: PathBuf,
    n_runs: std::cell::Cell<usize>,
    _dir: tempfile::TempDir,
}

impl Scratch {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let scratch = Self { root, n_runs: std::cell::Cell::new(0), _dir: dir };
        std::fs::create_dir_all(scratch.bin()).unwrap();
        std::fs::create_dir_all(scratch.home()).unwrap();
        // One `printf`, so that commands in a pipeline do not write into each other.
        let text = format!("#!/bin/sh\nprintf '%s\\037' \"${{0##*/}}\" \"$@\" '{END}' >> \"$CALLS\"\n");
        for name in COMMANDS {
            let path = scratch.bin().join(name);
            std::fs::write(&path, &text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        scratch
    }

    pub(super) fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Each line has its own, so that what a line leaves behind in the background does not count for the next.
    fn log(&self) -> PathBuf {
        self.root.join(format!("log{}", self.n_runs.get()))
    }

    /// Runs a line from an empty directory; loops, recursion and files have an end.
    pub(super) fn run(&self, line: &str) -> Ran {
        if self.work().exists() {
            std::fs::remove_dir_all(self.work()).unwrap();
        }
        std::fs::create_dir(self.work()).unwrap();
        self.n_runs.set(self.n_runs.get() + 1);
        std::fs::write(self.log(), "").unwrap();
        let limits =
            "ulimit -t 5 -f 1000; FUNCNEST=20; export FUNCNEST; exec bash --noprofile --norc -c \"$1\"";
        Command::new("bash")
            .args(["--noprofile", "--norc", "-c", limits, "bash", line])
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", self.bin().display()))
            .env("HOME", self.home())
            .env("CALLS", self.log())
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        Ran { calls: self.calls(), written: files(&self.work()) }
    }

    fn calls(&self) -> Vec<String> {
        let log = std::fs::read(self.log()).unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        let ended = format!("{END}\u{1f}");
        let calls = log.split_terminator(ended.as_str());
        calls.map(|call| call.strip_suffix('\u{1f}').unwrap_or(call).replace('\u{1f}', " ")).collect()
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
