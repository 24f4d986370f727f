//! What an agent is: the fields of a definition, from the front matter of a Markdown file or from JSON.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::AskedMode;
use super::tool_access::odd_entries;
use crate::front_matter::{self, FieldReader, FrontMatter, text_of};
use crate::permission::Mode;

/// An agent that can be sent out, or be what the main conversation runs as.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// What calls name it by.
    pub name: String,
    /// When to use it, for the model.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it has; all of them without a list.
    pub tools: Option<Vec<String>>,
    /// Tools it does not have, whatever the list says.
    pub disallowed_tools: Vec<String>,
    /// The model, by alias or id; that of the conversation without one.
    pub model: Option<String>,
    /// Whether it never works with a model above Opus just because the conversation does.
    pub is_capped_at_opus: bool,
    /// The permission mode it asks for.
    pub permission_mode: Option<Mode>,
    /// The most round trips to the model.
    pub max_turns: Option<u32>,
    /// The most tokens that its requests may use in all; what comes out of a cache is not counted.
    pub max_tokens: Option<u32>,
    /// The most seconds that it may work.
    pub max_seconds: Option<u32>,
    /// How hard it thinks.
    pub effort: Option<String>,
    /// The colour it is shown in.
    pub color: Option<String>,
    /// Whether it always works in the background.
    pub is_background: bool,
    /// Skills whose text it begins with.
    pub skills: Vec<String>,
    /// MCP servers of its own: names, or definitions.
    pub mcp_servers: Vec<Value>,
    /// Hooks that hold while it runs, as settings have them.
    pub hooks: Option<Value>,
    /// Where it keeps memories of its own.
    pub memory: Option<MemoryScope>,
    /// Whether it works in a worktree of its own.
    pub is_isolated: bool,
    /// The first prompt, where the main conversation runs as it.
    pub initial_prompt: Option<String>,
    /// Whether it is told the instruction files and the state of the repository.
    pub has_project_context: bool,
    /// Whether it is told only the administrator's instruction files when it is sent out.
    pub omits_instructions: bool,
    /// The window that it is compacted within when it is sent out, where its model's is larger.
    pub compact_window: Option<u64>,
    /// Whether it can go on after it has answered.
    pub is_resumable: bool,
    /// Where it comes from.
    pub source: AgentSource,
    /// What it asks for in vain, or says that nobody understands.
    pub notes: Vec<String>,
}

/// Where an agent's memories lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryScope {
    /// With the user's things.
    User,
    /// With the project, for all who work on it.
    Project,
    /// With the project, for this machine alone.
    Local,
}

/// Whose definition it is. An earlier one wins over a later one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentScope {
    /// The administrator's.
    Managed,
    /// Given with the start of this run.
    Flag,
    /// The project's.
    Project,
    /// The user's.
    User,
    /// A plugin's.
    Plugin,
    /// Our own.
    BuiltIn,
}

impl AgentScope {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Flag => "flag",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
            Self::BuiltIn => "built-in",
        }
    }
}

/// Where a definition comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSource {
    /// Whose it is.
    pub scope: AgentScope,
    /// The file, if it is one.
    pub file: Option<PathBuf>,
    /// Whether the user trusts the folder that it lies in.
    pub is_trusted: bool,
}

impl AgentSource {
    /// A source that is no file and needs no trust.
    pub fn inline(scope: AgentScope) -> Self {
        Self { scope, file: None, is_trusted: true }
    }
}

impl fmt::Display for AgentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display()),
            None => f.write_str(self.scope.as_str()),
        }
    }
}

/// A definition that is no agent, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it was found.
    pub source: AgentSource,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.source, self.message)
    }
}

/// The fields that have a meaning, in a file and in JSON.
const FIELDS: [&str; 24] = [
    "name",
    "description",
    "prompt",
    "tools",
    "disallowedTools",
    "model",
    "permissionMode",
    "maxTurns",
    "maxTokens",
    "maxSeconds",
    "effort",
    "color",
    "background",
    "skills",
    "mcpServers",
    "hooks",
    "memory",
    "isolation",
    "initialPrompt",
    "omitClaudeMd",
    "autoCompactWindow",
    "metadata",
    "license",
    REMINDER,
];

/// What is said last in the prompt of an agent; the SDK has it under this name.
const REMINDER: &str = "criticalSystemReminder_EXPERIMENTAL";

/// Those that are one text, and those that are several.
const TEXT_FIELDS: [&str; 13] = [
    "model",
    "permissionMode",
    "maxTurns",
    "maxTokens",
    "maxSeconds",
    "effort",
    "color",
    "background",
    "memory",
    "isolation",
    "initialPrompt",
    "omitClaudeMd",
    "autoCompactWindow",
];
const LIST_FIELDS: [&str; 3] = ["tools", "disallowedTools", "skills"];
/// The smallest window that an agent may be compacted within, as for the setting of that name.
const LEAST_COMPACT_WINDOW: u64 = 100_000;
/// The colours that there are.
const COLORS: [&str; 8] = ["red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"];

/// Says of hooks and servers that they are none.
fn odd_fields(fields: &Map<String, Value>) -> Vec<String> {
    let hooks = fields.get("hooks").filter(|hooks| !hooks.is_object() && !hooks.is_null());
    let hooks = hooks.map(|hooks| format!("`hooks: {hooks}` is not understood and has no effect"));
    let servers = match fields.get("mcpServers") {
        Some(Value::Array(servers)) => servers.iter().collect(),
        Some(other @ (Value::Bool(_) | Value::Number(_))) => vec![other],
        _ => Vec::new(),
    };
    let servers = servers.into_iter().filter(|server| !server.is_string() && !server.is_object());
    let servers = servers.map(|it| format!("`mcpServers: {it}` is not understood and has no effect"));
    hooks.into_iter().chain(servers).collect()
}

/// What is wrong with a file that is plain text.
const NO_FRONT_MATTER: &str = "there is no front matter between two lines `---`";

/// Reads a Markdown file of a plugin, which is an agent whatever its front matter says: one that has no name there, or whose
/// front matter cannot be read, is called as its file is.
pub fn parse_plugin_agent(
    text: &str,
    file_name: &str,
    source: AgentSource,
) -> Result<AgentDefinition, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((head, body)) = front_matter::split(text) else {
        return Err(Problem { source, message: NO_FRONT_MATTER.to_owned() });
    };
    let (mut fields, mut notes) = match front_matter::parse(head) {
        Ok(FrontMatter { fields, notes }) => (fields, notes),
        Err(why) => (Map::new(), vec![format!("the front matter cannot be read: {why}")]),
    };
    let has = |key: &str| fields.get(key).and_then(text_of).is_some_and(|text| !text.trim().is_empty());
    let (has_name, has_description) = (has("name"), has("description"));
    if !has_name {
        fields.insert("name".to_owned(), Value::from(file_name));
        notes.push(format!("it has no `name`; it is called `{file_name}`, as its file is"));
    }
    if !has_description {
        let first =
            body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
        fields.insert("description".to_owned(), Value::from(first.unwrap_or(file_name)));
        notes.push("it has no `description`; the first line of its prompt is told".to_owned());
    }
    let name = fields.get("name").and_then(text_of).unwrap_or_default();
    let agent = AgentDefinition::from_fields(&name, &fields, body.trim().to_owned(), source.clone());
    let mut agent = agent.unwrap_or_else(|why| {
        notes.push(why);
        AgentDefinition::new(file_name, file_name, body.trim(), source)
    });
    agent.notes.splice(0..0, notes);
    Ok(agent)
}

/// Reads a Markdown file: front matter, then the system prompt.
pub fn parse_agent(text: &str, source: AgentSource) -> Result<AgentDefinition, Problem> {
    let problem = |message: String| Problem { source: source.clone(), message };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body) = front_matter::split(text).ok_or_else(|| problem(NO_FRONT_MATTER.to_owned()))?;
    let FrontMatter { fields, notes } = front_matter::parse(head)
        .map_err(|why| problem(format!("the front matter cannot be read: {why}")))?;
    let name = fields.get("name").and_then(text_of).unwrap_or_default();
    let agent = AgentDefinition::from_fields(&name, &fields, body.trim().to_owned(), source.clone());
    let mut agent = agent.map_err(problem)?;
    agent.notes.splice(0..0, notes);
    Ok(agent)
}

/// Reads `{name: {description, prompt, ..}}`; what cannot be read is told beside what can.
pub fn parse_agents_json(
    agents: &Map<String, Value>,
    scope: AgentScope,
) -> (Vec<AgentDefinition>, Vec<Problem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (name, fields) in agents {
        let source = AgentSource::inline(scope);
        let parsed = match fields {
            Value::Object(fields) => {
                let prompt = fields.get("prompt").and_then(text_of).unwrap_or_default();
                AgentDefinition::from_fields(name, fields, prompt, source.clone())
            }
            _ => Err(format!("the agent `{name}` is not an object")),
        };
        match parsed {
            Ok(agent) => found.push(agent),
            Err(message) => problems.push(Problem { source, message: format!("agent `{name}`: {message}") }),
        }
    }
    (found, problems)
}

impl AgentDefinition {
    /// Returns the permission mode that it asks for. What others wrote, and nobody trusts, only restricts.
    pub fn asked_mode(&self) -> Option<AskedMode> {
        let is_trusted = match self.source.scope {
            AgentScope::Managed | AgentScope::Flag | AgentScope::Project | AgentScope::User => {
                self.source.is_trusted
            }
            AgentScope::Plugin | AgentScope::BuiltIn => false,
        };
        let asked = if is_trusted { AskedMode::of_trusted } else { AskedMode::of_call };
        self.permission_mode.map(asked)
    }

    /// An agent with nothing out of the ordinary.
    pub fn new(name: &str, description: &str, prompt: &str, source: AgentSource) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            prompt: prompt.to_owned(),
            tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            is_capped_at_opus: false,
            permission_mode: None,
            max_turns: None,
            max_tokens: None,
            max_seconds: None,
            effort: None,
            color: None,
            is_background: false,
            skills: Vec::new(),
            mcp_servers: Vec::new(),
            hooks: None,
            memory: None,
            is_isolated: false,
            initial_prompt: None,
            has_project_context: true,
            omits_instructions: false,
            compact_window: None,
            is_resumable: true,
            source,
            notes: Vec::new(),
        }
    }

    fn from_fields(
        name: &str,
        fields: &Map<String, Value>,
        prompt: String,
        source: AgentSource,
    ) -> Result<Self, String> {
        check_name(name, source.scope)?;
        let description = fields.get("description").and_then(text_of).unwrap_or_default();
        if description.trim().is_empty() {
            return Err("there is no `description`".to_owned());
        }
        let mut reader = FieldReader::new(fields);
        reader.note_kinds(&TEXT_FIELDS, &LIST_FIELDS);
        let reminder = reader.text(REMINDER).map(|text| format!("\n\n{text}")).unwrap_or_default();
        let agent = Self::new(name.trim(), description.trim(), &format!("{prompt}{reminder}"), source);
        let mut agent = Self {
            tools: reader.names("tools").filter(|names| !names.iter().any(|name| name == "*")),
            disallowed_tools: reader.names("disallowedTools").unwrap_or_default(),
            model: reader.text("model").filter(|model| model != "inherit"),
            permission_mode: reader.parsed("permissionMode", |text| text.parse::<Mode>().ok()),
            max_turns: reader.count("maxTurns"),
            max_tokens: reader.count("maxTokens"),
            max_seconds: reader.count("maxSeconds"),
            effort: reader.effort("effort"),
            color: reader.parsed("color", |text| COLORS.contains(&text).then(|| text.to_owned())),
            is_background: reader.switch("background").unwrap_or(false),
            skills: reader.names("skills").unwrap_or_default(),
            mcp_servers: match fields.get("mcpServers") {
                Some(Value::Array(servers)) => {
                    servers.iter().filter(|it| it.is_string() || it.is_object()).cloned().collect()
                }
                Some(Value::Object(servers)) => {
                    let named = |(name, server): (&String, &Value)| {
                        Value::Object(Map::from_iter([(name.clone(), server.clone())]))
                    };
                    servers.iter().map(named).collect()
                }
                Some(Value::String(_)) => {
                    reader.names("mcpServers").unwrap_or_default().into_iter().map(Value::from).collect()
                }
                _ => Vec::new(),
            },
            hooks: fields.get("hooks").filter(|hooks| hooks.is_object()).cloned(),
            memory: reader.parsed("memory", |text| match text {
                "user" => Some(MemoryScope::User),
                "project" => Some(MemoryScope::Project),
                "local" => Some(MemoryScope::Local),
                _ => None,
            }),
            is_isolated: reader.parsed("isolation", |text| (text == "worktree").then_some(())).is_some(),
            initial_prompt: reader.text("initialPrompt"),
            omits_instructions: reader.switch("omitClaudeMd").unwrap_or(false),
            compact_window: reader.parsed("autoCompactWindow", |text| {
                text.parse().ok().filter(|tokens| *tokens >= LEAST_COMPACT_WINDOW)
            }),
            ..agent
        };
        agent.notes = reader.into_notes();
        agent.notes.extend(odd_fields(fields));
        agent.notes.extend(odd_entries(agent.tools.as_deref(), &agent.disallowed_tools));
        let unknown = fields.keys().filter(|key| !FIELDS.contains(&key.as_str()));
        agent.notes.extend(unknown.map(|key| format!("`{key}` has no meaning here")));
        agent.restrict();
        Ok(agent)
    }

    /// Iterates over the servers of the session that it names.
    pub fn named_servers(&self) -> impl Iterator<Item = &str> {
        self.mcp_servers.iter().filter_map(Value::as_str)
    }

    /// Returns the servers that it defines itself, by name.
    pub fn own_servers(&self) -> Map<String, Value> {
        let maps = self.mcp_servers.iter().filter_map(Value::as_object);
        maps.flatten().map(|(name, server)| (name.clone(), server.clone())).collect()
    }

    /// Takes away what this source may not ask for, and says so.
    fn restrict(&mut self) {
        let is_plugin = self.source.scope == AgentScope::Plugin;
        if is_plugin && self.permission_mode.take().is_some() {
            self.notes.push("`permissionMode` of a plugin's agent has no effect".to_owned());
        }
        let is_held = is_plugin || !self.source.is_trusted;
        let why = if is_plugin {
            "of a plugin's agent have no effect"
        } else {
            "wait until this folder is trusted"
        };
        if is_held && self.hooks.take().is_some() {
            self.notes.push(format!("`hooks` {why}"));
        }
        let n_before = self.mcp_servers.len();
        self.mcp_servers.retain(|server| !is_plugin && (!is_held || server.is_string()));
        if self.mcp_servers.len() < n_before {
            self.notes.push(format!("`mcpServers` {why}"));
        }
    }
}

fn check_name(name: &str, scope: AgentScope) -> Result<(), String> {
    let name = name.trim();
    if name.is_empty() {
        return Err("there is no `name`".to_owned());
    }
    if name.starts_with('-') || (name.contains(':') && scope != AgentScope::Plugin) {
        return Err(format!("`{name}` is no name: it begins with `-` or has a `:`"));
    }
    if name.chars().any(char::is_control) {
        return Err("the name has a control character".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(scope: AgentScope, is_trusted: bool) -> AgentSource {
        AgentSource { scope, file: Some("/p/.claude/agents/a.md".into()), is_trusted }
    }

    fn parse(text: &str) -> Result<AgentDefinition, String> {
        parse_agent(text, source(AgentScope::User, true)).map_err(|problem| problem.message)
    }

    #[test]
    fn agent_of_a_plugin_is_one_by_the_name_of_its_file() {
        let read = |text: &str| {
            let agent = parse_plugin_agent(text, "checker", AgentSource::inline(AgentScope::Plugin)).ok()?;
            Some(format!("{} | {} | {}", agent.name, agent.description, agent.notes.len()))
        };
        for (text, expected) in [
            ("---\nname: own\ndescription: d\n---\np", Some("own | d | 0")),
            ("---\ndescription: d\n---\np", Some("checker | d | 1")),
            ("---\ntools: Read\n---\n# Checks things\nmore", Some("checker | Checks things | 2")),
            ("# Notes for people", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn every_field_of_a_file_is_read() {
        let agent = parse(
            "---\nname: reviewer\ndescription: Reviews: code [carefully\ntools: Read, Bash(git diff, git log), mcp__db\n\
             disallowedTools: [Write, mcp__*]\nmodel: opus\npermissionMode: plan\nmaxTurns: 7\neffort: low\ncolor: blue\n\
             background: yes\nskills:\n  - pdf\n  - xlsx\nmcpServers:\n  - github\n  - own:\n      command: x\n\
             hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: \"true\"\nmemory: project\n\
             isolation: worktree\ninitialPrompt: Begin.\nomitClaudeMd: true\nautoCompactWindow: 150000\n\
             future: 1\n---\n\nYou review.\n",
        )
        .unwrap();
        let expected = AgentDefinition {
            tools: Some(["Read", "Bash(git diff, git log)", "mcp__db"].map(str::to_owned).to_vec()),
            disallowed_tools: ["Write", "mcp__*"].map(str::to_owned).to_vec(),
            model: Some("opus".to_owned()),
            permission_mode: Some(Mode::Plan),
            max_turns: Some(7),
            effort: Some("low".to_owned()),
            color: Some("blue".to_owned()),
            is_background: true,
            skills: ["pdf", "xlsx"].map(str::to_owned).to_vec(),
            mcp_servers: vec![json!("github"), json!({"own": {"command": "x"}})],
            hooks: Some(json!({"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]})),
            memory: Some(MemoryScope::Project),
            is_isolated: true,
            initial_prompt: Some("Begin.".to_owned()),
            omits_instructions: true,
            compact_window: Some(150_000),
            notes: vec![
                "`tools`: `Bash(git diff, git log)` gives the whole tool `Bash`; what it may do is for permission rules to say"
                    .to_owned(),
                "`future` has no meaning here".to_owned(),
            ],
            ..AgentDefinition::new(
                "reviewer",
                "Reviews: code [carefully",
                "You review.",
                source(AgentScope::User, true),
            )
        };
        assert_eq!(agent, expected);
    }

    #[test]
    fn files_that_are_no_agents_are_problems() {
        for (text, expected) in [
            ("You review.", "no front matter"),
            ("---\nname: a\n", "no front matter"),
            ("---\ndescription: d\n---\n", "no `name`"),
            ("---\nname: a\n---\n", "no `description`"),
            ("---\nname: -a\ndescription: d\n---\n", "is no name"),
            ("---\nname: a:b\ndescription: d\n---\n", "is no name"),
            ("---\nname: a\nnonsense\n---\n", "line 2"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(expected), "{text:?}: {message}");
        }
    }

    #[test]
    fn values_that_mean_nothing_are_noted_and_left_out() {
        let agent = parse("---\nname: a\ndescription: d\nmodel: inherit\ntools: '*'\nmaxTurns: 0\neffort: extreme\npermissionMode: yolo\nmemory: world\n---\n").unwrap();
        assert_eq!((agent.model, agent.tools, agent.max_turns, agent.memory), (None, None, None, None));
        assert_eq!(agent.notes.len(), 4, "{:?}", agent.notes);
        let empty = parse("---\nname: a\ndescription: d\ntools: []\n---\n").unwrap();
        assert_eq!(empty.tools, Some(Vec::new()));
        for (fields, note) in [
            ("model: [a]", "`model: [\"a\"]` is not understood"),
            ("tools:\n  - Read\n  - {a: b}", "`tools: {\"a\":\"b\"}` is not understood"),
            ("hooks: x", "`hooks: \"x\"` is not understood"),
            ("mcpServers: [1, s]", "`mcpServers: 1` is not understood"),
            ("autoCompactWindow: 50000", "`autoCompactWindow: 50000` is not understood"),
            ("color: mauve", "`color: mauve` is not understood"),
            ("model: opus\nmodel: haiku", "`model` stands there twice"),
            ("model: *best", "`*best` is an alias"),
        ] {
            let agent = parse(&format!("---\nname: a\ndescription: d\n{fields}\n---\n")).unwrap();
            assert_eq!(agent.notes.len(), 1, "{fields}: {:?}", agent.notes);
            assert!(agent.notes[0].contains(note), "{fields}: {:?}", agent.notes);
        }
    }

    #[test]
    fn hooks_and_servers_of_untrusted_folders_and_plugins_are_held_back() {
        let text = "---\nname: a\ndescription: d\npermissionMode: plan\nhooks: {Stop: []}\nmcpServers: [one, {two: {}}]\n---\n";
        for (scope, is_trusted, hooks, servers, mode, n_notes) in [
            (AgentScope::Project, true, true, 2, true, 0),
            (AgentScope::Project, false, false, 1, true, 2),
            (AgentScope::Plugin, true, false, 0, false, 3),
        ] {
            let agent = parse_agent(text, source(scope, is_trusted)).unwrap();
            let found = (
                agent.hooks.is_some(),
                agent.mcp_servers.len(),
                agent.permission_mode.is_some(),
                agent.notes.len(),
            );
            assert_eq!(found, (hooks, servers, mode, n_notes), "{scope:?} {is_trusted}");
        }
    }

    #[test]
    fn agents_of_json_are_read_and_bad_ones_are_told() {
        let json = json!({
            "a": {"description": "d", "prompt": "p", "tools": ["Read"], "maxTurns": 3},
            "b": {"prompt": "p"},
            "c": 5,
        });
        let (found, problems) = parse_agents_json(json.as_object().unwrap(), AgentScope::Flag);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].prompt.as_str(), found[0].max_turns), ("p", Some(3)));
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "`flag`: agent `b`: there is no `description`",
                "`flag`: agent `c`: the agent `c` is not an object"
            ]
        );
    }
}
