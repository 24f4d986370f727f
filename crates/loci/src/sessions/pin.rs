//! `loci sessions pin`: sessions that stay.

use loci_app::UserError;
use loci_storage::sessions::{pin_session, pinned_sessions, unpin_session};
use serde_json::json;

use super::{SessionsContext, archive, output, target};

/// The arguments of `loci sessions pin`.
#[derive(Debug, clap::Args)]
pub(super) struct PinArgs {
    /// The session: id, title or path. Without one, the pinned sessions are listed.
    #[arg(value_name = "SESSION")]
    session: Option<String>,

    /// Let it be archived again.
    #[arg(long, requires = "session")]
    off: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Pins, unpins or lists.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &PinArgs) -> Result<(), UserError> {
    let Some(name) = &args.session else {
        let pinned = pinned_sessions(&ctx.home).map_err(|error| archive::to_user_error(&error))?;
        return match args.json {
            true => output::print_json(&json!(pinned)),
            false => output::print(&pinned.iter().map(|id| format!("{id}\n")).collect::<String>()),
        };
    };
    let place = target::find(ctx, "pin", name)?;
    let now = ctx.env.clock.now();
    let change = if args.off { unpin_session } else { pin_session };
    change(&ctx.home, place.id(), now).map_err(|error| archive::to_user_error(&error))?;
    if args.json {
        return output::print_json(&json!({"sessionId": place.id().as_str(), "isPinned": !args.off}));
    }
    output::print_message(&format!(
        "{} {}",
        if args.off { "No longer pinned:" } else { "Pinned:" },
        place.id()
    ));
    Ok(())
}
