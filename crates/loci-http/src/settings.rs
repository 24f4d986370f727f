//! How connections are made: the proxy, whom we trust and who we are, as the environment says.
//!
//! [`NetworkSettings::from_env`] turns variables into values once; it touches no file and no network, and a value it cannot
//! use is a failure that names the variable.

use std::path::PathBuf;
use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use loci_stdx::{Env, Vars};

use crate::proxy::ProxySettings;

/// For the connection: name, TCP and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What is true of every connection, wherever it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSettings {
    /// The proxy to go through.
    pub proxy: Option<ProxySettings>,
    /// A PEM file with further certificate authorities.
    pub extra_ca: Option<PathBuf>,
    /// A PEM file that stands for the system's certificates.
    pub cert_file: Option<PathBuf>,
    /// A directory of such files.
    pub cert_dir: Option<PathBuf>,
    /// Which certificate authorities are trusted besides [`NetworkSettings::extra_ca`].
    pub cert_store: CertStore,
    /// The certificate we show to servers that ask for one.
    pub client_identity: Option<ClientIdentity>,
    /// How long a connection may take: name, TCP and TLS.
    pub connect_timeout: Duration,
}

/// Which built-in sets of certificate authorities are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertStore {
    /// The system's, and the set that is part of the program.
    Both,
    /// Only the set that is part of the program.
    Bundled,
    /// Only the system's.
    System,
}

/// A client certificate and its key, both PEM files; read when a connection is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate, followed by its chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Everything at its default: no proxy, and whom the system trusts and the program comes with.
impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            proxy: None,
            extra_ca: None,
            cert_file: None,
            cert_dir: None,
            cert_store: CertStore::Both,
            client_identity: None,
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

impl NetworkSettings {
    /// Reads the variables; see each helper for its names.
    pub fn from_env(env: &Env) -> Result<Self, Failure> {
        Ok(Self {
            proxy: ProxySettings::from_vars(&env.vars)?,
            extra_ca: path_from_vars(env, "NODE_EXTRA_CA_CERTS"),
            cert_file: path_from_vars(env, "SSL_CERT_FILE"),
            cert_dir: path_from_vars(env, "SSL_CERT_DIR"),
            cert_store: cert_store_from_vars(&env.vars)?,
            client_identity: client_identity_from_vars(env)?,
            connect_timeout: CONNECT_TIMEOUT,
        })
    }
}

fn cert_store_from_vars(vars: &Vars) -> Result<CertStore, Failure> {
    const NAME: &str = "CLAUDE_CODE_CERT_STORE";
    let Some(value) = vars.non_empty(NAME) else { return Ok(CertStore::Both) };
    let lowered = value.to_ascii_lowercase();
    let names: Vec<&str> = lowered.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let has = |wanted: &str| names.contains(&wanted);
    let is_known = names.iter().all(|name| ["bundled", "system"].contains(name));
    match (is_known, has("bundled"), has("system")) {
        (true, true, true) => Ok(CertStore::Both),
        (true, true, false) => Ok(CertStore::Bundled),
        (true, false, true) => Ok(CertStore::System),
        _ => Err(bad_value(NAME, "a list of `bundled` and `system`", value, "bundled,system")),
    }
}

fn client_identity_from_vars(env: &Env) -> Result<Option<ClientIdentity>, Failure> {
    let cert = path_from_vars(env, "CLAUDE_CODE_CLIENT_CERT");
    let key = path_from_vars(env, "CLAUDE_CODE_CLIENT_KEY");
    let missing = |set: &str, unset: &str| {
        Failure::new(FailureKind::InvalidRequest, format!("`{set}` is set but `{unset}` is not"))
            .with_hint(format!("Set {unset} to a PEM file too, or unset {set}."))
    };
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some(ClientIdentity { cert, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY")),
        (None, Some(_)) => Err(missing("CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_CERT")),
    }
}

fn path_from_vars(env: &Env, name: &str) -> Option<PathBuf> {
    env.vars.non_empty(name).map(|path| env.cwd.join(path))
}

/// Says that a variable's value cannot be used, and what one that can looks like.
pub fn bad_value(name: &str, wanted: &str, value: &str, example: &str) -> Failure {
    Failure::new(FailureKind::InvalidRequest, format!("`{name}` is not {wanted}: `{value}`"))
        .with_hint(format!("Set {name} to something like `{example}`, or unset it."))
}
