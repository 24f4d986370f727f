//! `loci plugin list`: the plugins that are on, those that are off, and what is wrong.

use loci_app::plugins::{RunPlugin, RunPlugins};
use serde_json::{Value, json};

use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(plugins: &RunPlugins, args: &ListArgs) -> String {
    if args.json {
        let on = plugins.plugins.iter().map(|plugin| {
            json!({
                "id": plugin.folder.id.to_string(),
                "version": plugin.folder.manifest.version,
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
        let rows: Vec<Value> = on.chain(off).collect();
        let problem = |it: &loci_core::plugin::PluginProblem| json!({"plugin": it.plugin, "type": it.kind, "message": it.message});
        let problems: Vec<Value> = plugins.problems.iter().map(problem).collect();
        return pretty(&json!({"plugins": rows, "problems": problems}));
    }
    let mut out: String = plugins.plugins.iter().map(line).collect();
    for plugin in &plugins.disabled {
        let version = plugin.version.as_deref().unwrap_or("no version");
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
    out + &plugins.problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>()
}

fn line(plugin: &RunPlugin) -> String {
    let folder = &plugin.folder;
    let version = folder.manifest.version.as_deref().unwrap_or("no version");
    let forced = if plugin.is_forced { ", by the administrator" } else { "" };
    let place = folder.root.display();
    let unused: String = folder.unused.iter().map(|dir| unused_note(dir)).collect();
    format!("{}  {version}  on{forced}  ({}, {place})\n{unused}", folder.id, folder.scope.as_str())
}

/// Says that a directory of a plugin is not used.
pub(super) fn unused_note(dir: &str) -> String {
    format!("  `{dir}/` is not used: the manifest names other places\n")
}
