//! Web sockets as the Monitor tool has them: to the host that was judged, on a public address unless a rule names it, and
//! within what settings say of hosts.

use loci_http::socket_client;
use loci_mcp::{EventSocket, SocketNews};
use loci_sandbox::egress::rules::{DomainRules, HostVerdict};
use loci_sandbox::egress::target::Target;
use loci_tools::{HostFuture, SocketEvent, SocketEvents, SocketRequest, WebHost as _};
use serde_json::Value;

use super::WebService;
use crate::conversation::host::lock;

impl WebService {
    /// Opens a socket.
    pub(super) async fn connect_socket(
        &self,
        request: SocketRequest,
    ) -> Result<Box<dyn SocketEvents>, String> {
        let SocketRequest { url, host, protocols } = request;
        self.check_domain(&url, &host)?;
        let may_be_private = self.names_host(&host);
        let (env, address) = (self.env(), url.clone());
        // With TLS certificates are read, which is not for an async thread.
        let client =
            tokio::task::spawn_blocking(move || socket_client(&env, &address, &host, may_be_private));
        let client = client.await.map_err(|error| error.to_string())??;
        Ok(Box::new(Listener(EventSocket::open(&client, &url, &protocols).await?)))
    }

    /// Refuses a host that settings keep commands from. Where only the administrator's hosts count, it must be one.
    fn check_domain(&self, url: &str, host: &str) -> Result<(), String> {
        let default = if url.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("wss:")) { 443 } else { 80 };
        let port = port_of(url).unwrap_or(default);
        let target = Target::parse(&format!("{host}:{port}")).ok_or("its host cannot be told")?;
        let egress = lock(&self.world.ambient).sandbox.as_ref().and_then(|sandbox| sandbox.egress.clone());
        let state = self.world.state.get();
        let network = state.settings.pointer("/sandbox/network").unwrap_or(&Value::Null);
        let is_limited = network["allowManagedDomainsOnly"] == true;
        let mut denied = DomainRules::new(false);
        for rule in network["deniedDomains"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Err(why) = denied.deny(rule) {
                tracing::debug!(target: "loci::web", why, "a denied domain");
            }
        }
        let verdicts = [Some(denied.verdict(&target)), egress.map(|egress| egress.rules.verdict(&target))];
        for verdict in verdicts.iter().flatten() {
            if let HostVerdict::Deny(why) = verdict {
                return Err(format!("settings of the sandbox refuse it: {why}"));
            }
        }
        match is_limited && verdicts[1] != Some(HostVerdict::Allow) {
            true => Err("only hosts that the administrator allows may be reached".to_owned()),
            false => Ok(()),
        }
    }
}

/// Returns the port that an address names.
fn port_of(url: &str) -> Option<u16> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'))?.1.parse().ok()
}

/// A socket that is listened to.
struct Listener(EventSocket);

impl SocketEvents for Listener {
    fn next(&mut self) -> HostFuture<'_, SocketEvent> {
        Box::pin(async move {
            match self.0.next().await {
                SocketNews::Text(text) => SocketEvent::Message(text),
                SocketNews::Binary(n_bytes) => {
                    SocketEvent::Message(format!("[binary frame, {n_bytes} bytes]"))
                }
                SocketNews::Closed(why) => SocketEvent::Closed(why),
            }
        })
    }
}
