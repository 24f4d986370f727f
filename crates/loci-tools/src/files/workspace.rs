//! Where a session stands on the disk, and how a path the model wrote becomes a path.

use std::path::{Path, PathBuf};

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

/// Resolves the symlinks of the longest part of `path` that exists and appends the rest. A dangling symlink
/// leads to where a write through it would land.
pub fn real_path(path: &Path) -> PathBuf {
    real_path_within(path, 40)
}

fn real_path_within(path: &Path, hops: usize) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_path_buf();
    };
    let here = real_path_within(parent, hops).join(name);
    match std::fs::read_link(&here) {
        Ok(target) if hops > 0 => {
            let base = here.parent().unwrap_or(Path::new("/"));
            real_path_within(&normalise(base, &target), hops - 1)
        }
        _ => here,
    }
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
}
