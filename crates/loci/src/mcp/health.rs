//! Whether servers can be used: they are started, asked what they have, and ended.

use std::time::Duration;

use loci_app::UserError;
use loci_mcp::config::Plan;
use loci_mcp::{ServerStatus, ServerView};

use super::McpContext;
use crate::runtime;

/// Starts the servers of a plan and returns how they are doing.
pub(super) fn check(ctx: &McpContext, plan: &Plan) -> Result<Vec<ServerView>, UserError> {
    if plan.servers.is_empty() {
        return Ok(Vec::new());
    }
    loci_app::mcp::approvals::note_first_use(plan, &ctx.run)?;
    let runtime = runtime::of_session()?;
    let servers = loci_app::mcp::make_servers(plan, &ctx.run, "", None);
    let views = runtime.block_on(async {
        servers.start();
        servers.wait(&[], servers.limits().start + Duration::from_secs(5)).await;
        let views = servers.views();
        servers.shutdown().await;
        views
    });
    Ok(views)
}

/// Returns how a server is doing, in words.
pub(super) fn status_text(view: &ServerView) -> String {
    let why = view.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    match view.status {
        ServerStatus::Connected => format!("✓ connected, {} tools", view.offer.tools.len()),
        ServerStatus::Failed => format!("✗ cannot be used{why}"),
        ServerStatus::NeedsAuth => format!("! needs a login, `loci mcp login {}`{why}", view.name),
        ServerStatus::Pending => "… still starting".to_owned(),
        ServerStatus::Disabled => "switched off".to_owned(),
    }
}
