//! What OpenAI's Chat Completions refuse about a request, as far as we could break it.

use serde_json::Value;

/// Returns what is wrong with a request.
pub(crate) fn violations(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("model: required".into());
    }
    if messages.is_empty() {
        found.push("messages: at least one is required".into());
    }
    let mut open: Vec<&str> = Vec::new();
    for (idx, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match role {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match open.iter().position(|it| *it == id) {
                    Some(at) => drop(open.remove(at)),
                    None => found.push(format!("messages[{idx}]: `{id}` answers no call before it")),
                }
                if !message["content"].is_string() {
                    found.push(format!("messages[{idx}]: a tool message is text"));
                }
            }
            "system" | "developer" if idx > 0 => found.push(format!("messages[{idx}]: {role} not first")),
            _ if !open.is_empty() => {
                found.push(format!("messages[{idx}]: calls without an answer: {open:?}"));
            }
            "system" | "developer" | "user" | "assistant" => {}
            other => found.push(format!("messages[{idx}]: unknown role `{other}`")),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let (id, name) = (call["id"].as_str().unwrap_or_default(), call["function"]["name"].as_str());
            if id.is_empty() || id.len() > 40 {
                found.push(format!("messages[{idx}]: an id has 1 to 40 characters: `{id}`"));
            }
            if !name.is_some_and(is_name) || !call["function"]["arguments"].is_string() {
                found.push(format!("messages[{idx}]: a call has a name and arguments: {call}"));
            }
            open.push(id);
        }
    }
    if !open.is_empty() {
        found.push(format!("calls without an answer: {open:?}"));
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    found.extend(tools.filter_map(|tool| {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        (!is_name(name)).then(|| format!("tools: `{name}` is no name"))
    }));
    found
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_plain)
}
