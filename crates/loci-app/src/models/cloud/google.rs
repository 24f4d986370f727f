//! Tokens for Google: of the file that `GOOGLE_APPLICATION_CREDENTIALS` names, of gcloud's own, of the metadata server.
//!
//! A file holds a login (`authorized_user`), a service account, or how to get a token of either by way of somebody else
//! (`federation.rs`). A token is kept until five minutes before its end.

mod federation;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::stream::Failure;
use loci_http::{FORM, HttpCall, Secret, http_call};
use loci_llm::{Announcer, Auth, AuthFuture, AuthSource, service_account_jwt};
use loci_stdx::Env;
use serde_json::Value;

use super::aws::renew;
use super::unauthenticated;
use crate::user_error::UserError;

const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const METADATA: &str = "http://metadata.google.internal";
const HINT: &str = "Log in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file.";
/// How long before its end a token is got again.
const MARGIN: Duration = Duration::from_secs(5 * 60);
/// How long the token server may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the metadata server may take: it is near, or not there.
const NEAR: Duration = Duration::from_secs(2);

/// A token and when it ends, on the monotonic clock.
#[derive(Clone)]
struct Token {
    secret: Secret,
    until: Duration,
    quota_project: Option<String>,
}

/// Gets tokens when they are needed.
pub(super) struct GoogleSource {
    env: Env,
    refresh: Option<String>,
    /// By whom people hear what that command says.
    announcer: Announcer,
    /// Held to look or to change.
    state: Mutex<State>,
    /// Held while a token is got, so that requests at once get one.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    was_refused: bool,
}

impl GoogleSource {
    pub(super) fn new(env: Env, refresh: Option<String>, announcer: Announcer) -> Self {
        Self { env, refresh, announcer, state: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    async fn find(&self) -> Result<Auth, Failure> {
        let _turn = self.turn.lock().await;
        let now = self.env.clock.monotonic();
        let kept = self.state().token.clone().filter(|token| now + MARGIN < token.until);
        let token = match kept {
            Some(token) => token,
            None => self.fetch_or_renew().await?,
        };
        self.state().token = Some(token.clone());
        Ok(Auth::Google { token: token.secret, quota_project: token.quota_project })
    }

    /// Gets a token; where that fails and there is a command for it, once more after the command.
    async fn fetch_or_renew(&self) -> Result<Token, Failure> {
        let was_refused = std::mem::take(&mut self.state().was_refused);
        let Some(command) = &self.refresh else { return self.fetch().await };
        if !was_refused && let Ok(token) = self.fetch().await {
            return Ok(token);
        }
        renew("gcpAuthRefresh", command, &self.env, &self.announcer).await?;
        self.fetch().await
    }

    async fn fetch(&self) -> Result<Token, Failure> {
        let Some((path, file)) = self.file()? else { return self.metadata_token().await };
        let token = match file["type"].as_str() {
            Some("impersonated_service_account") => match self.own_token(&file["source_credentials"]).await {
                Ok(own) => self.impersonated_token(&file, &own).await,
                Err(what) => Err(what),
            },
            _ => self.own_token(&file).await,
        };
        let token = token.map_err(|what| {
            unauthenticated(format!("No Google token from `{}`: {what}", path.display()), HINT)
        })?;
        let quota_project = file["quota_project_id"].as_str().map(str::to_owned);
        Ok(Token { quota_project, ..token })
    }

    /// Gets a token by what credentials say of themselves; the error says why there is none.
    async fn own_token(&self, file: &Value) -> Result<Token, String> {
        let said = |name: &str| file[name].as_str().unwrap_or_default();
        let url = if said("token_uri").is_empty() { TOKEN_URL } else { said("token_uri") };
        let form = match said("type") {
            "authorized_user" => form(&[
                ("grant_type", "refresh_token"),
                ("client_id", said("client_id")),
                ("client_secret", said("client_secret")),
                ("refresh_token", said("refresh_token")),
            ]),
            "service_account" => {
                let (key, now) = (Secret::new(said("private_key")), self.env.clock.now().as_second());
                let jwt = service_account_jwt(said("client_email"), &key, said("private_key_id"), url, now);
                let jwt = jwt?;
                form(&[
                    ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                    ("assertion", jwt.expose()),
                ])
            }
            "external_account" => return self.federated_token(file).await,
            other => return Err(format!("credentials of the type `{other}` are not supported")),
        };
        let call = HttpCall {
            method: "POST",
            url: url.to_owned(),
            headers: Vec::new(),
            body: Some((FORM, form)),
            limit: LIMIT,
        };
        self.token(call, None).await
    }

    /// Reads the file with the credentials; none, where there is none.
    fn file(&self) -> Result<Option<(PathBuf, Value)>, Failure> {
        let env = &self.env;
        let named = env.vars.non_empty("GOOGLE_APPLICATION_CREDENTIALS").map(|path| env.cwd.join(path));
        let is_named = named.is_some();
        let path = named.unwrap_or_else(|| gcloud_dir(env).join("application_default_credentials.json"));
        let failed = |what: String| {
            unauthenticated(format!("`{}` holds no Google credentials: {what}", path.display()), HINT)
        };
        match loci_stdx::read_regular_to_string(&path) {
            Ok(text) => {
                let value = serde_json::from_str(&text).map_err(|_| failed("it is not JSON".to_owned()))?;
                Ok(Some((path, value)))
            }
            Err(error) if is_named => Err(failed(error.to_string())),
            Err(_) => Ok(None),
        }
    }

    async fn metadata_token(&self) -> Result<Token, Failure> {
        let host = self.env.vars.non_empty("GCE_METADATA_HOST").map(|host| format!("http://{host}"));
        let base = host.as_deref().unwrap_or(METADATA);
        let call = HttpCall {
            method: "GET",
            url: format!("{base}/computeMetadata/v1/instance/service-accounts/default/token"),
            headers: vec![("metadata-flavor".to_owned(), "Google".to_owned())],
            body: None,
            limit: NEAR,
        };
        let token = self.token(call, None).await;
        token.map_err(|what| {
            let message =
                format!("No Google credentials were found: no file, and no metadata server ({what})");
            unauthenticated(message, HINT)
        })
    }

    async fn token(&self, call: HttpCall, quota_project: Option<String>) -> Result<Token, String> {
        let (status, body) = http_call(&self.env, call).await.map_err(federation::words)?;
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        match value["access_token"].as_str() {
            Some(token) if status == 200 => {
                let seconds = value["expires_in"].as_u64().unwrap_or(3600);
                let until = self.env.clock.monotonic() + Duration::from_secs(seconds);
                Ok(Token { secret: Secret::new(token), until, quota_project })
            }
            // The description says what is wrong with a login, and holds no secret.
            _ => Err(format!(
                "the answer is {status} {}",
                value["error_description"].as_str().unwrap_or_default()
            )),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthSource for GoogleSource {
    fn current(&self) -> AuthFuture<'_> {
        Box::pin(self.find())
    }

    fn refused(&self, _auth: &Auth) -> bool {
        let mut state = self.state();
        *state = State { token: None, was_refused: true };
        true
    }
}

impl fmt::Debug for GoogleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GoogleSource")
    }
}

/// Returns the project that pays: of the environment, else of the credentials' file.
pub(super) fn project(env: &Env) -> Result<String, UserError> {
    let names = ["ANTHROPIC_VERTEX_PROJECT_ID", "GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT"];
    if let Some(project) = names.into_iter().find_map(|name| env.vars.non_empty(name)) {
        return Ok(project.trim().to_owned());
    }
    let source = GoogleSource::new(env.clone(), None, Announcer::default());
    let file = source.file().ok().flatten();
    let said = file
        .as_ref()
        .and_then(|(_, file)| file["project_id"].as_str().or_else(|| file["quota_project_id"].as_str()));
    said.map(str::to_owned).or_else(|| gcloud_project(env)).ok_or_else(|| {
        UserError::new("CLAUDE_CODE_USE_VERTEX is set, but not the project that pays")
            .hint("Set ANTHROPIC_VERTEX_PROJECT_ID.")
    })
}

/// Returns the project of gcloud's own configuration that is active (`gcloud config set project`).
fn gcloud_project(env: &Env) -> Option<String> {
    if let Some(project) = env.vars.non_empty("CLOUDSDK_CORE_PROJECT") {
        return Some(project.trim().to_owned());
    }
    let read = |path: PathBuf| loci_stdx::read_regular_to_string(path).ok();
    let named = env.vars.non_empty("CLOUDSDK_ACTIVE_CONFIG_NAME").map(str::to_owned);
    let named = named.or_else(|| read(gcloud_dir(env).join("active_config")));
    let name = named.as_deref().map_or("default", str::trim);
    let file = read(gcloud_dir(env).join("configurations").join(format!("config_{name}")))?;
    super::ini::parse(&file).get("core")?.get("project").cloned().filter(|project| !project.is_empty())
}

fn gcloud_dir(env: &Env) -> PathBuf {
    match env.vars.non_empty("CLOUDSDK_CONFIG") {
        Some(dir) => env.cwd.join(dir),
        None => env.home.join(".config/gcloud"),
    }
}

/// Writes a form.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    let encoded = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_testkit::{HttpDouble, TestHome};

    async fn show(source: &GoogleSource) -> String {
        match source.current().await {
            Ok(Auth::Google { token, quota_project }) => {
                format!("{} {}", token.expose(), quota_project.unwrap_or_default())
            }
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
    async fn metadata_server_gives_a_token_where_there_is_no_file() {
        let metadata = HttpDouble::start(|request| match request.header("metadata-flavor") {
            Some("Google") => (200, r#"{"access_token":"of-the-instance","expires_in":3600}"#.to_owned()),
            _ => (403, String::new()),
        });
        let home = TestHome::new();
        let source = GoogleSource::new(
            env(&home, &[("GCE_METADATA_HOST", &metadata.authority())]),
            None,
            Announcer::default(),
        );
        assert_eq!(show(&source).await, "of-the-instance ");
        assert_eq!(show(&source).await, "of-the-instance ");
        assert_eq!(metadata.paths(), ["GET /computeMetadata/v1/instance/service-accounts/default/token"]);
        let auth = source.current().await.unwrap();
        assert!(source.refused(&auth));
        show(&source).await;
        assert_eq!(metadata.paths().len(), 2, "one that was refused is got again");
    }

    #[tokio::test]
    async fn login_that_has_ended_is_renewed_by_the_command() {
        let tokens = HttpDouble::start(|request| {
            match String::from_utf8_lossy(&request.body).contains("refresh_token=new") {
                true => (200, r#"{"access_token":"renewed","expires_in":3600}"#.to_owned()),
                false => (
                    400,
                    r#"{"error":"invalid_grant","error_description":"Token has been expired"}"#.to_owned(),
                ),
            }
        });
        let home = TestHome::new();
        let login = format!(
            r#"{{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"old","token_uri":"{}/token","quota_project_id":"payer"}}"#,
            tokens.base_url()
        );
        let file = home.write_home("login.json", &login).display().to_string();
        let vars = [("GOOGLE_APPLICATION_CREDENTIALS", file.as_str())];
        let said = show(&GoogleSource::new(env(&home, &vars), None, Announcer::default())).await;
        assert!(said.contains("400 Token has been expired") && !said.contains("old"), "{said}");
        let refresh = format!("sed -i s/old/new/ {file}");
        assert_eq!(
            show(&GoogleSource::new(env(&home, &vars), Some(refresh), Announcer::default())).await,
            "renewed payer"
        );
    }

    #[tokio::test]
    async fn service_account_exchanges_a_signed_request_for_a_token() {
        use aws_lc_rs::encoding::AsDer as _;
        use base64::Engine as _;

        let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let der = base64::engine::general_purpose::STANDARD.encode(pair.as_der().unwrap().as_ref());
        let tokens =
            HttpDouble::start(|_| (200, r#"{"access_token":"of-the-account","expires_in":3600}"#.to_owned()));
        let home = TestHome::new();
        let account = serde_json::json!({"type": "service_account", "client_email": "me@p.iam", "private_key_id": "k1",
            "private_key": format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"),
            "token_uri": format!("{}/token", tokens.base_url()), "project_id": "p"});
        let file = home.write_home("account.json", account.to_string()).display().to_string();
        let vars = [("GOOGLE_APPLICATION_CREDENTIALS", file.as_str())];
        let source = GoogleSource::new(env(&home, &vars), None, Announcer::default());
        assert_eq!(show(&source).await, "of-the-account ");
        assert_eq!(show(&source).await, "of-the-account ");
        let bodies = tokens.bodies();
        assert_eq!(bodies.len(), 1, "it is kept");
        let assertion = bodies[0]
            .strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=")
            .unwrap_or_else(|| panic!("{}", bodies[0]));
        assert_eq!(assertion.split('.').count(), 3, "{assertion}");
        home.write_home("account.json", r#"{"type":"from_the_future"}"#);
        let said = show(&GoogleSource::new(env(&home, &vars), None, Announcer::default())).await;
        assert!(said.contains("`from_the_future` are not supported"), "{said}");
    }

    /// A server of Google's tokens: trades the token of a federation, and acts for an account.
    fn exchange() -> HttpDouble {
        HttpDouble::start(|request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let bearer = request.header("authorization").unwrap_or_default().to_owned();
            match request.path.as_str() {
                "/id?audience=x" if bearer == "bearer of-the-runner" => {
                    (200, r#"{"value":"id-1"}"#.to_owned())
                }
                "/sts" if body.contains("&audience=%2F%2Fpool&") && body.contains("subject_token=id-1") => {
                    (200, r#"{"access_token":"federated","expires_in":3600}"#.to_owned())
                }
                "/sts" => (400, r#"{"error_description":"The audience is another"}"#.to_owned()),
                "/login" => (200, r#"{"access_token":"federated","expires_in":3600}"#.to_owned()),
                "/account:act" if bearer == "Bearer federated" && body.contains("cloud-platform") => (
                    200,
                    r#"{"accessToken":"of-the-account","expireTime":"2026-01-02T05:04:05Z"}"#.to_owned(),
                ),
                _ => (403, r#"{"error":{"message":"Permission denied on the account"}}"#.to_owned()),
            }
        })
    }

    #[tokio::test]
    async fn federations_and_impersonation_trade_their_token_for_one_of_the_account() {
        let server = exchange();
        let base = server.base_url();
        let home = TestHome::new();
        home.write_home("id.json", r#"{"id_token":"id-1"}"#);
        home.write_home("id.txt", "id-1\n");
        let in_home = |name: &str| home.home().join(name).display().to_string();
        let json = |field: &str| serde_json::json!({"type": "json", "subject_token_field_name": field});
        let runner = serde_json::json!({"url": format!("{base}/id?audience=x"),
            "headers": {"Authorization": "bearer of-the-runner"}, "format": json("value")});
        let external = |source: Value, account: Option<&str>| {
            let account = account.map(|name| format!("{base}/{name}"));
            serde_json::json!({"type": "external_account", "audience": "//pool", "token_url": format!("{base}/sts"),
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": source,
                "service_account_impersonation_url": account, "quota_project_id": "payer"})
        };
        let login = serde_json::json!({"type": "authorized_user", "token_uri": format!("{base}/login")});
        let acts = serde_json::json!({"type": "impersonated_service_account", "source_credentials": login,
            "service_account_impersonation_url": format!("{base}/account:act")});
        let of_file = serde_json::json!({"file": in_home("id.txt")});
        let of_json = serde_json::json!({"file": in_home("id.json"), "format": json("id_token")});
        let command = serde_json::json!({"executable": {"command": "id"}});
        let other = serde_json::json!({"file": in_home("id.json"), "format": json("other")});
        for (file, expected) in [
            (external(runner, Some("account:act")), "of-the-account payer"),
            (external(of_json, None), "federated payer"),
            (external(of_file.clone(), Some("account:act")), "of-the-account payer"),
            (acts, "of-the-account "),
            (external(of_file, Some("other:act")), "403 Permission denied on the account"),
            (external(command, None), "must name a `file` or a `url`"),
            (external(other, None), "gave no token"),
        ] {
            let path = home.write_home("c.json", file.to_string()).display().to_string();
            let vars = [("GOOGLE_APPLICATION_CREDENTIALS", path.as_str())];
            let said = show(&GoogleSource::new(env(&home, &vars), None, Announcer::default())).await;
            assert!(said.contains(expected) && !said.contains("id-1"), "{file}: {said}");
        }
    }

    #[test]
    fn project_of_the_active_configuration_of_gcloud_comes_last() {
        let home = TestHome::new();
        let shown = |vars: &[(&str, &str)]| {
            project(&env(&home, vars)).unwrap_or_else(|error| error.message().to_owned())
        };
        assert!(shown(&[]).contains("not the project that pays"));
        let configurations = ".config/gcloud/configurations";
        home.write_home(format!("{configurations}/config_default"), "[core]\nproject = usual\n");
        home.write_home(format!("{configurations}/config_work"), "[core]\naccount = me\nproject = of-work\n");
        assert_eq!(shown(&[]), "usual");
        home.write_home(".config/gcloud/active_config", "work\n");
        assert_eq!(shown(&[]), "of-work");
        assert_eq!(shown(&[("CLOUDSDK_ACTIVE_CONFIG_NAME", "default")]), "usual");
        assert_eq!(shown(&[("CLOUDSDK_CORE_PROJECT", "said")]), "said");
        assert_eq!(shown(&[("GOOGLE_CLOUD_PROJECT", "named")]), "named");
    }
}
