//! A Python with packages of its own, for tests that let official clients drive our side of a protocol.
//!
//! Each set of packages is installed once, into a virtual environment under the target directory, and shared by
//! all tests and test binaries.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Set to `required` where Python must not be missing.
const REQUIRED: &str = "LOCI_TEST_PYTHON";

/// A virtual environment.
#[derive(Clone, Debug)]
pub struct PythonVenv {
    python: PathBuf,
}

impl PythonVenv {
    /// Returns the environment `name` under `directory`, made with `pip install <args>` if it is not there yet;
    /// none if there is no Python on this machine.
    ///
    /// `directory` is the test's `env!("CARGO_TARGET_TMPDIR")`.
    ///
    /// # Panics
    ///
    /// If it cannot be made, with what Python said; and if there is none where `LOCI_TEST_PYTHON` is `required`.
    pub fn new(directory: impl AsRef<Path>, name: &str, args: &[&str]) -> Option<Self> {
        if Command::new("python3").arg("--version").output().is_err() {
            let is_required = std::env::var(REQUIRED).is_ok_and(|value| value == "required");
            assert!(!is_required, "{REQUIRED} is required, and there is no python3 on this machine");
            return None;
        }
        let directory = directory.as_ref().join(name);
        fs::create_dir_all(&directory).expect("make a directory");
        // Tests run side by side, in threads and in processes; the first to come installs for all.
        let lock = File::create(directory.join("lock")).expect("make a lock file");
        lock.lock().expect("take the lock");
        let (python, marker) = (directory.join("venv/bin/python"), directory.join("installed"));
        let wish = args.join(" ");
        if fs::read_to_string(&marker).ok().as_deref() != Some(wish.as_str()) {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(directory.join("venv")));
            run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(args));
            fs::write(marker, wish).expect("note what is installed");
        }
        Some(Self { python })
    }

    /// Returns a command that runs a script with a cleared environment, which keeps proxies of the machine out
    /// of the way to loopback.
    pub fn script(&self, path: impl AsRef<Path>) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(path.as_ref()).env_clear();
        command
    }
}

/// Runs a command to its end.
///
/// # Panics
///
/// If it fails, with what it said.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().expect("run a command");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}
