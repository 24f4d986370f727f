//! `/plugin`: what marketplaces offer, what is installed and what of it is on, the marketplaces, and what is wrong.

use loci_core::plugin::PluginId;
use loci_engine::{LocalOutcome, SessionSnapshot};
use loci_storage::config::{KnownMarketplace, PluginState, marketplace_manifest, read_plugin_state};
use serde_json::Value;

use super::{SessionCommands, cell};
use crate::plugins::{
    PluginOption, RunPlugin, ToggledPlugin, managed_refusal, plugin_options, plugins_dir, set_typed_option,
    toggle_plugin, unset_options,
};
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// A plugin that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginRow {
    /// `name@marketplace`.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Whether it is on.
    pub is_on: bool,
    /// Whether the administrator turned it on.
    pub is_forced: bool,
    /// For whom it is there, and where.
    pub source: String,
    /// What it is for.
    pub description: String,
    /// What it brings and may run, a line each; known of those that are on.
    pub brings: Vec<String>,
}

/// A plugin that a marketplace offers and that is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedPlugin {
    /// `name@marketplace`.
    pub id: String,
    /// What it is for.
    pub description: String,
}

/// A list of plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketplaceRow {
    /// What it is called.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// When it was last looked at.
    pub updated: String,
    /// How many plugins it has, or why that cannot be told.
    pub plugins: Result<usize, String>,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginReport {
    /// What could be installed.
    pub offered: Vec<OfferedPlugin>,
    /// What is installed, or lies among skills.
    pub installed: Vec<PluginRow>,
    /// The lists.
    pub marketplaces: Vec<MarketplaceRow>,
    /// What is wrong.
    pub problems: Vec<String>,
}

impl PluginReport {
    /// Reads it from disk.
    pub fn new(ctx: &SettingsContext) -> Self {
        let (state, state_problems) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
        let plugins = ctx.plugins();
        let on = plugins.plugins.iter().map(row);
        let off = plugins.disabled.iter().map(|plugin| PluginRow {
            id: plugin.id.to_string(),
            version: plugin.version.clone().unwrap_or_default(),
            is_on: false,
            is_forced: false,
            source: format!("{}, {}", plugin.scope.as_str(), plugin.path.display()),
            description: described(&state, &plugin.id.to_string()),
            brings: Vec::new(),
        });
        let installed: Vec<PluginRow> = on.chain(off).collect();
        let problems = state_problems.iter().chain(&plugins.problems).map(ToString::to_string);
        let mut problems: Vec<String> = problems.collect();
        problems.dedup();
        let mut offered = Vec::new();
        let mut marketplaces = Vec::new();
        for market in &state.marketplaces {
            let entries = entries(market);
            if let Ok(entries) = &entries {
                let is_refused = |id: &str| {
                    PluginId::parse(id).is_some_and(|id| managed_refusal(&ctx.loaded.merged, &id).is_some())
                };
                let is_new = |plugin: &&OfferedPlugin| {
                    !installed.iter().any(|it| it.id == plugin.id) && !is_refused(&plugin.id)
                };
                offered.extend(entries.iter().filter(is_new).cloned());
            }
            marketplaces.push(MarketplaceRow {
                name: market.name.clone(),
                source: source_text(&market.source),
                updated: crate::reports::display::written(market.updated.as_deref()),
                plugins: entries.map(|entries| entries.len()),
            });
        }
        Self { offered, installed, marketplaces, problems }
    }

    /// Returns it for people.
    pub fn to_markdown(&self) -> String {
        let mut text = "## Plugins\n\n".to_owned();
        if self.installed.is_empty() {
            text.push_str(
                "There are no plugins. `loci plugin marketplace add` and `loci plugin install` bring some.\n",
            );
        } else {
            text.push_str("| Plugin | Version | State | From |\n|---|---|---|---|\n");
        }
        for plugin in &self.installed {
            let state = match (plugin.is_on, plugin.is_forced) {
                (true, true) => "on, by the administrator",
                (true, false) => "on",
                (false, _) => "off",
            };
            let (id, version, source) = (cell(&plugin.id), cell(&plugin.version), cell(&plugin.source));
            text.push_str(&format!("| {id} | {version} | {state} | {source} |\n"));
        }
        for market in &self.marketplaces {
            let plugins = match &market.plugins {
                Ok(n) => loci_stdx::counted(*n as u64, "plugin", "plugins"),
                Err(why) => cell(why),
            };
            text.push_str(&format!("\n- {}: {plugins}, from {}", cell(&market.name), cell(&market.source)));
        }
        self.problems.iter().for_each(|problem| text.push_str(&format!("\n- ! {problem}")));
        text.push('\n');
        text
    }
}

fn row(plugin: &RunPlugin) -> PluginRow {
    let folder = &plugin.folder;
    PluginRow {
        id: folder.id.to_string(),
        version: folder.version().unwrap_or_default().to_owned(),
        is_on: true,
        is_forced: plugin.is_forced,
        source: format!("{}, {}", folder.scope.as_str(), folder.root.display()),
        description: folder.manifest.description.clone().unwrap_or_default(),
        brings: folder.runs(),
    }
}

/// Turns a plugin on or off where it is installed; says which options it needs before it can work.
pub fn set_enabled(ctx: &SettingsContext, id: &str, is_on: bool) -> Result<String, UserError> {
    let ToggledPlugin { id, said } = toggle_plugin(ctx, id, is_on, None)?;
    let unset = if is_on { unset_options(&SettingsContext::new(&ctx.env), &id) } else { Vec::new() };
    let needed = unset.iter().filter(|spec| spec.is_required && spec.default.is_none());
    let needed: String = needed
        .map(|spec| {
            let key = &spec.key;
            format!("It needs the option `{key}`: run `loci plugin configure {id} {key}` in a shell\n")
        })
        .collect();
    Ok(format!("{said}{needed}`/reload-plugins` has the session take it up"))
}

/// The options of a plugin, for those who set them.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginOptions {
    /// `name@marketplace`.
    pub id: String,
    /// Each of them, and what it is set to.
    pub options: Vec<PluginOption>,
}

impl PluginOptions {
    /// Reads them.
    pub fn new(ctx: &SettingsContext, id: &str) -> Result<Self, UserError> {
        Ok(Self { id: id.to_owned(), options: plugin_options(ctx, &parse_id(id)?) })
    }
}

/// Sets an option to what was typed, or forgets its value where nothing was.
pub fn set_option(
    ctx: &SettingsContext,
    id: &str,
    key: &str,
    typed: Option<&str>,
) -> Result<String, UserError> {
    set_typed_option(ctx, &parse_id(id)?, key, typed)
}

fn parse_id(id: &str) -> Result<PluginId, UserError> {
    PluginId::parse(id).ok_or_else(|| UserError::new(format!("`{id}` is no `plugin@marketplace`")))
}

fn entries(market: &KnownMarketplace) -> Result<Vec<OfferedPlugin>, String> {
    let (manifest, _) = marketplace_manifest(&market.location)?;
    let plugins = manifest.get("plugins").and_then(Value::as_array).into_iter().flatten();
    let text =
        |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let offered = plugins.map(|entry| OfferedPlugin {
        id: format!("{}@{}", text(entry, "name"), market.name),
        description: text(entry, "description"),
    });
    Ok(offered.filter(|it| !it.id.starts_with('@')).collect())
}

fn described(state: &PluginState, id: &str) -> String {
    let all = state.marketplaces.iter().filter_map(|market| entries(market).ok()).flatten();
    all.into_iter().find(|it| it.id == id).map(|it| it.description).unwrap_or_default()
}

/// Says where a marketplace comes from, in a word.
fn source_text(source: &Value) -> String {
    let known = ["repo", "url", "path", "package"].iter().find_map(|key| source.get(*key)?.as_str());
    known.map_or_else(|| source.to_string(), str::to_owned)
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    let ctx = commands.settings_context();
    let (verb, name) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let is_on = match verb {
        "" | "list" | "ls" => {
            let mut report = PluginReport::new(&ctx);
            match name.trim() {
                "--enabled" => report.installed.retain(|plugin| plugin.is_on),
                "--disabled" => report.installed.retain(|plugin| !plugin.is_on),
                _ => {}
            }
            return LocalOutcome::text(report.to_markdown());
        }
        // Whoever writes prompts does not choose what may run.
        "enable" | "disable" if session.is_interactive && !name.trim().is_empty() => verb == "enable",
        other => {
            return LocalOutcome::error(format!(
                "`/plugin {other}` is not done by a prompt: use `loci plugin {other} …` in a shell, then \
                 `/reload-plugins`"
            ));
        }
    };
    match set_enabled(&ctx, name.trim(), is_on) {
        Ok(said) => LocalOutcome::text(said),
        Err(error) => super::refused(&error),
    }
}
