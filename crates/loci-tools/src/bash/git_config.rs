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
pub(crate) fn runs_no_programs(place: &Workspace) -> bool {
    for dir in place.cwd.ancestors() {
        if dir.join("HEAD").exists() && dir.join("objects").exists() {
            return false;
        }
        let git_dir = dir.join(".git");
        if git_dir.symlink_metadata().is_err() {
            continue;
        }
        return place.project.starts_with(dir)
            && git_dir.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
            && is_harmless_repository(&git_dir, dir, 0);
    }
    // No repository: git will say so.
    true
}

/// How deep repositories inside repositories are looked at.
const MOST_LEVELS: usize = 4;

/// Judges a repository and those inside it, into which git looks, too: `depth` says how far inside this one is.
fn is_harmless_repository(git_dir: &Path, tree: &Path, depth: usize) -> bool {
    // Git writes its index anew when it has looked at files, and tells this hook.
    let hook = git_dir.join("hooks/post-index-change");
    depth <= MOST_LEVELS
        && !git_dir.join("commondir").exists()
        && !git_dir.join("config.worktree").exists()
        && hook.symlink_metadata().is_err()
        && match read_regular_to_string(git_dir.join("config")) {
            Ok(config) => {
                is_harmless(&config, depth > 0)
                    && has_harmless_submodules(git_dir, tree, config.contains("sha256"), depth)
            }
            Err(error) => {
                error.kind() == std::io::ErrorKind::NotFound
                    && has_harmless_submodules(git_dir, tree, false, depth)
            }
        }
}

/// Judges the repositories that the index names, as far as they are there.
fn has_harmless_submodules(git_dir: &Path, tree: &Path, is_sha256: bool, depth: usize) -> bool {
    let index = match read_regular(git_dir.join("index")) {
        Ok(index) => index,
        Err(error) => return error.kind() == std::io::ErrorKind::NotFound,
    };
    let Some(submodules) = submodules(&index, if is_sha256 { SHA256_LEN } else { SHA1_LEN }) else {
        return false;
    };
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

fn is_harmless(config: &str, is_inside: bool) -> bool {
    let mut section = String::new();
    config.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(header) = header.strip_suffix(']') else { return false };
            section = header.split([' ', '.', '\t', '"']).next().unwrap_or_default().to_ascii_lowercase();
            return HARMLESS.iter().any(|(name, _)| *name == section);
        }
        // A continued value could hide what follows.
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        // A submodule says where its files are.
        let is_own_tree = is_inside && section == "core" && key == "worktree";
        !line.ends_with('\\') && (is_own_tree || is_harmless_key(&section, &key))
    })
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
            assert_eq!(is_harmless(config, false), expected, "{config}");
        }
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
        std::fs::write(project.join(".git/config"), "[core]\n\tfsmonitor = ./evil\n").unwrap();
        assert!(!check("sub"));
    }
}
