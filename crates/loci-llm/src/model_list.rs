//! What a server says of its models (`/v1/models`), as far as we ask: how much each can read at once.
//!
//! Servers spell it in several ways: llama.cpp `meta.n_ctx`, vLLM `max_model_len`, LM Studio `loaded_context_length`,
//! OpenRouter and others `context_length`.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde_json::Value;

use crate::exchange::Shared;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Where a window may stand in a model's description, the surest first.
const WINDOWS: [&str; 7] = [
    "/loaded_context_length",
    "/meta/n_ctx",
    "/n_ctx",
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
];

/// Asks the server for the window of a model; `None` when it does not say, or not in time.
pub(crate) async fn context_window(shared: Arc<Shared>, model: String) -> Option<u64> {
    let asked = async {
        let auth = shared.provider.source.current().await.ok()?;
        let (url, headers) = shared.provider.model_list(&auth).ok()?;
        let answer = shared.transport.get(url, headers).await.ok()?;
        let is_fine = answer.status().is_success();
        let body = answer.bytes().await.ok().filter(|_| is_fine)?;
        window_of(&serde_json::from_slice(&body).ok()?, &model)
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}

/// Returns the address of the list below a server's.
pub(crate) fn list_url(base: &Url) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/v1/models", base.path().trim_end_matches('/')));
    url
}

/// Finds a model in a list; where there is but one, it is meant whatever it is called.
fn window_of(list: &Value, model: &str) -> Option<u64> {
    let models = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    let is_meant = |it: &&Value| ["id", "name", "model"].iter().any(|key| it[*key] == model);
    let meant = models.iter().find(is_meant).or_else(|| models.first().filter(|_| models.len() == 1))?;
    WINDOWS.iter().find_map(|place| meant.pointer(place)?.as_u64()).filter(|window| *window > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn window_is_read_in_the_spelling_of_each_server() {
        for (list, expected) in [
            (json!({"data": [{"id": "m", "meta": {"n_ctx": 65_536, "n_ctx_train": 131_072}}]}), Some(65_536)),
            (
                json!({"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 8_192}]}),
                Some(8_192),
            ),
            (json!({"data": [{"id": "path/to/file.gguf", "meta": {"n_ctx": 4_096}}]}), Some(4_096)),
            (json!({"data": [{"id": "m", "max_context_length": 9, "loaded_context_length": 7}]}), Some(7)),
            (json!({"data": [{"id": "a", "context_length": 1}, {"id": "b", "context_length": 2}]}), None),
            (json!({"data": [{"id": "m", "display_name": "M"}]}), None),
            (json!({"data": [{"id": "m", "context_length": 0}]}), None),
            (json!([]), None),
        ] {
            assert_eq!(window_of(&list, "m"), expected, "{list}");
        }
    }
}
