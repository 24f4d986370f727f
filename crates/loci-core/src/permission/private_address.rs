//! Addresses that are nobody's on the open internet: this machine, its neighbours, and what clouds answer their own
//! machines with (S-33).
//!
//! Whoever lets a name of the open internet be contacted has not said yes to these. A host that is one of them by its
//! spelling is asked about by [`super::decide`]; one that only turns out to be when its name is looked up is refused by
//! whoever connects, with [`is_private_address`].

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Tells whether an address is on this machine or on a network of its own.
#[must_use]
pub fn is_private_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

/// Tells whether a canonical host is private by its spelling: such an address, or a name that no public server answers to.
#[must_use]
pub fn is_private_host(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = inner.parse::<IpAddr>() {
        return is_private_address(address);
    }
    const SUFFIXES: [&str; 6] = [".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet"];
    !host.contains('.') || SUFFIXES.iter().any(|suffix| host.ends_with(suffix))
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        // Shared by the customers of a provider (RFC 6598).
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments and benchmarks (RFC 6890, RFC 2544).
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_v4(address) {
        return is_private_v4(inner);
    }
    let segments = address.segments();
    // Nothing outside 2000::/3 has been given out: loopback, unique local, link local and multicast lie there.
    (segments[0] & 0xe000) != 0x2000 || (segments[0], segments[1]) == (0x2001, 0x0db8)
}

/// Returns the IPv4 address that packets to this one end at: mapped, compatible, NAT64, 6to4 and Teredo.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(from(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) != (0, 0) && (high, low) != (0, 1) => {
            Some(from(high, low))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x64, 0xff9b, 1, ..] => Some(Ipv4Addr::LOCALHOST),
        [0x2002, high, low, ..] => Some(from(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(from(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_its_networks_are_private() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.255.0.3", true),
            ("0.0.0.0", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("172.32.0.1", false),
            ("192.168.1.1", true),
            ("169.254.169.254", true),
            ("100.64.0.1", true),
            ("100.128.0.1", false),
            ("198.18.0.1", true),
            ("224.0.0.1", true),
            ("255.255.255.255", true),
            ("8.8.8.8", false),
            ("::1", true),
            ("::", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("fec0::1", true),
            ("ff02::1", true),
            ("::ffff:10.0.0.1", true),
            ("::ffff:8.8.8.8", false),
            ("::7f00:1", true),
            ("64:ff9b::a9fe:a9fe", true),
            ("64:ff9b::808:808", false),
            ("2002:7f00:1::", true),
            ("2002:808:808::", false),
            ("2606:4700::1111", false),
            ("fd00:ec2::254", true),
            ("2001:db8::1", true),
            ("64:ff9b::a00:1", true),
            ("93.184.216.34", false),
        ] {
            assert_eq!(is_private_address(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn hosts_that_no_public_server_answers_to_are_private() {
        for (host, expected) in [
            ("localhost", true),
            ("app.localhost", true),
            ("printer", true),
            ("nas.local", true),
            ("metadata.google.internal", true),
            ("router.lan", true),
            ("127.0.0.1", true),
            ("[::1]", true),
            ("[2606:4700::1111]", false),
            ("8.8.8.8", false),
            ("docs.rs", false),
            ("local.example.com", false),
            ("internal.example.com", false),
        ] {
            assert_eq!(is_private_host(host), expected, "{host}");
        }
    }
}
