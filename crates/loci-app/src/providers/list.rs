//! `loci models list` and `check`: which models there are, and whether one answers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use loci_core::message::Message;
use loci_core::model::{Price, built_in_models};
use loci_core::stream::StreamEvent;
use loci_engine::resolve_model;
use loci_llm::{Client, Request};
use loci_stdx::Env;
use tokio_util::sync::CancellationToken;

use super::ProviderTable;
use crate::compose::provider_of_run;
use crate::options::RunOptions;
use crate::settings::RunSettings;
use crate::user_error::UserError;

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

/// Lists the built-in models, those that settings describe, and those of servers that answer soon.
pub fn list_models(env: &Env, settings: Option<String>) -> Result<Vec<ListedRow>, UserError> {
    let options = RunOptions { settings, ..RunOptions::default() };
    let run = RunSettings::load(env, &options)?;
    let table = ProviderTable::new(&run.settings.providers, &run.env.vars);
    let (client, catalog) = provider_of_run(&options, &run);
    let row = |name: String, provider: &str, protocol: &'static str| {
        let facts = catalog.facts(&name);
        ListedRow {
            name,
            provider: provider.to_owned(),
            protocol,
            window: facts.window,
            max_output: facts.default_output,
            price: facts.price,
        }
    };
    let told = told_models(&table, &client)?;
    let mut rows: Vec<ListedRow> =
        built_in_models().map(|name| row(name.to_owned(), "anthropic", "messages")).collect();
    for entry in table.entries().filter(|entry| entry.problem.is_none()) {
        let described = entry.models.keys().map(|id| format!("{}/{id}", entry.name));
        let prefix = format!("{}/", entry.name);
        let told = told.iter().filter(|name| name.starts_with(&prefix)).cloned();
        let names: BTreeSet<String> = described.chain(told).collect();
        rows.extend(names.into_iter().map(|name| row(name, &entry.name, entry.protocol.as_str())));
    }
    Ok(rows)
}

/// Asks all servers at once; those that do not answer in time have no models here.
fn told_models(table: &ProviderTable, client: &Client) -> Result<Vec<String>, UserError> {
    let asked = table.entries().filter(|entry| entry.problem.is_none()).map(|entry| {
        let (client, provider) = (client.clone(), format!("{}/", entry.name));
        async move { client.model_list(&provider).await.unwrap_or_default() }
    });
    let asked = futures_util::future::join_all(asked);
    let told = block_on(asked)?;
    Ok(told.into_iter().flatten().map(|model| model.name).collect())
}

/// Makes one small request.
pub fn check_model(env: &Env, name: &str, settings: Option<String>) -> Result<CheckedModel, UserError> {
    let options = RunOptions {
        settings,
        model: crate::options::ModelOptions { model: Some(name.to_owned()), ..Default::default() },
        ..RunOptions::default()
    };
    let run = RunSettings::load(env, &options)?;
    let model = resolve_model(&run.env.vars, name);
    let (client, catalog) = provider_of_run(&options, &run);
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
        Ok::<_, loci_core::stream::Failure>(answer)
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
