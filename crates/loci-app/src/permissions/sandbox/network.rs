//! What sandboxed commands may reach: hosts of settings and of `WebFetch(domain:…)` rules, through our proxy or the user's own.

use std::sync::Arc;

use loci_sandbox::Connections;
use loci_sandbox::egress::rules::DomainRules;
use loci_sandbox::egress::{Egress, OwnProxies, UpstreamProxy, connections, forward};
use loci_settings::{NetworkSettings, PermissionSettings, Scope, Sourced};
use loci_stdx::Env;

use super::specifier;

/// What a session's commands reach the network by.
pub(super) struct SessionNetwork {
    /// Takes their connections.
    pub(super) connections: Connections,
    /// What decides about hosts.
    pub(super) egress: Arc<Egress>,
    /// What the user should know.
    pub(super) warnings: Vec<String>,
}

impl SessionNetwork {
    /// Makes the way to the network that settings ask for.
    pub(super) fn new(env: &Env, network: &NetworkSettings, permissions: &PermissionSettings) -> Self {
        let (rules, mut warnings) = domain_rules(network, permissions);
        let (upstream, warning) = upstream_proxy(env);
        warnings.extend(warning);
        let egress = Arc::new(Egress::new(rules, upstream));
        let own = OwnProxies { http: network.http_proxy_port, socks: network.socks_proxy_port };
        let connections = forward(own, connections(Arc::clone(&egress)));
        Self { connections, egress, warnings }
    }
}

/// Variables that name the machine's proxy, the first of which counts.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Returns the proxy of this machine, or what to say where it is one that cannot be used.
fn upstream_proxy(env: &Env) -> (Option<UpstreamProxy>, Option<String>) {
    let named = PROXY_VARIABLES.iter().find_map(|name| Some((name, env.vars.non_empty(name)?)));
    let Some((name, address)) = named else { return (None, None) };
    let direct = env.vars.non_empty("NO_PROXY").or_else(|| env.vars.non_empty("no_proxy"));
    match UpstreamProxy::parse(address, direct.unwrap_or_default()) {
        Some(proxy) => (Some(proxy), None),
        // The address may have a password in it.
        None => (
            None,
            Some(format!(
                "Sandbox: the proxy in `{name}` is not of the form http://host:port: sandboxed commands reach hosts without it"
            )),
        ),
    }
}

/// Brings hosts of settings and rules together; what is denied wins.
pub(super) fn domain_rules(
    network: &NetworkSettings,
    permissions: &PermissionSettings,
) -> (DomainRules, Vec<String>) {
    let mut rules = DomainRules::new(network.is_strict);
    let mut warnings = Vec::new();
    let mut said = |source: &Sourced, key: &str, outcome: Result<(), String>| {
        if let Err(why) = outcome {
            let place = format!("{}:{}", source.origin.name, source.line);
            warnings.push(format!("Settings: {place}: `{key}`: {why}"));
        }
    };
    let place = |source: &Sourced| format!("{}:{}", source.origin.name, source.line);
    for host in &network.denied {
        said(host, "sandbox.network.deniedDomains", rules.deny_by(&host.text, Some(&place(host))));
    }
    for host in &network.allowed {
        said(host, "sandbox.network.allowedDomains", rules.allow(&host.text));
    }
    let fetched = |rules: &'_ [Sourced]| -> Vec<(Sourced, String)> {
        rules.iter().filter_map(|rule| Some((rule.clone(), fetched_host(&rule.text)?.to_owned()))).collect()
    };
    for (rule, host) in fetched(&permissions.deny) {
        said(&rule, "permissions.deny", rules.deny_by(&host, Some(&place(&rule))));
    }
    let counts = |rule: &Sourced| {
        !(network.managed_only || permissions.managed_rules_only) || rule.origin.scope == Scope::Managed
    };
    for (rule, host) in fetched(&permissions.allow).into_iter().filter(|(rule, _)| counts(rule)) {
        said(&rule, "permissions.allow", rules.allow(&host));
    }
    (rules, warnings)
}

/// Returns the host of a rule about fetching.
fn fetched_host(rule: &str) -> Option<&str> {
    Some(specifier(rule, "WebFetch")?.strip_prefix("domain:")?.trim())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sourced;
    use super::*;
    use loci_sandbox::egress::rules::HostVerdict;
    use loci_sandbox::egress::target::Target;

    #[test]
    fn proxy_that_cannot_be_used_is_said_and_its_password_is_not() {
        for (name, address, is_used, is_said) in [
            ("HTTPS_PROXY", "http://proxy.corp:3128", true, false),
            ("http_proxy", "proxy.corp:3128", true, false),
            ("ALL_PROXY", "http://proxy.corp:3128", true, false),
            ("ALL_PROXY", "socks5h://u:secret@proxy.corp:1080", false, true),
            ("HTTPS_PROXY", "https://u:secret@proxy.corp", false, true),
            ("NO_PROXY", "x", false, false),
        ] {
            let mut env = Env::for_test("/h", "/p");
            env.vars = env.vars.with(name, address);
            let (proxy, warning) = upstream_proxy(&env);
            assert_eq!((proxy.is_some(), warning.is_some()), (is_used, is_said), "{name}={address}");
            let text = warning.unwrap_or_default();
            assert!(text.is_empty() || text.contains(name) && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn hosts_of_settings_and_rules_are_brought_together() {
        let network = NetworkSettings {
            allowed: sourced(Scope::User, &["a.com", "*.b.com", "not a host"]),
            denied: sourced(Scope::User, &["x.b.com"]),
            ..NetworkSettings::default()
        };
        let permissions = PermissionSettings {
            allow: sourced(Scope::User, &["WebFetch(domain:docs.rs)", "WebFetch", "Bash(x)"]),
            deny: sourced(Scope::User, &["WebFetch(domain:a.com)"]),
            ..PermissionSettings::default()
        };
        let (rules, warnings) = domain_rules(&network, &permissions);
        let verdict = |text: &str| rules.verdict(&Target::parse(text).unwrap());
        assert!(matches!(verdict("a.com:443"), HostVerdict::Deny(_)), "a rule that denies wins");
        assert!(matches!(verdict("x.b.com:443"), HostVerdict::Deny(_)));
        assert_eq!(verdict("y.b.com:443"), HostVerdict::Allow);
        assert_eq!(verdict("docs.rs:443"), HostVerdict::Allow);
        assert_eq!(verdict("c.com:443"), HostVerdict::Ask);
        assert_eq!(
            warnings,
            [
                "Settings: s.json:1: `sandbox.network.allowedDomains`: `not a host` is no host and has no effect \
              (write the host alone, as `example.com`)"
            ]
        );
        let managed = NetworkSettings { managed_only: true, is_strict: true, ..NetworkSettings::default() };
        let (rules, _) = domain_rules(&managed, &permissions);
        assert!(matches!(rules.verdict(&Target::parse("docs.rs:443").unwrap()), HostVerdict::Deny(_)));
    }
}
