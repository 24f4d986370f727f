//! The clouds that host Anthropic's models: which one a run uses, and how we prove who we are there.
//!
//! `CLAUDE_CODE_USE_BEDROCK` and its kin choose; nothing of a cloud is read or run unless one of them does, and credentials are
//! looked for when the first request needs them.

mod aws;
mod azure;
mod google;
mod hosts;
mod ini;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use loci_engine::{CloudKind, idle_cloud_switches, resolve_model};
use loci_http::{Secret, is_region};
use loci_llm::{
    Announcer, Auth, AuthSource, Client, ProviderConfig, Router, SmallModelRegion, is_geography, is_location,
    is_mantle_id,
};
use loci_settings::Settings;
use loci_stdx::Env;

use crate::compose::prompt_caching;
use crate::user_error::UserError;

use aws::{AwsChain, AwsService, AwsSource, region};
use google::{GoogleSource, project};

pub(crate) use report::provider_status;

/// How long a command that renews credentials may take.
const RENEWAL_LIMIT: Duration = Duration::from_secs(180);
/// The region of the small model at Amazon's.
const SMALL_REGION: &str = "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION";
/// The geography of Bedrock's profiles that is preferred.
const GEOGRAPHY: &str = "ANTHROPIC_BEDROCK_REGION_PREFIX";

/// The models that clouds are known to have, by our ids; the newest of a family first.
pub(crate) const CLOUD_MODELS: [&str; 11] = [
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
    CloudKind::from_vars(&env.vars).map_or("firstParty", CloudKind::name)
}

/// Puts the provider together that a cloud is; no file is read for its credentials and nothing is run yet.
pub(crate) fn connect_cloud(
    cloud: CloudKind,
    env: &Env,
    settings: &Settings,
    announcer: &Announcer,
) -> Result<Client, UserError> {
    let overrides: BTreeMap<String, String> = settings.model_overrides.iter().cloned().collect();
    let (config, source): (ProviderConfig, Arc<dyn AuthSource>) = match cloud {
        CloudKind::Bedrock => {
            let region = region(env);
            let config = ProviderConfig {
                caching: prompt_caching(env, settings),
                ..ProviderConfig::bedrock(env, &region, overrides, small_model_region(env))?
            };
            let source = bedrock_source(env, settings, region, announcer);
            let client = Client::with_auth_source(config, source)?;
            return match CloudKind::has_mantle(&env.vars) {
                true => {
                    let mantle = connect_cloud(CloudKind::Mantle, env, settings, announcer)?;
                    Ok(Client::routed(Router::new(Ok(client)).with_ids(is_mantle_id, mantle)))
                }
                false => Ok(client),
            };
        }
        CloudKind::Vertex => {
            let project = project(env)?;
            let config = ProviderConfig::vertex(env, &project, overrides)?;
            let skips = env.vars.is_truthy("CLAUDE_CODE_SKIP_VERTEX_AUTH");
            let google = || {
                let refresh = settings.gcp_auth_refresh.clone();
                Arc::new(GoogleSource::new(env.clone(), refresh, announcer.clone())) as Arc<dyn AuthSource>
            };
            (config, if skips { Arc::new(Auth::None) } else { google() })
        }
        CloudKind::Foundry => hosts::foundry(env, overrides)?,
        CloudKind::AnthropicAws => hosts::anthropic_aws(env, settings, overrides, announcer)?,
        CloudKind::Mantle => hosts::mantle(env, settings, overrides, announcer)?,
    };
    let config = ProviderConfig { caching: prompt_caching(env, settings), ..config };
    Ok(Client::with_auth_source(config, source)?)
}

/// Returns what of the environment has no effect, where a cloud serves the models.
pub(crate) fn cloud_warnings(env: &Env) -> Vec<String> {
    let mut told = idle_cloud_switches(&env.vars);
    let misshapen = |name: &str, is_right: fn(&str) -> bool, wanted: &str| {
        let value = env.vars.non_empty(name)?.trim();
        (!is_right(value)).then(|| format!("{name} has no effect: `{value}` is {wanted}"))
    };
    let amazon = "not shaped like a region of Amazon's";
    match CloudKind::from_vars(&env.vars) {
        Some(CloudKind::Bedrock | CloudKind::Mantle | CloudKind::AnthropicAws) => {
            let names = ["AWS_REGION", "AWS_DEFAULT_REGION", SMALL_REGION];
            told.extend(names.iter().filter_map(|name| misshapen(name, is_region, amazon)));
            told.extend(misshapen(GEOGRAPHY, is_geography, "none of us, eu, apac, jp, au and global"));
        }
        Some(CloudKind::Vertex) => {
            let models = env.vars.iter().map(|(name, _)| name);
            let models = models.filter(|name| name.starts_with("VERTEX_REGION_CLAUDE_"));
            let names = std::iter::once("CLOUD_ML_REGION").chain(models);
            let google = "not shaped like a place of Google's";
            told.extend(names.filter_map(|name| misshapen(name, is_location, google)));
        }
        Some(CloudKind::Foundry) | None => {}
    }
    told
}

/// Returns where the small model is, if a variable says that it is elsewhere.
fn small_model_region(env: &Env) -> Option<SmallModelRegion> {
    let region = env.vars.non_empty(SMALL_REGION).map(str::trim).filter(|region| is_region(region))?;
    let named = env.vars.non_empty("ANTHROPIC_SMALL_FAST_MODEL");
    let models = ["haiku"].into_iter().chain(named).map(|name| resolve_model(&env.vars, name));
    Some(SmallModelRegion { models: models.collect(), region: region.to_owned() })
}

fn bedrock_source(
    env: &Env,
    settings: &Settings,
    region: String,
    announcer: &Announcer,
) -> Arc<dyn AuthSource> {
    let vars = &env.vars;
    if vars.is_truthy("CLAUDE_CODE_SKIP_BEDROCK_AUTH") {
        return Arc::new(Auth::None);
    }
    if let Some(token) = vars.non_empty("AWS_BEARER_TOKEN_BEDROCK") {
        return Arc::new(Auth::Bearer(Secret::new(token.trim())));
    }
    aws_source(env, settings, (region, AwsService::Bedrock), announcer)
}

/// Returns what signs requests to a service in a region with keys of an Amazon account.
fn aws_source(
    env: &Env,
    settings: &Settings,
    (region, service): (String, AwsService),
    announcer: &Announcer,
) -> Arc<dyn AuthSource> {
    let chain = AwsChain {
        env: env.clone(),
        region,
        service,
        export: settings.aws_credential_export.clone(),
        refresh: settings.aws_auth_refresh.clone(),
        announcer: announcer.clone(),
    };
    Arc::new(AwsSource::new(chain))
}

/// Says that nobody could prove who we are.
fn unauthenticated(message: impl Into<String>, hint: &str) -> Failure {
    Failure::new(FailureKind::Unauthenticated, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_shaped_like_none_are_told() {
        let told = |vars: &[(&str, &str)]| {
            let mut env = Env::for_test("/home/dev", "/p");
            env.vars = vars.iter().copied().collect();
            cloud_warnings(&env).join("; ")
        };
        let bedrock = ("CLAUDE_CODE_USE_BEDROCK", "1");
        assert_eq!(told(&[bedrock, ("AWS_REGION", "eu-west-1"), (GEOGRAPHY, "global")]), "");
        assert_eq!(told(&[("AWS_REGION", "nowhere"), ("CLOUD_ML_REGION", "a.b")]), "");
        let said = told(&[bedrock, ("AWS_REGION", "us.east"), (GEOGRAPHY, "mars")]);
        assert!(said.contains("AWS_REGION has no effect") && said.contains("`mars` is none of us"), "{said}");
        let vertex = ("CLAUDE_CODE_USE_VERTEX", "1");
        let said = told(&[vertex, ("CLOUD_ML_REGION", "a.b"), ("VERTEX_REGION_CLAUDE_HAIKU_4_5", "x/y")]);
        assert_eq!(said.matches("has no effect").count(), 2, "{said}");
        let said = told(&[vertex, bedrock]);
        assert!(said.starts_with("CLAUDE_CODE_USE_VERTEX has no effect"), "{said}");
    }
}
