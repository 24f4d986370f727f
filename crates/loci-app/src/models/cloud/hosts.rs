//! Clouds that speak the Messages API as it is: Foundry, Claude Platform on AWS, and Bedrock's Mantle.

use std::collections::BTreeMap;
use std::sync::Arc;

use loci_http::Secret;
use loci_llm::{
    Announcer, Auth, AuthSource, HostConfig, HostIds, ProviderConfig, SmallModelRegion, anthropic_aws_base,
    mantle_base,
};
use loci_settings::Settings;
use loci_stdx::Env;

use super::aws::{AwsService, region};
use super::azure::AzureSource;
use super::{aws_source, small_model_region};
use crate::user_error::UserError;

/// A provider that is not put together yet.
type Host = (ProviderConfig, Arc<dyn AuthSource>);

/// Returns Microsoft Foundry.
pub(super) fn foundry(env: &Env, overrides: BTreeMap<String, String>) -> Result<Host, UserError> {
    let host = HostConfig {
        address_variable: "ANTHROPIC_FOUNDRY_BASE_URL",
        credential_hint: "Check ANTHROPIC_FOUNDRY_AUTH_TOKEN or ANTHROPIC_FOUNDRY_API_KEY, or log in with `az login`.",
        workspace_id: None,
        ids: HostIds::Same,
        small: None,
        edits_context: true,
    };
    let config = ProviderConfig::host(env, host, foundry_url(env)?, overrides)?;
    Ok((config, foundry_source(env)))
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

/// A token or key that is set counts even where authentication is to be skipped.
fn foundry_source(env: &Env) -> Arc<dyn AuthSource> {
    match (secret(env, "ANTHROPIC_FOUNDRY_AUTH_TOKEN"), secret(env, "ANTHROPIC_FOUNDRY_API_KEY")) {
        (Some(token), _) => Arc::new(Auth::Bearer(token)),
        (None, Some(key)) => Arc::new(Auth::ApiKey(key)),
        (None, None) if env.vars.is_truthy("CLAUDE_CODE_SKIP_FOUNDRY_AUTH") => Arc::new(Auth::None),
        (None, None) => Arc::new(AzureSource::new(env.clone())),
    }
}

/// Returns Claude Platform on AWS: Anthropic's own API and ids, in a workspace of an Amazon account.
pub(super) fn anthropic_aws(
    env: &Env,
    settings: &Settings,
    overrides: BTreeMap<String, String>,
    announcer: &Announcer,
) -> Result<Host, UserError> {
    let skips = env.vars.is_truthy("CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH");
    let workspace_id = env.vars.non_empty("ANTHROPIC_AWS_WORKSPACE_ID").map(|id| id.trim().to_owned());
    if workspace_id.is_none() && !skips {
        return Err(UserError::new("CLAUDE_CODE_USE_ANTHROPIC_AWS is set, but not which workspace to use")
            .hint("Set ANTHROPIC_AWS_WORKSPACE_ID, as the AWS console shows it (wrkspc_...)."));
    }
    let region = region(env);
    let host = HostConfig {
        address_variable: "ANTHROPIC_AWS_BASE_URL",
        credential_hint: "Check ANTHROPIC_AWS_API_KEY and ANTHROPIC_AWS_WORKSPACE_ID, or renew the login (`aws sso login`).",
        workspace_id,
        ids: HostIds::Same,
        small: None,
        edits_context: true,
    };
    let base = own_address(env, host.address_variable).unwrap_or_else(|| anthropic_aws_base(&region));
    let config = ProviderConfig::host(env, host, base, overrides)?;
    let source: Arc<dyn AuthSource> = match secret(env, "ANTHROPIC_AWS_API_KEY") {
        // A gateway signs, and may want to know who asks.
        _ if skips => Arc::new(secret(env, "ANTHROPIC_AUTH_TOKEN").map_or(Auth::None, Auth::Bearer)),
        Some(key) => Arc::new(Auth::ApiKey(key)),
        None => aws_source(env, settings, (region, AwsService::AnthropicAws), announcer),
    };
    Ok((config, source))
}

/// Returns Mantle, Bedrock's door for the Messages API.
pub(super) fn mantle(
    env: &Env,
    settings: &Settings,
    overrides: BTreeMap<String, String>,
    announcer: &Announcer,
) -> Result<Host, UserError> {
    let region = region(env);
    let own = own_address(env, "ANTHROPIC_BEDROCK_MANTLE_BASE_URL");
    let small = |small: SmallModelRegion| {
        let base = mantle_base(&small.region);
        (small, base)
    };
    let host = HostConfig {
        address_variable: "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
        credential_hint: "Renew the credentials (for example `aws sso login`), set `awsAuthRefresh`, or ask for access to the model.",
        workspace_id: None,
        ids: HostIds::Mantle,
        small: small_model_region(env).filter(|_| own.is_none()).map(small),
        edits_context: false,
    };
    let base = own.unwrap_or_else(|| mantle_base(&region));
    let config = ProviderConfig::host(env, host, base, overrides)?;
    let source: Arc<dyn AuthSource> = match secret(env, "AWS_BEARER_TOKEN_BEDROCK") {
        _ if env.vars.is_truthy("CLAUDE_CODE_SKIP_MANTLE_AUTH") => Arc::new(Auth::None),
        // Which of the two headers counts there depends on who stands before it.
        Some(key) => Arc::new(Auth::Both(key)),
        None => aws_source(env, settings, (region, AwsService::Mantle), announcer),
    };
    Ok((config, source))
}

fn own_address(env: &Env, variable: &str) -> Option<String> {
    env.vars.non_empty(variable).map(|url| url.trim().to_owned())
}

fn secret(env: &Env, variable: &str) -> Option<Secret> {
    env.vars.non_empty(variable).map(|text| Secret::new(text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(vars: &[(&str, &str)]) -> Env {
        let mut env = Env::for_test("/home/dev", "/p");
        env.vars = vars.iter().copied().collect();
        env
    }

    #[test]
    fn address_of_foundry_is_its_own_or_made_of_the_resource() {
        let url = |vars: &[(&str, &str)]| foundry_url(&env(vars)).map_err(|error| error.message().to_owned());
        let resource = ("ANTHROPIC_FOUNDRY_RESOURCE", " my-resource ");
        assert_eq!(url(&[resource]).unwrap(), "https://my-resource.services.ai.azure.com/anthropic");
        let own = ("ANTHROPIC_FOUNDRY_BASE_URL", "https://gateway/anthropic");
        assert_eq!(url(&[resource, own]).unwrap(), "https://gateway/anthropic");
        assert!(url(&[]).unwrap_err().contains("where the resource is"));
    }

    #[test]
    fn addresses_at_amazon_are_made_of_the_region_unless_one_is_given() {
        let address = |vars: &[(&str, &str)], make: fn(&Env) -> Result<Host, UserError>| {
            make(&env(vars)).map(|(config, _)| config.base_url).map_err(|error| error.message().to_owned())
        };
        let on_aws =
            |env: &Env| anthropic_aws(env, &Settings::default(), BTreeMap::new(), &Announcer::default());
        let on_mantle = |env: &Env| mantle(env, &Settings::default(), BTreeMap::new(), &Announcer::default());
        let workspace = ("ANTHROPIC_AWS_WORKSPACE_ID", "wrkspc_1");
        assert_eq!(
            address(&[workspace, ("AWS_REGION", "eu-west-1")], on_aws).unwrap(),
            "https://aws-external-anthropic.eu-west-1.api.aws"
        );
        let own = ("ANTHROPIC_AWS_BASE_URL", "https://proxy");
        assert_eq!(address(&[workspace, own], on_aws).unwrap(), "https://proxy");
        assert!(address(&[own], on_aws).unwrap_err().contains("which workspace"));
        let skips = ("CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH", "1");
        assert_eq!(address(&[own, skips], on_aws).unwrap(), "https://proxy");
        assert_eq!(address(&[], on_mantle).unwrap(), "https://bedrock-mantle.us-east-1.api.aws/anthropic");
        let own = ("ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "https://gateway");
        assert_eq!(address(&[own], on_mantle).unwrap(), "https://gateway");
    }
}
