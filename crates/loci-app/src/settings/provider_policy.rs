//! Which providers the administrator lets a run ask (`allowedProviders`).
//!
//! The first provider is called by what serves it: `anthropic`, a cloud by its name, or `customEndpoint` where a variable says
//! whom to ask. An address that anybody could set proves nothing, so one that is not the usual has to be set by the
//! administrator, too. The others are called as in the `providers` setting.

use loci_engine::CloudKind;
use loci_settings::ProviderLimits;
use loci_stdx::Vars;

use crate::user_error::UserError;

/// The name of the vendor's own server.
const ANTHROPIC: &str = "anthropic";
/// The name of any other that a variable names.
const CUSTOM: &str = "customEndpoint";

/// Refuses a first provider that the administrator does not let be asked.
pub(crate) fn check_first_provider(limits: Option<&ProviderLimits>, vars: &Vars) -> Result<(), UserError> {
    let Some(limits) = limits else { return Ok(()) };
    let (name, addresses) = first_provider(vars);
    if !limits.allowed.iter().any(|it| it == name) {
        return Err(refusal(name, &limits.allowed));
    }
    match addresses.iter().find(|address| !is_pinned(limits, vars, address)) {
        None => Ok(()),
        Some(address) => Err(UserError::new(format!(
            "The administrator lets only some providers be asked (`allowedProviders`), and {address} does not come from the \
             administrator's settings"
        ))
        .hint(format!("Unset {address}, or ask the administrator to set it under `env` there."))),
    }
}

/// Says why a provider with a name may not be asked; `usual_url` is its address where nobody has set another.
pub(crate) fn named_refusal(
    limits: &ProviderLimits,
    name: &str,
    base_url: &str,
    usual_url: Option<&str>,
) -> Option<String> {
    let allowed = limits.allowed.join(", ");
    if !limits.allowed.iter().any(|it| it == name) {
        return Some(format!(
            "The administrator does not let the provider `{name}` be asked (`allowedProviders`: {allowed})"
        ));
    }
    let is_own = limits.providers.iter().any(|it| it == name) || usual_url == Some(base_url);
    (!is_own).then(|| {
        format!(
            "The administrator lets only some providers be asked (`allowedProviders`), and the address of `{name}` does not \
             come from the administrator's settings: {base_url}"
        )
    })
}

fn refusal(name: &str, allowed: &[String]) -> UserError {
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    UserError::new(format!(
        "The administrator does not let the provider `{name}` be asked (`allowedProviders`: {allowed})"
    ))
    .hint(format!(
        "Choose one of those, or ask the administrator to add \"{name}\" to `allowedProviders` in the managed settings."
    ))
}

/// Names the first provider, and the variables that hold another address than its usual.
fn first_provider(vars: &Vars) -> (&'static str, Vec<&'static str>) {
    let set = |names: &[&'static str]| {
        names.iter().copied().filter(|name| vars.non_empty(name).is_some()).collect::<Vec<_>>()
    };
    match CloudKind::from_vars(vars) {
        Some(cloud) => (cloud.name(), set(cloud.address_variables())),
        None if is_custom(vars) => (CUSTOM, set(&["ANTHROPIC_BASE_URL"])),
        None => (ANTHROPIC, Vec::new()),
    }
}

fn is_custom(vars: &Vars) -> bool {
    let base = vars.non_empty("ANTHROPIC_BASE_URL").map(|base| base.trim().trim_end_matches('/'));
    base.is_some_and(|base| base != "https://api.anthropic.com")
}

fn is_pinned(limits: &ProviderLimits, vars: &Vars, variable: &str) -> bool {
    limits.variables.iter().any(|(name, value)| name == variable && vars.get(variable) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(allowed: &str, variables: &[(&str, &str)], providers: &[&str]) -> ProviderLimits {
        ProviderLimits {
            allowed: allowed.split_whitespace().map(str::to_owned).collect(),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            providers: providers.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn first_provider_is_one_that_the_administrator_allows_and_addresses() {
        let gateway = ("ANTHROPIC_BASE_URL", "https://gateway.example");
        let bedrock = ("CLAUDE_CODE_USE_BEDROCK", "1");
        let proxy = ("ANTHROPIC_BEDROCK_BASE_URL", "https://proxy.example");
        for (allowed, vars, pinned, expected) in [
            ("anthropic", &[][..], &[][..], ""),
            ("anthropic", &[("ANTHROPIC_BASE_URL", "https://api.anthropic.com/")], &[], ""),
            ("anthropic", &[gateway], &[gateway], "`customEndpoint`"),
            ("customEndpoint", &[gateway], &[gateway], ""),
            ("customEndpoint", &[gateway], &[], "ANTHROPIC_BASE_URL does not come"),
            (
                "customEndpoint",
                &[gateway],
                &[("ANTHROPIC_BASE_URL", "https://other")],
                "ANTHROPIC_BASE_URL does",
            ),
            ("customEndpoint", &[], &[], "`anthropic`"),
            ("bedrock", &[bedrock], &[], ""),
            ("bedrock", &[bedrock, proxy], &[], "ANTHROPIC_BEDROCK_BASE_URL does not come"),
            ("vertex anthropic", &[bedrock], &[], "`bedrock`"),
            ("", &[], &[], "(`allowedProviders`: none)"),
        ] {
            let vars: Vars = vars.iter().copied().collect();
            let checked = check_first_provider(Some(&limits(allowed, pinned, &[])), &vars);
            let said = checked.err().map(|error| error.message().to_owned()).unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{allowed}: {said}");
            assert!(check_first_provider(None, &vars).is_ok());
        }
    }

    #[test]
    fn provider_with_a_name_needs_an_address_of_the_administrator_or_its_usual() {
        let (usual, other) = ("https://api.openai.com/v1", "https://evil.example");
        for (allowed, managed, url, is_fine) in [
            ("openai", &[][..], usual, true),
            ("openai", &[], other, false),
            ("openai", &["openai"], other, true),
            ("ollama", &["openai"], usual, false),
        ] {
            let refusal = named_refusal(&limits(allowed, &[], managed), "openai", url, Some(usual));
            assert_eq!(refusal.is_none(), is_fine, "{allowed} {managed:?} {url}: {refusal:?}");
        }
        assert!(named_refusal(&limits("mine", &[], &[]), "mine", other, None).is_some());
    }
}
