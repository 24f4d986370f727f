//! Looking for what is wrong in the session store, and mending it without losing a byte.
//!
//! [`examine_store`] looks and changes nothing. What it finds are cases: findings that belong together, and the one
//! cure for them, as a value. [`repair_store`] performs the cures, looks again, and goes on until nothing is left that
//! can be cured. `docs/design/doctor.md` has the decisions and the invariants.
//!
//! 1. What is taken away or written anew is kept first, under `<config home>/loci/aside/`.
//! 2. A session that another process works on is not touched.
//! 3. Whatever moment a repair ends in, the next one goes on from there.

mod aside;
mod companions;
mod cure;
mod derived;
mod finding;
mod half_done;
mod hands;
mod leases;
mod leftovers;
mod modes;
mod perform;
mod project_dir;
mod references;
mod store;
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
use cure::{Case, Cure};
pub use finding::{Finding, FindingKind, Outcome};
use hands::Hands;
use perform::Surgery;
use store::Store;

/// How often the store is looked at again after something was mended.
const MOST_ROUNDS: usize = 6;
/// How many sessions a glance reads, and how many bytes of them at most.
const GLANCED: usize = 20;
const GLANCED_BYTES: u64 = 32 * 1024 * 1024;
/// How long another repair is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an examination or a repair came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckUp {
    /// How many sessions there are.
    pub n_sessions: usize,
    /// Of how many of them every line was read.
    pub n_read: usize,
    /// What was found, by file.
    pub findings: Vec<Finding>,
}

impl CheckUp {
    /// What came of reading all sessions.
    fn of(n_sessions: usize, findings: Vec<Finding>) -> Self {
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

/// Looks at everything in the session store and changes nothing.
pub fn examine_store(home: &ConfigHome, env: &Env) -> Result<CheckUp, DoctorError> {
    let (n_sessions, cases) = examine(home, env)?;
    Ok(CheckUp::of(n_sessions, cases.into_iter().flat_map(|case| case.findings).collect()))
}

/// Reads the newest sessions, no more than a moment allows, and looks for what was begun and not ended; of the others only
/// who may use them is looked at. It changes nothing, and finds nothing that [`examine_store`] would not.
pub fn glance_at_store(home: &ConfigHome, env: &Env) -> Result<CheckUp, DoctorError> {
    let store = Store::look(home, env)?;
    let newest = store.newest(GLANCED, GLANCED_BYTES);
    let mut cases = transcripts::cases(&store, &newest);
    cases.extend(store.unlisted_cases());
    cases.extend(half_done::quick_cases(&store));
    cases.extend(leases::cases(&store));
    cases.extend(modes::cases(&store));
    let findings = cases.into_iter().flat_map(|case| case.findings).collect();
    Ok(CheckUp { n_read: newest.len(), ..CheckUp::of(store.places.len(), findings) })
}

/// Mends what can be mended, and says what was done and what was not.
pub fn repair_store(home: &ConfigHome, env: &Env) -> Result<CheckUp, DoctorError> {
    repair_with(home, env, &Hands::steady())
}

fn examine(home: &ConfigHome, env: &Env) -> Result<(usize, Vec<Case>), DoctorError> {
    let store = Store::look(home, env)?;
    let mut cases = transcripts::cases(&store, &store.places);
    cases.extend(store.unlisted_cases());
    cases.extend(companions::cases(&store));
    cases.extend(half_done::cases(&store));
    cases.extend(leases::cases(&store));
    cases.extend(modes::cases(&store));
    cases.extend(modes::own_cases(&store));
    cases.extend(leftovers::cases(&store));
    cases.extend(derived::cases(&store));
    // Those of one file stay in the order they were found: what is inside is mended before it moves.
    cases.sort_by_key(Case::file);
    Ok((store.places.len(), cases))
}

/// Returns the sessions that something comes back to: what they miss may be among it, and must not be in its way.
fn sessions_to_complete(cases: &[Case]) -> HashSet<SessionId> {
    let comes_back = |case: &&Case| matches!(case.cure, Cure::BringBack { .. });
    cases.iter().filter(comes_back).filter_map(Case::session).collect()
}

fn repair_with(home: &ConfigHome, env: &Env, hands: &Hands) -> Result<CheckUp, DoctorError> {
    // Where there is nothing, nothing is made either.
    let (n_sessions, mut cases) = examine(home, env)?;
    if cases.is_empty() {
        return Ok(CheckUp::of(n_sessions, Vec::new()));
    }
    let _lock = FileLock::acquire(&home.loci_dir().join("doctor.lock"), PATIENCE)?;
    let surgery = Surgery::new(home, env, hands);
    let mut mended = Vec::new();
    for _ in 0..MOST_ROUNDS {
        let mut is_better = false;
        let coming = sessions_to_complete(&cases);
        for case in &mut cases {
            if matches!(case.cure, Cure::Write { .. })
                && case.session().is_some_and(|it| coming.contains(&it))
            {
                case.set(&Outcome::Left("what belongs to the session has to come back first".to_owned()));
                continue;
            }
            match surgery.perform(&case.cure, case.session().as_ref()) {
                Ok(done) => {
                    is_better = true;
                    mended.extend(case.findings.drain(..).map(|it| it.with(Outcome::Mended(done.clone()))));
                }
                Err(why) => case.set(&Outcome::Left(why)),
            }
        }
        let left: Vec<Finding> = cases.into_iter().flat_map(|case| case.findings).collect();
        if !is_better {
            mended.extend(left);
            return Ok(CheckUp::of(n_sessions, mended));
        }
        cases = examine(home, env)?.1;
    }
    mended.extend(cases.into_iter().flat_map(|case| case.findings));
    Ok(CheckUp::of(n_sessions, mended))
}
