//! Rollouts that Codex compressed are read like those that it did not.

use std::fs;
use std::path::{Path, PathBuf};

use loci_storage::foreign::{ImportId, find_rollout, load_rollout};
use loci_storage::search::{IndexUse, SearchResults};
use loci_storage::sessions::{SessionMetadata, list_rollouts, load_transcript};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;

use super::{TOOLS, World, fixture, import, message_line, meta, put, render_entries, search};

/// Compresses a file in its place, as Codex does with old ones.
fn compress(file: &Path) -> PathBuf {
    let packed = file.with_extension("jsonl.zst");
    let bytes = compress_to_vec(fs::File::open(file).unwrap(), CompressionLevel::Fastest);
    fs::write(&packed, bytes).unwrap();
    fs::remove_file(file).unwrap();
    packed
}

/// What is known of the only rollout, whatever its file is like.
fn facts(world: &World) -> SessionMetadata {
    let [session] = <[_; 1]>::try_from(list_rollouts(&world.home, None).unwrap()).unwrap();
    SessionMetadata { size: 0, modified_ms: 0, ..session.facts }
}

/// What is found, without the files it is found in.
fn passages(found: &SearchResults) -> Vec<(String, String, String)> {
    let hits = found.hits.iter();
    hits.map(|hit| (hit.passage.text.clone(), format!("{:?}", hit.time), hit.score.to_string())).collect()
}

fn check(id: &str, text: &str, words: &[&str]) {
    let world = World::new();
    let file = put(&world, id, text);
    let shown = |world: &World| {
        let place = find_rollout(&world.home, world.cwd(), id).unwrap().unwrap();
        render_entries(&load_rollout(&world.home, &place).unwrap().0)
    };
    let found = |world: &World, how: IndexUse| -> Vec<_> {
        words.iter().map(|word| passages(&search(world, word, how))).collect()
    };
    let plain = (facts(&world), shown(&world), found(&world, IndexUse::None));
    assert!(plain.2.iter().all(|found| !found.is_empty()), "{:?}", plain.2);
    let packed = compress(&file);
    let before = fs::read(&packed).unwrap();
    assert_eq!((facts(&world), shown(&world), found(&world, IndexUse::None)), plain);
    for unique in ["a", "b"] {
        assert!(
            loci_storage::search::update_index(&world.home, unique, &loci_storage::search::NoObserver)
                .unwrap()
        );
        assert_eq!(found(&world, IndexUse::AsItIs), plain.2);
    }
    let index = fs::read_dir(world.home.loci_dir().join("index")).unwrap().flatten();
    let n_segments = index.filter(|it| it.path().extension().is_some_and(|it| it == "seg")).count();
    assert_eq!(n_segments, 1, "what is indexed is not read again");
    let imported = import(&world, id, ImportId::Same).unwrap();
    assert_eq!(render_entries(&load_transcript(imported.place.file()).unwrap().entries), plain.1);
    assert_eq!(fs::read(&packed).unwrap(), before, "it is only read");
}

/// Invariant 10 of `docs/design/index.md`.
#[test]
fn a_compressed_rollout_is_read_like_a_plain_one() {
    check(TOOLS, &fixture("tools.jsonl"), &["48213", "readme", "\"the readme\""]);
}

/// Longer than what a list reads of a file, and without a last line feed.
#[test]
fn a_long_compressed_rollout_is_read_to_its_end() {
    let mut text = meta(json!({"id": TOOLS}));
    for n in 0..100 {
        text.push_str(&message_line("user", &format!("prompt {n} {}", "water".repeat(300))));
        text.push_str(&message_line("assistant", &format!("answer{n}")));
    }
    check(TOOLS, text.trim_end(), &["answer99", "\"prompt 7\"", "answer0"]);
}

/// Of two files of a thread the one written last counts, whichever is compressed.
#[test]
fn a_file_that_was_unpacked_again_counts_once() {
    let world = World::new();
    let file = put(&world, TOOLS, &fixture("tools.jsonl"));
    let packed = compress(&file);
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    fs::File::options().write(true).open(&packed).unwrap().set_modified(long_ago).unwrap();
    let file = put(&world, TOOLS, &fixture("tools.jsonl"));
    let listed = list_rollouts(&world.home, None).unwrap();
    assert_eq!(listed.iter().map(|it| it.place.file()).collect::<Vec<_>>(), [file]);
}
