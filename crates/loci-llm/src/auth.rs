//! How we prove who we are to a provider.

use loci_core::stream::{Failure, FailureKind};
use loci_stdx::Vars;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::secret::Secret;

/// How we prove who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// The `x-api-key` header.
    ApiKey(Secret),
    /// The `authorization: Bearer` header.
    Bearer(Secret),
    /// Not at all: a gateway does it, or a custom header.
    None,
}

impl Auth {
    /// Reads `ANTHROPIC_AUTH_TOKEN`, which comes before `ANTHROPIC_API_KEY`.
    pub(crate) fn from_vars(vars: &Vars) -> Self {
        let secret =
            |name| Some(Secret::new(vars.get(name)?.trim())).filter(|secret| !secret.expose().is_empty());
        match (secret("ANTHROPIC_AUTH_TOKEN"), secret("ANTHROPIC_API_KEY")) {
            (Some(token), _) => Self::Bearer(token),
            (None, Some(key)) => Self::ApiKey(key),
            (None, None) => Self::None,
        }
    }

    /// Returns the credential, for masking it in texts.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match self {
            Self::ApiKey(secret) | Self::Bearer(secret) => Some(secret),
            Self::None => None,
        }
    }

    /// Returns the headers that prove who we are.
    pub(crate) fn headers(&self) -> Result<HeaderMap, Failure> {
        let (name, value) = match self {
            Self::ApiKey(key) => ("x-api-key", key.expose().to_owned()),
            Self::Bearer(token) => ("authorization", format!("Bearer {}", token.expose())),
            Self::None => return Ok(HeaderMap::new()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Failure::new(FailureKind::Unauthenticated, "The credentials hold characters that cannot be sent")
                .with_hint(
                    "Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN again, without line breaks or quotes.",
                )
        })?;
        value.set_sensitive(true);
        Ok(HeaderMap::from_iter([(HeaderName::from_static(name), value)]))
    }
}
