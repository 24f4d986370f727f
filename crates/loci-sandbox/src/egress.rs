//! The way of sandboxed commands to the network: a proxy inside loci that speaks HTTP and SOCKS5 and decides on one host.
//!
//! The helper hands over each connection to its two ports. The host is parsed once ([`target`]) and everything is held
//! against that one: the rules ([`rules`]), the address that is connected to, which is resolved here and must be public
//! (`loci_core::permission::is_private_address`), the `Host` of a plain request ([`http`]), the name in a TLS greeting ([`tls`]). Nothing waits in a loop:
//! an idle proxy is tasks that wait for bytes.
//!
//! By hand, because crates for proxies (`hudsucker`, `fast-socks5`) resolve names and forward by themselves, and here each of
//! these is a decision of the policy.

mod connection;
mod dial;
mod http;
mod relay;
pub mod rules;
mod socks;
pub mod target;
mod tls;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::net::TcpStream;

use crate::control::ProxyPort;
use crate::launch::{Connections, ProxyConnection};
use connection::Client;
pub use dial::UpstreamProxy;
use rules::{DomainRules, HostVerdict};
use target::{Host, Target};

/// Asks somebody whether a host may be reached, by a command if it is known which.
pub type HostAsker = Arc<dyn Fn(&Target, Option<&str>) -> HostAnswer + Send + Sync>;

/// Hears that somebody has allowed a host.
pub type GrantListener = Box<dyn Fn() + Send + Sync>;

/// Resolves a name.
pub type Resolver = Arc<dyn Fn(&str) -> Vec<IpAddr> + Send + Sync>;

/// An answer that takes a while.
pub type HostAnswer = std::pin::Pin<Box<dyn Future<Output = HostDecision> + Send>>;

/// Whether a host may be reached in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostDecision {
    /// It may.
    Allowed,
    /// Somebody has said no, and perhaps more than that.
    Refused(Option<String>),
    /// Nobody could be asked.
    Unanswered,
}

/// Why a host may not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRefusal {
    /// The reason, for the program.
    pub why: String,
    /// The same with the host and what would allow it, for whoever reads the command's result.
    pub text: String,
}

/// The proxy of a session.
pub struct Egress {
    /// What settings and rules say of hosts.
    pub rules: DomainRules,
    /// Who is asked about a host that nothing is said of; nobody means no.
    asker: OnceLock<HostAsker>,
    /// Who is told that a host was allowed.
    on_grant: OnceLock<GrantListener>,
    /// The proxy behind which the machine itself is, if it is behind one.
    pub upstream: Option<UpstreamProxy>,
    /// Resolves names; the system's way unless somebody has another.
    pub resolver: Option<Resolver>,
    /// What was answered for each host; held while one is looked up. The inner lock is held while somebody is asked, so
    /// that one question at a time is asked about a host.
    answers: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Option<HostDecision>>>>>,
    /// Hosts that somebody has allowed; held to add one or to look.
    granted: Mutex<HashSet<Host>>,
}

impl Egress {
    /// Makes a proxy.
    pub fn new(rules: DomainRules, upstream: Option<UpstreamProxy>) -> Self {
        Self {
            rules,
            asker: OnceLock::new(),
            on_grant: OnceLock::new(),
            upstream,
            resolver: None,
            answers: Mutex::default(),
            granted: Mutex::default(),
        }
    }

    /// Says who is asked; the first to be told stays.
    pub fn set_asker(&self, asker: HostAsker) {
        // A second one is the same session's.
        drop(self.asker.set(asker));
    }

    /// Says who is told when a host was allowed; the first to be told stays.
    pub fn set_grant_listener(&self, listener: GrantListener) {
        // A second one is the same session's.
        drop(self.on_grant.set(listener));
    }

    /// Decides whether a target may be reached, by a command if it is known which.
    pub async fn decide(&self, target: &Target, command: Option<&str>) -> Result<(), HostRefusal> {
        let (why, said) = match self.rules.verdict(target) {
            HostVerdict::Allow => return Ok(()),
            HostVerdict::Deny(why) => (why, None),
            HostVerdict::Ask => match self.answer(target, command).await {
                HostDecision::Allowed => return Ok(()),
                HostDecision::Refused(said) => {
                    ("the user has said no to it, for this session".to_owned(), said)
                }
                HostDecision::Unanswered => ("nobody has allowed it".to_owned(), None),
            },
        };
        // What a person says is for the model, not for the program.
        let said = said.map(|said| format!(" (\"{said}\")")).unwrap_or_default();
        // What is denied by name stays so, whatever else is allowed.
        let remedy = (!self.rules.is_denied(target)).then(|| {
            let rule = format!("`WebFetch(domain:{})`", target.host);
            format!("; sandbox.network.allowedDomains or {rule} under permissions.allow would allow it")
        });
        Err(HostRefusal {
            text: format!("`{target}` was refused: {why}{said}{}", remedy.unwrap_or_default()),
            why,
        })
    }

    /// Returns how many hosts, or patterns of hosts, are reached unasked: by rules, and by what was answered.
    pub fn n_allowed(&self) -> usize {
        self.rules.n_allowed() + self.granted.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the addresses of a name.
    pub(crate) async fn resolve(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        match &self.resolver {
            Some(resolver) => Ok(resolver(name).into_iter().map(|it| SocketAddr::new(it, port)).collect()),
            None => Ok(tokio::net::lookup_host((name, port)).await?.collect()),
        }
    }

    /// Tells whether an address may be reached although it is not public: a rule names it, or somebody who was asked about
    /// the address itself has said yes.
    pub(crate) fn names_address(&self, address: IpAddr) -> bool {
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        self.rules.names_address(address) || granted.contains(&Host::from_ip(address))
    }

    async fn answer(&self, target: &Target, command: Option<&str>) -> HostDecision {
        let Some(asker) = self.asker.get() else { return HostDecision::Unanswered };
        let host = target.host.to_string();
        let known = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(host).or_default())
        };
        let mut known = known.lock().await;
        if let Some(answer) = known.as_ref() {
            return answer.clone();
        }
        let answer = known.insert(asker(target, command).await).clone();
        if answer == HostDecision::Allowed {
            self.granted.lock().unwrap_or_else(PoisonError::into_inner).insert(target.host.clone());
            if let Some(tell) = self.on_grant.get() {
                tell();
            }
        }
        answer
    }
}

/// Returns what takes the helper's connections to a proxy.
pub fn connections(egress: Arc<Egress>) -> Connections {
    Arc::new(move |ProxyConnection { port, stream, command, refused }| {
        let egress = Arc::clone(&egress);
        tokio::spawn(async move {
            let client = Client { egress: &egress, command: command.as_deref(), refused: &refused };
            let served = match tokio_stream(stream) {
                Ok(stream) => connection::serve(&client, port, stream).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::debug!(target: "loci::sandbox", %error, "a proxied connection ended");
            }
        });
    })
}

/// Proxies of the user's own, by their ports on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnProxies {
    /// What programs that speak HTTP are led to.
    pub http: Option<u16>,
    /// What those are led to that speak SOCKS.
    pub socks: Option<u16>,
}

impl OwnProxies {
    /// Returns the port of the proxy that takes the place of one of ours, and the setting that names it.
    fn in_place_of(self, port: ProxyPort) -> Option<(u16, &'static str)> {
        match port {
            ProxyPort::Http => self.http.map(|it| (it, "sandbox.network.httpProxyPort")),
            ProxyPort::Socks => self.socks.map(|it| (it, "sandbox.network.socksProxyPort")),
        }
    }
}

/// Returns what passes the helper's connections on to proxies of the user's own; where there is none, ours takes them.
pub fn forward(own: OwnProxies, ours: Connections) -> Connections {
    Arc::new(move |connection| {
        let Some((number, setting)) = own.in_place_of(connection.port) else { return ours(connection) };
        let ProxyConnection { stream, refused, .. } = connection;
        tokio::spawn(async move {
            let passed = async {
                let inside = tokio_stream(stream)?;
                let reached = TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, number)).await;
                let outside = reached.inspect_err(|error| {
                    refused.note(format!(
                        "nothing was reached: the proxy that `{setting}` names does not answer at 127.0.0.1:{number} ({error})"
                    ));
                })?;
                tokio::try_join!(relay::carry(&inside, &outside), relay::carry(&outside, &inside))
            };
            if let Err(error) = passed.await {
                tracing::debug!(target: "loci::sandbox", %error, "a connection to the user's proxy ended");
            }
        });
    })
}

fn tokio_stream(stream: std::net::TcpStream) -> std::io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream)
}
