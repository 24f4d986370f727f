//! What a plugin brings, what of it runs, and what it costs.

use std::path::PathBuf;

use loci_context::prose_tokens;
use loci_stdx::visible;
use loci_storage::config::{PluginFolder, read_plugin_state};

use super::{RunPlugins, plugins_dir};
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// Returns what a plugin is, brings and may run, and what its options are set to; `dirs` are plugins that count, too.
pub(super) fn plugin_details(
    ctx: &SettingsContext,
    name: &str,
    dirs: &[PathBuf],
) -> Result<String, UserError> {
    let plugins = &ctx.plugins_with(dirs);
    let Some(plugin) = plugins.find(name) else { return describe_unused(ctx, plugins, name) };
    let folder = &plugin.folder;
    let mut out = describe(folder);
    for spec in &folder.manifest.options {
        let value = plugin.variables.options.iter().find(|value| value.key == spec.key);
        let value = match value {
            Some(value) if value.is_sensitive => "set, a secret".to_owned(),
            Some(value) => value.text.clone(),
            None => "not set".to_owned(),
        };
        let id = &folder.id;
        out += &format!(
            "option `{}` ({}): {value}  (`pluginConfigs.\"{id}\".options.{}`)\n",
            spec.key,
            spec.kind.as_str(),
            spec.key
        );
    }
    Ok(out + &problems_of(plugins, &folder.id.to_string()))
}

/// Returns what a plugin that does not count would bring, and why it does not.
fn describe_unused(ctx: &SettingsContext, plugins: &RunPlugins, name: &str) -> Result<String, UserError> {
    let is_meant = |id: &str| id == name || id.split('@').next() == Some(name);
    if let Some(installed) = plugins.disabled.iter().find(|it| is_meant(&it.id.to_string())) {
        let id = installed.id.to_string();
        let problems = problems_of(plugins, &id);
        let why = match problems.is_empty() {
            true => format!("it is installed and off: `loci plugin enable {id}` turns it on\n"),
            false => problems,
        };
        let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
        let folder =
            state.read_installed(installed).map_err(|problem| UserError::new(problem.to_string()))?;
        return Ok(describe(&folder) + &why);
    }
    let why: Vec<&str> = plugins
        .problems
        .iter()
        .filter(|problem| is_meant(&problem.plugin))
        .map(|problem| problem.message.as_str())
        .collect();
    let hint = match why.is_empty() {
        true => "`loci plugin list` shows those there are.".to_owned(),
        false => why.join("; "),
    };
    Err(UserError::new(format!("There is no plugin `{name}` that is on")).hint(hint))
}

fn problems_of(plugins: &RunPlugins, id: &str) -> String {
    let own = plugins.problems.iter().filter(|problem| problem.plugin == id);
    own.map(|problem| format!("! {}\n", one_line(&problem.message))).collect()
}

/// Returns what a plugin's files say as one line that shows all of itself.
pub fn one_line(text: &str) -> String {
    visible(&text.trim_end().replace('\n', "\\n"))
}

/// Returns what a plugin is and brings.
pub(super) fn describe(folder: &PluginFolder) -> String {
    let manifest = &folder.manifest;
    let name = manifest.display_name.as_deref().map(|name| one_line(name) + "  ").unwrap_or_default();
    let version = one_line(folder.version().unwrap_or("no version"));
    let mut out =
        format!("{name}{}  {version}  ({}, {})\n", folder.id, folder.scope.as_str(), folder.root.display());
    let author = manifest.author.as_ref().map(|author| format!("by {author}"));
    for line in [&manifest.description, &author].into_iter().flatten() {
        out += &format!("{}\n", one_line(line));
    }
    let skills: u64 =
        folder.skills.iter().filter(|it| it.is_for_model).map(|it| prose_tokens(&it.summary())).sum();
    let agents: u64 = folder.agents.iter().map(|it| prose_tokens(&it.description)).sum();
    if !folder.skills.is_empty() || !folder.agents.is_empty() {
        out += &format!(
            "in every conversation: about {skills} tokens for the list of its skills, {agents} for that of its agents\n"
        );
    }
    out += &folder.runs().iter().map(|line| format!("{line}\n")).collect::<String>();
    for style in &folder.styles {
        out += &format!("output style {}\n", one_line(&style.name));
    }
    for theme in &folder.themes {
        out += &format!("theme {}\n", theme.slug);
    }
    for dependency in &manifest.dependencies {
        let version = dependency.version.as_deref().map(|it| " ".to_owned() + &one_line(it));
        let version = version.unwrap_or_default();
        out += &format!("needs {}{version}\n", dependency.id(&folder.id.marketplace));
    }
    out += &folder.unused.iter().map(|dir| unused_note(dir)).collect::<String>();
    if !folder.unsupported.is_empty() {
        out += &format!("not supported by this version: {}\n", folder.unsupported.join(", "));
    }
    out
}

/// Says that a directory of a plugin is not used.
pub fn unused_note(dir: &str) -> String {
    format!("  `{dir}/` is not used: the manifest names other places\n")
}
