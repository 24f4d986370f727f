//! `loci config get`: the value in force, or the one in one file.

use loci_stdx::read_regular_to_string;

use loci_app::UserError;
use loci_app::settings::editor::{NamedKey, SettingsContext, unknown_key};
use loci_settings::{Key, jsonc};
use serde_json::Value;

use super::{Target, pretty};

#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    /// The key, such as `model` or `permissions.deny`.
    key: String,
    #[command(flatten)]
    target: Target,
    /// Print JSON, texts in quotes too.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &GetArgs) -> Result<String, UserError> {
    let tree = match args.target.scope() {
        None => ctx.loaded.merged.to_value(),
        Some(scope) => file_value(ctx, &ctx.file(scope).0)?,
    };
    let mut value = Some(&tree);
    for name in args.key.split('.') {
        value = value.and_then(|value| value.get(name));
    }
    match value {
        Some(Value::String(text)) if !args.json => Ok(format!("{text}\n")),
        Some(value) => Ok(pretty(value)),
        None if args.target.scope().is_some() || is_known(&args.key) => {
            Err(UserError::new(format!("`{}` is not set", args.key))
                .hint(format!("`loci config explain {}` shows every file.", args.key)))
        }
        None => Err(unknown_key(&args.key)),
    }
}

fn is_known(path: &str) -> bool {
    Key::is_group(path) || NamedKey::parse(path).is_ok()
}

fn file_value(ctx: &SettingsContext, path: &std::path::Path) -> Result<Value, UserError> {
    let text = match read_regular_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
        Err(error) => {
            let shown = ctx.places.display_path(path);
            return Err(UserError::new(format!("Failed to read settings: `{shown}`: {error}")));
        }
    };
    Ok(jsonc::parse(&text).root.and_then(|root| root.to_value()).unwrap_or_default())
}
