//! What a server says of its models (`/v1/models`): how much each can read at once and write, and what it costs.
//!
//! Servers spell it in several ways: llama.cpp `meta.n_ctx`, vLLM `max_model_len`, LM Studio `loaded_context_length`,
//! OpenRouter and others `context_length`, with `pricing` in dollars a token. Ollama and LM Studio say more by addresses of
//! their own, which are tried at any server that does not say its window in the list.

use std::sync::Arc;
use std::time::Duration;

use loci_core::model::Price;
use loci_core::stream::Failure;
use reqwest::Url;
use serde_json::{Value, json};

use crate::exchange::Shared;
use crate::failure::RequestFacts;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Where a window may stand in a model's description, the surest first.
const WINDOWS: [&str; 8] = [
    "/loaded_context_length",
    "/meta/n_ctx",
    "/n_ctx",
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_input_tokens",
];
/// Where it may say how much a model can write.
const OUTPUTS: [&str; 3] =
    ["/top_provider/max_completion_tokens", "/max_completion_tokens", "/max_output_tokens"];

/// What a server says of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerFacts {
    /// How much it can read.
    pub window: Option<u64>,
    /// How much it can write.
    pub max_output: Option<u64>,
    /// What it costs.
    pub price: Option<Price>,
}

/// Asks the server about a model; `None` when it does not say anything, or not in time.
pub(crate) async fn server_facts(shared: Arc<Shared>, model: String) -> Option<ServerFacts> {
    let asked = async {
        let list = fetch(&shared).await.ok()?;
        let id = match shared.provider.name() {
            Some(name) => model.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&model),
            None => &model,
        };
        let found = find(&list, id);
        let mut facts = found.map(facts_in).unwrap_or_default();
        let is_ollama = found.is_some_and(|model| model["owned_by"] == "library");
        // What is far away and no server of that kind is not asked for what it does not have.
        if facts.window.is_none() && (is_ollama || !shared.transport.uses_tls()) {
            facts.window = native_window(&shared, id).await;
        }
        (facts != ServerFacts::default()).then_some(facts)
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}

/// Asks servers whose OpenAI-compatible list does not say it by their own addresses: LM Studio of what is loaded, Ollama of
/// what runs, and of what it would run.
async fn native_window(shared: &Arc<Shared>, id: &str) -> Option<u64> {
    for path in ["/api/v0/models", "/api/ps"] {
        let list = ask_native(shared, path, None).await;
        if let Some(window) = list.as_ref().and_then(|list| find_named(list, id)).and_then(window_in) {
            return Some(window);
        }
    }
    let shown = ask_native(shared, "/api/show", Some(json!({"model": id}))).await?;
    window_of_ollama(&shown)
}

async fn ask_native(shared: &Arc<Shared>, path: &str, body: Option<Value>) -> Option<Value> {
    let mut url = shared.provider.endpoint.base().clone();
    url.set_path(path);
    let auth = shared.provider.source.current().await.ok()?;
    let headers = auth.headers().ok()?;
    let answer = match body {
        None => shared.transport.get(url, headers).await,
        Some(body) => shared.transport.post_json(url, headers, body.to_string()).await,
    };
    let answer = answer.ok().filter(|answer| answer.status().is_success())?;
    serde_json::from_slice(&answer.bytes().await.ok()?).ok()
}

/// Reads what Ollama says of a model that does not run: the window that its own file sets, else the most that it was made for.
fn window_of_ollama(shown: &Value) -> Option<u64> {
    let lines = shown["parameters"].as_str().unwrap_or_default().lines();
    let set = lines
        .filter_map(|line| line.trim().strip_prefix("num_ctx"))
        .find_map(|rest| rest.trim().parse().ok());
    let info = shown["model_info"].as_object().into_iter().flatten();
    let most = info.filter(|(key, _)| key.ends_with(".context_length")).find_map(|(_, value)| value.as_u64());
    match (set, most) {
        (Some(set), Some(most)) => Some(u64::min(set, most)),
        (set, most) => set.or(most),
    }
    .filter(|window| *window > 0)
}

/// A model as its server tells of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// The full name, with the provider's where it has one.
    pub name: String,
    /// What the server calls it, for people.
    pub label: Option<String>,
    /// What the server says of it.
    pub facts: ServerFacts,
}

/// Asks the server for its models.
pub(crate) async fn model_list(shared: Arc<Shared>) -> Result<Vec<ListedModel>, Failure> {
    let asked = fetch(&shared);
    let list = tokio::time::timeout(PATIENCE, asked)
        .await
        .map_err(|_| loci_http::no_answer(&shared.transport.route(), PATIENCE))??;
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
        let label = model["display_name"].as_str().map(str::to_owned);
        Some(ListedModel { name, label, facts: facts_in(model) })
    });
    named.collect()
}

fn facts_in(model: &Value) -> ServerFacts {
    let max_output = OUTPUTS.iter().find_map(|place| model.pointer(place)?.as_u64());
    ServerFacts {
        window: window_in(model),
        max_output: max_output.filter(|tokens| *tokens > 0),
        price: price_in(&model["pricing"]),
    }
}

fn window_in(model: &Value) -> Option<u64> {
    WINDOWS.iter().find_map(|place| model.pointer(place)?.as_u64()).filter(|window| *window > 0)
}

/// Reads prices in dollars a token, as text or as numbers. A negative one means that it depends on what answers.
fn price_in(pricing: &Value) -> Option<Price> {
    let dollars = |key: &str| {
        let value = &pricing[key];
        let dollars = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
        // Of a product of such small numbers the last digits are noise.
        (dollars.is_finite() && dollars >= 0.0).then(|| (dollars * 1e12).round() / 1e6)
    };
    let (input, output) = (dollars("prompt")?, dollars("completion")?);
    let price = Price::from_parts(input, output, dollars("input_cache_read"));
    let write = dollars("input_cache_write").unwrap_or(input);
    Some(Price { cache_write_5m: write, cache_write_1h: write, ..price })
}

/// Returns the address of the list below a server's.
pub(crate) fn list_url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

/// Finds a model in a list; where there is but one, it is meant whatever it is called.
fn find<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let models = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    find_named(list, model).or_else(|| models.first().filter(|_| models.len() == 1))
}

fn find_named<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let models = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    models.iter().find(|it| {
        let mut names = ["id", "name", "model"].iter().filter_map(|key| it[*key].as_str());
        names.any(|name| name == model || name.strip_suffix(":latest") == Some(model))
    })
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
            assert_eq!(find(&list, "m").and_then(window_in), expected, "{list}");
        }
    }

    #[test]
    fn prices_and_limits_are_read_where_a_server_says_them() {
        let model = json!({"id": "m", "context_length": 200_000,
            "pricing": {"prompt": "0.00000125", "completion": "0.00001", "input_cache_read": "0.000000125", "image": "0"},
            "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000}});
        let facts = facts_in(&model);
        assert_eq!((facts.window, facts.max_output), (Some(200_000), Some(64_000)));
        let price = facts.price.unwrap();
        assert_eq!((price.input, price.output, price.cache_read), (1.25, 10.0, 0.125));
        assert_eq!(price.cache_write_5m, 1.25, "nothing is said of it");
        for silent in [json!({"prompt": "-1", "completion": "-1"}), json!({"prompt": "1e-6"}), json!(null)] {
            assert_eq!(price_in(&silent), None, "{silent}");
        }
        let free = price_in(&json!({"prompt": "0", "completion": 0})).unwrap();
        assert_eq!((free.input, free.output), (0.0, 0.0));
    }

    #[test]
    fn window_of_a_model_that_does_not_run_is_its_file_s_or_its_most() {
        for (shown, expected) in [
            (json!({"model_info": {"qwen3.context_length": 40_960}}), Some(40_960)),
            (
                json!({"parameters": "stop \"x\"\nnum_ctx     16384", "model_info": {"llama.context_length": 131_072}}),
                Some(16_384),
            ),
            (
                json!({"parameters": "num_ctx 262144", "model_info": {"llama.context_length": 8_192}}),
                Some(8_192),
            ),
            (json!({"parameters": "num_ctx 2048"}), Some(2_048)),
            (json!({}), None),
        ] {
            assert_eq!(window_of_ollama(&shown), expected, "{shown}");
        }
    }
}
