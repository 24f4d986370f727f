//! Logins at MCP servers, in `.credentials.json` of the config home, beside the login that another program keeps there.
//!
//! ```json
//! {"mcpOAuth": {"<server>|<hash>": {"serverName": "…", "serverUrl": "…", "accessToken": "…", …}, …},
//!  "mcpOAuthClientConfig": {"<server>|<hash>": {"clientSecret": "…"}, …}, …}
//! ```
//!
//! The file is read again under a lock, one value of it is changed, and it is replaced as a whole; all other values keep
//! their bytes. One that others may read is neither used nor written. A login is found by its name here, or else by the
//! server's name and address, which is how another program's are found: it hashes something else. What is in an entry is
//! decided by whoever logs in.

use std::path::PathBuf;
use std::time::Duration;

use loci_settings::edit::{self, EditError};
use loci_stdx::{FileLock, LockError, WriteError, WriteOptions, write_atomic};
use serde_json::{Map, Value, json};

use super::credentials::{StoredLoginError, read};
use crate::layout::ConfigHome;

const LOGINS: &str = "mcpOAuth";
const CLIENTS: &str = "mcpOAuthClientConfig";
const SECRET: &str = "clientSecret";
/// How long to wait for other processes that change the file, or renew a login: that is an exchange over the network.
const EDIT_TIMEOUT: Duration = Duration::from_secs(30);
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Why logins could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum McpLoginError {
    /// They could not be read, or may not be used.
    #[error(transparent)]
    Read(#[from] StoredLoginError),
    /// The file is not a JSON object, so it is not written over. What is wrong is not said: it would show what stands there.
    #[error("Failed to parse credentials, so they are left alone: `{}`", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
    },
    /// Another process held the lock.
    #[error("Failed to lock credentials")]
    Lock(#[from] LockError),
    /// They could not be replaced.
    #[error("Failed to save credentials")]
    Write(#[from] WriteError),
}

/// Returns what is kept of the login at a server; none when there is nothing.
pub fn mcp_login(
    home: &ConfigHome,
    id: &str,
    server: &str,
    url: &str,
) -> Result<Option<Value>, McpLoginError> {
    let kept = load(home)?;
    let Some(logins) = kept.get(LOGINS).and_then(Value::as_object) else { return Ok(None) };
    let found = logins.get(id).or_else(|| logins.values().find(|login| is_of(login, server, url)));
    Ok(found.cloned())
}

/// Changes what is kept of the login at a server: given what there is, `change` returns what there is to be. Nothing takes
/// away what other programs keep of it, too.
pub fn set_mcp_login(
    home: &ConfigHome,
    id: &str,
    (server, url): (&str, &str),
    change: impl FnOnce(Map<String, Value>) -> Option<Map<String, Value>>,
) -> Result<(), McpLoginError> {
    edit_credentials(home, |text, kept| {
        let logins = kept.get(LOGINS).and_then(Value::as_object).cloned().unwrap_or_default();
        let now = logins.get(id).and_then(Value::as_object).cloned().unwrap_or_default();
        match change(now) {
            Some(login) => edit::set(text, &[LOGINS, id], &Value::Object(login)),
            None => {
                let gone = logins.iter().filter(|(key, login)| *key == id || is_of(login, server, url));
                gone.map(|(key, _)| key)
                    .try_fold(text.to_owned(), |text, key| edit::unset(&text, &[LOGINS, key]))
            }
        }
    })
}

fn is_of(login: &Value, server: &str, url: &str) -> bool {
    login.get("serverName").and_then(Value::as_str) == Some(server)
        && login.get("serverUrl").and_then(Value::as_str) == Some(url)
}

/// Returns the secret of a client that the user has registered for a server.
pub fn mcp_client_secret(home: &ConfigHome, id: &str) -> Result<Option<String>, McpLoginError> {
    let kept = load(home)?;
    let secret = kept.get(CLIENTS).and_then(|it| it.get(id)).and_then(|it| it.get(SECRET));
    Ok(secret.and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned))
}

/// Keeps that secret, or forgets it.
pub fn set_mcp_client_secret(home: &ConfigHome, id: &str, secret: Option<&str>) -> Result<(), McpLoginError> {
    edit_credentials(home, |text, kept| match secret {
        Some(secret) => edit::set(text, &[CLIENTS, id, SECRET], &json!(secret)),
        None if kept.get(CLIENTS).and_then(|it| it.get(id)).is_some() => edit::unset(text, &[CLIENTS, id]),
        None => Ok(text.to_owned()),
    })
}

/// Waits until no other process renews a login, and keeps others from it until what is returned is dropped.
pub fn lock_mcp_login(home: &ConfigHome, id: &str) -> Result<FileLock, LockError> {
    let name: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    FileLock::acquire(&home.loci_dir().join("mcp-login-locks").join(name), RENEWAL_TIMEOUT)
}

fn load(home: &ConfigHome) -> Result<Value, McpLoginError> {
    let path = home.credentials_file();
    match read(&path)? {
        Some(text) if !text.trim().is_empty() => {
            serde_json::from_str(&text).map_err(|_| McpLoginError::Parse { path })
        }
        _ => Ok(Value::Null),
    }
}

fn edit_credentials(
    home: &ConfigHome,
    change: impl FnOnce(&str, &Value) -> Result<String, EditError>,
) -> Result<(), McpLoginError> {
    let path = home.credentials_file();
    // Held from before it is read until it is replaced.
    let _lock = FileLock::acquire(&home.loci_dir().join("credentials.lock"), EDIT_TIMEOUT)?;
    let text = read(&path)?.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "{}\n".to_owned());
    let unreadable = || McpLoginError::Parse { path: path.clone() };
    let kept: Value = serde_json::from_str(&text).map_err(|_| unreadable())?;
    let changed = change(&text, &kept).map_err(|_| unreadable())?;
    if changed == text {
        return Ok(());
    }
    let options = WriteOptions { create_parents: true, ..WriteOptions::private() };
    Ok(write_atomic(&path, changed.as_bytes(), &options)?)
}
