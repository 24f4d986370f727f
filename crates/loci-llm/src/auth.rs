//! How we prove who we are to a provider.
//!
//! A credential is fixed, or comes from an [`AuthSource`] that is asked before each request and told when the
//! server would not have it. Credentials are never part of an error or of anything printed.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use loci_core::stream::{Failure, FailureKind};
use loci_stdx::Vars;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use loci_http::AwsSigner;
use loci_http::Secret;

/// How we prove who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// The `x-api-key` header.
    ApiKey(Secret),
    /// The `authorization: Bearer` header.
    Bearer(Secret),
    /// Both headers with one credential, for it is not known which of them the server looks at.
    Both(Secret),
    /// A Google access token, and the project that pays for its use where another does than the one that is asked.
    Google {
        /// The token.
        token: Secret,
        /// The project.
        quota_project: Option<String>,
    },
    /// Amazon's signature over the whole request.
    Aws(Box<AwsSigner>),
    /// Not at all: a gateway does it, or a custom header.
    None,
}

/// A credential that takes a while to get.
pub type AuthFuture<'a> = Pin<Box<dyn Future<Output = Result<Auth, Failure>> + Send + 'a>>;

/// Where credentials come from when they do not last: a command, a file that another program renews.
pub trait AuthSource: Debug + Send + Sync {
    /// Returns what to prove ourselves with now.
    fn current(&self) -> AuthFuture<'_>;

    /// Hears that the server refused a credential; true when asking again may give another.
    fn refused(&self, auth: &Auth) -> bool;
}

impl AuthSource for Auth {
    fn current(&self) -> AuthFuture<'_> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }

    fn refused(&self, _auth: &Auth) -> bool {
        false
    }
}

impl Auth {
    /// Reads `ANTHROPIC_AUTH_TOKEN`, which comes before `ANTHROPIC_API_KEY`.
    pub fn from_vars(vars: &Vars) -> Self {
        let secret =
            |name| Some(Secret::new(vars.get(name)?.trim())).filter(|secret| !secret.expose().is_empty());
        match (secret("ANTHROPIC_AUTH_TOKEN"), secret("ANTHROPIC_API_KEY")) {
            (Some(token), _) => Self::Bearer(token),
            (None, Some(key)) => Self::ApiKey(key),
            (None, None) => Self::None,
        }
    }

    /// Returns what must be masked in texts.
    pub(crate) fn secrets(&self) -> Vec<&Secret> {
        match self {
            Self::ApiKey(secret) | Self::Bearer(secret) | Self::Both(secret) => vec![secret],
            Self::Google { token, .. } => vec![token],
            Self::Aws(signer) => {
                std::iter::once(&signer.keys.secret_key).chain(&signer.keys.session_token).collect()
            }
            Self::None => Vec::new(),
        }
    }

    /// Returns the headers that prove who we are.
    pub(crate) fn headers(&self) -> Result<HeaderMap, Failure> {
        let key = |secret: &Secret| Ok((HeaderName::from_static("x-api-key"), value(secret.expose())?));
        let bearer = |secret: &Secret| {
            Ok((reqwest::header::AUTHORIZATION, value(&format!("Bearer {}", secret.expose()))?))
        };
        let headers = match self {
            Self::ApiKey(secret) => vec![key(secret)?],
            Self::Bearer(secret) => vec![bearer(secret)?],
            Self::Both(secret) => vec![key(secret)?, bearer(secret)?],
            Self::Google { token, quota_project } => {
                let project = quota_project
                    .as_ref()
                    .map(|project| Ok((HeaderName::from_static("x-goog-user-project"), value(project)?)));
                std::iter::once(bearer(token)).chain(project).collect::<Result<_, Failure>>()?
            }
            // It needs the whole request: see `Provider::prepare`.
            Self::Aws(_) | Self::None => Vec::new(),
        };
        Ok(HeaderMap::from_iter(headers))
    }
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        Failure::new(FailureKind::Unauthenticated, "The credentials hold characters that cannot be sent")
            .with_hint("Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN again, without line breaks or quotes.")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
