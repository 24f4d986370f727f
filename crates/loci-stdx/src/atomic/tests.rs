//! What a replaced file keeps, and what a failure leaves behind.

use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

struct Fixture {
    dir: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn with_file(self, name: &str, content: &str, mode: u32) -> Self {
        fs::write(self.path(name), content).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn with_link(self, name: &str, target: &str) -> Self {
        symlink(target, self.path(name)).unwrap();
        self
    }

    fn write(&self, name: &str, content: &str) -> Result<(), WriteError> {
        write_atomic(&self.path(name), content.as_bytes(), &WriteOptions::private())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    /// All names in the directory, to see that no temporary file stayed.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_new_private_file_is_readable_by_its_owner_alone() {
    let fixture = Fixture::new();
    fixture.write("new", "content").unwrap();
    assert_eq!((fixture.read("new").as_str(), fixture.mode("new")), ("content", 0o600));
    assert_eq!(fixture.names(), ["new"]);
}

#[test]
fn a_new_project_file_has_the_mode_of_any_new_file() {
    let fixture = Fixture::new();
    fs::write(fixture.path("plain"), "").unwrap();
    write_atomic(&fixture.path("ours"), b"", &WriteOptions::project()).unwrap();
    assert_eq!(fixture.mode("ours"), fixture.mode("plain") & 0o644);
}

#[test]
fn the_mode_of_an_existing_file_is_kept() {
    for mode in [0o600, 0o640, 0o666, 0o755, 0o444] {
        let fixture = Fixture::new().with_file("file", "old", mode);
        fixture.write("file", "new").unwrap();
        assert_eq!((fixture.read("file").as_str(), fixture.mode("file")), ("new", mode));
    }
}

#[test]
fn a_symlink_stays_and_its_target_is_replaced() {
    let fixture = Fixture::new().with_file("target", "old", 0o640).with_link("link", "target");
    fixture.write("link", "new").unwrap();
    assert_eq!(fs::read_link(fixture.path("link")).unwrap(), Path::new("target"));
    assert_eq!((fixture.read("target").as_str(), fixture.mode("target")), ("new", 0o640));
    assert_eq!(fixture.names(), ["link", "target"]);
}

#[test]
fn a_chain_of_links_into_another_directory_is_followed() {
    let fixture = Fixture::new().with_link("first", "second").with_link("second", "sub/../sub/target");
    fs::create_dir(fixture.path("sub")).unwrap();
    fixture.write("first", "new").unwrap();
    assert_eq!(fixture.read("sub/target"), "new");
    assert!(fs::symlink_metadata(fixture.path("first")).unwrap().is_symlink());
}

#[test]
fn a_dangling_symlink_is_written_through() {
    let fixture = Fixture::new().with_link("link", "target");
    fixture.write("link", "new").unwrap();
    assert!(fs::symlink_metadata(fixture.path("link")).unwrap().is_symlink());
    assert_eq!(fixture.read("target"), "new");
}

#[test]
fn links_that_go_in_circles_are_an_error() {
    let fixture = Fixture::new().with_link("a", "b").with_link("b", "a");
    assert!(matches!(fixture.write("a", "new"), Err(WriteError::Resolve { .. })));
    assert_eq!(fixture.names(), ["a", "b"]);
}

#[test]
fn a_name_of_greatest_length_can_be_written() {
    let (fixture, name) = (Fixture::new(), "n".repeat(255));
    fixture.write(&name, "first").unwrap();
    fixture.write(&name, "second").unwrap();
    assert_eq!(fixture.read(&name), "second");
}

#[test]
fn parents_are_created_only_when_asked() {
    let fixture = Fixture::new();
    assert!(matches!(fixture.write("a/b/file", "new"), Err(WriteError::Write { .. })));
    assert_eq!(fixture.names(), [""; 0]);
    let options = WriteOptions::private().creating_parents();
    write_atomic(&fixture.path("a/b/file"), b"new", &options).unwrap();
    assert_eq!((fixture.read("a/b/file").as_str(), fixture.mode("a/b")), ("new", 0o700));
}

#[test]
fn a_file_in_the_way_of_a_parent_is_an_error() {
    let fixture = Fixture::new().with_file("file", "old", 0o600);
    assert!(matches!(fixture.write("file/below", "new"), Err(WriteError::Resolve { .. })));
    assert_eq!(fixture.read("file"), "old");
}

#[test]
fn directory_or_special_file_is_not_replaced() {
    let fixture = Fixture::new().with_link("null", "/dev/null");
    fs::create_dir(fixture.path("dir")).unwrap();
    for name in ["dir", "null"] {
        assert!(matches!(fixture.write(name, "new"), Err(WriteError::NotAFile { .. })), "{name}");
    }
    assert_eq!(fixture.names(), ["dir", "null"]);
}

#[test]
fn an_error_half_way_leaves_the_old_content_and_no_temporary_file() {
    let fixture = Fixture::new().with_file("file", "old", 0o600);
    let error = write_with(&fixture.path("file"), &WriteOptions::private(), |file| {
        file.write_all(b"half of the new con")?;
        Err(io::ErrorKind::StorageFull.into())
    })
    .unwrap_err();
    assert!(
        matches!(&error, WriteError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    );
    assert_eq!(
        error.to_string(),
        format!("Failed to write temporary file beside: `{}`", fixture.path("file").display())
    );
    assert_eq!((fixture.read("file").as_str(), fixture.names()), ("old", vec!["file".to_owned()]));
}

#[test]
fn a_rename_that_fails_leaves_no_temporary_file() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("dir")).unwrap();
    let temporary =
        temporary_in(fixture.dir.path(), &WriteOptions::private(), None, |file| file.write_all(b"new"))
            .unwrap();
    assert!(matches!(replace(temporary, &fixture.path("dir")), Err(WriteError::Replace { .. })));
    assert_eq!(fixture.names(), ["dir"]);
}

#[test]
fn concurrent_writers_never_yield_a_torn_file() {
    const WRITERS: u8 = 4;
    const ROUNDS: usize = 15;
    let fixture = Fixture::new();
    let content = |writer: u8| vec![b'a' + writer; 40_000 + 1000 * usize::from(writer)];
    let assert_whole = |bytes: &[u8]| assert_eq!(bytes, content(bytes[0] - b'a'));
    let path = fixture.path("file");
    write_atomic(&path, &content(0), &WriteOptions::private()).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    write_atomic(path, &content(writer), &WriteOptions::private()).unwrap();
                    assert_whole(&fs::read(path).unwrap());
                }
            });
        }
    });
    assert_whole(&fs::read(&path).unwrap());
    assert_eq!(fixture.names(), ["file"]);
}
