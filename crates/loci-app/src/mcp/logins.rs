//! Logins at MCP servers: kept in the config home, and begun with a browser where there is one.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use loci_mcp::{LoginKey, LoginStore, Logins, RenewalLock, StoredLogin};
use loci_stdx::Env;
use loci_storage::config::{
    lock_mcp_login, mcp_client_secret, mcp_login, set_mcp_client_secret, set_mcp_login,
};
use loci_storage::layout::ConfigHome;

use crate::user_error::UserError;

/// The variable with the address of a document that describes us to authorization servers.
const CLIENT_METADATA: &str = "LOCI_MCP_CLIENT_METADATA_URL";

/// Returns what logins need.
pub(crate) fn logins(env: &Env, home: &ConfigHome) -> Arc<Logins> {
    let document = env.vars.non_empty(CLIENT_METADATA).filter(|url| url.starts_with("https://"));
    Arc::new(Logins {
        store: Arc::new(FileLoginStore { home: home.clone() }),
        random: Arc::clone(&env.random),
        client_metadata: document.map(str::to_owned),
    })
}

/// Keeps the secret of the client that the user has registered for a server, or forgets it.
pub fn set_client_secret(
    home: &ConfigHome,
    server: &str,
    url: &str,
    secret: Option<&str>,
) -> Result<(), UserError> {
    let key = LoginKey { server: server.to_owned(), url: url.to_owned() };
    set_mcp_client_secret(home, &key.id(), secret).map_err(|error| UserError::from_error(&error))
}

/// Tells whether there is a login at a server that was not ended, and whether the user has registered a client for it.
pub fn login_state(home: &ConfigHome, server: &str, url: &str) -> Result<(bool, bool), UserError> {
    let key = LoginKey { server: server.to_owned(), url: url.to_owned() };
    let store = FileLoginStore { home: home.clone() };
    let login = store.load(&key).map_err(UserError::new)?;
    let secret = store.client_secret(&key).map_err(UserError::new)?;
    Ok((login.access_token.is_some() || login.refresh_token.is_some(), secret.is_some()))
}

/// Forgets everything that is kept of a server that is taken away.
pub fn forget_login(home: &ConfigHome, server: &str, url: &str) -> Result<(), UserError> {
    let key = LoginKey { server: server.to_owned(), url: url.to_owned() };
    let failed = |error: loci_storage::config::McpLoginError| UserError::from_error(&error);
    set_mcp_login(home, &key.id(), (server, url), |_| None).map_err(failed)?;
    set_mcp_client_secret(home, &key.id(), None).map_err(failed)
}

/// Logins in the file that other programs keep theirs in.
struct FileLoginStore {
    home: ConfigHome,
}

impl LoginStore for FileLoginStore {
    fn load(&self, key: &LoginKey) -> Result<StoredLogin, String> {
        let kept = mcp_login(&self.home, &key.id(), &key.server, &key.url).map_err(|error| text(&error))?;
        Ok(kept.as_ref().map(StoredLogin::from_value).unwrap_or_default())
    }

    fn save(&self, key: &LoginKey, login: &StoredLogin) -> Result<(), String> {
        let saved = set_mcp_login(&self.home, &key.id(), (&key.server, &key.url), |mut kept| {
            if login.is_empty() {
                return None;
            }
            login.write_into(&mut kept, key);
            Some(kept)
        });
        saved.map_err(|error| text(&error))
    }

    fn lock(&self, key: &LoginKey) -> Result<RenewalLock, String> {
        let lock = lock_mcp_login(&self.home, &key.id()).map_err(|error| text(&error))?;
        Ok(Box::new(lock))
    }

    fn client_secret(&self, key: &LoginKey) -> Result<Option<String>, String> {
        mcp_client_secret(&self.home, &key.id()).map_err(|error| text(&error))
    }
}

fn text(error: &dyn std::error::Error) -> String {
    UserError::from_error(error).message().to_owned()
}

/// Opens a page in a browser: the one of `BROWSER`, or the system's. The error says why none came up.
pub fn open_browser(env: &Env, page: &str) -> Result<(), String> {
    let mut command = browser(env, page).ok_or("there is no browser on this machine")?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(&env.home);
    loci_stdx::own_group(&mut command);
    let mut child = command.spawn().map_err(|error| {
        format!("`{}` could not be started: {error}", command.get_program().to_string_lossy())
    })?;
    // It is waited for, so that it does not stay behind as a shadow; when it ends is its own affair.
    let waiting = std::thread::Builder::new().name("browser".to_owned()).spawn(move || child.wait());
    waiting.map(drop).map_err(|error| error.to_string())
}

/// Tells whether a browser can be expected to come up where the person sits.
pub fn has_browser(env: &Env) -> bool {
    let is_set = |name: &str| env.vars.non_empty(name).is_some();
    match is_set("BROWSER") {
        true => true,
        false if is_set("SSH_CONNECTION") || is_set("SSH_TTY") => false,
        false => cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"),
    }
}

/// Returns the command that opens a page. No shell reads it, so nothing in the address can mean anything else.
fn browser(env: &Env, page: &str) -> Option<Command> {
    let system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let wish = env.vars.non_empty("BROWSER").map_or(system, |it| it.split(':').next().unwrap_or(it));
    let mut words = wish.split_whitespace();
    let program = words.next()?;
    let mut command = Command::new(program);
    let rest: Vec<&str> = words.collect();
    match rest.iter().any(|word| word.contains("%s")) {
        true => command.args(rest.iter().map(|word| word.replace("%s", page))),
        false => command.args(rest).arg(page),
    };
    command.env_clear().envs(crate::compose::child_env::child_env(env));
    Some(command)
}

/// Returns the file that logins are kept in, for people.
pub fn logins_file(home: &ConfigHome) -> PathBuf {
    home.credentials_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_started_without_a_shell() {
        for (wish, expected) in [
            ("firefox", vec!["firefox", "https://as/?a=1&b=$(x)"]),
            ("run --new %s:other", vec!["run", "--new", "https://as/?a=1&b=$(x)"]),
            ("", vec![if cfg!(target_os = "macos") { "open" } else { "xdg-open" }, "https://as/?a=1&b=$(x)"]),
        ] {
            let mut env = Env::for_test("/h", "/p");
            env.vars = [("BROWSER", wish)].into_iter().collect();
            let command = browser(&env, "https://as/?a=1&b=$(x)").unwrap();
            let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
            assert_eq!(words, expected, "{wish}");
        }
    }

    #[test]
    fn browser_is_not_expected_far_away_or_without_a_screen() {
        for (vars, expected) in [
            (vec![("BROWSER", "x"), ("SSH_TTY", "y")], true),
            (vec![("DISPLAY", ":0"), ("SSH_CONNECTION", "y")], false),
            (vec![("DISPLAY", ":0")], true),
            (vec![], cfg!(target_os = "macos")),
        ] {
            let mut env = Env::for_test("/h", "/p");
            env.vars = vars.clone().into_iter().collect();
            assert_eq!(has_browser(&env), expected, "{vars:?}");
        }
    }
}
