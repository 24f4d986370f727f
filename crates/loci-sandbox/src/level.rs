//! How much of the sandbox this machine can give, found out by trying.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use loci_core::sandbox_status::SandboxLevel as Level;

use crate::launch::launch;
use crate::policy::{FileRules, Layers, Namespaces, Network, Policy};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelCheck {
    /// The best level that was reached.
    pub level: Level,
    /// Its layers.
    pub layers: Layers,
    /// Each layer.
    pub reports: Vec<LayerReport>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerReport {
    /// Its name.
    pub name: &'static str,
    /// Why it is missing; none when it holds.
    pub problem: Option<String>,
    /// What would mend that.
    pub remedy: Option<String>,
}

/// What stays open in the weak level, by name, with the numbers of the probes that show it (`docs/design/sandbox.md`).
const OPEN_IN_WEAK: &[&str] = &[
    "permissions, owners, times and attributes of the user's other files can be changed (probes 7, 8)",
    "protected names inside the project can be made, written, renamed and removed (probes 11, 12, 13)",
    "names in hidden directories can be listed, and hidden files inside the project read (probe 14)",
    "processes of the machine can be seen, and those of the user slowed down (probes 15, 25)",
    "System V and POSIX queues are the machine's (probe 34)",
    "there is no network at all, not even through the proxy",
    "processes that a command leaves behind live on until the session ends",
];

/// What stays open where the machine's own `/proc` had to be taken.
const OPEN_WITH_OLD_PROC: &[&str] = &["processes of the machine can be seen (probes 15, 25)"];

impl LevelCheck {
    /// Returns what a command can do at this level that it could not at the full one.
    pub fn open(&self) -> &'static [&'static str] {
        match self.level {
            Level::Full | Level::None => &[],
            Level::Weak if self.layers.has_mounts() => OPEN_WITH_OLD_PROC,
            Level::Weak => OPEN_IN_WEAK,
        }
    }

    /// Returns the first thing that is missing, in words.
    pub fn problem(&self) -> Option<String> {
        let report = self.reports.iter().find(|report| report.problem.is_some())?;
        let problem = report.problem.clone().unwrap_or_default();
        let remedy = report.remedy.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        Some(format!("{}: {problem}{remedy}", report.name))
    }
}

/// Tries what this machine can do; `allows_old_proc` takes the machine's `/proc` where no other can be had.
pub fn check(helper: &Path, allows_old_proc: bool) -> LevelCheck {
    let alone = |namespaces, landlock, seccomp| Layers { namespaces, landlock, seccomp };
    let full = attempt(helper, Layers::FULL);
    let none = Namespaces::None;
    if full.is_ok() {
        let held = |name| LayerReport { name, problem: None, remedy: None };
        let reports = vec![held(NAMESPACES), held(LANDLOCK), held(SECCOMP)];
        return LevelCheck { level: Level::Full, layers: Layers::FULL, reports };
    }
    let old = Layers { namespaces: Namespaces::OldProc, ..Layers::FULL };
    let has_old_proc = || attempt(helper, old).is_ok();
    let reports = vec![
        report(NAMESPACES, attempt(helper, alone(Namespaces::Full, false, false)), || {
            namespace_remedy(has_old_proc)
        }),
        report(LANDLOCK, attempt(helper, alone(none, true, false)), landlock_remedy),
        report(SECCOMP, attempt(helper, alone(none, false, true)), || None),
    ];
    let candidates = [(allows_old_proc, old), (true, Layers::WEAK)];
    let found =
        candidates.into_iter().find(|(is_allowed, layers)| *is_allowed && attempt(helper, *layers).is_ok());
    match found {
        Some((_, layers)) => LevelCheck { level: Level::Weak, layers, reports },
        None => LevelCheck { level: Level::None, layers: alone(none, false, false), reports },
    }
}

const NAMESPACES: &str = "namespaces and mounts";
const LANDLOCK: &str = "Landlock";
const SECCOMP: &str = "system call filter";

fn report(
    name: &'static str,
    attempt: Result<(), String>,
    remedy: impl FnOnce() -> Option<String>,
) -> LayerReport {
    let remedy = if attempt.is_err() { remedy() } else { None };
    LayerReport { name, problem: attempt.err(), remedy }
}

/// Starts the helper with these layers and nothing to run.
fn attempt(helper: &Path, layers: Layers) -> Result<(), String> {
    let policy = Policy {
        layers,
        files: Some(FileRules::default()),
        network: Network::Proxy,
        allows_unix_sockets: false,
        fault: None,
    };
    let failed = |error: std::io::Error| error.to_string();
    let nothing: [&OsStr; 0] = [];
    let (mut command, helper_handle) =
        launch(helper, &policy, OsStr::new("true"), nothing).map_err(failed)?;
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    // It holds the helper's end of the socket.
    drop(command);
    let report = helper_handle.wait().map_err(failed)?;
    child.wait().map_err(failed)?;
    match (report.is_ready, report.why_not_run()) {
        (true, _) => Ok(()),
        (false, why) => Err(why.unwrap_or_default()),
    }
}

fn landlock_remedy() -> Option<String> {
    Some("a kernel of 6.2 or later with `landlock` among its `lsm=`".to_owned())
}

/// Says what keeps an ordinary user from namespaces, where the kernel tells; in a container, whether the machine's `/proc`
/// would do.
fn namespace_remedy(has_old_proc: impl FnOnce() -> bool) -> Option<String> {
    let is = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let remedy = if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "sudo sysctl -w user.max_user_namespaces=15000"
    } else if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        container_remedy(has_old_proc())
    } else {
        return None;
    };
    Some(remedy.to_owned())
}

/// Says what mends a container. The setting takes another `/proc`, and is no help where namespaces cannot be entered at all.
fn container_remedy(has_old_proc: bool) -> &'static str {
    match has_old_proc {
        true => {
            "run the container with `--security-opt systempaths=unconfined`, or set sandbox.enableWeakerNestedSandbox for the \
             weak level with a network"
        }
        false => "run the container with `--security-opt seccomp=unconfined`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_is_named_only_where_it_would_mend_a_container() {
        for has_old_proc in [true, false] {
            let names_it = container_remedy(has_old_proc).contains("sandbox.enableWeakerNestedSandbox");
            assert_eq!(names_it, has_old_proc);
        }
    }
}
