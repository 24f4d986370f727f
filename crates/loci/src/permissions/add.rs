//! `loci permissions add`: one rule into one settings file.

use loci_app::UserError;
use loci_core::permission::{
    BadRule, Destination, Rule, RuleChange, RuleList, RuleOrigin, RuleSource, Update,
};
use loci_settings::Scope;
use loci_storage::config::edit_settings;

use super::{ListChoice, USUAL};
use crate::config::{SettingsContext, Target, pretty, to_user_error};

#[derive(Debug, clap::Args)]
pub(super) struct AddArgs {
    /// The rule, such as `Bash(cargo test *)` or `Read(./secrets/**)`.
    rule: String,
    #[command(flatten)]
    list: ListChoice,
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &AddArgs) -> Result<String, UserError> {
    let scope = args.target.scope().unwrap_or(USUAL);
    let list = args.list.list().unwrap_or(RuleList::Allow);
    check(&args.rule, list, scope)?;
    let (path, options) = ctx.file(scope);
    let update = Update::AddRules(change(&args.rule, list, scope));
    ctx.keep_private(scope, &path)?;
    let is_new = edit_settings(&ctx.home, &path, &options, |text| update.edit(text))
        .map_err(|error| to_user_error(&error))?;
    let (rule, shown) = (args.rule.trim(), ctx.places.display_path(&path));
    let effect = effect(ctx, rule, list, scope);
    if args.json {
        let value = serde_json::json!({
            "rule": rule, "list": list.as_str(), "file": shown, "added": is_new, "note": effect,
        });
        return Ok(pretty(&value));
    }
    let done = if is_new { "Added" } else { "Already there:" };
    let effect = effect.map(|effect| format!("{effect}\n")).unwrap_or_default();
    Ok(format!("{done} `{rule}` ({}) in {shown}\n{effect}", list.as_str()))
}

pub(super) fn change(rule: &str, list: RuleList, scope: Scope) -> RuleChange {
    let to = match scope {
        Scope::User | Scope::Managed => Destination::User,
        Scope::Project => Destination::Project,
        Scope::Local | Scope::CommandLine => Destination::Local,
    };
    RuleChange { list, rules: vec![rule.trim().to_owned()], to }
}

/// Refuses what would not mean what it says.
fn check(rule: &str, list: RuleList, scope: Scope) -> Result<(), UserError> {
    let origin = RuleOrigin::new(RuleSource::Settings(scope), "/");
    match Rule::parse(rule, list, &origin).1 {
        None => Ok(()),
        Some(BadRule::Syntax(_) | BadRule::Broad(_)) => {
            Err(UserError::new(format!("Not a permission rule: `{rule}`"))
                .hint("Write `Tool` or `Tool(specifier)`, such as `Bash(cargo test *)`."))
        }
        Some(bad) => Err(UserError::new(bad.to_string())),
    }
}

/// Says when the rule is written and yet does not count.
fn effect(ctx: &SettingsContext, rule: &str, list: RuleList, scope: Scope) -> Option<String> {
    let after = SettingsContext::new(&ctx.env);
    let (book, _) = super::rulebook(&after, None);
    let source = RuleSource::Settings(scope);
    let counts = book.list(list).iter().any(|it| it.text() == rule && it.source() == source);
    let is_of_project = matches!(scope, Scope::Project | Scope::Local);
    let why = match is_of_project && !after.loaded.trust.is_trusted {
        true => "It counts once this folder is trusted: look at its files, then run `loci config trust`",
        false => "It does not count here; `loci doctor` says why",
    };
    (!counts).then(|| why.to_owned())
}
