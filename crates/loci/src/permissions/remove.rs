//! `loci permissions remove`: one rule out of the settings files that have it.

use std::path::PathBuf;

use loci_app::UserError;
use loci_core::permission::{RuleList, Update};
use loci_settings::Scope;
use loci_storage::config::edit_settings;
use serde_json::json;

use super::ListChoice;
use super::add::change;
use crate::config::{SettingsContext, Target, pretty, to_user_error};

#[derive(Debug, clap::Args)]
pub(super) struct RemoveArgs {
    /// The rule as it is written in the file.
    rule: String,
    #[command(flatten)]
    list: ListChoice,
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &RemoveArgs) -> Result<String, UserError> {
    let scopes = match args.target.scope() {
        Some(scope) => vec![scope],
        None => vec![Scope::Local, Scope::Project, Scope::User],
    };
    let lists = args.list.list().map_or(RuleList::ALL.to_vec(), |list| vec![list]);
    let mut removed: Vec<(RuleList, String)> = Vec::new();
    for scope in scopes {
        for path in files(ctx, scope).into_iter().filter(|path| path.exists()) {
            for list in &lists {
                let update = Update::RemoveRules(change(&args.rule, *list, scope));
                let (_, options) = ctx.file(scope);
                let has_changed = edit_settings(&ctx.home, &path, &options, |text| update.edit(text))
                    .map_err(|error| to_user_error(&error))?;
                if has_changed {
                    removed.push((*list, ctx.places.display_path(&path)));
                }
            }
        }
    }
    let rule = args.rule.trim();
    if removed.is_empty() {
        return Err(UserError::new(format!("No settings file that can be changed has the rule `{rule}`"))
            .hint("`loci permissions list` shows every rule with its file and line."));
    }
    if args.json {
        let rows = removed.iter().map(|(list, file)| json!({"list": list.as_str(), "file": file}));
        return Ok(pretty(&json!({"rule": rule, "removed": rows.collect::<Vec<_>>()})));
    }
    let row =
        |(list, file): &(RuleList, String)| format!("Removed `{rule}` ({}) from {file}\n", list.as_str());
    Ok(removed.iter().map(row).collect())
}

/// Returns the files of a scope; of the user's for the project there may be two.
fn files(ctx: &SettingsContext, scope: Scope) -> Vec<PathBuf> {
    match scope {
        Scope::Local => ctx.places.locals().map(PathBuf::from).collect(),
        scope => vec![ctx.file(scope).0],
    }
}
