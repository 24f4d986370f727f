//! The HTTP client, built when first needed and shared from then on.
//!
//! For a server without TLS building it takes well under a millisecond. With TLS the certificates are read,
//! so it happens on a blocking thread: either early, by [`Transport::warm_up`], or with the first request.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use loci_core::stream::{Failure, FailureKind};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, Url};

use self::local::LocalServer;
use crate::connection_failure::{self as connection, Route, root_words};
use crate::proxy::url_without_credentials;
use crate::settings::NetworkSettings;
use crate::tls::{self, TlsSettings};

mod local;

pub(crate) use self::local::LocalError;

/// A request ready to be posted.
#[derive(Debug)]
pub struct Post {
    /// Where to.
    pub url: Url,
    /// All headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The way to one server: how a client is made, and the client once it is.
#[derive(Debug)]
pub struct Transport {
    tls: TlsSettings,
    /// The proxy, unless the server is exempt from it.
    proxy: Option<Url>,
    server: Url,
    connect_timeout: Duration,
    /// The server itself, if it is on this machine and spoken to in the clear.
    local: Option<LocalServer>,
    /// Guards the one client; held while it is built, so that nobody builds a second.
    client: Mutex<Option<reqwest::Client>>,
}

impl Transport {
    /// Notes how to reach `server`; nothing else happens yet.
    pub fn new(settings: &NetworkSettings, server: &Url) -> Self {
        let proxy = settings.proxy.as_ref().filter(|proxy| !proxy.no_proxy.covers(server));
        let is_direct = proxy.is_none() && is_here(server);
        Self {
            tls: TlsSettings {
                extra_ca: settings.extra_ca.clone(),
                cert_file: settings.cert_file.clone(),
                cert_dir: settings.cert_dir.clone(),
                cert_store: settings.cert_store,
                client_identity: settings.client_identity.clone(),
            },
            proxy: proxy.map(|proxy| proxy.url.clone()),
            server: server.clone(),
            connect_timeout: settings.connect_timeout,
            local: is_direct.then(|| LocalServer::new(server, settings.connect_timeout)).flatten(),
            client: Mutex::new(None),
        }
    }

    /// Returns the way to the server, for messages.
    pub fn route(&self) -> Route {
        Route {
            server: url_without_credentials(&self.server),
            proxy: self.proxy.as_ref().map(url_without_credentials),
            is_here: is_here(self.proxy.as_ref().unwrap_or(&self.server)),
        }
    }

    /// Starts building the client on a thread of its own if that is slow; the first request joins it.
    pub fn warm_up(self: &Arc<Self>) {
        if !self.uses_tls() {
            return;
        }
        let transport = self.clone();
        let build = move || {
            // A failure is met again, and reported, by the first request.
            drop(transport.client());
        };
        // Without a thread the first request builds the client itself.
        drop(std::thread::Builder::new().name("tls-warm-up".to_owned()).spawn(build));
    }

    /// Sends a request and returns its answer as soon as its head is there.
    pub async fn post(self: &Arc<Self>, post: Post) -> Result<Response, Failure> {
        if let Some(local) = &self.local {
            let answer = local.post(post).await;
            return answer.map_err(|error| connection::from_local(&error, &self.route()));
        }
        let client = self.ready().await?;
        let sent = client.post(post.url).headers(post.headers).body(post.body).send();
        sent.await.map_err(|error| {
            self.forget_stale_identity();
            connection::from_error(error, &self.route())
        })
    }

    /// Asks for something small and returns the answer as soon as its head is there.
    pub async fn get(self: &Arc<Self>, url: Url, headers: HeaderMap) -> Result<Response, Failure> {
        // A client of its own: whoever asks may do so in a runtime that ends before the first request.
        let sent = self.build()?.get(url).headers(headers).send();
        sent.await.map_err(|error| connection::from_error(error, &self.route()))
    }

    /// Posts JSON as [`Transport::get`] asks.
    pub async fn post_json(
        self: &Arc<Self>,
        url: Url,
        mut headers: HeaderMap,
        body: String,
    ) -> Result<Response, Failure> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = self.build()?.post(url).headers(headers).body(body).send();
        sent.await.map_err(|error| connection::from_error(error, &self.route()))
    }

    /// Returns the client without keeping an async thread busy.
    async fn ready(self: &Arc<Self>) -> Result<reqwest::Client, Failure> {
        match self.client.try_lock() {
            Ok(client) => {
                if let Some(client) = client.as_ref() {
                    return Ok(client.clone());
                }
            }
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => {}
        }
        if !self.uses_tls() {
            return self.client();
        }
        let transport = self.clone();
        let built = tokio::task::spawn_blocking(move || transport.client()).await;
        built.unwrap_or_else(|error| Err(not_built(&error)))
    }

    /// Drops the client, so that the next request reads changed certificates.
    ///
    /// Only clients with a certificate of their own are dropped: those certificates are short-lived.
    fn forget_stale_identity(&self) {
        if self.tls.client_identity.is_some() {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Tells whether anything on the way is spoken to by TLS, which takes certificates.
    pub fn uses_tls(&self) -> bool {
        matches!(self.server.scheme(), "https" | "wss")
            || self.proxy.as_ref().is_some_and(|proxy| proxy.scheme() == "https")
    }

    fn client(&self) -> Result<reqwest::Client, Failure> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = client.as_ref() {
            return Ok(client.clone());
        }
        let built = self.build()?;
        *client = Some(built.clone());
        Ok(built)
    }

    fn build(&self) -> Result<reqwest::Client, Failure> {
        self.builder()?.build().map_err(|error| not_built(&error))
    }

    /// Returns a builder with everything set, for whoever has one thing to add.
    pub(crate) fn builder(&self) -> Result<reqwest::ClientBuilder, Failure> {
        let mut tls = if self.uses_tls() { self.tls.build()? } else { tls::without_roots()? };
        if matches!(self.server.scheme(), "ws" | "wss") {
            // A web socket begins as a request that only the older protocol can turn into one.
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            // Variables were read by the configuration; the library must not read them again.
            .no_proxy()
            // Following one would carry the credentials and the conversation to another host.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.connect_timeout)
            // Notices a shared connection that died in its sleep long before a request times out.
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(20));
        if !self.uses_tls() && is_here(self.proxy.as_ref().unwrap_or(&self.server)) {
            // This client cannot be told to acknowledge at once, and without that a kept connection may wait 40 ms.
            builder = builder.pool_max_idle_per_host(0);
        }
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(|error| not_built(&error))?);
        }
        Ok(builder)
    }

    /// Tells whether the server is reached through a proxy, which looks its name up itself.
    pub(crate) fn has_proxy(&self) -> bool {
        self.proxy.is_some()
    }
}

/// Tells whether a server is on this machine.
fn is_here(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Builds a client for a server that is no model's, with the same proxy, certificates and caution. With TLS it reads
/// certificates, so it is not for an async thread.
pub fn http_client(settings: &NetworkSettings, server: &Url) -> Result<reqwest::Client, Failure> {
    Transport::new(settings, server).client()
}

pub(crate) fn not_built(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::new(FailureKind::Connect, format!("Failed to set up the HTTP client: {}", root_words(error)))
        .with_hint("Check the proxy and certificate settings.")
}
