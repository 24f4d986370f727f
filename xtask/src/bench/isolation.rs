//! A place without a network: programs run here reach loopback and nothing else.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// How to get a network namespace of one's own.
pub(crate) struct Isolation {
    flags: &'static [&'static str],
}

/// As root; and as anybody else, where the kernel lets users have namespaces.
const WAYS: [&[&str]; 2] = [&["--net"], &["--map-root-user", "--net"]];

impl Isolation {
    /// Finds a way that works on this machine.
    pub(crate) fn find() -> anyhow::Result<Isolation> {
        for flags in WAYS {
            let isolation = Isolation { flags };
            let probe = isolation.command("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
            if probe.context("Failed to run `unshare`; the bench needs Linux with util-linux")?.success() {
                return Ok(isolation);
            }
        }
        bail!("Failed to make a network namespace; run the bench as root, with `ip` (iproute2) installed")
    }

    /// Returns a command that will run there, with loopback up.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(self.flags)
            .args(["--", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
            .arg(program);
        command
    }
}
