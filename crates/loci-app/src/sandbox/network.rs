//! What sandboxed commands may reach: hosts of settings and of `WebFetch(domain:…)` rules, through our proxy or the user's own.

use std::sync::Arc;

use loci_sandbox::Connections;
use loci_sandbox::egress::rules::DomainRules;
use loci_sandbox::egress::{Egress, UpstreamProxy, connections, forward};
use loci_settings::{NetworkSettings, PermissionSettings, Scope, Sourced};
use loci_stdx::Env;

use super::specifier;

/// What a session's commands reach the network by.
pub(super) struct SessionNetwork {
    /// Takes their connections.
    pub(super) connections: Connections,
    /// What decides about hosts.
    pub(super) egress: Arc<Egress>,
    /// Hosts that were refused, in words.
    pub(super) refused: Arc<std::sync::Mutex<Vec<String>>>,
    /// What the user should know.
    pub(super) warnings: Vec<String>,
}

impl SessionNetwork {
    /// Makes the way to the network that settings ask for.
    pub(super) fn new(env: &Env, network: &NetworkSettings, permissions: &PermissionSettings) -> Self {
        let (rules, warnings) = domain_rules(network, permissions);
        let upstream = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"]
            .iter()
            .find_map(|name| env.vars.non_empty(name))
            .and_then(|address| {
                let direct = env.vars.non_empty("NO_PROXY").or_else(|| env.vars.non_empty("no_proxy"));
                UpstreamProxy::parse(address, direct.unwrap_or_default())
            });
        let egress = Arc::new(Egress::new(rules, upstream));
        let refused = Arc::clone(&egress.refused);
        let connections = match network.http_proxy_port.or(network.socks_proxy_port) {
            Some(_) => forward(network.http_proxy_port, network.socks_proxy_port),
            None => connections(Arc::clone(&egress)),
        };
        Self { connections, egress, refused, warnings }
    }
}

/// Brings hosts of settings and rules together; what is denied wins.
pub(super) fn domain_rules(
    network: &NetworkSettings,
    permissions: &PermissionSettings,
) -> (DomainRules, Vec<String>) {
    let mut rules = DomainRules::new(network.is_strict);
    let mut warnings = Vec::new();
    let mut said = |source: &Sourced, outcome: Result<(), String>| {
        if let Err(why) = outcome {
            warnings.push(format!("Settings: {}:{}: {why}", source.origin.name, source.line));
        }
    };
    let place = |source: &Sourced| format!("{}:{}", source.origin.name, source.line);
    for host in &network.denied {
        said(host, rules.deny_by(&host.text, Some(&place(host))));
    }
    for host in &network.allowed {
        said(host, rules.allow(&host.text));
    }
    let fetched = |rules: &'_ [Sourced]| -> Vec<(Sourced, String)> {
        rules.iter().filter_map(|rule| Some((rule.clone(), fetched_host(&rule.text)?.to_owned()))).collect()
    };
    for (rule, host) in fetched(&permissions.deny) {
        said(&rule, rules.deny_by(&host, Some(&place(&rule))));
    }
    let counts = |rule: &Sourced| {
        !(network.managed_only || permissions.managed_rules_only) || rule.origin.scope == Scope::Managed
    };
    for (rule, host) in fetched(&permissions.allow).into_iter().filter(|(rule, _)| counts(rule)) {
        said(&rule, rules.allow(&host));
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
        assert_eq!(warnings, ["Settings: s.json:1: `not a host` is no host"]);
        let managed = NetworkSettings { managed_only: true, is_strict: true, ..NetworkSettings::default() };
        let (rules, _) = domain_rules(&managed, &permissions);
        assert!(matches!(rules.verdict(&Target::parse("docs.rs:443").unwrap()), HostVerdict::Deny(_)));
    }
}
