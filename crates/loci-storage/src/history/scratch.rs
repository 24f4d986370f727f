//! A scratch copy of a project, in which commands may do what they like.
//!
//! Files, directories and links are copied; what git ignores is not, nor is anything that would lead a command out of the
//! copy and back to the project: links to elsewhere, and a `.git` whose repository lies elsewhere. What is left out is
//! named. A project that is too large is refused, because half of one would only mislead.
//!
//! What must stay true:
//! 1. The project is only read, and no link of it is followed.
//! 2. Nothing in the copy is the same file as one of the project.
//! 3. Only the user can enter the copy.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use loci_stdx::{open_regular, read_regular_to_string};

use ignore::gitignore::Gitignore;

use crate::history::tree_history::rules::{RULES, TreeRules, is_vcs, rules_in};
use crate::layout::{SessionTmp, UserTmpError};

/// What the copy is called.
const NAME: &str = "project";

/// How much is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchLimits {
    /// Files and links in all.
    pub files: usize,
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of one file; a larger one is left out.
    pub file_bytes: u64,
}

impl Default for ScratchLimits {
    fn default() -> Self {
        Self { files: 100_000, bytes: 2 << 30, file_bytes: 64 << 20 }
    }
}

/// A copy of a project. It is removed when it is dropped, with all that lies at its place, unless it is kept.
#[derive(Debug)]
pub struct ScratchCopy {
    root: PathBuf,
    /// Everything that lies with it.
    place: PathBuf,
    is_kept: bool,
    /// Files and links that were copied.
    pub n_files: usize,
    /// Their bytes.
    pub n_bytes: u64,
    /// What was left out, and why.
    pub left_out: Vec<(PathBuf, String)>,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The project cannot be read.
    #[error("Failed to read the project: `{}`", path.display())]
    Read {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is too much of it.
    #[error("The project is too large to copy, more than {files} files or {bytes} bytes: `{}`", path.display())]
    TooLarge {
        /// The directory.
        path: PathBuf,
        /// The limit.
        files: usize,
        /// The limit.
        bytes: u64,
    },
    /// The copy cannot be written.
    #[error("Failed to write the copy: `{}`", path.display())]
    Write {
        /// The place.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no place for it.
    #[error(transparent)]
    Place(#[from] UserTmpError),
}

impl ScratchCopy {
    /// Copies a project, symlinks in its own path resolved, to a place that is its own from then on. `home` has the user's
    /// ignore file.
    pub fn copy(
        project: &Path,
        home: &Path,
        tmp: &SessionTmp,
        limits: ScratchLimits,
    ) -> Result<Self, ScratchError> {
        let (place, root) = tmp.create_dir(NAME)?;
        let root = root.canonicalize().map_err(|source| ScratchError::Write { path: root, source })?;
        let scratch = Self { root, place, is_kept: false, n_files: 0, n_bytes: 0, left_out: Vec::new() };
        let rules = TreeRules::read(project, None, home, vec![scratch.root.clone()]);
        let device = fs::metadata(project)
            .map_err(|source| ScratchError::Read { path: project.to_owned(), source })?
            .dev();
        let mut copying = Copying { project, device, rules, limits, scratch };
        copying.directory(Path::new(""), &[])?;
        Ok(copying.scratch)
    }

    /// Returns where it lies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Leaves it where it is.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Removes it now.
    pub fn discard(mut self) -> io::Result<()> {
        self.is_kept = true;
        fs::remove_dir_all(&self.place)
    }
}

impl Drop for ScratchCopy {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nobody is left to tell; the place is one of the temporary directory.
            drop(fs::remove_dir_all(&self.place));
        }
    }
}

/// A copy in the making.
struct Copying<'a> {
    project: &'a Path,
    device: u64,
    rules: TreeRules,
    limits: ScratchLimits,
    scratch: ScratchCopy,
}

impl Copying<'_> {
    /// Copies what lies in a directory below the project; `above` are the rules of those over it, the nearest first.
    fn directory(&mut self, below: &Path, above: &[Arc<Gitignore>]) -> Result<(), ScratchError> {
        let dir = self.project.join(below);
        let own = rules_in(&dir, &dir.join(RULES)).map(Arc::new);
        let rules: Vec<Arc<Gitignore>> = own.into_iter().chain(above.iter().cloned()).collect();
        for (path, metadata) in self.listed(below)? {
            let name = path.file_name().unwrap_or_default();
            if is_vcs(name) {
                self.version_control(&path, &metadata)?;
            } else if self.rules.is_left_out(&self.project.join(&path), metadata.is_dir(), rules.iter()) {
                self.leave_out(path, "git ignores it");
            } else {
                self.entry(&path, &metadata, &rules)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        path: &Path,
        metadata: &Metadata,
        rules: &[Arc<Gitignore>],
    ) -> Result<(), ScratchError> {
        let kind = metadata.file_type();
        if kind.is_dir() && metadata.dev() == self.device {
            self.make_directory(path, metadata)?;
            self.directory(path, rules)
        } else if kind.is_dir() {
            self.leave_out(path.to_owned(), "it is another file system");
            Ok(())
        } else {
            self.leaf(path, metadata)
        }
    }

    /// Copies a file or a link.
    fn leaf(&mut self, path: &Path, metadata: &Metadata) -> Result<(), ScratchError> {
        let (from, to) = (self.project.join(path), self.scratch.root.join(path));
        let kind = metadata.file_type();
        if kind.is_symlink() {
            match fs::read_link(&from) {
                Ok(target) if stays_inside(path, &target) => {
                    self.count(0)?;
                    return std::os::unix::fs::symlink(target, &to)
                        .map_err(|source| ScratchError::Write { path: to, source });
                }
                Ok(_) => self.leave_out(path.to_owned(), "it is a link that leads out of the project"),
                Err(error) => self.leave_out(path.to_owned(), &format!("it cannot be read: {error}")),
            }
        } else if !kind.is_file() {
            self.leave_out(path.to_owned(), "it is neither file nor directory");
        } else if metadata.len() > self.limits.file_bytes {
            self.leave_out(path.to_owned(), "it is too large");
        } else {
            match open_regular(&from) {
                Ok(file) => {
                    self.count(metadata.len())?;
                    copy_file(file, metadata, &to)
                        .map_err(|source| ScratchError::Write { path: to, source })?;
                }
                Err(error) => self.leave_out(path.to_owned(), &format!("it cannot be read: {error}")),
            }
        }
        Ok(())
    }

    /// Copies the repository of the project, if commands in the copy would use that copy alone.
    fn version_control(&mut self, path: &Path, metadata: &Metadata) -> Result<(), ScratchError> {
        let is_own = path == Path::new(".git") && metadata.is_dir();
        let config = read_regular_to_string(self.project.join(path).join("config")).unwrap_or_default();
        if !is_own || config.contains("worktree") {
            self.leave_out(path.to_owned(), "it is version control that leads out of the copy");
            return Ok(());
        }
        self.make_directory(path, metadata)?;
        self.whole(path)
    }

    /// Copies all that lies in a directory, whatever rules say.
    fn whole(&mut self, below: &Path) -> Result<(), ScratchError> {
        for (path, metadata) in self.listed(below)? {
            match metadata.is_dir() {
                true => {
                    self.make_directory(&path, &metadata)?;
                    self.whole(&path)?;
                }
                false => self.leaf(&path, &metadata)?,
            }
        }
        Ok(())
    }

    /// Lists a directory in order; one that cannot be read is left out, unless it is the project.
    fn listed(&mut self, below: &Path) -> Result<Vec<(PathBuf, Metadata)>, ScratchError> {
        let dir = self.project.join(below);
        let listed = fs::read_dir(&dir).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let mut names: Vec<PathBuf> = match listed {
            Ok(entries) => entries.iter().map(|entry| below.join(entry.file_name())).collect(),
            Err(source) if below.as_os_str().is_empty() => {
                return Err(ScratchError::Read { path: dir, source });
            }
            Err(error) => {
                self.leave_out(below.to_owned(), &format!("it cannot be read: {error}"));
                return Ok(Vec::new());
            }
        };
        names.sort();
        // What is gone by now was never there.
        let metadata = |path: PathBuf| {
            fs::symlink_metadata(self.project.join(&path)).ok().map(|metadata| (path, metadata))
        };
        Ok(names.into_iter().filter_map(metadata).collect())
    }

    fn make_directory(&self, path: &Path, metadata: &Metadata) -> Result<(), ScratchError> {
        let to = self.scratch.root.join(path);
        // The copy must be writable while it is made, and when it is removed.
        let made = fs::DirBuilder::new().mode((metadata.mode() & 0o777) | 0o700).create(&to);
        made.map_err(|source| ScratchError::Write { path: to, source })
    }

    fn count(&mut self, n_bytes: u64) -> Result<(), ScratchError> {
        self.scratch.n_files += 1;
        self.scratch.n_bytes += n_bytes;
        let ScratchLimits { files, bytes, .. } = self.limits;
        match self.scratch.n_files > files || self.scratch.n_bytes > bytes {
            true => Err(ScratchError::TooLarge { path: self.project.to_owned(), files, bytes }),
            false => Ok(()),
        }
    }

    fn leave_out(&mut self, path: PathBuf, why: &str) {
        self.scratch.left_out.push((path, why.to_owned()));
    }
}

fn copy_file(mut from: fs::File, metadata: &Metadata, to: &Path) -> io::Result<()> {
    let mut copy = fs::File::create_new(to)?;
    io::copy(&mut from, &mut copy)?;
    copy.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o777))
}

/// Tells whether a link at `path`, below the project, leads to something below it.
fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct World {
        root: tempfile::TempDir,
        project: PathBuf,
    }

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let project = root.path().canonicalize().unwrap().join("project");
            fs::create_dir_all(&project).unwrap();
            Self { root, project }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.project.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn copy(&self, limits: ScratchLimits) -> Result<ScratchCopy, ScratchError> {
            let tmp = SessionTmp::below(self.root.path().join("tmp"));
            ScratchCopy::copy(&self.project, self.root.path(), &tmp, limits)
        }
    }

    /// Everything in a directory, with what links say and files hold.
    fn tree(dir: &Path) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut open = vec![dir.to_owned()];
        while let Some(at) = open.pop() {
            for entry in fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                let metadata = fs::symlink_metadata(&path).unwrap();
                if metadata.is_dir() {
                    open.push(path);
                } else if metadata.is_symlink() {
                    lines.push(format!("{name} -> {}", fs::read_link(path).unwrap().display()));
                } else {
                    lines.push(format!(
                        "{name} {:o} {}",
                        metadata.mode() & 0o777,
                        fs::read_to_string(path).unwrap()
                    ));
                }
            }
        }
        lines.sort();
        lines
    }

    /// Invariant 6 of `docs/design/replay.md`.
    #[test]
    fn scratch_copies_inside_files_and_reports_the_rest() {
        let world = World::new();
        for (path, text) in [
            (".gitignore", "*.log\n/out/\n!keep.log\n"),
            (".git/config", "[core]\n"),
            (".git/objects/ab/cd", "blob"),
            ("a.txt", "a"),
            ("x.log", "ignored"),
            ("keep.log", "kept"),
            ("out/big", "ignored"),
            ("sub/.gitignore", "b.txt\n"),
            ("sub/b.txt", "ignored"),
            ("sub/run.sh", "run"),
            ("vendored/.git/config", "another"),
        ] {
            world.write(path, text);
        }
        fs::set_permissions(world.project.join("sub/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(world.project.join("a.txt"), fs::Permissions::from_mode(0o644)).unwrap();
        symlink("sub/run.sh", world.project.join("inside")).unwrap();
        symlink("../../elsewhere", world.project.join("sub/outside")).unwrap();
        symlink("/etc/passwd", world.project.join("absolute")).unwrap();
        let scratch = world.copy(ScratchLimits::default()).unwrap();
        let files = tree(scratch.root());
        let names: Vec<&str> = files.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(
            names,
            [
                ".git/config",
                ".git/objects/ab/cd",
                ".gitignore",
                "a.txt",
                "inside",
                "keep.log",
                "sub/.gitignore",
                "sub/run.sh"
            ]
        );
        assert!(
            files.contains(&"inside -> sub/run.sh".to_owned())
                && files.contains(&"sub/run.sh 755 run".to_owned())
        );
        let left: Vec<String> =
            scratch.left_out.iter().map(|(path, why)| format!("{}: {why}", path.display())).collect();
        assert_eq!(
            left,
            [
                "absolute: it is a link that leads out of the project",
                "out: git ignores it",
                "sub/b.txt: git ignores it",
                "sub/outside: it is a link that leads out of the project",
                "vendored/.git: it is version control that leads out of the copy",
                "x.log: git ignores it",
            ]
        );
        assert_eq!(scratch.n_files, 8);
        assert_eq!(fs::metadata(scratch.root()).unwrap().mode() & 0o777, 0o700);
        let root = scratch.root().to_owned();
        drop(scratch);
        assert!(!root.exists());
    }

    #[test]
    fn scratch_leaves_out_a_git_dir_that_points_elsewhere() {
        for (path, text) in [(".git", "gitdir: /elsewhere\n"), (".git/config", "[core]\n\tworktree = /x\n")] {
            let world = World::new();
            world.write(path, text);
            world.write("a.txt", "a");
            let scratch = world.copy(ScratchLimits::default()).unwrap();
            assert!(!scratch.root().join(".git").exists());
            assert_eq!(scratch.left_out.len(), 1, "{:?}", scratch.left_out);
        }
    }

    #[test]
    fn scratch_limits_hold_and_are_reported() {
        let world = World::new();
        world.write("a", "12345");
        world.write("b", "123456789");
        let limits = ScratchLimits { files: 2, bytes: 14, file_bytes: 9 };
        assert_eq!(world.copy(limits).unwrap().n_bytes, 14);
        let smaller = world.copy(ScratchLimits { file_bytes: 8, ..limits }).unwrap();
        assert_eq!(smaller.left_out, [(PathBuf::from("b"), "it is too large".to_owned())]);
        drop(smaller);
        for limits in [ScratchLimits { files: 1, ..limits }, ScratchLimits { bytes: 13, ..limits }] {
            let error = world.copy(limits).unwrap_err();
            assert!(matches!(error, ScratchError::TooLarge { .. }), "{error}");
        }
        assert!(!world.root.path().join("tmp/session").exists(), "half a copy is removed");
    }

    #[test]
    fn scratch_copy_inside_the_project_is_not_copied() {
        let world = World::new();
        world.write("a", "1");
        let tmp = SessionTmp::below(world.project.join("tmp"));
        let mut scratch =
            ScratchCopy::copy(&world.project, world.root.path(), &tmp, ScratchLimits::default()).unwrap();
        assert_eq!(scratch.n_files, 1);
        scratch.keep();
        let root = scratch.root().to_owned();
        drop(scratch);
        assert!(root.join("a").exists(), "it was to be kept");
    }

    #[test]
    fn scratch_tells_inner_links_from_links_that_lead_out() {
        for (path, target, expected) in [
            ("l", "a", true),
            ("l", "./a/../b", true),
            ("l", "..", false),
            ("l", "/a", false),
            ("d/l", "../a", true),
            ("d/l", "../../a", false),
        ] {
            assert_eq!(stays_inside(Path::new(path), Path::new(target)), expected, "{path} -> {target}");
        }
    }
}
