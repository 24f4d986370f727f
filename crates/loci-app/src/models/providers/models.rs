//! What is known of the models of named providers.
//!
//! How much a model can read is said by `CLAUDE_CODE_MAX_CONTEXT_TOKENS`, else by its entry, else by the server, which is
//! asked once when somebody first wants to know, else by the error of a request that was too long; at last it is assumed.
//! How much it can write and what it costs is said by its entry, else by the server.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use loci_core::model::{self, ModelDescription, ModelFacts, NamedModels, ThinkingStyle};
use loci_llm::{Client, ServerFacts, WireProtocol, is_inference_profile};
use serde_json::{Map, Value};

use super::{ModelEntry, ProviderTable};

/// How much a model is taken to read of which nobody says anything.
const USUAL_WINDOW: u64 = 128_000;
/// How much a model is asked to write at most, unless somebody says more.
const USUAL_OUTPUT: u64 = 8_192;

/// The models of named providers.
#[derive(Debug)]
pub(crate) struct ProviderModels {
    table: Arc<ProviderTable>,
    /// What the environment says of all of them.
    declared: Option<u64>,
    /// Asks the servers, once there is one.
    client: OnceLock<Client>,
    /// What servers said, by name; held while one is asked, so that it is asked once.
    told: Mutex<HashMap<String, ServerFacts>>,
    /// Which models stand behind inference profiles, by ARN; held while one is asked about.
    profiles: Mutex<HashMap<String, Option<String>>>,
    /// What errors said, by name.
    learned: Mutex<HashMap<String, u64>>,
}

impl ProviderModels {
    /// Knows what the table says; `declared` is the window that the environment declares.
    pub(crate) fn new(table: Arc<ProviderTable>, declared: Option<u64>) -> Self {
        Self {
            table,
            declared,
            client: OnceLock::new(),
            told: Mutex::default(),
            profiles: Mutex::default(),
            learned: Mutex::default(),
        }
    }

    /// Asks servers through this client from here on.
    pub(crate) fn ask_through(&self, client: Client) {
        // The first one stays: there is one a session.
        drop(self.client.set(client));
    }

    /// Hears what a server says of a model, or that it says nothing, so that it is not asked for it.
    pub(super) fn tell(&self, name: &str, facts: ServerFacts) {
        lock(&self.told).insert(name.to_owned(), facts);
    }

    /// Returns what the server says, asking it the first time.
    fn server_facts(&self, name: &str) -> ServerFacts {
        let Some(client) = self.client.get() else { return ServerFacts::default() };
        let mut told = lock(&self.told);
        if let Some(known) = told.get(name) {
            return known.clone();
        }
        let (asked, model) = (client.clone(), name.to_owned());
        let facts = block_on_thread(async move { asked.server_facts(&model).await }).unwrap_or_default();
        told.insert(name.to_owned(), facts.clone());
        facts
    }

    /// Returns what is known of the model behind an inference profile, asking for it the first time; nothing where its own
    /// name says enough, or nobody may be told.
    fn profile_facts(&self, arn: &str) -> Option<ModelFacts> {
        if model::facts(arn).is_known {
            return None;
        }
        let client = self.client.get()?;
        let mut profiles = lock(&self.profiles);
        if !profiles.contains_key(arn) {
            let (asked, name) = (client.clone(), arn.to_owned());
            let model = block_on_thread(async move { asked.model_of_profile(&name).await });
            profiles.insert(arn.to_owned(), model);
        }
        let model = profiles.get(arn)?.as_deref()?;
        let facts = model::facts(model);
        let window = self.declared.or_else(|| lock(&self.learned).get(arn).copied()).unwrap_or(facts.window);
        Some(ModelFacts { id: arn.to_owned(), window, ..facts })
    }
}

/// Waits for something on a thread of its own: a session may be composed within a runtime, which must not wait.
pub(crate) fn block_on_thread<T: Send + 'static>(
    asked: impl Future<Output = Option<T>> + Send + 'static,
) -> Option<T> {
    let ask = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(asked)
    };
    std::thread::Builder::new().spawn(ask).ok()?.join().ok().flatten()
}

impl NamedModels for ProviderModels {
    fn facts(&self, name: &str) -> Option<ModelFacts> {
        if is_inference_profile(name) {
            return self.profile_facts(name);
        }
        let (entry, id) = self.table.find(name)?;
        let usual = ModelEntry::default();
        let row = entry.models.get(id).unwrap_or(&usual);
        let said = self.declared.or(row.window);
        let needs_server = said.is_none() || row.price.is_none() && entry.tells_prices();
        let server = match needs_server && entry.tells_windows() {
            true => self.server_facts(name),
            false => ServerFacts::default(),
        };
        let said = said.or(server.window);
        let window = said.or_else(|| lock(&self.learned).get(name).copied());
        let row = ModelEntry {
            max_output: row.max_output.or(server.max_output),
            price: row.price.or(server.price),
            ..row.clone()
        };
        Some(facts(name, &row, window, said.is_some(), entry.protocol))
    }

    fn learn_window(&self, name: &str, tokens: u64) {
        lock(&self.learned).insert(name.to_owned(), tokens);
    }
}

/// Reads what the setting `models` says of models of the first provider; what cannot be read says nothing.
pub(crate) fn described_models(setting: &Map<String, Value>) -> BTreeMap<String, ModelDescription> {
    let read = |(id, value): (&String, &Value)| {
        let ModelEntry { window, max_output, price, .. } =
            ModelEntry::read(&format!("models.{id}"), value).ok()?;
        Some((id.clone(), ModelDescription { window, max_output, price, capabilities: None }))
    };
    setting.iter().filter_map(read).collect()
}

/// Returns what is wrong with the setting `models`.
pub(crate) fn models_problems(setting: &Map<String, Value>) -> Vec<String> {
    let problem = |(id, value): (&String, &Value)| ModelEntry::read(&format!("models.{id}"), value).err();
    setting.iter().filter_map(problem).map(|what| format!("Settings: {what}; it is left out")).collect()
}

/// Puts together what is known of a model.
fn facts(
    name: &str,
    row: &ModelEntry,
    window: Option<u64>,
    is_said: bool,
    protocol: WireProtocol,
) -> ModelFacts {
    let window = window.unwrap_or(USUAL_WINDOW);
    let most = (window / 2).max(1);
    let usual_output = row.max_output.map_or(USUAL_OUTPUT.min(window / 4), |said| said.min(most)).max(1);
    let thinks = row.thinks && protocol == WireProtocol::Messages;
    ModelFacts {
        id: name.to_owned(),
        is_known: is_said,
        window,
        is_large_window: false,
        max_output: row
            .max_output
            .map_or(most.min(4 * USUAL_OUTPUT), |said| said.min(most))
            .max(usual_output),
        default_output: usual_output,
        thinking: if thinks { ThinkingStyle::Budget } else { ThinkingStyle::None },
        has_effort: !row.effort.is_empty(),
        effort_levels: row.effort.clone(),
        default_effort: "",
        price: row.price,
        is_named: true,
        is_described: false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
