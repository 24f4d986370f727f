//! What an administrator keeps runs from bringing along (`disableSideloadFlags`): plugins, agents and MCP servers that no
//! file of the machine names, given by flags or by the client that starts the run.

use loci_settings::MergedSettings;
use serde_json::{Map, Value};

use crate::options::RunOptions;
use crate::user_error::UserError;

const KEY: &str = "disableSideloadFlags";
const CLIENT_AGENTS: &str = "agents of the client";

/// Refuses a run that brings something along where nobody may. Servers that live in the client itself are no more than the
/// client.
pub(crate) fn check_sideload(merged: &MergedSettings, options: &RunOptions) -> Result<(), UserError> {
    let given = [
        ("--plugin-dir", !options.plugin_dirs.is_empty()),
        ("--agents", options.agents.is_some()),
        (CLIENT_AGENTS, !options.client_agents.is_empty()),
        ("--mcp-config", !options.mcp.configs.iter().all(|config| has_only_client_servers(config))),
    ];
    let refused: Vec<&str> = given.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| *flag).collect();
    match refused.is_empty() || merged.value(KEY) != Some(&Value::Bool(true)) {
        true => Ok(()),
        false => Err(refusal(&refused.join(", "))),
    }
}

/// Refuses agents that a client names once the session is composed; `settings` are those in force.
pub(crate) fn check_client_agents(settings: &Value, agents: &Map<String, Value>) -> Result<(), UserError> {
    match agents.is_empty() || settings[KEY] != true {
        true => Ok(()),
        false => Err(refusal(CLIENT_AGENTS)),
    }
}

fn refusal(what: &str) -> UserError {
    UserError::new(format!("The administrator does not allow {what} (`{KEY}`)"))
}

/// Tells whether a configuration of servers names only such as live in the client (`sdk`).
fn has_only_client_servers(config: &str) -> bool {
    let parsed: Value = serde_json::from_str(config).unwrap_or_default();
    parsed["mcpServers"].as_object().is_some_and(|servers| servers.values().all(|it| it["type"] == "sdk"))
}

#[cfg(test)]
mod tests {
    use loci_settings::{Layer, Origin, Scope, merge};
    use serde_json::json;

    use super::*;

    fn agents() -> Map<String, Value> {
        json!({"a": {"description": "d", "prompt": "p"}}).as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_a_run_brings_along_is_refused_and_named() {
        let settings = |scope: Scope| {
            let text = r#"{"disableSideloadFlags": true}"#;
            merge(&[Layer::parse(text, Origin::new(scope, "settings.json")).0], false)
        };
        let servers = |kind: &str| json!({"mcpServers": {"s": {"type": kind, "command": "x"}}}).to_string();
        let with_servers = |config: String| {
            let mut options = RunOptions::default();
            options.mcp.configs.push(config);
            options
        };
        let client = RunOptions { client_agents: agents(), ..RunOptions::default() };
        let both = RunOptions { agents: Some("{}".to_owned()), ..client.clone() };
        for (options, refused) in [
            (RunOptions::default(), None),
            (client, Some("agents of the client")),
            (both.clone(), Some("--agents, agents of the client")),
            (with_servers(servers("stdio")), Some("--mcp-config")),
            (with_servers("servers.json".to_owned()), Some("--mcp-config")),
            (with_servers(servers("sdk")), None),
        ] {
            let said =
                check_sideload(&settings(Scope::Managed), &options).err().map(|it| it.message().to_owned());
            let expected = refused
                .map(|what| format!("The administrator does not allow {what} (`disableSideloadFlags`)"));
            assert_eq!(said, expected);
        }
        assert!(check_sideload(&settings(Scope::User), &both).is_ok(), "only the administrator's counts");
    }

    #[test]
    fn agents_that_a_client_names_later_are_refused_as_well() {
        for (settings, given, is_fine) in [
            (json!({"disableSideloadFlags": true}), agents(), false),
            (json!({"disableSideloadFlags": true}), Map::new(), true),
            (json!({"disableSideloadFlags": false}), agents(), true),
            (json!({}), agents(), true),
        ] {
            assert_eq!(check_client_agents(&settings, &given).is_ok(), is_fine, "{settings}");
        }
    }
}
