//! The one parsed host that everything is decided on (SB-8).

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use loci_core::permission::canonical_host;

/// Where a connection is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// A host: a name in lower case without a dot at its end, or an address in its one form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name.
    Name(String),
    /// An address; one of version 4 in a form of version 6 is of version 4.
    Ip(IpAddr),
}

/// The longest name.
const LONGEST: usize = 253;

impl Host {
    /// Reads a host as a client names it; none where it is not certain which one is meant.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > LONGEST || text.contains(is_suspicious) {
            return None;
        }
        let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<Ipv6Addr>() {
            return Some(Self::from_ip(IpAddr::V6(address)));
        }
        if text.contains([':', '[', ']']) {
            return None;
        }
        let host = canonical_host(&format!("http://{text}/"))?;
        match host.parse::<IpAddr>() {
            Ok(address) => Some(Self::from_ip(address)),
            Err(_) if host.split('.').any(str::is_empty) => None,
            Err(_) => Some(Self::Name(host)),
        }
    }

    /// Takes an address in its one form.
    pub fn from_ip(address: IpAddr) -> Self {
        match address {
            IpAddr::V6(v6) => Self::Ip(v6.to_ipv4_mapped().map_or(address, IpAddr::V4)),
            IpAddr::V4(_) => Self::Ip(address),
        }
    }
}

/// What no host has, and what others read as the end of one.
fn is_suspicious(c: char) -> bool {
    c.is_control() || c.is_whitespace() || "@/\\?#%".contains(c)
}

impl Target {
    /// Reads `host:port`, as CONNECT has it.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let is_bare_v6 = host.contains(':') && !host.starts_with('[');
        let port = port.parse().ok().filter(|port| *port != 0)?;
        (!is_bare_v6).then_some(())?;
        Some(Self { host: Host::parse(host)?, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Ip(IpAddr::V4(address)) => write!(f, "{address}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_form_or_none() {
        for (text, expected) in [
            ("Example.COM:443", Some("example.com:443")),
            ("example.com.:443", Some("example.com:443")),
            ("127.1:80", Some("127.0.0.1:80")),
            ("2130706433:80", Some("127.0.0.1:80")),
            ("0x7f000001:80", Some("127.0.0.1:80")),
            ("0177.0.0.1:80", Some("127.0.0.1:80")),
            ("[::ffff:127.0.0.1]:80", Some("127.0.0.1:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("::1:80", None),
            ("good.com@evil.com:443", None),
            ("good.com\0.evil.com:443", None),
            ("good.com%00.evil.com:443", None),
            ("a b:80", None),
            ("пример.com:443", None),
            ("example..com:443", None),
            ("example.com:0", None),
            ("example.com:99999", None),
            ("example.com", None),
            (":443", None),
        ] {
            assert_eq!(Target::parse(text).map(|it| it.to_string()).as_deref(), expected, "{text:?}");
        }
        assert_eq!(Host::parse(&"a".repeat(255)), None);
    }
}
