//! Servers that ask who we are by certificate.

use std::path::Path;
use std::sync::Arc;

use loci_core::stream::FailureKind;
use loci_http::{CertStore, ClientIdentity};
use loci_llm::{Client, ProviderConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::{config, request, run};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 60\r\n\r\n\
    {\"id\":\"m\",\"model\":\"x\",\"content\":[],\"stop_reason\":\"end_turn\"} ";

/// An authority in a folder: `ca.pem`, and `client.pem` with `client-key.pem` signed by it.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    fn signed(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn write_client(&self, dir: &Path) -> ClientIdentity {
        let (cert, key) = self.signed("client");
        let identity = ClientIdentity { cert: dir.join("client.pem"), key: dir.join("client-key.pem") };
        std::fs::write(&identity.cert, cert.pem()).unwrap();
        std::fs::write(&identity.key, key.serialize_pem()).unwrap();
        identity
    }

    fn server(&self) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let (cert, key) = self.signed("127.0.0.1");
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Starts a server that wants certificates of `authority`; returns how to reach it without one.
async fn serve(authority: &Authority, dir: &Path) -> ProviderConfig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("https://{}", listener.local_addr().unwrap());
    let acceptor = authority.server();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).await.unwrap() > 0 {}
            stream.write_all(ANSWER.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    std::fs::write(dir.join("ca.pem"), authority.issuer.pem()).unwrap();
    let mut config = config(&base_url);
    config.network.cert_store = CertStore::Bundled;
    config.network.extra_ca = Some(dir.join("ca.pem"));
    config
}

#[tokio::test]
async fn our_certificate_is_shown() {
    let (authority, dir) = (Authority::new(), tempfile::tempdir().unwrap());
    let mut config = serve(&authority, dir.path()).await;
    config.network.client_identity = Some(authority.write_client(dir.path()));
    assert!(run(&Client::new(config).unwrap(), request()).await.has_ended());
}

#[tokio::test]
async fn a_missing_certificate_is_explained() {
    let (authority, dir) = (Authority::new(), tempfile::tempdir().unwrap());
    let config = serve(&authority, dir.path()).await;
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    assert_eq!(outcome.failure().kind, FailureKind::Tls, "{outcome:?}");
    assert!(outcome.failure().hint.as_ref().unwrap().contains("CLAUDE_CODE_CLIENT_CERT"), "{outcome:?}");
}

#[tokio::test]
async fn a_renewed_certificate_is_read_after_a_failure() {
    let (authority, dir) = (Authority::new(), tempfile::tempdir().unwrap());
    let mut config = serve(&authority, dir.path()).await;
    config.network.client_identity = Some(Authority::new().write_client(dir.path()));
    let client = Client::new(config).unwrap();
    assert!(run(&client, request()).await.failure.is_some(), "signed by a stranger");
    authority.write_client(dir.path());
    assert!(run(&client, request()).await.has_ended());
}

#[tokio::test]
async fn a_locked_key_is_explained() {
    let (authority, dir) = (Authority::new(), tempfile::tempdir().unwrap());
    let mut config = serve(&authority, dir.path()).await;
    let identity = authority.write_client(dir.path());
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(&identity.key, locked).unwrap();
    config.network.client_identity = Some(identity);
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    assert!(outcome.failure().hint.as_ref().unwrap().contains("openssl pkcs8"), "{outcome:?}");
}
