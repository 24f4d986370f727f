//! `/mcp [reconnect|enable|disable server]`: the MCP servers, and looking after them.

use loci_engine::{LocalEffect, LocalOutcome, McpAction, SessionSnapshot};
use loci_mcp::{prompt_name, read_log};
use loci_stdx::printable;
use loci_storage::layout::ConfigHome;

use super::cell;
use crate::mcp::log_dir;
use crate::user_error::UserError;

/// A server, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    /// Its name.
    pub name: String,
    /// How it is doing.
    pub status: &'static str,
    /// Where it is written down.
    pub scope: &'static str,
    /// How it is reached.
    pub kind: &'static str,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// Its tools, by the names the model has for them, each with what it does.
    pub tools: Vec<(String, String)>,
    /// Its resources, as they are mentioned, each with what it is.
    pub resources: Vec<(String, String)>,
    /// Its prompts, as they are typed, each with what it asks.
    pub prompts: Vec<(String, String)>,
    /// What it says of itself: name and version.
    pub about: Option<String>,
}

/// Returns the servers of a session.
pub fn rows(session: &SessionSnapshot) -> Vec<ServerRow> {
    let row = |view: &loci_mcp::ServerView| ServerRow {
        name: view.name.clone(),
        status: view.status.name(),
        scope: view.scope.name(),
        kind: view.kind,
        error: view.error.clone(),
        tools: view.offer.tools.iter().map(|(name, tool)| (name.clone(), tool.description.clone())).collect(),
        resources: view
            .offer
            .resources
            .iter()
            .map(|it| {
                (
                    format!("@{}:{}", view.name, it.uri),
                    it.description.clone().unwrap_or_else(|| it.name.clone()),
                )
            })
            .collect(),
        prompts: view
            .offer
            .prompts
            .iter()
            .map(|it| (format!("/{}", prompt_name(&view.name, &it.name)), it.description.clone()))
            .collect(),
        about: view.handshake.as_ref().map(|it| format!("{} {}", it.name, it.version)),
    };
    session.mcp_servers.iter().map(row).collect()
}

/// Reads the log of a server: what it complained about, and what was noticed of it.
pub fn server_log(home: &ConfigHome, server: &str) -> Result<String, UserError> {
    let dir = log_dir(home);
    match read_log(&dir, server) {
        // What it wrote must not talk to the terminal.
        Ok(text) => Ok(printable(&text.unwrap_or_default())),
        Err(error) => Err(UserError::new(format!(
            "Failed to read the log of `{server}` in `{}`: {error}",
            dir.display()
        ))),
    }
}

/// Carries the command out.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    let (verb, name) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let name = name.trim();
    let action = match verb {
        "" => return LocalOutcome::text(to_markdown(session)),
        "reconnect" => |server: String| McpAction::Reconnect { server },
        "enable" => |server: String| McpAction::Toggle { server, is_on: true },
        "disable" => |server: String| McpAction::Toggle { server, is_on: false },
        other => {
            return LocalOutcome::error(format!(
                "`/mcp {other}`: say `/mcp`, or reconnect, enable or disable and the name of a server"
            ));
        }
    };
    let all = rows(session);
    let chosen: Vec<String> = match name {
        "" | "all" if verb != "reconnect" || name == "all" => all.into_iter().map(|row| row.name).collect(),
        "" => return LocalOutcome::error("Name the server: `/mcp reconnect NAME`"),
        name => vec![name.to_owned()],
    };
    if chosen.is_empty() {
        return LocalOutcome::text("There are no MCP servers");
    }
    let done = match verb {
        "reconnect" => "Reconnected",
        "enable" => "Switched on",
        _ => "Switched off",
    };
    let text = format!("{done}: {}", chosen.join(", "));
    chosen
        .into_iter()
        .fold(LocalOutcome::text(text), |outcome, server| outcome.with(LocalEffect::Mcp(action(server))))
}

fn to_markdown(session: &SessionSnapshot) -> String {
    let rows = rows(session);
    let mut text = match rows.is_empty() {
        true => "There are no MCP servers. `loci mcp add` adds one\n".to_owned(),
        false => {
            "## MCP servers\n\n| Server | Status | From | Reached by | Tools |\n|---|---|---|---|---:|\n"
                .to_owned()
        }
    };
    for row in &rows {
        let status = match &row.error {
            Some(error) => format!("{}: {}", row.status, cell(error)),
            None => row.status.to_owned(),
        };
        text.push_str(&format!(
            "| {} | {status} | {} | {} | {} |\n",
            cell(&row.name),
            row.scope,
            row.kind,
            row.tools.len()
        ));
    }
    for error in &session.mcp_errors {
        text.push_str(&format!("\n- {}: {}", cell(&error.name), cell(&error.message)));
    }
    text
}
