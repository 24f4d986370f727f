//! A search as plain as can be: every file is loaded, every passage looked at, nothing is shared with the real one but
//! what a passage and a word are.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::passage::passages;
use loci_core::search::words;

/// Returns the ids of the messages that have all the words, in no order.
pub(super) fn messages_with(projects: &Path, wanted: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files(projects) {
        for entry in loci_storage::sessions::load_transcript(&file).unwrap().entries {
            for passage in passages(&entry) {
                let words = words(&passage.text);
                if wanted.iter().all(|wanted| words.iter().any(|word| word == wanted)) {
                    found.push(entry.head().uuid.as_ref().map(|uuid| uuid.to_string()).unwrap_or_default());
                }
            }
        }
    }
    found.sort();
    found
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let (dirs, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "jsonl"));
    files.chain(dirs.iter().flat_map(|dir| self::files(dir))).collect()
}
