//! TLS to PostgreSQL, with the same library as everywhere else.
//!
//! A connection is bound to the certificate it was made with, where the password is proven by SCRAM: then somebody in
//! between is found out even if anybody's certificate is good enough.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use super::super::store::StoreError;
use super::address::{Roots, Trust};
use super::binding::end_point;

/// Makes connections speak TLS.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    config: Arc<ClientConfig>,
    /// Whose signature is wanted, for people.
    signers: Arc<str>,
}

/// Why a connection does not speak TLS, in words that follow "because".
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct TlsFailure(String);

impl Connector {
    /// Reads the certificates of those who may sign; slow, so not for an async thread.
    pub(super) fn new(trust: &Trust) -> Result<Self, StoreError> {
        let (roots, checks_name) = match trust {
            Trust::Anyone => (None, false),
            Trust::SignedBy(roots) => (Some(roots), false),
            Trust::Named(roots) => (Some(roots), true),
        };
        let signers = match roots {
            Some(Roots::File(path)) => format!("`{}`", path.display()),
            Some(Roots::System) | None => "the authorities that this system trusts".to_owned(),
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let verifier = Verifier { roots: roots.map(read_roots).transpose()?, checks_name, algorithms };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Tls(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config), signers: signers.into() })
    }
}

fn read_roots(roots: &Roots) -> Result<RootCertStore, StoreError> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::System => {
            // Those that cannot be read are left out; there are always some that are no good.
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(path) => {
            for certificate in read_certificates(path)? {
                store.add(certificate).map_err(|error| unreadable(path, &error.to_string()))?;
            }
        }
    }
    match (store.is_empty(), roots) {
        (false, _) => Ok(store),
        (true, Roots::File(path)) => Err(unreadable(path, "it holds no certificate")),
        (true, Roots::System) => {
            Err(StoreError::Address("this system trusts no certificate authorities".to_owned()))
        }
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let pem = std::fs::read(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let certificates: Result<_, _> = CertificateDer::pem_slice_iter(&pem).collect();
    certificates.map_err(|error| unreadable(path, &error.to_string()))
}

fn unreadable(path: &Path, why: &str) -> StoreError {
    StoreError::Address(format!("`sslrootcert` names `{}`, which cannot be read: {why}", path.display()))
}

/// Holds a certificate against what is asked of it.
#[derive(Debug)]
struct Verifier {
    /// Who may have signed it; anybody, where nobody is named.
    roots: Option<RootCertStore>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
            if self.checks_name {
                verify_server_name(&certificate, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// One handshake to be.
pub(super) struct Handshake {
    connector: Connector,
    name: ServerName<'static>,
}

/// A connection that speaks TLS.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = TlsFailure;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, TlsFailure> {
        let name = ServerName::try_from(domain.to_owned())
            .map_err(|_| TlsFailure(format!("`{domain}` is no name that a certificate could be for")))?;
        Ok(Handshake { connector: self.clone(), name })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = TlsFailure;
    type Future = Pin<Box<dyn Future<Output = Result<Stream<S>, TlsFailure>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = tokio_rustls::TlsConnector::from(self.connector.config);
            let connected = connector.connect(self.name.clone(), stream).await;
            connected.map(Stream).map_err(|error| explained(&error, &self.name, &self.connector.signers))
        })
    }
}

/// Says what is wrong with a certificate, or what else went wrong.
fn explained(error: &io::Error, name: &ServerName<'_>, signers: &str) -> TlsFailure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    TlsFailure(match inner {
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                format!("its certificate is not signed by {signers}")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("its certificate is for another name than `{}`", name.to_str())
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired".to_owned()
            }
            why => format!("its certificate is not valid ({why})"),
        },
        Some(other) => other.to_string(),
        None => error.to_string(),
    })
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.0.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let bound = certificate.and_then(|certificate| end_point(certificate));
        bound.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(ctx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(ctx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(ctx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(ctx)
    }
}
