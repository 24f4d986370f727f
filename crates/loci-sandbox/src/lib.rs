//! The OS sandbox: what holds a command once it runs.
//!
//! [`Policy`] says what a command may read, write and reach; it is a value, made of the session and its settings. The
//! helper ([`run_helper`]) is this program again under the name [`HELPER_NAME`]: it applies the policy to itself in three
//! layers, each of which fails closed, and becomes the command. [`Sandbox`] is what a session has: it starts commands
//! inside. [`egress`] is the proxy that is their only way to the network.
//!
//! `docs/design/sandbox.md` has the decisions and the invariants.

mod connect;
mod control;
pub mod egress;
mod launch;
mod level;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, target_os = "macos"))]
mod macos;
mod plan;
pub mod policy;
mod program_start;
mod refusals;
#[cfg(target_os = "linux")]
mod repository_check;
mod session;
mod standby;

pub use connect::connect_through_proxy;
pub use control::ProxyPort;
pub use launch::{
    Connections, HelperHandle, ProxyConnection, RefusedHosts, SandboxReport, SandboxRun, launch,
};
pub use level::{LayerReport, LevelCheck, check};
pub use loci_core::sandbox_status::{SandboxLevel as Level, SandboxStatus};
pub use plan::{Disk, MountStep, PathKind, Placeholder, PlaceholderKind, Plan, RealDisk};
pub use policy::Policy;
pub use program_start::ProgramStart;
pub use refusals::Printed;
pub use session::{Sandbox, git_dirs};
pub use standby::{Standby, WaitingHelper, waiting_helper};

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The name under which this program is the helper.
pub const HELPER_NAME: &str = "loci-sandbox";

/// Tells whether a process was started as the helper, by the name it was given.
pub fn is_helper(name: &OsStr) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == HELPER_NAME)
}

/// Runs the helper; returns the exit code. The arguments are those behind the name.
#[cfg(target_os = "linux")]
pub fn run_helper(args: impl Iterator<Item = OsString>) -> u8 {
    linux::run_helper(args)
}

/// There is no helper here.
#[cfg(not(target_os = "linux"))]
pub fn run_helper(_args: impl Iterator<Item = OsString>) -> u8 {
    125
}

/// Returns the program that is the helper: this one, even if its file has been replaced meanwhile.
pub fn own_helper() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}
