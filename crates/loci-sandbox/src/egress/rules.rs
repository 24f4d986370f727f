//! Which hosts may be reached: `host`, `*.host` (strictly below it), an address, `[v6]`, each with an optional `:port`.

use std::net::{IpAddr, Ipv6Addr};

use super::target::{Host, Target};

/// What settings and rules say of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainRules {
    allowed: Vec<DomainPattern>,
    denied: Vec<DomainPattern>,
    /// Whether hosts that nothing is said of are refused unasked.
    is_strict: bool,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DomainPattern {
    text: String,
    /// File and line that say so, where they are known.
    source: Option<String>,
    host: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Any,
    Exact(Host),
    Below(String),
}

/// What is said of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostVerdict {
    /// It may be reached.
    Allow,
    /// It may not, and why.
    Deny(String),
    /// Nothing.
    Ask,
}

impl DomainRules {
    /// Makes rules that say nothing of any host; strict ones refuse such hosts unasked.
    pub fn new(is_strict: bool) -> Self {
        Self { is_strict, ..Self::default() }
    }

    /// Adds a host that may be reached; the error says why it is left out.
    pub fn allow(&mut self, text: &str) -> Result<(), String> {
        match readings(text).as_slice() {
            [one] => self.allowed.push(one.clone()),
            [] => return Err(no_host(text)),
            _ => {
                return Err(format!(
                    "`{text}` may be an address or one with a port; write `[address]` or `[address]:port`"
                ));
            }
        }
        Ok(())
    }

    /// Adds a host that may not be reached; an ambiguous one is refused in every reading.
    pub fn deny(&mut self, text: &str) -> Result<(), String> {
        self.deny_by(text, None)
    }

    /// Does the same, and remembers the file and the line that say so.
    pub fn deny_by(&mut self, text: &str, source: Option<&str>) -> Result<(), String> {
        let mut found = readings(text);
        found.iter_mut().for_each(|it| it.source = source.map(str::to_owned));
        let problem = match found.len() {
            0 => Some(no_host(text)),
            1 => None,
            _ => Some(format!("`{text}` may be an address or one with a port; both are refused")),
        };
        self.denied.extend(found);
        problem.map_or(Ok(()), Err)
    }

    /// Decides; what is denied wins.
    pub fn verdict(&self, target: &Target) -> HostVerdict {
        let find = |list: &'_ [DomainPattern]| list.iter().find(|it| it.matches(target)).cloned();
        match (find(&self.denied), find(&self.allowed), self.is_strict) {
            (Some(DomainPattern { text, source, .. }), ..) => {
                let source = source.map(|it| format!(" ({it})")).unwrap_or_default();
                HostVerdict::Deny(format!("`{text}` is denied{source}"))
            }
            (None, Some(_), _) => HostVerdict::Allow,
            (None, None, true) => {
                HostVerdict::Deny("it is on no list, and other hosts are not asked about".to_owned())
            }
            (None, None, false) => HostVerdict::Ask,
        }
    }

    /// Returns how many hosts, or patterns of hosts, are allowed; those that are repeated once.
    pub fn n_allowed(&self) -> usize {
        let texts: std::collections::BTreeSet<&str> =
            self.allowed.iter().map(|it| it.text.as_str()).collect();
        texts.len()
    }

    /// Tells whether a rule denies a target, so that nothing can allow it.
    pub fn is_denied(&self, target: &Target) -> bool {
        self.denied.iter().any(|it| it.matches(target))
    }

    /// Tells whether an address is allowed by name, so that it need not be a public one.
    pub fn names_address(&self, address: IpAddr) -> bool {
        let host = Host::from_ip(address);
        self.allowed.iter().any(|it| matches!(&it.host, HostPattern::Exact(exact) if *exact == host))
    }
}

impl DomainPattern {
    fn matches(&self, target: &Target) -> bool {
        let is_host = match (&self.host, &target.host) {
            (HostPattern::Any, _) => true,
            (HostPattern::Exact(own), host) => own == host,
            (HostPattern::Below(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (HostPattern::Below(_), Host::Ip(_)) => false,
        };
        is_host && self.port.is_none_or(|port| port == target.port)
    }
}

/// Returns every way to read a rule.
fn readings(text: &str) -> Vec<DomainPattern> {
    let text = text.trim();
    let pattern = |host, port| DomainPattern { text: text.to_owned(), source: None, host, port };
    if text == "*" {
        return vec![pattern(HostPattern::Any, None)];
    }
    let is_bare_v6 = !text.starts_with('[') && text.matches(':').count() > 1;
    if is_bare_v6 {
        let whole = text.parse::<Ipv6Addr>().ok().map(|it| (it, None));
        let with_port = text.rsplit_once(':').and_then(|(address, port)| {
            Some((address.parse::<Ipv6Addr>().ok()?, Some(port.parse::<u16>().ok()?)))
        });
        let both = whole.into_iter().chain(with_port);
        return both
            .map(|(it, port)| pattern(HostPattern::Exact(Host::from_ip(IpAddr::V6(it))), port))
            .collect();
    }
    let ends_in_bracket = text.ends_with(']');
    let (host, port) = match text.rsplit_once(':').filter(|_| !ends_in_bracket) {
        Some((host, port)) => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => return Vec::new(),
        },
        None => (text, None),
    };
    let host = match host.strip_prefix("*.") {
        Some(parent) => match Host::parse(parent) {
            Some(Host::Name(parent)) => HostPattern::Below(parent),
            _ => return Vec::new(),
        },
        None => match Host::parse(host) {
            Some(host) => HostPattern::Exact(host),
            None => return Vec::new(),
        },
    };
    vec![pattern(host, port)]
}

fn no_host(text: &str) -> String {
    format!("`{text}` is no host and has no effect (write the host alone, as `example.com`)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_wins_and_wildcards_are_strictly_below() {
        let mut rules = DomainRules::default();
        for text in ["example.com", "*.example.org", "10.0.0.1", "[2001:4860::1]:443", "only.net:8080"] {
            rules.allow(text).unwrap();
        }
        for text in ["bad.example.org", "*.evil.example.org"] {
            rules.deny(text).unwrap();
        }
        for (target, expected) in [
            ("example.com:443", "allow"),
            ("EXAMPLE.com.:80", "allow"),
            ("www.example.com:443", "ask"),
            ("notexample.com:443", "ask"),
            ("example.com.evil.net:443", "ask"),
            ("www.example.org:443", "allow"),
            ("example.org:443", "ask"),
            ("bad.example.org:443", "deny"),
            ("x.evil.example.org:443", "deny"),
            ("10.0.0.1:1", "allow"),
            ("167772161:1", "allow"),
            ("[2001:4860::1]:443", "allow"),
            ("[2001:4860::1]:80", "ask"),
            ("only.net:8080", "allow"),
            ("only.net:80", "ask"),
        ] {
            let found = match rules.verdict(&Target::parse(target).unwrap()) {
                HostVerdict::Allow => "allow",
                HostVerdict::Deny(_) => "deny",
                HostVerdict::Ask => "ask",
            };
            assert_eq!(found, expected, "{target}");
        }
        assert!(rules.names_address("10.0.0.1".parse().unwrap()));
        assert!(!rules.names_address("10.0.0.2".parse().unwrap()));
        let rules = DomainRules { is_strict: true, ..rules };
        assert!(matches!(rules.verdict(&Target::parse("x.y:1").unwrap()), HostVerdict::Deny(_)));
    }

    #[test]
    fn ambiguous_address_denies_every_reading_and_allows_none() {
        let mut rules = DomainRules::default();
        assert!(rules.allow("2001:4860::1:443").is_err());
        assert!(rules.deny("2001:4860::1:443").is_err());
        for target in ["[2001:4860::1:443]:80", "[2001:4860::1]:443"] {
            assert!(
                matches!(rules.verdict(&Target::parse(target).unwrap()), HostVerdict::Deny(_)),
                "{target}"
            );
        }
        for text in ["", "a b", "http://x", "*.", "*.1.2.3.4", "x:y"] {
            assert!(rules.allow(text).is_err(), "{text}");
        }
    }
}
