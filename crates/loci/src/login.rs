//! `loci login` and `loci logout`: keeping an API key privately, and forgetting it; `loci reset-terminal`.

#[cfg(not(unix))]
use std::io::Write;
use std::io::{IsTerminal, Read};

use loci_app::UserError;
use loci_stdx::Env;
use loci_storage::config::{remove_api_key, store_api_key};
use loci_storage::layout::ConfigHome;

/// The longest key that is taken.
const LONGEST_KEY: u64 = 4096;

#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {}

#[derive(Debug, clap::Args)]
pub(crate) struct LogoutArgs {}

#[derive(Debug, clap::Args)]
pub(crate) struct ResetTerminalArgs {}

/// Asks for a key, or reads it from standard input, and keeps it.
pub(crate) fn login(env: &Env) -> Result<u8, UserError> {
    let home = ConfigHome::from_env(env);
    let Some(key) = read_key()? else {
        return Err(UserError::new("No key was given; nothing has changed"));
    };
    let path = store_api_key(&home, &key).map_err(|error| {
        UserError::new(format!("The key cannot be kept in `{}`: {error}", home.loci_dir().display()))
            .hint("Make the directory writable, or set ANTHROPIC_API_KEY.")
    })?;
    let mut text = format!("The key is kept in {}, readable by you alone.\n", path.display());
    if env.vars.non_empty("ANTHROPIC_API_KEY").is_some() {
        text.push_str("ANTHROPIC_API_KEY is set, and takes its place as long as it is.\n");
    }
    crate::config::write(&text)?;
    Ok(0)
}

/// Forgets the key.
pub(crate) fn logout(env: &Env) -> Result<u8, UserError> {
    let home = ConfigHome::from_env(env);
    let had_one = remove_api_key(&home)
        .map_err(|error| UserError::new(format!("The key cannot be removed: {error}")))?;
    let text = if had_one { "The key is forgotten.\n" } else { "No key was kept.\n" };
    crate::config::write(text)?;
    Ok(0)
}

/// Puts a terminal right whose program was killed.
#[cfg(unix)]
pub(crate) fn reset_terminal() -> Result<u8, UserError> {
    loci_tui::terminal::reset_terminal()
        .map_err(|error| UserError::new(format!("The terminal cannot be put right: {error}")))?;
    Ok(0)
}

#[cfg(not(unix))]
pub(crate) fn reset_terminal() -> Result<u8, UserError> {
    Err(UserError::new("There is no terminal to put right on this system"))
}

fn read_key() -> Result<Option<String>, UserError> {
    let failed = |error: std::io::Error| UserError::new(format!("The key cannot be read: {error}"));
    let key = if std::io::stdin().is_terminal() {
        ask_for_key().map_err(failed)?
    } else {
        let mut text = String::new();
        std::io::stdin().take(LONGEST_KEY).read_to_string(&mut text).map_err(failed)?;
        Some(text)
    };
    let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    if key.as_ref().is_some_and(|key| key.contains(char::is_whitespace)) {
        return Err(UserError::new("That is no key: it has blanks or several lines"));
    }
    Ok(key)
}

#[cfg(unix)]
fn ask_for_key() -> std::io::Result<Option<String>> {
    loci_tui::terminal::read_secret("API key (it is not shown): ")
}

#[cfg(not(unix))]
fn ask_for_key() -> std::io::Result<Option<String>> {
    let mut line = String::new();
    write!(std::io::stderr(), "API key: ")?;
    std::io::stdin().read_line(&mut line)?;
    Ok(Some(line))
}
