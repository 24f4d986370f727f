//! `loci config unset`: one key out of one file.

use loci_app::UserError;
use loci_app::settings::editor::{NamedKey, SettingsContext};
use loci_settings::Scope;

use super::Target;

#[derive(Debug, clap::Args)]
pub(super) struct UnsetArgs {
    /// The key; one that is none of ours may be removed too.
    key: String,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(ctx: &SettingsContext, args: &UnsetArgs) -> Result<String, UserError> {
    let named = NamedKey::parse(&args.key).ok();
    let path = named.as_ref().map_or_else(|| args.key.split('.').collect(), |named| named.path());
    let scope = args.target.scope().unwrap_or(Scope::User);
    if ctx.unset(&path, scope)? {
        return Ok(format!("Removed `{}` from {}\n", args.key, display_file(ctx, scope)));
    }
    Err(UserError::new(format!("`{}` is not set in {}", args.key, display_file(ctx, scope)))
        .hint(format!("`loci config explain {}` shows every file.", args.key)))
}

fn display_file(ctx: &SettingsContext, scope: Scope) -> String {
    ctx.places.display_path(&ctx.file(scope).0)
}
