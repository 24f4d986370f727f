//! An index that is gone, broken or behind costs speed, never a result.

use std::fs;
use std::time::{Duration, SystemTime};

use loci_storage::search::IndexUse;
use proptest::prelude::*;

use super::{add, append, check_same, index_dir, messages, prompt, search, search_for, segments, update};
use crate::support::World;

fn world() -> World {
    let world = World::new();
    for n in 0..4 {
        let lines: Vec<_> = (0..6)
            .map(|m| prompt(&format!("u{n}-{m}"), &format!("port {} text {m}", "of call ".repeat(m))))
            .collect();
        add(&world, n, &lines);
    }
    update(&world, "a");
    world
}

/// Invariant 2 of `docs/design/index.md`.
#[test]
fn a_session_that_changed_otherwise_than_by_growing_is_read_anew() {
    let world = world();
    let file = super::file_of(&world, 1);
    let text = fs::read_to_string(&file).unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    let rewrite = |text: &str| {
        fs::write(&file, text).unwrap();
        fs::File::options().append(true).open(&file).unwrap().set_modified(later).unwrap();
    };
    rewrite(&text.replace("port", "fort"));
    assert_eq!(check_same(&world, &search_for("fort")).hits.len(), 6, "the same size, other words");
    rewrite(&text[..text.find('\n').unwrap() + 1]);
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 19, "shorter");
    rewrite(&format!("{}{}\n", text.replace("port", "fort"), prompt("new", "fort")));
    assert_eq!(check_same(&world, &search_for("fort")).hits.len(), 7, "longer, but not by growing");
    fs::remove_file(&file).unwrap();
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 18, "gone");
    update(&world, "b");
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 18);
}

#[test]
fn a_line_without_an_end_is_found_and_read_again_when_it_has_one() {
    let world = World::new();
    let file = add(&world, 1, &[prompt("u1", "port")]);
    append(&file, &prompt("u2", "port too").to_string());
    update(&world, "a");
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 2);
    append(&file, "\n");
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 2);
    append(&file, "{\"type\":\"user\",\"uuid\":\"torn");
    update(&world, "b");
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 2);
}

/// Invariant 4 of `docs/design/index.md`.
#[test]
fn an_index_that_cannot_be_written_or_read_hides_nothing() {
    let world = world();
    fs::remove_dir_all(index_dir(&world)).unwrap();
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 24);
    fs::write(index_dir(&world), "not a directory").unwrap();
    assert_eq!(search(&world, &search_for("port"), IndexUse::Normal).hits.len(), 24);
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 24);
}

/// What an interrupted writer left is cleared away by the next.
#[test]
fn leftover_index_files_do_no_harm() {
    let world = world();
    let segment = fs::read(&segments(&world)[0]).unwrap();
    fs::write(index_dir(&world).join("half.new"), &segment[..segment.len() / 2]).unwrap();
    fs::write(index_dir(&world).join("torn.seg"), &segment[..segment.len() / 2]).unwrap();
    fs::write(index_dir(&world).join("twice.seg"), &segment).unwrap();
    assert_eq!(check_same(&world, &search_for("port")).hits.len(), 24, "the same twice counts once");
    update(&world, "b");
    assert!(!index_dir(&world).join("half.new").exists() && !index_dir(&world).join("torn.seg").exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any byte of the index may change, or any number of them be lost.
    /// Invariant 4 of `docs/design/index.md`.
    #[test]
    fn corrupt_segment_is_detected(at in 0.0_f64..1.0, flip in 1_u8..=255, cuts in any::<bool>()) {
        let world = world();
        let path = segments(&world).remove(0);
        let mut bytes = fs::read(&path).unwrap();
        let place = ((bytes.len() - 1) as f64 * at) as usize;
        if cuts {
            bytes.truncate(place);
        } else {
            bytes[place] ^= flip;
        }
        fs::write(&path, bytes).unwrap();
        for text in ["port", "call", "text", "port call", "\"of call\""] {
            check_same(&world, &search_for(text));
        }
        prop_assert_eq!(messages(&check_same(&world, &search_for("port"))).len(), 24);
    }
}
