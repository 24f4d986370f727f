//! What a server says of its models (`/v1/models`), as far as we ask: how much each can read at once.
//!
//! Servers spell it in several ways: llama.cpp `meta.n_ctx`, vLLM `max_model_len`, LM Studio `loaded_context_length`,
//! OpenRouter and others `context_length`.

use std::sync::Arc;
use std::time::Duration;

use loci_core::stream::Failure;
use reqwest::Url;
use serde_json::Value;

use crate::exchange::Shared;
use crate::failure::RequestFacts;

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
        let list = fetch(&shared).await.ok()?;
        let id = match shared.provider.name() {
            Some(name) => model.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&model),
            None => &model,
        };
        match window_of(&list, id) {
            Some(window) => Some(window),
            None => native_window(&shared, id).await,
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}

/// Asks servers whose OpenAI-compatible list does not say it by their own: LM Studio of what is loaded, Ollama of what runs.
async fn native_window(shared: &Arc<Shared>, id: &str) -> Option<u64> {
    let path = match shared.provider.name()? {
        "lmstudio" => "/api/v0/models",
        "ollama" => "/api/ps",
        _ => return None,
    };
    let mut url = shared.provider.endpoint.base().clone();
    url.set_path(path);
    let answer = shared.transport.get(url, reqwest::header::HeaderMap::new()).await.ok()?;
    let body = answer.bytes().await.ok()?;
    let list: Value = serde_json::from_slice(&body).ok()?;
    let models = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    let is_meant = |it: &&Value| {
        let names = ["id", "name", "model"].iter().filter_map(|key| it[*key].as_str());
        names.into_iter().any(|name| name == id || name.strip_suffix(":latest") == Some(id))
    };
    window_in(models.iter().find(is_meant)?)
}

/// A model as its server tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The full name, with the provider's where it has one.
    pub name: String,
    /// How much it can read, where the server says so.
    pub window: Option<u64>,
}

/// Asks the server for its models.
pub(crate) async fn model_list(shared: Arc<Shared>) -> Result<Vec<ListedModel>, Failure> {
    let asked = fetch(&shared);
    let list = tokio::time::timeout(PATIENCE, asked)
        .await
        .map_err(|_| crate::failure::connection::no_answer(&shared.transport.route(), PATIENCE))??;
    Ok(listed(&list, shared.provider.name()))
}

async fn fetch(shared: &Arc<Shared>) -> Result<Value, Failure> {
    let auth = shared.provider.source.current().await?;
    let (url, headers) = shared.provider.model_list(&auth)?;
    let answer = shared.transport.get(url, headers).await?;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let is_fine = answer.status().is_success();
    let body = answer.bytes().await.unwrap_or_default();
    let failed = match is_fine {
        true => match serde_json::from_slice(&body) {
            Ok(list) => return Ok(list),
            Err(_) => crate::failure::not_an_answer(&body, None),
        },
        false => {
            shared.provider.protocol.failure(status, &headers, &body, RequestFacts { model: "", auth: &auth })
        }
    };
    Err(shared.provider.redacted(shared.provider.explained(failed), &auth))
}

fn listed(list: &Value, provider: Option<&str>) -> Vec<ListedModel> {
    let models = list.get("data").or_else(|| list.get("models")).and_then(Value::as_array);
    let named = models.into_iter().flatten().filter_map(|model| {
        let id = ["id", "name", "model"].iter().find_map(|key| model[*key].as_str())?;
        let name = provider.map_or_else(|| id.to_owned(), |provider| format!("{provider}/{id}"));
        Some(ListedModel { name, window: window_in(model) })
    });
    named.collect()
}

fn window_in(model: &Value) -> Option<u64> {
    WINDOWS.iter().find_map(|place| model.pointer(place)?.as_u64()).filter(|window| *window > 0)
}

/// Returns the address of the list below a server's.
pub(crate) fn list_url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

/// Finds a model in a list; where there is but one, it is meant whatever it is called.
fn window_of(list: &Value, model: &str) -> Option<u64> {
    let models = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    let is_meant = |it: &&Value| ["id", "name", "model"].iter().any(|key| it[*key] == model);
    let meant = models.iter().find(is_meant).or_else(|| models.first().filter(|_| models.len() == 1))?;
    window_in(meant)
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
