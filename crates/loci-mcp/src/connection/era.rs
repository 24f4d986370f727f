//! Which of the two eras of the protocol a server belongs to, and how that is found out.
//!
//! Up to 2025-11-25 a conversation begins with a handshake. Since 2026-07-28 every request says by itself which revision
//! it is of and who asks, and `server/discover` tells what a server has. A server with an address is asked so first; one
//! that does not understand is greeted in the old way. A program is greeted in the old way unless
//! `MCP_PROTOCOL_NEGOTIATION` is `auto`: programs that were written for the handshake may not survive another beginning.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::handshake::{Greeting, Handshake, read_info};
use super::{CallError, Connection, Outgoing, RequestLimits, tasks};
use crate::message::{HANDSHAKE_REVISIONS, RpcError, STATELESS_REVISION, UNSUPPORTED_VERSION};
use crate::names::brief;
use crate::transport::TransportError;
use crate::transport::routing_headers::VERSION_META;

/// How long a server has to tell whether it understands; some do not answer what they do not know.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// Whether servers are asked for the revision without a handshake (`MCP_PROTOCOL_NEGOTIATION`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Negotiation {
    /// Those with an address are.
    #[default]
    Remote,
    /// Programs are, too.
    Auto,
    /// None is.
    Legacy,
}

impl Negotiation {
    /// Reads the variable; another value is as if there were none, and is noted.
    pub(crate) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("auto") => Self::Auto,
            Some("legacy") => Self::Legacy,
            None => Self::Remote,
            Some(other) => {
                let value = brief(other);
                tracing::warn!(target: "loci::mcp", value, "MCP_PROTOCOL_NEGOTIATION is neither `auto` nor `legacy`");
                Self::Remote
            }
        }
    }
}

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With the handshake.
    Handshake,
    /// With the question what the server has, and the handshake where that is not understood.
    Discovery,
}

/// What every request says of the one who asks, where there is no handshake.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    client: Value,
}

impl Envelope {
    fn new(Greeting { name, title, version }: &Greeting) -> Self {
        Self { client: json!({"name": name, "title": title, "version": version}) }
    }

    /// Puts it into the parameters of a request.
    pub(super) fn stamp(&self, params: &mut Map<String, Value>) {
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        meta[VERSION_META] = json!(STATELESS_REVISION);
        meta["io.modelcontextprotocol/clientInfo"] = self.client.clone();
        // Roots and sampling are left to servers of the older era.
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({
            "elicitation": {"form": {}, "url": {}},
            "extensions": {tasks::EXTENSION: {}},
        });
    }
}

impl Connection {
    /// Begins to talk with a server and agrees on a revision.
    pub(crate) async fn greet(
        &self,
        greeting: &Greeting,
        beginning: Beginning,
        limit: Duration,
    ) -> Result<Handshake, CallError> {
        if beginning == Beginning::Discovery
            && let Some(handshake) = self.discover(greeting, limit).await?
        {
            return Ok(handshake);
        }
        match self.initialize(greeting, limit).await {
            // It does not know the handshake, and says so in the words of the newer era.
            Err(CallError::Rpc(error)) if error.code == UNSUPPORTED_VERSION => {
                self.discover(greeting, limit).await?.ok_or(CallError::Rpc(error))
            }
            greeted => greeted,
        }
    }

    /// Asks what the server has; nothing means that it does not belong to the newer era.
    async fn discover(&self, greeting: &Greeting, limit: Duration) -> Result<Option<Handshake>, CallError> {
        let envelope = Envelope::new(greeting);
        let limits = RequestLimits::within(limit.min(PROBE_TIME));
        let mut has_insisted = false;
        loop {
            let question = Outgoing::new("server/discover", Map::new());
            match self.exchange(question, limits.clone(), Some(&envelope)).await {
                Ok(answer) => {
                    let Some(handshake) = read_discovery(&answer) else { return Ok(None) };
                    self.shared.transport.negotiated(&handshake.protocol);
                    // A connection belongs to one era; whoever comes second finds it so already.
                    drop(self.shared.envelope.set(envelope));
                    return Ok(Some(handshake));
                }
                Err(CallError::Rpc(error)) if error.code == UNSUPPORTED_VERSION => {
                    let supported = supported_revisions(&error);
                    if supported.iter().any(|it| it == STATELESS_REVISION) && !has_insisted {
                        has_insisted = true;
                        continue;
                    }
                    let knows_handshake =
                        supported.iter().any(|it| HANDSHAKE_REVISIONS.contains(&it.as_str()));
                    return match knows_handshake || supported.is_empty() {
                        true => Ok(None),
                        false => Err(CallError::Unreadable(format!(
                            "the server speaks {} of the protocol, and loci speaks {STATELESS_REVISION}, {}",
                            brief(&supported.join(", ")),
                            HANDSHAKE_REVISIONS.join(", ")
                        ))),
                    };
                }
                // Whatever else it says, it does not know the question.
                Err(
                    CallError::Rpc(_)
                    | CallError::TimedOut(_)
                    | CallError::Unreadable(_)
                    | CallError::Transport(TransportError::Status { .. } | TransportError::SessionExpired),
                ) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

fn supported_revisions(error: &RpcError) -> Vec<String> {
    let supported = error.data.get("supported").and_then(Value::as_array).into_iter().flatten();
    supported.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// Reads what a server says of itself; nothing when it does not speak our revision without a handshake.
fn read_discovery(answer: &Value) -> Option<Handshake> {
    let versions = answer.get("supportedVersions").and_then(Value::as_array)?;
    if !versions.iter().any(|version| version == STATELESS_REVISION) {
        return None;
    }
    let meta = answer.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
    let info = meta.or_else(|| answer.get("serverInfo")).unwrap_or(&Value::Null);
    Some(read_info(answer, info, STATELESS_REVISION.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_the_newer_era_are_known_by_their_revisions() {
        for (answer, expected) in [
            (json!({"supportedVersions": ["2026-07-28"], "serverInfo": {"name": "a"}}), Some("a")),
            (
                json!({"supportedVersions": ["2031-01-01", "2026-07-28"],
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "b"}}}),
                Some("b"),
            ),
            (json!({"supportedVersions": ["2025-11-25"]}), None),
            (json!({}), None),
            (json!({"supportedVersions": "2026-07-28"}), None),
        ] {
            let read = read_discovery(&answer);
            assert_eq!(read.as_ref().map(|it| it.name.as_str()), expected, "{answer}");
            assert!(read.is_none_or(|it| it.protocol == "2026-07-28"));
        }
    }

    #[test]
    fn negotiation_is_read_and_nonsense_changes_nothing() {
        for (text, expected) in [
            (None, Negotiation::Remote),
            (Some("auto"), Negotiation::Auto),
            (Some("legacy"), Negotiation::Legacy),
            (Some("yes"), Negotiation::Remote),
        ] {
            assert_eq!(Negotiation::parse(text), expected, "{text:?}");
        }
    }
}
