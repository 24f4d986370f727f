//! The beginning of a connection: who we are, who the server is, and which revision of the protocol both speak.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{CallError, Connection, RequestLimits};
use crate::message::HANDSHAKE_REVISIONS;
use crate::names::{brief, visible_excerpt};

/// What we say of ourselves.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) version: String,
}

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Handshake {
    /// What it is called.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The revision that is spoken.
    pub protocol: String,
    /// What it can do, as it came.
    pub capabilities: Value,
    /// What the model should know of it, fit to be shown.
    pub instructions: Option<String>,
}

impl Handshake {
    /// Tells whether the server has a capability.
    pub(crate) fn has(&self, capability: &str) -> bool {
        self.capabilities
            .get(capability)
            .is_some_and(|value| !value.is_null() && value != &Value::Bool(false))
    }
}

impl Connection {
    /// Greets the server and agrees on a revision.
    pub(crate) async fn initialize(
        &self,
        greeting: &Greeting,
        limit: Duration,
    ) -> Result<Handshake, CallError> {
        let Greeting { name, title, version } = greeting;
        let mut capabilities =
            json!({"roots": {"listChanged": true}, "elicitation": {"form": {}, "url": {}}});
        if self.shared.asked.may_sample {
            capabilities["sampling"] = json!({});
        }
        let params = json!({
            "protocolVersion": HANDSHAKE_REVISIONS[0],
            "capabilities": capabilities,
            "clientInfo": {"name": name, "title": title, "version": version},
        });
        let Value::Object(params) = params else {
            return Err(CallError::Unreadable("no parameters".to_owned()));
        };
        let answer = self.request("initialize", params, RequestLimits::within(limit)).await?;
        let handshake = read_handshake(&answer)?;
        self.shared.transport.negotiated(&handshake.protocol);
        self.notify("notifications/initialized", Value::Null).await?;
        Ok(handshake)
    }
}

fn read_handshake(answer: &Value) -> Result<Handshake, CallError> {
    let protocol = text(answer, "protocolVersion");
    if !HANDSHAKE_REVISIONS.contains(&protocol.as_str()) {
        return Err(CallError::Unreadable(format!(
            "the server speaks revision `{}` of the protocol, and loci speaks {}",
            brief(&protocol),
            HANDSHAKE_REVISIONS.join(", ")
        )));
    }
    Ok(read_info(answer, answer.get("serverInfo").unwrap_or(&Value::Null), protocol))
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Reads what both eras say alike.
pub(super) fn read_info(answer: &Value, info: &Value, protocol: String) -> Handshake {
    let instructions = answer.get("instructions").and_then(Value::as_str).map(visible_excerpt);
    Handshake {
        name: brief(&text(info, "name")),
        version: brief(&text(info, "version")),
        protocol,
        capabilities: answer.get("capabilities").cloned().unwrap_or_else(|| Value::Object(Map::new())),
        instructions: instructions.filter(|text| !text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_revisions_are_taken_and_unknown_ones_refused() {
        for (version, is_taken) in
            [("2024-11-05", true), ("2025-11-25", true), ("2031-01-01", false), ("", false), ("draft", false)]
        {
            let answer = json!({"protocolVersion": version, "capabilities": {"tools": {}, "prompts": null}});
            let read = read_handshake(&answer);
            assert_eq!(read.is_ok(), is_taken, "{version}");
            if let Ok(handshake) = read {
                assert!(handshake.has("tools") && !handshake.has("prompts") && !handshake.has("resources"));
            }
        }
    }
}
