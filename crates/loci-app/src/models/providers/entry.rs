//! One provider of the settings, read from what somebody wrote.

use std::collections::BTreeMap;

use loci_core::model::Price;
use loci_llm::{ModelTraits, WireProtocol};
use serde_json::{Map, Value};

/// A provider that has a name.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderEntry {
    /// The name.
    pub name: String,
    /// What it speaks.
    pub protocol: WireProtocol,
    /// Where it is: everything before `/chat/completions` and its like.
    pub base_url: String,
    pub(crate) key: KeySource,
    pub(crate) headers: Vec<(String, String)>,
    /// Its models, as far as somebody describes them.
    pub models: BTreeMap<String, ModelEntry>,
    /// Why it cannot be used.
    pub problem: Option<String>,
    /// Whether that is the administrator's word, not a slip.
    pub is_forbidden: bool,
}

/// Where a provider's key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// It wants none.
    None,
    /// A variable.
    Variable(String),
    /// What a command prints.
    Helper(String),
}

/// What is said of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelEntry {
    /// How much it can read.
    pub window: Option<u64>,
    /// How much it can write.
    pub max_output: Option<u64>,
    /// What it can do.
    pub traits: ModelTraits,
    /// Whether it is asked to think, where the protocol has a way.
    pub thinks: bool,
    /// The effort levels it takes.
    pub effort: Vec<String>,
    /// What it costs.
    pub price: Option<Price>,
}

impl KeySource {
    /// Names it for people.
    pub(crate) fn describe(&self, provider: &str) -> String {
        match self {
            Self::None => format!("`providers.{provider}.apiKeyEnv`"),
            Self::Variable(variable) => variable.clone(),
            Self::Helper(_) => format!("what the command of `providers.{provider}.apiKeyHelper` prints"),
        }
    }
}

impl ProviderEntry {
    /// Reads an entry. One that cannot be used is kept with what is wrong with it, so that its models can say so.
    pub(crate) fn parse(name: &str, value: &Value) -> Self {
        let mut entry = Self {
            name: name.to_owned(),
            protocol: WireProtocol::Chat,
            base_url: String::new(),
            key: KeySource::None,
            headers: Vec::new(),
            models: BTreeMap::new(),
            problem: None,
            is_forbidden: false,
        };
        entry.problem =
            entry.read(value).err().map(|what| format!("The provider `{name}` cannot be used: {what}"));
        entry
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if self.name.is_empty() || !self.name.chars().all(is_plain) {
            return Err(format!("its name has other letters than a-z, 0-9, `_` and `-`: `{}`", self.name));
        }
        let fields = value.as_object().ok_or_else(|| wrong("", "an object", value))?;
        self.protocol = match fields.get("protocol").and_then(Value::as_str) {
            Some("chat") => WireProtocol::Chat,
            Some("responses") => WireProtocol::Responses,
            Some("messages") => WireProtocol::Messages,
            _ => {
                let value = fields.get("protocol").unwrap_or(&Value::Null);
                return Err(wrong("protocol", "`chat`, `responses` or `messages`", value));
            }
        };
        self.base_url = base_url(fields.get("baseUrl").unwrap_or(&Value::Null))?;
        let said = |key: &str| fields.get(key).filter(|value| !value.is_null());
        self.key = match (said("apiKeyEnv"), said("apiKeyHelper")) {
            (_, Some(command)) => KeySource::Helper(text("apiKeyHelper", command)?),
            (Some(variable), None) => KeySource::Variable(text("apiKeyEnv", variable)?),
            (None, None) => KeySource::None,
        };
        for (header, value) in object("headers", fields.get("headers"))? {
            self.headers.push((header.clone(), text(&format!("headers.{header}"), value)?));
        }
        for (id, value) in object("models", fields.get("models"))? {
            self.models.insert(id.clone(), ModelEntry::read(&format!("models.{id}"), value)?);
        }
        Ok(())
    }

    /// Tells whether the server may be asked how much its models can read; those that are known not to say are not.
    pub(crate) fn tells_windows(&self) -> bool {
        let silent = ["https://api.openai.com/", "https://generativelanguage.googleapis.com/"];
        self.problem.is_none() && !silent.iter().any(|host| self.base_url.starts_with(host))
    }

    /// Tells whether the server is known to say what its models cost, so that it is asked even where their windows are known.
    pub(crate) fn tells_prices(&self) -> bool {
        self.name == "openrouter" || self.base_url.starts_with("https://openrouter.ai/")
    }

    /// Returns the variables that hold what is sent to it.
    pub(crate) fn secret_variables(&self) -> Vec<String> {
        let key = match &self.key {
            KeySource::Variable(variable) => Some(variable.clone()),
            KeySource::None | KeySource::Helper(_) => None,
        };
        let in_headers = self.headers.iter().flat_map(|(_, text)| {
            text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned())
        });
        key.into_iter().chain(in_headers).collect()
    }
}

impl ModelEntry {
    pub(super) fn read(path: &str, value: &Value) -> Result<Self, String> {
        let fields = value.as_object().ok_or_else(|| wrong(path, "an object", value))?;
        let at = |key: &str| format!("{path}.{key}");
        let tokens = |key: &str| match fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().filter(|tokens| *tokens > 0) {
                Some(tokens) => Ok(Some(tokens)),
                None => Err(wrong(&at(key), "a number of tokens", value)),
            },
        };
        let switch = |key: &str, usual: bool| match fields.get(key) {
            None | Some(Value::Null) => Ok(usual),
            Some(Value::Bool(is_on)) => Ok(*is_on),
            Some(value) => Err(wrong(&at(key), "true or false", value)),
        };
        let has_think_tags = fields.get("thinking").is_some_and(|value| value == "tags");
        let usual = ModelTraits::default();
        Ok(Self {
            window: tokens("window")?,
            max_output: tokens("maxOutput")?,
            traits: ModelTraits {
                tools: switch("tools", usual.tools)?,
                images: switch("images", usual.images)?,
                has_think_tags,
            },
            thinks: !has_think_tags && switch("thinking", false)?,
            effort: levels(&at("effort"), fields.get("effort"))?,
            price: fields.get("price").map(|value| price(&at("price"), value)).transpose()?,
        })
    }
}

fn base_url(value: &Value) -> Result<String, String> {
    let url = value.as_str().map(|url| url.trim().trim_end_matches('/')).unwrap_or_default();
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
        true => Ok(url.to_owned()),
        false => Err(wrong("baseUrl", "an http or https address", value)),
    }
}

fn levels(path: &str, value: Option<&Value>) -> Result<Vec<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(levels)) => levels.iter().map(|level| text(path, level)).collect(),
        Some(value) => Err(wrong(path, "a list of levels", value)),
    }
}

fn price(path: &str, value: &Value) -> Result<Price, String> {
    let dollars = |key: &str| value[key].as_f64().filter(|dollars| *dollars >= 0.0);
    match (dollars("input"), dollars("output")) {
        (Some(input), Some(output)) => Ok(Price::from_parts(input, output, dollars("cacheRead"))),
        _ => Err(wrong(path, "`{\"input\": DOLLARS, \"output\": DOLLARS}` per million tokens", value)),
    }
}

fn object<'a>(
    path: &str,
    value: Option<&'a Value>,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, String> {
    static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match value {
        None | Some(Value::Null) => Ok(NOTHING.iter()),
        Some(Value::Object(object)) => Ok(object.iter()),
        Some(value) => Err(wrong(path, "an object", value)),
    }
}

fn text(path: &str, value: &Value) -> Result<String, String> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| wrong(path, "a text", value))
}

fn wrong(path: &str, wanted: &str, value: &Value) -> String {
    let place = if path.is_empty() { "the entry".to_owned() } else { format!("`{path}`") };
    format!("{place} is not {wanted}: `{value}`")
}
