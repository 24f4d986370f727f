//! `loci config add`: entries into a list of one file.

use loci_app::UserError;
use loci_app::settings::editor::{NamedKey, SettingsContext, check_value, to_user_error};
use loci_settings::edit::append;
use loci_settings::{Kind, Scope};
use loci_storage::config::edit_settings;
use serde_json::Value;

use super::Target;

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The key of a list, such as `permissions.allow` or `claudeMdExcludes`.
    key: String,
    /// The entries.
    #[arg(required = true)]
    values: Vec<String>,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(ctx: &SettingsContext, args: &AddArgs) -> Result<String, UserError> {
    let named = list_key(&args.key)?;
    let scope = args.target.scope().unwrap_or(Scope::User);
    let entries = entries_of(&named, &args.values);
    check_value(&named, scope, &Value::Array(entries.clone()))?;
    let (path, options) = ctx.file(scope);
    let excluded = ctx.keep_private(scope, &path)?;
    let shown = ctx.places.display_path(&path);
    let mut out = String::new();
    for entry in &entries {
        let is_new = edit_settings(&ctx.home, &path, &options, |text| append(text, &named.path(), entry))
            .map_err(|error| to_user_error(&error))?;
        let done = if is_new { "Added" } else { "Already there:" };
        out += &format!("{done} {} (`{}`) in {shown}\n", show(entry), args.key);
    }
    let excluded = excluded
        .map(|file| format!("Git ignores it from now on, by a rule in {}\n", ctx.places.display_path(&file)))
        .unwrap_or_default();
    let no_effect = ctx.why_no_effect(&named, scope).map(|why| format!("{why}\n")).unwrap_or_default();
    Ok(format!("{out}{excluded}{no_effect}"))
}

/// Reads a key that must be one of a list.
pub(super) fn list_key(key: &str) -> Result<NamedKey<'_>, UserError> {
    let named = NamedKey::parse(key)?;
    let is_list = matches!(named.key.kind, Kind::Texts | Kind::Restrictions | Kind::List | Kind::TextOrTexts);
    match is_list && named.inner.is_none() {
        true => Ok(named),
        false => Err(UserError::new(format!("`{key}` is not a list"))
            .hint(format!("Use `loci config set {key}` to set it, `unset` to remove it."))),
    }
}

/// Reads entries: text as it stands, but for lists of anything.
pub(super) fn entries_of(named: &NamedKey<'_>, values: &[String]) -> Vec<Value> {
    let entry = |text: &String| match named.key.kind {
        Kind::List => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())),
        _ => Value::from(text.as_str()),
    };
    values.iter().map(entry).collect()
}

/// Shows an entry as people write it.
pub(super) fn show(entry: &Value) -> String {
    match entry {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}
