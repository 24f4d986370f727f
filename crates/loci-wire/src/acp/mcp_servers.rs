//! MCP servers that the editor brings, in the form of configuration files.

use serde_json::{Map, Value, json};

use super::rpc::RpcError;

/// Returns the configuration of the servers of a request, as `--mcp-config` takes it; none without any.
pub(super) fn configuration(servers: &Value) -> Result<Option<String>, RpcError> {
    let servers = match servers {
        Value::Null => return Ok(None),
        Value::Array(servers) => servers,
        _ => return Err(RpcError::params("`mcpServers` must be a list")),
    };
    let mut entries = Map::new();
    for server in servers {
        let name = text(server, "name")?;
        if entries.insert(name.to_owned(), entry(server)?).is_some() {
            return Err(RpcError::params(format!("There are two MCP servers named `{name}`")));
        }
    }
    Ok((!entries.is_empty()).then(|| json!({"mcpServers": entries}).to_string()))
}

fn entry(server: &Value) -> Result<Value, RpcError> {
    match server.get("type").and_then(Value::as_str) {
        None | Some("stdio") => {
            let args = match &server["args"] {
                Value::Null => json!([]),
                args @ Value::Array(_) => args.clone(),
                _ => return Err(RpcError::params("`args` of an MCP server must be a list")),
            };
            Ok(json!({"command": text(server, "command")?, "args": args, "env": pairs(server, "env")?}))
        }
        Some(kind @ ("http" | "sse")) => {
            Ok(json!({"type": kind, "url": text(server, "url")?, "headers": pairs(server, "headers")?}))
        }
        Some(other) => Err(RpcError::params(format!("MCP servers of type `{other}` are not supported"))),
    }
}

fn text<'a>(server: &'a Value, key: &str) -> Result<&'a str, RpcError> {
    let value = server[key].as_str().filter(|value| !value.is_empty());
    value.ok_or_else(|| RpcError::params(format!("An MCP server has no `{key}`")))
}

/// Reads a list of names and values.
fn pairs(server: &Value, key: &str) -> Result<Value, RpcError> {
    let bad = || RpcError::params(format!("`{key}` of an MCP server must be a list of names and values"));
    let list = match &server[key] {
        Value::Null => return Ok(json!({})),
        Value::Array(list) => list,
        _ => return Err(bad()),
    };
    let pair = |it: &Value| Some((it["name"].as_str()?.to_owned(), Value::from(it["value"].as_str()?)));
    let pairs: Option<Map<String, Value>> = list.iter().map(pair).collect();
    pairs.map(Value::Object).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_each_transport_become_configuration() {
        let servers = json!([
            {"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "H", "value": "v"}]},
            {"type": "sse", "name": "c", "url": "http://c", "headers": []},
        ]);
        let text = configuration(&servers).unwrap().unwrap();
        let expected = json!({"mcpServers": {
            "a": {"command": "/bin/a", "args": ["-x"], "env": {"K": "v"}},
            "b": {"type": "http", "url": "http://b", "headers": {"H": "v"}},
            "c": {"type": "sse", "url": "http://c", "headers": {}},
        }});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        for none in [Value::Null, json!([])] {
            assert_eq!(configuration(&none), Ok(None));
        }
    }

    #[test]
    fn servers_that_cannot_be_are_refused() {
        for servers in [
            json!({}),
            json!([{"command": "x"}]),
            json!([{"name": "a"}]),
            json!([{"name": "a", "type": "acp", "id": "x"}]),
            json!([{"name": "a", "type": "http"}]),
            json!([{"name": "a", "command": "x", "args": "y"}]),
            json!([{"name": "a", "command": "x", "env": {"K": "v"}}]),
            json!([{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]),
        ] {
            assert!(configuration(&servers).is_err(), "{servers}");
        }
    }
}
