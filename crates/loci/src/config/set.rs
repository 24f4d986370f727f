//! `loci config set`: one key of one file.

use loci_app::UserError;
use loci_app::settings::editor::{NamedKey, SettingsContext};
use loci_settings::Scope;
use serde_json::Value;

use super::Target;

#[derive(Debug, clap::Args)]
pub(super) struct SetArgs {
    /// The key, such as `model` or `env.EDITOR`.
    key: String,
    /// The value: text, or JSON for anything else.
    value: String,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(ctx: &SettingsContext, args: &SetArgs) -> Result<String, UserError> {
    let named = NamedKey::parse(&args.key)?;
    let scope = args.target.scope().unwrap_or(Scope::User);
    let change = ctx.set(&named, &named.value_of(&args.value), scope)?;
    let excluded = change.excluded.map(|file| format!("Git ignores it from now on, by a rule in {file}\n"));
    let replaced = replaced(&args.key, &change.gone);
    let no_effect = change.no_effect.map(|why| format!("{why}\n")).unwrap_or_default();
    Ok(format!(
        "Set `{}` in {}\n{replaced}{}{no_effect}",
        args.key,
        change.file,
        excluded.unwrap_or_default()
    ))
}

/// Says what is gone with a value that was replaced.
fn replaced(key: &str, gone: &[Value]) -> String {
    if gone.is_empty() {
        return String::new();
    }
    let entries: Vec<String> = gone.iter().map(super::add::show).collect();
    format!(
        "Replaced what was there; gone: {}\n`loci config add {key}` adds to a list and keeps the rest\n",
        entries.join(", ")
    )
}
