//! What a working tree has changed since the last commit, told without starting git where it is plain to see.
//!
//! The answer is that of `git status --short`, to the letter, or none: whatever has more to it (something staged, a name
//! that git would quote, content that is kept otherwise than it lies there, a repository inside, rules beyond the usual)
//! is git's to tell. A process less is a quarter of the time until the first request leaves.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::Gitignore;
use loci_stdx::{Env, read_regular, read_regular_to_string};
use sha1::{Digest, Sha1};

use super::config::{StatusConfig, user_dir};
use super::index_file::{EntryKind, EntryStat, IndexEntry, IndexFile};
use super::objects::ObjectId;
use crate::history::tree_history::rules::{RULES, rules_in};

/// How many names of the tree are looked at, and how many bytes of files are read; what takes more is git's, which has
/// threads for it.
const MOST_NAMES: usize = 2_000;
const MOST_READ: u64 = 1024 * 1024;

/// A working tree whose top is known.
pub(super) struct WorkingTree<'a> {
    /// The directory that has `.git`.
    pub(super) top: &'a Path,
    pub(super) git_dir: &'a Path,
    /// The tree of the last commit.
    pub(super) head_tree: ObjectId,
    pub(super) config: StatusConfig,
}

impl WorkingTree<'_> {
    /// Returns what `git status --short` would say at the top.
    pub(super) fn status(&self, env: &Env) -> Option<String> {
        if !self.is_ours() {
            return None;
        }
        let index = IndexFile::read(self.git_dir)?;
        // Anything else is staged, or may be.
        index.tree.filter(|tree| *tree == self.head_tree)?;
        let mut look = Look { tree: self, env, index: &index, n_names: 0, n_read: 0, outer: OnceCell::new() };
        let mut lines = look.changed()?;
        let mut unknown = Vec::new();
        look.unknown_in(self.top, "", &mut Vec::new(), &mut unknown)?;
        unknown.sort();
        lines.extend(unknown.into_iter().map(|path| format!("?? {path}")));
        let is_quoted = |line: &String| !line[3..].bytes().all(is_plain_in_names);
        (!lines.iter().any(is_quoted)).then(|| lines.join("\n"))
    }

    /// Tells whether git would agree to look: a repository of somebody else is not looked into, and what is no plain
    /// directory has its own rules.
    fn is_ours(&self) -> bool {
        let user = rustix::process::geteuid().as_raw();
        [self.top, self.git_dir].iter().all(|path| {
            fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user)
        })
    }
}

/// What git writes as it is; other names are quoted.
fn is_plain_in_names(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

/// One look at a working tree.
struct Look<'a> {
    tree: &'a WorkingTree<'a>,
    env: &'a Env,
    index: &'a IndexFile,
    n_names: usize,
    n_read: u64,
    /// The rules for the whole tree, which are read when a file is met that is not tracked.
    outer: OnceCell<Option<Vec<Gitignore>>>,
}

/// The rules of a directory, which are read when they are asked for.
struct DirRules {
    dir: PathBuf,
    rules: OnceCell<Option<Option<Gitignore>>>,
}

impl Look<'_> {
    /// Returns a line for each tracked file that is not as it was.
    fn changed(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        let mut dirs = HashSet::new();
        for entry in &self.index.entries {
            self.count_name()?;
            if !self.has_plain_parents(&entry.path, &mut dirs)? {
                lines.push(format!(" D {}", entry.path));
                continue;
            }
            let path = self.tree.top.join(&entry.path);
            match fs::symlink_metadata(&path) {
                Ok(metadata) if self.is_unchanged(entry, &path, &metadata)? => {}
                Ok(_) => lines.push(format!(" M {}", entry.path)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    lines.push(format!(" D {}", entry.path));
                }
                Err(_) => return None,
            }
        }
        Some(lines)
    }

    /// Tells whether all directories above a tracked file are there. One that is something else now is git's to judge.
    fn has_plain_parents<'p>(&self, path: &'p str, known: &mut HashSet<&'p str>) -> Option<bool> {
        for (at, _) in path.match_indices('/') {
            let dir = &path[..at];
            if known.contains(dir) {
                continue;
            }
            match fs::symlink_metadata(self.tree.top.join(dir)) {
                Ok(metadata) if metadata.is_dir() => known.insert(dir),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(false),
                _ => return None,
            };
        }
        Some(true)
    }

    /// Tells whether a tracked file is as it was: by what the disk says, and by its content where that is in doubt.
    fn is_unchanged(&mut self, entry: &IndexEntry, path: &Path, metadata: &Metadata) -> Option<bool> {
        let is_executable = metadata.mode() & 0o100 != 0;
        let kind = match metadata.file_type() {
            it if it.is_file() => EntryKind::File { is_executable },
            it if it.is_symlink() => EntryKind::Symlink,
            _ => return None,
        };
        match (kind, entry.kind) {
            (EntryKind::File { .. }, EntryKind::File { .. }) if kind != entry.kind => return Some(false),
            // A change of kind has a letter of its own.
            _ if kind != entry.kind => return None,
            _ => {}
        }
        if EntryStat::of(metadata) == entry.stat && !entry.stat.is_racy(self.index.written) {
            return Some(true);
        }
        self.n_read += metadata.len();
        if self.n_read > MOST_READ || self.may_be_converted(&entry.path) {
            return None;
        }
        let content = match kind {
            EntryKind::Symlink => fs::read_link(path).ok()?.into_os_string().into_encoded_bytes(),
            EntryKind::File { .. } => read_regular(path).ok()?,
        };
        Some(blob_id(&content) == entry.id)
    }

    /// Tells whether git may keep a file otherwise than it lies there: some setting or attribute could say so.
    fn may_be_converted(&self, path: &str) -> bool {
        let dirs = std::iter::once("").chain(path.match_indices('/').map(|(at, _)| &path[..at]));
        let own = dirs.map(|dir| self.tree.top.join(dir).join(".gitattributes"));
        let outer = [
            self.tree.git_dir.join("info/attributes"),
            user_dir(self.env).join("attributes"),
            PathBuf::from("/etc/gitattributes"),
            PathBuf::from("/usr/local/etc/gitattributes"),
            PathBuf::from("/opt/homebrew/etc/gitattributes"),
        ];
        self.tree.config.may_convert || own.chain(outer).any(|file| fs::symlink_metadata(file).is_ok())
    }

    /// Lists what is not tracked in a directory that has tracked files; `prefix` is its path with a slash at the end.
    fn unknown_in(
        &mut self,
        dir: &Path,
        prefix: &str,
        above: &mut Vec<DirRules>,
        unknown: &mut Vec<String>,
    ) -> Option<()> {
        above.push(DirRules { dir: dir.to_owned(), rules: OnceCell::new() });
        for entry in fs::read_dir(dir).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            if name == ".git" {
                // That of a repository inside.
                if prefix.is_empty() { continue } else { return None }
            }
            self.count_name()?;
            let (kind, path) = (entry.file_type().ok()?, format!("{prefix}{name}"));
            if kind.is_dir() {
                let below = format!("{path}/");
                if self.index.has_below(&below) {
                    // What is ignored as a whole is not looked into.
                    if !self.is_ignored(&entry.path(), true, above)? {
                        self.unknown_in(&entry.path(), &below, above, unknown)?;
                    }
                } else if !self.is_ignored(&entry.path(), true, above)?
                    && self.has_unknown(&entry.path(), above)?
                {
                    unknown.push(below);
                }
            } else if (kind.is_file() || kind.is_symlink())
                && !self.index.has_file(&path)
                && !self.is_ignored(&entry.path(), false, above)?
            {
                unknown.push(path);
            }
        }
        above.pop();
        Some(())
    }

    /// Tells whether a directory without tracked files has one that is not ignored.
    fn has_unknown(&mut self, dir: &Path, above: &mut Vec<DirRules>) -> Option<bool> {
        above.push(DirRules { dir: dir.to_owned(), rules: OnceCell::new() });
        let mut has_unknown = false;
        for entry in fs::read_dir(dir).ok()? {
            let entry = entry.ok()?;
            self.count_name()?;
            let kind = entry.file_type().ok()?;
            if entry.file_name() == ".git" {
                return None;
            }
            let is_shown = kind.is_dir() || kind.is_file() || kind.is_symlink();
            if !is_shown || self.is_ignored(&entry.path(), kind.is_dir(), above)? {
                continue;
            }
            // All of it is looked through, since a repository further in changes what is said.
            has_unknown |= !kind.is_dir() || self.has_unknown(&entry.path(), above)?;
        }
        above.pop();
        Some(has_unknown)
    }

    fn is_ignored(&self, path: &Path, is_dir: bool, above: &[DirRules]) -> Option<bool> {
        for dir in above.iter().rev() {
            let rules = dir.rules.get_or_init(|| plain_rules(&dir.dir, &dir.dir.join(RULES)));
            if let Some(is_ignored) = verdict(rules.as_ref()?.iter(), path, is_dir) {
                return Some(is_ignored);
            }
        }
        let outer = self.outer.get_or_init(|| self.outer_rules());
        Some(verdict(outer.as_ref()?.iter(), path, is_dir).unwrap_or(false))
    }

    /// Reads the rules for the whole tree, the strongest first.
    fn outer_rules(&self) -> Option<Vec<Gitignore>> {
        let own = match self.tree.config.excludes_file.as_deref() {
            None => user_dir(self.env).join("ignore"),
            Some(name) => match name.strip_prefix("~/") {
                Some(rest) => self.env.home.join(rest),
                None => Some(PathBuf::from(name)).filter(|path| path.is_absolute())?,
            },
        };
        let files = [self.tree.git_dir.join("info/exclude"), own];
        let rules: Option<Vec<_>> = files.iter().map(|file| plain_rules(self.tree.top, file)).collect();
        Some(rules?.into_iter().flatten().collect())
    }

    fn count_name(&mut self) -> Option<()> {
        self.n_names += 1;
        (self.n_names <= MOST_NAMES).then_some(())
    }
}

/// Returns what the first rules that know the path say.
fn verdict<'a>(rules: impl Iterator<Item = &'a Gitignore>, path: &Path, is_dir: bool) -> Option<bool> {
    rules.map(|rules| rules.matched(path, is_dir)).find_map(|found| match found {
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
        Match::None => None,
    })
}

/// Reads a file of rules, if there is one; nothing where git may read it otherwise: it follows no symlink, and has its own
/// ideas of escapes, classes and blanks.
fn plain_rules(dir: &Path, file: &Path) -> Option<Option<Gitignore>> {
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(None),
        Ok(metadata) if metadata.is_file() => {}
        _ => return None,
    }
    let text = read_regular_to_string(file).ok()?;
    let is_plain = |line: &str| {
        line.starts_with('#')
            || line.is_ascii() && !line.contains(['\\', '[', ']', '{', '}', ' ', '\t', '\r'])
    };
    text.lines().all(is_plain).then(|| rules_in(dir, file))
}

fn blob_id(content: &[u8]) -> ObjectId {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    ObjectId::new(hash.finalize().into())
}

#[cfg(test)]
mod tests;
