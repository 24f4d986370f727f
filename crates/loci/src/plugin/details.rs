//! `loci plugin details`: what a plugin brings, what of it runs, and what it costs.

use loci_app::UserError;
use loci_app::plugins::RunPlugins;
use loci_context::prose_tokens;
use loci_storage::config::PluginFolder;

use super::find;

#[derive(Debug, clap::Args)]
pub(super) struct DetailsArgs {
    /// Its name, or `name@marketplace`.
    name: String,
}

pub(super) fn run(plugins: &RunPlugins, args: &DetailsArgs) -> Result<String, UserError> {
    let plugin = find(plugins, &args.name).ok_or_else(|| {
        let is_off =
            plugins.disabled.iter().any(|it| it.id.to_string() == args.name || it.id.name == args.name);
        let hint = match is_off {
            true => "It is installed and off: `loci plugin enable` turns it on.",
            false => "`loci plugin list` shows those there are.",
        };
        UserError::new(format!("There is no plugin `{}` that is on", args.name)).hint(hint)
    })?;
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
    let own = plugins.problems.iter().filter(|problem| problem.plugin == folder.id.to_string());
    Ok(out + &own.map(|problem| format!("! {}\n", problem.message)).collect::<String>())
}

/// Returns what a plugin is and brings.
pub(super) fn describe(folder: &PluginFolder) -> String {
    let manifest = &folder.manifest;
    let name = manifest.display_name.as_deref().map(|name| format!("{name}  ")).unwrap_or_default();
    let version = manifest.version.as_deref().unwrap_or("no version");
    let mut out =
        format!("{name}{}  {version}  ({}, {})\n", folder.id, folder.scope.as_str(), folder.root.display());
    let author = manifest.author.as_ref().map(|author| format!("by {author}"));
    for line in [&manifest.description, &author].into_iter().flatten() {
        out += &format!("{line}\n");
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
        out += &format!("output style {}\n", style.name);
    }
    for theme in &folder.themes {
        out += &format!("theme {}:{theme}\n", folder.id.name);
    }
    for dependency in &manifest.dependencies {
        let version = dependency.version.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
        out += &format!("needs {}{version}\n", dependency.id(&folder.id.marketplace));
    }
    if !folder.unsupported.is_empty() {
        out += &format!("not supported by this version: {}\n", folder.unsupported.join(", "));
    }
    out
}
