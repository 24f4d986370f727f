//! Credentials on disk: the login that another program keeps in `.credentials.json` of the config home, and the API key that
//! `loci login` keeps in `loci/api-key`, and the secrets of plugins in `loci/plugin-secrets.json`.
//!
//! The login is read and never written: whoever logged in renews it. A file that others may read is not believed to
//! be a secret any more, so it is not used.
//!
//! ```json
//! {"claudeAiOauth": {"accessToken": "…", "expiresAt": 1767323045000, …}, …}
//! ```

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_stdx::{FileLock, WriteOptions, open_regular, write_atomic};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::layout::ConfigHome;

/// The most of the file that is read.
const LIMIT: u64 = 1024 * 1024;
/// How long another process may hold the secrets of plugins.
const PATIENCE: Duration = Duration::from_secs(10);

/// A login that is kept on disk. It has no `Debug`, so that no message can show it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredLogin {
    /// The token that requests carry.
    pub access_token: String,
    /// When it ends, in milliseconds since 1970; none when that is not said.
    pub expires_at: Option<i64>,
}

/// Why a stored login is not used.
#[derive(Debug, thiserror::Error)]
pub enum StoredLoginError {
    /// It could not be read.
    #[error("Failed to read credentials: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others may read it, or it is not the user's.
    #[error("Others may read credentials, so they are not used: `{}`", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// It is not what it should be. What is wrong is not said: it would show what stands there.
    #[error("Failed to parse credentials: `{}`", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Deserialize)]
struct Credentials {
    #[serde(rename = "claudeAiOauth")]
    login: Option<Login>,
}

#[derive(Deserialize)]
struct Login {
    #[serde(rename = "accessToken")]
    access_token: String,
    #[serde(default, rename = "expiresAt")]
    expires_at: Option<i64>,
}

/// Reads the stored login; none when there is no file, or it holds none.
pub fn stored_login(home: &ConfigHome) -> Result<Option<StoredLogin>, StoredLoginError> {
    let path = home.credentials_file();
    let Some(text) = read(&path)? else { return Ok(None) };
    let kept: Credentials = serde_json::from_str(&text).map_err(|_| StoredLoginError::Parse { path })?;
    let login = kept.login.filter(|login| !login.access_token.trim().is_empty());
    Ok(login.map(|login| StoredLogin {
        access_token: login.access_token.trim().to_owned(),
        expires_at: login.expires_at,
    }))
}

/// Reads the token for the server of a team's memories; none when there is no file, or it is empty.
pub fn team_token(home: &ConfigHome) -> Result<Option<String>, StoredLoginError> {
    let text = read(&home.loci_dir().join("team-token"))?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty()))
}

/// Reads the API key that `loci login` keeps; none when there is no file, or it is empty.
pub fn stored_api_key(home: &ConfigHome) -> Result<Option<String>, StoredLoginError> {
    let text = read(&api_key_file(home))?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|key| !key.is_empty()))
}

/// Reads the secrets of plugins: option by option, by plugin. What `loci plugin configure` keeps wins over what another
/// program keeps beside its login.
pub fn plugin_secrets(home: &ConfigHome) -> Result<Map<String, Value>, StoredLoginError> {
    let parsed = |path: PathBuf| -> Result<Map<String, Value>, StoredLoginError> {
        let Some(text) = read(&path)? else { return Ok(Map::new()) };
        serde_json::from_str(&text).map_err(|_| StoredLoginError::Parse { path })
    };
    let mut secrets = match parsed(home.credentials_file())?.remove("pluginSecrets") {
        Some(Value::Object(secrets)) => secrets,
        _ => elsewhere_kept_secrets(),
    };
    for (plugin, own) in parsed(plugin_secrets_file(home))? {
        match (secrets.get_mut(&plugin).and_then(Value::as_object_mut), own) {
            (Some(known), Value::Object(own)) => known.extend(own),
            (_, own) => drop(secrets.insert(plugin, own)),
        }
    }
    Ok(secrets)
}

/// Returns the secrets that another program keeps where it has no file for them.
fn elsewhere_kept_secrets() -> Map<String, Value> {
    #[cfg(target_os = "macos")]
    return super::keychain::keychain_secrets(Path::new(super::keychain::SECURITY));
    #[cfg(not(target_os = "macos"))]
    Map::new()
}

/// Keeps a secret of a plugin in a file that only its owner can read, or forgets it; returns where.
pub fn store_plugin_secret(
    home: &ConfigHome,
    plugin: &str,
    option: &str,
    value: Option<&Value>,
) -> io::Result<PathBuf> {
    let path = plugin_secrets_file(home);
    // Two who keep something at once must not lose what the other kept.
    let _lock = FileLock::acquire(&path.with_extension("lock"), PATIENCE).map_err(io::Error::other)?;
    let text = read(&path).map_err(io::Error::other)?.unwrap_or_else(|| "{}".to_owned());
    let mut all: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|_| io::Error::other(format!("`{}` is no JSON object", path.display())))?;
    let own = all.entry(plugin).or_insert_with(|| Value::Object(Map::new()));
    if !own.is_object() {
        *own = Value::Object(Map::new());
    }
    match (value, own.as_object_mut()) {
        (Some(value), Some(own)) => drop(own.insert(option.to_owned(), value.clone())),
        (None, Some(own)) => drop(own.remove(option)),
        (_, None) => {}
    }
    let text = Value::Object(all).to_string();
    let options = WriteOptions { create_parents: true, ..WriteOptions::private() };
    write_atomic(&path, text.as_bytes(), &options).map_err(io::Error::other)?;
    Ok(path)
}

fn plugin_secrets_file(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("plugin-secrets.json")
}

/// Keeps an API key in a file that only its owner can read; returns where.
pub fn store_api_key(home: &ConfigHome, key: &str) -> io::Result<PathBuf> {
    // A file that others can read would keep its mode.
    remove_api_key(home)?;
    let path = api_key_file(home);
    let options = WriteOptions { create_parents: true, ..WriteOptions::private() };
    write_atomic(&path, format!("{}\n", key.trim()).as_bytes(), &options).map_err(io::Error::other)?;
    Ok(path)
}

/// Forgets the API key; false when there was none.
pub fn remove_api_key(home: &ConfigHome) -> io::Result<bool> {
    match std::fs::remove_file(api_key_file(home)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn api_key_file(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("api-key")
}

/// Reads a file that only its owner may read.
pub(super) fn read(path: &Path) -> Result<Option<String>, StoredLoginError> {
    let failed = |source| StoredLoginError::Read { path: path.to_owned(), source };
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.mode() & 0o077 != 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(StoredLoginError::Exposed { path: path.to_owned() });
    }
    let mut text = String::new();
    file.take(LIMIT).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}
