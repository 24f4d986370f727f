//! `loci login` and `loci logout`: keeping an API key privately, and forgetting it; `loci reset-terminal`.

use std::io::{IsTerminal, Read};

use loci_app::UserError;
use loci_app::credentials::login::{forget_key, keep_key};
use loci_stdx::Env;
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
    let key = read_key().map_err(|error| UserError::new(format!("The key cannot be read: {error}")))?;
    let text = keep_key(&env.vars, &ConfigHome::from_env(env), &key)?;
    crate::config::write(&format!("{text}\n"))?;
    Ok(0)
}

/// Forgets the key.
pub(crate) fn logout(env: &Env) -> Result<u8, UserError> {
    let text = forget_key(&ConfigHome::from_env(env))?;
    crate::config::write(&format!("{text}\n"))?;
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

fn read_key() -> std::io::Result<String> {
    if std::io::stdin().is_terminal() {
        return Ok(ask_for_key()?.unwrap_or_default());
    }
    let mut text = String::new();
    std::io::stdin().take(LONGEST_KEY).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(unix)]
fn ask_for_key() -> std::io::Result<Option<String>> {
    loci_tui::terminal::read_secret("API key (it is not shown): ")
}

#[cfg(not(unix))]
fn ask_for_key() -> std::io::Result<Option<String>> {
    let mut line = String::new();
    crate::print::ask("API key: ")?;
    std::io::stdin().read_line(&mut line)?;
    Ok(Some(line))
}
