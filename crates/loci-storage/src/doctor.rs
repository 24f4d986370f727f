//! Looking for what is wrong in the session store, and mending it without losing a byte.
//!
//! [`check_store`] looks and changes nothing. What it finds are cases: findings that belong together, and the one
//! fix for them, as a value. [`repair_store`] performs the fixes, looks again, and goes on until nothing is left that
//! can be fixed. `docs/design/doctor.md` has the decisions and the invariants.
//!
//! 1. What is taken away or written anew is kept first, under `<config home>/loci/aside/`.
//! 2. A session that another process works on is not touched.
//! 3. Whatever moment a repair ends in, the next one goes on from there.

mod companions;
mod derived;
mod file_modes;
mod finding;
mod fix;
mod fs_ops;
mod interrupted;
mod leases;
mod project_dir;
mod references;
mod repair;
mod repair_backup;
mod store;
mod temporary_files;
#[cfg(test)]
mod tests;
mod transcript;
mod transcripts;

use std::collections::HashSet;
use std::time::Duration;

use loci_core::ids::SessionId;
use loci_stdx::{Env, FileLock, LockError};

use crate::layout::ConfigHome;
use crate::sessions::find::FindError;
pub use finding::{Finding, FindingKind, RepairOutcome};
use fix::{Case, Fix};
use fs_ops::FsOps;
use repair::RepairRun;
use store::Store;
pub use temporary_files::{stale_temporary_files, sweep_temporary_files};

/// How often the store is looked at again after something was mended.
const MOST_ROUNDS: usize = 6;
/// How many sessions a glance reads, and how many bytes of them at most.
const GLANCED: usize = 20;
const GLANCED_BYTES: u64 = 32 * 1024 * 1024;
/// How long another repair is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an examination or a repair came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreReport {
    /// How many sessions there are.
    pub n_sessions: usize,
    /// Of how many of them every line was read.
    pub n_read: usize,
    /// What was found, by file.
    pub findings: Vec<Finding>,
}

impl StoreReport {
    /// What came of reading all sessions.
    fn new(n_sessions: usize, findings: Vec<Finding>) -> Self {
        Self { n_sessions, n_read: n_sessions, findings }
    }

    /// Returns how many findings are still there.
    pub fn n_open(&self) -> usize {
        self.findings.iter().filter(|finding| !finding.is_mended()).count()
    }
}

/// Why the store was not looked at or not mended.
#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    /// The store cannot be listed.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Another repair is under way.
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// Is told how many sessions of how many were looked at.
pub type StoreProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Looks at everything in the session store and changes nothing.
pub fn check_store(home: &ConfigHome, env: &Env) -> Result<StoreReport, DoctorError> {
    check_store_observed(home, env, &|_, _| {})
}

/// Does the same, and tells how many sessions of how many it has looked at. It may be told from several threads.
pub fn check_store_observed(
    home: &ConfigHome,
    env: &Env,
    progress: StoreProgress<'_>,
) -> Result<StoreReport, DoctorError> {
    let (n_sessions, cases) = examine(home, env, progress)?;
    Ok(StoreReport::new(n_sessions, cases.into_iter().flat_map(|case| case.findings).collect()))
}

/// Reads the newest sessions, no more than a moment allows, and looks for what was begun and not ended; of the others only
/// who may use them is looked at. It changes nothing, and finds nothing that [`check_store`] would not.
pub fn quick_check_store(home: &ConfigHome, env: &Env) -> Result<StoreReport, DoctorError> {
    let store = Store::open(home, env)?;
    let newest = store.newest(GLANCED, GLANCED_BYTES);
    let mut cases = transcripts::cases(&store, &newest, &|_, _| {});
    cases.extend(store.unlisted_cases());
    cases.extend(interrupted::quick_cases(&store));
    cases.extend(leases::cases(&store));
    cases.extend(file_modes::cases(&store));
    cases.extend(temporary_files::quick_cases(&store));
    let findings = cases.into_iter().flat_map(|case| case.findings).collect();
    Ok(StoreReport { n_read: newest.len(), ..StoreReport::new(store.places.len(), findings) })
}

/// Mends what can be mended, and says what was done and what was not.
pub fn repair_store(home: &ConfigHome, env: &Env) -> Result<StoreReport, DoctorError> {
    repair_store_observed(home, env, &|_, _| {})
}

/// Does the same, and tells how many sessions of how many it has looked at.
pub fn repair_store_observed(
    home: &ConfigHome,
    env: &Env,
    progress: StoreProgress<'_>,
) -> Result<StoreReport, DoctorError> {
    repair_with(home, env, &FsOps::real(), progress)
}

fn examine(
    home: &ConfigHome,
    env: &Env,
    progress: StoreProgress<'_>,
) -> Result<(usize, Vec<Case>), DoctorError> {
    let store = Store::open(home, env)?;
    let mut cases = transcripts::cases(&store, &store.places, progress);
    cases.extend(store.unlisted_cases());
    cases.extend(companions::cases(&store));
    cases.extend(interrupted::cases(&store));
    cases.extend(leases::cases(&store));
    cases.extend(file_modes::cases(&store));
    cases.extend(file_modes::own_cases(&store));
    cases.extend(temporary_files::cases(&store));
    cases.extend(derived::cases(&store));
    // Those of one file stay in the order they were found: what is inside is mended before it moves.
    cases.sort_by_key(Case::file);
    Ok((store.places.len(), cases))
}

/// Returns the sessions that something comes back to: what they miss may be among it, and must not be in its way.
fn sessions_to_complete(cases: &[Case]) -> HashSet<SessionId> {
    let comes_back = |case: &&Case| matches!(case.fix, Fix::BringBack { .. });
    cases.iter().filter(comes_back).filter_map(Case::session).collect()
}

fn repair_with(
    home: &ConfigHome,
    env: &Env,
    fs: &FsOps,
    progress: StoreProgress<'_>,
) -> Result<StoreReport, DoctorError> {
    // Where there is nothing, nothing is made either.
    let (n_sessions, mut cases) = examine(home, env, progress)?;
    if cases.is_empty() {
        return Ok(StoreReport::new(n_sessions, Vec::new()));
    }
    let _lock = FileLock::acquire(&home.loci_dir().join("doctor.lock"), PATIENCE)?;
    let repair = RepairRun::new(home, env, fs);
    let mut mended = Vec::new();
    for _ in 0..MOST_ROUNDS {
        let mut is_better = false;
        let coming = sessions_to_complete(&cases);
        for case in &mut cases {
            if matches!(case.fix, Fix::Write { .. }) && case.session().is_some_and(|it| coming.contains(&it))
            {
                case.set(&RepairOutcome::Left(
                    "what belongs to the session has to come back first".to_owned(),
                ));
                continue;
            }
            match repair.perform(&case.fix, case.session().as_ref()) {
                Ok(done) => {
                    is_better = true;
                    mended.extend(
                        case.findings.drain(..).map(|it| it.with(RepairOutcome::Mended(done.clone()))),
                    );
                }
                Err(why) => case.set(&RepairOutcome::Left(why)),
            }
        }
        let left: Vec<Finding> = cases.into_iter().flat_map(|case| case.findings).collect();
        if !is_better {
            mended.extend(left);
            return Ok(StoreReport::new(n_sessions, mended));
        }
        cases = examine(home, env, progress)?.1;
    }
    mended.extend(cases.into_iter().flat_map(|case| case.findings));
    Ok(StoreReport::new(n_sessions, mended))
}
