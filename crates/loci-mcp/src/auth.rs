//! Logins at servers with an address: OAuth 2.1, as the protocol's authorization part asks for it.
//!
//! A server that refuses says where its authorization servers are described ([`challenge`], [`metadata`]). A login
//! ([`login`]) chooses who we are there ([`client`]), sends a person to a page ([`authorization`]), hears back by a port of
//! this machine ([`loopback`]) or by a pasted address, and trades the code for tokens ([`token`]). What is kept is kept by
//! a [`LoginStore`]; [`OauthAuthorizer`] puts it on requests and renews it. [`fetch`], [`loopback`], [`login`] and the
//! authorizer speak with the world; the other modules are pure.
//!
//! By hand, although the crate `oauth2` exists: it has the exchange of a code, and nothing of discovery, of metadata that must
//! not be believed, of who we are, or of renewing under a lock, which is most of this.
//!
//! What must stay true:
//!
//! 1. A token goes to the address that it was got for, and to the endpoints of the issuer that gave it; nowhere else, and
//!    into no message.
//! 2. An answer counts only with the state that was sent, from the issuer that was asked.
//! 3. Nothing here opens a browser: a login gives an address, and whoever has a person there shows it.
//! 4. A token is renewed under a lock between processes, after looking whether another process has done so.

pub(crate) mod authorization;
pub(crate) mod authorizer;
pub(crate) mod challenge;
pub(crate) mod client;
pub(crate) mod discovery;
pub(crate) mod fetch;
pub(crate) mod login;
pub(crate) mod loopback;
pub(crate) mod metadata;
pub(crate) mod pkce;
pub(crate) mod scopes;
pub(crate) mod store;
pub(crate) mod token;

use std::sync::Arc;

use loci_stdx::{Clock, Random};
use reqwest::Url;
use serde_json::Value;

use crate::config::{RemoteKind, RemoteServer};
use crate::transport::web::HttpClients;

pub use store::{LoginKey, LoginStore, RenewalLock, StoredLogin};

/// What logins need of the world.
pub struct Logins {
    /// Where they are kept.
    pub store: Arc<dyn LoginStore>,
    /// The source of states and verifiers.
    pub random: Arc<dyn Random>,
    /// The address of a document that describes us, where one is hosted.
    pub client_metadata: Option<String>,
}

/// How to log in at a server, as its entry has it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct OauthConfig {
    pub(crate) client_id: Option<String>,
    pub(crate) callback_port: Option<u16>,
    pub(crate) metadata_url: Option<String>,
    pub(crate) scopes: Option<String>,
}

impl OauthConfig {
    /// Reads the `oauth` of an entry; what is of the wrong kind is as if it were not there.
    pub(crate) fn parse(written: Option<&Value>) -> Self {
        let get = |key: &str| written.and_then(|it| it.get(key));
        let text = |key: &str| {
            get(key).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
        };
        Self {
            client_id: text("clientId"),
            callback_port: get("callbackPort").and_then(Value::as_u64).and_then(|port| port.try_into().ok()),
            metadata_url: text("authServerMetadataUrl"),
            scopes: text("scopes"),
        }
    }
}

/// A server that one can log in at, with what that takes. Copies are the same one.
#[derive(Clone)]
pub(crate) struct LoginTarget {
    pub(crate) name: String,
    /// The address as it is written, which is what logins are kept by.
    pub(crate) address: String,
    pub(crate) url: Url,
    pub(crate) oauth: OauthConfig,
    pub(crate) logins: Arc<Logins>,
    pub(crate) clients: HttpClients,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) user_agent: String,
}

impl LoginTarget {
    pub(crate) fn key(&self) -> LoginKey {
        LoginKey { server: self.name.clone(), url: self.address.clone() }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().as_millisecond()
    }
}

/// Returns why one cannot log in at a server by its kind or its headers.
pub(crate) fn no_login_reason(remote: &RemoteServer) -> Option<&'static str> {
    let is_authorization = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    match remote {
        RemoteServer { kind: RemoteKind::WebSocket, .. } => Some("servers of type `ws` have no logins"),
        RemoteServer { headers_helper: Some(_), .. } => Some("its `headersHelper` says who asks"),
        remote if remote.headers.iter().any(is_authorization) => {
            Some("its entry has an `Authorization` header; take that away to log in")
        }
        _ => None,
    }
}
