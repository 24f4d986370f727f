//! Whether a living process works on a session: our own leases, and the registry of interactive sessions.
//!
//! Both are JSON files that name a `pid`. One that cannot be read, or whose process is gone, counts for nothing.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::{is_alive, read_regular};
use serde::Deserialize;

use crate::layout::ConfigHome;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    pid: i32,
    #[serde(default)]
    session_id: Option<String>,
}

/// Returns the process that works on the session, unless it is this one.
pub(crate) fn process_on(home: &ConfigHome, id: &SessionId) -> Option<i32> {
    let leases = files_in(&home.loci_dir().join("leases"));
    let leases = leases.into_iter().filter(|file| is_named_after(file, id)).filter_map(|file| claim(&file));
    let registered = files_in(&home.root().join("sessions")).into_iter().filter_map(|file| claim(&file));
    let registered = registered.filter(|claim| claim.session_id.as_deref() == Some(id.as_str()));
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    leases.chain(registered).map(|claim| claim.pid).find(|pid| *pid != own && is_running(*pid))
}

fn is_running(pid: i32) -> bool {
    u32::try_from(pid).is_ok_and(is_alive)
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    // No directory means no claims.
    fs::read_dir(dir).map_or_else(
        |_| Vec::new(),
        |entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
    )
}

fn is_named_after(file: &Path, id: &SessionId) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(id.as_str()))
}

fn claim(file: &Path) -> Option<Claim> {
    serde_json::from_slice(&read_regular(file).ok()?).ok()
}
