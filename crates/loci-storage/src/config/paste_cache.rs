//! Long pastes of the input history: `paste-cache/<hash>.txt`, one file a text, named by the first sixteen digits of its
//! SHA-256. A line of `history.jsonl` names them by that hash (`contentHash`) in the place of the text.
//!
//! A file is written once and never changed; anybody may remove old ones, and then the paste is missing.

use std::fs;
use std::path::PathBuf;

use loci_core::hex::to_hex;
use loci_stdx::{WriteError, WriteOptions, read_regular_to_string, write_atomic};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A text of more bytes is kept in a file of its own.
const INLINE_BYTES: usize = 1024;
/// How much is read back at most, for one list of prompts.
pub(super) const READ_BUDGET: u64 = 32 * 1024 * 1024;

/// The directory of long pastes.
#[derive(Debug, Clone)]
pub(super) struct PasteCache {
    dir: PathBuf,
}

impl PasteCache {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Puts long texts into files; what stays says where.
    pub(super) fn put_away(&self, contents: &Map<String, Value>) -> Result<Map<String, Value>, WriteError> {
        let mut kept = contents.clone();
        for value in kept.values_mut().filter_map(Value::as_object_mut) {
            let Some(text) =
                value.get("content").and_then(Value::as_str).filter(|it| it.len() > INLINE_BYTES)
            else {
                continue;
            };
            let hash = self.store(text)?;
            value.remove("content");
            value.insert("contentHash".to_owned(), Value::from(hash));
        }
        Ok(kept)
    }

    /// Brings texts back that lie in files, as far as they are there and the budget lasts.
    pub(super) fn bring_back(&self, contents: &mut Map<String, Value>, budget: &mut u64) {
        for value in contents.values_mut().filter_map(Value::as_object_mut) {
            let hash =
                value.get("contentHash").and_then(Value::as_str).filter(|_| !value.contains_key("content"));
            let Some(text) = hash.and_then(|hash| self.load(hash, budget)) else { continue };
            value.insert("content".to_owned(), Value::from(text));
        }
    }

    fn store(&self, text: &str) -> Result<String, WriteError> {
        let digest = to_hex(&Sha256::digest(text.as_bytes()));
        let hash = digest.get(..16).unwrap_or(&digest).to_owned();
        let path = self.dir.join(format!("{hash}.txt"));
        if fs::metadata(&path).is_ok_and(|found| found.len() == text.len() as u64) {
            return Ok(hash);
        }
        write_atomic(&path, text.as_bytes(), &WriteOptions::private().creating_parents())?;
        Ok(hash)
    }

    fn load(&self, hash: &str, budget: &mut u64) -> Option<String> {
        // A hash that is none would be a path to elsewhere.
        if hash.is_empty() || !hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let path = self.dir.join(format!("{hash}.txt"));
        let size = fs::metadata(&path).ok()?.len();
        *budget = budget.checked_sub(size)?;
        read_regular_to_string(path).ok()
    }
}
