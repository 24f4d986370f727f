//! Secrets the administrator hides: an entry whose way of hiding is not known hides all the same.

use serde_json::{Map, Value, json};

/// The key whose entries are mended.
pub(super) const KEY: &str = "sandbox.credentials";

/// Returns the value with every entry of `files` and `envVars` that names no way of hiding set to `deny`.
pub(super) fn degraded(value: Value) -> (Value, usize) {
    let Value::Object(mut map) = value else { return (value, 0) };
    let mut n_degraded = 0;
    for (list, name) in [("files", "path"), ("envVars", "name")] {
        if let Some(Value::Array(entries)) = map.get_mut(list) {
            for entry in entries {
                n_degraded += usize::from(degrade(entry, name));
            }
        }
    }
    (Value::Object(map), n_degraded)
}

fn degrade(entry: &mut Value, name: &str) -> bool {
    match entry {
        Value::String(text) => {
            *entry = json!({name: text.as_str(), "mode": "deny"});
            true
        }
        Value::Object(map) if !has_mode(map) => {
            map.insert("mode".to_owned(), Value::from("deny"));
            true
        }
        _ => false,
    }
}

fn has_mode(map: &Map<String, Value>) -> bool {
    map.get("mode").is_some_and(|mode| mode == "deny" || mode == "mask")
}
