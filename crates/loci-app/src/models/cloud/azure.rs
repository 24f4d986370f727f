//! Tokens for Azure: of a client that the environment names, by its secret or by the token of a workload's identity, of the
//! identity of an app, of the login that `az` keeps, else of the machine.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::stream::Failure;
use loci_http::{FORM, HttpCall, JsonPostError, Secret, http_call};
use loci_llm::{Auth, AuthFuture, AuthSource};
use loci_stdx::Env;
use serde_json::Value;

use super::google::form;
use super::unauthenticated;
use crate::credentials::helper::output_of;

const SCOPE: &str = "https://cognitiveservices.azure.com/.default";
const RESOURCE: &str = "https://cognitiveservices.azure.com";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const METADATA: &str = "http://169.254.169.254";
const AZ: &str = "az account get-access-token --resource https://cognitiveservices.azure.com --output json";
/// How long a token is used that does not say how long it lasts; they last an hour or more.
const LIFE: Duration = Duration::from_secs(50 * 60);
/// How long before its end a token is got again.
const MARGIN: Duration = Duration::from_secs(5 * 60);
const LIMIT: Duration = Duration::from_secs(60);
/// How long the machine itself may take: it is near, or not there.
const NEAR: Duration = Duration::from_secs(1);

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

    /// Asks one place after the other, as Azure's own libraries do; the machine itself last, for it may not be there.
    async fn fetch(&self) -> Result<(Secret, Duration), String> {
        let said = |name: &str| self.env.vars.non_empty(name).map(str::trim);
        if let (Some(tenant), Some(client)) = (said("AZURE_TENANT_ID"), said("AZURE_CLIENT_ID")) {
            if let Some(secret) = said("AZURE_CLIENT_SECRET") {
                return self.token_of_client(tenant, client, &[("client_secret", secret)]).await;
            }
            if let Some(file) = said("AZURE_FEDERATED_TOKEN_FILE") {
                let token = loci_stdx::read_regular_to_string(self.env.cwd.join(file));
                let token =
                    token.map_err(|error| format!("the token in `{file}` cannot be read: {error}"))?;
                let proof = [("client_assertion_type", ASSERTION_TYPE), ("client_assertion", token.trim())];
                return self.token_of_client(tenant, client, &proof).await;
            }
        }
        if let (Some(url), Some(header)) = (said("IDENTITY_ENDPOINT"), said("IDENTITY_HEADER")) {
            let header = ("x-identity-header".to_owned(), header.to_owned());
            return self.token_of_machine(url, "2019-08-01", header, LIMIT).await;
        }
        let login = match self.token_of_login().await {
            Ok(token) => return Ok(token),
            Err(what) => what,
        };
        let metadata = ("metadata".to_owned(), "true".to_owned());
        let machine = self.token_of_machine(&self.metadata_url(), "2018-02-01", metadata, NEAR).await;
        machine.map_err(|_| login)
    }

    fn metadata_url(&self) -> String {
        let host = self.env.vars.non_empty("AZURE_POD_IDENTITY_AUTHORITY_HOST").unwrap_or(METADATA);
        format!("{}/metadata/identity/oauth2/token", host.trim_end_matches('/'))
    }

    async fn token_of_login(&self) -> Result<(Secret, Duration), String> {
        let text = output_of(AZ, &self.env, LIMIT).await.map_err(|what| format!("`az`: {what}"))?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let token = value["accessToken"].as_str().ok_or("`az` printed none")?;
        Ok((Secret::new(token), self.life_until(&value["expires_on"])))
    }

    /// Asks the machine for the token of its identity: a virtual machine, an app, a function.
    async fn token_of_machine(
        &self,
        url: &str,
        version: &str,
        header: (String, String),
        limit: Duration,
    ) -> Result<(Secret, Duration), String> {
        let mut query = vec![("api-version", version), ("resource", RESOURCE)];
        query.extend(self.env.vars.non_empty("AZURE_CLIENT_ID").map(|id| ("client_id", id.trim())));
        let url = format!("{url}?{}", form(&query));
        let call = HttpCall { method: "GET", url, headers: vec![header], body: None, limit };
        let value = self.answer(call).await?;
        let token = value["access_token"].as_str().ok_or("the machine gave none")?;
        Ok((Secret::new(token), self.life_until(&value["expires_on"])))
    }

    /// Trades what a client proves itself with for a token.
    async fn token_of_client(
        &self,
        tenant: &str,
        client: &str,
        proof: &[(&str, &str)],
    ) -> Result<(Secret, Duration), String> {
        let host =
            self.env.vars.non_empty("AZURE_AUTHORITY_HOST").unwrap_or("https://login.microsoftonline.com");
        let mut fields = vec![("grant_type", "client_credentials"), ("client_id", client)];
        fields.extend(proof);
        fields.push(("scope", SCOPE));
        let call = HttpCall {
            method: "POST",
            url: format!("{}/{tenant}/oauth2/v2.0/token", host.trim_end_matches('/')),
            headers: Vec::new(),
            body: Some((FORM, form(&fields))),
            limit: LIMIT,
        };
        let value = self.answer(call).await?;
        let token = value["access_token"].as_str().ok_or("the answer has none")?;
        Ok((Secret::new(token), life(value["expires_in"].as_u64())))
    }

    /// Of a refusal the status is enough; its words may repeat a secret.
    async fn answer(&self, call: HttpCall) -> Result<Value, String> {
        let (status, body) = http_call(&self.env, call).await.map_err(|error| match error {
            JsonPostError::TimedOut => "no answer in time".to_owned(),
            JsonPostError::Failed(what) => what,
        })?;
        match status {
            200 => Ok(serde_json::from_str(&body).unwrap_or_default()),
            status => Err(format!("the answer is {status}")),
        }
    }

    /// Reads the second of a token's end, a number or its digits.
    fn life_until(&self, end: &Value) -> Duration {
        let end = end.as_i64().or_else(|| end.as_str()?.parse().ok());
        let now = self.env.clock.now().as_second();
        life(end.and_then(|end| u64::try_from(end - now).ok()))
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
    async fn identities_of_workloads_apps_and_machines_get_tokens() {
        let azure = HttpDouble::start(|request| match request.header("metadata") {
            _ if request.path.starts_with("/refused") => (404, String::new()),
            Some(_) => (200, r#"{"access_token":"of-machine","expires_on":"1767330245"}"#.to_owned()),
            None if request.method == "GET" => (200, r#"{"access_token":"of-app"}"#.to_owned()),
            None => (200, r#"{"access_token":"of-workload","expires_in":3599}"#.to_owned()),
        });
        let (home, base) = (TestHome::new(), azure.base_url());
        let file = home.write_home("token", "assertion-1\n").display().to_string();
        let (app, refused) = (format!("{base}/app"), format!("{base}/refused"));
        let workload = [
            ("AZURE_AUTHORITY_HOST", base.as_str()),
            ("AZURE_TENANT_ID", "tenant"),
            ("AZURE_CLIENT_ID", "client"),
            ("AZURE_FEDERATED_TOKEN_FILE", &file),
        ];
        let machine = [("AZURE_POD_IDENTITY_AUTHORITY_HOST", base.as_str()), ("PATH", "/nowhere")];
        let nowhere = [("AZURE_POD_IDENTITY_AUTHORITY_HOST", refused.as_str()), ("PATH", "/nowhere")];
        for (vars, expected) in [
            (&workload[..], "of-workload"),
            (&[("IDENTITY_ENDPOINT", app.as_str()), ("IDENTITY_HEADER", "h")], "of-app"),
            (&machine, "of-machine"),
        ] {
            assert_eq!(show(&AzureSource::new(env(&home, vars))).await, expected);
        }
        let said = show(&AzureSource::new(env(&home, &nowhere))).await;
        assert!(said.contains("No Azure token: `az`"), "{said}");
        assert!(azure.bodies()[0].contains("&client_assertion=assertion-1&scope="), "{:?}", azure.bodies());
        let resource = "resource=https%3A%2F%2Fcognitiveservices.azure.com";
        assert_eq!(azure.paths()[1], format!("GET /app?api-version=2019-08-01&{resource}"));
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
