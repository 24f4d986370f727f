//! What puts a login on requests, and renews it.
//!
//! A token that is about to end is renewed before it is sent; one that is refused is renewed once. Renewing happens under
//! a lock between processes: whoever gets it second finds the new token, and uses that. A renewal that fails for now keeps
//! what there is; one that is refused takes the tokens away, and a person must log in again.

use super::LoginTarget;
use super::challenge::{self, BearerChallenge};
use super::client::client_of;
use super::scopes::{covers, union};
use super::store::StoredLogin;
use super::token::{TokenError, refresh_form};
use crate::authorizer::{AfterChallenge, Authorizer, AuthorizerFuture, Challenge};
use crate::names::brief;

/// How long before its end a token is renewed.
const LEEWAY_MS: i64 = 60_000;

/// Puts the login of one server on its requests.
pub(crate) struct OauthAuthorizer {
    pub(crate) target: LoginTarget,
}

impl Authorizer for OauthAuthorizer {
    fn headers(&self) -> AuthorizerFuture<'_, Result<Vec<(String, String)>, String>> {
        Box::pin(async move {
            // Logins that cannot be read are told when one is needed: most servers need none.
            let Ok(login) = self.target.load().await else { return Ok(Vec::new()) };
            let login = self.current(login).await?;
            let token = login.usable_token(self.target.now_ms(), 0);
            Ok(token
                .map(|token| ("Authorization".to_owned(), format!("Bearer {token}")))
                .into_iter()
                .collect())
        })
    }

    fn challenged(&self, challenge: Challenge) -> AuthorizerFuture<'_, AfterChallenge> {
        Box::pin(async move {
            match self.after_challenge(&challenge).await {
                Ok(after) => after,
                Err(why) => AfterChallenge::Failed(why),
            }
        })
    }
}

impl OauthAuthorizer {
    /// Returns the login, renewed if its token is about to end.
    async fn current(&self, login: StoredLogin) -> Result<StoredLogin, String> {
        let is_fresh = login.usable_token(self.target.now_ms(), LEEWAY_MS).is_some();
        if is_fresh || login.refresh_token.is_none() {
            return Ok(login);
        }
        match self.renew(login.access_token.as_deref()).await {
            Ok(login) => Ok(login),
            // What is left of it may do.
            Err(_) if login.usable_token(self.target.now_ms(), 0).is_some() => Ok(login),
            Err(TokenError::Refused { .. }) => Ok(StoredLogin::default()),
            Err(TokenError::Unavailable(why)) => Err(format!("its login could not be renewed: {why}")),
        }
    }

    async fn after_challenge(&self, challenge: &Challenge) -> Result<AfterChallenge, String> {
        let said = match challenge.header.as_deref().map(challenge::parse) {
            Some(Some(said)) => said,
            // It wants something else than a token, which no login gives.
            Some(None) => return Ok(AfterChallenge::Refused),
            None => BearerChallenge::default(),
        };
        let used = challenge.authorization.as_deref().and_then(|it| it.strip_prefix("Bearer "));
        if challenge.status == 403 && said.error.as_deref() == Some("insufficient_scope") && used.is_some() {
            return self.step_up(&said).await;
        }
        let Some(used) = used else { return self.without_login(&said).await };
        match self.renew(Some(used)).await {
            Ok(_) => Ok(AfterChallenge::Retry),
            Err(TokenError::Refused { .. }) => Ok(AfterChallenge::NeedsLogin),
            Err(TokenError::Unavailable(why)) => Err(format!("its login could not be renewed: {why}")),
        }
    }

    /// Nothing was sent: whether a login helps is known from what the server describes.
    async fn without_login(&self, said: &BearerChallenge) -> Result<AfterChallenge, String> {
        self.target.load().await?;
        match self.target.discover(said).await {
            Ok(Some(_)) => Ok(AfterChallenge::NeedsLogin),
            Ok(None) if self.target.oauth.client_id.is_some() => Ok(AfterChallenge::NeedsLogin),
            Ok(None) => Ok(AfterChallenge::Refused),
            Err(why) => Err(format!("it wants a login, and where is not known: {why}")),
        }
    }

    /// A call needs more than the token allows: the next login asks for both. One that has asked for it before would get
    /// no further.
    async fn step_up(&self, said: &BearerChallenge) -> Result<AfterChallenge, String> {
        let wanted = said.scope.as_deref().unwrap_or_default();
        let _lock = self.target.lock().await?;
        let mut login = self.target.load().await?;
        let asked = union(&[login.requested_scope.as_deref(), login.scope.as_deref()]);
        if self.target.oauth.scopes.is_some() || covers(asked.as_deref(), wanted) {
            return Err(format!(
                "the login does not allow this: the server wants `{}`, and another login would be asked for the same",
                brief(wanted)
            ));
        }
        let required = union(&[login.required_scope.as_deref(), Some(wanted)]);
        if login.required_scope != required {
            login.required_scope = required;
            self.target.save(login).await?;
        }
        Ok(AfterChallenge::NeedsLogin)
    }

    /// Gets another token for one that is of no use any more. Where another process has done so, theirs is used.
    async fn renew(&self, stale: Option<&str>) -> Result<StoredLogin, TokenError> {
        let target = &self.target;
        let _lock = target.lock().await.map_err(TokenError::Unavailable)?;
        let login = target.load().await.map_err(TokenError::Unavailable)?;
        if login.access_token.is_some() && login.access_token.as_deref() != stale {
            return Ok(login);
        }
        let refused = |text: &str| TokenError::Refused { text: text.to_owned(), is_client: false };
        let (Some(refresh_token), Some(endpoint)) = (&login.refresh_token, &login.token_endpoint) else {
            return Err(refused("there is nothing to renew it with"));
        };
        let client = client_of(&login).ok_or_else(|| refused("it is not known who we are there"))?;
        let form = refresh_form(&client, refresh_token, login.resource.as_deref());
        match target.tokens(endpoint, form).await {
            Ok(tokens) => {
                let login = tokens.into_login(login, target.now_ms());
                target.save(login.clone()).await.map_err(TokenError::Unavailable)?;
                tracing::debug!(target: "loci::mcp", server = target.name, "login renewed");
                Ok(login)
            }
            Err(error) => {
                if let TokenError::Refused { is_client, .. } = &error {
                    let kept = if *is_client { StoredLogin::default() } else { login.without_tokens() };
                    target.save(kept).await.map_err(TokenError::Unavailable)?;
                }
                Err(error)
            }
        }
    }
}
