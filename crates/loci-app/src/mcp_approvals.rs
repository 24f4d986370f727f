//! The MCP servers of a project, as they were when they were approved.
//!
//! Trust in a folder, or a name in the settings, approves of what a server is at that moment: the first use notes a hash of
//! its entry. An entry that has become another one waits, in every kind of run, until `loci mcp approve` notes it anew. Tools
//! are known only once a server runs; one that is not what it was is told, and noted.

use std::collections::BTreeMap;
use std::path::Path;

use loci_mcp::config::{ConfigProblem, Plan, PlannedServer, ServerScope, Standing};
use loci_mcp::{ServerView, definition_fingerprint, tool_fingerprint};
use loci_storage::config::{ApprovedServer, approved_servers, edit_approved_servers};
use loci_storage::layout::ConfigHome;

use crate::settings::RunSettings;
use crate::user_error::UserError;

/// Makes servers of the project wait whose definition is another one than was approved.
pub(crate) fn hold_changed(plan: &mut Plan, run: &RunSettings) {
    if !plan.servers.iter().any(is_used_project_server) {
        return;
    }
    let known = match approved_servers(&run.home, run.mcp.root()) {
        Ok(known) => known,
        Err(error) => {
            let message = format!(
                "{}, so whether the project's servers have changed is not known, and none is started. Look at the \
                 file, or take it away",
                UserError::from_error(&error).message()
            );
            plan.problems.push(ConfigProblem::new("approvals", "invalid_config", message));
            plan.servers
                .iter_mut()
                .filter(|it| is_used_project_server(it))
                .for_each(|it| it.standing = Standing::NeedsApproval);
            return;
        }
    };
    for server in plan.servers.iter_mut().filter(|it| is_used_project_server(it)) {
        let name = &server.config.name;
        if known
            .get(name)
            .is_some_and(|approved| approved.definition != definition_fingerprint(&server.config.written))
        {
            let message = format!(
                "its definition in {} has changed since it was approved, so it is not started. Look at it, then run \
                 `loci mcp approve {name}`",
                server.config.source
            );
            plan.problems.push(ConfigProblem::new(name, "changed_definition", message));
            server.standing = Standing::NeedsApproval;
        }
    }
}

fn is_used_project_server(server: &PlannedServer) -> bool {
    server.config.scope == ServerScope::Project && server.standing == Standing::Used
}

/// Notes what servers of the project are that are used for the first time.
pub fn note_first_use(plan: &Plan, run: &RunSettings) -> Result<(), UserError> {
    let used: Vec<_> = plan.servers.iter().filter(|it| is_used_project_server(it)).collect();
    if used.is_empty() {
        return Ok(());
    }
    let known = approved_servers(&run.home, run.mcp.root()).map_err(|error| UserError::from_error(&error))?;
    if used.iter().all(|server| known.contains_key(&server.config.name)) {
        return Ok(());
    }
    let noted = edit_approved_servers(&run.home, run.mcp.root(), |servers| {
        for server in used {
            servers.entry(server.config.name.clone()).or_insert_with(|| ApprovedServer {
                definition: definition_fingerprint(&server.config.written),
                tools: None,
            });
        }
    });
    noted.map(drop).map_err(|error| UserError::from_error(&error))
}

/// Approves of what servers of the project are now: those that are named, or all. Returns their names.
pub fn approve(plan: &Plan, run: &RunSettings, name: Option<&str>) -> Result<Vec<String>, UserError> {
    let of_project = plan.servers.iter().filter(|it| it.config.scope == ServerScope::Project);
    let chosen: Vec<_> = of_project.filter(|it| name.is_none_or(|name| it.config.name == name)).collect();
    let edited = edit_approved_servers(&run.home, run.mcp.root(), |servers| {
        for server in &chosen {
            let definition = definition_fingerprint(&server.config.written);
            servers.insert(server.config.name.clone(), ApprovedServer { definition, tools: None });
        }
    });
    edited.map_err(|error| UserError::from_error(&error))?;
    Ok(chosen.iter().map(|it| it.config.name.clone()).collect())
}

/// Forgets what the servers of a project were.
pub fn forget(run: &RunSettings) -> Result<bool, UserError> {
    edit_approved_servers(&run.home, run.mcp.root(), |servers| servers.clear())
        .map_err(|error| UserError::from_error(&error))
}

/// Compares the tools of a server with what they were, notes what they are, and returns what is to be told.
pub(crate) fn compare_tools(
    (home, root): (&ConfigHome, &Path),
    view: &ServerView,
) -> Result<Option<String>, UserError> {
    let now: BTreeMap<String, String> =
        view.offer.tools.iter().map(|(name, tool)| (name.clone(), tool_fingerprint(tool))).collect();
    let mut told = None;
    let edited = edit_approved_servers(home, root, |servers| {
        let Some(approved) = servers.get_mut(&view.name) else { return };
        told = approved.tools.as_ref().and_then(|before| changes(before, &now));
        approved.tools = Some(now);
    });
    edited.map_err(|error| UserError::from_error(&error))?;
    Ok(told.map(|told| {
        format!(
            "The MCP server `{}` of this project is not what it was when it was last used: {told}",
            view.name
        )
    }))
}

/// Says how tools differ; none when they do not.
fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Option<String> {
    let names =
        |found: Vec<&String>| found.into_iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    let changed = now.iter().filter(|(name, hash)| before.get(*name).is_some_and(|it| it != *hash));
    let added = now.keys().filter(|name| !before.contains_key(*name));
    let removed = before.keys().filter(|name| !now.contains_key(*name));
    let parts: Vec<String> = [
        ("changed tools", changed.map(|(name, _)| name).collect::<Vec<_>>()),
        ("new tools", added.collect()),
        ("tools that are gone", removed.collect()),
    ]
    .into_iter()
    .filter(|(_, found)| !found.is_empty())
    .map(|(what, found)| format!("{what} {}", names(found)))
    .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_tools_are_named() {
        let tools = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned())).collect()
        };
        let before = tools(&[("a", "1"), ("b", "1")]);
        assert_eq!(changes(&before, &before), None);
        assert_eq!(
            changes(&before, &tools(&[("a", "2"), ("c", "1")])).unwrap(),
            "changed tools `a`; new tools `c`; tools that are gone `b`"
        );
    }
}
