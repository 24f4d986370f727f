//! Which paths a failed command may have been refused, guessed from what it printed and held against the policy.
//!
//! A program's words prove nothing, so that everything said here is a "may have been". What is said is ours: of what the
//! command printed only paths are repeated.

use std::path::{Path, PathBuf};

use loci_core::path::normalise;

use crate::plan::{Disk, PathKind};
use crate::policy::{FileRules, PathSettings, WriteRefusal};

/// What programs say of a refusal.
const SIGNS: &[&str] = &[
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "erofs",
    "eacces",
    "eperm",
    "device or resource busy",
    // A placeholder stands where something was to be made.
    "file exists",
    "not a directory",
    "eexist",
    "enotdir",
];

/// What they say of what is hidden by leaving it out of its directory: nothing is refused then but reading.
const MISSING: &[&str] = &["no such file or directory", "enoent"];

/// What programs say that want to begin in an empty directory.
const NOT_EMPTY: &[&str] = &["not an empty directory", "is not empty", "directory not empty"];

/// How many refusals are told.
const MOST: usize = 5;

/// Returns what may have been refused, in words, each path once, and by which setting of which file.
pub(crate) fn refused_paths(
    output: &str,
    cwd: &Path,
    files: &FileRules,
    settings: &PathSettings,
    disk: &dyn Disk,
) -> Vec<String> {
    let lines = output.lines().filter_map(|line| {
        let lower = line.to_ascii_lowercase();
        let says = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
        let is_write = says(SIGNS);
        (is_write || says(MISSING)).then_some((line, is_write))
    });
    let mut told: Vec<PathBuf> = Vec::new();
    let mut words: Vec<String> = full_directory(output, cwd, files, disk).into_iter().collect();
    for (line, may_be_write) in lines {
        // Of what is copied, moved or linked the last is what was to be made.
        let paths = paths_in(line).into_iter().rev().map(|path| normalise(cwd, &path));
        let refused = paths.into_iter().find_map(|path| {
            let write = || may_be_write.then(|| write_refusal(&path, files, settings, disk)).flatten();
            read_refusal(&path, files, settings).or_else(write).map(|why| (why, path.clone()))
        });
        if let Some((why, path)) = refused.filter(|(_, path)| !told.contains(path) && words.len() < MOST) {
            words.push(why);
            told.push(path);
        }
    }
    words
}

/// Explains that an empty directory of the session is not empty to a command: placeholders lie in it.
fn full_directory(output: &str, cwd: &Path, files: &FileRules, disk: &dyn Disk) -> Option<String> {
    let says_so = |line: &&str| NOT_EMPTY.iter().any(|sign| line.to_ascii_lowercase().contains(sign));
    let paths = output.lines().filter(says_so).flat_map(paths_in).map(|path| normalise(cwd, &path));
    let mut is_empty_root = paths.filter(|path| {
        files.roots.contains(path) && disk.kind(path) == PathKind::Dir && disk.names(path).is_empty()
    });
    let root = is_empty_root.next()?;
    Some(format!(
        "`{}` is empty, but not while a command runs in the sandbox: names that stay shut are held in it. What wants an empty \
         directory works in one below; in place of `git clone URL .`, `git init && git pull URL` works here",
        root.display()
    ))
}

fn read_refusal(path: &Path, files: &FileRules, settings: &PathSettings) -> Option<String> {
    let rule = files.read_refusal(path)?;
    Some(format!(
        "`{}` may have been refused: `{}` cannot be read in the sandbox{}; sandbox.filesystem.allowRead would allow it",
        path.display(),
        rule.display(),
        said_by(rule, settings, "as one of the credentials that are hidden unless settings show them")
    ))
}

fn write_refusal(path: &Path, files: &FileRules, settings: &PathSettings, disk: &dyn Disk) -> Option<String> {
    let shown = path.display();
    if let Some(missing) = held_name(path, files, disk) {
        return Some(format!(
            "writing `{shown}` may have been refused: `{}` is not there and cannot be made in the sandbox, since what is in \
             it runs outside",
            missing.display()
        ));
    }
    match files.write_refusal(path)? {
        WriteRefusal::Outside => Some(format!(
            "writing `{shown}` may have been refused: it lies outside the session's directories; \
             sandbox.filesystem.allowWrite or --add-dir would allow it"
        )),
        WriteRefusal::Shut(rule) => Some(format!(
            "writing `{shown}` may have been refused: `{}` stays shut in the sandbox{}",
            rule.display(),
            said_by(&rule, settings, "since what is in it runs outside")
        )),
    }
}

/// Says which setting has a rule, or what else it is there for.
fn said_by(rule: &Path, settings: &PathSettings, otherwise: &str) -> String {
    match settings.source(rule) {
        Some(source) => format!(" by {source}"),
        None => format!(", {otherwise}"),
    }
}

/// Returns the missing directory on the way to something shut that a path lies in: it was held while the command ran.
fn held_name(path: &Path, files: &FileRules, disk: &dyn Disk) -> Option<PathBuf> {
    let on_the_way = files.shut.iter().filter_map(|shut| {
        let root = files.roots.iter().find(|root| shut.starts_with(root) && *root != shut)?;
        let parents: Vec<&Path> =
            shut.ancestors().skip(1).take_while(|it| *it != root && it.starts_with(root)).collect();
        // A `.git` at the top of a root can be made.
        let is_held = |it: &&Path| !(it.ends_with(".git") && it.parent() == Some(root.as_path()));
        parents.into_iter().rev().filter(is_held).find(|it| disk.kind(it) == PathKind::Missing)
    });
    on_the_way.into_iter().find(|missing| path.starts_with(missing)).map(Path::to_owned)
}

/// Returns what looks like a path in a line: words with a slash, and words in quotes.
fn paths_in(line: &str) -> Vec<PathBuf> {
    let is_edge = |c: char| c.is_whitespace() || "'\"`‘’(),;=[]<>".contains(c);
    let words = line.split(is_edge).map(|word| word.trim_end_matches([':', '.']));
    let quoted = line.split(['\'', '"', '‘', '’', '`']).skip(1).step_by(2);
    let is_path = |word: &&str| !word.is_empty() && word.len() < 4096 && !word.contains("://");
    let slashed = words.filter(|word| word.contains('/') || word.starts_with('.'));
    slashed.chain(quoted).filter(is_path).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{PathSource, SessionPlaces};

    fn places() -> SessionPlaces {
        SessionPlaces {
            dirs: vec!["/h/p".into()],
            scratch: "/t/s".into(),
            home: "/h".into(),
            config_home: "/h/.claude".into(),
            ..SessionPlaces::default()
        }
    }

    /// A disk on which everything is a directory.
    struct Repository;

    impl Disk for Repository {
        fn kind(&self, _: &Path) -> PathKind {
            PathKind::Dir
        }

        fn names(&self, _: &Path) -> Vec<std::ffi::OsString> {
            Vec::new()
        }
    }

    /// One on which nothing is.
    struct Empty;

    impl Disk for Empty {
        fn kind(&self, _: &Path) -> PathKind {
            PathKind::Missing
        }

        fn names(&self, _: &Path) -> Vec<std::ffi::OsString> {
            Vec::new()
        }
    }

    #[test]
    fn missing_directory_that_was_held_is_named() {
        let settings = PathSettings { deny_write: vec!["/h/p/kept/a".into()], ..PathSettings::default() };
        let files = FileRules::new(&places(), &settings);
        for (name, disk, expected) in [
            ("kept/b", &Empty as &dyn Disk, "`/h/p/kept` is not there"),
            ("kept/b", &Repository, "`/usr/t/description`"),
            // A repository can be made.
            (".git/b", &Empty, "`/usr/t/description`"),
        ] {
            let line =
                format!("fatal: cannot copy '/usr/t/description' to '/h/p/{name}': Read-only file system");
            let found = refused_paths(&line, Path::new("/h/p"), &files, &settings, disk).join("\n");
            assert!(found.contains(expected), "{name}: {found}");
        }
    }

    #[test]
    fn directory_that_is_empty_but_for_placeholders_is_explained() {
        let settings = PathSettings::default();
        let files = FileRules::new(&places(), &settings);
        for (line, cwd, disk, expected) in [
            (
                "fatal: destination path '.' already exists and is not an empty directory.",
                "/h/p",
                &Repository as &dyn Disk,
                true,
            ),
            (
                "fatal: destination path '/h/p' already exists and is not an empty directory.",
                "/h/p/a",
                &Repository,
                true,
            ),
            (
                "fatal: destination path 'a' already exists and is not an empty directory.",
                "/h/p",
                &Repository,
                false,
            ),
            (
                "fatal: destination path '.' already exists and is not an empty directory.",
                "/h/p",
                &Empty,
                false,
            ),
            ("nothing is said of '.'", "/h/p", &Repository, false),
        ] {
            let found = refused_paths(line, Path::new(cwd), &files, &settings, disk).join("\n");
            assert_eq!(found.contains("`/h/p` is empty"), expected, "{line}: {found}");
        }
    }

    #[test]
    fn paths_beside_a_refusal_are_held_against_the_policy() {
        let settings = PathSettings {
            deny_write: vec!["/h/p/kept".into()],
            deny_read: vec!["/h/hidden".into()],
            sources: vec![
                PathSource {
                    path: "/h/p/kept".into(),
                    text: "`sandbox.filesystem.denyWrite` in s.json:3".into(),
                },
                PathSource { path: "/h/hidden".into(), text: "`Read(~/hidden)` in s.json:7".into() },
            ],
            ..PathSettings::default()
        };
        let files = FileRules::new(&places(), &settings);
        for (line, said) in [
            (
                "cp: cannot create '/h/p/kept/x': Read-only file system",
                "by `sandbox.filesystem.denyWrite` in s.json:3",
            ),
            ("cat: /h/hidden/x: Permission denied", "by `Read(~/hidden)` in s.json:7"),
            ("cat: /h/.netrc: Permission denied", "as one of the credentials"),
        ] {
            let found = refused_paths(line, Path::new("/h/p"), &files, &settings, &Repository).join("\n");
            assert!(found.contains(said), "{line}: {found}");
        }
        for (line, expected) in [
            ("touch: cannot touch '/etc/x': Read-only file system", "/etc/x"),
            ("sh: 1: cannot create ../out: Read-only file system", "/h/out"),
            ("cat: /h/.aws/credentials: Permission denied", "/h/.aws/credentials"),
            ("error: could not lock config file .git/config: Device or resource busy", "/h/p/.git/config"),
            ("Error: EROFS: read-only file system, open '/opt/y'", "/opt/y"),
            ("mkdir: cannot create directory ‘.vscode’: File exists", "/h/p/.vscode"),
            ("sh: 1: cannot create .idea/x.xml: Not a directory", "/h/p/.idea/x.xml"),
            (
                "fatal: cannot copy '/usr/t/description' to '/h/p/.git/config': Read-only file system",
                "/h/p/.git/config",
            ),
            ("mv: cannot move '/etc/x' to './x': Read-only file system", "/etc/x"),
            ("ln: failed to create symbolic link '/opt/a b' -> 'src/b': Read-only file system", "/opt/a b"),
            ("mkdir: cannot create directory ‘src’: File exists", ""),
            ("/h/p/src/x: Permission denied", ""),
            ("nothing to see at /etc/x", ""),
            ("cat: /h/hidden/x: No such file or directory", "/h/hidden/x"),
            ("cat: /etc/x: No such file or directory", ""),
        ] {
            let found = refused_paths(line, Path::new("/h/p"), &files, &settings, &Repository).join("\n");
            assert_eq!(found.contains(&format!("`{expected}`")), !expected.is_empty(), "{line}: {found}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{line}: {found}");
        }
        let many: String = (0..50).map(|n| format!("/etc/{n}: Permission denied\n")).collect();
        assert_eq!(refused_paths(&many, Path::new("/h/p"), &files, &settings, &Repository).len(), MOST);
    }
}
