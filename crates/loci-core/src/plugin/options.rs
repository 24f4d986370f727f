//! Options of a plugin: what its manifest declares, and what people set them to.

use serde_json::{Map, Value};

/// An option that a manifest declares.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionSpec {
    /// Its name.
    pub key: String,
    /// What it holds.
    pub kind: OptionKind,
    /// What people are shown for its name.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Whether its value is a secret.
    pub is_sensitive: bool,
    /// Whether the plugin needs it.
    pub is_required: bool,
    /// Whether it may hold several texts.
    pub is_multiple: bool,
    /// What it is where nobody says.
    pub default: Option<Value>,
    /// The least number.
    pub min: Option<f64>,
    /// The greatest number.
    pub max: Option<f64>,
}

/// What an option holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// Yes or no.
    Switch,
    /// The path of a directory.
    Directory,
    /// The path of a file.
    File,
}

impl OptionKind {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::Text,
            "number" => Self::Number,
            "boolean" => Self::Switch,
            "directory" => Self::Directory,
            "file" => Self::File,
            _ => return None,
        })
    }

    /// Returns the word of manifests for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Switch => "boolean",
            Self::Directory => "directory",
            Self::File => "file",
        }
    }
}

/// What an option is set to.
#[derive(Clone, PartialEq, Eq)]
pub struct OptionValue {
    /// The option.
    pub key: String,
    /// Its value as text.
    pub text: String,
    /// Whether that is a secret.
    pub is_sensitive: bool,
}

impl std::fmt::Debug for OptionValue {
    /// Names no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = if self.is_sensitive { "***" } else { &self.text };
        write!(f, "{}={text:?}", self.key)
    }
}

/// Reads `userConfig`: the options, and what is wrong with those that are none.
pub fn parse_options(value: Option<&Value>) -> (Vec<OptionSpec>, Vec<String>) {
    let entries = match value {
        None | Some(Value::Null) => return (Vec::new(), Vec::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return (Vec::new(), vec!["`userConfig` is no object; it is left out".to_owned()]),
    };
    let (mut options, mut problems) = (Vec::new(), Vec::new());
    for (key, entry) in entries {
        match parse_option(key, entry) {
            Ok(option) => options.push(option),
            Err(why) => {
                let key: String = key.escape_debug().take(80).collect();
                problems.push(format!("the option `{key}` {why}; it is left out"));
            }
        }
    }
    (options, problems)
}

fn parse_option(key: &str, entry: &Value) -> Result<OptionSpec, String> {
    let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err("has a name that is none for a variable".to_owned());
    }
    if !entry.is_object() {
        return Err("is no object".to_owned());
    }
    let word = entry.get("type").and_then(Value::as_str).unwrap_or_default();
    let kind = OptionKind::parse(word).ok_or_else(|| {
        let word: String = word.escape_debug().take(40).collect();
        format!("has no known type (`{word}`)")
    })?;
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_true = |key: &str| entry.get(key).and_then(Value::as_bool).unwrap_or(false);
    let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| key.to_owned());
    Ok(OptionSpec {
        key: key.to_owned(),
        kind,
        title,
        description: text("description"),
        is_sensitive: is_true("sensitive"),
        is_required: is_true("required"),
        is_multiple: is_true("multiple") && kind == OptionKind::Text,
        default: entry.get("default").filter(|value| !value.is_null()).cloned(),
        min: entry.get("min").and_then(Value::as_f64),
        max: entry.get("max").and_then(Value::as_f64),
    })
}

/// Returns what options are set to, and what is wrong with that. `given` is what settings say, `secrets` what the
/// credential store holds; a secret counts from either.
pub fn option_values(
    specs: &[OptionSpec],
    given: &Map<String, Value>,
    secrets: &Map<String, Value>,
) -> (Vec<OptionValue>, Vec<String>) {
    let (mut values, mut problems) = (Vec::new(), Vec::new());
    for spec in specs {
        let stored = secrets.get(&spec.key).filter(|_| spec.is_sensitive);
        let set = stored.or_else(|| given.get(&spec.key)).filter(|value| !value.is_null());
        let checked = set.map(|value| spec.check(value));
        if let Some(Err(why)) = &checked {
            problems.push(format!("the option `{}` {why}; its default counts", spec.key));
        }
        let text = checked.and_then(Result::ok).or_else(|| spec.check(spec.default.as_ref()?).ok());
        match text.filter(|text| !text.is_empty()) {
            Some(text) => {
                let is_sensitive = spec.is_sensitive;
                values.push(OptionValue { key: spec.key.clone(), text, is_sensitive });
            }
            None if spec.is_required => {
                problems.push(format!("the option `{}` is needed and not set", spec.key));
            }
            None => {}
        }
    }
    let unknown = given.keys().filter(|key| !specs.iter().any(|spec| spec.key == **key));
    problems.extend(unknown.map(|key| {
        let key: String = key.escape_debug().take(80).collect();
        format!("it has no option `{key}`, which settings set")
    }));
    (values, problems)
}

impl OptionSpec {
    /// Returns a value as text; the error says why it is none for this option.
    pub fn check(&self, value: &Value) -> Result<String, String> {
        match (self.kind, value) {
            (OptionKind::Number, Value::Number(number)) => {
                let n = number.as_f64().unwrap_or(f64::NAN);
                if self.min.is_some_and(|min| n < min) || self.max.is_some_and(|max| n > max) {
                    return Err(format!("is out of its bounds: {number}"));
                }
                Ok(number.to_string())
            }
            (OptionKind::Switch, Value::Bool(value)) => Ok(value.to_string()),
            (OptionKind::Text, Value::Array(items)) if self.is_multiple => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                texts.map(|texts| texts.join(",")).ok_or_else(|| "has an entry that is no text".to_owned())
            }
            (OptionKind::Text | OptionKind::Directory | OptionKind::File, Value::String(text)) => {
                match text.contains('\0') {
                    true => Err("has a NUL in it".to_owned()),
                    false => Ok(text.clone()),
                }
            }
            _ => Err(format!("is no {}", self.kind.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn specs(value: &Value) -> Vec<OptionSpec> {
        let (specs, problems) = parse_options(Some(value));
        assert_eq!(problems, Vec::<String>::new());
        specs
    }

    fn check(spec: Value, given: Value, secrets: Value, expected: &str, n_problems: usize) {
        let specs = specs(&json!({"k": spec}));
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        let (values, problems) = option_values(&specs, &map(given.clone()), &map(secrets));
        let found = values.first().map_or("", |value| value.text.as_str());
        assert_eq!((found, problems.len()), (expected, n_problems), "{given}: {problems:?}");
    }

    #[test]
    fn values_are_checked_and_defaults_count_where_they_are_wrong() {
        let number = json!({"type": "number", "default": 3, "min": 1, "max": 5});
        check(number.clone(), json!({"k": 4}), json!({}), "4", 0);
        check(number.clone(), json!({"k": 9}), json!({}), "3", 1);
        check(number.clone(), json!({"k": "4"}), json!({}), "3", 1);
        check(number, json!({}), json!({}), "3", 0);
        check(json!({"type": "boolean"}), json!({"k": true}), json!({}), "true", 0);
        check(json!({"type": "boolean"}), json!({"k": "true"}), json!({}), "", 1);
        check(json!({"type": "string", "required": true}), json!({}), json!({}), "", 1);
        check(json!({"type": "string", "required": true}), json!({"k": ""}), json!({}), "", 1);
        check(json!({"type": "string", "multiple": true}), json!({"k": ["a", "b"]}), json!({}), "a,b", 0);
        check(json!({"type": "string"}), json!({"k": ["a"]}), json!({}), "", 1);
        check(json!({"type": "string"}), json!({"k": "a\u{0}b"}), json!({}), "", 1);
        check(json!({"type": "string"}), json!({"other": 1}), json!({}), "", 1);
    }

    #[test]
    fn secrets_come_from_the_store_and_are_never_shown() {
        let secret = json!({"type": "string", "sensitive": true});
        check(secret.clone(), json!({"k": "settings"}), json!({"k": "store"}), "store", 0);
        check(json!({"type": "string"}), json!({"k": "settings"}), json!({"k": "store"}), "settings", 0);
        let given = json!({"k": "hush"});
        let (values, _) =
            option_values(&specs(&json!({"k": secret})), given.as_object().unwrap(), &Map::new());
        assert!(!format!("{values:?}").contains("hush"));
    }

    #[test]
    fn declarations_that_are_none_cost_themselves() {
        for (value, n_options, n_problems) in [
            (json!({"a": {"type": "string"}, "b": {"type": "secret"}}), 1, 1),
            (json!({"a-b": {"type": "string"}}), 0, 1),
            (json!({"1a": {"type": "string"}}), 0, 1),
            (json!({"a": 1}), 0, 1),
            (json!([]), 0, 1),
        ] {
            let (options, problems) = parse_options(Some(&value));
            assert_eq!((options.len(), problems.len()), (n_options, n_problems), "{value}");
        }
    }
}
