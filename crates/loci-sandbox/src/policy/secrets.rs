//! Credentials that sandboxed commands cannot read unless somebody says so (SB-7).

use std::path::{Path, PathBuf};

/// Below the home: keys, tokens, browser profiles, keyrings. Of `~/.ssh` only what is
/// private is hidden.
const SECRETS: &[&str] = &[
    ".ssh",
    ".aws/credentials",
    ".config/gcloud",
    ".azure",
    ".kube/config",
    ".netrc",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".git-credentials",
    ".config/git/credentials",
    ".gnupg/private-keys-v1.d",
    ".gnupg/secring.gpg",
    ".password-store",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".codex/auth.json",
    ".config/op",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
];

/// What of `~/.ssh` may be read: it says whom to trust and how to connect, and opens nothing.
const PUBLIC_SSH: &[&str] = &["config", "known_hosts", "known_hosts.old", "authorized_keys"];

/// Returns the credentials below a home, and our own.
pub fn secret_paths(home: &Path, config_home: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = SECRETS.iter().map(|name| home.join(name)).collect();
    paths.push(config_home.join(".credentials.json"));
    paths
}

/// Returns the directories among them that hold private and public files side by side.
pub(super) fn mixed_paths(home: &Path) -> Vec<PathBuf> {
    vec![home.join(".ssh")]
}

/// Tells whether a file of such a directory may be read.
pub(crate) fn is_public(name: &str) -> bool {
    name.ends_with(".pub") || PUBLIC_SSH.contains(&name)
}
