//! The clouds that host Anthropic's models: which one a run uses, and how we prove who we are there.
//!
//! `CLAUDE_CODE_USE_BEDROCK`, `CLAUDE_CODE_USE_VERTEX` and `CLAUDE_CODE_USE_FOUNDRY` choose; nothing of a cloud is read or run
//! unless one of them does, and credentials are looked for when the first request needs them. A switch that we cannot honour
//! is an error, never ignored: requests would go elsewhere with another key.

mod aws;
mod azure;
mod google;
mod ini;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use loci_engine::resolve_model;
use loci_llm::{Auth, AuthSource, Client, ProviderConfig, Secret, SmallModelRegion, is_region};
use loci_settings::Settings;
use loci_stdx::Env;

use crate::user_error::UserError;

use aws::{AwsChain, AwsSource, region};
use azure::AzureSource;
use google::{GoogleSource, project};

/// How long a command that renews credentials may take.
const RENEWAL_LIMIT: Duration = Duration::from_secs(180);

/// A cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cloud {
    Bedrock,
    Vertex,
    Foundry,
}

/// The variables that choose a cloud, in the order in which they count.
const SWITCHES: [(&str, Cloud); 3] = [
    ("CLAUDE_CODE_USE_BEDROCK", Cloud::Bedrock),
    ("CLAUDE_CODE_USE_VERTEX", Cloud::Vertex),
    ("CLAUDE_CODE_USE_FOUNDRY", Cloud::Foundry),
];
/// The region of the small model at Amazon's.
const SMALL_REGION: &str = "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION";
/// Those of clouds that we do not have.
const UNKNOWN: [&str; 2] = ["CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS"];

/// The models that clouds are known to have, by our ids; the newest of a family first.
const CLOUD_MODELS: [&str; 11] = [
    "claude-fable-5",
    "claude-opus-5",
    "claude-opus-4-8",
    "claude-opus-4-7",
    "claude-opus-4-6",
    "claude-opus-4-5",
    "claude-opus-4-1",
    "claude-sonnet-5",
    "claude-sonnet-4-6",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
];

/// Returns who serves the models of the first provider, as clients are told it.
pub fn api_provider(env: &Env) -> &'static str {
    Cloud::from_env(env).ok().flatten().map_or("firstParty", Cloud::name)
}

impl Cloud {
    /// Finds the cloud that the environment asks for.
    pub(crate) fn from_env(env: &Env) -> Result<Option<Self>, UserError> {
        if let Some(name) = UNKNOWN.iter().find(|name| env.vars.is_truthy(name)) {
            return Err(UserError::new(format!("`{name}` is set, and this provider is not supported"))
                .hint(format!("Unset {name}, or use CLAUDE_CODE_USE_BEDROCK, CLAUDE_CODE_USE_VERTEX or CLAUDE_CODE_USE_FOUNDRY.")));
        }
        Ok(SWITCHES.iter().find(|(name, _)| env.vars.is_truthy(name)).map(|(_, cloud)| *cloud))
    }

    /// Returns the models that it is known to have, by our ids.
    pub(crate) fn models() -> impl Iterator<Item = &'static str> {
        CLOUD_MODELS.into_iter()
    }

    /// Returns what of the environment has no effect here.
    pub(crate) fn warnings(self, env: &Env) -> Vec<String> {
        match (self, env.vars.non_empty(SMALL_REGION)) {
            (Self::Bedrock, Some(region)) if !is_region(region.trim()) => {
                vec![format!(
                    "{SMALL_REGION} has no effect: `{region}` is not shaped like a region of Amazon's"
                )]
            }
            _ => Vec::new(),
        }
    }

    /// Names it for people, as `apiKeySource` does.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock",
            Self::Vertex => "vertex",
            Self::Foundry => "foundry",
        }
    }

    /// Puts the provider together; no file is read for its credentials and nothing is run yet.
    pub(crate) fn connect(self, env: &Env, settings: &Settings) -> Result<Client, UserError> {
        let overrides: BTreeMap<String, String> = settings.model_overrides.iter().cloned().collect();
        let (config, source): (ProviderConfig, Arc<dyn AuthSource>) = match self {
            Self::Bedrock => {
                let region = region(env);
                let config = ProviderConfig::bedrock(env, &region, overrides, small_model_region(env))?;
                (config, aws_source(env, settings, region))
            }
            Self::Vertex => {
                let project = project(env)?;
                let config = ProviderConfig::vertex(env, &project, overrides)?;
                let skips = env.vars.is_truthy("CLAUDE_CODE_SKIP_VERTEX_AUTH");
                let google = || {
                    Arc::new(GoogleSource::new(env.clone(), settings.gcp_auth_refresh.clone()))
                        as Arc<dyn AuthSource>
                };
                (config, if skips { Arc::new(Auth::None) } else { google() })
            }
            Self::Foundry => {
                let config = ProviderConfig {
                    base_url: foundry_url(env)?,
                    auth: Auth::None,
                    ..ProviderConfig::from_env(env)?
                };
                (config, foundry_source(env))
            }
        };
        Ok(Client::with_auth_source(config, source)?)
    }
}

/// Returns where the small model is, if a variable says that it is elsewhere.
fn small_model_region(env: &Env) -> Option<SmallModelRegion> {
    let region = env.vars.non_empty(SMALL_REGION).map(str::trim).filter(|region| is_region(region))?;
    let named = env.vars.non_empty("ANTHROPIC_SMALL_FAST_MODEL");
    let models = ["haiku"].into_iter().chain(named).map(|name| resolve_model(&env.vars, name));
    Some(SmallModelRegion { models: models.collect(), region: region.to_owned() })
}

fn aws_source(env: &Env, settings: &Settings, region: String) -> Arc<dyn AuthSource> {
    let vars = &env.vars;
    if vars.is_truthy("CLAUDE_CODE_SKIP_BEDROCK_AUTH") {
        return Arc::new(Auth::None);
    }
    if let Some(token) = vars.non_empty("AWS_BEARER_TOKEN_BEDROCK") {
        return Arc::new(Auth::Bearer(Secret::new(token.trim())));
    }
    let chain = AwsChain {
        env: env.clone(),
        region,
        export: settings.aws_credential_export.clone(),
        refresh: settings.aws_auth_refresh.clone(),
    };
    Arc::new(AwsSource::new(chain))
}

fn foundry_url(env: &Env) -> Result<String, UserError> {
    let vars = &env.vars;
    if let Some(url) = vars.non_empty("ANTHROPIC_FOUNDRY_BASE_URL") {
        return Ok(url.trim().to_owned());
    }
    match vars.non_empty("ANTHROPIC_FOUNDRY_RESOURCE") {
        Some(resource) => Ok(format!("https://{}.services.ai.azure.com/anthropic", resource.trim())),
        None => Err(UserError::new("CLAUDE_CODE_USE_FOUNDRY is set, but not where the resource is").hint(
            "Set ANTHROPIC_FOUNDRY_RESOURCE to its name, or ANTHROPIC_FOUNDRY_BASE_URL to its address.",
        )),
    }
}

fn foundry_source(env: &Env) -> Arc<dyn AuthSource> {
    let said = |name: &str| env.vars.non_empty(name).map(|it| Secret::new(it.trim()));
    if env.vars.is_truthy("CLAUDE_CODE_SKIP_FOUNDRY_AUTH") {
        return Arc::new(Auth::None);
    }
    match (said("ANTHROPIC_FOUNDRY_AUTH_TOKEN"), said("ANTHROPIC_FOUNDRY_API_KEY")) {
        (Some(token), _) => Arc::new(Auth::Bearer(token)),
        (None, Some(key)) => Arc::new(Auth::ApiKey(key)),
        (None, None) => Arc::new(AzureSource::new(env.clone())),
    }
}

/// Says that nobody could prove who we are.
fn unauthenticated(message: impl Into<String>, hint: &str) -> Failure {
    Failure::new(FailureKind::Unauthenticated, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloud_is_chosen_by_its_switch_and_unknown_ones_are_refused() {
        let chosen = |vars: &[(&str, &str)]| {
            let mut env = Env::for_test("/home/dev", "/p");
            env.vars = vars.iter().copied().collect();
            Cloud::from_env(&env).map_err(|error| error.message().to_owned())
        };
        assert_eq!(chosen(&[]), Ok(None));
        assert_eq!(chosen(&[("CLAUDE_CODE_USE_BEDROCK", "0")]), Ok(None));
        assert_eq!(chosen(&[("CLAUDE_CODE_USE_BEDROCK", "1")]), Ok(Some(Cloud::Bedrock)));
        assert_eq!(chosen(&[("CLAUDE_CODE_USE_VERTEX", "true")]), Ok(Some(Cloud::Vertex)));
        assert_eq!(chosen(&[("CLAUDE_CODE_USE_FOUNDRY", "1")]), Ok(Some(Cloud::Foundry)));
        assert!(chosen(&[("CLAUDE_CODE_USE_MANTLE", "1")]).unwrap_err().contains("CLAUDE_CODE_USE_MANTLE"));
    }

    #[test]
    fn address_of_foundry_is_its_own_or_made_of_the_resource() {
        let url = |vars: &[(&str, &str)]| {
            let mut env = Env::for_test("/home/dev", "/p");
            env.vars = vars.iter().copied().collect();
            foundry_url(&env).map_err(|error| error.message().to_owned())
        };
        let resource = ("ANTHROPIC_FOUNDRY_RESOURCE", " my-resource ");
        assert_eq!(url(&[resource]).unwrap(), "https://my-resource.services.ai.azure.com/anthropic");
        let own = ("ANTHROPIC_FOUNDRY_BASE_URL", "https://gateway/anthropic");
        assert_eq!(url(&[resource, own]).unwrap(), "https://gateway/anthropic");
        assert!(url(&[]).unwrap_err().contains("where the resource is"));
    }
}
