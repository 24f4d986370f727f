//! Keys of the settings `providers` and `models` that nobody knows. They are ignored, so that other versions may have them,
//! and told: one is a slip as likely as not, and without it a key is not sent or a window not known.

use serde_json::{Map, Value};

/// What an entry of `providers` may have.
const PROVIDER: &[&str] = &["protocol", "baseUrl", "apiKeyEnv", "apiKeyHelper", "headers", "models"];
/// What an entry of a model may have.
const MODEL: &[&str] = &["window", "maxOutput", "tools", "images", "thinking", "effort", "price"];
/// What a price may have.
const PRICE: &[&str] = &["input", "output", "cacheRead"];

/// Says which keys of both settings are not known, a sentence each.
pub(crate) fn unknown_provider_keys(
    providers: &Map<String, Value>,
    models: &Map<String, Value>,
) -> Vec<String> {
    let mut told = Vec::new();
    for (name, entry) in providers {
        let path = format!("providers.{name}");
        look_at(&path, entry, PROVIDER, &mut told);
        if let Some(Value::Object(rows)) = entry.get("models") {
            look_at_models(&format!("{path}.models"), rows, &mut told);
        }
    }
    look_at_models("models", models, &mut told);
    told
}

fn look_at_models(path: &str, rows: &Map<String, Value>, told: &mut Vec<String>) {
    for (id, row) in rows {
        let path = format!("{path}.{id}");
        look_at(&path, row, MODEL, told);
        look_at(&format!("{path}.price"), &row["price"], PRICE, told);
    }
}

fn look_at(path: &str, value: &Value, known: &[&str], told: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
        let meant = known.iter().find(|known| is_near(known, key));
        let meant = meant.map(|known| format!("; `{known}` is meant?")).unwrap_or_default();
        told.push(format!("Settings: `{path}.{key}` has no effect: no such key is known{meant}"));
    }
}

/// Tells whether one word is the other in capitals, or with a few letters at its end.
fn is_near(known: &str, key: &str) -> bool {
    let (known, key) = (known.to_lowercase(), key.to_lowercase());
    known.len().abs_diff(key.len()) <= 2 && (known.starts_with(&key) || key.starts_with(&known))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_that_nobody_knows_are_named_with_what_was_meant() {
        let providers = json!({
            "loc": {"protocol": "chat", "baseURL": "http://x/v1", "apiKeyEnvv": "K", "note": "mine",
                "models": {"tiny": {"windows": 1, "price": {"in": 1, "input": 1, "output": 1}}}},
            "fine": {"protocol": "chat", "baseUrl": "http://x/v1", "models": {"a": {"window": 1}}},
            "text": "x",
        });
        let models = json!({"own": {"maxOutputs": 5}});
        let told = unknown_provider_keys(providers.as_object().unwrap(), models.as_object().unwrap());
        expect![[r#"
            Settings: `providers.loc.baseURL` has no effect: no such key is known; `baseUrl` is meant?
            Settings: `providers.loc.apiKeyEnvv` has no effect: no such key is known; `apiKeyEnv` is meant?
            Settings: `providers.loc.note` has no effect: no such key is known
            Settings: `providers.loc.models.tiny.windows` has no effect: no such key is known; `window` is meant?
            Settings: `providers.loc.models.tiny.price.in` has no effect: no such key is known
            Settings: `models.own.maxOutputs` has no effect: no such key is known; `maxOutput` is meant?"#]]
        .assert_eq(&told.join("\n"));
    }
}
