//! Where a session stands on the disk, and how a path the model wrote becomes a path.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use loci_core::path::{expand_home, is_inside, normalise};
use loci_core::tool::PathEffect;

/// The directories a call is judged and run against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Where relative paths start.
    pub cwd: PathBuf,
    /// The directory the session was started in, symlinks resolved.
    pub project: PathBuf,
    /// Further directories the user added, symlinks resolved.
    pub extra_dirs: Vec<PathBuf>,
    /// The user's home.
    pub home: PathBuf,
}

impl Workspace {
    /// Reads a path as a tool argument: `~` expanded, made absolute, both spellings kept.
    pub fn resolve(&self, text: &str) -> PathEffect {
        let requested = normalise(&self.cwd, &expand_home(&self.home, text));
        let real = real_path(&requested);
        PathEffect { requested, real }
    }

    /// Returns true when the path, by both spellings, lies in one of the session's directories.
    pub fn contains(&self, path: &PathEffect) -> bool {
        self.contains_path(&path.requested) && self.contains_path(&path.real)
    }

    /// Returns true when one spelling of a path lies in one of the session's directories.
    pub fn contains_path(&self, path: &Path) -> bool {
        self.dirs().any(|dir| is_inside(path, dir))
    }

    /// Iterates over the project directory and the added ones.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.project.as_path()).chain(self.extra_dirs.iter().map(PathBuf::as_path))
    }
}

/// How many symlinks are followed on the way to one path, as many as the kernel follows.
const MOST_LINKS: usize = 40;

/// Resolves the symlinks of the longest part of `path` that exists and appends the rest. A dangling symlink
/// leads to where a write through it would land.
///
/// It is written by hand, although `canonicalize` exists: that says nothing about paths that are not there yet, and
/// asking it for one parent after the other looks at every name as often as there are names behind it.
pub fn real_path(path: &Path) -> PathBuf {
    if !path.is_absolute() {
        return path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    }
    let mut links_left = MOST_LINKS;
    let mut real = PathBuf::from("/");
    // Below a name that is not there nothing is looked for.
    let mut is_missing = false;
    let mut ahead = names_reversed(path);
    while let Some(name) = ahead.pop() {
        if name == ".." {
            real.pop();
            is_missing = false;
            continue;
        }
        real.push(name);
        if is_missing {
            continue;
        }
        match std::fs::read_link(&real) {
            Ok(target) if links_left > 0 => {
                links_left -= 1;
                let base = if target.is_absolute() { None } else { real.parent() };
                real = base.unwrap_or(Path::new("/")).to_owned();
                ahead.extend(names_reversed(&target));
            }
            Ok(_) => {}
            Err(error) => is_missing = error.kind() == std::io::ErrorKind::NotFound,
        }
    }
    real
}

/// Returns the names of a path, the first one last; `..` is a name among them.
fn names_reversed(path: &Path) -> Vec<OsString> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().rev().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_keeps_its_requested_and_its_real_spelling() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (project, outside) = (root.join("project"), root.join("outside"));
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, project.join("link")).unwrap();
        std::os::unix::fs::symlink("../outside/new.txt", project.join("dangling")).unwrap();
        std::os::unix::fs::symlink("loop", project.join("loop")).unwrap();
        let place = Workspace {
            cwd: project.clone(),
            project: project.clone(),
            extra_dirs: Vec::new(),
            home: root.join("home"),
        };
        for (text, requested, real, inside) in [
            ("a/../b.txt", project.join("b.txt"), project.join("b.txt"), true),
            ("link/x", project.join("link/x"), outside.join("x"), false),
            ("dangling", project.join("dangling"), outside.join("new.txt"), false),
            ("~/n", root.join("home/n"), root.join("home/n"), false),
            ("../projectx", root.join("projectx"), root.join("projectx"), false),
        ] {
            let path = place.resolve(text);
            assert_eq!((&path.requested, &path.real), (&requested, &real), "{text}");
            assert_eq!(place.contains(&path), inside, "{text}");
        }
        assert_eq!(place.resolve("loop").requested, project.join("loop"));
    }

    #[test]
    fn real_path_is_the_canonical_one_and_goes_on_where_nothing_is_yet() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/file"), "").unwrap();
        for (link, target) in [
            ("a/up", PathBuf::from("../a/b")),
            ("whole", root.join("a/up")),
            ("chain", PathBuf::from("whole")),
            ("nowhere", PathBuf::from("later/../a/./new")),
            ("first", PathBuf::from("second")),
            ("second", PathBuf::from("first")),
            ("through", PathBuf::from("nowhere/deep")),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        for existing in ["a", "a/b", "a/file", "a/up", "whole", "chain", "chain/.."] {
            let path = root.join(existing);
            assert_eq!(real_path(&path), path.canonicalize().unwrap(), "{existing}");
        }
        for (missing, real) in [
            ("a/new/deeper", "a/new/deeper"),
            ("chain/new/deeper", "a/b/new/deeper"),
            ("nowhere", "a/new"),
            ("through/x", "a/new/deep/x"),
            ("a/file/below", "a/file/below"),
        ] {
            assert_eq!(real_path(&root.join(missing)), root.join(real), "{missing}");
        }
        assert!(real_path(&root.join("first/x")).ends_with("x"), "links that lead in a circle end");
        assert_eq!(real_path(Path::new("/")), Path::new("/"));
    }
}
