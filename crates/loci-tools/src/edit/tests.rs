use std::os::unix::fs::{PermissionsExt, symlink};

use expect_test::{Expect, expect};
use loci_core::tool::ToolContent;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::read::Read;
use crate::testing::TestHost;
use crate::write::Write;

fn text_of(outcome: &ToolOutcome) -> String {
    match &outcome.content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(_) => panic!("blocks"),
    }
}

async fn read(host: &TestHost, path: &Path) {
    assert!(!host.call(&Read::default(), json!({"file_path": path})).await.is_failure());
}

async fn edit(host: &TestHost, path: impl AsRef<Path>, old: &str, new: &str) -> ToolOutcome {
    let input = json!({"file_path": path.as_ref(), "old_string": old, "new_string": new});
    host.call(&Edit::default(), input).await
}

/// Reads a file, edits it, and compares the file's bytes afterwards and what the model is told.
async fn check(before: &[u8], old: &str, new: &str, after: &[u8], says: Expect) {
    let host = TestHost::new();
    let path = host.write("file", before);
    read(&host, &path).await;
    let outcome = edit(&host, &path, old, new).await;
    assert_eq!(std::fs::read(&path).unwrap().escape_ascii().to_string(), after.escape_ascii().to_string());
    says.assert_eq(&text_of(&outcome).replace(&path.display().to_string(), "/file"));
    assert_eq!(outcome.is_failure(), before == after);
}

#[tokio::test]
async fn the_piece_is_replaced_and_shown() {
    check(
        b"one\ntwo\nthree\n",
        "two",
        "2\n2.5",
        b"one\n2\n2.5\nthree\n",
        expect![[r#"
            Updated `/file`. The changed lines are now:
            1	one
            2	2
            3	2.5
            4	three"#]],
    )
    .await;
}

/// What Read shows escaped is found, and written as it stands in the file.
#[tokio::test]
async fn elements_of_ours_are_replaced_as_they_were_shown() {
    check(
        b"a <system-reminder> b\n",
        "a &lt;system-reminder> b",
        "&lt;system-reminder> c",
        b"<system-reminder> c\n",
        expect![[r#"
            Updated `/file`. The changed lines are now:
            1	<system-reminder> c"#]],
    )
    .await;
}

#[tokio::test]
async fn the_structured_result_is_that_of_the_format() {
    let host = TestHost::new();
    let path = host.write("code.txt", "v = 1\n");
    read(&host, &path).await;
    let outcome = edit(&host, &path, "v = 1", "v = 2").await;
    assert_eq!(
        outcome.structured,
        json!({"filePath": path, "oldString": "v = 1", "newString": "v = 2", "originalFile": "v = 1\n",
            "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
            "lines": ["-v = 1", "+v = 2"]}], "userModified": false, "replaceAll": false})
    );
    assert_eq!(*host.checkpoints.lock().unwrap(), [path]);
}

#[tokio::test]
async fn old_string_that_does_not_match_once_is_refused_with_help() {
    check(
        b"a b\na b\n",
        "a b",
        "x",
        b"a b\na b\n",
        expect![
            "<tool_use_error>old_string occurs 2 times in `/file` (lines 1, 2). To change one of them, give more of the text around it; to change them all, set replace_all.</tool_use_error>"
        ],
    )
    .await;
    check(
        b"\tindented\n",
        "    indented",
        "x",
        b"\tindented\n",
        expect![
            "<tool_use_error>old_string was not found in `/file`. With other white space it would be at line 1: copy indentation, spaces and line breaks exactly as Read shows them there.</tool_use_error>"
        ],
    )
    .await;
    check(
        b"same\n",
        "same",
        "same",
        b"same\n",
        expect![
            "<tool_use_error>Nothing to change: old_string and new_string are the same.</tool_use_error>"
        ],
    )
    .await;
    check(
        b"full\n",
        "",
        "x",
        b"full\n",
        expect![
            "<tool_use_error>`/file` already exists and is not empty, so an empty old_string does not say what to replace. Give the text to replace, or use Write to replace all of it.</tool_use_error>"
        ],
    )
    .await;
}

#[tokio::test]
async fn every_place_is_replaced_on_request() {
    let host = TestHost::new();
    let path = host.write("a", "x\ny\nx\n");
    read(&host, &path).await;
    let input = json!({"file_path": path, "old_string": "x", "new_string": "z", "replace_all": "true"});
    let outcome = host.call(&Edit::default(), input).await;
    assert!(text_of(&outcome).contains("in 2 places"), "{}", text_of(&outcome));
    assert_eq!(outcome.structured["replaceAll"], true);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "z\ny\nz\n");
}

#[tokio::test]
async fn line_endings_and_encoding_are_kept() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    for (name, before, old, new, after) in [
        ("crlf", b"a\r\nb\r\nc\r\n".to_vec(), "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n".to_vec()),
        ("end of line", b"a\r\nb\r\n".to_vec(), "a\n", "x\n", b"x\r\nb\r\n".to_vec()),
        ("line joined", b"a\r\nb\r\n".to_vec(), "\nb", "b", b"ab\r\n".to_vec()),
        ("mixed", b"a\r\nb\nc\nd\n".to_vec(), "c", "x\ny", b"a\r\nb\nx\ny\nd\n".to_vec()),
        ("crlf asked for", b"a\nb\n".to_vec(), "a\r\nb", "x", b"x\n".to_vec()),
        ("carriage return meant", b"a\nb\n".to_vec(), "b", "x\r\ny", b"a\nx\r\ny\n".to_vec()),
        ("bom", b"\xef\xbb\xbfa\n".to_vec(), "a", "ü", "\u{feff}ü\n".as_bytes().to_vec()),
        ("utf16", utf16("\u{feff}a\r\nb"), "a\nb", "ü\n€", utf16("\u{feff}ü\r\n€")),
        (
            "latin",
            b"M\xfcnchen ist sch\xf6n und gro\xdf".to_vec(),
            "groß",
            "größer",
            b"M\xfcnchen ist sch\xf6n und gr\xf6\xdfer".to_vec(),
        ),
    ] {
        let host = TestHost::new();
        let path = host.write("file", before);
        read(&host, &path).await;
        let outcome = edit(&host, &path, old, new).await;
        assert!(!outcome.is_failure(), "{name}: {}", text_of(&outcome));
        assert_eq!(
            std::fs::read(&path).unwrap().escape_ascii().to_string(),
            after.escape_ascii().to_string(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_character_the_encoding_lacks_is_refused() {
    let host = TestHost::new();
    let path = host.write("latin", b"M\xfcnchen ist sch\xf6n");
    read(&host, &path).await;
    let text = text_of(&edit(&host, &path, "ist", "\u{1f600}").await);
    assert!(text.contains("windows-1252, which has no"), "{text}");
}

#[tokio::test]
async fn an_empty_old_string_makes_a_file() {
    let host = TestHost::new();
    let path = host.project().join("sub/new.txt");
    let outcome = edit(&host, &path, "", "made\n").await;
    assert_eq!(text_of(&outcome), format!("Created `{}`.", path.display()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "made\n");
    assert!(!edit(&host, &path, "made", "changed").await.is_failure(), "it is known");
    let empty = host.write("empty", "");
    assert!(!edit(&host, &empty, "", "filled\n").await.is_failure());
    assert_eq!(std::fs::read_to_string(&empty).unwrap(), "filled\n");
    let missing = edit(&host, "missing", "x", "y").await;
    assert!(text_of(&missing).starts_with("File does not exist. Note: your current working directory is"));
}

#[tokio::test]
async fn unread_file_is_not_edited() {
    let host = TestHost::new();
    let unread = host.write("unread", "x");
    let injected = host.write("injected", "x");
    let state = FileState {
        content: "x".to_owned(),
        modified: std::fs::metadata(&injected).unwrap().modified().unwrap(),
        offset: None,
        limit: None,
        is_partial_view: true,
    };
    change::remember(&injected, state, &host);
    let denied = host.write("denied", "x");
    read(&host, &denied).await;
    host.denied.lock().unwrap().push(denied.clone());
    for (path, says) in [
        (&unread, "was not read in this conversation. Read it before changing it.</tool_use_error>"),
        (&injected, "Only a shortened form"),
        (&denied, "forbids reading"),
        (&host.project(), "it is a directory"),
    ] {
        let outcome = edit(&host, path, "x", "y").await;
        assert!(outcome.is_failure() && text_of(&outcome).contains(says), "{}", text_of(&outcome));
    }
    assert!(host.checkpoints.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_part_read_is_enough_to_edit_but_not_to_overwrite() {
    let host = TestHost::new();
    let path = host.write("a", "one\ntwo\nthree\n");
    host.call(&Read::default(), json!({"file_path": path, "offset": 2, "limit": 1})).await;
    assert!(!edit(&host, &path, "two", "2").await.is_failure());
    assert!(!edit(&host, &path, "2", "zwei").await.is_failure(), "and again");
    let write = host.call(&Write::default(), json!({"file_path": path, "content": "x"})).await;
    assert!(text_of(&write).contains("Only a part"), "{}", text_of(&write));
}

#[tokio::test]
async fn edits_and_writes_follow_each_other() {
    let host = TestHost::new();
    let path = host.write("a", "one\n");
    read(&host, &path).await;
    assert!(!edit(&host, &path, "one", "two").await.is_failure());
    let write = host.call(&Write::default(), json!({"file_path": path, "content": "three\n"})).await;
    assert!(!write.is_failure(), "{}", text_of(&write));
    assert!(!edit(&host, &path, "three", "four").await.is_failure());
    let read = host.call(&Read::default(), json!({"file_path": path})).await;
    assert_eq!(text_of(&read), "1\tfour\n2\t", "never the stub: an edit is not a reading");
}

#[tokio::test]
async fn file_changed_on_disk_is_edited_only_at_a_unique_place() {
    for (now, old, replace_all, says) in [
        ("ONE\ntwo\n", "two", false, "had changed on disk since you read it"),
        ("ONE\ntwo\n", "one", false, "not found in `/file`. The file has changed on disk"),
        ("two\ntwo\n", "two", true, "occurs 2 times in `/file`. The file has changed on disk"),
    ] {
        let host = TestHost::new();
        let path = host.write("file", "one\ntwo\n");
        read(&host, &path).await;
        std::fs::write(&path, now).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let input =
            json!({"file_path": path, "old_string": old, "new_string": "x", "replace_all": replace_all});
        let outcome = host.call(&Edit::default(), input).await;
        let text = text_of(&outcome).replace(&path.display().to_string(), "/file");
        assert!(text.contains(says), "{text}");
        let write = host.call(&Write::default(), json!({"file_path": path, "content": "x"})).await;
        assert!(write.is_failure(), "the other changes have not been seen");
    }
}

#[tokio::test]
async fn binary_files_are_not_edited() {
    let host = TestHost::new();
    let path = host.write("file", "text");
    read(&host, &path).await;
    std::fs::write(&path, b"\0\x01text").unwrap();
    let outcome = edit(&host, &path, "text", "x").await;
    assert!(text_of(&outcome).contains("it is not text"), "{}", text_of(&outcome));
}

#[tokio::test]
async fn mode_and_symlinks_are_kept() {
    let host = TestHost::new();
    let target = host.write("target", "old");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755)).unwrap();
    let link = host.project().join("link");
    symlink("target", &link).unwrap();
    read(&host, &target).await;
    assert!(!edit(&host, &link, "old", "new").await.is_failure(), "read by its other name");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn an_interrupted_edit_changes_nothing() {
    let host = TestHost::new();
    let path = host.write("a", "old");
    read(&host, &path).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let input = json!({"file_path": path, "old_string": "old", "new_string": "new"});
    assert!(host.call_with(&Edit::default(), input, cancel).await.is_failure());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
}

#[test]
fn an_edit_reads_and_writes() {
    let host = TestHost::new();
    let path = PathEffect::plain(host.project().join("a"));
    let effects = Edit::default().effects(&json!({"file_path": "a"}), &host.workspace());
    assert_eq!((effects.reads, effects.writes), (vec![path.clone()], vec![path]));
    assert!(!Edit::default().is_concurrency_safe(&json!({})));
}
