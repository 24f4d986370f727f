//! Which credentials requests carry, and getting them again.
//!
//! In this order: `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_API_KEY`, what the command of `apiKeyHelper` prints,
//! `CLAUDE_CODE_OAUTH_TOKEN`, the key that `loci login` keeps, the login that `.credentials.json` keeps. What the command printed is used for
//! five minutes (`CLAUDE_CODE_API_KEY_HELPER_TTL_MS`), until the server refuses it, or until settings change,
//! whichever comes first. The files are read anew for each request, since another program renews them.

pub(crate) mod helper;
pub mod login;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use loci_engine::ReloadPoint;
use loci_http::Secret;
use loci_llm::{Announcer, Auth, AuthFuture, AuthSource};
use loci_settings::Settings;
use loci_stdx::Env;
use loci_storage::config::{StoredLoginError, stored_api_key, stored_login};
use loci_storage::layout::ConfigHome;

/// How long a key of the helper is used unless the user says otherwise.
const USUAL_TTL: Duration = Duration::from_secs(5 * 60);
/// The variable that says otherwise, in milliseconds.
const TTL: &str = "CLAUDE_CODE_API_KEY_HELPER_TTL_MS";
/// The variable with a token of a login.
const LOGIN_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// The credentials of a session.
pub(crate) struct Credentials {
    home: ConfigHome,
    state: Mutex<State>,
    /// Held while the command runs, so that requests at once run it once.
    helper: tokio::sync::Mutex<()>,
    /// Who hears that the command takes long.
    announcer: Announcer,
}

/// Guarded for a few lines at a time, never while waiting.
struct State {
    configured: CredentialSettings,
    key: Option<Key>,
    /// Another command of the settings, until the next prompt.
    waiting: Option<String>,
    /// Counts changes of the settings: a key that was asked for before one is not kept after it.
    generation: u64,
}

/// What environment and settings say.
#[derive(Clone)]
struct CredentialSettings {
    env: Env,
    helper: Option<String>,
    may_use_login: bool,
}

/// A key that the command printed.
struct Key {
    secret: Secret,
    since: Duration,
}

impl CredentialSettings {
    fn new(env: &Env, settings: &Settings) -> Self {
        let is_allowed = |method: &String| method == "claudeai";
        Self {
            env: env.clone(),
            helper: settings.api_key_helper.clone(),
            // Whose a stored login is cannot be told, so it does not do where that matters.
            may_use_login: settings.force_login_method.as_ref().is_none_or(is_allowed)
                && !settings.forces_login_org,
        }
    }

    fn ttl(&self) -> Duration {
        let said = self.env.vars.non_empty(TTL).and_then(|text| text.trim().parse().ok());
        said.map_or(USUAL_TTL, Duration::from_millis)
    }
}

impl Credentials {
    /// Takes what environment and settings say; nothing is run or read yet.
    pub(crate) fn new(home: &ConfigHome, env: &Env, settings: &Settings) -> Self {
        let state = State {
            configured: CredentialSettings::new(env, settings),
            key: None,
            waiting: None,
            generation: 0,
        };
        Self {
            home: home.clone(),
            state: Mutex::new(state),
            helper: tokio::sync::Mutex::default(),
            announcer: Announcer::default(),
        }
    }

    /// Has somebody hear that the command takes long.
    pub(crate) fn announced_by(self, announcer: Announcer) -> Self {
        Self { announcer, ..self }
    }

    /// Takes what environment and settings say now, and forgets keys got before. Between prompts a new command
    /// waits, since a call of this very turn may have written it; returns whether one does.
    pub(crate) fn reload(&self, env: &Env, settings: &Settings, moment: ReloadPoint) -> bool {
        let mut state = self.state();
        let generation = state.generation + 1;
        let mut configured = CredentialSettings::new(env, settings);
        let is_new = configured.helper.is_some() && configured.helper != state.configured.helper;
        let waiting = if is_new && moment == ReloadPoint::Call {
            std::mem::replace(&mut configured.helper, state.configured.helper.clone())
        } else {
            None
        };
        let waits = waiting.is_some();
        *state = State { configured, key: None, waiting, generation };
        waits
    }

    /// A prompt has come: a command that waited for it counts.
    pub(crate) fn activate_waiting_helper(&self) {
        let mut state = self.state();
        if let Some(command) = state.waiting.take() {
            state.configured.helper = Some(command);
            state.key = None;
            state.generation += 1;
        }
    }

    /// Names where credentials come from; none when there are none, and why when they cannot be used.
    pub(crate) fn source(&self) -> Result<Option<&'static str>, StoredLoginError> {
        let configured = self.state().configured.clone();
        let from_vars = match Auth::from_vars(&configured.env.vars) {
            Auth::Bearer(_) => Some("ANTHROPIC_AUTH_TOKEN"),
            Auth::ApiKey(_) => Some("ANTHROPIC_API_KEY"),
            Auth::Both(_) | Auth::Google { .. } | Auth::Aws(_) | Auth::None => None,
        };
        let helper = configured.helper.is_some().then_some("apiKeyHelper");
        let token = configured.env.vars.non_empty(LOGIN_TOKEN).map(|_| LOGIN_TOKEN);
        match from_vars.or(helper).or(token) {
            None if configured.may_use_login => match stored_api_key(&self.home)? {
                Some(_) => Ok(Some("loci login")),
                None => Ok(stored_login(&self.home)?.map(|_| "oauth")),
            },
            known => Ok(known),
        }
    }

    async fn find(&self) -> Result<Auth, Failure> {
        let (configured, generation) = {
            let state = self.state();
            (state.configured.clone(), state.generation)
        };
        let fixed = Auth::from_vars(&configured.env.vars);
        if fixed != Auth::None {
            return Ok(fixed);
        }
        if let Some(command) = &configured.helper {
            return self.key(&configured, command, generation).await.map(Auth::Both);
        }
        match configured.env.vars.non_empty(LOGIN_TOKEN) {
            Some(token) => Ok(Auth::Bearer(Secret::new(token.trim()))),
            None if configured.may_use_login => self.login(&configured.env),
            None => Ok(Auth::None),
        }
    }

    /// Returns the helper's key, the one it gave before while that is fresh.
    async fn key(
        &self,
        configured: &CredentialSettings,
        command: &str,
        generation: u64,
    ) -> Result<Secret, Failure> {
        let _turn = self.helper.lock().await;
        let now = configured.env.clock.monotonic();
        if let Some(key) = &self.state().key
            && now.saturating_sub(key.since) < configured.ttl()
        {
            return Ok(key.secret.clone());
        }
        let secret = helper::key(command, &configured.env, &self.announcer).await?;
        let mut state = self.state();
        if state.generation == generation {
            state.key = Some(Key { secret: secret.clone(), since: configured.env.clock.monotonic() });
        }
        Ok(secret)
    }

    fn login(&self, env: &Env) -> Result<Auth, Failure> {
        let failed = |message: String| {
            Failure::new(FailureKind::Unauthenticated, message)
                .with_hint("Log in again with the program that keeps the login, or set ANTHROPIC_API_KEY.")
        };
        if let Some(key) = stored_api_key(&self.home).map_err(|error| failed(error.to_string()))? {
            return Ok(Auth::ApiKey(Secret::new(key)));
        }
        let Some(login) = stored_login(&self.home).map_err(|error| failed(error.to_string()))? else {
            return Ok(Auth::None);
        };
        let now = env.clock.now().as_millisecond();
        if login.expires_at.is_some_and(|end| end <= now) {
            return Err(failed("The stored login has expired".to_owned()));
        }
        Ok(Auth::Bearer(Secret::new(login.access_token)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthSource for Credentials {
    fn current(&self) -> AuthFuture<'_> {
        Box::pin(self.find())
    }

    fn refused(&self, auth: &Auth) -> bool {
        let mut state = self.state();
        if let (Auth::Both(refused), Some(key)) = (auth, &state.key)
            && key.secret == *refused
        {
            state.key = None;
        }
        Auth::from_vars(&state.configured.env.vars) == Auth::None
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

#[cfg(test)]
mod tests;
