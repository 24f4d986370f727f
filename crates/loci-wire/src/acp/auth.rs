//! Logging in and out.
//!
//! loci has no login of its own over the protocol: a key is typed at a terminal, where no model and no editor reads along,
//! or is given in the environment. `authenticate` therefore only looks whether there is something to authenticate with now.

use loci_app::compose::needs_credentials;
use loci_app::settings::RunSettings;
use loci_app::{RunOptions, UserError};
use loci_stdx::Env;
use loci_storage::config::remove_api_key;
use loci_storage::layout::ConfigHome;
use serde_json::{Value, json};

use super::capabilities::ClientCapabilities;
use super::rpc::{AUTH_REQUIRED, RpcError};

/// The method that is a program at a terminal.
const TERMINAL: &str = "terminal-login";
/// The method that is a key in the environment.
const ENVIRONMENT: &str = "api-key";

/// Returns the ways to log in.
pub(super) fn methods(client: ClientCapabilities) -> Vec<Value> {
    let terminal = json!({
        "id": TERMINAL,
        "name": "Enter an API key",
        "description": "Asks for an API key at a terminal and keeps it, readable by you alone.",
        "type": "terminal",
        "args": ["--login"],
        "env": {},
    });
    let environment = json!({
        "id": ENVIRONMENT,
        "name": "Use a key of the environment",
        "description": "Takes ANTHROPIC_API_KEY, or a key that `loci login` keeps. Set the variable where the editor \
                        configures loci, or run `loci login`, and try again.",
    });
    let terminal = client.has_terminal_login.then_some(terminal);
    terminal.into_iter().chain([environment]).collect()
}

/// Answers `authenticate`. May block.
pub(super) fn authenticate(env: &Env, options: &RunOptions, params: &Value) -> Result<Value, RpcError> {
    match params["methodId"].as_str() {
        Some(ENVIRONMENT) => {}
        Some(TERMINAL) => {
            return Err(RpcError::params(
                "A terminal login is not asked for over the protocol: run it and reconnect",
            ));
        }
        _ => return Err(RpcError::params("There is no such method to log in by")),
    }
    let is_missing = RunSettings::load(env, options)
        .and_then(|run| needs_credentials(&run, options, None))
        .map_err(|error: UserError| RpcError::internal(error.to_string()))?;
    if is_missing { Err(required()) } else { Ok(json!({})) }
}

/// Answers `logout`: the key that is kept is forgotten. May block.
pub(super) fn logout(env: &Env) -> Result<Value, RpcError> {
    let removed = remove_api_key(&ConfigHome::from_env(env));
    removed.map_err(|error| RpcError::internal(format!("The key cannot be removed: {error}")))?;
    Ok(json!({}))
}

/// Says that there is nothing to authenticate with.
pub(super) fn required() -> RpcError {
    RpcError::new(
        AUTH_REQUIRED,
        "No API key is set: run `loci login` in a terminal, or set ANTHROPIC_API_KEY where the editor configures loci",
    )
}
