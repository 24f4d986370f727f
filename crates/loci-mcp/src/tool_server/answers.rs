//! What a client is answered to everything but calls, in the era that it speaks.

use serde_json::{Value, json};

use super::ServedTools;
use crate::message::{
    HANDSHAKE_REVISIONS, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, STATELESS_REVISION, UNSUPPORTED_VERSION,
    is_stateless,
};
use crate::names::brief;
use crate::transport::routing_headers::VERSION_META;

const CAPABILITIES_META: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_META: &str = "io.modelcontextprotocol/serverInfo";
/// How long our lists are fresh: they do not change while we run.
const TTL_MS: u64 = 3_600_000;

/// Whether a handshake has been made. A request that says itself which revision it is of needs none.
#[derive(Debug, Default)]
pub(super) struct Era {
    is_greeted: bool,
}

impl Era {
    /// Tells whether a request is of the era without handshakes; the error says why it cannot be answered at all.
    pub(super) fn admit(&self, method: &str, params: &Value) -> Result<bool, RpcError> {
        let meta = params.get("_meta").unwrap_or(&Value::Null);
        match meta.get(VERSION_META) {
            None if self.is_greeted || matches!(method, "initialize" | "ping") => Ok(false),
            None => Err(RpcError::new(
                INVALID_PARAMS,
                format!("`{method}` came before `initialize`, and without `{VERSION_META}` in its `_meta`"),
            )),
            Some(Value::String(version)) if is_stateless(version) => match meta.get(CAPABILITIES_META) {
                Some(capabilities) if capabilities.is_object() => Ok(true),
                _ => Err(RpcError::new(INVALID_PARAMS, format!("its `_meta` has no `{CAPABILITIES_META}`"))),
            },
            Some(Value::String(version)) => Err(unsupported(version)),
            Some(_) => Err(RpcError::new(INVALID_PARAMS, format!("`{VERSION_META}` is no text"))),
        }
    }

    /// Answers a request.
    pub(super) fn answer(
        &mut self,
        method: &str,
        params: &Value,
        tools: &dyn ServedTools,
        version: &str,
    ) -> Result<Value, RpcError> {
        let is_stateless = self.admit(method, params)?;
        let mut answer = match (method, is_stateless) {
            ("initialize", false) => {
                self.is_greeted = true;
                return Ok(greeting(params, version));
            }
            ("ping", false) => return Ok(json!({})),
            ("server/discover", true) => {
                json!({"supportedVersions": [STATELESS_REVISION], "capabilities": {"tools": {}}})
            }
            ("tools/list", _) => json!({"tools": tools.tools().iter().map(|tool| {
                json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema})
            }).collect::<Vec<_>>()}),
            (method, _) => return Err(unknown_method(method)),
        };
        if is_stateless {
            answer["ttlMs"] = json!(TTL_MS);
            answer["cacheScope"] = json!("private");
            complete(&mut answer, version);
        }
        Ok(answer)
    }
}

/// Makes an answer what the era without handshakes wants: it says that it is whole, and who gives it.
pub(super) fn complete(answer: &mut Value, version: &str) {
    answer["resultType"] = json!("complete");
    answer["_meta"] = json!({SERVER_META: info(version)});
}

pub(super) fn unknown_method(method: &str) -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {}", brief(method)))
}

fn unsupported(version: &str) -> RpcError {
    let data = json!({"supported": [STATELESS_REVISION], "requested": version});
    RpcError { data, ..RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version") }
}

/// Agrees on the revision that the client asks for, or on our newest.
fn greeting(params: &Value, version: &str) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let agreed = HANDSHAKE_REVISIONS.iter().find(|known| **known == asked).unwrap_or(&HANDSHAKE_REVISIONS[0]);
    json!({"protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": info(version)})
}

fn info(version: &str) -> Value {
    json!({"name": "loci", "title": "loci", "version": version})
}
