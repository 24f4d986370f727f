//! Models that a gateway tells of (`CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY`), for whoever chooses one.
//!
//! The gateway is asked at the start of a session, beside it, and what it says is kept in
//! `<config home>/loci/gateway-models.json`; a gateway that does not answer leaves what it said the last time. Nobody is asked
//! unless the variable is set: behind a shared key everybody would see every model that the key can reach.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;

use loci_engine::CloudKind;
use loci_llm::{Client, ListedModel};
use loci_stdx::{Vars, WriteOptions, open_regular, single_line, write_atomic};
use loci_storage::layout::ConfigHome;
use serde_json::{Value, json};

use crate::compose::RunProviders;
use crate::options::RunOptions;
use crate::settings::RunSettings;

const SWITCH: &str = "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY";
/// The most that is read of what was kept.
const MOST_BYTES: u64 = 4 << 20;
/// The longest id and name for people.
const MOST_LETTERS: usize = 200;

/// A model that a gateway has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GatewayModel {
    /// What it is asked for by.
    pub(crate) id: String,
    /// What the gateway calls it, for people.
    pub(crate) display_name: Option<String>,
}

/// Returns the address of the gateway, where it is to be asked: not of a cloud, nor of the usual server, nor where nothing
/// unasked for may be sent.
fn gateway(vars: &Vars) -> Option<&str> {
    let base = vars.non_empty("ANTHROPIC_BASE_URL")?.trim();
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
    let is_wanted = vars.is_truthy(SWITCH)
        && !vars.is_truthy("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")
        && CloudKind::from_vars(vars).is_none()
        && !host.eq_ignore_ascii_case("api.anthropic.com");
    is_wanted.then_some(base)
}

fn file(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("gateway-models.json")
}

/// Asks the gateway on a thread of its own, which nobody waits for.
pub(crate) fn start_discovery(options: &RunOptions, run: &RunSettings) {
    let Some(base_url) = gateway(&run.env.vars).map(str::to_owned) else { return };
    // Connections belong to the runtime that made them, so it is a client of its own.
    let client = RunProviders::new(options, run).client;
    let file = file(&run.home);
    let ask = move || match discover(&client) {
        Ok(models) => {
            tracing::debug!(target: "loci::api", models = models.len(), "[gatewayDiscovery] the gateway told of its models");
            keep(&file, &base_url, &models);
        }
        Err(why) => {
            tracing::debug!(target: "loci::api", "[gatewayDiscovery] the gateway told of no models: {why}");
        }
    };
    if let Err(error) = thread::Builder::new().name("gateway-models".to_owned()).spawn(ask) {
        tracing::debug!(target: "loci::api", "[gatewayDiscovery] no thread to ask on: {error}");
    }
}

fn discover(client: &Client) -> Result<Vec<GatewayModel>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let listed = runtime.block_on(client.model_list("")).map_err(|failure| failure.message)?;
    Ok(listed.into_iter().filter_map(usable).collect())
}

/// Takes a model that is one of Claude's, by its id; others do not speak what is asked of them.
fn usable(model: ListedModel) -> Option<GatewayModel> {
    let id = model.name.trim();
    let lower = id.to_ascii_lowercase();
    let is_plain =
        id.len() <= MOST_LETTERS && !id.contains(|char: char| char.is_whitespace() || char.is_control());
    let is_claude = lower.contains("claude") || lower.contains("anthropic");
    let display_name = model.label.map(|label| single_line(label.trim(), MOST_LETTERS));
    let display_name = display_name.filter(|label| !label.is_empty());
    (is_plain && is_claude).then(|| GatewayModel { id: id.to_owned(), display_name })
}

/// Keeps the models together with whose they are.
fn keep(file: &Path, base_url: &str, models: &[GatewayModel]) {
    let row = |model: &GatewayModel| json!({"id": model.id, "display_name": model.display_name});
    let rows: Vec<Value> = models.iter().map(row).collect();
    let text = json!({"baseUrl": base_url, "models": rows}).to_string();
    if let Err(error) = write_atomic(file, text.as_bytes(), &WriteOptions::private().creating_parents()) {
        tracing::debug!(target: "loci::storage", "the gateway's models were not kept: {error}");
    }
}

/// Returns the models that the gateway at hand told of last; none where it is not to be asked.
pub(crate) fn gateway_models(vars: &Vars, home: &ConfigHome) -> Vec<GatewayModel> {
    let Some(base_url) = gateway(vars) else { return Vec::new() };
    let mut bytes = Vec::new();
    let read = open_regular(file(home)).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    let kept: Option<Value> = read.ok().and_then(|_| serde_json::from_slice(&bytes).ok());
    let kept = kept.filter(|kept| kept["baseUrl"] == base_url).unwrap_or_default();
    let model = |row: &Value| {
        let display_name = row["display_name"].as_str().map(str::to_owned);
        Some(GatewayModel { id: row["id"].as_str()?.to_owned(), display_name })
    };
    kept["models"].as_array().into_iter().flatten().filter_map(model).collect()
}

#[cfg(test)]
mod tests {
    use loci_llm::ServerFacts;

    use super::*;

    #[test]
    fn gateway_is_asked_where_that_is_wanted_and_it_is_one() {
        let on = (SWITCH, "1");
        for (vars, expected) in [
            (vec![on, ("ANTHROPIC_BASE_URL", "https://gateway.test/a")], true),
            (vec![("ANTHROPIC_BASE_URL", "https://gateway.test")], false),
            (vec![on], false),
            (vec![on, ("ANTHROPIC_BASE_URL", "https://API.anthropic.com:443/v1")], false),
            (vec![on, ("ANTHROPIC_BASE_URL", "https://api.anthropic.com.example")], true),
            (vec![on, ("ANTHROPIC_BASE_URL", "https://g.test"), ("CLAUDE_CODE_USE_BEDROCK", "1")], false),
            (
                vec![
                    on,
                    ("ANTHROPIC_BASE_URL", "https://g.test"),
                    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ],
                false,
            ),
        ] {
            assert_eq!(gateway(&vars.iter().copied().collect()).is_some(), expected, "{vars:?}");
        }
    }

    #[test]
    fn models_of_claude_are_taken_by_their_ids() {
        for (id, expected) in [
            ("claude-sonnet-4-6", true),
            ("vertex_ai/Claude-sonnet-4-6", true),
            ("bedrock/anthropic.sonnet", true),
            ("gpt-5", false),
            ("claude two", false),
            ("", false),
        ] {
            let listed = ListedModel { name: id.to_owned(), label: None, facts: ServerFacts::default() };
            assert_eq!(usable(listed).is_some(), expected, "{id}");
        }
    }

    #[test]
    fn models_are_kept_for_the_gateway_that_told_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let mut env = loci_stdx::Env::for_test(dir.path(), dir.path());
        env.vars = [(SWITCH, "1"), ("ANTHROPIC_BASE_URL", "https://one.test")].into_iter().collect();
        let home = ConfigHome::from_env(&env);
        assert_eq!(gateway_models(&env.vars, &home), []);
        let models = vec![GatewayModel { id: "claude-x".to_owned(), display_name: Some("X".to_owned()) }];
        keep(&file(&home), "https://one.test", &models);
        assert_eq!(gateway_models(&env.vars, &home), models);
        let other = env.vars.clone().with("ANTHROPIC_BASE_URL", "https://two.test");
        assert_eq!(gateway_models(&other, &home), []);
        assert_eq!(gateway_models(&env.vars.without(SWITCH), &home), []);
    }
}
