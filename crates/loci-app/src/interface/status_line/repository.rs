//! Which repository a directory belongs to, read from its files: no git is run.

use std::fs;
use std::path::{Path, PathBuf};

use loci_stdx::read_regular_to_string;
use serde_json::{Value, json};

/// Returns the name of the linked worktree that a directory lies in.
pub(super) fn worktree_name(dir: &Path) -> Option<String> {
    let administration = administration_of(dir)?;
    let above = administration.parent()?;
    above
        .ends_with("worktrees")
        .then(|| administration.file_name().map(|it| it.to_string_lossy().into_owned()))?
}

/// Returns the branch that is checked out in a directory.
pub(super) fn branch(dir: &Path) -> Option<String> {
    let head = read_regular_to_string(administration_of(dir)?.join("HEAD")).ok()?;
    head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

/// Returns host, owner and name of the remote `origin`.
pub(super) fn origin(dir: &Path) -> Option<Value> {
    let administration = administration_of(dir)?;
    let common = match read_regular_to_string(administration.join("commondir")) {
        Ok(text) => administration.join(text.trim()),
        Err(_) => administration,
    };
    let config = read_regular_to_string(common.join("config")).ok()?;
    let mut lines = config.lines().map(str::trim).skip_while(|line| *line != "[remote \"origin\"]").skip(1);
    let lines = lines.by_ref().take_while(|line| !line.starts_with('['));
    let url = lines
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == "url")?
        .1
        .trim()
        .to_owned();
    let (host, owner, name) = parse_remote(&url)?;
    Some(json!({"host": host, "owner": owner, "name": name}))
}

/// Returns the directory that git keeps its own files in: `.git`, or where a file of that name points.
fn administration_of(dir: &Path) -> Option<PathBuf> {
    let git = dir.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    let text = read_regular_to_string(&git).ok()?;
    let target = text.trim().strip_prefix("gitdir:")?.trim();
    fs::canonicalize(git.parent()?.join(target)).ok()
}

/// Reads the address of a remote; a path on this machine has no host.
fn parse_remote(url: &str) -> Option<(String, String, String)> {
    let (host, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':')?,
    };
    let host = host.rsplit('@').next()?.split(':').next()?;
    let path = path.trim_matches('/');
    let (owner, name) = path.strip_suffix(".git").unwrap_or(path).rsplit_once('/')?;
    let is_whole = !host.is_empty() && !owner.is_empty() && !name.is_empty();
    is_whole.then(|| (host.to_owned(), owner.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_read_in_every_spelling() {
        for (url, expected) in [
            ("https://github.com/acme/tools.git", "github.com acme tools"),
            ("https://user:secret@git.example.com:8443/acme/tools", "git.example.com acme tools"),
            ("git@github.com:acme/tools.git", "github.com acme tools"),
            ("ssh://git@host/group/sub/tools.git", "host group/sub tools"),
            ("file:///srv/tools.git", "-"),
            ("/srv/tools.git", "-"),
            ("https://github.com/tools", "-"),
        ] {
            let read = parse_remote(url)
                .map_or("-".to_owned(), |(host, owner, name)| format!("{host} {owner} {name}"));
            assert_eq!(read, expected, "{url}");
        }
    }

    #[test]
    fn repository_and_worktree_are_read_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("main/.git/worktrees/side")).unwrap();
        fs::create_dir_all(root.join("side/src")).unwrap();
        let config = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@h:o/n.git\n[branch \"x\"]\n\turl = no\n";
        fs::write(root.join("main/.git/config"), config).unwrap();
        fs::write(root.join("main/.git/worktrees/side/commondir"), "../..\n").unwrap();
        fs::write(root.join("side/.git"), format!("gitdir: {}/main/.git/worktrees/side\n", root.display()))
            .unwrap();
        fs::write(root.join("main/.git/HEAD"), "ref: refs/heads/topic/x\n").unwrap();
        fs::write(root.join("main/.git/worktrees/side/HEAD"), "0123abcd\n").unwrap();
        assert_eq!(branch(&root.join("main")).as_deref(), Some("topic/x"));
        assert_eq!(branch(&root.join("side/src")), None, "no branch is checked out");
        let expected = json!({"host": "h", "owner": "o", "name": "n"});
        assert_eq!(origin(&root.join("main")), Some(expected.clone()));
        assert_eq!(origin(&root.join("side/src")), Some(expected));
        assert_eq!(worktree_name(&root.join("side/src")).as_deref(), Some("side"));
        assert_eq!((worktree_name(&root.join("main")), origin(&root)), (None, None));
    }
}
