//! The model providers that have names: those of the `providers` setting, and a few that are built in.
//!
//! A model of such a provider is called `name/id`. An entry of the settings changes a built-in one key by key. What is wrong
//! with an entry is a failure of its own models alone, and is said when one of them is asked for.

mod entry;
mod key;
mod list;
mod models;
mod unknown_keys;

use std::collections::BTreeMap;
use std::sync::Arc;

use loci_core::stream::{Failure, FailureKind};
use loci_llm::{Announcer, Auth, AuthSource, Client, NamedProvider, ProviderConfig, Router, WireProtocol};
use loci_settings::ProviderLimits;
use loci_stdx::{Env, Vars};

use serde_json::{Map, Value, json};

use crate::settings::provider_policy::named_refusal;

pub(crate) use entry::KeySource;
pub use entry::{ModelEntry, ProviderEntry};
use key::HelperKey;
pub use list::{CheckedModel, ListedRow, ModelFeatures, ModelListing, check_model, list_models};
pub(crate) use models::{ProviderModels, block_on_thread, described_models, models_problems};
pub(crate) use unknown_keys::unknown_provider_keys;

/// The providers of a run that have names.
#[derive(Debug, Default)]
pub struct ProviderTable {
    entries: BTreeMap<String, ProviderEntry>,
}

impl ProviderTable {
    /// Reads the setting over what is built in; nothing is asked or looked up yet.
    pub fn new(setting: &Map<String, Value>, vars: &Vars) -> Self {
        let mut values = built_in(vars);
        for (name, value) in setting {
            match (values.get_mut(name), value) {
                (Some(Value::Object(ours)), Value::Object(theirs)) => {
                    ours.extend(theirs.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
                _ => {
                    values.insert(name.clone(), value.clone());
                }
            }
        }
        let entries = values.into_iter().map(|(name, value)| {
            let entry = ProviderEntry::parse(&name, &value);
            (name, entry)
        });
        Self { entries: entries.collect() }
    }

    /// Marks the providers that the administrator does not let be asked.
    #[must_use]
    pub fn limited_by(mut self, limits: Option<&ProviderLimits>) -> Self {
        let Some(limits) = limits else { return self };
        let usual =
            built_in(&limits.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect());
        for (name, entry) in &mut self.entries {
            let usual_url = usual.get(name).and_then(|value| value["baseUrl"].as_str());
            if let Some(refusal) = named_refusal(limits, name, &entry.base_url, usual_url) {
                entry.problem = Some(refusal);
                entry.is_forbidden = true;
            }
        }
        self
    }

    /// Finds the provider of a model, and what that calls it; `None` for models of the first provider.
    pub fn find<'a>(&self, model: &'a str) -> Option<(&ProviderEntry, &'a str)> {
        let (name, id) = model.trim().split_once('/')?;
        self.entries.get(name).map(|entry| (entry, id))
    }

    /// Returns all entries, by name.
    pub fn entries(&self) -> impl Iterator<Item = &ProviderEntry> {
        self.entries.values()
    }

    /// Adds all of them to the first provider.
    pub(crate) fn router(
        self: &Arc<Self>,
        first: Result<Client, Failure>,
        env: &Env,
        announcer: &Announcer,
    ) -> Router {
        let router = Router::new(first).announced_by(announcer.clone());
        self.entries.keys().fold(router, |router, name| {
            let (table, env, key) = (Arc::clone(self), env.clone(), name.clone());
            let announcer = announcer.clone();
            router.with(name, move || match table.entries.get(&key) {
                Some(entry) => connect(entry, &env, &announcer),
                None => Err(Failure::new(FailureKind::NotFound, format!("No provider is called `{key}`"))),
            })
        })
    }
}

/// Puts a provider together; a key that is missing is a failure that names it.
pub(crate) fn connect(entry: &ProviderEntry, env: &Env, announcer: &Announcer) -> Result<Client, Failure> {
    let name = &entry.name;
    if let Some(problem) = &entry.problem {
        let hint = match entry.is_forbidden {
            true => "Ask the administrator to add it to `allowedProviders`, or to write its entry under `providers` there.".to_owned(),
            false => format!("Mend `providers.{name}` in your settings."),
        };
        return Err(Failure::new(FailureKind::InvalidRequest, problem.clone()).with_hint(hint));
    }
    let headers = entry.headers.iter().map(|(header, text)| {
        expand(text, &env.vars).map(|value| (header.clone(), value)).map_err(|variable| {
            let what =
                format!("`{variable}` is not set, which the header `{header}` of `providers.{name}` needs");
            Failure::new(FailureKind::Unauthenticated, what).with_hint(format!("Set {variable}."))
        })
    });
    let named = NamedProvider {
        name: name.clone(),
        protocol: entry.protocol,
        models: entry.models.iter().map(|(id, row)| (id.clone(), row.traits)).collect(),
        key_setting: entry.key.describe(name),
    };
    let config = ProviderConfig::named(env, named, &entry.base_url, headers.collect::<Result<_, _>>()?)?;
    Client::with_auth_source(config, key_source(entry, env, announcer)?)
}

fn key_source(
    entry: &ProviderEntry,
    env: &Env,
    announcer: &Announcer,
) -> Result<Arc<dyn AuthSource>, Failure> {
    let name = &entry.name;
    match &entry.key {
        KeySource::None => Ok(Arc::new(Auth::None)),
        KeySource::Variable(variable) => match env.vars.non_empty(variable).map(str::trim) {
            Some(key) if !key.is_empty() => Ok(Arc::new(auth(entry.protocol, loci_http::Secret::new(key)))),
            _ => Err(Failure::new(
                FailureKind::Unauthenticated,
                format!("`{variable}` is not set, which holds the key of the provider `{name}`"),
            )
            .with_hint(format!("Set {variable}, or name another variable in `providers.{name}.apiKeyEnv`."))),
        },
        KeySource::Helper(command) => {
            let (command, announcer) = (command.clone(), announcer.clone());
            Ok(Arc::new(HelperKey::new(command, env.clone(), entry.protocol, announcer)))
        }
    }
}

/// Returns a key in the header that the protocol has for it.
fn auth(protocol: WireProtocol, key: loci_http::Secret) -> Auth {
    match protocol {
        WireProtocol::Messages => Auth::ApiKey(key),
        WireProtocol::Chat | WireProtocol::Responses => Auth::Bearer(key),
    }
}

/// Puts variables in the place of `${NAME}`; the error is the name of one that is not set.
fn expand(text: &str, vars: &Vars) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        let Some((name, behind)) = from.split_once('}') else { break };
        out.push_str(before);
        out.push_str(vars.non_empty(name).ok_or_else(|| name.to_owned())?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// The providers that are there without a setting.
fn built_in(vars: &Vars) -> BTreeMap<String, Value> {
    let openai = vars.non_empty("OPENAI_BASE_URL").unwrap_or("https://api.openai.com/v1");
    let ollama = ollama_url(vars.non_empty("OLLAMA_HOST").unwrap_or_default());
    let entries = [
        ("openai", json!({"protocol": "responses", "baseUrl": openai, "apiKeyEnv": "OPENAI_API_KEY"})),
        (
            "openrouter",
            json!({"protocol": "chat", "baseUrl": "https://openrouter.ai/api/v1", "apiKeyEnv": "OPENROUTER_API_KEY"}),
        ),
        (
            "gemini",
            json!({"protocol": "chat", "apiKeyEnv": "GEMINI_API_KEY",
                "baseUrl": "https://generativelanguage.googleapis.com/v1beta/openai"}),
        ),
        ("ollama", json!({"protocol": "chat", "baseUrl": ollama})),
        ("lmstudio", json!({"protocol": "chat", "baseUrl": "http://localhost:1234/v1"})),
        ("vllm", json!({"protocol": "chat", "baseUrl": "http://localhost:8000/v1"})),
        ("llamacpp", json!({"protocol": "chat", "baseUrl": "http://localhost:8080/v1"})),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads `OLLAMA_HOST` as Ollama does: a host, a host and port, or an address; without a scheme the port is 11434.
fn ollama_url(host: &str) -> String {
    const PORT: u16 = 11434;
    let host = host.trim().trim_matches(['"', '\'']).trim_end_matches('/');
    let address = match host.split_once("://") {
        Some(_) => host.to_owned(),
        None => {
            let plain = if host.is_empty() { "localhost" } else { host };
            let (plain, port) = match plain.rsplit_once(':') {
                Some((plain, port)) if port.parse::<u16>().is_ok() && !plain.ends_with(':') => {
                    (plain, port.parse().unwrap_or(PORT))
                }
                _ => (plain, PORT),
            };
            let plain = if plain.is_empty() { "localhost" } else { plain };
            format!("http://{plain}:{port}")
        }
    };
    // A server that listens everywhere is asked here.
    format!("{}/v1", address.replace("//0.0.0.0", "//127.0.0.1"))
}

#[cfg(test)]
mod tests;
