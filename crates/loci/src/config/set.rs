//! `loci config set`: one key of one file.

use std::cell::RefCell;

use loci_app::UserError;
use loci_settings::edit::{EditError, set};
use loci_settings::{Kind, Layer, Origin, Role, Scope, Severity};
use loci_storage::config::{SettingsEditError, edit_settings};
use serde_json::Value;

use super::{Named, SettingsContext, Target};

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
    let named = Named::parse(&args.key)?;
    let scope = args.target.scope().unwrap_or(Scope::User);
    let value = value_of(&named, &args.value);
    check(&named, scope, &value)?;
    let (path, options) = ctx.file(scope);
    let excluded = ctx.keep_private(scope, &path)?;
    let gone = RefCell::new(Vec::new());
    edit_settings(&ctx.home, &path, &options, |text| {
        *gone.borrow_mut() = entries_lost(text, &named, scope, &value);
        set(text, &named.path(), &value)
    })
    .map_err(|error| to_user_error(&error))?;
    let shown = ctx.places.display_path(&path);
    let excluded = excluded
        .map(|file| format!("Git ignores it from now on, by a rule in {}\n", ctx.places.display_path(&file)))
        .unwrap_or_default();
    let replaced = replaced(&args.key, &gone.into_inner());
    Ok(format!("Set `{}` in {shown}\n{replaced}{excluded}{}", args.key, effect(ctx, &named, scope)))
}

/// Returns the entries that a file has under a key and will not have any more.
fn entries_lost(text: &str, named: &Named, scope: Scope, value: &Value) -> Vec<Value> {
    if named.inner.is_some() {
        return Vec::new();
    }
    let (layer, _) = Layer::parse(text, Origin::new(scope, "before"));
    let before = layer.get(named.key.path).map(|found| &found.value);
    match (before, value) {
        (Some(Value::Array(before)), Value::Array(after)) => {
            before.iter().filter(|entry| !after.contains(entry)).cloned().collect()
        }
        (Some(Value::Array(before)), _) => before.clone(),
        (Some(Value::Object(before)), Value::Object(after)) => {
            let names = before.keys().filter(|name| !after.contains_key(*name));
            names.map(|name| Value::from(name.as_str())).collect()
        }
        _ => Vec::new(),
    }
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

/// Reads the argument: JSON where it is some that fits, else text as it stands.
fn value_of(named: &Named, text: &str) -> Value {
    let parsed = serde_json::from_str::<Value>(text).ok();
    let kind = if named.inner.is_some() { Kind::Any } else { named.key.kind };
    match (kind, parsed) {
        (Kind::Text | Kind::OneOf(_), Some(Value::String(inner))) => Value::String(inner),
        (Kind::Text | Kind::OneOf(_), _) => Value::from(text),
        (Kind::Texts | Kind::Restrictions, Some(list @ Value::Array(_))) => list,
        (Kind::Texts | Kind::Restrictions, _) => Value::from(vec![text]),
        (Kind::TextOrTexts, Some(list @ Value::Array(_))) => list,
        (Kind::TextOrTexts, _) => Value::from(text),
        (_, Some(value)) if named.inner.is_none() || named.key.kind != Kind::TextMap => value,
        _ => Value::from(text),
    }
}

/// Refuses what the file could not use.
pub(super) fn check(named: &Named, scope: Scope, value: &Value) -> Result<(), UserError> {
    let key = named.key;
    if !key.scopes.allows(scope) {
        return Err(UserError::new(format!("`{}` cannot be set in {scope} settings", key.path))
            .hint(format!("It belongs to {}.", key.scopes.describe())));
    }
    let text = set("{}", &named.path(), value).map_err(|error| UserError::new(error.to_string()))?;
    let (_, diagnostics) = Layer::parse(&text, Origin::new(scope, "this value"));
    match diagnostics.iter().find(|diagnostic| diagnostic.severity > Severity::Note) {
        Some(problem) => Err(UserError::new(format!("`{}`: {}", key.path, problem.message))
            .hint(format!("Give it {}.", key.kind.expected()))),
        None => Ok(()),
    }
}

/// Says when the new value is not the one in force.
pub(super) fn effect(ctx: &SettingsContext, named: &Named, scope: Scope) -> String {
    let after = SettingsContext::new(&ctx.env).loaded.merged;
    let parts = after.get(named.key.path).map(|setting| setting.parts.as_slice()).unwrap_or_default();
    let own = parts.iter().rev().find(|part| part.origin.scope == scope).map(|part| part.role);
    match own {
        Some(Role::Overridden) => {
            let winner = parts.iter().rev().find(|part| part.role == Role::Wins);
            let name = winner.map(|part| part.origin.name.as_ref()).unwrap_or_default();
            format!("It has no effect here: {name} sets it too and wins\n")
        }
        Some(Role::Refused(why)) => format!("It has no effect here: {why}\n"),
        Some(Role::Wins | Role::Joins) | None if !named.key.is_used => {
            "It is kept, but this version does not act upon it yet\n".to_owned()
        }
        _ => String::new(),
    }
}

pub(crate) fn to_user_error(error: &SettingsEditError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        SettingsEditError::Edit { source: EditError::Broken { .. }, .. } => {
            user_error.hint("Fix the file first; it was left as it is.")
        }
        _ => user_error,
    }
}
