//! `loci config unset`: one key out of one file.

use loci_app::UserError;
use loci_settings::Scope;
use loci_settings::edit::unset;
use loci_storage::config::edit_settings;

use super::{SettingsContext, Target};

#[derive(Debug, clap::Args)]
pub(super) struct UnsetArgs {
    /// The key; one that is none of ours may be removed too.
    key: String,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(ctx: &SettingsContext, args: &UnsetArgs) -> Result<String, UserError> {
    let named = super::Named::parse(&args.key).ok();
    let path = named.as_ref().map_or_else(|| args.key.split('.').collect(), |named| named.path());
    let scope = args.target.scope().unwrap_or(Scope::User);
    let (file, options) = ctx.file(scope);
    let shown = ctx.places.display_path(&file);
    let absent = || {
        UserError::new(format!("`{}` is not set in {shown}", args.key))
            .hint(format!("`loci config explain {}` shows every file.", args.key))
    };
    if !file.exists() {
        return Err(absent());
    }
    let changed = edit_settings(&ctx.home, &file, &options, |text| unset(text, &path))
        .map_err(|error| super::set::to_user_error(&error))?;
    if changed { Ok(format!("Removed `{}` from {shown}\n", args.key)) } else { Err(absent()) }
}
