//! Which tools an agent has.
//!
//! The lists are a contract with those who write definitions for other programs too, whole as it is documented there, tools
//! that this program does not have included; so they stand here together and not as facts of single tools.

use super::definition::AgentDefinition;

/// Tools that no agent has: they speak to the user, or steer the main conversation.
const NEVER: [&str; 9] = [
    "AskUserQuestion",
    "EndConversation",
    "EnterPlanMode",
    "ExitPlanMode",
    "ScheduleWakeup",
    "StructuredOutput",
    "TaskOutput",
    "WaitForMcpServers",
    "Workflow",
];

/// Tools that an agent in the background has, besides those of MCP servers.
const IN_BACKGROUND: [&str; 20] = [
    "Agent",
    "Read",
    "Grep",
    "Glob",
    "Bash",
    "PowerShell",
    "Edit",
    "Write",
    "NotebookEdit",
    "Recall",
    "WebFetch",
    "WebSearch",
    "TodoWrite",
    "Skill",
    "ToolSearch",
    "EnterWorktree",
    "ExitWorktree",
    "Monitor",
    "TaskStop",
    "SendMessage",
];

/// Further tools that there are, or were, here or elsewhere: to take one away is no mistake.
const OTHERS: [&str; 25] = [
    "Artifact",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "KillShell",
    "LS",
    "LSP",
    "ListAgents",
    "ListMcpResourcesTool",
    "MultiEdit",
    "NotebookRead",
    "PushNotification",
    "ReadMcpResourceTool",
    "RemoteTrigger",
    "ReportFindings",
    "SendUserFile",
    "ShareOnboardingGuide",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
];

/// Tools that an agent with memories has, whatever its list says.
const FOR_MEMORY: [&str; 3] = ["Read", "Write", "Edit"];

/// Where an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentPlace {
    /// Whether it works in the background.
    pub is_background: bool,
    /// Whether it may send out agents of its own.
    pub may_spawn: bool,
    /// Whether it was sent out to make a plan, which it puts before the user.
    pub makes_plan: bool,
    /// Whether it has a worktree of its own, which it does not leave.
    pub is_apart: bool,
    /// Whether it keeps memories.
    pub has_memory: bool,
}

/// Says of each tool whether an agent has it.
#[derive(Debug, Clone)]
pub struct ToolAccess<'a> {
    agent: &'a AgentDefinition,
    /// Where it works; nowhere for the main conversation.
    place: Option<AgentPlace>,
    /// What names of tools begin with that are of servers which the definition brings along.
    own_servers: Vec<String>,
}

impl<'a> ToolAccess<'a> {
    /// For an agent that was sent out.
    pub fn new(agent: &'a AgentDefinition, place: AgentPlace) -> Self {
        Self { agent, place: Some(place), own_servers: Vec::new() }
    }

    /// For the main conversation that runs as an agent: only the definition counts.
    pub fn main(agent: &'a AgentDefinition) -> Self {
        Self { agent, place: None, own_servers: Vec::new() }
    }

    /// Gives it all tools whose names begin so, whatever its list says: those of servers that it brings along.
    pub fn with_servers(self, prefixes: impl IntoIterator<Item = String>) -> Self {
        Self { own_servers: prefixes.into_iter().collect(), ..self }
    }

    /// Tells whether the agent has a tool.
    pub fn has(&self, tool: &str) -> bool {
        if self.place.is_some_and(|place| !place.offers(tool)) {
            return false;
        }
        let is_memory = self.place.is_some_and(|place| place.has_memory) && FOR_MEMORY.contains(&tool);
        let is_disallowed = self.agent.disallowed_tools.iter().any(|entry| matches(entry, tool));
        let is_listed =
            self.agent.tools.as_ref().is_none_or(|list| list.iter().any(|entry| matches(entry, tool)));
        let is_own = self.own_servers.iter().any(|prefix| tool.starts_with(prefix.as_str()));
        is_memory || ((is_listed || is_own) && !is_disallowed)
    }

    /// Returns the entries of the list that name none of these tools.
    pub fn unknown_entries<'t>(&self, tools: impl Iterator<Item = &'t str> + Clone) -> Vec<&'a str> {
        let list = self.agent.tools.iter().flatten();
        list.filter(|entry| !tools.clone().any(|tool| matches(entry, tool))).map(String::as_str).collect()
    }

    /// Returns the only types that may be sent out, where the main conversation runs as an agent that names them.
    pub fn spawnable(&self) -> Option<Vec<String>> {
        let entries = self.agent.tools.iter().flatten().filter_map(|entry| {
            let inner = entry.strip_prefix("Agent(").or_else(|| entry.strip_prefix("Task("))?;
            inner.strip_suffix(')')
        });
        let names: Vec<String> =
            entries.flat_map(|list| list.split(',')).map(|name| name.trim().to_owned()).collect();
        (!names.is_empty()).then_some(names)
    }
}

impl AgentPlace {
    fn offers(self, tool: &str) -> bool {
        let is_plan = tool == "ExitPlanMode" && self.makes_plan;
        let is_never = NEVER.contains(&tool) && !is_plan;
        let is_spawn = tool == "Agent" && !self.may_spawn;
        let is_way_out = tool == "ExitWorktree" && self.is_apart;
        let is_kept =
            !self.is_background || is_plan || tool.starts_with("mcp__") || IN_BACKGROUND.contains(&tool);
        !is_never && !is_spawn && !is_way_out && is_kept
    }
}

/// Says what in the lists of a definition does not mean what it seems to: a tool that is to go and is none, and
/// conditions, which are for permission rules.
pub(super) fn odd_entries(tools: Option<&[String]>, disallowed: &[String]) -> Vec<String> {
    let base = |entry: &str| entry.split_once('(').map_or(entry, |(name, _)| name).trim().to_owned();
    let is_known = |name: &str| {
        let lists = NEVER.iter().chain(&IN_BACKGROUND).chain(&OTHERS);
        name.starts_with("mcp__") || name.ends_with('*') || lists.into_iter().any(|tool| *tool == name)
    };
    let has_condition =
        |entry: &&String| entry.contains('(') && !matches!(base(entry).as_str(), "Agent" | "Task");
    let unknown = disallowed.iter().filter(|entry| !is_known(&base(entry)));
    let unknown =
        unknown.map(|entry| format!("`disallowedTools`: there is no tool `{entry}`, so none is taken away"));
    let whole = tools.into_iter().flatten().filter(has_condition).map(|entry| {
        format!(
            "`tools`: `{entry}` gives the whole tool `{}`; what it may do is for permission rules to say",
            base(entry)
        )
    });
    let gone = disallowed
        .iter()
        .filter(has_condition)
        .map(|entry| format!("`disallowedTools`: `{entry}` takes the whole tool `{}` away", base(entry)));
    unknown.chain(whole).chain(gone).collect()
}

/// Compares an entry of a list with a tool's name: `Read`, `Bash(git *)`, `mcp__server`, `mcp__*`.
fn matches(entry: &str, tool: &str) -> bool {
    let entry = entry.split_once('(').map_or(entry, |(name, _)| name).trim();
    let entry = if entry == "Task" { "Agent" } else { entry };
    if let Some(start) = entry.strip_suffix('*') {
        return tool.starts_with(start);
    }
    let is_server = entry.starts_with("mcp__") && !entry["mcp__".len()..].contains("__");
    entry == tool || (is_server && tool.strip_prefix(entry).is_some_and(|rest| rest.starts_with("__")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{AgentScope, AgentSource, builtin_agents};

    const ALL: [&str; 13] = [
        "Agent",
        "AskUserQuestion",
        "Bash",
        "Edit",
        "ExitPlanMode",
        "ExitWorktree",
        "Read",
        "SendMessage",
        "TaskCreate",
        "TaskOutput",
        "Write",
        "mcp__db__query",
        "mcp__db2__query",
    ];

    fn place() -> AgentPlace {
        AgentPlace {
            is_background: false,
            may_spawn: true,
            makes_plan: false,
            is_apart: false,
            has_memory: false,
        }
    }

    fn agent(tools: Option<&[&str]>, disallowed: &[&str]) -> AgentDefinition {
        let texts = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        AgentDefinition {
            tools: tools.map(texts),
            disallowed_tools: texts(disallowed),
            ..AgentDefinition::new("a", "d", "p", AgentSource::inline(AgentScope::User))
        }
    }

    fn has(agent: &AgentDefinition, place: AgentPlace) -> String {
        let access = ToolAccess::new(agent, place);
        ALL.iter().filter(|tool| access.has(tool)).copied().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn agents_have_the_tools_of_their_definition_and_place() {
        let everything =
            "Agent Bash Edit ExitWorktree Read SendMessage TaskCreate Write mcp__db__query mcp__db2__query";
        for (tools, disallowed, place, expected) in [
            (None, &[][..], place(), everything),
            (None, &[], AgentPlace { may_spawn: false, ..place() }, &everything["Agent ".len()..]),
            (
                None,
                &[],
                AgentPlace { makes_plan: true, ..place() },
                "Agent Bash Edit ExitPlanMode ExitWorktree Read SendMessage TaskCreate Write mcp__db__query mcp__db2__query",
            ),
            (
                None,
                &[],
                AgentPlace { makes_plan: true, is_background: true, is_apart: true, ..place() },
                "Agent Bash Edit ExitPlanMode Read SendMessage Write mcp__db__query mcp__db2__query",
            ),
            (
                None,
                &[],
                AgentPlace { is_background: true, ..place() },
                "Agent Bash Edit ExitWorktree Read SendMessage Write mcp__db__query mcp__db2__query",
            ),
            (
                Some(&["Read", "Bash(git *)", "mcp__db", "TaskOutput"][..]),
                &[],
                place(),
                "Bash Read mcp__db__query",
            ),
            (Some(&["mcp__*", "Task"]), &["mcp__db2__*"], place(), "Agent mcp__db__query"),
            (
                None,
                &["mcp__*", "Write", "Agent"],
                place(),
                "Bash Edit ExitWorktree Read SendMessage TaskCreate",
            ),
            (Some(&["Read"]), &["Write"], AgentPlace { has_memory: true, ..place() }, "Edit Read Write"),
            (Some(&[]), &[], place(), ""),
        ] {
            assert_eq!(has(&agent(tools, disallowed), place), expected, "{tools:?} {disallowed:?} {place:?}");
        }
        let explore = builtin_agents().into_iter().find(|agent| agent.name == "Explore").unwrap();
        assert_eq!(
            has(&explore, place()),
            "Bash ExitWorktree Read SendMessage TaskCreate mcp__db__query mcp__db2__query"
        );
    }

    #[test]
    fn tools_of_servers_that_a_definition_brings_along_need_not_be_listed() {
        for (tools, disallowed, expected) in [
            (Some(&["Read"][..]), &[][..], "Read mcp__db__query"),
            (Some(&["Read"]), &["mcp__db"], "Read"),
            (Some(&[]), &[], "mcp__db__query"),
        ] {
            let agent = agent(tools, disallowed);
            let access = ToolAccess::main(&agent).with_servers(["mcp__db__".to_owned()]);
            let has: Vec<&str> = ALL.iter().filter(|tool| access.has(tool)).copied().collect();
            assert_eq!(has.join(" "), expected, "{tools:?} {disallowed:?}");
        }
    }

    #[test]
    fn entries_that_do_not_mean_what_they_seem_to_are_told() {
        let texts = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        for (tools, disallowed, expected) in [
            (
                &["Read", "Agent(a, b)", "mcp__x__*"][..],
                &["Write", "TodoWrite", "mcp__x", "LSP"][..],
                &[][..],
            ),
            (&["Bash(git *)"], &[], &["`Bash(git *)` gives the whole tool `Bash`"]),
            (&[], &["Writ"], &["there is no tool `Writ`"]),
            (&[], &["Bash(rm *)"], &["`Bash(rm *)` takes the whole tool `Bash` away"]),
        ] {
            let notes = odd_entries(Some(&texts(tools)), &texts(disallowed));
            assert_eq!(notes.len(), expected.len(), "{notes:?}");
            assert!(notes.iter().zip(expected).all(|(note, part)| note.contains(part)), "{notes:?}");
        }
    }

    #[test]
    fn entries_that_name_nothing_and_types_are_found() {
        let agent = agent(Some(&["Read", "Reed", "Agent(a, b)", "mcp__x"]), &[]);
        let access = ToolAccess::main(&agent);
        assert_eq!(access.unknown_entries(ALL.iter().copied()), ["Reed", "mcp__x"]);
        assert_eq!(access.spawnable(), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert!(access.has("Agent"));
    }
}
