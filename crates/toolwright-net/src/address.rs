//! The one table of addresses: which belong to the public internet, and which are this machine's own.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Blocks of version 4 that are not the public internet, with the length of their prefix.
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

/// Blocks within `2000::/3` that are not the public internet, or carry a version 4 address inside.
const CLOSED_6: [(u128, u32); 4] =
    [(0x2001_0000 << 96, 23), (0x2001_0db8 << 96, 32), (0x2002_0000 << 96, 16), (0x3fff_0000 << 96, 20)];

/// True for addresses of the public internet that are not this machine's own. Services of a machine often
/// listen on all of its addresses, and trust clients on the same machine.
pub fn is_open(address: IpAddr) -> bool {
    is_public(address) && !is_own(address)
}

/// True for public addresses: not loopback, not a private or special network, not a cloud's services for its
/// machines. Everything that is not surely public is not.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let number = u32::from(address);
    !CLOSED.iter().any(|(block, length)| (number ^ u32::from(Ipv4Addr::from(*block))) >> (32 - length) == 0)
}

/// Only `2000::/3` is handed out. Mapped and translated addresses are outside of it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let number = u128::from(address);
    let within = |block: u128, length: u32| (number ^ block) >> (128 - length) == 0;
    within(0x2000 << 112, 3) && !CLOSED_6.iter().any(|(block, length)| within(*block, *length))
}

/// True for an address of this machine's interfaces. The kernel lets a socket be bound to those and to no
/// other, and knows routes of whole blocks to itself that no list of interfaces shows.
pub fn is_own(address: IpAddr) -> bool {
    let documentation: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    match UdpSocket::bind((address, 0)) {
        // With `ip_nonlocal_bind` every address can be bound. A packet to oneself still has one sender.
        Ok(_) if UdpSocket::bind((documentation, 0)).is_ok() => sends_to_itself(address),
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => false,
        // Without this family nothing can be reached over it. Any other error decides nothing: closed.
        Err(error) => error.kind() != ErrorKind::Unsupported && error.raw_os_error() != Some(NO_FAMILY),
    }
}

/// `EAFNOSUPPORT`.
const NO_FAMILY: i32 = if cfg!(target_os = "linux") { 97 } else { 47 };

/// Whether the route to an address begins at the address itself. No packet is sent.
fn sends_to_itself(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let sender = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    sender.is_ok_and(|sender| sender.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
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

    #[test]
    fn the_addresses_of_this_machine_are_its_own_and_no_others() {
        for own in ["127.0.0.1", "127.200.3.4"] {
            let own = own.parse().unwrap();
            assert!(is_own(own) && !is_open(own), "{own}");
        }
        for other in ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1"] {
            assert!(!is_own(other.parse().unwrap()), "{other}");
        }
    }
}
