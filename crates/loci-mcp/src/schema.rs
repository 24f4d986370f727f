//! Input schemas as the model's provider takes them: an object at the root, without alternatives there.
//!
//! Servers are free to write a root of `anyOf`, `oneOf` or `allOf`, which the provider refuses together with the whole
//! request. Such a root is flattened: the properties of all parts become properties, what every part demands (for
//! `allOf`, what any demands) is demanded, and what is lost of alternatives is said in the description. Everything else,
//! `$schema`, `$defs` and `additionalProperties` included, is passed on as it came.

use serde_json::{Map, Value};

/// Returns a schema that can be sent, or what is wrong with it.
pub(crate) fn input_schema(schema: &Value) -> Result<Value, String> {
    let Value::Object(root) = schema else { return Err("its input schema is no object".to_owned()) };
    let mut root = root.clone();
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(parts)) = root.remove(key) {
            flatten(&mut root, key, &parts);
        }
    }
    match root.get("type") {
        None => {
            root.insert("type".to_owned(), Value::from("object"));
        }
        Some(kind) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {
            root.insert("type".to_owned(), Value::from("object"));
        }
        Some(kind) => return Err(format!("its input schema describes {kind}, not an object")),
    }
    if root.get("properties").is_some_and(|properties| !properties.is_object()) {
        return Err("the `properties` of its input schema are no object".to_owned());
    }
    Ok(Value::Object(root))
}

fn flatten(root: &mut Map<String, Value>, key: &str, parts: &[Value]) {
    let definitions = Value::Object(root.clone());
    let parts: Vec<&Value> = parts.iter().map(|part| resolved(&definitions, part)).collect();
    let mut properties = object(root.get("properties"));
    let mut required = texts(root.get("required"));
    let mut common: Option<Vec<String>> = None;
    for part in &parts {
        for (name, schema) in object(part.get("properties")) {
            properties.entry(name).or_insert(schema);
        }
        let wanted = texts(part.get("required"));
        if key == "allOf" {
            required.extend(wanted);
        } else {
            common = Some(match common {
                None => wanted,
                Some(held) => held.into_iter().filter(|name| wanted.contains(name)).collect(),
            });
        }
    }
    required.extend(common.unwrap_or_default());
    let mut seen = Vec::new();
    required.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    root.insert("type".to_owned(), Value::from("object"));
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::from(required));
    }
    if key != "allOf" {
        let note = alternatives(key, &parts);
        let before = root.get("description").and_then(Value::as_str).map(|text| format!("{text}\n"));
        root.insert("description".to_owned(), Value::from(before.unwrap_or_default() + &note));
    }
}

/// Says which properties belong together.
fn alternatives(key: &str, parts: &[&Value]) -> String {
    let sets = parts.iter().map(|part| {
        let names: Vec<String> = object(part.get("properties")).keys().cloned().collect();
        let wanted = texts(part.get("required"));
        let shown = if wanted.is_empty() { names } else { wanted };
        format!("({})", shown.join(", "))
    });
    let word = if key == "oneOf" { "exactly one" } else { "at least one" };
    format!("Give {word} of these sets of properties: {}", sets.collect::<Vec<_>>().join(" or "))
}

/// Follows a reference into the root's own definitions, once.
fn resolved<'a>(root: &'a Value, part: &'a Value) -> &'a Value {
    let pointer = part.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(part)
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ordinary_schemas_are_passed_on_whole() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "required": ["a"],
            "$defs": {"a": {"type": "integer"}},
            "additionalProperties": false,
        });
        assert_eq!(input_schema(&schema), Ok(schema));
        assert_eq!(input_schema(&json!({})), Ok(json!({"type": "object"})));
        assert_eq!(input_schema(&json!({"type": ["object", "null"]})), Ok(json!({"type": "object"})));
    }

    #[test]
    fn alternatives_at_the_root_are_flattened() {
        let part = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        let all = input_schema(&json!({"allOf": [part("a"), part("b"), part("a")]})).unwrap();
        assert_eq!(
            all,
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]})
        );
        let one = input_schema(&json!({"description": "Which", "oneOf": [part("a"), {"$ref": "#/$defs/b"}], "$defs": {"b": part("b")}}))
            .unwrap();
        assert_eq!(one.get("oneOf").or(one.get("required")), None);
        assert_eq!(one["properties"].as_object().unwrap().len(), 2);
        assert_eq!(one["description"], "Which\nGive exactly one of these sets of properties: (a) or (b)");
    }

    #[test]
    fn what_is_no_schema_of_an_object_is_refused() {
        for bad in [
            json!(null),
            json!("object"),
            json!({"type": "string"}),
            json!({"type": "object", "properties": 3}),
        ] {
            assert!(input_schema(&bad).is_err(), "{bad}");
        }
    }
}
