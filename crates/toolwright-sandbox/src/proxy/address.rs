//! Addresses a name must not lead to: this machine, its neighbours, and services that hand out credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of version 4 that are not the public network, with the length of their prefix. What dials
/// for pages of the web has the same table (`net/src/reach.rs`); `testdata/net/addresses.json` holds both to
/// it.
const CLOSED: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Blocks within `2000::/3` that are not the public network, or carry a version 4 address inside.
const CLOSED_6: [(u128, u32); 4] =
    [(0x2001_0000 << 96, 23), (0x2001_0db8 << 96, 32), (0x2002_0000 << 96, 16), (0x3fff_0000 << 96, 20)];

/// Whether an address belongs to the public network. Everything that is not surely public is not.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => public_4(address),
        IpAddr::V6(address) => public_6(address),
    }
}

fn public_4(address: Ipv4Addr) -> bool {
    let number = u32::from(address);
    !CLOSED.iter().any(|(block, length)| (number ^ u32::from(Ipv4Addr::from(*block))) >> (32 - length) == 0)
}

fn public_6(address: Ipv6Addr) -> bool {
    let number = u128::from(address);
    let within = |block: u128, length: u32| (number ^ block) >> (128 - length) == 0;
    within(0x2000 << 112, 3) && !CLOSED_6.iter().any(|(block, length)| within(*block, *length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_public_network_is_closed() {
        #[derive(serde::Deserialize)]
        struct Vector {
            name: String,
            address: IpAddr,
            public: bool,
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/net/addresses.json");
        let vectors: Vec<Vector> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        for Vector { name, address, public } in vectors {
            assert_eq!(is_public(address), public, "{name}: {address}");
        }
    }
}
