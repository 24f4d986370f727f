//! Putting plugins and marketplaces on disk, as other programs find them there.
//!
//! What is copied is looked at first: links that lead out of what is copied are left behind, so are repositories and
//! everything that is neither a file nor a directory. A copy is made beside its place and renamed into it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::plugin::PluginId;
use loci_stdx::{Env, FileLock, WriteOptions, copy_regular, read_regular_to_string, write_atomic};
use serde_json::{Map, Value};

use crate::worktree::git::WorktreeGit;

/// How many files a plugin or a marketplace may have.
const FILE_LIMIT: usize = 20_000;
/// How many bytes.
const BYTE_LIMIT: u64 = 500 << 20;
/// How long another process may hold the files.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a repository is waited for, unless a variable says otherwise.
const GIT_PATIENCE: Duration = Duration::from_secs(120);
/// The variable that says so, in milliseconds.
const GIT_TIMEOUT: &str = "CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS";
/// The variable that keeps repositories of GitHub from being fetched over SSH.
const PREFER_HTTPS: &str = "CLAUDE_CODE_PLUGIN_PREFER_HTTPS";

/// Where a repository is, and which state of it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// Its address.
    pub url: String,
    /// Another address of it, over SSH, for those who can read it that way alone.
    pub ssh_url: Option<String>,
    /// A branch or a tag.
    pub reference: Option<String>,
    /// A commit.
    pub commit: Option<String>,
    /// Directories that alone are wanted; all where none is named.
    pub sparse: Vec<String>,
}

/// Returns how long a repository is waited for.
pub(super) fn git_patience(env: &Env) -> Duration {
    let said = env.vars.non_empty(GIT_TIMEOUT).and_then(|text| text.trim().parse().ok());
    said.filter(|millis| *millis > 0).map_or(GIT_PATIENCE, Duration::from_millis)
}

/// Clones a repository into a directory that is not there yet; returns the commit. None of its hooks, filters or
/// submodules is used, and nobody is asked for a password.
pub fn clone_repository(env: &Env, source: &GitSource, into: &Path) -> Result<String, String> {
    let first = match clone_from(env, source, &source.url, into) {
        Ok(commit) => return Ok(commit),
        Err(why) => why,
    };
    let Some(ssh_url) = source.ssh_url.as_ref().filter(|_| !env.vars.is_truthy(PREFER_HTTPS)) else {
        return Err(first);
    };
    // What a clone that failed left behind would be in the way of the next.
    fs::remove_dir_all(into).unwrap_or_default();
    clone_from(env, source, ssh_url, into).map_err(|why| format!("{first}; over SSH: {why}"))
}

fn clone_from(env: &Env, source: &GitSource, url: &str, into: &Path) -> Result<String, String> {
    let words = source.reference.iter().chain(&source.commit).chain(&source.sparse);
    refuse_odd_address(url, &words.map(String::as_str).collect::<Vec<_>>())?;
    let parent = into.parent().ok_or("there is no place for the copy")?;
    fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    let git = WorktreeGit::new(env, parent);
    let patience = git_patience(env);
    let place = into.display().to_string();
    let mut args = vec!["-c", "protocol.ext.allow=never"];
    // SSH would ask at the terminal, in the middle of what is shown there; whoever has set a command of their own keeps it.
    if git.read(&["config", "--get", "core.sshCommand"]).is_err() {
        args.extend(["-c", "core.sshCommand=ssh -o BatchMode=yes"]);
    }
    args.extend(["clone", "--quiet", "--no-recurse-submodules", "--template="]);
    if source.commit.is_none() {
        args.extend(["--depth", "1"]);
    }
    if let Some(reference) = &source.reference {
        args.extend(["--branch", reference]);
    }
    if !source.sparse.is_empty() {
        args.push("--sparse");
    }
    args.extend(["--", url, &place]);
    git.run_within(&args, patience)?;
    let inside = WorktreeGit::new(env, into);
    if !source.sparse.is_empty() {
        let words = ["sparse-checkout", "set"].into_iter().chain(source.sparse.iter().map(String::as_str));
        inside.run_within(&words.collect::<Vec<_>>(), patience)?;
    }
    if let Some(commit) = &source.commit {
        inside.run_within(&["checkout", "--quiet", "--detach", commit], patience)?;
    }
    inside.read(&["rev-parse", "HEAD"])
}

/// Refuses an address, or a word beside it, that git would take for something else.
pub(super) fn refuse_odd_address(url: &str, words: &[&str]) -> Result<(), String> {
    let is_odd = |text: &str| text.is_empty() || text.starts_with('-') || text.contains(['\0', '\n']);
    match is_odd(url) || words.iter().any(|word| is_odd(word)) || url.starts_with("ext::") {
        true => Err(format!("`{}` is no address of a repository", url.escape_debug())),
        false => Ok(()),
    }
}

/// Copies a directory to a place where nothing is, or where an older copy is, which it replaces. What links inside it lead to
/// is copied when it lies there, too, or in `within`, which the directory may be a part of. Returns what was left behind, and
/// why.
pub fn copy_plugin(from: &Path, to: &Path, within: &Path) -> Result<Vec<String>, String> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| format!("`{}` cannot be opened: {error}", path.display()))
    };
    let (root, within) = (real(from)?, real(within)?);
    let beside = place_beside(to)?;
    let mut copy = Copy { root, within, open: Vec::new(), n_files: 0, n_bytes: 0, left: Vec::new() };
    let copied =
        copy.dir(from, &beside, 32).and_then(|()| replace(&beside, to).map_err(|error| error.to_string()));
    if let Err(error) = copied {
        // What is half there helps nobody; that it stays is no reason to hide the cause.
        fs::remove_dir_all(&beside).unwrap_or_default();
        return Err(error);
    }
    Ok(copy.left)
}

/// Moves a copy to its place, where it replaces an older one. Both lie below one directory.
pub fn move_plugin(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("`{}`: {error}", to.display());
    let beside = place_beside(to)?;
    fs::rename(from, &beside).map_err(failed)?;
    replace(&beside, to).map_err(failed)
}

/// Makes the directory that a copy will lie in; returns a place in it for what is not done yet.
fn place_beside(to: &Path) -> Result<PathBuf, String> {
    let parent = to.parent().ok_or("there is no place for the copy")?;
    fs::create_dir_all(parent).map_err(|error| format!("`{}`: {error}", parent.display()))?;
    let name = to.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(parent.join(format!(".{name}.{}", std::process::id())))
}

/// Puts a directory in the place of another.
fn replace(new: &Path, place: &Path) -> io::Result<()> {
    if place.symlink_metadata().is_ok() {
        let old = new.with_extension("old");
        fs::rename(place, &old)?;
        fs::rename(new, place)?;
        return fs::remove_dir_all(&old);
    }
    fs::rename(new, place)
}

struct Copy {
    /// What is copied, and what it may share files with.
    root: PathBuf,
    within: PathBuf,
    /// The directories that are being copied, one in the other.
    open: Vec<PathBuf>,
    n_files: usize,
    n_bytes: u64,
    left: Vec<String>,
}

impl Copy {
    fn dir(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), String> {
        let failed = |error: io::Error| format!("`{}`: {error}", from.display());
        if depth == 0 {
            return Err(format!("`{}` lies too deep", from.display()));
        }
        fs::create_dir_all(to).map_err(failed)?;
        self.open.push(from.canonicalize().map_err(failed)?);
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() == ".git" {
                continue;
            }
            self.entry(&entry.path(), &to.join(entry.file_name()), depth)?;
        }
        self.open.pop();
        Ok(())
    }

    /// Tells whether something may be copied: nothing of a repository's own files, wherever a link leads.
    fn is_inside(&self, real: &Path) -> bool {
        let below = real.strip_prefix(&self.root).or_else(|_| real.strip_prefix(&self.within));
        below.is_ok_and(|below| !below.iter().any(|part| part == ".git"))
    }

    fn entry(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), String> {
        let failed = |error: io::Error| format!("`{}`: {error}", from.display());
        let real = match from.canonicalize() {
            Ok(real) if self.is_inside(&real) => real,
            _ => {
                self.left.push(format!("`{}` leads out of it and is left behind", from.display()));
                return Ok(());
            }
        };
        let metadata = fs::metadata(&real).map_err(failed)?;
        if metadata.is_dir() {
            if self.open.contains(&real) {
                self.left.push(format!("`{}` leads in a circle and is left behind", from.display()));
                return Ok(());
            }
            return self.dir(from, to, depth - 1);
        }
        if !metadata.is_file() {
            self.left.push(format!("`{}` is no file and is left behind", from.display()));
            return Ok(());
        }
        self.n_files += 1;
        self.n_bytes += metadata.len();
        if self.n_files > FILE_LIMIT || self.n_bytes > BYTE_LIMIT {
            return Err(format!("it has more than {FILE_LIMIT} files or {} MB", BYTE_LIMIT >> 20));
        }
        copy_regular(&real, to).map(drop).map_err(failed)
    }
}

/// Changes `installed_plugins.json` or `known_marketplaces.json`; whatever else is in it stays. One that cannot be read is
/// left as it is.
pub fn edit_plugin_file(
    dir: &Path,
    file: &str,
    edit: impl FnOnce(&mut Map<String, Value>),
) -> Result<(), String> {
    let _lock = FileLock::acquire(&dir.join(".loci-lock"), PATIENCE).map_err(|error| error.to_string())?;
    let path = dir.join(file);
    let text = match read_regular_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "{}".to_owned(),
        Err(error) => return Err(format!("`{}` cannot be read: {error}", path.display())),
    };
    let value =
        serde_json::from_str(&text).map_err(|error| format!("`{}` is no JSON: {error}", path.display()))?;
    let Value::Object(mut fields) = value else { return Err(format!("`{}` is no object", path.display())) };
    edit(&mut fields);
    let text = serde_json::to_string_pretty(&fields).map_err(|error| error.to_string())?;
    write_atomic(&path, text.as_bytes(), &WriteOptions::private().creating_parents())
        .map_err(|error| error.to_string())
}

/// Returns where the copy of a version of a plugin lies.
pub fn cache_place(dir: &Path, id: &PluginId, version: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let version: String = version.chars().map(plain).take(64).collect();
    let version = version.trim_start_matches('.');
    let version = if version.is_empty() { "unknown" } else { version };
    dir.join("cache").join(&id.marketplace).join(&id.name).join(version)
}
