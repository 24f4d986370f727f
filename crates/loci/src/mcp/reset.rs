//! `loci mcp reset-project-choices`: what was approved and rejected is open again.

use loci_app::UserError;
use loci_settings::edit::unset;
use loci_stdx::WriteOptions;
use loci_storage::config::{edit_settings, edit_state};

use super::McpContext;
use crate::config::{SettingsContext, to_user_error};

/// The keys of choices, in the state file and in the local settings.
const IN_STATE: [&str; 2] = ["enabledMcpjsonServers", "disabledMcpjsonServers"];
const IN_SETTINGS: [&str; 3] =
    ["enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"];

pub(super) fn run(ctx: &McpContext) -> Result<String, UserError> {
    let root = ctx.run.mcp.trust().root.display().to_string();
    let mut changed = edit_state(&ctx.run.home, |text| {
        IN_STATE.iter().try_fold(text.to_owned(), |text, key| unset(&text, &["projects", &root, key]))
    })
    .map_err(|error| UserError::from_error(&error))?;
    let settings = SettingsContext::new(&ctx.env);
    for path in settings.places.locals().filter(|path| path.exists()) {
        changed |= edit_settings(&ctx.run.home, path, &WriteOptions::project(), |text| {
            IN_SETTINGS.iter().try_fold(text.to_owned(), |text, key| unset(&text, &[key]))
        })
        .map_err(|error| to_user_error(&error))?;
    }
    changed |= loci_app::mcp::approvals::forget(&ctx.run)?;
    Ok(match changed {
        true => "Forgot which MCP servers of this project were approved or rejected\n".to_owned(),
        false => "Nothing was approved or rejected for this project\n".to_owned(),
    })
}
