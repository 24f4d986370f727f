//! `loci plugin init`: the directory of a new plugin, with a manifest and one skill.

use std::path::PathBuf;

use loci_app::UserError;
use loci_core::plugin::is_plugin_name;
use loci_stdx::{Env, WriteOptions, write_atomic};
use serde_json::json;

use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct InitArgs {
    /// What the plugin is called.
    name: String,
    /// Where its directory is made; here, where nothing is said.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(env: &Env, args: &InitArgs) -> Result<String, UserError> {
    if !is_plugin_name(&args.name) {
        return Err(UserError::new(format!("`{}` is no name for a plugin", args.name))
            .hint("Letters, digits, `-`, `_` and `.` make one."));
    }
    let root = env.cwd.join(args.dir.clone().unwrap_or_default()).join(&args.name);
    if root.symlink_metadata().is_ok() {
        return Err(UserError::new(format!("It is there already: `{}`", root.display())));
    }
    let manifest = json!({"name": args.name, "version": "0.1.0", "description": ""});
    let skill = format!(
        "---\ndescription: Says what {0} is for\n---\n\nSay in one sentence what the plugin {0} is for.\n",
        args.name
    );
    for (file, text) in [(".claude-plugin/plugin.json", pretty(&manifest)), ("skills/about/SKILL.md", skill)]
    {
        let path = root.join(file);
        write_atomic(&path, text.as_bytes(), &WriteOptions::project().creating_parents())
            .map_err(|error| UserError::new(format!("Failed to write `{}`: {error}", path.display())))?;
    }
    Ok(format!(
        "Made {}\nTry it with `loci --plugin-dir {} -p /{}:about`\n",
        root.display(),
        root.display(),
        args.name
    ))
}
