//! Arguments with places for fields of the input: `${tool_input.file_path}`.

use serde_json::Value;

/// Fills fields of `input` into the texts of a template. A text that is nothing but one place becomes the field itself,
/// whatever it is; within a text, what is no text is written as JSON. A field that is not there is an empty text.
pub fn fill_template(template: &Value, input: &Value) -> Value {
    match template {
        Value::String(text) => fill_text(text, input),
        Value::Array(items) => items.iter().map(|item| fill_template(item, input)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, value)| (key.clone(), fill_template(value, input)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, input: &Value) -> Value {
    let whole = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    if let Some(path) = whole.filter(|path| !path.contains(['{', '}'])) {
        return field(input, path).cloned().unwrap_or_else(|| Value::from(""));
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        out.push_str(before);
        let Some((path, tail)) = behind.split_once('}') else {
            out.push_str("${");
            rest = behind;
            continue;
        };
        match field(input, path) {
            Some(Value::String(text)) => out.push_str(text),
            Some(other) => out.push_str(&other.to_string()),
            None => {}
        }
        rest = tail;
    }
    out.push_str(rest);
    Value::String(out)
}

fn field<'v>(input: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(input, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_the_input_take_the_places_of_a_template() {
        let input = json!({"cwd": "/p", "tool_input": {"file_path": "/p/a", "n": 3, "lines": ["x", "y"]}});
        for (template, expected) in [
            (json!({"path": "${tool_input.file_path}"}), json!({"path": "/p/a"})),
            (json!("${tool_input.n}"), json!(3)),
            (json!("${tool_input.n} of ${tool_input.lines}"), json!("3 of [\"x\",\"y\"]")),
            (json!(["${cwd}/x", "${tool_input.lines.1}", 5, null]), json!(["/p/x", "y", 5, null])),
            (json!("${nothing.here}"), json!("")),
            (json!("a${nothing}b"), json!("ab")),
            (json!("costs $5 ${"), json!("costs $5 ${")),
        ] {
            assert_eq!(fill_template(&template, &input), expected, "{template}");
        }
    }
}
