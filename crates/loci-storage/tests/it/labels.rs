//! Titles and tags.

use std::fs;
use std::io::Write;
use std::path::Path;

use loci_core::entry::draft::Metadata;
use loci_storage::layout::SessionPlace;
use loci_storage::sessions::{
    LabelError, LabelWatch, Labels, SessionMetadata, rename_session, tag_session, untag_session,
};

use crate::support::{World, session_id, user};

fn session(world: &World) -> SessionPlace {
    let place = world.home.session(world.cwd(), &session_id(1));
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    fs::write(place.file(), format!("{}\n", user("u1", world.cwd()).line())).unwrap();
    place
}

fn labels(place: &SessionPlace) -> Labels {
    SessionMetadata::read(place.file()).unwrap().unwrap().labels
}

fn append(file: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(file).unwrap().write_all(text.as_bytes()).unwrap();
}

/// The lines are those of the official SDK, byte for byte.
#[test]
fn rename_appends_the_lines_of_the_format() {
    let world = World::new();
    let place = session(&world);
    let before = fs::read_to_string(place.file()).unwrap();
    assert_eq!(rename_session(&place, "  A title \n").unwrap(), "A title");
    assert_eq!(tag_session(&place, " bl\u{200b}ue\u{202e} ").unwrap(), "blue");
    untag_session(&place).unwrap();
    let id = session_id(1);
    let expected = format!(
        "{before}{{\"type\":\"custom-title\",\"customTitle\":\"A title\",\"sessionId\":\"{id}\"}}\n\
         {{\"type\":\"tag\",\"tag\":\"blue\",\"sessionId\":\"{id}\"}}\n\
         {{\"type\":\"tag\",\"tag\":\"\",\"sessionId\":\"{id}\"}}\n"
    );
    assert_eq!(fs::read_to_string(place.file()).unwrap(), expected);
    assert_eq!((labels(&place).title(), labels(&place).tag), (Some("A title"), None));
    assert!(matches!(rename_session(&place, " \n"), Err(LabelError::EmptyTitle)));
    assert!(matches!(tag_session(&place, "\u{feff}"), Err(LabelError::EmptyTag)));
}

#[test]
fn a_torn_line_does_not_swallow_a_name() {
    let world = World::new();
    let place = session(&world);
    append(place.file(), "{\"type\":\"assis");
    rename_session(&place, "safe").unwrap();
    assert_eq!(labels(&place).title(), Some("safe"));
}

#[test]
fn label_far_from_the_end_is_repeated() {
    let world = World::new();
    let place = session(&world);
    let known = Labels {
        custom: Some("mine".into()),
        generated: Some("made".into()),
        tag: Some("blue".into()),
        ..Labels::default()
    };
    let mut watch = LabelWatch::new(&known);
    assert_eq!(watch.title(), Some("mine"));
    let due = watch.overdue(place.file()).unwrap();
    let title = Metadata::CustomTitle { title: "mine".into() };
    let all =
        [title, Metadata::GeneratedTitle { title: "made".into() }, Metadata::Tag { tag: "blue".into() }];
    assert_eq!(due, all, "not in the file yet");
    let filler = format!("{}\n", user("u2", world.cwd()).line());
    let grow = |n_bytes: usize| append(place.file(), &filler.repeat(n_bytes / filler.len() + 1));
    grow(40 * 1024);
    assert_eq!(watch.overdue(place.file()).unwrap(), [], "still in reach");
    grow(16 * 1024);
    assert_eq!(watch.overdue(place.file()).unwrap(), all);
    grow(200 * 1024);
    assert_eq!(watch.overdue(place.file()).unwrap(), all, "however long a turn was");
}

/// A rename from another process counts, even when it is far behind by now.
#[test]
fn label_written_by_another_process_wins() {
    let world = World::new();
    let place = session(&world);
    let known = Labels { custom: Some("old".into()), tag: Some("old".into()), ..Labels::default() };
    let mut watch = LabelWatch::new(&known);
    watch.overdue(place.file()).unwrap();
    rename_session(&place, "new").unwrap();
    untag_session(&place).unwrap();
    let filler = format!("{}\n", user("u2", world.cwd()).line());
    append(place.file(), &filler.repeat(300 * 1024 / filler.len()));
    let due = watch.overdue(place.file()).unwrap();
    assert_eq!(due, [Metadata::CustomTitle { title: "new".into() }]);
}

#[test]
fn a_session_without_names_or_file_has_nothing_to_repeat() {
    let world = World::new();
    let place = session(&world);
    assert_eq!(LabelWatch::default().overdue(place.file()).unwrap(), []);
    assert_eq!(LabelWatch::default().overdue(&place.file().with_extension("gone")).unwrap(), []);
}
