//! `loci sessions tag`.

use loci_app::UserError;
use loci_storage::sessions::{tag_session, untag_session};
use serde_json::json;

use super::{SessionsContext, output, target};

/// The arguments of `loci sessions tag`.
#[derive(Debug, clap::Args)]
pub(super) struct TagArgs {
    /// The session: id, title or path.
    session: String,

    /// The tag.
    #[arg(required_unless_present = "clear", conflicts_with = "clear")]
    tag: Option<String>,

    /// Take the tag away.
    #[arg(long)]
    clear: bool,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Gives a session a tag, or takes it away.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &TagArgs) -> Result<(), UserError> {
    let place = target::find(ctx, "tag", &args.session)?;
    let tag = match &args.tag {
        Some(tag) => tag_session(&place, tag).map(Some),
        None => untag_session(&place).map(|()| None),
    };
    let tag = tag.map_err(|error| UserError::from_error(&error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": place.id().as_str(), "tag": tag}));
    }
    output::print_message(&match tag {
        Some(tag) => format!("Session {} is tagged `{tag}`", place.id()),
        None => format!("Session {} has no tag", place.id()),
    });
    Ok(())
}
