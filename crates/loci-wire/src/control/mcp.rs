//! Requests about MCP servers.

use loci_engine::McpAction;
use serde_json::{Value, json};

/// Reads a request; none where it is about something else. The error says what is wrong with it.
pub(super) fn parse(subtype: &str, request: &Value) -> Option<Result<McpAction, String>> {
    let text = |key: &str| request.get(key).and_then(Value::as_str).map(str::to_owned);
    let server = || text("serverName");
    let action = match subtype {
        "mcp_status" => Some(McpAction::Status),
        "mcp_reconnect" => server().map(|server| McpAction::Reconnect { server }),
        "mcp_toggle" => server()
            .zip(request.get("enabled").and_then(Value::as_bool))
            .map(|(server, is_on)| McpAction::Toggle { server, is_on }),
        "mcp_set_servers" => {
            let servers = request.get("servers").filter(|servers| servers.is_object());
            servers.map(|servers| McpAction::SetServers { servers: servers.clone() })
        }
        "mcp_authenticate" => {
            server().map(|server| McpAction::Authenticate { server, redirect_uri: text("redirectUri") })
        }
        "mcp_oauth_callback_url" => server()
            .zip(text("callbackUrl"))
            .map(|(server, address)| McpAction::LoginAnswer { server, address }),
        "mcp_clear_auth" => server().map(|server| McpAction::ClearAuth { server }),
        "mcp_message" => text("server_name")
            .zip(request.get("message").cloned())
            .map(|(server, message)| McpAction::Deliver { server, message }),
        "mcp_call" => match unkept_promise(request) {
            Some(problem) => return Some(Err(problem)),
            None => text("tool").map(|tool| {
                let input = request.get("arguments").cloned().unwrap_or_else(|| json!({}));
                McpAction::CallTool { tool, input }
            }),
        },
        "mcp_read_resource" => {
            server().zip(text("uri")).map(|(server, uri)| McpAction::ReadResource { server, uri })
        }
        _ => return None,
    };
    Some(action.ok_or_else(|| format!("{subtype} needs {}", needs(subtype))))
}

/// Says what a call asks for that is not done here. A call that should have been judged first must not run unjudged.
fn unkept_promise(request: &Value) -> Option<String> {
    let asked = |key: &&str| match &request[*key] {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let unkept = ["check_permissions", "input_files", "output_files", "expires_at", "timeout_ms"];
    let unkept: Vec<&str> = unkept.into_iter().filter(|key| asked(key)).collect();
    (!unkept.is_empty())
        .then(|| format!("mcp_call was not made: loci cannot do what these ask for: {}", unkept.join(", ")))
}

fn needs(subtype: &str) -> &'static str {
    match subtype {
        "mcp_toggle" => "serverName and enabled",
        "mcp_set_servers" => "servers, an object",
        "mcp_oauth_callback_url" => "serverName and callbackUrl",
        "mcp_message" => "server_name and message",
        "mcp_call" => "tool",
        "mcp_read_resource" => "serverName and uri",
        _ => "serverName",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_about_servers_are_read_or_refused_with_what_they_need() {
        let server = || "s".to_owned();
        for (request, expected) in [
            (json!({"subtype": "mcp_status"}), Ok(McpAction::Status)),
            (
                json!({"subtype": "mcp_reconnect", "serverName": "s"}),
                Ok(McpAction::Reconnect { server: server() }),
            ),
            (json!({"subtype": "mcp_reconnect"}), Err("mcp_reconnect needs serverName")),
            (
                json!({"subtype": "mcp_toggle", "serverName": "s", "enabled": false}),
                Ok(McpAction::Toggle { server: server(), is_on: false }),
            ),
            (
                json!({"subtype": "mcp_toggle", "serverName": "s"}),
                Err("mcp_toggle needs serverName and enabled"),
            ),
            (
                json!({"subtype": "mcp_set_servers", "servers": []}),
                Err("mcp_set_servers needs servers, an object"),
            ),
            (
                json!({"subtype": "mcp_message", "server_name": "s", "message": {"id": 1}}),
                Ok(McpAction::Deliver { server: server(), message: json!({"id": 1}) }),
            ),
            (
                json!({"subtype": "mcp_message", "server_name": "s"}),
                Err("mcp_message needs server_name and message"),
            ),
            (
                json!({"subtype": "mcp_call", "tool": "mcp__s__t"}),
                Ok(McpAction::CallTool { tool: "mcp__s__t".to_owned(), input: json!({}) }),
            ),
            (
                json!({"subtype": "mcp_call", "tool": "mcp__s__t", "check_permissions": true}),
                Err("mcp_call was not made: loci cannot do what these ask for: check_permissions"),
            ),
            (
                json!({"subtype": "mcp_call", "tool": "t", "input_files": [{}], "output_files": []}),
                Err("mcp_call was not made: loci cannot do what these ask for: input_files"),
            ),
            (
                json!({"subtype": "mcp_read_resource", "serverName": "s", "uri": "u"}),
                Ok(McpAction::ReadResource { server: server(), uri: "u".to_owned() }),
            ),
            (json!({"subtype": "mcp_clear_auth"}), Err("mcp_clear_auth needs serverName")),
        ] {
            let parsed = parse(request["subtype"].as_str().unwrap(), &request).unwrap();
            assert_eq!(parsed, expected.map_err(str::to_owned), "{request}");
        }
        assert_eq!(parse("interrupt", &json!({})), None);
    }
}
