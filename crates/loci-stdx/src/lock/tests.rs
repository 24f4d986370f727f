//! Locking among handles, threads and processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// Long enough that only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn lock_has_one_holder_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/lock");
    let lock = FileLock::try_acquire(&path).unwrap().unwrap();
    assert_eq!(lock.path(), path);
    assert!(FileLock::try_acquire(&path).unwrap().is_none());
    drop(lock);
    assert!(FileLock::try_acquire(&path).unwrap().is_some());
    assert!(path.exists(), "the lock file stays");
}

#[cfg(unix)]
#[test]
fn lock_files_and_their_directories_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let lock = FileLock::acquire(&dir.path().join("sub/lock"), PATIENCE).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(lock.path()), mode(&dir.path().join("sub"))), (0o600, 0o700));
}

#[test]
fn waiting_for_a_lock_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let _lock = FileLock::acquire(&path, Duration::ZERO).unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(5)] {
        let error = FileLock::acquire(&path, timeout).unwrap_err();
        assert!(matches!(error, LockError::Timeout { .. }), "{error}");
    }
}

#[test]
fn a_path_that_cannot_be_a_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(FileLock::try_acquire(dir.path()), Err(LockError::Open { .. })));
}

#[cfg(unix)]
#[test]
fn a_removed_lock_file_does_not_admit_two() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let stale = open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!is_at_path(&stale, &path).unwrap());
    let _lock = FileLock::acquire(&path, PATIENCE).unwrap();
    assert!(FileLock::try_acquire(&path).unwrap().is_none());
}

#[test]
fn threads_with_their_own_handles_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let (is_held, n_turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let lock = FileLock::acquire(&path, PATIENCE).unwrap();
                    assert!(!is_held.swap(true, Ordering::SeqCst));
                    n_turns.fetch_add(1, Ordering::SeqCst);
                    assert!(is_held.swap(false, Ordering::SeqCst));
                    drop(lock);
                }
            });
        }
    });
    assert_eq!(n_turns.into_inner(), 20);
}

const CHILD_DIR: &str = "LOCI_STDX_TEST_LOCK_DIR";
const CHILD_TURNS: usize = 10;

/// Runs one test of this binary, in a process of its own, on `dir`.
fn child(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("lock::tests::{test}"), "--nocapture"])
        .env(CHILD_DIR, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The directory to work on, when this process is such a child.
fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD_DIR).map(PathBuf::from)
}

#[test]
fn child_counts() {
    let Some(dir) = child_dir() else { return };
    let counter = dir.join("counter");
    for _ in 0..CHILD_TURNS {
        let _lock = FileLock::acquire(&dir.join("lock"), PATIENCE).unwrap();
        let count: usize = fs::read_to_string(&counter).unwrap().parse().unwrap();
        fs::write(&counter, (count + 1).to_string()).unwrap();
    }
}

#[test]
fn processes_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("counter"), "0").unwrap();
    let children: Vec<_> = (0..4).map(|_| child("child_counts", dir.path())).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert_eq!(fs::read_to_string(dir.path().join("counter")).unwrap(), (4 * CHILD_TURNS).to_string());
}

#[test]
fn child_holds_until_its_parent_is_gone() {
    let Some(dir) = child_dir() else { return };
    let _lock = FileLock::acquire(&dir.join("lock"), PATIENCE).unwrap();
    println!("\nlocked");
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn a_holder_that_dies_lets_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let mut holder = child("child_holds_until_its_parent_is_gone", dir.path());
    let output = BufReader::new(holder.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap() == "locked"));
    assert!(FileLock::try_acquire(&path).unwrap().is_none());
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(FileLock::acquire(&path, PATIENCE).is_ok());
}
