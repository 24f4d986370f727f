//! The MCP servers of a project, as they were when they were approved.
//!
//! Where somebody can be asked, each server is approved or rejected by name ([`decide`]); without a terminal, trust in the
//! folder approves of those that nobody rejected. Either approves of what a server is at that moment: the first use notes a
//! hash of its entry. An entry that has become another one waits, in every kind of run, until it is approved anew. Tools are
//! known only once a server runs; one that is not what it was is told, and noted.

use std::collections::BTreeMap;
use std::path::Path;

use loci_mcp::config::{ConfigProblem, Plan, PlannedServer, ServerScope, Standing};
use loci_mcp::{ServerView, definition_fingerprint, tool_fingerprint};
use loci_settings::edit::{self, EditError};
use loci_stdx::WriteOptions;
use loci_storage::config::{
    ApprovedServer, MANAGED_DIR, SettingsPlaces, SettingsSources, approved_servers, edit_approved_servers,
    edit_settings, edit_state, exclude_local_settings,
};
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use crate::settings::RunSettings;
use crate::user_error::UserError;

/// The names of servers that are approved and rejected, in settings and in the state file.
const APPROVED_KEY: &str = "enabledMcpjsonServers";
const REJECTED_KEY: &str = "disabledMcpjsonServers";

/// The kind of a problem that says that a server is not what was approved.
pub(crate) const CHANGED: &str = "changed_definition";

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
            plan.problems.push(ConfigProblem::new(name, CHANGED, message));
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

/// What is said of servers of the project, one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerDecision {
    /// These may be used, as they are now.
    pub approved: Vec<String>,
    /// These are not used.
    pub rejected: Vec<String>,
    /// Whether whatever the project names later may be used, too.
    pub approves_all: bool,
}

/// Keeps what was said of servers of the project, where other programs keep it: in the local settings; where those cannot
/// be written, in the state file. What is approved is what they are now; the last word counts.
pub fn decide(plan: &Plan, run: &RunSettings, decision: &ServerDecision) -> Result<(), UserError> {
    note_approved(plan, run, &decision.approved)?;
    let kept = keep_in_settings(run, decision);
    if let Err(error) = &kept {
        tracing::debug!(target: "loci::mcp", error = error.message(), "choices go to the state file");
    }
    let root = run.mcp.trust().root.display().to_string();
    let dirs = [run.mcp.root(), &run.env.cwd].map(|dir| dir.display().to_string());
    let edited = edit_state(&run.home, |text| {
        let dirs = dirs.iter().chain([&root]);
        let text = dirs
            .map(|dir| ["projects", dir])
            .try_fold(text.to_owned(), |text, under| take_back(&text, decision, &under))?;
        // What the project names later is not covered by this: it is asked about.
        if kept.is_err() { keep(&text, decision, &["projects", &root]) } else { Ok(text) }
    });
    edited.map(drop).map_err(|error| UserError::from_error(&error))
}

fn keep_in_settings(run: &RunSettings, decision: &ServerDecision) -> Result<(), UserError> {
    let places = SettingsPlaces::new(&run.env, &run.home, Path::new(MANAGED_DIR), SettingsSources::ALL);
    exclude_local_settings(&run.env, &run.home, &places.local)
        .map_err(|error| UserError::from_error(&error))?;
    for file in places.locals().filter(|file| *file == places.local || file.exists()) {
        edit_settings(&run.home, file, &WriteOptions::project(), |text| {
            let text = take_back(text, decision, &[])?;
            if file != places.local {
                return Ok(text);
            }
            let text = keep(&text, decision, &[])?;
            match decision.approves_all {
                true => edit::set(&text, &["enableAllProjectMcpServers"], &Value::from(true)),
                false => Ok(text),
            }
        })
        .map_err(|error| UserError::from_error(&error))?;
    }
    Ok(())
}

/// Notes what approved servers are now.
fn note_approved(plan: &Plan, run: &RunSettings, names: &[String]) -> Result<(), UserError> {
    let of_project = plan.servers.iter().filter(|it| it.config.scope == ServerScope::Project);
    let chosen: Vec<_> = of_project.filter(|it| names.contains(&it.config.name)).collect();
    let edited = edit_approved_servers(&run.home, run.mcp.root(), |servers| {
        for server in &chosen {
            let definition = definition_fingerprint(&server.config.written);
            servers.insert(server.config.name.clone(), ApprovedServer { definition, tools: None });
        }
    });
    edited.map(drop).map_err(|error| UserError::from_error(&error))
}

/// Returns a text without what was said before and is not true any more.
fn take_back(text: &str, decision: &ServerDecision, under: &[&str]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for (names, key) in [(&decision.approved, REJECTED_KEY), (&decision.rejected, APPROVED_KEY)] {
        for name in names {
            text = edit::take_out(&text, &[under, &[key]].concat(), &Value::from(name.as_str()))?;
        }
    }
    Ok(text)
}

/// Returns a text with what was said.
fn keep(text: &str, decision: &ServerDecision, under: &[&str]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for (names, key) in [(&decision.approved, APPROVED_KEY), (&decision.rejected, REJECTED_KEY)] {
        for name in names {
            text = edit::append(&text, &[under, &[key]].concat(), &Value::from(name.as_str()))?;
        }
    }
    Ok(text)
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
