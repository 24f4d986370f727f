//! `loci config explain`: every file's value, which one wins, and why.

use loci_app::UserError;
use loci_app::settings::editor::{NamedKey, SettingsContext};
use loci_app::settings::explained::ExplainedSetting;

use super::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// The key, such as `model`; `instructions` for the instruction files.
    key: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &ExplainArgs) -> Result<String, UserError> {
    if args.key == "instructions" {
        return Ok(super::instructions::run(ctx, args.json));
    }
    let key = NamedKey::parse(&args.key)?.key;
    let explained = ExplainedSetting::new(key, ctx.loaded.merged.get(key.path));
    Ok(if args.json { pretty(&explained.to_json()) } else { explained.to_text() })
}
