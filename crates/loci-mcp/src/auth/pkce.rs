//! The proof that whoever trades a code is whoever asked for it (RFC 7636, method S256).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loci_stdx::Random;
use sha2::{Digest, Sha256};

/// A secret of one login, and what is told of it beforehand. It has no `Debug`, so that no message can show it.
#[derive(Clone)]
pub(crate) struct Pkce {
    pub(crate) verifier: String,
    pub(crate) challenge: String,
}

impl Pkce {
    pub(crate) fn new(random: &dyn Random) -> Self {
        let verifier = secret(random);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        Self { verifier, challenge }
    }
}

/// Returns a text of 256 random bits that fits into an address.
pub(crate) fn secret(random: &dyn Random) -> String {
    let mut bytes = [0; 32];
    random.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_is_the_hash_of_the_verifier() {
        // The example of RFC 7636, appendix B.
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(b"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_eq!(hash, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let pkce = Pkce::new(&loci_stdx::SeededRandom::new(1));
        assert_eq!((pkce.verifier.len(), pkce.challenge.len()), (43, 43));
        assert_ne!(pkce.verifier, Pkce::new(&loci_stdx::SeededRandom::new(2)).verifier);
    }
}
