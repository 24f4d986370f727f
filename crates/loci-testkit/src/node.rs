//! Programs of npm, for tests that let official tools drive our side of a protocol.
//!
//! Each set of packages is installed once, into a directory under the target directory, and shared by all tests and test
//! binaries. Some want a newer Node than the machine has; then one is installed beside them, as a package.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python::run;

/// Set to `required` where Node must not be missing.
const REQUIRED: &str = "LOCI_TEST_NODE";

/// Packages, and a Node that runs them.
#[derive(Clone, Debug)]
pub struct NodePackages {
    directory: PathBuf,
    node: PathBuf,
}

impl NodePackages {
    /// Returns the packages `args` (names with their versions), installed under `directory` as `name`, and a Node of at
    /// least the version `node`; none if there is no npm on this machine.
    ///
    /// `directory` is the test's `env!("CARGO_TARGET_TMPDIR")`.
    ///
    /// # Panics
    ///
    /// If they cannot be installed, with what npm said; and if there is no npm where `LOCI_TEST_NODE` is `required`.
    pub fn new(directory: impl AsRef<Path>, name: &str, node: u32, args: &[&str]) -> Option<Self> {
        let Some(version) = version_of_node() else {
            let is_required = std::env::var(REQUIRED).is_ok_and(|value| value == "required");
            assert!(!is_required, "{REQUIRED} is required, and there is no node with npm on this machine");
            return None;
        };
        let directory = directory.as_ref().join(name);
        fs::create_dir_all(&directory).expect("make a directory");
        // Tests run side by side, in threads and in processes; the first to come installs for all.
        let lock = File::create(directory.join("lock")).expect("make a lock file");
        lock.lock().expect("take the lock");
        let own_node = (version < node).then(|| format!("node-{}@{node}", platform()));
        let args: Vec<&str> = args.iter().copied().chain(own_node.as_deref()).collect();
        let (wish, marker) = (args.join(" "), directory.join("installed"));
        if fs::read_to_string(&marker).ok().as_deref() != Some(wish.as_str()) {
            let mut install = Command::new("npm");
            install.args(["install", "--no-fund", "--no-audit", "--ignore-scripts", "--no-save", "--prefix"]);
            run(install.arg(&directory).args(&args));
            fs::write(marker, &wish).expect("note what is installed");
        }
        let node = match own_node {
            Some(_) => directory.join(format!("node_modules/node-{}/bin/node", platform())),
            None => PathBuf::from("node"),
        };
        Some(Self { directory, node })
    }

    /// Returns a command that runs a script which finds the packages, with the path as its only variable. The script is
    /// copied beside them.
    ///
    /// # Panics
    ///
    /// If it cannot be copied.
    pub fn script(&self, path: impl AsRef<Path>) -> Command {
        let path = path.as_ref();
        let text = fs::read(path).expect("read the script");
        let copy = self.directory.join(path.file_name().expect("a script has a name"));
        if fs::read(&copy).ok().as_deref() != Some(text.as_slice()) {
            // Other tests, threads of this process too, may be reading or replacing it: it is replaced whole.
            let fresh = tempfile::NamedTempFile::new_in(&self.directory).expect("make a file for the script");
            fs::write(fresh.path(), text).expect("copy the script");
            fresh.persist(&copy).expect("put the script in its place");
        }
        let mut command = Command::new(&self.node);
        command.arg(copy).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Returns a command that runs a program of the packages, with the path as its only variable.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.directory.join("node_modules/.bin").join(name)).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }
}

fn version_of_node() -> Option<u32> {
    Command::new("npm").arg("--version").output().ok()?;
    let output = Command::new("node").arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Returns what npm calls this kind of machine.
fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("{system}-{machine}")
}
