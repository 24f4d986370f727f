//! Certificates that are trusted for what they are: somebody named the very file.
//!
//! A server of one's own often has a certificate that signed itself (`openssl req -x509` makes one, and says that it is an
//! authority). A strict verifier takes it for an authority only, never for a server. Here it passes where it equals, byte for
//! byte, one that was named, and is for the name and the time at hand. What it is used for, and everything about certificates
//! that were not named, stays as strict as it was; the server proves that it has the key as always.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What the library says of an authority in a server's place. It says so only of one that the time fits: it looks at the time
/// first.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// The strict verifier, and the certificates that were named.
#[derive(Debug)]
pub(super) struct NamedCertificates {
    strict: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl NamedCertificates {
    pub(super) fn new(
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let strict = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Self { strict, named })
    }
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.strict.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(error) if is_of_its_signer(&error) && self.named.iter().any(|it| it == certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.strict.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.strict.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}

/// Tells whether a certificate was refused for who signed it alone.
fn is_of_its_signer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(CertificateError::Other(why)) => why.0.to_string() == AUTHORITY_AS_SERVER,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
        date_time_ymd,
    };
    use rustls::crypto::aws_lc_rs;

    use super::*;

    /// Some time in 2026.
    const NOW: u64 = 1_780_000_000;

    fn params(is_authority: bool) -> CertificateParams {
        let mut params = CertificateParams::new(["gateway.test".to_owned()]).unwrap();
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params.not_before = date_time_ymd(2025, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        params
    }

    fn made(params: CertificateParams) -> CertificateDer<'static> {
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn verdict(
        named: &CertificateDer<'static>,
        shown: &CertificateDer<'static>,
        name: &str,
    ) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        roots.add_parsable_certificates([named.clone()]);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = NamedCertificates::new(roots, vec![named.clone()], provider).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW));
        verifier.verify_server_cert(shown, &[], &name, &[], now).map(drop)
    }

    #[test]
    fn certificate_that_signed_itself_is_accepted_where_it_is_named() {
        for is_authority in [true, false] {
            let own = made(params(is_authority));
            assert_eq!(verdict(&own, &own, "gateway.test"), Ok(()), "authority: {is_authority}");
        }
    }

    #[test]
    fn named_certificate_is_refused_for_another_name() {
        for is_authority in [true, false] {
            let own = made(params(is_authority));
            let error = verdict(&own, &own, "other.test").unwrap_err().to_string();
            assert!(error.contains("not valid for name"), "{error}");
        }
    }

    #[test]
    fn named_certificate_is_refused_out_of_its_time() {
        for is_authority in [true, false] {
            let mut over = params(is_authority);
            over.not_after = date_time_ymd(2026, 1, 1);
            let over = made(over);
            let error = verdict(&over, &over, "gateway.test").unwrap_err().to_string();
            assert!(error.contains("expired"), "{error}");
            let mut early = params(is_authority);
            early.not_before = date_time_ymd(2026, 12, 1);
            let early = made(early);
            let error = verdict(&early, &early, "gateway.test").unwrap_err().to_string();
            assert!(error.contains("not valid yet"), "{error}");
        }
    }

    #[test]
    fn named_certificate_is_refused_for_another_use() {
        let mut params = params(false);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = made(params);
        assert!(verdict(&client, &client, "gateway.test").is_err());
    }

    #[test]
    fn certificate_that_is_not_named_is_refused() {
        // The same words, signed by another key.
        let (named, shown) = (made(params(true)), made(params(true)));
        assert!(verdict(&named, &shown, "gateway.test").is_err());
        let (named, shown) = (made(params(false)), made(params(false)));
        assert!(verdict(&named, &shown, "gateway.test").is_err());
    }

    #[test]
    fn certificate_of_a_named_authority_is_accepted_as_ever() {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let own = issuer.der().clone();
        let signed = |params: CertificateParams| {
            params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
        };
        assert_eq!(verdict(&own, &signed(params(false)), "gateway.test"), Ok(()));
        assert!(
            verdict(&own, &signed(params(true)), "gateway.test").is_err(),
            "an authority that was not named"
        );
        assert!(verdict(&own, &signed(params(false)), "other.test").is_err());
    }
}
