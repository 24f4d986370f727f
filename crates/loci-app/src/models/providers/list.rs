//! `loci models list` and `check`: which models there are, and whether one answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use loci_core::message::Message;
use loci_core::model::{ModelFacts, Price, ThinkingStyle, built_in_models};
use loci_core::stream::{Failure, StreamEvent};
use loci_engine::{BUILT_IN_PROVIDERS, CloudKind, available_model, is_model_available, resolve_model};
use loci_llm::{Client, ListedModel, ModelTraits, Request, ServerFacts};
use loci_stdx::Env;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{ModelEntry, ProviderEntry, ProviderTable};
use crate::compose::RunProviders;
use crate::models::cloud::CLOUD_MODELS;
use crate::models::pinned::pinned_models;
use crate::options::RunOptions;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// Of so many models a server that does not say their windows in its list is asked for each.
const MOST_ASKED: usize = 32;

/// All models of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelListing {
    /// The models.
    pub rows: Vec<ListedRow>,
    /// What is wrong: entries that cannot be used, servers that do not answer.
    pub notes: Vec<String>,
}

/// A model that is known, or that a server told of.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedRow {
    /// What it is called.
    pub name: String,
    /// Whose it is.
    pub provider: String,
    /// What is spoken.
    pub protocol: &'static str,
    /// How much it can read.
    pub window: u64,
    /// How much it can write.
    pub max_output: u64,
    /// What it costs.
    pub price: Option<Price>,
    /// What it can do.
    pub features: ModelFeatures,
    /// Whether settings let it be chosen.
    pub is_allowed: bool,
    /// Whether its server answered; of the first provider nobody asks.
    pub is_reachable: Option<bool>,
}

/// What a model can do, as far as somebody says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFeatures {
    /// Whether it takes tools.
    pub tools: bool,
    /// Whether it takes images.
    pub images: bool,
    /// Whether it thinks.
    pub thinking: bool,
    /// The effort levels that it takes.
    pub effort: Vec<String>,
}

impl ModelFeatures {
    fn new(facts: &ModelFacts, traits: ModelTraits) -> Self {
        let all = ["low", "medium", "high", "xhigh", "max"].map(str::to_owned);
        let effort = match (facts.has_effort, facts.effort_levels.as_slice()) {
            (false, _) => Vec::new(),
            (true, []) => all.to_vec(),
            (true, levels) => levels.to_vec(),
        };
        Self {
            tools: traits.tools,
            images: traits.images,
            thinking: facts.thinking != ThinkingStyle::None || traits.has_think_tags,
            effort,
        }
    }
}

/// A model that answered.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedModel {
    /// What it is called.
    pub name: String,
    /// How much it can read.
    pub window: u64,
    /// What it costs.
    pub price: Option<Price>,
    /// How long it took.
    pub elapsed: Duration,
    /// What it said.
    pub answer: String,
}

/// Lists the models of the first provider, those that settings and variables describe, and those of servers that answer soon.
pub fn list_models(env: &Env, settings: Option<String>) -> Result<ModelListing, UserError> {
    let options = RunOptions { settings, ..RunOptions::default() };
    let run = RunSettings::load(env, &options)?;
    let cloud = CloudKind::from_vars(&run.env.vars);
    let RunProviders { client, catalog, table, models, warnings } = RunProviders::new(&options, &run);
    let told = ask_servers(&table, &client)?;
    for (entry, answer) in &told {
        let (names, is_seeded): (Vec<(String, ServerFacts)>, bool) = match answer {
            Ok(list) => {
                let told = list.iter().map(|model| (model.name.clone(), model.facts.clone()));
                (told.collect(), list.len() > MOST_ASKED)
            }
            // Whoever did not answer is not asked again for each model.
            Err(_) => (full_names(entry).map(|name| (name, ServerFacts::default())).collect(), true),
        };
        for (name, facts) in names.into_iter().filter(|(_, facts)| is_seeded || facts.window.is_some()) {
            models.tell(&name, facts);
        }
    }
    let row = |name: String, provider: &str, protocol: &'static str, is_reachable: Option<bool>| {
        let facts = catalog.facts(&name);
        let described = table.find(&name).and_then(|(entry, id)| entry.models.get(id));
        ListedRow {
            provider: provider.to_owned(),
            protocol,
            window: facts.window,
            max_output: facts.default_output,
            price: facts.price,
            features: ModelFeatures::new(&facts, described.map_or_else(ModelTraits::default, |it| it.traits)),
            is_allowed: is_model_available(&run.env.vars, &run.in_force, &name),
            is_reachable,
            name,
        }
    };
    let first = cloud.map_or("anthropic", CloudKind::name);
    let ids = first_models(&run, cloud.is_some());
    let mut rows: Vec<ListedRow> = ids.into_iter().map(|id| row(id, first, "messages", None)).collect();
    for (entry, answer) in &told {
        let listed = answer.iter().flatten().map(|model| model.name.clone());
        let names: BTreeSet<String> = full_names(entry).chain(listed).collect();
        let (protocol, is_reachable) = (entry.protocol.as_str(), Some(answer.is_ok()));
        rows.extend(names.into_iter().map(|name| row(name, &entry.name, protocol, is_reachable)));
    }
    let mut notes = warnings;
    notes.extend(table.entries().filter_map(|entry| entry.problem.clone()));
    notes.extend(silent_servers(&run.in_force, &told));
    Ok(ModelListing { rows, notes })
}

/// Returns the ids of the first provider: of the table, of the setting `models`, and of variables.
fn first_models(run: &RunSettings, is_cloud: bool) -> Vec<String> {
    let known: Vec<&str> = if is_cloud { CLOUD_MODELS.to_vec() } else { built_in_models().collect() };
    let known = known.into_iter().map(str::to_owned);
    let described = run.settings.models.iter().filter(|(id, value)| ModelEntry::read(id, value).is_ok());
    let described = described.map(|(id, _)| id.clone());
    let pinned = pinned_models(&run.env.vars).into_iter().map(|model| model.id);
    let mut ids: Vec<String> = Vec::new();
    for id in known.chain(described).chain(pinned) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Returns the models that settings describe, by their full names.
fn full_names(entry: &ProviderEntry) -> impl Iterator<Item = String> {
    entry.models.keys().map(|id| format!("{}/{id}", entry.name))
}

type Answer<'a> = (&'a ProviderEntry, Result<Vec<ListedModel>, Failure>);

/// Asks all servers at once.
fn ask_servers<'a>(table: &'a ProviderTable, client: &Client) -> Result<Vec<Answer<'a>>, UserError> {
    let asked = table.entries().filter(|entry| entry.problem.is_none()).map(|entry| {
        let (client, provider) = (client.clone(), format!("{}/", entry.name));
        async move { (entry, client.model_list(&provider).await) }
    });
    block_on(futures_util::future::join_all(asked))
}

/// Says which servers did not answer: why, for those that settings name; the others in a line.
fn silent_servers(in_force: &Value, told: &[Answer<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut usual: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (entry, failure) in told.iter().filter_map(|(entry, answer)| Some((entry, answer.as_ref().err()?))) {
        let name = entry.name.as_str();
        let is_configured = in_force["providers"].get(name).is_some();
        match is_configured || !BUILT_IN_PROVIDERS.contains(&name) {
            true => notes.push(format!("The provider `{name}` did not answer: {}", failure.message)),
            false => {
                let why =
                    if failure.message.contains("is not set") { "have no key" } else { "did not answer" };
                usual.entry(why).or_default().push(name);
            }
        }
    }
    notes.extend(usual.into_iter().map(|(why, names)| format!("These {why}: {}", names.join(", "))));
    notes
}

/// Makes one small request.
pub fn check_model(env: &Env, name: &str, settings: Option<String>) -> Result<CheckedModel, UserError> {
    let options = RunOptions {
        settings,
        model: crate::options::ModelOptions { model: Some(name.to_owned()), ..Default::default() },
        ..RunOptions::default()
    };
    let run = RunSettings::load(env, &options)?;
    let Some(model) = available_model(&run.env.vars, &run.in_force, name) else {
        let id = resolve_model(&run.env.vars, name);
        return Err(UserError::new(format!("Settings (availableModels) do not let `{id}` be chosen"))
            .hint("See `loci config explain availableModels`."));
    };
    let RunProviders { client, catalog, .. } = RunProviders::new(&options, &run);
    let facts = catalog.facts(&model);
    let request =
        Arc::new(Request::new(model.clone(), 64, vec![Message::user_text("Answer with the word: fine")]));
    let started = Instant::now();
    let answer = block_on(async move {
        let mut stream = client.stream(request, CancellationToken::new());
        let mut answer = String::new();
        while let Some(event) = stream.next().await {
            if let StreamEvent::BlockDone { block, .. } = event? {
                answer.push_str(&block.text().unwrap_or_default());
            }
        }
        Ok::<_, Failure>(answer)
    })??;
    Ok(CheckedModel {
        name: model,
        window: facts.window,
        price: facts.price,
        elapsed: started.elapsed(),
        answer: loci_stdx::single_line(answer.trim(), 200),
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T, UserError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| UserError::new(format!("The runtime cannot be started: {error}")))?;
    Ok(runtime.block_on(future))
}
