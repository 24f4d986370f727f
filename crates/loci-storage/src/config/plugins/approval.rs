//! Which state of a plugin was approved: a digest of everything it may run, kept when it is installed, updated or first used.
//!
//! It covers what hooks and servers are defined as, what skills and agents may use, and which programs there are, not what
//! is in the scripts that these call.

use std::path::Path;
use std::sync::Arc;

use loci_core::hex::to_hex;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::super::definition_files::read_limited;
use super::{PluginFolder, edit_plugin_file};

/// The file that keeps digests.
const FILE: &str = ".loci-approved.json";

/// What a plugin may run, as its digest is made of it. The order of the fields is part of every digest that was kept.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Runnable<'a> {
    runs: Vec<String>,
    hooks: Vec<&'a Value>,
    servers: Vec<&'a Value>,
    skill_hooks: Vec<Option<&'a Value>>,
    settings: &'a Map<String, Value>,
}

impl PluginFolder {
    /// Returns the digest of what it may run.
    pub fn digest(&self) -> String {
        let runnable = Runnable {
            runs: self.runs(),
            hooks: self.hooks.iter().map(|(_, value)| value).collect(),
            servers: self.servers.iter().map(|(_, value)| value).collect(),
            skill_hooks: self.skills.iter().map(|skill| skill.hooks.as_ref()).collect(),
            settings: &self.settings,
        };
        // Nothing in it can fail to be written; a digest of nothing would be no plugin's.
        let whole = serde_json::to_vec(&runnable).unwrap_or_default();
        to_hex(&Sha256::digest(&whole))
    }

    /// Returns the digest of what it may run as its files have it, which may have been made when they were read; whatever was
    /// left out of it since is in it.
    pub fn take_read_digest(&mut self) -> String {
        self.read_digest.take().unwrap_or_else(|| self.digest())
    }

    /// Takes away everything that runs by itself or without a question.
    pub fn hold_back(&mut self) {
        self.hooks.clear();
        self.servers.clear();
        self.bin = None;
        for skill in self.skills.iter_mut().map(Arc::make_mut) {
            skill.allowed_tools.clear();
            skill.hooks = None;
        }
        self.settings.clear();
    }
}

/// Reads the digests that were approved, by plugin; none where nothing was, the error where they cannot be read.
pub fn approved_plugins(dir: &Path) -> Result<Map<String, Value>, String> {
    let path = dir.join(FILE);
    if path.symlink_metadata().is_err() {
        return Ok(Map::new());
    }
    let text = read_limited(&path).map_err(|why| format!("`{}` {why}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("`{}` is no JSON object: {error}", path.display()))
}

/// Keeps digests.
pub fn approve_plugins(dir: &Path, digests: &[(String, String)]) -> Result<(), String> {
    edit_plugin_file(dir, FILE, |fields| {
        fields.extend(digests.iter().map(|(plugin, digest)| (plugin.clone(), Value::from(digest.as_str()))));
    })
}
