//! The JSON Schema of a settings file, made from the table of keys.

use serde_json::{Map, Value, json};

use super::{Key, Kind, Scopes};

/// Returns the JSON Schema (2020-12) that editors can check settings files with.
pub fn json_schema() -> Value {
    let mut properties = Map::new();
    properties.insert("$schema".to_owned(), json!({"type": "string"}));
    for key in Key::all().iter().filter(|key| key.scopes != Scopes::Global) {
        insert(&mut properties, key.path, key);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of loci and Claude Code",
        "type": "object",
        "properties": properties,
    })
}

fn insert(properties: &mut Map<String, Value>, path: &str, key: &Key) {
    let Some((group, rest)) = path.split_once('.') else {
        properties.insert(path.to_owned(), schema(key));
        return;
    };
    let group = properties.entry(group).or_insert_with(|| json!({"type": "object", "properties": {}}));
    if let Some(Value::Object(inner)) = group.get_mut("properties") {
        insert(inner, rest, key);
    }
}

fn schema(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Text => json!({"type": "string"}),
        Kind::OneOf(names) => json!({"enum": names}),
        Kind::Integer(least, i64::MAX) => json!({"type": "integer", "minimum": least}),
        Kind::Integer(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Kind::Number(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
        Kind::Texts | Kind::Restrictions => json!({"type": "array", "items": {"type": "string"}}),
        Kind::TextOrTexts => json!({"type": ["string", "array"], "items": {"type": "string"}}),
        Kind::List => json!({"type": "array"}),
        Kind::TextMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::BoolMap => json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
        Kind::Object => json!({"type": "object"}),
        Kind::Any => json!({}),
    };
    let place = match key.scopes {
        Scopes::Any => String::new(),
        scopes => format!(" Set in {}.", scopes.describe()),
    };
    let use_ = if key.is_used { "" } else { " Kept, not acted upon yet." };
    if let Value::Object(schema) = &mut schema {
        let about = format!("{}.{place}{use_}", capitalised(key.about));
        schema.insert("description".to_owned(), Value::from(about));
    }
    schema
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
