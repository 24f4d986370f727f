//! `loci plugin tag`: a tag `<plugin>--v<version>` for a release, once everything about it is in order.

use std::path::{Path, PathBuf};

use loci_app::UserError;
use loci_core::plugin::PluginId;
use loci_stdx::Env;
use loci_storage::config::{
    InstallScope, PluginFolder, ReleaseTag, marketplace_manifest, read_plugin, tag_release,
};
use serde_json::Value;

#[derive(Debug, clap::Args)]
pub(super) struct TagArgs {
    /// The plugin's directory; this one without.
    path: Option<PathBuf>,
    /// Push the tag.
    #[arg(long)]
    push: bool,
    /// Only say what would be tagged.
    #[arg(long)]
    dry_run: bool,
    /// Tag although files have changed, and in the place of a tag that is there.
    #[arg(long, short)]
    force: bool,
    /// What the tag says; `%s` stands for the version.
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Where to push it.
    #[arg(long, default_value = "origin")]
    remote: String,
}

pub(super) fn run(env: &Env, args: &TagArgs) -> Result<String, UserError> {
    let dir = env.cwd.join(args.path.as_deref().unwrap_or(Path::new("")));
    let folder = read_plugin(&dir, None, InstallScope::Inline, None)
        .map_err(|problem| UserError::new(problem.to_string()))?;
    let refuse = |why: String| {
        UserError::new(format!("`{}` cannot be tagged: {why}", folder.id.name))
            .hint("`loci plugin validate` says all that is wrong.")
    };
    if let Some(problem) = folder.problems.first() {
        return Err(refuse(problem.message.clone()));
    }
    let Some(version) = folder.manifest.version.clone() else {
        return Err(refuse("its manifest has no `version`".to_owned()));
    };
    if let Some(other) = listed_version(&folder).filter(|other| *other != version) {
        return Err(refuse(format!("its manifest says {version}, and its marketplace {other}")));
    }
    let name = format!("{}--v{version}", folder.id.name);
    let message = args.message.clone().unwrap_or_else(|| format!("{} %s", folder.id.name));
    if args.dry_run {
        return Ok(format!("Would tag {name}\n"));
    }
    let tag = ReleaseTag {
        message: message.replace("%s", &version),
        is_forced: args.force,
        remote: args.push.then(|| args.remote.clone()),
        name,
    };
    tag_release(env, &folder.root, &tag).map_err(refuse)?;
    Ok(match args.push {
        true => format!("Created tag {}\nPushed to {}\n", tag.name, args.remote),
        false => format!("Created tag {0}\nTo push it: git push {1} {0}\n", tag.name, args.remote),
    })
}

/// Returns the version that the marketplace around a plugin says it has.
fn listed_version(folder: &PluginFolder) -> Option<String> {
    let above = folder.root.ancestors().skip(1);
    let (catalogue, _) = above.take(6).find_map(|dir| marketplace_manifest(dir).ok())?;
    let PluginId { name, .. } = &folder.id;
    let plugins = catalogue.get("plugins").and_then(Value::as_array)?;
    let entry = plugins.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))?;
    entry.get("version").and_then(Value::as_str).map(str::to_owned)
}
