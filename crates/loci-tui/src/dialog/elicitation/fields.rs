//! The fields of a form that an MCP server asks for: read from its schema, filled in, checked.

use loci_stdx::visible;
use serde_json::{Map, Value, json};

use crate::dialog::TextField;

/// The most fields, and the most choices of one: a longer form is cut, and what is left out cannot be sent.
const MOST_FIELDS: usize = 50;
const MOST_CHOICES: usize = 100;

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: Option<String>,
    pub(super) is_required: bool,
    pub(super) entry: Entry,
}

/// How a field is filled in.
#[derive(Debug)]
pub(super) enum Entry {
    /// By typing.
    Text { field: TextField, kind: TextKind },
    /// By choosing one; none is chosen at first unless the schema has a default.
    One { choices: Vec<Choice>, chosen: Option<usize> },
    /// By choosing any.
    Many { choices: Vec<Choice>, chosen: Vec<bool> },
}

/// What typed text is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    String,
    Integer,
    Number,
}

/// Something that can be chosen: the value that is sent, and what is read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) value: Value,
    pub(super) label: String,
}

/// Reads the fields of a schema, in its order.
pub(super) fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let field = |(name, property): (&String, &Value)| Field {
        title: visible(property.get("title").and_then(Value::as_str).unwrap_or(name)),
        description: property.get("description").and_then(Value::as_str).map(visible),
        is_required: required.contains(&name.as_str()),
        entry: Entry::new(property),
        name: name.clone(),
    };
    properties.take(MOST_FIELDS).map(field).collect()
}

impl Entry {
    fn new(property: &Value) -> Self {
        let default = property.get("default");
        let kind = match property.get("type").and_then(Value::as_str) {
            Some("boolean") => {
                let choices = [(true, "yes"), (false, "no")];
                let choices: Vec<Choice> = choices
                    .map(|(value, label)| Choice { value: json!(value), label: label.to_owned() })
                    .into();
                return Self::one(choices, default);
            }
            Some("array") => {
                let choices = choices(property.get("items").unwrap_or(&Value::Null));
                let wanted = default.and_then(Value::as_array);
                let is_wanted = |choice: &Choice| wanted.is_some_and(|it| it.contains(&choice.value));
                return Self::Many { chosen: choices.iter().map(is_wanted).collect(), choices };
            }
            Some("integer") => TextKind::Integer,
            Some("number") => TextKind::Number,
            _ => TextKind::String,
        };
        let choices = choices(property);
        if !choices.is_empty() {
            return Self::one(choices, default);
        }
        let mut field = TextField::default();
        match default {
            Some(Value::String(text)) => field.insert(text),
            Some(number @ Value::Number(_)) => field.insert(&number.to_string()),
            _ => {}
        }
        Self::Text { field, kind }
    }

    fn one(choices: Vec<Choice>, default: Option<&Value>) -> Self {
        let chosen = choices.iter().position(|choice| Some(&choice.value) == default);
        Self::One { choices, chosen }
    }

    /// Returns the value, nothing where it was left open; the error says what is wrong with what was typed.
    fn value(&self) -> Result<Option<Value>, String> {
        match self {
            Self::One { choices, chosen } => {
                Ok(chosen.and_then(|idx| choices.get(idx)).map(|choice| choice.value.clone()))
            }
            Self::Many { choices, chosen } => {
                let values: Vec<Value> = choices
                    .iter()
                    .zip(chosen)
                    .filter(|(_, is_chosen)| **is_chosen)
                    .map(|(choice, _)| choice.value.clone())
                    .collect();
                Ok((!values.is_empty()).then_some(Value::Array(values)))
            }
            Self::Text { field, kind } => {
                let text = field.text().trim();
                if text.is_empty() {
                    return Ok(None);
                }
                match kind {
                    TextKind::String => Ok(Some(json!(text))),
                    TextKind::Integer => {
                        text.parse::<i64>().map(|n| Some(json!(n))).map_err(|_| "a whole number".to_owned())
                    }
                    TextKind::Number => match text.parse::<f64>() {
                        Ok(n) if n.is_finite() => Ok(Some(json!(n))),
                        Ok(_) | Err(_) => Err("a number".to_owned()),
                    },
                }
            }
        }
    }
}

/// Returns the choices of a property, in any of the forms that revisions of the protocol have.
fn choices(property: &Value) -> Vec<Choice> {
    let list = |key: &str| property.get(key).and_then(Value::as_array);
    let named = list("oneOf").or_else(|| list("anyOf"));
    if let Some(named) = named {
        let choice = |it: &Value| {
            let value = it.get("const")?.clone();
            let label = it.get("title").and_then(Value::as_str).map_or_else(|| plain(&value), visible);
            Some(Choice { value, label })
        };
        return named.iter().filter_map(choice).take(MOST_CHOICES).collect();
    }
    let names = list("enumNames");
    let label = |at: usize, value: &Value| {
        let name = names.and_then(|names| names.get(at)).and_then(Value::as_str);
        name.map_or_else(|| plain(value), visible)
    };
    let values = list("enum").into_iter().flatten().enumerate();
    values
        .map(|(at, value)| Choice { label: label(at, value), value: value.clone() })
        .take(MOST_CHOICES)
        .collect()
}

fn plain(value: &Value) -> String {
    visible(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Returns what was filled in; the error names the field that is wrong, and says how.
pub(super) fn content(fields: &[Field]) -> Result<Map<String, Value>, (usize, String)> {
    let mut content = Map::new();
    for (at, field) in fields.iter().enumerate() {
        match field.entry.value() {
            Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
            Ok(None) if field.is_required => return Err((at, format!("{} is needed", field.title))),
            Ok(None) => {}
            Err(wanted) => return Err((at, format!("{} must be {wanted}", field.title))),
        }
    }
    Ok(content)
}
