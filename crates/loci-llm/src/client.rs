//! The client: one request in, a stream of events out.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use loci_core::message::Block;
use loci_core::stream::{Failure, StreamEvent};
use loci_http::Transport;
use tokio_util::sync::CancellationToken;

use crate::auth::AuthSource;
use crate::clouds::model_of_profile;
use crate::config::ProviderConfig;
use crate::exchange::{self, Shared};
use crate::model_list::{self, ListedModel, ServerFacts};
use crate::provider::Provider;
use crate::request::Request;
use crate::router::Router;
use crate::scripted::{Played, Scripted};

/// A model provider, ready to be asked. Clones are cheap and share connections.
#[derive(Debug, Clone)]
pub struct Client {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Remote(Arc<Shared>),
    Scripted(Scripted),
    Routed(Arc<Router>),
}

impl Client {
    /// Checks the configuration; nothing slow happens here (no TLS, no DNS, no file).
    pub fn new(config: ProviderConfig) -> Result<Self, Failure> {
        let source = Arc::new(config.auth.clone());
        Self::with_auth_source(config, source)
    }

    /// Does the same with credentials that are asked for before each request, in place of fixed ones.
    pub fn with_auth_source(config: ProviderConfig, source: Arc<dyn AuthSource>) -> Result<Self, Failure> {
        let provider = Provider::from_config(&config, source)?;
        let transport = Arc::new(Transport::new(&config.network, provider.endpoint.base()));
        let shared = Shared { provider, transport, timeouts: config.timeouts };
        Ok(Self { kind: Kind::Remote(Arc::new(shared)) })
    }

    /// Makes a client that asks whichever provider a model belongs to.
    pub fn routed(router: Router) -> Self {
        Self { kind: Kind::Routed(Arc::new(router)) }
    }

    /// Makes a client whose answers come from a script, a word at a time.
    pub fn scripted(script: impl Fn(&Request) -> Vec<Block> + Send + Sync + 'static, pace: Duration) -> Self {
        Self { kind: Kind::Scripted(Scripted::new(script, pace)) }
    }

    /// Makes a client that plays what a script says, whole blocks at a time.
    pub fn playing(script: impl Fn(&Request) -> Played + Send + Sync + 'static) -> Self {
        Self { kind: Kind::Scripted(Scripted::playing(script)) }
    }

    /// Sends a request when the stream is first polled, which must happen inside a tokio runtime.
    ///
    /// The last item is [`StreamEvent::Ended`] or a failure. When `cancel` fires, the stream ends without
    /// either. Dropping the stream aborts the request. Nothing is ever sent twice, but for one case: when the
    /// credential was refused and its source has another.
    pub fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        match &self.kind {
            Kind::Remote(shared) => EventStream(Box::pin(exchange::events(shared.clone(), request, cancel))),
            Kind::Scripted(scripted) => EventStream(Box::pin(scripted.events(&request, cancel))),
            Kind::Routed(router) => match router.client(&request.model) {
                Ok(client) => client.stream(request, cancel),
                Err(failure) => {
                    EventStream(Box::pin(futures_util::stream::once(std::future::ready(Err(failure)))))
                }
            },
        }
    }

    /// Asks a server what it says of a model; `None` when it says nothing, or is the first provider and far away. Must be
    /// awaited inside a tokio runtime.
    pub async fn server_facts(&self, model: &str) -> Option<ServerFacts> {
        let shared = self.shared(model)?;
        // What is reached by TLS is hardly here, and far is slow; a named provider was asked for by name.
        if shared.transport.uses_tls() && shared.provider.name().is_none() {
            return None;
        }
        model_list::server_facts(shared, model.to_owned()).await
    }

    /// Asks Bedrock which model an inference profile stands for; `None` when nobody may say. Must be awaited inside a tokio
    /// runtime.
    pub async fn model_of_profile(&self, arn: &str) -> Option<String> {
        model_of_profile(self.shared(arn)?, arn.to_owned()).await
    }

    /// Asks a provider which models it has: their full names, and how much each can read. `provider` ends with a slash, or is
    /// any model of it. Must be awaited inside a tokio runtime.
    pub async fn model_list(&self, provider: &str) -> Result<Vec<ListedModel>, Failure> {
        let shared = match &self.kind {
            Kind::Routed(router) => {
                return Box::pin(router.client(provider)?.clone().model_list(provider)).await;
            }
            Kind::Remote(shared) => shared.clone(),
            Kind::Scripted(_) => return Ok(Vec::new()),
        };
        model_list::model_list(shared).await
    }

    fn shared(&self, model: &str) -> Option<Arc<Shared>> {
        match &self.kind {
            Kind::Remote(shared) => Some(shared.clone()),
            Kind::Routed(router) => router.client(model).ok()?.shared(model),
            Kind::Scripted(_) => None,
        }
    }

    /// Lets somebody hear what happens while credentials are got: a command that renews a login may name a page to open.
    pub fn on_announcement(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        if let Kind::Routed(router) = &self.kind {
            router.announcer().listen(listener);
        }
    }

    /// Starts reading certificates on a thread of its own, if the server is reached by TLS.
    pub fn warm_up(&self) {
        match &self.kind {
            Kind::Remote(shared) => shared.transport.warm_up(),
            Kind::Routed(router) => {
                if let Some(client) = router.first() {
                    client.warm_up();
                }
            }
            Kind::Scripted(_) => {}
        }
    }
}

/// The events of one answer. See [`Client::stream`].
pub struct EventStream(Pin<Box<dyn Stream<Item = Result<StreamEvent, Failure>> + Send>>);

impl Stream for EventStream {
    type Item = Result<StreamEvent, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventStream")
    }
}
