//! Which state of a plugin was approved: a digest of everything it may run, kept when it is installed, updated or first used.
//!
//! It covers what hooks and servers are defined as, what skills and agents may use, and which programs there are, not what
//! is in the scripts that these call.

use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::super::definition_files::read_limited;
use super::{PluginFolder, edit_plugin_file};

/// The file that keeps digests.
const FILE: &str = ".loci-approved.json";

impl PluginFolder {
    /// Returns the digest of what it may run.
    pub fn digest(&self) -> String {
        let values =
            |parts: &[(String, Value)]| parts.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
        let whole = json!({
            "runs": self.runs(),
            "hooks": values(&self.hooks),
            "servers": values(&self.servers),
            "skillHooks": self.skills.iter().map(|skill| skill.hooks.clone()).collect::<Vec<_>>(),
            "settings": self.settings,
        });
        let digest = Sha256::digest(whole.to_string().as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Takes away everything that runs by itself or without a question.
    pub fn hold_back(&mut self) {
        self.hooks.clear();
        self.servers.clear();
        self.bin = None;
        for skill in &mut self.skills {
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
        fields.extend(digests.iter().map(|(plugin, digest)| (plugin.clone(), json!(digest))));
    })
}
