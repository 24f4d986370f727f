//! The rows of agents at work, as a command of the person (`subagentStatusLine`) has them: what it reads, and what its lines
//! mean. It runs as the status line does, under the same gates.

use loci_core::hooks::HookSwitches;
use loci_engine::{AgentAtWork, SessionSnapshot};
use loci_settings::MergedSettings;
use serde_json::{Map, Value, json};

use crate::interface::helper_command::HelperCommand;
use crate::plugins::RunPlugins;

/// The setting.
const KEY: &str = "subagentStatusLine";
/// The variables that a plugin's own command has, beside the usual ones.
const VARIABLES: &str = "variables";
/// The most letters of a row.
const MOST_LETTERS: usize = 2_000;

/// What settings say of the rows of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRowsConfig {
    /// The command.
    pub command: HelperCommand,
    /// Further variables of its environment: where the plugin lies that brought it.
    pub vars: Vec<(String, String)>,
}

impl AgentRowsConfig {
    /// Reads the settings in force; none where they name no command.
    pub fn from_settings(settings: &Value) -> Option<Self> {
        let said = settings.get(KEY)?;
        let command = HelperCommand::from_setting(said)?;
        let vars = said[VARIABLES].as_object().into_iter().flatten();
        let vars = vars.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Some(Self { command, vars: vars.collect() })
    }
}

/// Puts the command of a plugin in, where settings name none. Where hooks are off, or only the administrator's count, a
/// plugin's does not, whoever turned the plugin on.
pub(crate) fn add_plugin_default(settings: &mut Value, merged: &MergedSettings, plugins: &RunPlugins) {
    let Some(fields) = settings.as_object_mut() else { return };
    // What a file may not say for itself: these are a plugin's.
    if let Some(Value::Object(said)) = fields.get_mut(KEY) {
        said.remove(VARIABLES);
        return;
    }
    let switches = HookSwitches::new(merged);
    if merged.value(KEY).is_some() || switches.is_off || switches.managed_only {
        return;
    }
    let default = plugins.plugins.iter().find_map(|plugin| {
        let said = plugin.folder.settings.get(KEY)?.as_object()?;
        let variables = plugin.variables.directories().into_iter();
        let variables: Map<String, Value> = variables.map(|(name, value)| (name, json!(value))).collect();
        let mut said = said.clone();
        said.insert(VARIABLES.to_owned(), Value::Object(variables));
        Some(Value::Object(said))
    });
    if let Some(default) = default {
        fields.insert(KEY.to_owned(), default);
    }
}

/// Returns what the command reads: what hooks read of a session, the room there is, and a row for each agent at work.
pub fn agent_rows_input(session: &SessionSnapshot, columns: u16) -> Value {
    let transcript = session.transcript.as_ref().map(|path| path.display().to_string());
    let mut input = json!({
        "hook_event_name": "SubagentStatusLine",
        "session_id": session.session.as_str(),
        "transcript_path": transcript.unwrap_or_default(),
        "cwd": session.current_dir.display().to_string(),
        "permission_mode": session.mode.to_string(),
        "columns": columns,
        "tasks": session.agents_at_work.iter().map(task).collect::<Vec<_>>(),
    });
    if let Some(prompt) = &session.prompt {
        input["prompt_id"] = json!(prompt.as_str());
    }
    input
}

fn task(agent: &AgentAtWork) -> Value {
    let mut task = json!({
        "id": agent.id.as_str(),
        "name": agent_name(agent),
        "type": "local_agent",
        "status": "running",
        "description": agent.description,
        "label": agent_label(agent),
        "startTime": agent.started.as_millisecond(),
        "model": agent.model,
        "contextWindowSize": agent.window,
        "tokenCount": agent.tokens(),
        "tokenSamples": agent.samples,
        "cwd": agent.cwd.display().to_string(),
    });
    if let Some(effort) = &agent.effort {
        task["effort"] = json!(effort);
    }
    task
}

/// Returns what an agent is called: the name it was given, or its type.
pub fn agent_name(agent: &AgentAtWork) -> &str {
    agent.name.as_deref().unwrap_or(&agent.kind)
}

/// Returns who an agent is and what it does.
pub fn agent_label(agent: &AgentAtWork) -> String {
    match agent.description.as_str() {
        "" => agent_name(agent).to_owned(),
        description => format!("{} · {description}", agent_name(agent)),
    }
}

/// Reads what the command printed, a line of JSON for each row that is to look otherwise: the agent's id and the row. The
/// error says which line is none.
pub fn parse_agent_rows(printed: &str) -> Result<Vec<(String, String)>, String> {
    let lines = printed.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let row: Option<Value> = serde_json::from_str(line).ok();
            let text = |key: &str| Some(row.as_ref()?.get(key)?.as_str()?.to_owned());
            match (text("id"), text("content")) {
                (Some(id), Some(content)) => Ok((id, content.chars().take(MOST_LETTERS).collect())),
                _ => Err(format!(
                    "`subagentStatusLine` printed a line that is no {{\"id\", \"content\"}}: {}",
                    loci_stdx::single_line(line, 80)
                )),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use loci_core::ids::{AgentId, SessionId};
    use loci_stdx::Timestamp;

    use super::*;

    fn agent() -> AgentAtWork {
        AgentAtWork {
            id: AgentId::new("a1"),
            name: None,
            kind: "Explore".to_owned(),
            description: "find the parser".to_owned(),
            started: Timestamp::from_second(1_700_000_000).unwrap(),
            model: "claude-haiku-4-5".to_owned(),
            effort: None,
            window: 200_000,
            cwd: "/p".into(),
            samples: vec![100, 2_500],
        }
    }

    #[test]
    fn command_reads_every_agent_at_work() {
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let mut session = SessionSnapshot::empty(id, "claude-sonnet-4-5");
        let named = AgentAtWork { name: Some("scout".to_owned()), effort: Some("low".to_owned()), ..agent() };
        session.agents_at_work = vec![agent(), named];
        let input = agent_rows_input(&session, 76);
        assert_eq!((&input["columns"], &input["permission_mode"]), (&json!(76), &json!("default")));
        assert_eq!(
            input["tasks"][0],
            json!({
                "id": "a1", "name": "Explore", "type": "local_agent", "status": "running",
                "description": "find the parser", "label": "Explore · find the parser",
                "startTime": 1_700_000_000_000_i64, "model": "claude-haiku-4-5", "contextWindowSize": 200_000,
                "tokenCount": 2_500, "tokenSamples": [100, 2_500], "cwd": "/p",
            })
        );
        assert_eq!(
            (&input["tasks"][1]["name"], &input["tasks"][1]["effort"]),
            (&json!("scout"), &json!("low"))
        );
    }

    #[test]
    fn printed_lines_name_rows_and_others_are_refused() {
        let rows = parse_agent_rows(
            "{\"id\":\"a1\",\"content\":\"\\u001b[32mone\"}\n\n{\"id\":\"a2\",\"content\":\"\"}\n",
        );
        let expected = [("a1".to_owned(), "\x1b[32mone".to_owned()), ("a2".to_owned(), String::new())];
        assert_eq!(rows.unwrap(), expected);
        for bad in ["oops", "{\"id\":\"a1\"}", "[1]", "{\"id\":1,\"content\":\"x\"}"] {
            assert!(parse_agent_rows(bad).unwrap_err().contains("subagentStatusLine"), "{bad}");
        }
    }

    #[test]
    fn settings_name_a_command_or_nothing() {
        let read = |value: Value| AgentRowsConfig::from_settings(&json!({"subagentStatusLine": value}));
        assert_eq!(read(json!({"command": "x"})), None);
        let whole = json!({"type": "command", "command": "x", "variables": {"CLAUDE_PLUGIN_ROOT": "/p"}});
        let vars = vec![("CLAUDE_PLUGIN_ROOT".to_owned(), "/p".to_owned())];
        assert_eq!(read(whole), Some(AgentRowsConfig { command: "x".into(), vars }));
    }
}
