//! What binds a proof of a password to the certificate of whom it is given to: `tls-server-end-point` of RFC 5929.
//!
//! It is a hash of the certificate, by the function that its signature was made with, SHA-256 for older ones. A certificate
//! whose signature is of another kind binds nothing, and SCRAM does without.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// Object identifiers of signatures with SHA-2 over RSA and ECDSA: all but the last byte, and the last byte for 256,
/// 384 and 512 bits.
const WITH_SHA2: [(&[u8], [u8; 3]); 2] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01], [0x0b, 0x0c, 0x0d]),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03], [0x02, 0x03, 0x04]),
];
const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Returns the hash that binds, of a certificate in DER.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let oid = signature_algorithm(certificate)?;
    let (last, prefix) = oid.split_last()?;
    let (_, lasts) = WITH_SHA2.into_iter().find(|(known, _)| *known == prefix)?;
    match lasts.into_iter().position(|it| it == *last)? {
        0 => Some(Sha256::digest(certificate).to_vec()),
        1 => Some(Sha384::digest(certificate).to_vec()),
        _ => Some(Sha512::digest(certificate).to_vec()),
    }
}

/// Returns the object identifier of a certificate's signature: `SEQUENCE { tbs SEQUENCE, SEQUENCE { OID, .. }, .. }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(whole, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    Some(element(algorithm, OBJECT_IDENTIFIER)?.0)
}

/// Returns the content of the first element, which has to have this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match length {
        ..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    (found == tag).then_some((content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_signature() {
        for (algorithm, n_bytes) in
            [(&PKCS_ECDSA_P256_SHA256, Some(32)), (&PKCS_ECDSA_P384_SHA384, Some(48)), (&PKCS_ED25519, None)]
        {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            let certificate = params.self_signed(&key).unwrap();
            let bound = end_point(certificate.der());
            assert_eq!(bound.as_ref().map(Vec::len), n_bytes);
            for end in 0..certificate.der().len() {
                assert_eq!(end_point(&certificate.der()[..end]), None, "what is cut binds nothing");
            }
        }
        for odd in
            [&[][..], &[0x30], &[0x30, 0x80], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 0x84, 255, 255, 255, 255]]
        {
            assert_eq!(end_point(odd), None);
        }
    }
}
