//! Which paths a command may have been refused, guessed from what it printed and held against the policy.
//!
//! A program's words prove nothing, so that everything said here is a "may have been". What is said is ours: of what the
//! command printed only paths are repeated. A command that worked may have been refused something as well: `git branch -d` and
//! `git branch -u` say so and end well, and so does whatever is behind a pipe. Of such a one only lines count that end as
//! programs report the two errors that mounts give.

mod calls;

use std::path::{Path, PathBuf};

use loci_core::path::normalise;

pub(crate) use calls::CallRules;

use crate::plan::{Disk, PathKind};
use crate::policy::{FileRules, PathSettings, WriteRefusal};

/// What programs say of a refusal.
const SIGNS: &[&str] = &[
    "read-only file system",
    "permission denied",
    "erofs",
    "eacces",
    "device or resource busy",
    // A placeholder stands where something was to be made.
    "file exists",
    "not a directory",
    "eexist",
    "enotdir",
];

/// What node says of a directory that it cannot make, when what is above it is not there either.
const CANNOT_MAKE: &str = "enoent: no such file or directory, mkdir '";

/// What they say of what is hidden by leaving it out of its directory: nothing is refused then but reading.
const MISSING: &[&str] = &["no such file or directory", "enoent"];

/// How a line ends that reports an error of a mount.
const MOUNT_ERRORS: &[&str] = &["read-only file system", "device or resource busy"];

/// How else such an error is written, anywhere in a line: by node, python and rust.
const MOUNT_ERROR_CODES: &[&str] =
    &["erofs: ", "ebusy: ", "[errno 30]", "[errno 16]", "(os error 30)", "(os error 16)"];

/// What programs say that want to begin in an empty directory.
const NOT_EMPTY: &[&str] = &["not an empty directory", "is not empty", "directory not empty"];

/// How many refusals are told.
const MOST: usize = 5;

/// How many lines above an error that stands alone may name its path: cargo and others put the cause below.
const LINES_ABOVE: usize = 4;

/// What a command printed.
#[derive(Debug, Clone, Copy)]
pub struct Printed<'a> {
    /// What was run.
    pub command: &'a str,
    /// All of it.
    pub output: &'a str,
    /// Where it started.
    pub cwd: &'a Path,
    /// Whether it failed.
    pub has_failed: bool,
}

impl Printed<'_> {
    /// Tells whether there may be a path to explain; quick, where there is none.
    pub(crate) fn may_tell_of_paths(&self) -> bool {
        self.has_failed || self.output.lines().any(is_mount_error)
    }

    /// Returns what else than paths the command may have been refused, in words.
    pub(crate) fn refused_calls(self, rules: CallRules) -> Vec<String> {
        calls::refused_calls(self, rules)
    }
}

/// What a line may tell of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Reading,
    Writing,
    ReadingOrWriting,
}

fn sign(line: &str, has_failed: bool) -> Option<Sign> {
    if !has_failed {
        return is_mount_error(line).then_some(Sign::Writing);
    }
    let lower = line.to_ascii_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    if calls::is_about_call(&lower) {
        return None;
    }
    if says(SIGNS) || lower.contains(CANNOT_MAKE) {
        Some(Sign::ReadingOrWriting)
    } else {
        says(MISSING).then_some(Sign::Reading)
    }
}

/// Tells whether a line reports what a mount refused.
fn is_mount_error(line: &str) -> bool {
    // Most lines are about something else, and are not copied.
    if !["ystem", "usy", "EROFS", "EBUSY", "rrno", "os error", ", mkdir '"].iter().any(|it| line.contains(it))
    {
        return false;
    }
    let lower = line.trim_end().trim_end_matches('.').to_ascii_lowercase();
    MOUNT_ERRORS.iter().any(|it| lower.ends_with(it))
        || MOUNT_ERROR_CODES.iter().any(|it| lower.contains(it))
        || lower.contains(CANNOT_MAKE)
}

/// Returns what may have been refused, in words, each path once, and by which setting of which file.
pub(crate) fn refused_paths(
    printed: Printed<'_>,
    home: &Path,
    files: &FileRules,
    settings: &PathSettings,
    disk: &dyn Disk,
) -> Vec<String> {
    let Printed { output, cwd, has_failed, .. } = printed;
    let held = Held { home, files, settings, disk };
    let lines: Vec<&str> = output.lines().collect();
    let with_signs = lines.iter().enumerate().filter_map(|(idx, line)| Some((idx, sign(line, has_failed)?)));
    let mut told: Vec<PathBuf> = Vec::new();
    let full = has_failed.then(|| full_directory(output, cwd, files, disk)).flatten();
    let mut words: Vec<String> = full.into_iter().collect();
    for (idx, sign) in with_signs {
        // Of what is copied, moved or linked the last is what was to be made.
        let paths = paths_at(&lines, idx).into_iter().rev().map(|path| normalise(cwd, &path));
        let refused = paths.into_iter().find_map(|path| {
            // What is not there outside either is hidden from nobody.
            let may_be_hidden = sign != Sign::Reading || disk.kind(&path) != PathKind::Missing;
            let may_be_read = sign != Sign::Writing && may_be_hidden;
            let read = may_be_read.then(|| read_refusal(&path, files, settings)).flatten();
            let write = || held.write_refusal(&path).filter(|_| sign != Sign::Reading);
            read.or_else(write).map(|why| (why, path.clone()))
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

/// What a path is held against.
struct Held<'a> {
    home: &'a Path,
    files: &'a FileRules,
    settings: &'a PathSettings,
    disk: &'a dyn Disk,
}

impl Held<'_> {
    fn write_refusal(&self, path: &Path) -> Option<String> {
        let why = self.why_unwritable(path)?;
        Some(format!("writing `{}` may have been refused: {why}", path.display()))
    }

    fn why_unwritable(&self, path: &Path) -> Option<String> {
        let Self { files, settings, disk, .. } = *self;
        if let Some(missing) = held_name(path, files, disk) {
            return Some(format!(
                "`{}` is not there and cannot be made in the sandbox, since what is in it runs outside",
                missing.display()
            ));
        }
        if let Some(root) = self.missing_root(path).map(|root| self.shown(root)) {
            return Some(format!(
                "`{root}` may be written in the sandbox, but not made: it is not there; `mkdir -p {root}` outside, once, would \
                 allow it"
            ));
        }
        match files.write_refusal(path)? {
            WriteRefusal::Outside if is_temporary(path) => Some(
                "it lies outside the session's directories; `$TMPDIR` is for temporary files here".to_owned(),
            ),
            WriteRefusal::Outside => Some(format!(
                "it lies outside the session's directories; `{}` under sandbox.filesystem.allowWrite, or --add-dir, would \
                 allow it",
                self.shown(&self.directory_to_allow(path))
            )),
            WriteRefusal::Shut(rule) => Some(format!(
                "`{}` stays shut in the sandbox{}",
                rule.display(),
                said_by(&rule, settings, &purpose(&rule))
            )),
        }
    }

    /// Returns what settings let be written and is not there: nothing can be mounted on it.
    fn missing_root(&self, path: &Path) -> Option<&PathBuf> {
        let roots = self.settings.allow_write.iter().filter(|it| path.starts_with(it));
        roots.into_iter().find(|it| self.disk.kind(it) == PathKind::Missing)
    }

    /// Returns the directory that somebody would allow: that of a program in the home, otherwise the one that the path is in.
    fn directory_to_allow(&self, path: &Path) -> PathBuf {
        let parent = path.parent().filter(|it| it.parent().is_some()).unwrap_or(path);
        let Ok(below) = path.strip_prefix(self.home) else { return parent.to_owned() };
        let n_names = match below.iter().next().and_then(|it| it.to_str()) {
            Some(".cache" | ".config") => 2,
            Some(".local") => 3,
            _ => 1,
        };
        self.home.join(below.iter().take(n_names).collect::<PathBuf>())
    }

    /// Returns a path as settings write it.
    fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(self.home) {
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

/// Tells whether a path lies where everybody puts what is temporary.
fn is_temporary(path: &Path) -> bool {
    ["/tmp", "/var/tmp"].iter().any(|dir| path.starts_with(dir))
}

/// Says why a name is shut, and for parts of git what that means for what git was told.
fn purpose(rule: &Path) -> String {
    let name = rule.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let more = match name {
        "config" => {
            ": git takes from it which programs it runs. What else git was told may be done all the same (a branch is renamed or \
             deleted, a new one is there), and only what this file says of branches, remotes and settings is as it was; \
             `git -c NAME=VALUE` sets something for one command, and `git push REMOTE BRANCH` needs no upstream"
        }
        "modules" => {
            ": it has hooks and settings of submodules, so that they are added, cloned and updated outside; those that are there \
             can be read and built"
        }
        _ => "",
    };
    format!("since what is in it runs outside{more}")
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

/// Returns what looks like a path in a line, or in the one above that has any where the line is an error of a mount alone.
fn paths_at(lines: &[&str], idx: usize) -> Vec<PathBuf> {
    let (above, line) = (&lines[idx.saturating_sub(LINES_ABOVE)..idx], lines[idx]);
    let own = paths_in(line);
    if !own.is_empty() || !is_mount_error(line) {
        return own;
    }
    above.iter().rev().map(|line| paths_in(line)).find(|paths| !paths.is_empty()).unwrap_or_default()
}

/// Returns what looks like a path in a line: words with a slash, words in quotes, and what stands before the error, as shells
/// write it (`bash: line 1: notes.txt: Read-only file system`, `cannot create notes.txt: …`).
fn paths_in(line: &str) -> Vec<PathBuf> {
    let is_edge = |c: char| c.is_whitespace() || "'\"`‘’(),;=[]<>".contains(c);
    let words = line.split(is_edge).map(|word| word.trim_end_matches([':', '.']));
    let quoted = line.split(['\'', '"', '‘', '’', '`']).skip(1).step_by(2);
    let is_path = |word: &&str| !word.is_empty() && word.len() < 4096 && !word.contains("://");
    let slashed = words.filter(|word| word.contains('/') || word.starts_with('.'));
    let before_error = line.trim_end().rsplit(": ").nth(1).unwrap_or_default();
    let last_word = before_error.rsplit(char::is_whitespace).next().unwrap_or_default();
    let bare = [last_word, before_error].into_iter().filter(|it| !it.contains(['\'', '"', '`', '‘', '’']));
    // Whoever takes the last first takes what is certainly a path first.
    bare.chain(slashed).chain(quoted).filter(is_path).map(PathBuf::from).collect()
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

    /// Returns what a command that failed may have been refused.
    fn refused(
        output: &str,
        cwd: &Path,
        files: &FileRules,
        settings: &PathSettings,
        disk: &dyn Disk,
    ) -> Vec<String> {
        refused_paths(
            Printed { command: "", output, cwd, has_failed: true },
            Path::new("/h"),
            files,
            settings,
            disk,
        )
    }

    #[test]
    fn command_that_worked_is_told_of_what_mounts_refused_it_and_of_nothing_else() {
        let settings = PathSettings::default();
        let files = FileRules::new(&places(), &settings);
        for (line, expected) in [
            ("error: could not write config file .git/config: Device or resource busy", "/h/p/.git/config"),
            ("bash: line 1: /opt/x: Read-only file system", "/opt/x"),
            ("Error: EROFS: read-only file system, open '/opt/y'", "/opt/y"),
            ("OSError: [Errno 30] Read-only file system: '/opt/z'", "/opt/z"),
            ("cannot make `/opt/r`: Read-only file system (os error 30)", "/opt/r"),
            (
                "error: failed to create directory `/opt/c/registry`\n\nCaused by:\n  Read-only file system (os error 30)",
                "/opt/c/registry",
            ),
            ("/opt/x\n1\n2\n3\n4\nRead-only file system (os error 30)", ""),
            // What is read or searched may have such words in it, and what is hidden is often met on the way.
            ("notes.md: a read-only file system is at /opt/x", ""),
            ("cat: /h/.netrc: Permission denied", ""),
            ("cat: /h/.netrc: Read-only file system", "/h/.netrc"),
            ("mkdir: cannot create directory '.idea': File exists", ""),
            ("touch: cannot touch 'src/x': Read-only file system", ""),
            ("bash: line 1: src: Read-only file system", ""),
        ] {
            let printed = Printed { command: "", output: line, cwd: Path::new("/h/p"), has_failed: false };
            let found = refused_paths(printed, Path::new("/h"), &files, &settings, &Repository).join("\n");
            assert_eq!(
                found.contains(&format!("writing `{expected}`")),
                !expected.is_empty(),
                "{line}: {found}"
            );
            assert!(!expected.is_empty() || found.is_empty(), "{line}: {found}");
            assert_eq!(printed.may_tell_of_paths(), line.lines().any(is_mount_error), "{line}");
        }
    }

    #[test]
    fn what_would_allow_a_path_is_named_as_settings_write_it() {
        let settings = PathSettings { allow_write: vec!["/h/.npm".into()], ..PathSettings::default() };
        let files = FileRules::new(&places(), &settings);
        for (line, expected) in [
            ("error: failed to create `/h/.cargo/registry/x`: Read-only file system", "`~/.cargo` under"),
            ("touch: /h/.cache/pip/http/x: Read-only file system", "`~/.cache/pip` under"),
            ("touch: /h/.local/share/nvim/x: Read-only file system", "`~/.local/share/nvim` under"),
            ("touch: /h/.gitconfig: Read-only file system", "`~/.gitconfig` under"),
            ("touch: /opt/a/b: Read-only file system", "`/opt/a` under"),
            ("touch: /tmp/b: Read-only file system", "`$TMPDIR` is for temporary files"),
            ("touch: /new: Read-only file system", "`/new` under"),
            ("Error: ENOENT: no such file or directory, mkdir '/h/.yarn'", "`~/.yarn` under"),
            // Nothing can be mounted on what is not there.
            ("Error: ENOENT: no such file or directory, mkdir '/h/.npm'", "`mkdir -p ~/.npm` outside"),
            ("mkdir: cannot create '/h/.npm/_cacache': Read-only file system", "`mkdir -p ~/.npm` outside"),
        ] {
            let found = refused(line, Path::new("/h/p"), &files, &settings, &Empty).join("\n");
            assert!(found.contains(expected), "{line}: {found}");
        }
        let line = "touch: /h/.npm/x: Read-only file system";
        assert_eq!(refused(line, Path::new("/h/p"), &files, &settings, &Repository), Vec::<String>::new());
    }

    #[test]
    fn what_git_has_done_all_the_same_is_said_of_its_configuration() {
        let settings = PathSettings::default();
        let files = FileRules::new(&places(), &settings);
        for (name, expected) in [
            (".git/config", "a branch is renamed or deleted"),
            (".git/modules/sub/config", "updated outside"),
            (".git/hooks/pre-commit", "since what is in it runs outside"),
        ] {
            let line = format!("error: could not write `{name}`: Read-only file system");
            let found = refused(&line, Path::new("/h/p"), &files, &settings, &Repository).join("\n");
            assert!(found.contains(expected), "{name}: {found}");
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
            let found = refused(&line, Path::new("/h/p"), &files, &settings, disk).join("\n");
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
            let found = refused(line, Path::new(cwd), &files, &settings, disk).join("\n");
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
            let found = refused(line, Path::new("/h/p"), &files, &settings, &Repository).join("\n");
            assert!(found.contains(said), "{line}: {found}");
        }
        for (line, expected) in [
            ("touch: cannot touch '/etc/x': Read-only file system", "/etc/x"),
            ("sh: 1: cannot create ../out: Read-only file system", "/h/out"),
            ("bash: line 1: kept: Read-only file system", "/h/p/kept"),
            ("bash: line 1: a b: Read-only file system", ""),
            ("sh: 1: cannot create kept: Read-only file system", "/h/p/kept"),
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
            // The call is refused, and no setting for paths would help.
            ("permission denied: dial unix /run/docker.sock: socket: operation not permitted", ""),
            ("mount: /mnt: permission denied.", ""),
            ("nothing to see at /etc/x", ""),
            ("cat: /h/hidden/x: No such file or directory", "/h/hidden/x"),
            ("cat: /etc/x: No such file or directory", ""),
        ] {
            let found = refused(line, Path::new("/h/p"), &files, &settings, &Repository).join("\n");
            assert_eq!(found.contains(&format!("`{expected}`")), !expected.is_empty(), "{line}: {found}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{line}: {found}");
        }
        for name in ["/h/hidden/x", "/h/.netrc"] {
            let line = format!("cat: {name}: No such file or directory");
            let found = refused(&line, Path::new("/h/p"), &files, &settings, &Empty);
            assert_eq!(found, Vec::<String>::new(), "it is not there outside either");
        }
        let many: String = (0..50).map(|n| format!("/etc/{n}: Permission denied\n")).collect();
        assert_eq!(refused(&many, Path::new("/h/p"), &files, &settings, &Repository).len(), MOST);
    }
}
