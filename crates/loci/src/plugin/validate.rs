//! `loci plugin validate`: what is wrong with the directory of a plugin, of a marketplace, or of skills, agents and commands.

use std::path::{Path, PathBuf};

use loci_app::UserError;
use loci_core::plugin::{PluginId, PluginVariables, plugin_hooks, plugin_servers};
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
    if let Some((base, parts)) = definitions(&dir).filter(|_| !is_marketplace && !has_manifest) {
        return check_definitions(&base, &parts);
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

/// What a directory of definitions is called.
const PARTS: [&str; 3] = ["skills", "agents", "commands"];

/// Returns where definitions lie when a directory without a manifest holds them, and which are meant: it is one of their
/// directories itself, or has them.
fn definitions(dir: &Path) -> Option<(PathBuf, Vec<&'static str>)> {
    let dir = dir.canonicalize().ok()?;
    let name = dir.file_name()?.to_str()?;
    if let Some(part) = PARTS.into_iter().find(|part| *part == name) {
        return Some((dir.parent()?.to_owned(), vec![part]));
    }
    let base = if name == ".claude" { dir } else { dir.join(".claude") };
    let parts: Vec<&str> = PARTS.into_iter().filter(|part| base.join(part).is_dir()).collect();
    (!parts.is_empty()).then_some((base, parts))
}

/// Says what is wrong with definitions. They are read like those of a plugin, and nothing else there is.
fn check_definitions(base: &Path, parts: &[&str]) -> Result<(String, u8), UserError> {
    let id = PluginId::inline("definitions");
    let folder = read_plugin(base, Some(&id), InstallScope::Inline, None)
        .map_err(|problem| UserError::new(problem.to_string()))?;
    let place = |file: Option<&PathBuf>| {
        let file = file?.strip_prefix(&folder.root).ok()?;
        parts.iter().any(|part| file.starts_with(part)).then(|| file.display().to_string())
    };
    let skills = folder.skills.iter().filter_map(|it| Some((place(it.source.file.as_ref())?, &it.notes)));
    let agents = folder.agents.iter().filter_map(|it| Some((place(it.source.file.as_ref())?, &it.notes)));
    let read: Vec<(String, &Vec<String>)> = skills.chain(agents).collect();
    let is_meant = |message: &&String| parts.iter().any(|part| message.starts_with(&format!("`{part}/")));
    let messages = folder.problems.iter().map(|problem| &problem.message).filter(is_meant).cloned();
    let notes =
        read.iter().flat_map(|(file, notes)| notes.iter().map(move |note| format!("`{file}`: {note}")));
    let problems: Vec<String> = messages.chain(notes).collect();
    let mut out = format!("{} in {}: {} files\n", parts.join(", "), folder.root.display(), read.len());
    out += &problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>();
    out += if problems.is_empty() { "Nothing is wrong with them\n" } else { "" };
    Ok((out, u8::from(!problems.is_empty())))
}
