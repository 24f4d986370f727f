//! `/mcp [reconnect|enable|disable server]`: the MCP servers, and looking after them.

use loci_engine::{LocalEffect, LocalOutcome, McpAction, SessionSnapshot};
use loci_mcp::{PromptArgument, PromptSpec, ToolSpec, prompt_name, read_log};
use loci_stdx::printable;
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use super::{SessionCommands, cell};
use crate::mcp::log_dir;
use crate::mcp::toggles::keep_server_toggle;
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
    /// How it is reached; nothing, where its entry was left out.
    pub kind: &'static str,
    /// Why it cannot be used.
    pub error: Option<String>,
    /// Its tools, by the names the model has for them, each with what it does and, in a second line, what it takes.
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
        tools: view.offer.tools.iter().map(|(name, tool)| (name.clone(), about_tool(tool))).collect(),
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
            .map(|it| (format!("/{}", prompt_name(&view.name, &it.name)), about_prompt(it)))
            .collect(),
        about: view.handshake.as_ref().map(|it| format!("{} {}", it.name, it.version)),
    };
    session.mcp_servers.iter().map(row).collect()
}

/// Returns the servers of a session, and behind them the entries that were left out because they cannot be read.
pub fn rows_of_all(session: &SessionSnapshot) -> Vec<ServerRow> {
    let mut all = rows(session);
    let left_out = session.mcp_errors.iter().map(|error| ServerRow {
        name: error.name.clone(),
        status: "left out",
        scope: "",
        kind: "",
        error: Some(error.message.clone()),
        tools: Vec::new(),
        resources: Vec::new(),
        prompts: Vec::new(),
        about: None,
    });
    all.extend(left_out);
    all
}

/// Says what a tool does, and in a second line what it takes.
fn about_tool(tool: &ToolSpec) -> String {
    let schema = &tool.input_schema;
    let is_needed =
        |name: &str| schema["required"].as_array().is_some_and(|needed| needed.iter().any(|it| it == name));
    let parameter = |(name, schema): (&String, &Value)| {
        let kind = schema["type"].as_str().map(|kind| format!(": {kind}")).unwrap_or_default();
        format!("{name}{}{kind}", if is_needed(name) { "" } else { "?" })
    };
    let parameters: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(parameter).collect();
    let mut notes = Vec::new();
    if !parameters.is_empty() {
        notes.push(format!("takes {}", parameters.join(", ")));
    }
    if tool.is_read_only {
        notes.push("says that it only reads".to_owned());
    }
    if tool.requires_user {
        notes.push("you are always asked".to_owned());
    }
    with_second_line(&tool.description, &notes.join("; "))
}

fn about_prompt(prompt: &PromptSpec) -> String {
    let argument = |it: &PromptArgument| format!("{}{}", it.name, if it.is_required { "" } else { "?" });
    let arguments: Vec<String> = prompt.arguments.iter().map(argument).collect();
    match arguments.is_empty() {
        true => prompt.description.clone(),
        false => with_second_line(&prompt.description, &format!("takes {}", arguments.join(", "))),
    }
}

fn with_second_line(first: &str, second: &str) -> String {
    let first = loci_stdx::single_line(first, 300);
    if second.is_empty() { first } else { format!("{first}\n{}", loci_stdx::single_line(second, 300)) }
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
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
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
        "" | "all" if verb != "reconnect" || name == "all" => {
            all.iter().map(|row| row.name.clone()).collect()
        }
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
    // Whoever writes prompts for a program switches for that session alone.
    if session.is_interactive && verb != "reconnect" {
        for server in all.iter().filter(|row| chosen.contains(&row.name)) {
            if let Err(error) =
                keep_server_toggle(&commands.env, &commands.home, &server.name, verb == "enable")
            {
                return super::refused(&error);
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_and_prompts_say_what_they_take() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "deep": {"type": "boolean"}, "any": {}}});
        for (schema, is_read_only, expected) in [
            (schema, true, "Lists it\ntakes path: string, deep?: boolean, any?; says that it only reads"),
            (json!({"type": "object"}), false, "Lists it"),
        ] {
            let item = json!({"name": "list", "description": "Lists\nit", "inputSchema": schema,
                "annotations": {"readOnlyHint": is_read_only}});
            assert_eq!(about_tool(&ToolSpec::parse(&item).unwrap()), expected);
        }
        let argument = |name: &str, is_required| PromptArgument { name: name.into(), is_required };
        let arguments = vec![argument("who", true), argument("how", false)];
        let prompt = PromptSpec { name: "greet".into(), description: "Greets".into(), arguments };
        assert_eq!(about_prompt(&prompt), "Greets\ntakes who, how?");
    }
}
