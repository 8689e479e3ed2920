//! Names and bytes nobody can guess.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};

/// Bytes nobody can guess.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // Without randomness there are no sessions and no seals; going on would be worse than stopping.
        #[expect(clippy::panic, reason = "the system has no source of randomness")]
        {
            panic!("the system's source of randomness failed");
        }
    }
    bytes
}

/// A name nobody can guess, of visible ASCII characters.
pub(crate) fn random_name() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<24>())
}
