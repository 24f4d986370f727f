//! Checking a call's input against its schema, forgiving what models get wrong harmlessly.
//!
//! Models send `"3"` for 3 and `"true"` for true; where the schema wants a number or a boolean and the text
//! reads as one, it is taken as such. Defaults of the schema are filled in, so that what is stored is what ran.

use serde_json::{Map, Value};

/// A compiled input schema.
pub struct InputCheck {
    schema: Value,
    validator: Result<jsonschema::Validator, String>,
}

impl InputCheck {
    /// Compiles a schema; a bad one (from an MCP server, say) is reported at the first check.
    pub fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), validator: validator(schema) }
    }

    /// Reads what every schema is read with, which takes longer than reading one: whoever will need it soon has it done
    /// beside.
    pub fn warm_up() {
        drop(validator(&Value::Object(Map::from_iter([("type".to_owned(), Value::from("object"))]))));
    }

    /// Compiles the schema of a tool that may still be left out; the error says what is wrong with it.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if schema["type"] != "object" {
            return Err("it does not describe an object".to_owned());
        }
        Self::compile_any(schema)
    }

    /// Compiles a schema of anything; the error says what is wrong with it.
    pub fn compile_any(schema: &Value) -> Result<Self, String> {
        Ok(Self { schema: schema.clone(), validator: Ok(validator(schema)?) })
    }

    /// Returns the input as it was given, unless only the forgiving reading of it fits. What does not fit either is for
    /// whoever runs the tool to refuse: the schema may be wrong.
    pub fn check_as_given(&self, input: &Value) -> Value {
        let Ok(validator) = &self.validator else { return input.clone() };
        let coerced = coerce_given(&self.schema, input);
        match !validator.is_valid(input) && validator.is_valid(&coerced) {
            true => coerced,
            false => input.clone(),
        }
    }

    /// Returns the input as the tool takes it, or all that is wrong with it, one clause a line.
    pub fn check(&self, input: &Value) -> Result<Value, String> {
        let validator =
            self.validator.as_ref().map_err(|error| format!("the tool's schema is invalid: {error}"))?;
        let coerced = coerce(&self.schema, input);
        problems(validator, &coerced).map(|()| coerced)
    }

    /// Says all that is wrong with the input as it stands, one clause a line.
    pub fn check_exactly(&self, input: &Value) -> Result<(), String> {
        let validator = self.validator.as_ref().map_err(|error| format!("the schema is invalid: {error}"))?;
        problems(validator, input)
    }
}

/// Compiles a schema; `format` is an annotation in every draft.
fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    let options = jsonschema::options().should_validate_formats(false);
    options.build(schema).map_err(|error| error.to_string())
}

fn problems(validator: &jsonschema::Validator, input: &Value) -> Result<(), String> {
    let problems: Vec<String> = validator.iter_errors(input).map(|error| describe(&error)).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = place.trim_start_matches('/');
    if place.is_empty() { error.to_string() } else { format!("`{place}`: {error}") }
}

/// Applies the schema's types and defaults to an object's properties, recursively.
fn coerce(schema: &Value, input: &Value) -> Value {
    match (schema.get("properties"), input) {
        (Some(Value::Object(properties)), Value::Object(fields)) => {
            Value::Object(coerce_fields(properties, fields))
        }
        _ => coerce_scalar(schema, input),
    }
}

/// Applies the schema's types to what was given, and no defaults.
fn coerce_given(schema: &Value, input: &Value) -> Value {
    match (schema.get("properties"), input) {
        (Some(Value::Object(properties)), Value::Object(fields)) => {
            let one = |(name, value): (&String, &Value)| {
                let value = properties.get(name).map_or_else(|| value.clone(), |it| coerce_given(it, value));
                (name.clone(), value)
            };
            Value::Object(fields.iter().map(one).collect())
        }
        _ => coerce_scalar(schema, input),
    }
}

fn coerce_fields(properties: &Map<String, Value>, fields: &Map<String, Value>) -> Map<String, Value> {
    let mut out: Map<String, Value> = fields
        .iter()
        .map(|(name, value)| {
            let value = properties.get(name).map_or_else(|| value.clone(), |schema| coerce(schema, value));
            (name.clone(), value)
        })
        .collect();
    for (name, schema) in properties {
        if let (false, Some(default)) = (out.contains_key(name), schema.get("default")) {
            out.insert(name.clone(), default.clone());
        }
    }
    out
}

fn coerce_scalar(schema: &Value, input: &Value) -> Value {
    let wanted = schema.get("type").and_then(Value::as_str);
    match (wanted, input) {
        (Some("array"), Value::Array(items)) => match schema.get("items") {
            Some(item) => Value::Array(items.iter().map(|value| coerce(item, value)).collect()),
            None => input.clone(),
        },
        (Some("integer"), Value::String(text)) => {
            text.trim().parse::<i64>().map_or_else(|_| input.clone(), Value::from)
        }
        (Some("integer"), Value::Number(number)) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                Value::from(float as i64)
            }
            _ => input.clone(),
        },
        (Some("number"), Value::String(text)) => number_from(text).unwrap_or_else(|| input.clone()),
        (Some("boolean"), Value::String(text)) => match text.trim() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => input.clone(),
        },
        _ => input.clone(),
    }
}

fn number_from(text: &str) -> Option<Value> {
    let text = text.trim();
    text.parse::<i64>()
        .map(Value::from)
        .ok()
        .or_else(|| text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(input: Value) -> Result<Value, String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer", "exclusiveMinimum": 0},
                "ratio": {"type": "number"},
                "all": {"type": "boolean", "default": false},
                "list": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        InputCheck::new(&schema).check(&input)
    }

    #[test]
    fn sloppy_numbers_and_booleans_are_taken() {
        for (input, expected) in [
            (json!({"path": "a"}), json!({"path": "a", "all": false})),
            (json!({"path": "a", "limit": "3"}), json!({"path": "a", "limit": 3, "all": false})),
            (json!({"path": "a", "limit": 3.0}), json!({"path": "a", "limit": 3, "all": false})),
            (json!({"path": "a", "all": "true"}), json!({"path": "a", "all": true})),
            (json!({"path": "a", "ratio": "0.5"}), json!({"path": "a", "ratio": 0.5, "all": false})),
            (json!({"path": "3", "list": ["1", 2]}), json!({"path": "3", "list": [1, 2], "all": false})),
        ] {
            assert_eq!(check(input.clone()), Ok(expected), "{input}");
        }
    }

    #[test]
    fn wrong_input_is_described() {
        for (input, needle) in [
            (json!({}), "path"),
            (json!({"path": 1}), "`path`"),
            (json!({"path": "a", "limit": 0}), "`limit`"),
            (json!({"path": "a", "limit": "three"}), "`limit`"),
            (json!({"path": "a", "all": "yes"}), "`all`"),
            (json!({"path": "a", "surprise": 1}), "surprise"),
            (json!("text"), "object"),
        ] {
            let problem = check(input.clone()).unwrap_err();
            assert!(problem.contains(needle), "{input}: {problem}");
        }
    }

    #[test]
    fn a_bad_schema_is_an_error_not_a_panic() {
        let check = InputCheck::new(&json!({"type": "nonsense"}));
        assert!(check.check(&json!({})).unwrap_err().contains("schema"));
    }
}
