//! Skills that are read beside the rest of a start.
//!
//! Which plugins and skills a run has depends on its settings, but what lies among the user's own skills does not: it is
//! looked at and read from the first moment on. Whoever needs the files in the end reads along, so that no thread waits
//! while another has a hundred files before it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use loci_core::skill::SkillScope;

use super::dir::{SkillFile, SkillsDir};

/// How many files a thread takes at once.
const SHARE: usize = 16;
/// About how much room the definitions of so many take.
const SHARE_BYTES: usize = 64 * 1024;

/// The reading of a directory of the user's skills, under way.
pub struct SkillsPrefetch {
    state: Arc<ReadState>,
    thread: Option<JoinHandle<Vec<(usize, SkillFile)>>>,
}

struct ReadState {
    path: PathBuf,
    dir: OnceLock<Option<SkillsDir>>,
    /// The first entry that nobody has taken.
    next: AtomicUsize,
}

impl SkillsPrefetch {
    /// Begins with a directory; none where there is none.
    pub fn start(path: PathBuf) -> Option<Self> {
        if !path.is_dir() {
            return None;
        }
        let state = Arc::new(ReadState { path, dir: OnceLock::new(), next: AtomicUsize::new(0) });
        let shared = Arc::clone(&state);
        let read = move || {
            let files = shared.read();
            if let Some(dir) = shared.dir() {
                // Known by then, unless nobody has asked yet.
                dir.plugins();
            }
            files
        };
        // Without a thread everything is read when it is wanted.
        Some(Self { state, thread: std::thread::Builder::new().spawn(read).ok() })
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.state.path
    }

    /// Returns the plugins among the skills, as soon as that is known.
    pub(in crate::config) fn plugins(&self) -> &[PathBuf] {
        self.state.dir().map(SkillsDir::plugins).unwrap_or_default()
    }

    /// Reads what is left and returns all files, by name.
    pub(super) fn finish(mut self) -> Vec<SkillFile> {
        let mut mine = self.state.read();
        let others = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(others)) => others,
            // What a lost thread had taken is read again.
            Some(Err(_)) | None => {
                self.state.next.store(0, Ordering::Relaxed);
                mine = self.state.read();
                Vec::new()
            }
        };
        let Some(dir) = self.state.dir() else { return Vec::new() };
        merged(mine, others).filter(|(idx, _)| !dir.is_plugin(*idx)).map(|(_, file)| file).collect()
    }
}

/// Joins what two threads read, each in order.
fn merged<T>(mine: Vec<(usize, T)>, others: Vec<(usize, T)>) -> impl Iterator<Item = (usize, T)> {
    let (mut mine, mut others) = (mine.into_iter().peekable(), others.into_iter().peekable());
    std::iter::from_fn(move || match (mine.peek(), others.peek()) {
        (Some((one, _)), Some((other, _))) if one > other => others.next(),
        (Some(_), _) => mine.next(),
        (None, _) => others.next(),
    })
}

impl Drop for SkillsPrefetch {
    fn drop(&mut self) {
        // What nobody waits for is not read on.
        self.state.next.store(usize::MAX / 2, Ordering::Relaxed);
    }
}

impl ReadState {
    fn dir(&self) -> Option<&SkillsDir> {
        self.dir.get_or_init(|| SkillsDir::open(&self.path)).as_ref()
    }

    /// Reads files until none is left that nobody has taken.
    fn read(&self) -> Vec<(usize, SkillFile)> {
        let Some(dir) = self.dir() else { return Vec::new() };
        let mut files = Vec::with_capacity(dir.len());
        let mut buffer = Vec::new();
        loop {
            let first = self.next.fetch_add(SHARE, Ordering::Relaxed);
            if first >= dir.len() {
                return files;
            }
            // The allocator gives a thread more room page by page; a share at once spares a call for each.
            drop(std::hint::black_box(Vec::<u8>::with_capacity(SHARE_BYTES)));
            let share = first..dir.len().min(first + SHARE);
            let read = |idx| Some((idx, dir.read(idx, SkillScope::User, true, &mut buffer)?));
            files.extend(share.filter_map(read));
        }
    }
}
