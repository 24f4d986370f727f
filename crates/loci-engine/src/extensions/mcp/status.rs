//! Servers as clients of the headless protocol see them.

use loci_mcp::config::ConfigProblem;
use loci_mcp::{ServerView, Servers};
pub use loci_protocol::mcp::{McpServerError, McpServerState};
use serde_json::{Map, Value, json};

/// Tells what is wrong with how a server is configured.
pub(super) fn config_error(problem: &ConfigProblem) -> McpServerError {
    let ConfigProblem { name, kind, message } = problem.clone();
    McpServerError { name, kind: kind.into(), message }
}

pub(super) fn states(servers: &Servers) -> Vec<McpServerState> {
    let state = |view: ServerView| McpServerState {
        source: source(&view).into(),
        name: view.name,
        status: view.status.name().into(),
    };
    servers.views().into_iter().map(state).collect()
}

/// Returns who has brought a server: only the client can bring one that lives in it.
pub(super) fn source(view: &ServerView) -> &'static str {
    if view.kind == "sdk" { "sdk" } else { view.scope.name() }
}

/// Answers `mcp_status`.
pub(super) fn status(servers: &Servers) -> Value {
    json!({"mcpServers": servers.views().iter().map(row).collect::<Vec<_>>()})
}

fn row(view: &ServerView) -> Value {
    let mut row = json!({
        "name": view.name,
        "status": view.status.name(),
        "scope": view.scope.name(),
        "source": source(view),
    });
    if let Some(handshake) = &view.handshake {
        row["serverInfo"] = json!({"name": handshake.name, "version": handshake.version});
    }
    if view.kind != "sdk" {
        row["config"] = config_to_json(&view.written, view.kind);
    }
    if let Some(error) = &view.error {
        row["error"] = json!(error);
    }
    if !view.offer.tools.is_empty() {
        row["tools"] = view
            .offer
            .tools
            .iter()
            .map(|(_, tool)| {
                let mut shown =
                    json!({"name": tool.name, "annotations": annotations_to_json(&tool.annotations)});
                if !tool.description.is_empty() {
                    shown["description"] = json!(tool.description);
                }
                shown
            })
            .collect();
    }
    row
}

/// Returns an entry as it was written, with its type; what was not written into the file is not in it.
fn config_to_json(written: &Value, kind: &str) -> Value {
    let mut shown = Map::from_iter([("type".to_owned(), json!(kind))]);
    for (key, value) in written.as_object().into_iter().flatten() {
        shown.insert(key.clone(), value.clone());
    }
    Value::Object(shown)
}

/// Clients know the hints by shorter names.
fn annotations_to_json(annotations: &Value) -> Value {
    let names =
        [("readOnlyHint", "readOnly"), ("destructiveHint", "destructive"), ("openWorldHint", "openWorld")];
    let hints = names.iter().filter_map(|(hint, name)| {
        annotations.get(hint).and_then(Value::as_bool).map(|is_so| ((*name).to_owned(), Value::from(is_so)))
    });
    Value::Object(hints.collect())
}
