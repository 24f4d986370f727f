//! Appending after every kind of accident.

use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::jsonl::lines;

fn log() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    (dir, path)
}

fn open_private(path: &Path) -> AppendFile {
    AppendFile::open(path, AppendFile::PRIVATE).unwrap()
}

/// Appends each of `appends` to a file that holds `content`.
fn check(content: &str, appends: &[&str], expected: &str) {
    let (_dir, path) = log();
    fs::write(&path, content).unwrap();
    let mut file = open_private(&path);
    for lines in appends {
        assert_eq!(file.append_lines(lines.as_bytes()).unwrap(), Attachment::Kept);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn appended_lines_follow_each_other() {
    check("", &["a\n", "b\nc\n"], "a\nb\nc\n");
    check("a\n", &["b\n"], "a\nb\n");
}

#[test]
fn a_torn_tail_is_ended_first() {
    check("{\"tor", &["b\n", "c\n"], "{\"tor\nb\nc\n");
    check("a\r", &["b\n"], "a\r\nb\n");
}

#[test]
fn a_missing_newline_is_added() {
    check("", &["a", "b"], "a\nb\n");
    check("torn", &["a"], "torn\na\n");
}

#[test]
fn appending_nothing_writes_nothing() {
    check("", &[""], "");
    check("torn", &[""], "torn");
}

#[cfg(unix)]
#[test]
fn new_files_and_directories_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, _) = log();
    let path = dir.path().join("sub/log");
    open_private(&path).append_lines(b"a\n").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&dir.path().join("sub"))), (0o600, 0o700));
}

/// Invariant 4 of `docs/design/session-log.md`.
#[test]
fn another_writer_that_died_within_a_line_costs_only_its_own() {
    let (_dir, path) = log();
    let mut file = open_private(&path);
    file.append_lines(b"a\n").unwrap();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"theirs").unwrap();
    file.append_lines(b"b\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n{\"theirs\nb\n");
}

#[test]
fn a_file_cut_or_emptied_by_others_is_appended_to_as_it_is() {
    let (_dir, path) = log();
    let mut file = open_private(&path);
    file.append_lines(b"first\nsecond\n").unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(8).unwrap();
    file.append_lines(b"third\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "first\nse\nthird\n");
    OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    file.append_lines(b"fourth\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "fourth\n");
}

#[test]
fn syncing_keeps_the_file() {
    let (_dir, path) = log();
    let mut file = open_private(&path);
    file.append_lines(b"a\n").unwrap();
    assert_eq!(file.sync().unwrap(), Attachment::Kept);
    assert_eq!(file.sync().unwrap(), Attachment::Kept);
    assert_eq!(file.path(), path);
}

#[cfg(unix)]
#[test]
fn a_removed_file_is_put_back_with_its_directories() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub/log");
    let mut file = open_private(&path);
    file.append_lines(b"before\n").unwrap();
    fs::remove_dir_all(dir.path().join("sub")).unwrap();
    assert_eq!(file.append_lines(b"kept\n").unwrap(), Attachment::Restored);
    assert_eq!(file.append_lines(b"too\n").unwrap(), Attachment::Kept);
    assert_eq!(fs::read_to_string(&path).unwrap(), "before\nkept\ntoo\n");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no copy is left beside it");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_removed_file_waits_for_a_place_to_be_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub/log");
    let mut file = open_private(&path);
    file.append_lines(b"before\n").unwrap();
    fs::remove_dir_all(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub"), "in the way").unwrap();
    assert!(file.append_lines(b"kept\n").is_err());
    fs::remove_file(dir.path().join("sub")).unwrap();
    assert_eq!(file.append_lines(b"kept\n").unwrap(), Attachment::Restored);
    assert_eq!(fs::read_to_string(&path).unwrap(), "before\nkept\n");
}

#[cfg(unix)]
#[test]
fn a_replaced_file_is_noticed_on_sync() {
    let (dir, path) = log();
    let mut file = open_private(&path);
    file.append_lines(b"old\n").unwrap();
    fs::write(dir.path().join("other"), "torn").unwrap();
    fs::rename(dir.path().join("other"), &path).unwrap();
    assert_eq!(file.sync().unwrap(), Attachment::Renewed);
    file.append_lines(b"new\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "torn\nnew\n");
}

#[test]
fn errors_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let error = AppendFile::open(dir.path(), AppendFile::PRIVATE).unwrap_err();
    assert_eq!(error.to_string(), format!("Failed to open file: `{}`", dir.path().display()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let mut file = AppendFile::open(Path::new("/dev/full"), AppendFile::PRIVATE).unwrap();
    assert!(matches!(file.append_lines(b"a\n"), Err(AppendError::Append { .. })));
}

/// Writes as its script says: so many bytes, or an error.
struct Scripted {
    script: Vec<Result<usize, io::ErrorKind>>,
    written: Vec<u8>,
}

impl Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_bytes = self.script.remove(0)?.min(bytes.len());
        self.written.extend_from_slice(&bytes[..n_bytes]);
        Ok(n_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Invariant 2 of `docs/design/session-log.md`.
#[test]
fn short_writes_are_continued_and_failures_reported() {
    use io::ErrorKind::{Interrupted, StorageFull, WriteZero};
    type Script = Vec<Result<usize, io::ErrorKind>>;
    let cases: [(Script, &str, Result<(), io::ErrorKind>); 5] = [
        (vec![Ok(99)], "line\n", Ok(())),
        (vec![Ok(2), Ok(99)], "line\n", Ok(())),
        (vec![Err(Interrupted), Ok(99)], "line\n", Ok(())),
        (vec![Ok(2), Err(StorageFull)], "li", Err(StorageFull)),
        (vec![Ok(4), Ok(0)], "line", Err(WriteZero)),
    ];
    for (script, written, expected) in cases {
        let mut writer = Scripted { script, written: Vec::new() };
        let result = write_whole(&mut writer, b"line\n").map_err(|error| error.kind());
        assert_eq!((writer.written.as_slice(), result), (written.as_bytes(), expected));
        assert!(writer.script.is_empty());
    }
}

/// Invariant 3 of `docs/design/session-log.md`.
#[test]
fn appends_of_many_handles_do_not_mix() {
    let (_dir, path) = log();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut file = open_private(path);
                for number in 0..50 {
                    let line = format!("{writer} {number} {}\n", "x".repeat(1000));
                    file.append_lines(line.as_bytes()).unwrap();
                }
            });
        }
    });
    let content = fs::read(&path).unwrap();
    let mut next = [0; 4];
    for line in lines(&content) {
        let text = str::from_utf8(line.bytes).unwrap();
        let (writer, rest) = text.split_once(' ').unwrap();
        let writer: usize = writer.parse().unwrap();
        assert_eq!(rest, format!("{} {}", next[writer], "x".repeat(1000)));
        next[writer] += 1;
    }
    assert_eq!(next, [50; 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Invariant 2: after a cut at any byte, every line that was whole and every line appended is there.
    /// Invariant 4 of `docs/design/session-log.md`.
    #[test]
    fn a_cut_at_any_byte_loses_at_most_the_line_it_is_in(
        written in prop::collection::vec("[a-z]{0,6}", 0..6),
        appended in prop::collection::vec("[a-z]{1,6}", 1..4),
    ) {
        let (_dir, path) = log();
        let content: String = written.iter().map(|line| format!("{line}\n")).collect();
        for cut in 0..=content.len() {
            fs::write(&path, &content[..cut]).unwrap();
            let mut file = open_private(&path);
            for line in &appended {
                file.append_lines(line.as_bytes()).unwrap();
            }
            let now = fs::read(&path).unwrap();
            let found: Vec<_> = lines(&now).map(|line| line.bytes.to_vec()).collect();
            // What is torn and the beginning of the next line is completed by it.
            let torn = content[..cut].rsplit('\n').next().unwrap_or_default();
            let is_completed = appended[0].len() > torn.len() && appended[0].starts_with(torn);
            let kept = if is_completed { &content[..cut - torn.len()] } else { &content[..cut] };
            let before = kept.lines().filter(|line| !line.is_empty());
            let expected: Vec<_> =
                before.chain(appended.iter().map(String::as_str)).map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(found, expected);
            prop_assert!(lines(&now).all(|line| line.terminated));
            prop_assert!(now.starts_with(&content.as_bytes()[..cut]));
        }
    }
}

/// A full disk took a part of what was appended; the next append is the same lines and perhaps more.
/// Invariant 4 of `docs/design/session-log.md`.
#[test]
fn torn_beginning_of_what_is_appended_is_completed() {
    let lines = "{\"a\":1}\n{\"b\":22}\n{\"c\":3}\n";
    for n_taken in 1..lines.len() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let taken = &lines[..n_taken];
        std::fs::write(&path, format!("{{\"old\":0}}\n{taken}")).unwrap();
        let mut file = AppendFile::open(&path, AppendFile::PRIVATE).unwrap();
        file.append_lines(lines.as_bytes()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = match (taken.ends_with('\n'), lines[n_taken..].starts_with('\n')) {
            // Whole lines are not looked at: they may have been meant.
            (true, _) => format!("{{\"old\":0}}\n{taken}{lines}"),
            (false, true) => format!("{{\"old\":0}}\n{taken}\n{lines}"),
            (false, false) => format!("{{\"old\":0}}\n{lines}"),
        };
        assert_eq!(text, expected, "{n_taken}");
    }
}

/// Invariant 4 of `docs/design/session-log.md`.
#[test]
fn torn_line_of_somebody_else_is_left_alone() {
    for torn in ["{\"x\":", "{\"a\":1} and much longer than all that is to be appended"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, format!("{{\"b\":2}}\n{torn}")).unwrap();
        let mut file = AppendFile::open(&path, AppendFile::PRIVATE).unwrap();
        file.append_lines(b"{\"a\":1}\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{{\"b\":2}}\n{torn}\n{{\"a\":1}}\n"));
    }
}
