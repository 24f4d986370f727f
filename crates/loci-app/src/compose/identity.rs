//! Who a session is, where it is written and what its entries are stamped with.

use std::path::{Path, PathBuf};

use loci_core::entry::draft::Stamp;
use loci_core::session::{NewSession, SessionIdentity};
use loci_stdx::Env;
use loci_storage::layout::{ConfigHome, SessionPlace};
use loci_storage::project::head_branch;
use loci_storage::sessions::{Lease, SessionLog};

use crate::COMPATIBLE_VERSION;
use crate::options::RunOptions;

/// Returns who a session is.
pub(super) fn identity(env: &Env, place: &SessionPlace, options: &RunOptions) -> SessionIdentity {
    SessionIdentity::new(NewSession {
        id: place.id().clone(),
        project_dir: project_dir(place),
        cwd: env.cwd.clone(),
        is_interactive: options.is_interactive,
        is_persistent: options.is_persistent,
    })
}

/// Returns the directory of the sessions of a project.
pub(super) fn project_dir(place: &SessionPlace) -> PathBuf {
    place.file().parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Returns where a session is written.
pub(super) fn log(
    home: &ConfigHome,
    place: &SessionPlace,
    lease: Option<Lease>,
    is_persistent: bool,
) -> SessionLog {
    let log = match (is_persistent, lease) {
        (false, _) => SessionLog::in_memory(),
        (true, Some(lease)) => SessionLog::leased(place.file(), lease),
        (true, None) => SessionLog::on_disk(place.file()),
    };
    log.with_fallback(home, place)
}

/// Returns what every entry of a session is stamped with.
pub(super) fn stamp(env: &Env, place: &SessionPlace, is_interactive: bool) -> Stamp {
    let usual = if is_interactive { "cli" } else { "sdk-cli" };
    Stamp {
        session_id: place.id().clone(),
        cwd: env.cwd.display().to_string(),
        version: COMPATIBLE_VERSION.to_owned(),
        git_branch: head_branch(&env.cwd).unwrap_or_else(|| "HEAD".to_owned()),
        slug: None,
        entrypoint: env.vars.non_empty("CLAUDE_CODE_ENTRYPOINT").unwrap_or(usual).to_owned(),
        agent: None,
        agent_type: None,
    }
}
