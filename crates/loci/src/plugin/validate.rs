//! `loci plugin validate`: what is wrong with the directory of a plugin, or of a marketplace.

use std::path::PathBuf;

use loci_app::UserError;
use loci_core::plugin::{PluginVariables, plugin_hooks, plugin_servers};
use loci_stdx::Env;
use loci_storage::config::{InstallScope, marketplace_manifest, read_plugin};
use serde_json::Value;

use super::details::describe;

#[derive(Debug, clap::Args)]
pub(super) struct ValidateArgs {
    /// The directory; the current one, where none is named.
    path: Option<PathBuf>,
}

pub(super) fn run(env: &Env, args: &ValidateArgs) -> Result<(String, u8), UserError> {
    let dir = env.cwd.join(args.path.clone().unwrap_or_default());
    let is_marketplace = dir.join(".claude-plugin/marketplace.json").exists();
    let has_manifest = dir.join(".claude-plugin/plugin.json").exists();
    let mut problems = Vec::new();
    let mut out = String::new();
    if is_marketplace {
        let (manifest, _) = marketplace_manifest(&dir).map_err(UserError::new)?;
        let entries = manifest.get("plugins").and_then(Value::as_array);
        match (manifest.get("name").and_then(Value::as_str), entries) {
            (Some(name), Some(entries)) => {
                out += &format!("marketplace {name} with {} plugins\n", entries.len());
            }
            _ => problems.push("the marketplace needs a `name` and a list of `plugins`".to_owned()),
        }
    }
    if !is_marketplace || has_manifest {
        let folder = read_plugin(&dir, None, InstallScope::Inline, None)
            .map_err(|problem| UserError::new(problem.to_string()))?;
        if !has_manifest {
            out += "It has no .claude-plugin/plugin.json; the name of the directory counts\n";
        }
        out += &describe(&folder);
        let none = PluginVariables::default();
        problems.extend(folder.problems.iter().map(|problem| problem.message.clone()));
        problems.extend(folder.hooks.iter().flat_map(|(_, value)| plugin_hooks(value, &none).1));
        let name = &folder.id.name;
        problems.extend(folder.servers.iter().flat_map(|(_, value)| plugin_servers(value, name, &none).1));
    }
    out += &problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>();
    out += if problems.is_empty() { "Nothing is wrong with it\n" } else { "" };
    Ok((out, u8::from(!problems.is_empty())))
}
