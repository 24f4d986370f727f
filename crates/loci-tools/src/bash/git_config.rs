//! Whether git, run here, could be made to run something else (S-23).
//!
//! `git status` runs what `core.fsmonitor`, `core.hooksPath`, filters and diff drivers name. Those come from the
//! repository's own configuration, so a repository is harmless only if it is the one the session started in and its
//! configuration holds nothing but keys known to name no program.

use std::path::Path;

use loci_stdx::read_regular_to_string;

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
            && !git_dir.join("commondir").exists()
            && !git_dir.join("config.worktree").exists()
            && has_harmless_config(&git_dir.join("config"));
    }
    // No repository: git will say so.
    true
}

fn has_harmless_config(path: &Path) -> bool {
    match read_regular_to_string(path) {
        Ok(config) => is_harmless(&config),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn is_harmless(config: &str) -> bool {
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
        !line.ends_with('\\') && is_harmless_key(&section, &key)
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
            assert_eq!(is_harmless(config), expected, "{config}");
        }
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
