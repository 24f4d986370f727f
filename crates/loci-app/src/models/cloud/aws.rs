//! Keys for Amazon: what `awsCredentialExport` prints, variables, a profile (a role, keys, `credential_process`, a login of SSO),
//! the token of a web identity, a container, an instance, in this order. What is found is kept until five minutes before its end, or an hour.

mod chain;
mod role;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::stream::Failure;
use loci_http::{AwsKeys, AwsSigner, is_region};
use loci_llm::{Announcer, Auth, AuthFuture, AuthSource};
use loci_stdx::Env;

use super::ini::{self, Sections};
use super::{RENEWAL_LIMIT, unauthenticated};
use crate::credentials::helper::run_aloud;

pub(super) use chain::AwsChain;

/// How long before their end keys are got again.
const MARGIN: Duration = Duration::from_secs(5 * 60);
/// How long keys are kept that do not say when they end.
const USUAL_LIFE: Duration = Duration::from_secs(60 * 60);
/// How long finding keys may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What requests are signed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwsService {
    /// Bedrock's own protocol.
    Bedrock,
    /// Bedrock's door for the Messages API.
    Mantle,
    /// Claude Platform on AWS.
    AnthropicAws,
}

impl AwsService {
    /// Returns the name that a signature has for it.
    fn name(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock",
            Self::Mantle => "bedrock-mantle",
            Self::AnthropicAws => "aws-external-anthropic",
        }
    }
}

/// Keys, and when they end on the clock of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundKeys {
    pub(super) keys: AwsKeys,
    pub(super) expires: Option<jiff::Timestamp>,
}

/// Finds keys when they are needed.
pub(super) struct AwsSource {
    chain: AwsChain,
    state: Mutex<State>,
    /// Held while keys are looked for, so that requests at once look once.
    turn: tokio::sync::Mutex<()>,
}

/// Guarded for a few lines at a time.
#[derive(Default)]
struct State {
    found: Option<(FoundKeys, Duration)>,
    /// Keys that were refused last; the same again are only worth a try once their login was renewed.
    refused: Option<AwsKeys>,
}

impl AwsSource {
    pub(super) fn new(chain: AwsChain) -> Self {
        Self { chain, state: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    async fn find(&self) -> Result<Auth, Failure> {
        let _turn = self.turn.lock().await;
        let env = &self.chain.env;
        if let Some(keys) = self.fresh() {
            return Ok(self.auth(keys));
        }
        let refused = self.state().refused.take();
        let mut found = self.find_keys().await;
        let now = env.clock.now();
        let is_stale = found.as_ref().map_or(true, |found| {
            Some(&found.keys) == refused.as_ref() || found.expires.is_some_and(|end| end <= now)
        });
        if is_stale && let Some(command) = &self.chain.refresh {
            renew("awsAuthRefresh", command, env, &self.chain.announcer).await?;
            found = self.find_keys().await;
        }
        let found = found?;
        self.state().found = Some((found.clone(), env.clock.monotonic()));
        Ok(self.auth(found.keys))
    }

    async fn find_keys(&self) -> Result<FoundKeys, Failure> {
        let limit = self.limit();
        tokio::time::timeout(limit, self.chain.find()).await.unwrap_or_else(|_| {
            Err(unauthenticated(
                format!("Finding Amazon credentials took longer than {} s", limit.as_secs()),
                "Check the commands of `awsCredentialExport` and `credential_process`.",
            ))
        })
    }

    /// Returns how long finding keys may take: a login in a browser may take longer than is usual.
    fn limit(&self) -> Duration {
        let said = self.chain.env.vars.non_empty("CLAUDE_CODE_AWS_CHAIN_RESOLVE_TIMEOUT_MS");
        let said = said.and_then(|text| text.trim().parse().ok()).filter(|ms| *ms > 0);
        said.map_or(LIMIT, Duration::from_millis)
    }

    fn fresh(&self) -> Option<AwsKeys> {
        let env = &self.chain.env;
        if env.vars.is_truthy("CLAUDE_CODE_SKIP_AWS_CRED_CACHE") {
            return None;
        }
        let (found, since) = self.state().found.clone()?;
        let is_fresh = match found.expires {
            Some(end) => end.as_millisecond() - env.clock.now().as_millisecond() > MARGIN.as_millis() as i64,
            None => env.clock.monotonic().saturating_sub(since) < USUAL_LIFE,
        };
        is_fresh.then_some(found.keys)
    }

    fn auth(&self, keys: AwsKeys) -> Auth {
        Auth::Aws(Box::new(AwsSigner {
            keys,
            region: self.chain.region.clone(),
            service: self.chain.service.name(),
            now: self.chain.env.clock.now(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthSource for AwsSource {
    fn current(&self) -> AuthFuture<'_> {
        Box::pin(self.find())
    }

    fn refused(&self, auth: &Auth) -> bool {
        let mut state = self.state();
        state.found = None;
        state.refused = match auth {
            Auth::Aws(signer) => Some(signer.keys.clone()),
            _ => None,
        };
        true
    }
}

impl fmt::Debug for AwsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsSource")
    }
}

/// Runs a command that renews a login; people hear what it says (a page to open, a code), logs do not.
pub(super) async fn renew(
    setting: &str,
    command: &str,
    env: &Env,
    announcer: &Announcer,
) -> Result<(), Failure> {
    tracing::info!(target: "loci::api", setting, "credentials are renewed");
    let say = |line: &str| announcer.say(&format!("{setting}: {line}"));
    run_aloud(command, env, RENEWAL_LIMIT, say).await.map_err(|what| {
        unauthenticated(format!("The command of `{setting}` failed: {what}"), "Run it by hand.")
    })
}

/// Returns the region: of the environment, else of the profile, else the usual one.
pub(super) fn region(env: &Env) -> String {
    region_and_source(env).0
}

/// Returns the region, and where it comes from if no variable says it.
pub(super) fn region_and_source(env: &Env) -> (String, Option<&'static str>) {
    let said = ["AWS_REGION", "AWS_DEFAULT_REGION"].into_iter().filter_map(|name| env.vars.non_empty(name));
    if let Some(region) = said.map(str::trim).find(|text| is_region(text)) {
        return (region.to_owned(), None);
    }
    let profile = profile_name(env);
    let files = [credentials_file(env), config_file(env)];
    let named = files.into_iter().filter_map(|file| {
        read_sections(&file).get(&profile)?.get("region").cloned().filter(|region| is_region(region))
    });
    match named.into_iter().next() {
        Some(region) => (region, Some("of the AWS profile")),
        None => ("us-east-1".to_owned(), Some("the usual one")),
    }
}

fn profile_name(env: &Env) -> String {
    env.vars.non_empty("AWS_PROFILE").map_or("default", str::trim).to_owned()
}

fn credentials_file(env: &Env) -> PathBuf {
    file_of(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials")
}

fn config_file(env: &Env) -> PathBuf {
    file_of(env, "AWS_CONFIG_FILE", "config")
}

fn file_of(env: &Env, variable: &str, name: &str) -> PathBuf {
    match env.vars.non_empty(variable) {
        Some(path) => env.cwd.join(loci_core::path::expand_home(&env.home, path)),
        None => env.home.join(".aws").join(name),
    }
}

/// Reads a file; one that is not there has no sections.
fn read_sections(path: &std::path::Path) -> Sections {
    loci_stdx::read_regular_to_string(path).map(|text| ini::parse(&text)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
