//! Which paths are left out: what git ignores, what belongs to version control, and our own files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The name of rule files.
pub(crate) const RULES: &str = ".gitignore";
/// Names that belong to version control, at any depth.
const VCS_NAMES: [&str; 6] = [".git", ".svn", ".hg", ".bzr", ".jj", ".sl"];

/// Rules that hold for the whole tree.
#[derive(Debug)]
pub(crate) struct TreeRules {
    /// Those above the root and those for all repositories, the strongest first.
    outer: Vec<Gitignore>,
    /// Directories that are never looked into.
    never: Vec<PathBuf>,
}

impl TreeRules {
    /// Reads the rules around `root`: of the repository whose top is `top`, and of the user. `never` is left out
    /// whatever they say.
    pub(crate) fn read(root: &Path, top: Option<(&Path, &Path)>, home: &Path, never: Vec<PathBuf>) -> Self {
        let mut outer = Vec::new();
        if let Some((top, git_dir)) = top {
            let above = root.ancestors().skip(1).take_while(|dir| dir.starts_with(top));
            outer.extend(above.filter_map(|dir| rules_in(dir, &dir.join(RULES))));
            outer.extend(rules_in(top, &git_dir.join("info/exclude")));
        }
        outer.extend(rules_in(root, &home.join(".config/git/ignore")));
        Self { outer, never }
    }

    /// Tells whether a path is left out; `inner` are the rules of the directories above it, the nearest first.
    pub(crate) fn is_left_out<'a>(
        &'a self,
        path: &Path,
        is_dir: bool,
        inner: impl Iterator<Item = &'a Arc<Gitignore>>,
    ) -> bool {
        if self.never.iter().any(|never| never == path) {
            return true;
        }
        for rules in inner.map(Arc::as_ref).chain(&self.outer) {
            match rules.matched(path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// Returns true for a name that belongs to version control.
pub(crate) fn is_vcs(name: &OsStr) -> bool {
    VCS_NAMES.iter().any(|vcs| name == *vcs)
}

/// Reads a file of rules for what lies below `dir`; rules that cannot be read do not count.
pub(crate) fn rules_in(dir: &Path, file: &Path) -> Option<Gitignore> {
    if !file.is_file() {
        return None;
    }
    let mut builder = GitignoreBuilder::new(dir);
    // What is wrong with one rule does not take the others away.
    drop(builder.add(file));
    builder.build().ok().filter(|rules| !rules.is_empty())
}
