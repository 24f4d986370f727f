//! Questions of MCP servers for the model (`sampling/createMessage`), for servers that the setting `mcpSampling` names.
//!
//! A server's words meet the model in a request of their own: no tools, nothing of the conversation, nothing of ours. What
//! it costs counts for the session, and a run that may spend no more asks nothing more.

use loci_core::message::{Block, Message, Role};
use loci_llm::{Request, SystemBlock};
use loci_mcp::visible_text;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::conversation::SessionContext;
use crate::models::side_request::{answer_text, ask_model_to_end};

/// The most that the model may write, how much it may be asked at once, and how often in a session.
const MOST_TOKENS: u64 = 8_192;
const MOST_CHARS: usize = 400_000;
const MOST_MESSAGES: usize = 200;
pub(super) const MOST_SAMPLES: u32 = 200;

/// Asks the model what a server wants to know.
pub(super) async fn sample(
    ctx: &SessionContext,
    params: &Value,
    max_budget: Option<f64>,
) -> Result<Value, String> {
    if max_budget.is_some_and(|limit| ctx.spent_usd() >= limit) {
        return Err("the budget of this run is spent".to_owned());
    }
    let model = ctx.state.get().model.session_override.clone();
    let model = model.unwrap_or_else(|| ctx.services.web.main_model().to_owned());
    let request = sampling_request(params, &model)?;
    let cancel = CancellationToken::new();
    let asked =
        ask_model_to_end(&ctx.services.client, ctx.services.web.models(), &ctx.identity, request, &cancel);
    let (blocks, ended) = asked.await.map_err(|failure| failure.message)?;
    let stop = match ended.stop_reason.as_deref() {
        Some("max_tokens") => "maxTokens",
        Some("stop_sequence") => "stopSequence",
        _ => "endTurn",
    };
    Ok(json!({
        "role": "assistant",
        "content": {"type": "text", "text": answer_text(&blocks)},
        "model": model,
        "stopReason": stop,
    }))
}

/// Makes the request; the error says what of it cannot be done.
fn sampling_request(params: &Value, model: &str) -> Result<Request, String> {
    if params.get("tools").is_some_and(|tools| !tools.is_null()) {
        return Err("loci lets no server give the model tools".to_owned());
    }
    let said = params.get("messages").and_then(Value::as_array).ok_or("there are no `messages`")?;
    if said.is_empty() || said.len() > MOST_MESSAGES {
        return Err(format!("there are {} messages; one to {MOST_MESSAGES} can be asked", said.len()));
    }
    let messages = said.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    let system = params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default();
    let n_chars = system.len()
        + messages.iter().flat_map(|it| it.content.iter()).map(|it| it.json().as_str().len()).sum::<usize>();
    if n_chars > MOST_CHARS {
        return Err(format!("the question has {n_chars} characters, and {MOST_CHARS} can be asked"));
    }
    let max_tokens = params.get("maxTokens").and_then(Value::as_u64).unwrap_or(MOST_TOKENS);
    let system = (!system.trim().is_empty())
        .then(|| SystemBlock { text: visible_text(system), is_cached: false })
        .into_iter()
        .collect();
    Ok(Request { system, ..Request::new(model, max_tokens.clamp(1, MOST_TOKENS), messages) })
}

fn message(said: &Value) -> Result<Message, String> {
    let role = match said.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err("a message has neither the role `user` nor `assistant`".to_owned()),
    };
    let content = said.get("content").unwrap_or(&Value::Null);
    let parts: Vec<&Value> = match content {
        Value::Array(parts) => parts.iter().collect(),
        one => vec![one],
    };
    let blocks = parts.into_iter().map(block).collect::<Result<Vec<_>, _>>()?;
    Ok(Message::new(role, blocks))
}

fn block(part: &Value) -> Result<Block, String> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    match (text("type"), text("text"), text("data")) {
        (Some("text"), Some(said), _) => Ok(Block::new_text(&visible_text(said))),
        (Some("image"), _, Some(data)) => Ok(Block::new_image(text("mimeType").unwrap_or("image/png"), data)),
        (kind, ..) => {
            Err(format!("content of the kind `{}` cannot be asked", visible_text(kind.unwrap_or_default())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_bounded_and_bring_no_tools() {
        let user = |text: &str| json!([{"role": "user", "content": {"type": "text", "text": text}}]);
        let made = sampling_request(
            &json!({"messages": user("hi"), "maxTokens": 1_000_000, "systemPrompt": "Be kind."}),
            "m",
        );
        let made = made.unwrap();
        assert_eq!(
            (made.max_tokens, made.system[0].text.as_str(), made.tools.len()),
            (MOST_TOKENS, "Be kind.", 0)
        );
        for (params, problem) in [
            (json!({}), "no `messages`"),
            (json!({"messages": []}), "0 messages"),
            (json!({"messages": user("x"), "tools": []}), "tools"),
            (json!({"messages": user(&"x".repeat(MOST_CHARS + 1))}), "characters"),
            (json!({"messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]}), "role"),
            (json!({"messages": [{"role": "user", "content": {"type": "audio", "data": "x"}}]}), "`audio`"),
        ] {
            let error = sampling_request(&params, "m").unwrap_err();
            assert!(error.contains(problem), "{params}: {error}");
        }
    }
}
