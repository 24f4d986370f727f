//! All that was said in the session.

use std::sync::Arc;

use loci_core::conversation::history;
use loci_core::entry::Entry;
use loci_storage::sessions::load_transcript;

use super::CommandContext;
use crate::user_error::UserError;

/// Returns the entries of the conversation from its beginning, also those that a summary stands for by now.
pub fn entries(ctx: &CommandContext) -> Result<Vec<Arc<Entry>>, UserError> {
    let place = ctx.place();
    let loaded = load_transcript(place.file()).map_err(|error| UserError::from_error(&error))?;
    Ok(history(&loaded.entries))
}
