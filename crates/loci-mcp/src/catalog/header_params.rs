//! Parameters of tools that are said again in a header of the request, so that what stands between us and a server can
//! route a call without reading it: `x-mcp-header` of the revision of 2026-07-28.
//!
//! An annotation names a header `Mcp-Param-<name>`. It counts on a text, an integer or a boolean that is reached from the
//! root through `properties` alone, and no two names may be the same in any case. A tool with any other annotation must
//! not be used: what such a header would say cannot be told.

use serde_json::Value;

use crate::transport::routing_headers::encoded_value;

const ANNOTATION: &str = "x-mcp-header";
/// Keywords that hold one schema, a list of them, or an object of them. What they hold is off the way of `properties`.
const HOLD_ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const HOLD_LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const HOLD_NAMED: [&str; 4] = ["$defs", "definitions", "dependentSchemas", "patternProperties"];

/// A parameter that is said again in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderParam {
    /// The names of properties that lead to it.
    path: Vec<String>,
    /// The part of the header's name behind `Mcp-Param-`.
    name: String,
}

impl HeaderParam {
    /// Finds the annotated parameters of an input schema; the error says what is wrong with one of them.
    pub(crate) fn find(schema: &Value) -> Result<Vec<Self>, String> {
        let mut found: Vec<Self> = Vec::new();
        // Schemas that are left to look at, with the way to them where it counts.
        let mut left: Vec<(Option<Vec<String>>, &Value)> = vec![(Some(Vec::new()), schema)];
        while let Some((path, schema)) = left.pop() {
            let Value::Object(fields) = schema else { continue };
            if let Some(name) = fields.get(ANNOTATION) {
                let param = Self::parse(path.as_deref(), name, fields.get("type"))?;
                if found.iter().any(|held| held.name.eq_ignore_ascii_case(&param.name)) {
                    return Err(format!("two of its parameters have the `{ANNOTATION}` `{}`", param.name));
                }
                found.push(param);
            }
            for (key, value) in fields {
                match value {
                    Value::Object(named) if key == "properties" => {
                        left.extend(named.iter().map(|(name, it)| {
                            let path =
                                path.clone().map(|path| path.into_iter().chain([name.clone()]).collect());
                            (path, it)
                        }));
                    }
                    Value::Object(named) if HOLD_NAMED.contains(&key.as_str()) => {
                        left.extend(named.values().map(|it| (None, it)));
                    }
                    Value::Array(list) if HOLD_LIST.contains(&key.as_str()) => {
                        left.extend(list.iter().map(|it| (None, it)));
                    }
                    value if HOLD_ONE.contains(&key.as_str()) => left.push((None, value)),
                    _ => {}
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn parse(path: Option<&[String]>, name: &Value, kind: Option<&Value>) -> Result<Self, String> {
        let path = path.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| format!("its `{ANNOTATION}` is not on a property of its own"))?;
        let at = path.join(".");
        let name = name.as_str().filter(|name| !name.is_empty() && name.bytes().all(is_token_byte));
        let name = name.ok_or_else(|| format!("the `{ANNOTATION}` of `{at}` is no name of a header"))?;
        match kind.and_then(Value::as_str) {
            Some("string" | "integer" | "boolean") => Ok(Self { path: path.to_vec(), name: name.to_owned() }),
            _ => Err(format!("the `{ANNOTATION}` of `{at}` is on neither a text, an integer nor a boolean")),
        }
    }

    /// Returns the headers that say these parameters of a call again; those that the call does not have are left out.
    pub(crate) fn headers(params: &[Self], arguments: &Value) -> Vec<(String, String)> {
        let headers = params.iter().filter_map(|param| {
            let value = param.path.iter().try_fold(arguments, |value, key| value.get(key))?;
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((format!("Mcp-Param-{}", param.name), encoded_value(&text)))
        });
        headers.collect()
    }
}

/// Tells whether a byte may be in the name of a header.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn annotated_parameters_become_headers_and_absent_ones_do_not() {
        let schema = schema(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "quiet": {"type": "boolean", "x-mcp-header": "Quiet"},
            "deep": {"type": "object", "properties": {"er": {"type": "string", "x-mcp-header": "Deeper"}}},
            "plain": {"type": "string"},
        }));
        let params = HeaderParam::find(&schema).unwrap();
        let arguments =
            json!({"region": "zürich", "n": 42, "quiet": null, "deep": {"er": "x"}, "plain": "p"});
        let headers = HeaderParam::headers(&params, &arguments);
        let shown: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            shown,
            ["Mcp-Param-Deeper: x", "Mcp-Param-N: 42", "Mcp-Param-Region: =?base64?esO8cmljaA==?="]
        );
        assert_eq!(HeaderParam::headers(&params, &json!({"deep": 3})), []);
    }

    #[test]
    fn annotations_that_cannot_be_followed_are_refused() {
        let one = |it: Value| schema(json!({"a": it}));
        for (bad, why) in [
            (one(json!({"type": "string", "x-mcp-header": ""})), "no name"),
            (one(json!({"type": "string", "x-mcp-header": "My Region"})), "no name"),
            (one(json!({"type": "string", "x-mcp-header": "Région"})), "no name"),
            (one(json!({"type": "string", "x-mcp-header": "a\tb"})), "no name"),
            (one(json!({"type": "string", "x-mcp-header": 3})), "no name"),
            (one(json!({"type": "number", "x-mcp-header": "A"})), "neither"),
            (one(json!({"type": "array", "x-mcp-header": "A"})), "neither"),
            (one(json!({"x-mcp-header": "A"})), "neither"),
            (
                one(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
                "property of its own",
            ),
            (json!({"type": "object", "x-mcp-header": "A"}), "property of its own"),
            (
                schema(
                    json!({"a": {"type": "string", "x-mcp-header": "Same"}, "b": {"type": "string", "x-mcp-header": "sAME"}}),
                ),
                "two of its parameters",
            ),
        ] {
            let said = HeaderParam::find(&bad).unwrap_err();
            assert!(said.contains(why), "{bad}: {said}");
        }
        // What only looks like an annotation is data.
        assert_eq!(
            HeaderParam::find(&one(json!({"type": "object", "default": {"x-mcp-header": 1}}))),
            Ok(vec![])
        );
        assert_eq!(HeaderParam::find(&Value::Null), Ok(vec![]));
    }
}
