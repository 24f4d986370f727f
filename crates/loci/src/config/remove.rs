//! `loci config remove`: entries out of a list of one file.

use loci_app::UserError;
use loci_app::settings::editor::{SettingsContext, to_user_error};
use loci_settings::Scope;
use loci_settings::edit::take_out;
use loci_storage::config::edit_settings;

use super::Target;
use super::add::{entries_of, list_key, show};

#[derive(Debug, clap::Args)]
pub(super) struct RemoveArgs {
    /// The key of a list, such as `permissions.allow`.
    key: String,
    /// The entries, as they stand in the list.
    #[arg(required = true)]
    values: Vec<String>,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(ctx: &SettingsContext, args: &RemoveArgs) -> Result<String, UserError> {
    let named = list_key(&args.key)?;
    let scope = args.target.scope().unwrap_or(Scope::User);
    let (path, options) = ctx.file(scope);
    let shown = ctx.places.display_path(&path);
    let mut out = String::new();
    for entry in entries_of(&named, &args.values) {
        let is_gone = path.exists()
            && edit_settings(&ctx.home, &path, &options, |text| take_out(text, &named.path(), &entry))
                .map_err(|error| to_user_error(&error))?;
        if !is_gone {
            return Err(UserError::new(format!("{} is not in `{}` of {shown}", show(&entry), args.key))
                .hint(format!("`loci config explain {}` shows every file.", args.key)));
        }
        out += &format!("Removed {} (`{}`) from {shown}\n", show(&entry), args.key);
    }
    Ok(out)
}
