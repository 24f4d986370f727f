//! TLS settings, built when first needed: reading the system's certificates costs milliseconds.
//!
//! The cryptography provider is always named. A configuration made without one panics as soon as some other
//! dependency turns on a second provider.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::stream::{Failure, FailureKind};
use rustls::client::WantsClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use self::named::NamedCertificates;
use crate::settings::{CertStore, ClientIdentity};

mod named;

/// Whom we trust and who we are, as far as TLS is concerned.
#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    pub(crate) extra_ca: Option<PathBuf>,
    pub(crate) cert_file: Option<PathBuf>,
    pub(crate) cert_dir: Option<PathBuf>,
    pub(crate) cert_store: CertStore,
    pub(crate) client_identity: Option<ClientIdentity>,
}

impl TlsSettings {
    /// Reads certificates and builds the configuration; slow, so not for an async thread.
    pub(crate) fn build(&self) -> Result<ClientConfig, Failure> {
        let mut trust = Trust { roots: RootCertStore::empty(), named: Vec::new() };
        self.add_built_in(&mut trust)?;
        if let Some(path) = &self.extra_ca {
            trust.add_extra(path)?;
        }
        let builder = builder(trust)?;
        let config = match &self.client_identity {
            Some(identity) => with_identity(builder, identity)?,
            None => builder.with_no_client_auth(),
        };
        Ok(speaking_http(config))
    }

    fn add_built_in(&self, trust: &mut Trust) -> Result<(), Failure> {
        let (wants_system, wants_bundled) = match self.cert_store {
            CertStore::Both => (true, true),
            CertStore::System => (true, false),
            CertStore::Bundled => (false, true),
        };
        if wants_system {
            // Certificates that cannot be read are left out: a machine without any still has the bundled ones.
            trust.roots.add_parsable_certificates(self.system_certificates());
            trust
                .named
                .extend(self.cert_file.as_deref().map(|file| loaded(Some(file), None)).unwrap_or_default());
        }
        if wants_bundled {
            trust.roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        if trust.roots.is_empty() && self.extra_ca.is_none() {
            let message = "Found no certificate authorities on this system";
            let hint = "Set CLAUDE_CODE_CERT_STORE=bundled,system, or NODE_EXTRA_CA_CERTS to a PEM file.";
            return Err(Failure::new(FailureKind::Tls, message).with_hint(hint));
        }
        Ok(())
    }

    /// Reads what the system trusts, or what variables name in its place.
    fn system_certificates(&self) -> Vec<CertificateDer<'static>> {
        match (&self.cert_file, &self.cert_dir) {
            (None, None) => rustls_native_certs::load_native_certs().certs,
            (file, dir) => loaded(file.as_deref(), dir.as_deref()),
        }
    }
}

fn loaded(file: Option<&Path>, dir: Option<&Path>) -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_certs_from_paths(file, dir).certs
}

/// Who may sign certificates, and which are trusted for what they are.
struct Trust {
    roots: RootCertStore,
    /// Those that a variable names one by one.
    named: Vec<CertificateDer<'static>>,
}

impl Trust {
    fn add_extra(&mut self, path: &Path) -> Result<(), Failure> {
        let certs = read_certs(path, "NODE_EXTRA_CA_CERTS")?;
        let (added, _) = self.roots.add_parsable_certificates(certs.iter().cloned());
        if added == 0 {
            return Err(bad_file("NODE_EXTRA_CA_CERTS", path, "it holds no certificate"));
        }
        self.named.extend(certs);
        Ok(())
    }
}

/// Builds a configuration that trusts nobody, for addresses without TLS; nothing is read.
pub(crate) fn without_roots() -> Result<ClientConfig, Failure> {
    let nobody = Trust { roots: RootCertStore::empty(), named: Vec::new() };
    Ok(speaking_http(builder(nobody)?.with_no_client_auth()))
}

fn builder(trust: Trust) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Failure> {
    let failed = |why: String| Failure::new(FailureKind::Tls, format!("Failed to set up TLS: {why}"));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?;
    if trust.named.is_empty() {
        return Ok(builder.with_root_certificates(trust.roots));
    }
    let verifier = NamedCertificates::new(trust.roots, trust.named, provider);
    let verifier = verifier.map_err(|error| failed(error.to_string()))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

/// Offers HTTP/2 first; the HTTP library does not do so for a configuration it did not make.
fn speaking_http(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: &ClientIdentity,
) -> Result<ClientConfig, Failure> {
    let certs = read_certs(&identity.cert, "CLAUDE_CODE_CLIENT_CERT")?;
    let key = read_key(&identity.key)?;
    builder
        .with_client_auth_cert(certs, key)
        .map_err(|error| bad_file("CLAUDE_CODE_CLIENT_KEY", &identity.key, &error.to_string()))
}

fn read_certs(path: &Path, variable: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let pem = std::fs::read(path).map_err(|error| bad_file(variable, path, &error.to_string()))?;
    CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| bad_file(variable, path, &error.to_string()))
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    const NAME: &str = "CLAUDE_CODE_CLIENT_KEY";
    let pem = std::fs::read(path).map_err(|error| bad_file(NAME, path, &error.to_string()))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        let is_locked = memchr::memmem::find(&pem, b"ENCRYPTED").is_some();
        let why = if is_locked { "keys with a passphrase cannot be read" } else { &error.to_string() };
        let failure = bad_file(NAME, path, why);
        if !is_locked {
            return failure;
        }
        failure.with_hint("Unlock a copy of the key: openssl pkcs8 -in locked.pem -out key.pem")
    })
}

fn bad_file(variable: &str, path: &Path, why: &str) -> Failure {
    let message = format!("Failed to read `{}` from `{variable}`: {why}", path.display());
    Failure::new(FailureKind::Tls, message)
        .with_hint(format!("Set {variable} to a readable PEM file, or unset it."))
}
