//! Reasoning of other models: `reasoning_content` (DeepSeek, vLLM, llama.cpp), `reasoning` and `reasoning_details`
//! (OpenRouter). All of it is shown; it is kept in the form in which it goes back, an object of the message's own fields.

use serde_json::{Map, Value, json};

/// Adds text to a field.
pub(super) fn add_text(kept: &mut Option<Value>, field: &str, text: &str) {
    change(kept, |object| {
        let before = object.get(field).and_then(Value::as_str).unwrap_or_default();
        let joined = format!("{before}{text}");
        object.insert(field.to_owned(), joined.into());
    });
}

/// Adds pieces of `reasoning_details`: those of one item grow it, others follow.
pub(super) fn add_details(kept: &mut Option<Value>, pieces: &[Value]) {
    change(kept, |object| {
        // Where the details come, they say the same as the text.
        object.remove("reasoning");
        let details = object.entry("reasoning_details").or_insert_with(|| json!([]));
        let Some(details) = details.as_array_mut() else { return };
        for piece in pieces {
            let is_same = |it: &&mut Value| {
                !piece["index"].is_null() && it["index"] == piece["index"] && it["type"] == piece["type"]
            };
            match details.iter_mut().find(is_same) {
                Some(item) => grow(item, piece),
                None => details.push(piece.clone()),
            }
        }
    });
}

/// Joins what two blocks kept: lists and texts are put one behind the other.
pub(super) fn join(all: &mut Map<String, Value>, more: Map<String, Value>) {
    for (field, value) in more {
        let joined = match (all.get(&field), value) {
            (Some(Value::Array(before)), Value::Array(more)) => {
                Value::Array(before.iter().cloned().chain(more).collect())
            }
            (Some(Value::String(before)), Value::String(more)) => format!("{before}{more}").into(),
            (_, value) => value,
        };
        all.insert(field, joined);
    }
}

/// Joins the words of an item; all else is what came last.
fn grow(item: &mut Value, piece: &Value) {
    for (name, value) in piece.as_object().into_iter().flatten() {
        match (item[name].as_str(), value) {
            (Some(before), Value::String(more)) if ["text", "summary", "data"].contains(&name.as_str()) => {
                item[name] = format!("{before}{more}").into();
            }
            (_, Value::Null) => {}
            (_, value) => item[name] = value.clone(),
        }
    }
}

fn change(kept: &mut Option<Value>, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut object = match kept.take() {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    change(&mut object);
    *kept = Some(Value::Object(object));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_grow_by_index_and_replace_the_plain_text() {
        let mut kept = None;
        add_text(&mut kept, "reasoning", "a");
        add_details(
            &mut kept,
            &[json!({"type": "reasoning.text", "index": 0, "text": "a", "signature": null})],
        );
        add_details(&mut kept, &[json!({"type": "reasoning.text", "index": 0, "text": "b"})]);
        add_details(&mut kept, &[json!({"type": "reasoning.text", "index": 0, "signature": "s"})]);
        add_details(&mut kept, &[json!({"type": "reasoning.encrypted", "data": "x"})]);
        assert_eq!(
            kept.unwrap(),
            json!({"reasoning_details": [
                {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
                {"type": "reasoning.encrypted", "data": "x"},
            ]})
        );
    }
}
