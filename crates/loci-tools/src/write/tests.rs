use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use loci_core::tool::{PathEffect, ToolContent};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::read::Read;
use crate::testing::TestHost;

fn text_of(outcome: &ToolOutcome) -> String {
    match &outcome.content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(_) => panic!("blocks"),
    }
}

async fn read(host: &TestHost, path: &Path) {
    assert!(!host.call(&Read::default(), json!({"file_path": path})).await.is_failure());
}

async fn write(host: &TestHost, path: impl AsRef<Path>, content: &str) -> ToolOutcome {
    host.call(&Write::default(), json!({"file_path": path.as_ref(), "content": content})).await
}

#[tokio::test]
async fn a_new_file_is_created_with_its_directories() {
    let host = TestHost::new();
    let path = host.project().join("a/b/made.txt");
    let outcome = write(&host, &path, "made\n").await;
    assert_eq!(text_of(&outcome), format!("Created `{}` (1 line).", path.display()));
    assert_eq!(
        outcome.structured,
        json!({"type": "create", "filePath": path, "content": "made\n", "structuredPatch": [],
            "originalFile": null, "userModified": false})
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "made\n");
    assert_eq!(*host.checkpoints.lock().unwrap(), [path]);
}

#[tokio::test]
async fn a_file_that_was_read_is_replaced() {
    let host = TestHost::new();
    let path = host.write("a.txt", "one\ntwo\n");
    read(&host, &path).await;
    let outcome = write(&host, &path, "one\n2\n").await;
    assert_eq!(text_of(&outcome), format!("Updated `{}`, now 2 lines.", path.display()));
    assert_eq!(
        outcome.structured,
        json!({"type": "update", "filePath": path, "content": "one\n2\n", "originalFile": "one\ntwo\n",
            "userModified": false, "structuredPatch": [{"oldStart": 1, "oldLines": 2, "newStart": 1,
            "newLines": 2, "lines": [" one", "-two", "+2"]}]})
    );
    let again = write(&host, &path, "three\n").await;
    assert!(!again.is_failure(), "what was written is known");
}

#[tokio::test]
async fn unread_file_is_not_overwritten() {
    let host = TestHost::new();
    let unread = host.write("unread", "x");
    let part = host.write("part", "one\ntwo\nthree");
    host.call(&Read::default(), json!({"file_path": part, "limit": 1})).await;
    let changed = host.write("changed", "x");
    read(&host, &changed).await;
    std::fs::write(&changed, "theirs").unwrap();
    let injected = host.write("injected", "x");
    read(&host, &injected).await;
    let state = FileState {
        is_partial_view: true,
        ..change::last_seen(&PathEffect::plain(&injected), &host).unwrap()
    };
    change::remember(&injected, state, &host);
    let denied = host.write("denied", "x");
    read(&host, &denied).await;
    host.denied.lock().unwrap().push(denied.clone());
    for (path, says) in [
        (&unread, "was not read in this conversation"),
        (&part, "Only a part"),
        (&injected, "Only a part"),
        (&changed, "has changed on disk since it was read"),
        (&denied, "forbids reading"),
        (&host.project(), "it is a directory"),
    ] {
        let before = std::fs::read(path).unwrap_or_default();
        let outcome = write(&host, path, "ours").await;
        let text = text_of(&outcome);
        assert!(outcome.is_failure() && text.starts_with("<tool_use_error>"), "{text}");
        assert!(text.contains(says), "{text}");
        assert_eq!(std::fs::read(path).unwrap_or_default(), before);
    }
    assert!(host.checkpoints.lock().unwrap().is_empty());
}

#[tokio::test]
async fn special_files_are_refused() {
    let host = TestHost::new();
    let fifo = host.project().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for (path, says) in [(fifo.as_path(), "a named pipe"), (Path::new("/dev/null"), "a device")] {
        let outcome = write(&host, path, "x").await;
        assert!(outcome.is_failure() && text_of(&outcome).contains(says), "{}", text_of(&outcome));
    }
}

#[tokio::test]
async fn touched_file_with_same_content_is_overwritten() {
    let host = TestHost::new();
    let path = host.write("a.txt", "same\r\n");
    read(&host, &path).await;
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert!(!write(&host, &path, "new").await.is_failure());
}

#[tokio::test]
async fn pages_read_one_by_one_count_as_the_whole() {
    let host = TestHost::new();
    let path = host.write("a.txt", "one\ntwo\nthree");
    for offset in [1, 2, 3] {
        host.call(&Read::default(), json!({"file_path": path, "offset": offset, "limit": 1})).await;
    }
    assert!(!write(&host, &path, "new").await.is_failure());
}

#[tokio::test]
async fn encoding_and_line_endings_are_kept() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (name, before, after) in [
        ("lf", b"a\nb\n".to_vec(), "für\nx\n".as_bytes().to_vec()),
        ("crlf", b"a\r\nb\r\n".to_vec(), "für\r\nx\r\n".as_bytes().to_vec()),
        ("bom", b"\xef\xbb\xbfa\n".to_vec(), "\u{feff}für\nx\n".as_bytes().to_vec()),
        ("utf16", utf16("\u{feff}a\r\n"), utf16("\u{feff}für\r\nx\r\n")),
        ("latin", b"gr\xfc\xdfe aus M\xfcnchen, sch\xf6n\n".to_vec(), b"f\xfcr\nx\n".to_vec()),
    ] {
        let host = TestHost::new();
        let path = host.write(name, before);
        read(&host, &path).await;
        let outcome = write(&host, &path, "für\nx\n").await;
        assert!(!outcome.is_failure(), "{name}: {}", text_of(&outcome));
        assert_eq!(std::fs::read(&path).unwrap(), after, "{name}");
    }
}

#[tokio::test]
async fn a_character_the_encoding_lacks_is_refused() {
    let host = TestHost::new();
    let path = host.write("latin", b"gr\xfc\xdfe aus M\xfcnchen, sch\xf6n\n");
    read(&host, &path).await;
    let text = text_of(&write(&host, &path, "grüße \u{1f600}").await);
    assert!(text.contains("windows-1252") && text.contains("convert the file to UTF-8"), "{text}");
}

#[tokio::test]
async fn mode_and_symlinks_are_kept() {
    let host = TestHost::new();
    let target = host.write("sub/target", "old");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755)).unwrap();
    let link = host.project().join("link");
    symlink("sub/target", &link).unwrap();
    read(&host, &link).await;
    let outcome = write(&host, &link, "new").await;
    assert_eq!(outcome.structured["filePath"], json!(link));
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
    let dangling = host.project().join("dangling");
    symlink("sub/new", &dangling).unwrap();
    assert!(!write(&host, &dangling, "made").await.is_failure());
    assert!(dangling.is_symlink());
    assert_eq!(std::fs::read_to_string(host.project().join("sub/new")).unwrap(), "made");
}

#[tokio::test]
async fn an_interrupted_write_changes_nothing() {
    let host = TestHost::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let path = host.project().join("new");
    let outcome = host.call_with(&Write::default(), json!({"file_path": path, "content": "x"}), cancel).await;
    assert!(outcome.is_failure() && !path.exists());
}

#[tokio::test]
async fn a_failed_write_says_why() {
    let host = TestHost::new();
    let path = host.write("file", "x").join("below");
    let text = text_of(&write(&host, &path, "x").await);
    assert!(text.contains("was not changed") && text.contains("Not a directory"), "{text}");
}

#[test]
fn a_write_is_judged_by_where_it_leads() {
    let host = TestHost::new();
    symlink("/etc/target", host.project().join("link")).unwrap();
    let effects = Write::default().effects(&json!({"file_path": "link", "content": ""}), &host.workspace());
    let path = PathEffect { requested: host.project().join("link"), real: "/etc/target".into() };
    assert_eq!(effects, CallEffects::write(path));
    assert!(!Write::default().is_concurrency_safe(&json!({})));
}
