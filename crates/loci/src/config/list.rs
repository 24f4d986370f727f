//! `loci config list`: everything that is set, its value in force, and the files it comes from.

use loci_app::settings::editor::{SettingsContext, without_secrets};
use loci_settings::{Role, Setting};
use serde_json::{Value, json};

use super::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &ListArgs) -> String {
    let settings: Vec<&Setting> = ctx.loaded.merged.iter().collect();
    if args.json {
        let rows: Vec<Value> = settings
            .iter()
            .map(|setting| json!({"key": setting.key.path, "value": value_without_secrets(setting), "sources": sources(setting)}))
            .collect();
        return pretty(&Value::Array(rows));
    }
    if settings.is_empty() {
        return "Nothing is set\n".to_owned();
    }
    settings.iter().map(|setting| row(setting)).collect()
}

fn row(setting: &Setting) -> String {
    match value_without_secrets(setting) {
        Some(value) => format!("{} = {value}  ({})\n", setting.key.path, sources(setting).join(", ")),
        None => format!("{}: set, but does not count; see `loci config explain {0}`\n", setting.key.path),
    }
}

fn value_without_secrets(setting: &Setting) -> Option<Value> {
    setting.value.as_ref().map(|value| without_secrets(setting.key, value))
}

/// Returns the files whose values count.
fn sources(setting: &Setting) -> Vec<String> {
    let counting = setting.parts.iter().filter(|part| matches!(part.role, Role::Wins | Role::Joins));
    counting.map(|part| part.origin.name.to_string()).collect()
}
