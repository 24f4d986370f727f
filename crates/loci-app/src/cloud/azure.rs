//! Tokens for Azure: of a client that the environment names, else of the login that `az` keeps.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::stream::Failure;
use loci_llm::{Auth, AuthFuture, AuthSource, HttpCall, JsonPostError, Secret, http_call};
use loci_stdx::Env;
use serde_json::Value;

use super::google::form;
use super::unauthenticated;
use crate::credentials::helper::output_of;

const SCOPE: &str = "https://cognitiveservices.azure.com/.default";
const AZ: &str = "az account get-access-token --resource https://cognitiveservices.azure.com --output json";
/// How long a token is used; they last an hour or more.
const LIFE: Duration = Duration::from_secs(50 * 60);
const LIMIT: Duration = Duration::from_secs(60);

/// Gets tokens when they are needed.
pub(super) struct AzureSource {
    env: Env,
    /// The token and since when; held to look or to change.
    kept: Mutex<Option<(Secret, Duration)>>,
    /// Held while a token is got, so that requests at once get one.
    turn: tokio::sync::Mutex<()>,
}

impl AzureSource {
    pub(super) fn new(env: Env) -> Self {
        Self { env, kept: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    async fn find(&self) -> Result<Auth, Failure> {
        let _turn = self.turn.lock().await;
        let now = self.env.clock.monotonic();
        let fresh = self.kept().clone().filter(|(_, since)| now.saturating_sub(*since) < LIFE);
        if let Some((token, _)) = fresh {
            return Ok(Auth::Bearer(token));
        }
        let token = self.fetch().await.map_err(|what| {
            unauthenticated(
                format!("No Azure token: {what}"),
                "Set ANTHROPIC_FOUNDRY_API_KEY, or log in with `az login`.",
            )
        })?;
        *self.kept() = Some((token.clone(), now));
        Ok(Auth::Bearer(token))
    }

    async fn fetch(&self) -> Result<Secret, String> {
        let said = |name: &str| self.env.vars.non_empty(name);
        match (said("AZURE_TENANT_ID"), said("AZURE_CLIENT_ID"), said("AZURE_CLIENT_SECRET")) {
            (Some(tenant), Some(client), Some(secret)) => self.of_client(tenant, client, secret).await,
            _ => {
                let text = output_of(AZ, &self.env, LIMIT).await.map_err(|what| format!("`az`: {what}"))?;
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                let token = value["accessToken"].as_str().ok_or("`az` printed none")?;
                Ok(Secret::new(token))
            }
        }
    }

    async fn of_client(&self, tenant: &str, client: &str, secret: &str) -> Result<Secret, String> {
        let host =
            self.env.vars.non_empty("AZURE_AUTHORITY_HOST").unwrap_or("https://login.microsoftonline.com");
        let call = HttpCall {
            method: "POST",
            url: format!("{}/{tenant}/oauth2/v2.0/token", host.trim_end_matches('/')),
            headers: Vec::new(),
            body: Some((
                "application/x-www-form-urlencoded",
                form(&[
                    ("grant_type", "client_credentials"),
                    ("client_id", client),
                    ("client_secret", secret),
                    ("scope", SCOPE),
                ]),
            )),
            limit: LIMIT,
        };
        let (status, body) = http_call(&self.env, call).await.map_err(|error| match error {
            JsonPostError::TimedOut => "no answer in time".to_owned(),
            JsonPostError::Failed(what) => what,
        })?;
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        let token = value["access_token"].as_str().filter(|_| status == 200);
        token.map(Secret::new).ok_or_else(|| format!("the answer is {status}"))
    }

    fn kept(&self) -> MutexGuard<'_, Option<(Secret, Duration)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthSource for AzureSource {
    fn current(&self) -> AuthFuture<'_> {
        Box::pin(self.find())
    }

    fn refused(&self, _auth: &Auth) -> bool {
        *self.kept() = None;
        true
    }
}

impl fmt::Debug for AzureSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AzureSource")
    }
}
