//! Tokens for Azure: of a client that the environment names, else of the login that `az` keeps.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::stream::Failure;
use loci_llm::{Auth, AuthFuture, AuthSource, FORM, HttpCall, JsonPostError, Secret, http_call};
use loci_stdx::Env;
use serde_json::Value;

use super::google::form;
use super::unauthenticated;
use crate::credentials::helper::output_of;

const SCOPE: &str = "https://cognitiveservices.azure.com/.default";
const AZ: &str = "az account get-access-token --resource https://cognitiveservices.azure.com --output json";
/// How long a token is used that does not say how long it lasts; they last an hour or more.
const LIFE: Duration = Duration::from_secs(50 * 60);
/// How long before its end a token is got again.
const MARGIN: Duration = Duration::from_secs(5 * 60);
const LIMIT: Duration = Duration::from_secs(60);

/// Gets tokens when they are needed.
pub(super) struct AzureSource {
    env: Env,
    /// The token and until when it is used; held to look or to change.
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
        let fresh = self.cached_token().clone().filter(|(_, until)| now < *until);
        if let Some((token, _)) = fresh {
            return Ok(Auth::Bearer(token));
        }
        let (token, life) = self.fetch().await.map_err(|what| {
            unauthenticated(
                format!("No Azure token: {what}"),
                "Set ANTHROPIC_FOUNDRY_API_KEY, or log in with `az login`.",
            )
        })?;
        *self.cached_token() = Some((token.clone(), now + life));
        Ok(Auth::Bearer(token))
    }

    async fn fetch(&self) -> Result<(Secret, Duration), String> {
        let said = |name: &str| self.env.vars.non_empty(name);
        match (said("AZURE_TENANT_ID"), said("AZURE_CLIENT_ID"), said("AZURE_CLIENT_SECRET")) {
            (Some(tenant), Some(client), Some(secret)) => self.of_client(tenant, client, secret).await,
            _ => {
                let text = output_of(AZ, &self.env, LIMIT).await.map_err(|what| format!("`az`: {what}"))?;
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                let token = value["accessToken"].as_str().ok_or("`az` printed none")?;
                // As a number it is the second of its end.
                let now = self.env.clock.now().as_second();
                let left = value["expires_on"].as_i64().and_then(|end| u64::try_from(end - now).ok());
                Ok((Secret::new(token), life(left)))
            }
        }
    }

    async fn of_client(
        &self,
        tenant: &str,
        client: &str,
        secret: &str,
    ) -> Result<(Secret, Duration), String> {
        let host =
            self.env.vars.non_empty("AZURE_AUTHORITY_HOST").unwrap_or("https://login.microsoftonline.com");
        let call = HttpCall {
            method: "POST",
            url: format!("{}/{tenant}/oauth2/v2.0/token", host.trim_end_matches('/')),
            headers: Vec::new(),
            body: Some((
                FORM,
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
        let token = token.map(Secret::new).ok_or_else(|| format!("the answer is {status}"))?;
        Ok((token, life(value["expires_in"].as_u64())))
    }

    fn cached_token(&self) -> MutexGuard<'_, Option<(Secret, Duration)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how long a token is used that lasts so many seconds.
fn life(seconds: Option<u64>) -> Duration {
    seconds.map_or(LIFE, |seconds| Duration::from_secs(seconds).saturating_sub(MARGIN))
}

impl AuthSource for AzureSource {
    fn current(&self) -> AuthFuture<'_> {
        Box::pin(self.find())
    }

    fn refused(&self, _auth: &Auth) -> bool {
        *self.cached_token() = None;
        true
    }
}

impl fmt::Debug for AzureSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AzureSource")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_testkit::{HttpDouble, TestHome};

    async fn show(source: &AzureSource) -> String {
        match source.current().await {
            Ok(Auth::Bearer(token)) => token.expose().to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(failure) => failure.message,
        }
    }

    fn env(home: &TestHome, vars: &[(&str, &str)]) -> Env {
        let mut env = Env::for_test(home.home(), home.project());
        env.vars = [("PATH", "/usr/bin:/bin")].into_iter().chain(vars.iter().copied()).collect();
        env
    }

    #[tokio::test]
    async fn client_of_the_environment_gets_a_token_once_and_again_when_it_is_refused() {
        let entra = HttpDouble::start(|request| {
            let is_right = String::from_utf8_lossy(&request.body).contains("client_secret=s%26cret");
            match is_right {
                true => (200, r#"{"access_token":"entra-token","expires_in":3599}"#.to_owned()),
                false => {
                    (401, r#"{"error":"invalid_client","error_description":"s&cret is wrong"}"#.to_owned())
                }
            }
        });
        let home = TestHome::new();
        let base = entra.base_url();
        let vars = |secret: &'static str| {
            vec![
                ("AZURE_AUTHORITY_HOST", base.as_str()),
                ("AZURE_TENANT_ID", "tenant"),
                ("AZURE_CLIENT_ID", "client"),
                ("AZURE_CLIENT_SECRET", secret),
            ]
        };
        let source = AzureSource::new(env(&home, &vars("s&cret")));
        assert_eq!((show(&source).await, show(&source).await), ("entra-token".into(), "entra-token".into()));
        assert_eq!(entra.paths(), ["POST /tenant/oauth2/v2.0/token"]);
        assert_eq!(
            entra.bodies(),
            [
                "grant_type=client_credentials&client_id=client&client_secret=s%26cret&scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default"
            ]
        );
        let auth = source.current().await.unwrap();
        assert!(source.refused(&auth));
        assert_eq!((show(&source).await.as_str(), entra.paths().len()), ("entra-token", 2));
        let said = show(&AzureSource::new(env(&home, &vars("wrong")))).await;
        assert!(said.contains("the answer is 401") && !said.contains("s&cret"), "{said}");
    }

    #[tokio::test]
    async fn token_is_got_again_before_it_ends() {
        for (answer, n_asked) in [
            (r#"{"access_token":"t","expires_in":3599}"#, 1),
            (r#"{"access_token":"t"}"#, 1),
            (r#"{"access_token":"t","expires_in":200}"#, 2),
        ] {
            let entra = HttpDouble::start(move |_| (200, answer.to_owned()));
            let (home, base) = (TestHome::new(), entra.base_url());
            let client =
                ["AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"].map(|name| (name, "x"));
            let vars: Vec<_> = [("AZURE_AUTHORITY_HOST", base.as_str())].into_iter().chain(client).collect();
            let source = AzureSource::new(env(&home, &vars));
            assert_eq!((show(&source).await, show(&source).await), ("t".into(), "t".into()), "{answer}");
            assert_eq!(entra.paths().len(), n_asked, "{answer}");
        }
    }

    #[tokio::test]
    async fn login_of_az_is_used_where_the_environment_names_no_client() {
        let home = TestHome::new();
        let bin = home.write_home("bin/az", "#!/bin/sh\necho \"{\\\"accessToken\\\": \\\"az-$4\\\"}\"\n");
        std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", bin.parent().unwrap().display());
        let source = AzureSource::new(env(&home, &[("PATH", &path)]));
        assert_eq!(show(&source).await, "az-https://cognitiveservices.azure.com");
    }
}
