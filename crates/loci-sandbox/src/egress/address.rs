//! Which addresses are the world's, and which the machine's own, its network's, or nobody's (SB-9).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Tells whether an address is a public one: not loopback, private, link-local (where clouds keep their metadata),
/// shared, multicast, reserved, or one of version 4 that is none of these inside one of version 6.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match embedded_v4(v6) {
            Some(v4) => is_public_v4(v4),
            None => is_public_v6(v6),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19)))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    let is_documentation = first == 0x2001 && address.segments()[1] == 0xdb8;
    // Only 2000::/3 has been given out.
    (first & 0xe000) == 0x2000 && !is_documentation
}

/// Returns the address of version 4 that another one stands for: mapped, compatible, translated, tunnelled.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let from = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(w, x, y, z))
    };
    match (a, b) {
        (0, 0) if (c, d, e) == (0, 0, 0) && (f == 0xffff || (f == 0 && (g != 0 || h > 1))) => from(g, h),
        (0x64, 0xff9b) => from(g, h),
        (0x2002, _) => from(b, c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_world_s_addresses_are_public() {
        for (text, expected) in [
            ("93.184.216.34", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("198.18.0.1", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00:ec2::254", false),
            ("ff02::1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:93.184.216.34", true),
            ("64:ff9b::a00:1", false),
            ("2002:a00:1::", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }
}
