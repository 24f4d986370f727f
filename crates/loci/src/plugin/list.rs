//! `loci plugin list`: the plugins that are on, those that are off, and what is wrong.

use std::path::PathBuf;

use loci_app::UserError;
use loci_app::plugins::{RunPlugin, RunPlugins, managed_refusal, one_line, plugins_dir, unused_note};
use loci_core::plugin::PluginId;
use loci_storage::config::{PluginState, marketplace_manifest, read_plugin_state};
use serde_json::{Value, json};

use crate::config::{SettingsContext, pretty};

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also what marketplaces offer and is not installed.
    #[arg(long, requires = "json")]
    available: bool,
    /// A directory of a plugin that counts, too; may be given several times.
    #[arg(long, value_name = "DIR")]
    plugin_dir: Vec<PathBuf>,
}

pub(super) fn run(ctx: &SettingsContext, args: &ListArgs) -> Result<String, UserError> {
    let plugins = ctx.plugins_with(&args.plugin_dir);
    if !args.json {
        return Ok(text(&plugins));
    }
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let rows = rows(&plugins, &state, ctx);
    Ok(pretty(&match args.available {
        true => json!({"installed": rows, "available": offered(&state, ctx)}),
        false => json!(rows),
    }))
}

/// Returns a row for each plugin, with what is wrong with it; whatever else is wrong has a row of its own.
fn rows(plugins: &RunPlugins, state: &PluginState, ctx: &SettingsContext) -> Vec<Value> {
    let on = plugins.plugins.iter().map(|plugin| {
        json!({
            "id": plugin.folder.id.to_string(),
            "version": plugin.folder.version(),
            "scope": plugin.folder.scope.as_str(),
            "enabled": true,
            "installPath": plugin.folder.root,
        })
    });
    let off = plugins.disabled.iter().map(|plugin| {
        json!({
            "id": plugin.id.to_string(),
            "version": plugin.version,
            "scope": plugin.scope.as_str(),
            "enabled": false,
            "installPath": plugin.path,
        })
    });
    let mut rows: Vec<Value> = on.chain(off).collect();
    for installed in state.installed_in(ctx.places.tree_root()) {
        let id = installed.id.to_string();
        let Some(row) = rows.iter_mut().find(|row| row["id"] == id.as_str()) else { continue };
        for (key, value) in [
            ("version", installed.version),
            ("installedAt", installed.installed_at),
            ("lastUpdated", installed.updated_at),
            ("projectPath", installed.project.map(|path| path.display().to_string())),
        ] {
            if let Some(value) = value {
                row[key] = json!(value);
            }
        }
    }
    for problem in &plugins.problems {
        let Some(row) = rows.iter_mut().find(|row| row["id"] == problem.plugin.as_str()) else {
            rows.push(json!({"id": problem.plugin, "enabled": false, "errors": [problem.message]}));
            continue;
        };
        match row.get_mut("errors").and_then(Value::as_array_mut) {
            Some(errors) => errors.push(json!(problem.message)),
            None => row["errors"] = json!([problem.message]),
        }
    }
    rows
}

/// Returns what marketplaces offer and nobody has installed, but for what the administrator turned off.
fn offered(state: &PluginState, ctx: &SettingsContext) -> Vec<Value> {
    let mut all = Vec::new();
    for market in &state.marketplaces {
        let Ok((catalogue, _)) = marketplace_manifest(&market.location) else { continue };
        for entry in catalogue.get("plugins").and_then(Value::as_array).into_iter().flatten() {
            let name = entry["name"].as_str().unwrap_or_default();
            let Some(id) = PluginId::parse(&format!("{name}@{}", market.name)) else { continue };
            if state.has(&id) || managed_refusal(&ctx.loaded.merged, &id).is_some() {
                continue;
            }
            let mut row = json!({
                "pluginId": id.to_string(),
                "name": name,
                "marketplaceName": market.name,
                "source": entry["source"],
            });
            for key in ["description", "version"] {
                if let Some(value) = entry.get(key) {
                    row[key] = value.clone();
                }
            }
            all.push(row);
        }
    }
    all
}

fn text(plugins: &RunPlugins) -> String {
    let mut out: String = plugins.plugins.iter().map(line).collect();
    for plugin in &plugins.disabled {
        let version = one_line(plugin.version.as_deref().unwrap_or("no version"));
        out += &format!(
            "{}  {version}  off  ({}, {})\n",
            plugin.id,
            plugin.scope.as_str(),
            plugin.path.display()
        );
    }
    if out.is_empty() {
        out += "There are no plugins\n";
    }
    let problems = plugins.problems.iter().map(|problem| format!("! {}\n", one_line(&problem.to_string())));
    out + &problems.collect::<String>()
}

fn line(plugin: &RunPlugin) -> String {
    let folder = &plugin.folder;
    let version = one_line(folder.version().unwrap_or("no version"));
    let forced = if plugin.is_forced { ", by the administrator" } else { "" };
    let place = folder.root.display();
    let unused: String = folder.unused.iter().map(|dir| unused_note(dir)).collect();
    format!("{}  {version}  on{forced}  ({}, {place})\n{unused}", folder.id, folder.scope.as_str())
}
