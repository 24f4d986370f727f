//! Whether git, run here, could be made to run something else (S-23).
//!
//! `git status` runs what `core.fsmonitor`, `core.hooksPath`, filters and diff drivers name. Those come from the
//! repository's own configuration, so a repository is harmless only if it is the one the session started in and its
//! configuration holds nothing but keys known to name no program.

use std::path::Path;

use loci_core::git_index::{GitIndexExtension, SHA1_LEN, SHA256_LEN, read_git_index};
use loci_stdx::{read_regular, read_regular_to_string};

use crate::Workspace;

/// Sections and keys that only describe; `*` stands for every key. All in lower case.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "abbrev",
            "untrackedcache",
            "whitespace",
        ],
    ),
    ("remote", &["url", "pushurl", "fetch", "push", "prune", "tagopt", "gh-resolved", "mirror"]),
    ("branch", &["*"]),
    ("user", &["name", "email", "signingkey", "useconfigonly"]),
    ("commit", &["gpgsign"]),
    ("init", &["defaultbranch"]),
    ("push", &["default", "autosetupremote", "followtags"]),
    ("pull", &["rebase", "ff"]),
    ("fetch", &["prune", "prunetags"]),
    ("submodule", &["url", "active", "branch"]),
    ("gc", &["auto"]),
    ("color", &["*"]),
    ("advice", &["*"]),
    ("extensions", &["objectformat", "refstorage"]),
];

/// Returns true when git run in `place.cwd` does no more than its command says.
///
/// Git looks for its repository upwards from where it stands. Where it is not certain what it would take for one, the
/// answer is no; past what it would not take for one the search goes on, as its own does.
pub(crate) fn runs_no_programs(place: &Workspace) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (cwd, project) = (real(&place.cwd), real(&place.project));
    for dir in cwd.ancestors() {
        // With this file a directory may be a repository itself, whatever else lies in it: `commondir` says where its
        // objects, references and configuration are.
        if dir.join("HEAD").symlink_metadata().is_ok() {
            return false;
        }
        let git_dir = dir.join(".git");
        match git_dir.symlink_metadata() {
            Err(error) if is_absent(&error) => continue,
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) | Err(_) => return false,
        }
        if !project.starts_with(dir) || !is_harmless_repository(&git_dir, dir, 0) {
            return false;
        }
        if is_surely_repository(&git_dir) {
            return true;
        }
    }
    // No repository: git will say so.
    true
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Tells whether git takes a directory named `.git` for a repository, so that it looks no further.
fn is_surely_repository(git_dir: &Path) -> bool {
    let is_entered = |name: &str| git_dir.join(name).join(".").metadata().is_ok();
    let head = git_dir.join("HEAD");
    let is_plain = head.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let text = read_regular_to_string(&head).ok().filter(|_| is_plain);
    let names_commit = text.is_some_and(|text| match text.strip_prefix("ref: ") {
        Some(name) => name.starts_with("refs/"),
        None => {
            let id = text.trim_end();
            matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
    });
    names_commit && is_entered("objects") && is_entered("refs")
}

/// How deep repositories inside repositories are looked at.
const MOST_LEVELS: usize = 4;

/// Judges a repository and those inside it, into which git looks, too: `depth` says how far inside this one is.
fn is_harmless_repository(git_dir: &Path, tree: &Path, depth: usize) -> bool {
    // Git writes its index anew when it has looked at files, and tells this hook.
    let hook = git_dir.join("hooks/post-index-change");
    let is_plain = depth <= MOST_LEVELS
        && ["commondir", "config.worktree"].iter().all(|name| git_dir.join(name).symlink_metadata().is_err())
        && hook.symlink_metadata().is_err();
    if !is_plain {
        return false;
    }
    let id_len = match read_regular_to_string(git_dir.join("config")) {
        Ok(config) => harmless_config(&config, depth > 0),
        Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(SHA1_LEN),
    };
    id_len.is_some_and(|id_len| has_harmless_submodules(git_dir, tree, id_len, depth))
}

/// Judges the repositories that the index names, as far as they are there.
fn has_harmless_submodules(git_dir: &Path, tree: &Path, id_len: usize, depth: usize) -> bool {
    let index = match read_regular(git_dir.join("index")) {
        Ok(index) => index,
        Err(error) => return error.kind() == std::io::ErrorKind::NotFound,
    };
    let Some(submodules) = submodules(&index, id_len) else { return false };
    submodules.iter().all(|path| {
        let tree = tree.join(path);
        let own = tree.join(".git");
        match own.symlink_metadata() {
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            Ok(metadata) if metadata.is_dir() => is_harmless_repository(&own, &tree, depth + 1),
            Ok(metadata) if metadata.is_file() => {
                let target = read_regular_to_string(&own).ok();
                let target = target.as_deref().and_then(|text| text.trim_end().strip_prefix("gitdir: "));
                target.is_some_and(|target| is_harmless_repository(&tree.join(target), &tree, depth + 1))
            }
            Ok(_) => false,
        }
    })
}

/// Returns the paths of the submodules that an index has; `None` where it cannot be read, or does not name all of them itself.
///
/// With a table of offsets (`IEOT`, `EOIE`, written where `index.threads` is set) git reads entries and extensions from where the table
/// says, which need not be those that stand one after the other.
fn submodules(index: &[u8], id_len: usize) -> Option<Vec<String>> {
    let has_offsets = |signature: &[u8]| memchr::memmem::find(index, signature).is_some();
    if has_offsets(b"IEOT") || has_offsets(b"EOIE") {
        return None;
    }
    let mut paths = Vec::new();
    let extensions = read_git_index(index, id_len, |entry| {
        if entry.is_submodule() {
            paths.push(String::from_utf8(entry.path.to_owned()).ok()?);
        }
        Some(())
    })?;
    let is_whole = !extensions.iter().any(GitIndexExtension::is_required);
    is_whole.then_some(paths)
}

/// Returns how long ids are in a repository whose configuration names no program; `None` where it may name one.
///
/// A line must be a whole header, a whole setting or a comment. Git itself reads on behind a header, so that a second one,
/// or a setting, may stand in the same line.
fn harmless_config(config: &str, is_inside: bool) -> Option<usize> {
    let mut section = String::new();
    let (mut format, mut version) = (None, None);
    for line in config.lines().map(|line| line.trim_matches([' ', '\t', '\r'])) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            section = section_of(line)?;
            continue;
        }
        let (key, value) = setting(line)?;
        // A submodule says where its files are.
        let is_own_tree = is_inside && section == "core" && key == "worktree";
        if !is_own_tree && !is_harmless_key(&section, &key) {
            return None;
        }
        match (section.as_str(), key.as_str()) {
            ("extensions", "objectformat") if format.is_none() => format = Some(value),
            ("extensions", "objectformat") => return None,
            ("core", "repositoryformatversion") => version = Some(value),
            _ => {}
        }
    }
    match (format, version) {
        (None | Some("sha1"), _) => Some(SHA1_LEN),
        // Of a repository of another version git does not look at it.
        (Some("sha256"), Some("1")) => Some(SHA256_LEN),
        (Some(_), _) => None,
    }
}

/// Returns the section of a line that is a header and nothing else: `[core]`, `[remote "origin"]`.
fn section_of(line: &str) -> Option<String> {
    let header = line.strip_prefix('[')?.strip_suffix(']')?;
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_plain = |text: &str| !text.contains(['"', '\\', '[', ']']);
    let (name, is_whole) = match header.split_once([' ', '\t']) {
        None => (header, true),
        Some((name, rest)) => {
            let rest = rest.trim_start_matches([' ', '\t']);
            let inside = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            (name, inside.is_some_and(is_plain))
        }
    };
    let name = name.to_ascii_lowercase();
    let is_known = HARMLESS.iter().any(|(known, _)| *known == name);
    (is_whole && is_name(&name) && is_known).then_some(name)
}

/// Takes a line with a setting apart; a continued value could hide what follows.
fn setting(line: &str) -> Option<(String, &str)> {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches([' ', '\t']);
    let value = if rest.is_empty() { "" } else { rest.strip_prefix('=')? };
    let is_whole = key.starts_with(|c: char| c.is_ascii_alphabetic()) && !line.ends_with('\\');
    is_whole.then(|| (key.to_ascii_lowercase(), value.trim_matches([' ', '\t'])))
}

fn is_harmless_key(section: &str, key: &str) -> bool {
    let keys = HARMLESS.iter().find(|(name, _)| *name == section).map_or(&[][..], |(_, keys)| *keys);
    keys.contains(&key) || keys.contains(&"*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_described_settings_are_harmless() {
        for (config, expected) in [
            ("", true),
            ("[core]\n\trepositoryformatversion = 0\n\tbare = false\n", true),
            ("[remote \"origin\"]\n\turl = git@host:x\n[branch \"main\"]\n\tremote = origin\n", true),
            ("[core]\n\tfsmonitor = ./evil\n", false),
            ("[CORE]\n\tFSMonitor = ./evil\n", false),
            ("[core]\n\thooksPath = .husky\n", false),
            ("[filter \"x\"]\n\tclean = ./evil\n", false),
            ("[diff \"x\"]\n\ttextconv = ./evil\n", false),
            ("[include]\n\tpath = ../evil\n", false),
            ("[core] fsmonitor = ./evil\n", false),
            ("[core]\n\tabbrev = 7 \\\n", false),
            ("[remote \"x\"]\n\tpromisor = true\n", false),
            ("[alias]\n\tst = !evil\n", false),
            ("fsmonitor = x\n", false),
        ] {
            assert_eq!(harmless_config(config, false).is_some(), expected, "{config}");
        }
    }

    /// Git reads header, header, setting, comment (H2 of the hostile trial).
    #[test]
    fn header_line_with_anything_behind_it_is_not_harmless() {
        for (config, expected) in [
            ("[branch \"x\"][core] fsmonitor = \"touch PWN;false\" ;]", false),
            ("[branch \"x\"][core] fsmonitor = \"touch PWN;false\" #]", false),
            ("[branch \"x\"][diff] external = evil ;]", false),
            ("[branch \"x\"][include] path = evil ;]", false),
            ("[branch] x = 1 ;]", false),
            ("[branch \"x\"] y = \"]", false),
            ("[branch \"x\\\"]\"]", false),
            ("[branch \"x]\"]", false),
            ("[branch.x]", false),
            ("[ branch]", false),
            ("[branch ]", false),
            ("[branch \"x\" ]", false),
            ("[branch \"x\"", false),
            ("[]", false),
            ("[branch \"a/b-c.d e\"]\n\tremote = origin", true),
            ("  [BRANCH\t\"x\"]\r\n\tremote = origin\r\n", true),
            ("[core]\n\tbare\n\tabbrev=7\n", true),
            ("[core]\n\tabbrev[core] = 7\n", false),
            ("[core]\n\tabbrev fsmonitor = 7\n", false),
            ("[core]\n\u{b}abbrev = 7\n", false),
        ] {
            assert_eq!(harmless_config(config, false).is_some(), expected, "{config}");
        }
    }

    /// How long ids are decides where the entries of an index are read.
    #[test]
    fn ids_are_as_long_as_the_repository_says() {
        for (config, expected) in [
            ("", Some(SHA1_LEN)),
            ("# sha256\n[core]\nrepositoryformatversion = 1", Some(SHA1_LEN)),
            ("[branch \"sha256\"]\nremote = sha256", Some(SHA1_LEN)),
            ("[extensions]\nobjectFormat = sha1", Some(SHA1_LEN)),
            ("[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256", Some(SHA256_LEN)),
            ("[core]\nrepositoryformatversion = 0\n[extensions]\nobjectFormat = sha256", None),
            ("[extensions]\nobjectFormat = sha256\nobjectFormat = sha1", None),
            ("[extensions]\nobjectFormat = \"sha256\"", None),
        ] {
            assert_eq!(harmless_config(config, false), expected, "{config}");
        }
    }

    /// With `commondir` objects and references are looked for elsewhere (H1 of the hostile trial).
    #[test]
    fn directory_that_git_takes_for_a_repository_is_not_harmless() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let project = root.join("project");
        let check = |project: &Path, cwd: &Path| {
            let (cwd, project) = (cwd.to_path_buf(), project.to_path_buf());
            runs_no_programs(&Workspace { cwd, project, extra_dirs: Vec::new(), home: root.clone() })
        };
        std::fs::create_dir_all(project.join("pkg")).unwrap();
        git(&project, &["init", "-q"]);
        assert!(check(&project, &project.join("pkg")));
        let evil = [("HEAD", "ref: refs/heads/main"), ("commondir", "c"), ("c/config", "")];
        std::fs::create_dir_all(project.join("pkg/c")).unwrap();
        for (name, text) in evil {
            std::fs::write(project.join("pkg").join(name), text).unwrap();
        }
        assert!(!check(&project, &project.join("pkg")), "one that the session went to");
        assert!(!check(&project.join("pkg"), &project.join("pkg")), "one that it started in");
        assert!(!check(&project, &project.join("pkg/c")), "one above");
        assert!(check(&project, &project), "one below");
        // Git goes on upwards from a `.git` that is none.
        let archive = root.join("archive");
        std::fs::create_dir_all(archive.join("inner/.git")).unwrap();
        std::fs::write(archive.join("HEAD"), "ref: refs/heads/main").unwrap();
        assert!(!check(&archive.join("inner"), &archive.join("inner")), "one above a `.git` that is none");
    }

    /// Makes a repository with one inside it, and returns what git does not run by itself.
    fn git(dir: &Path, args: &[&str]) {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(dir).args(args).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", dir);
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// `git status` runs what a repository inside the repository names, and a hook that is told of the index.
    #[test]
    fn repositories_inside_and_the_hook_of_the_index_are_looked_at() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().canonicalize().unwrap().join("project");
        let inner = project.join("libs/inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(project.join("a.txt"), "a").unwrap();
        for dir in [&inner, &project] {
            git(dir, &["init", "-q", "-b", "main"]);
            git(dir, &["add", "."]);
            git(dir, &["commit", "-q", "--allow-empty", "-m", "x"]);
        }
        let check = || {
            let (project, home) = (project.clone(), project.join("home"));
            runs_no_programs(&Workspace { cwd: project.clone(), project, extra_dirs: Vec::new(), home })
        };
        for version in ["2", "4"] {
            git(&project, &["update-index", "--index-version", version]);
            assert!(check(), "version {version}");
            git(&inner, &["config", "core.fsmonitor", "./evil"]);
            assert!(!check(), "version {version}: of a repository inside");
            git(&inner, &["config", "--unset", "core.fsmonitor"]);
        }
        git(&project, &["-c", "index.threads=2", "update-index", "--force-write-index"]);
        assert!(!check(), "an index whose entries may be read from elsewhere");
        git(&project, &["update-index", "--force-write-index"]);
        assert!(check());
        for dir in [&project, &inner] {
            let hook = dir.join(".git/hooks/post-index-change");
            std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
            std::fs::write(&hook, "#!/bin/sh\n").unwrap();
            assert!(!check(), "{}", hook.display());
            std::fs::remove_file(&hook).unwrap();
        }
        // As `git submodule` has it: a file that says where the repository lies.
        let kept = project.join(".git/modules/inner");
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        std::fs::rename(inner.join(".git"), &kept).unwrap();
        std::fs::write(inner.join(".git"), "gitdir: ../../.git/modules/inner\n").unwrap();
        git(&project, &["--git-dir=.git/modules/inner", "config", "core.worktree", "../../../libs/inner"]);
        assert!(check());
        git(&project, &["--git-dir=.git/modules/inner", "config", "core.fsmonitor", "./evil"]);
        assert!(!check());
        std::fs::write(project.join(".git/index"), "DIRC").unwrap();
        assert!(!check(), "an index that cannot be read");
    }

    #[test]
    fn only_the_repository_of_the_session_is_harmless() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let project = root.join("project");
        for dir in ["sub", "nested/.git", "bare/objects", "bare/deep", "linked", ".git"] {
            std::fs::create_dir_all(project.join(dir)).unwrap();
        }
        std::fs::write(project.join("bare/HEAD"), "").unwrap();
        std::fs::write(project.join("linked/.git"), "gitdir: ../evil").unwrap();
        let check = |cwd: &str| {
            let cwd = project.join(cwd);
            runs_no_programs(&Workspace {
                cwd,
                project: project.clone(),
                extra_dirs: Vec::new(),
                home: root.clone(),
            })
        };
        for (cwd, expected) in [
            ("", true),
            ("sub", true),
            ("nested", false),
            ("bare", false),
            ("bare/deep", false),
            ("linked", false),
        ] {
            assert_eq!(check(cwd), expected, "{cwd}");
        }
        std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
        std::fs::write(project.join(".git/config"), "[core]\n\tfsmonitor = ./evil\n").unwrap();
        assert!(!check("sub"));
    }
}
