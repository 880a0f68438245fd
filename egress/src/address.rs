//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `address` is one that anybody on the internet may own: not loopback, private, link-local (where cloud
/// machines keep their metadata), shared, reserved, for documentation, or multicast (RFC 6890 and its registries).
///
/// An IPv6 address that carries an IPv4 address is judged by that one.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether `address` is this machine.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

const fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a >= 224
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        // Shared between a carrier and its customers (RFC 6598); one cloud keeps its metadata there.
        || (a == 100 && b & 0xC0 == 64)
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && b & 0xFE == 18))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    match segments {
        // NAT64 (RFC 6052): the last 32 bits are the IPv4 address that is reached.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
        // 6to4 (RFC 3056): so are the 32 bits after the prefix.
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
        // Protocol assignments, Teredo among them, and documentation.
        [0x2001, second, ..] => second >= 0x0200 && second != 0x0db8,
        [0x3fff, second, ..] => second > 0x0fff,
        // Global unicast is 2000::/3.
        [first, ..] => first & 0xE000 == 0x2000,
    }
}

const fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::{is_loopback, is_public};

    #[test]
    fn addresses_of_machines_networks_and_clouds_are_not_public() {
        for text in [
            "0.0.0.0",
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn addresses_of_public_services_are_public() {
        for text in ["1.1.1.1", "8.8.8.8", "104.18.7.192", "2606:4700::6812:7c0", "2a00:1450::1", "64:ff9b::808:808"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn loopback_is_known_in_every_spelling() {
        for text in ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(text.parse().unwrap()), "{text}");
        }
        assert!(!is_loopback("128.0.0.1".parse().unwrap()));
    }
}
