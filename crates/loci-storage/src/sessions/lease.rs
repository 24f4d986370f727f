//! One writer a session: the lease.
//!
//! A lease is the operating system's lock on `<config home>/loci/leases/<session>.lock`, so a dead owner's lease
//! is free at once and silently taken (a program that it was just starting may hold it a moment longer). Beside it
//! `<session>.json` says who holds it, for people: `{"pid", "host", "startTicks", "since"}`. Whoever insists may take a lease over: a lock file of its own takes
//! the place of the owner's; the former owner notices before its next append and stops writing. A lock file that
//! is simply gone, with its directory perhaps, is made anew by the owner; who took the lease over and has left since is
//! known by what it wrote to the session.
//!
//! 1. At most one process holds a session's lease and knows it to be current.
//! 2. A process that has lost its lease appends nothing more to the session.
//! 3. Leases are never needed to read a session.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::ids::SessionId;
use loci_stdx::{
    Env, FileLock, LockError, is_alive, read_regular_to_string, rfc3339_millis, start_ticks, write_private,
};
use serde::{Deserialize, Serialize};

use crate::layout::ConfigHome;

/// How often a lease is tried again when its file is removed or replaced at that very moment.
const ATTEMPTS: usize = 8;
/// How long to wait for a lock file that nobody else knows of.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the lock of an owner that was killed may outlive it: a program that it was about to start holds it until it is
/// one of its own.
const LAST_BREATH: Duration = Duration::from_secs(5);
/// How long somebody may take who is just coming or going: there is no note then.
const PASSAGE: Duration = Duration::from_secs(1);
/// How often it is looked who holds a lock that is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// The right to write a session, until dropped.
#[derive(Debug)]
#[must_use = "the lease is given back when this is dropped"]
pub struct Lease {
    lock: FileLock,
    note: PathBuf,
    owner: LeaseOwner,
}

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseOwner {
    /// The process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// When the process started, in the kernel's ticks; tells a reused pid apart.
    #[serde(default)]
    pub start_ticks: Option<u64>,
    /// Since when it holds the lease.
    pub since: String,
}

impl LeaseOwner {
    /// Tells whether the process is one of this machine and has ended.
    fn is_gone(&self) -> bool {
        let is_other = || self.start_ticks.is_some() && start_ticks(self.pid) != self.start_ticks;
        self.host == host_name() && (!is_alive(self.pid) || is_other())
    }
}

/// Whether a lease still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseStanding {
    /// Nobody has taken it over.
    Held,
    /// Its lock file was gone and was made anew: it was taken away, or somebody took the lease over and has left since.
    MadeAnew,
    /// Somebody else has it.
    Lost,
}

/// Why a lease was not given.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another process writes this session.
    #[error("Session {session} is in use{}", owner.as_ref().map(describe).unwrap_or_default())]
    Held {
        /// The session.
        session: SessionId,
        /// Who holds it, as far as it says.
        owner: Option<LeaseOwner>,
    },
    /// The lease could not be asked for.
    #[error("Failed to take the lease of session {session}")]
    Lock {
        /// The session.
        session: SessionId,
        /// What went wrong.
        source: LockError,
    },
}

fn describe(owner: &LeaseOwner) -> String {
    format!(" by process {} on {} since {}", owner.pid, owner.host, owner.since)
}

impl Lease {
    /// Takes the lease of a session, unless a living process has it.
    pub fn acquire(home: &ConfigHome, session: &SessionId, env: &Env) -> Result<Self, LeaseError> {
        let (lock_path, note) = paths(home, session);
        for _ in 0..ATTEMPTS {
            match FileLock::try_acquire(&lock_path) {
                Ok(Some(lock)) => return Ok(Self::noted(lock, note, env)),
                // Held, or replaced between opening and locking; the latter does not last.
                Ok(None) => {}
                Err(source) => return Err(LeaseError::Lock { session: session.clone(), source }),
            }
        }
        let mut waited = Duration::ZERO;
        loop {
            let owner = read_owner(&note);
            let patience = match &owner {
                None => PASSAGE,
                Some(owner) if owner.is_gone() => LAST_BREATH,
                Some(_) => Duration::ZERO,
            };
            if waited >= patience {
                return Err(LeaseError::Held { session: session.clone(), owner });
            }
            if let Ok(lock) = FileLock::acquire(&lock_path, LOOK) {
                return Ok(Self::noted(lock, note, env));
            }
            waited += LOOK;
        }
    }

    /// Takes the lease from whoever has it.
    pub fn take_over(home: &ConfigHome, session: &SessionId, env: &Env) -> Result<Self, LeaseError> {
        match Self::acquire(home, session, env) {
            Err(LeaseError::Held { .. }) => {}
            result => return result,
        }
        let (lock_path, note) = paths(home, session);
        let failed = |source| LeaseError::Lock { session: session.clone(), source };
        let own = lock_path.with_extension(format!("lock.{}", std::process::id()));
        let lock = FileLock::acquire(&own, PATIENCE).map_err(failed)?;
        let lock = lock.take_place_of(&lock_path).map_err(failed)?;
        Ok(Self::noted(lock, note, env))
    }

    /// Tells whether it still holds; a lock file that is gone is made anew.
    pub(crate) fn standing(&mut self) -> LeaseStanding {
        if self.lock.is_current() {
            return LeaseStanding::Held;
        }
        let path = self.lock.path().to_owned();
        if fs::exists(&path).unwrap_or(true) {
            return LeaseStanding::Lost;
        }
        match FileLock::try_acquire(&path) {
            Ok(Some(lock)) => {
                self.lock = lock;
                self.write_note();
                LeaseStanding::MadeAnew
            }
            Ok(None) => LeaseStanding::Lost,
            // Where no lock file can be made the session cannot be written either, and the log says why.
            Err(_) => LeaseStanding::Held,
        }
    }

    fn noted(lock: FileLock, note: PathBuf, env: &Env) -> Self {
        let pid = std::process::id();
        let owner = LeaseOwner {
            pid,
            host: host_name(),
            start_ticks: start_ticks(pid),
            since: rfc3339_millis(env.clock.now()),
        };
        let lease = Self { lock, note, owner };
        lease.write_note();
        lease
    }

    /// The note is for people; without it the lease still holds.
    fn write_note(&self) {
        let text = serde_json::to_string(&self.owner).unwrap_or_default();
        write_private(&self.note, text.as_bytes()).ok();
    }
}

impl Drop for Lease {
    /// Leaves nothing behind: both files go while the lock is still held. A lease that was taken over leaves the
    /// new owner's files alone.
    fn drop(&mut self) {
        if self.lock.is_current() {
            fs::remove_file(&self.note).ok();
            fs::remove_file(self.lock.path()).ok();
        }
    }
}

fn paths(home: &ConfigHome, session: &SessionId) -> (PathBuf, PathBuf) {
    let dir = home.loci_dir().join("leases");
    (dir.join(format!("{session}.lock")), dir.join(format!("{session}.json")))
}

fn read_owner(note: &Path) -> Option<LeaseOwner> {
    serde_json::from_str(&read_regular_to_string(note).ok()?).ok()
}

fn host_name() -> String {
    let name: io::Result<String> = read_regular_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "this machine".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns who holds the lease of a session, if anybody does.
    fn lease_owner(home: &ConfigHome, session: &SessionId) -> Option<LeaseOwner> {
        let (lock_path, note) = paths(home, session);
        if !lock_path.exists() {
            return None;
        }
        match FileLock::try_acquire(&lock_path) {
            Ok(Some(_free)) => None,
            Ok(None) | Err(_) => {
                read_owner(&note).filter(|owner| owner.host != host_name() || is_alive(owner.pid))
            }
        }
    }

    struct World {
        _dir: tempfile::TempDir,
        env: Env,
        home: ConfigHome,
        session: SessionId,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_test(dir.path(), dir.path());
        let home = ConfigHome::from_env(&env);
        let session = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        World { _dir: dir, env, home, session }
    }

    #[test]
    fn a_second_writer_is_told_who_has_it() {
        let w = world();
        let lease = Lease::acquire(&w.home, &w.session, &w.env).unwrap();
        let error = Lease::acquire(&w.home, &w.session, &w.env).unwrap_err();
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        assert_eq!(lease_owner(&w.home, &w.session).unwrap().pid, std::process::id());
        for path in [lease.note.as_path(), lease.lock.path()] {
            let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).unwrap());
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
        drop(lease);
        assert_eq!(lease_owner(&w.home, &w.session), None);
        assert!(Lease::acquire(&w.home, &w.session, &w.env).is_ok());
    }

    #[test]
    fn a_lease_taken_over_is_lost_to_its_former_owner() {
        let w = world();
        let mut first = Lease::acquire(&w.home, &w.session, &w.env).unwrap();
        assert_eq!(first.standing(), LeaseStanding::Held);
        let mut second = Lease::take_over(&w.home, &w.session, &w.env).unwrap();
        assert_eq!((first.standing(), second.standing()), (LeaseStanding::Lost, LeaseStanding::Held));
        drop(first);
        assert_eq!(
            second.standing(),
            LeaseStanding::Held,
            "the former owner leaves the new one's files alone"
        );
        assert!(Lease::acquire(&w.home, &w.session, &w.env).is_err());
    }

    /// Invariant 12 of `docs/design/session-log.md`.
    #[test]
    fn a_log_that_lost_its_lease_writes_nothing_more_and_says_so_once() {
        let w = world();
        let file = w.env.home.join("s.jsonl");
        let entry = |n: u32| loci_core::entry::Entry::parse(format!(r#"{{"type":"user","n":{n}}}"#)).unwrap();
        let mut log =
            crate::sessions::SessionLog::leased(&file, Lease::acquire(&w.home, &w.session, &w.env).unwrap());
        log.append(&[&entry(1)]).unwrap();
        let _new_owner = Lease::take_over(&w.home, &w.session, &w.env).unwrap();
        assert!(log.append(&[&entry(2)]).is_err());
        let told = format!("{:?}", log.take_warning());
        assert!(told.contains("taken over") && told.contains("fork"), "{told}");
        assert!(log.append(&[&entry(3)]).is_err());
        assert_eq!(log.take_warning(), None);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    }

    /// Invariant 12 of `docs/design/session-log.md`.
    #[test]
    fn a_log_stays_silent_when_who_took_its_lease_over_has_written_and_left() {
        let w = world();
        let file = w.env.home.join("s.jsonl");
        let entry = |n: u32| loci_core::entry::Entry::parse(format!(r#"{{"type":"user","n":{n}}}"#)).unwrap();
        let log = |lease| crate::sessions::SessionLog::leased(&file, lease);
        let mut first = log(Lease::acquire(&w.home, &w.session, &w.env).unwrap());
        first.append(&[&entry(1)]).unwrap();
        drop(log(Lease::take_over(&w.home, &w.session, &w.env).unwrap()));
        first.append(&[&entry(2)]).unwrap();
        log(Lease::take_over(&w.home, &w.session, &w.env).unwrap()).append(&[&entry(3)]).unwrap();
        assert!(first.append(&[&entry(4)]).is_err());
        assert!(format!("{:?}", first.take_warning()).contains("taken over"));
        assert!(first.append(&[&entry(5)]).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
        assert!(Lease::acquire(&w.home, &w.session, &w.env).is_ok(), "it keeps nobody out");
    }

    /// Invariant 12 of `docs/design/session-log.md`.
    #[test]
    fn a_lease_whose_file_vanished_is_made_anew_by_its_owner_alone() {
        let w = world();
        let mut lease = Lease::acquire(&w.home, &w.session, &w.env).unwrap();
        fs::remove_dir_all(w.home.root()).unwrap();
        assert_eq!(lease.standing(), LeaseStanding::MadeAnew);
        assert!(Lease::acquire(&w.home, &w.session, &w.env).is_err(), "it keeps others out again");
        assert_eq!(lease_owner(&w.home, &w.session).unwrap().pid, std::process::id());
        fs::remove_dir_all(w.home.root()).unwrap();
        let _quicker = Lease::acquire(&w.home, &w.session, &w.env).unwrap();
        assert_eq!(lease.standing(), LeaseStanding::Lost);
    }

    #[test]
    fn released_lease_leaves_no_files() {
        let w = world();
        drop(Lease::acquire(&w.home, &w.session, &w.env).unwrap());
        assert_eq!(fs::read_dir(w.home.loci_dir().join("leases")).unwrap().count(), 0);
    }

    /// Invariant 12 of `docs/design/session-log.md`.
    #[test]
    fn lease_of_a_dead_owner_is_free() {
        let w = world();
        let (lock_path, note) = paths(&w.home, &w.session);
        fs::create_dir_all(lock_path.parent().unwrap()).unwrap();
        fs::write(&lock_path, "").unwrap();
        fs::write(&note, r#"{"pid":1,"host":"elsewhere","since":"2026-01-01T00:00:00.000Z"}"#).unwrap();
        assert!(Lease::acquire(&w.home, &w.session, &w.env).is_ok());
    }

    /// A process that is killed while it starts another leaves its lock to that one, for a moment.
    #[test]
    fn lock_that_outlives_its_owner_is_waited_for() {
        let w = world();
        let lease = Lease::acquire(&w.home, &w.session, &w.env).unwrap();
        let (_, note) = paths(&w.home, &w.session);
        let gone = LeaseOwner { pid: u32::MAX - 1, ..lease.owner.clone() };
        fs::write(&note, serde_json::to_string(&gone).unwrap()).unwrap();
        let has_begun = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                has_begun.wait();
                Lease::acquire(&w.home, &w.session, &w.env).map(|_| ())
            });
            has_begun.wait();
            drop(lease);
            second.join().unwrap().unwrap();
        });
    }

    /// Invariant 12 of `docs/design/session-log.md`.
    #[test]
    fn one_of_many_processes_gets_the_lease() {
        let w = world();
        let leases: Vec<Option<Lease>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| Lease::acquire(&w.home, &w.session, &w.env).ok())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(leases.iter().flatten().count(), 1);
    }
}
