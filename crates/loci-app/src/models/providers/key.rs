//! A provider's key that a command prints (`apiKeyHelper` of its entry).

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::stream::Failure;
use loci_http::Secret;
use loci_llm::{Announcer, Auth, AuthFuture, AuthSource, WireProtocol};
use loci_stdx::Env;

use super::auth;
use crate::credentials::helper;

/// How long a key is used before the command is run again.
const TTL: Duration = Duration::from_secs(5 * 60);

/// The key that a command prints, kept while it is fresh.
pub(super) struct HelperKey {
    command: String,
    env: Env,
    protocol: WireProtocol,
    /// Who hears that the command takes long.
    announcer: Announcer,
    /// The key and when it came; held to look or to change.
    kept: Mutex<Option<(Secret, Duration)>>,
    /// Held while the command runs, so that requests at once run it once.
    turn: tokio::sync::Mutex<()>,
}

impl HelperKey {
    pub(super) fn new(command: String, env: Env, protocol: WireProtocol, announcer: Announcer) -> Self {
        let (kept, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { command, env, protocol, announcer, kept, turn }
    }

    async fn find(&self) -> Result<Auth, Failure> {
        let _turn = self.turn.lock().await;
        let now = self.env.clock.monotonic();
        let fresh = self.cached_token().clone().filter(|(_, since)| now.saturating_sub(*since) < TTL);
        let key = match fresh {
            Some((key, _)) => key,
            None => helper::key(&self.command, &self.env, &self.announcer).await?,
        };
        *self.cached_token() = Some((key.clone(), now));
        Ok(auth(self.protocol, key))
    }

    fn cached_token(&self) -> MutexGuard<'_, Option<(Secret, Duration)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthSource for HelperKey {
    fn current(&self) -> AuthFuture<'_> {
        Box::pin(self.find())
    }

    fn refused(&self, _auth: &Auth) -> bool {
        *self.cached_token() = None;
        true
    }
}

impl fmt::Debug for HelperKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HelperKey")
    }
}
