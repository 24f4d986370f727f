//! Paths of a command, resolved on the disk: links followed, globs expanded as the shell would.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use loci_core::path::normalise;
use loci_core::permission::{is_protected, matches_name};
use loci_core::tool::{PathEffect, Removal};
use loci_shell::{ShellPath, ShellRemoval};

use crate::real_path;

/// The most names a glob may stand for.
const MAX_MATCHES: usize = 2_000;

/// Resolves paths; a glob that stands for too much is said to be unknown.
pub(super) fn resolve_all(paths: &[ShellPath], unknown: &mut Vec<String>) -> Vec<PathEffect> {
    let mut found = Vec::new();
    for path in paths {
        match spellings(path) {
            Some(spellings) => found.extend(spellings.iter().flat_map(|path| resolve(path))),
            None => {
                unknown.push(format!("a pattern that stands for too many files: {}", path.path.display()));
            }
        }
    }
    found
}

/// Resolves what would be removed.
pub(super) fn removals(removals: Vec<ShellRemoval>, unknown: &mut Vec<String>) -> Vec<Removal> {
    let mut found = Vec::new();
    for removal in removals {
        let ShellRemoval { text, target } = removal;
        match target {
            None => found.push(Removal { text, target: None }),
            Some(path) => {
                let targets = resolve_all(&[path], unknown);
                found.extend(
                    targets.into_iter().map(|path| Removal { text: text.clone(), target: Some(path) }),
                );
            }
        }
    }
    found
}

/// Returns what is protected right inside a directory, and would go with it.
pub(super) fn protected_in(dir: &PathEffect) -> Vec<PathEffect> {
    let Ok(entries) = std::fs::read_dir(&dir.real) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let children =
        names.map(|name| PathEffect { requested: dir.requested.join(&name), real: dir.real.join(&name) });
    children.filter(|child| is_protected(&child.real)).take(1).collect()
}

/// Resolves one path, by its letters and by following links before `..` as the kernel does.
fn resolve(path: &Path) -> Vec<PathEffect> {
    let requested = normalise(Path::new("/"), path);
    let real = real_path(&requested);
    let mut found = vec![PathEffect { requested: requested.clone(), real: real.clone() }];
    if path.components().any(|part| part == Component::ParentDir) {
        let followed = normalise(Path::new("/"), &real_path(path));
        if followed != real {
            found.push(PathEffect { requested, real: followed });
        }
    }
    found
}

/// Returns a path as it is, or what a glob matches; a glob that matches nothing stands for itself.
fn spellings(path: &ShellPath) -> Option<Vec<PathBuf>> {
    if !path.is_glob {
        return Some(vec![path.path.clone()]);
    }
    let mut found = vec![PathBuf::from("/")];
    for part in path.path.components().skip(1) {
        let name = part.as_os_str().to_string_lossy();
        found = found.into_iter().flat_map(|dir| step(&dir, &name)).take(MAX_MATCHES + 1).collect();
        if found.len() > MAX_MATCHES {
            return None;
        }
    }
    if found.is_empty() {
        found.push(PathBuf::from(unescaped(&path.path.to_string_lossy())));
    }
    Some(found)
}

/// Goes one segment further.
fn step(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let is_glob = pattern.replace("\\*", "").replace("\\?", "").replace("\\[", "").contains(['*', '?', '[']);
    if !is_glob {
        return vec![dir.join(unescaped(pattern))];
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let is_match =
        |name: &str| matches_name(pattern, name) && (pattern.starts_with('.') || !name.starts_with('.'));
    // Shells older than bash 5.2 match these two as well: `.*` leaves the directory.
    let dots = [".", ".."].into_iter().map(OsString::from);
    names.chain(dots).filter(|name| is_match(&name.to_string_lossy())).map(|name| dir.join(name)).collect()
}

fn unescaped(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_find_what_the_shell_would() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for name in ["a.txt", "b.txt", ".env", "[x]"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        for (pattern, expected) in [
            ("*.txt", &["a.txt", "b.txt"][..]),
            ("*", &["[x]", "a.txt", "b.txt"]),
            (".e*", &[".env"]),
            (".*", &["", "..", ".env"]),
            (".?", &[".."]),
            (".[!a]", &[".."]),
            (".[!.]*", &[".env"]),
            ("..?*", &["..?*"]),
            ("[ab].txt", &["a.txt", "b.txt"]),
            ("\\[x\\]*", &["[x]"]),
            ("none*", &["none*"]),
        ] {
            let found = spellings(&ShellPath { path: root.join(pattern), is_glob: true }).unwrap();
            let mut names: Vec<_> =
                found.iter().map(|path| path.strip_prefix(&root).unwrap().to_owned()).collect();
            names.sort();
            assert_eq!(names, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{pattern}");
        }
    }

    #[test]
    fn parent_of_a_symlink_is_resolved_both_ways() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("out/deep")).unwrap();
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::os::unix::fs::symlink(root.join("out/deep"), root.join("in/link")).unwrap();
        let found = resolve(&root.join("in/link/../x"));
        let reals: Vec<_> = found.into_iter().map(|path| path.real).collect();
        assert_eq!(reals, [root.join("in/x"), root.join("out/x")]);
    }
}
