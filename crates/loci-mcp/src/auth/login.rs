//! One login, from the question where to the tokens that are kept, and its end.
//!
//! [`begin`] finds out who may let us in, says who we are, and gives the page that a person is to visit.
//! [`LoginAttempt::finish`] takes the address that they come back with. Nothing is kept before it is over but the client
//! that was registered for it, which the next attempt uses again.

use reqwest::Url;

use super::LoginTarget;
use super::authorization::{
    AnswerProblem, AuthorizationRequest, ExpectedAnswer, authorization_url, read_answer,
};
use super::challenge::{self, BearerChallenge};
use super::client::{Client, ClientChoice, KnownClients, choose_client, client_of, registered, registration};
use super::discovery::Discovered;
use super::fetch::JsonResponse;
use super::loopback::{Loopback, redirect_uri};
use super::metadata::ServerMetadata;
use super::pkce::{Pkce, secret};
use super::scopes::{ScopeSources, choose_scopes};
use super::store::StoredLogin;
use super::token::{TokenError, TokenForm, Tokens, code_form, revocation_form};
use crate::names::brief;

/// A login that waits for a person.
pub(crate) struct LoginAttempt {
    target: LoginTarget,
    /// The page that they are to visit.
    pub(crate) page: Url,
    /// Where they come back to; none when whoever asked waits for them elsewhere.
    pub(crate) loopback: Option<Loopback>,
    pub(crate) redirect_uri: String,
    expected: ExpectedAnswer,
    pkce: Pkce,
    client: Client,
    /// What is kept once there are tokens.
    login: StoredLogin,
}

/// Begins a login. `said` is what the server said when it wanted one, `redirect` where a person comes back to, if that is not
/// this machine.
pub(crate) async fn begin(
    target: LoginTarget,
    said: Option<&str>,
    redirect: Option<String>,
) -> Result<LoginAttempt, String> {
    let stored = target.load().await?;
    let challenge = match said.map(challenge::parse) {
        Some(Some(challenge)) => challenge,
        Some(None) => {
            return Err("it wants another kind of login than by tokens; give its entry `headers`".to_owned());
        }
        None => BearerChallenge::default(),
    };
    let discovered = match target.discover(&challenge).await? {
        Some(discovered) => discovered,
        // Servers of the first revision with logins describe nothing.
        None => Discovered { resource: None, server: ServerMetadata::assumed(&target.url) },
    };
    let Discovered { resource, server } = discovered;
    let (loopback, redirect_uri) = match redirect {
        Some(redirect) => (None, redirect),
        None => {
            let loopback = target.listen(&stored).await?;
            let redirect_uri = loopback.redirect_uri();
            (Some(loopback), redirect_uri)
        }
    };
    let scope = choose_scopes(ScopeSources {
        pinned: target.oauth.scopes.as_deref(),
        challenge: challenge.scope.as_deref(),
        configured_metadata: target.oauth.metadata_url.as_ref().and(server.scopes.as_deref()),
        resource: resource.as_ref().and_then(|it| it.scopes.as_deref()),
        earlier: match stored.issuer.as_deref() == Some(&server.issuer) {
            true => [stored.scope.as_deref(), stored.required_scope.as_deref()],
            false => [None; 2],
        },
        has_offline_access: server.has_scope("offline_access"),
    });
    let client = target.client_at(&server, &stored, &redirect_uri, scope.as_deref()).await?;
    let (pkce, state) = (Pkce::new(&*target.logins.random), secret(&*target.logins.random));
    let resource = resource.map(|it| it.resource);
    let page = authorization_url(&AuthorizationRequest {
        endpoint: &server.authorization_endpoint,
        client_id: &client.id,
        redirect_uri: &redirect_uri,
        scope: scope.as_deref(),
        resource: resource.as_deref(),
        state: &state,
        pkce: &pkce,
    })?;
    let login = StoredLogin {
        issuer: Some(server.issuer.clone()),
        redirect_uri: Some(redirect_uri.clone()),
        requested_scope: scope.clone(),
        scope,
        resource,
        token_endpoint: Some(server.token_endpoint.clone()),
        revocation_endpoint: server.revocation_endpoint.clone(),
        ..client_fields(&client)
    };
    // The registration is worth keeping even when nobody visits the page; a login that works goes on working.
    if stored.access_token.is_none() && stored.refresh_token.is_none() {
        target.save(login.without_tokens()).await?;
    }
    let expected =
        ExpectedAnswer { state, issuer: server.issuer.clone(), must_name_issuer: server.names_itself };
    Ok(LoginAttempt { target, page, loopback, redirect_uri, expected, pkce, client, login })
}

fn client_fields(client: &Client) -> StoredLogin {
    StoredLogin {
        client_id: Some(client.id.clone()),
        client_secret: client.secret.clone(),
        client_secret_ends: client.secret_ends,
        token_auth_method: Some(client.auth_method.name().to_owned()),
        ..StoredLogin::default()
    }
}

impl LoginAttempt {
    /// Takes the address that a person came back with. One that is none of this login's changes nothing.
    pub(crate) async fn finish(&self, url: &Url) -> Result<(), AnswerProblem> {
        let code = read_answer(url, &self.expected)?;
        let endpoint = self.login.token_endpoint.as_deref().unwrap_or_default();
        let form = code_form(
            &self.client,
            (&code, &self.pkce.verifier),
            &self.redirect_uri,
            self.login.resource.as_deref(),
        );
        let done = async {
            let tokens = self.target.tokens(endpoint, form).await.map_err(|error| error.to_string())?;
            let _lock = self.target.lock().await?;
            let login = tokens.into_login(self.login.clone(), self.target.now_ms());
            self.target.save(login).await
        };
        done.await.map_err(AnswerProblem::Refused)
    }
}

/// What came of the end of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logout {
    /// There was none.
    NoLogin,
    /// It is forgotten, and the server that gave it has been told.
    Revoked,
    /// It is forgotten here, and why the server that gave it could not be told.
    Forgotten(String),
}

/// Ends a login: the tokens are taken back where that can be asked for, and forgotten.
pub(crate) async fn logout(target: &LoginTarget) -> Result<Logout, String> {
    let _lock = target.lock().await?;
    let login = target.load().await?;
    if login.is_empty() {
        return Ok(Logout::NoLogin);
    }
    let revoked = revoke(target, &login).await;
    target.save(StoredLogin::default()).await?;
    Ok(match revoked {
        Ok(()) => Logout::Revoked,
        Err(why) => Logout::Forgotten(why),
    })
}

async fn revoke(target: &LoginTarget, login: &StoredLogin) -> Result<(), String> {
    let tokens: Vec<(&str, &str)> =
        [(login.refresh_token.as_deref(), "refresh_token"), (login.access_token.as_deref(), "access_token")]
            .into_iter()
            .filter_map(|(token, kind)| Some((token?, kind)))
            .collect();
    if tokens.is_empty() {
        return Ok(());
    }
    let endpoint = login.revocation_endpoint.as_deref();
    let endpoint = endpoint.ok_or("the authorization server has no way to take tokens back")?;
    let client = client_of(login).ok_or("it is not known who we were there")?;
    for token in tokens {
        let answer = target.post_form(endpoint, revocation_form(&client, token)).await?;
        if !answer.is_success() {
            return Err(TokenError::parse(answer.status, &answer.value).to_string());
        }
    }
    Ok(())
}

impl LoginTarget {
    /// Listens where the entry says, or where an earlier login came back to, or anywhere.
    async fn listen(&self, stored: &StoredLogin) -> Result<Loopback, String> {
        if let Some(port) = self.oauth.callback_port {
            return Loopback::bind(Some(port)).await;
        }
        let before =
            stored.redirect_uri.as_deref().and_then(|it| Url::parse(it).ok()).and_then(|it| it.port());
        let before = before.filter(|port| stored.redirect_uri.as_deref() == Some(&redirect_uri(*port)));
        if let Some(port) = before
            && let Ok(loopback) = Loopback::bind(Some(port)).await
        {
            return Ok(loopback);
        }
        Loopback::bind(None).await
    }

    /// Says who we are, registering where that is needed.
    async fn client_at(
        &self,
        server: &ServerMetadata,
        stored: &StoredLogin,
        redirect_uri: &str,
        scope: Option<&str>,
    ) -> Result<Client, String> {
        let (store, key) = (self.logins.store.clone(), self.key());
        let secret = blocking(move || store.client_secret(&key)).await?;
        let configured = self.oauth.client_id.as_deref().map(|id| (id, secret.as_deref()));
        let document = self.logins.client_metadata.as_deref();
        let known = KnownClients { configured, document, stored };
        let endpoint = match choose_client(&known, server, redirect_uri, self.now_ms())? {
            ClientChoice::Known(client) => return Ok(client),
            ClientChoice::Register { endpoint } => endpoint,
        };
        let body = registration(server, redirect_uri, scope);
        let answer = self.post_json(&endpoint, &body).await?;
        match answer {
            answer if answer.is_success() => registered(&answer.value, server),
            JsonResponse { status, value } => Err(format!(
                "the authorization server `{}` did not register us: {}",
                brief(&server.issuer),
                TokenError::parse(status, &value)
            )),
        }
    }

    /// Asks a token endpoint.
    pub(crate) async fn tokens(&self, endpoint: &str, form: TokenForm) -> Result<Tokens, TokenError> {
        let answer = self.post_form(endpoint, form).await.map_err(TokenError::Unavailable)?;
        match answer.is_success() {
            true => {
                Tokens::parse(&answer.value).map_err(|text| TokenError::Refused { text, is_client: false })
            }
            false => Err(TokenError::parse(answer.status, &answer.value)),
        }
    }

    pub(crate) async fn load(&self) -> Result<StoredLogin, String> {
        let (store, key) = (self.logins.store.clone(), self.key());
        blocking(move || store.load(&key)).await
    }

    pub(crate) async fn save(&self, login: StoredLogin) -> Result<(), String> {
        let (store, key) = (self.logins.store.clone(), self.key());
        blocking(move || store.save(&key, &login)).await
    }

    pub(crate) async fn lock(&self) -> Result<super::RenewalLock, String> {
        let (store, key) = (self.logins.store.clone(), self.key());
        blocking(move || store.lock(&key)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string()).and_then(|done| done)
}
