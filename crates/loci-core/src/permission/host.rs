//! Hosts of addresses, as rules compare them (S-32).
//!
//! [`canonical_host`] reads an address the way browsers do: what counts is the parsed host, in lower case, without
//! user, port and trailing dot, numbers made into an IPv4 address. What it cannot be sure of has no host, and a
//! fetch of it is asked about.
//!
//! By hand, although the crate `url` reads addresses the same way: it also makes a host of what is doubtful (letters beyond
//! ASCII, by tables that this crate would carry), and here doubt must stay doubt.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::glob::matches;
use crate::hex::decode_percent;

/// The hosts a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostPattern {
    /// All.
    Any,
    /// Every host below this one, at any depth.
    Below(String),
    /// Label by label; `*` stays within a label.
    Labels(String),
}

impl HostPattern {
    /// Reads `domain:host`.
    pub(super) fn parse(spec: &str) -> Option<Self> {
        let host = spec.trim().strip_prefix("domain")?.trim_start().strip_prefix(':')?.trim();
        let host = fold(host)?;
        match host.as_str() {
            "" => None,
            "*" => Some(Self::Any),
            text => Some(match text.strip_prefix("*.") {
                Some(parent) if !parent.contains('*') => Self::Below(parent.to_owned()),
                _ => Self::Labels(text.to_owned()),
            }),
        }
    }

    /// Tells whether it speaks of some hosts only.
    pub(super) fn is_specific(&self) -> bool {
        match self {
            Self::Any => false,
            Self::Below(_) => true,
            Self::Labels(pattern) => pattern.split('.').any(|label| !label.contains('*')),
        }
    }

    /// Compares with a canonical host.
    pub(super) fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Below(parent) => {
                host.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            Self::Labels(pattern) => {
                let (mut wanted, mut found) = (pattern.split('.'), host.split('.'));
                loop {
                    match (wanted.next(), found.next()) {
                        (None, None) => return true,
                        (Some(wanted), Some(found)) if matches(wanted, found) => {}
                        _ => return false,
                    }
                }
            }
        }
    }
}

/// Returns the host that the address of a web socket would contact, or `None` when that is not certain.
pub fn socket_host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once(':')?;
    let is_socket = scheme.eq_ignore_ascii_case("ws") || scheme.eq_ignore_ascii_case("wss");
    is_socket.then(|| canonical_host(&format!("http:{rest}")))?
}

/// Returns the host an http address would contact, or `None` when that is not certain.
pub fn canonical_host(url: &str) -> Option<String> {
    let url: String = url.trim().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    if url.chars().any(|c| c.is_control()) {
        return None;
    }
    let (scheme, rest) = url.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host_port = authority.rsplit('@').next().unwrap_or_default();
    if let Some(inner) = host_port.strip_prefix('[') {
        let address: Ipv6Addr = inner.split(']').next()?.parse().ok()?;
        return Some(match address.to_ipv4_mapped() {
            Some(v4) => v4.to_string(),
            None => format!("[{address}]"),
        });
    }
    let host = host_port.split(':').next().unwrap_or_default();
    let host = fold(&decode_percent(host)?)?;
    if host.is_empty() || host.contains(|c: char| !(c.is_ascii_alphanumeric() || "-._".contains(c))) {
        return None;
    }
    match host.rsplit('.').next() {
        Some(last) if is_number(last) => ipv4(&host).map(|address| address.to_string()),
        _ => Some(host),
    }
}

/// Lower case, wide letters made narrow, one trailing dot removed. Other letters beyond ASCII would need tables.
fn fold(host: &str) -> Option<String> {
    let narrow = |c: char| match c {
        '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => Some('.'),
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        c if c.is_ascii() => Some(c),
        _ => None,
    };
    let narrow: String = host.chars().map(narrow).collect::<Option<_>>()?;
    let lower = narrow.to_ascii_lowercase();
    Some(lower.strip_suffix('.').unwrap_or(&lower).to_owned())
}

fn is_number(label: &str) -> bool {
    label.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads one to four numbers, decimal, octal or hexadecimal, the last filling what is left.
fn ipv4(host: &str) -> Option<Ipv4Addr> {
    let numbers: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, heads) = numbers.split_last()?;
    if heads.len() > 3 || heads.iter().any(|part| *part > 255) || *last >= 1 << (8 * (4 - heads.len())) {
        return None;
    }
    let high: u64 = heads.iter().enumerate().map(|(idx, part)| part << (8 * (3 - idx))).sum();
    u32::try_from(high + last).ok().map(Ipv4Addr::from)
}

fn number(text: &str) -> Option<u64> {
    match text {
        "" => None,
        _ if text.starts_with("0x") => {
            let digits = &text[2..];
            if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 16).ok() }
        }
        _ if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// Hosts of documentation that may be fetched unasked (S-34): the exact host, nothing below it.
#[rustfmt::skip]
const DOCUMENTATION: &[&str] = &[
    "code.claude.com", "developer.mozilla.org", "dev.mysql.com", "devcenter.heroku.com", "devdocs.io",
    "developer.android.com", "developer.apple.com", "developer.hashicorp.com", "doc.rust-lang.org", "docs.anthropic.com",
    "docs.aws.amazon.com", "docs.claude.com", "docs.djangoproject.com", "docs.docker.com", "docs.github.com",
    "docs.gitlab.com", "docs.npmjs.com", "docs.oracle.com", "docs.python.org", "docs.rs", "docs.spring.io",
    "docs.swift.org", "en.cppreference.com", "expressjs.com", "fastapi.tiangolo.com", "flask.palletsprojects.com",
    "getbootstrap.com", "git-scm.com", "go.dev", "gradle.org", "graphql.org", "hibernate.org", "jestjs.io", "jquery.com",
    "keras.io", "kotlinlang.org", "kubernetes.io", "laravel.com", "learn.microsoft.com", "maven.apache.org",
    "modelcontextprotocol.io", "nextjs.org", "nginx.org", "nodejs.org", "numpy.org", "pandas.pydata.org", "pkg.go.dev",
    "platform.claude.com", "pytorch.org", "react.dev", "reactnative.dev", "redis.io", "ruby-doc.org",
    "scikit-learn.org", "spark.apache.org", "svelte.dev", "symfony.com", "tailwindcss.com", "threejs.org",
    "tomcat.apache.org", "vuejs.org", "webpack.js.org", "www.mongodb.com", "www.php.net", "www.postgresql.org",
    "www.sqlite.org", "www.tensorflow.org", "www.typescriptlang.org",
];

/// Returns true for a host of the built-in list of documentation.
pub(super) fn is_documentation(host: &str) -> bool {
    DOCUMENTATION.contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_parsed_not_searched() {
        for (url, expected) in [
            ("https://Example.COM/x", Some("example.com")),
            ("https:/example.com", Some("example.com")),
            ("https:example.com", Some("example.com")),
            ("https:\\\\example.com\\@evil.test", Some("example.com")),
            ("https://docs.rs@evil.test/", Some("evil.test")),
            ("https://a:b@c@evil.test:8080/", Some("evil.test")),
            ("https://example.com.:443", Some("example.com")),
            ("https://example.com#@evil.test", Some("example.com")),
            ("https://example.com?@evil.test", Some("example.com")),
            ("https://ex\tample.com", Some("example.com")),
            ("https://exam%70le.com", Some("example.com")),
            ("https://ｅxample。com", Some("example.com")),
            ("http://2130706433/", Some("127.0.0.1")),
            ("http://0x7f.1/", Some("127.0.0.1")),
            ("http://0177.0.0.1/", Some("127.0.0.1")),
            ("http://10.0.0.1.", Some("10.0.0.1")),
            ("http://[::ffff:10.0.0.1]/", Some("10.0.0.1")),
            ("http://[::1]:80/", Some("[::1]")),
            ("http://256.1.1.1/", None),
            ("http://1.2.3.4.5/", None),
            ("https://exa\0mple.com", None),
            ("https://exämple.com", None),
            ("https://a%00b", None),
            ("https://", None),
            ("ftp://example.com", None),
            ("example.com", None),
        ] {
            assert_eq!(canonical_host(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn domain_patterns() {
        for (pattern, host, expected) in [
            ("domain:example.com", "example.com", true),
            ("domain:Example.com.", "example.com", true),
            ("domain:example.com", "a.example.com", false),
            ("domain:example.com", "example.com.evil.test", false),
            ("domain:*.wild.test", "a.b.wild.test", true),
            ("domain:*.wild.test", "wild.test", false),
            ("domain:*.wild.test", "xwild.test", false),
            ("domain:tail.*", "tail.com", true),
            ("domain:tail.*", "tail.co.uk", false),
            ("domain:a*.mid.test", "abc.mid.test", true),
            ("domain:a*.mid.test", "a.b.mid.test", false),
            ("domain:*", "any.thing", true),
        ] {
            assert_eq!(HostPattern::parse(pattern).unwrap().matches(host), expected, "{pattern} ~ {host}");
        }
    }
}
