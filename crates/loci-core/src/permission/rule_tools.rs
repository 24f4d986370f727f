//! The tools that permission rules know by name, in one table.
//!
//! Rules are a shared format: they are parsed before any tool exists, and a rule for a tool means the same in a session
//! that lacks the tool, or has it under another roof. So what a specifier means is part of the rule language and no
//! fact of a tool's descriptor. Everything else about a call is judged by its effects.

/// Rules for this tool govern which commands run.
pub(super) const BASH: &str = "Bash";
/// Rules for this tool govern what is read.
pub(super) const READ: &str = "Read";
/// Rules for this tool govern what is written.
pub(super) const EDIT: &str = "Edit";

/// Rules for this name, which is no tool's, govern where a person may move the session (`/cd`).
pub(super) const CD: &str = "Cd";

/// What stands in the parentheses of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Specifier {
    /// A pattern of commands.
    Command,
    /// A pattern of paths.
    Path,
    /// A pattern of paths; one that allows is not consulted: rules for this other tool are.
    Instead(&'static str),
    /// `domain:` and a pattern of hosts.
    Host,
    /// An agent's type or a skill's name.
    Name,
}

const SKILL: &str = "Skill";

const SPECIFIERS: [(&str, Specifier); 12] = [
    ("Agent", Specifier::Name),
    (BASH, Specifier::Command),
    (CD, Specifier::Path),
    (EDIT, Specifier::Path),
    ("Glob", Specifier::Instead(READ)),
    ("Grep", Specifier::Instead(READ)),
    ("MultiEdit", Specifier::Instead(EDIT)),
    ("NotebookEdit", Specifier::Instead(EDIT)),
    (READ, Specifier::Path),
    (SKILL, Specifier::Name),
    ("WebFetch", Specifier::Host),
    ("Write", Specifier::Instead(EDIT)),
];

/// Further tools, of loci and of the reference, today's and earlier ones: rules may be about them.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "AgentOutputTool", "Artifact", "AskUserQuestion", "BashOutput", "CronCreate", "CronDelete", "CronList", "EndConversation",
    "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "KillBash", "KillShell", "LS", "LSP", "ListAgents",
    "ListMcpResourcesTool", "Monitor", "NotebookRead", "PowerShell", "PushNotification", "ReadMcpResourceTool", "Recall",
    "RemoteTrigger", "ReportFindings", "ScheduleWakeup", "SendMessage", "SendUserFile", "ShareOnboardingGuide", "SlashCommand",
    "StructuredOutput", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TeamCreate",
    "TeamDelete", "TodoRead", "TodoWrite", "ToolSearch", "WaitForMcpServers", "WebSearch", "Workflow",
];

/// Returns the tool that a name is another spelling of; the name itself where there is a tool of that name.
pub(crate) fn spelled(name: &str) -> Option<&'static str> {
    let names = || SPECIFIERS.iter().map(|(name, _)| *name).chain(OTHERS.iter().copied());
    names().find(|tool| *tool == name).or_else(|| names().find(|tool| tool.eq_ignore_ascii_case(name)))
}

/// Returns the one name of a tool that has two.
pub(super) fn canonical(tool: &str) -> &str {
    if tool == "Task" { "Agent" } else { tool }
}

/// Returns the tool whose rules govern the calls of another, too: what a monitor runs is a command like any other.
pub(super) fn governing(tool: &str) -> &str {
    if tool == "Monitor" { BASH } else { tool }
}

/// Returns what a specifier for a tool means; `None` when it takes none.
pub(super) fn specifier(tool: &str) -> Option<Specifier> {
    let tool = canonical(tool);
    SPECIFIERS.iter().find(|(name, _)| *name == tool).map(|(_, specifier)| *specifier)
}

/// Returns true for the tool whose `Name` is a skill's, and not an agent's type.
pub(super) fn is_skill(tool: &str) -> bool {
    tool == SKILL
}

/// Returns true when a tool reads the one file that it names; others read a directory with all that is in it.
pub(super) fn reads_one_file(tool: &str) -> bool {
    tool == READ
}

/// Returns true when a `Read` rule that denies keeps a tool from writing too.
pub(super) fn is_kept_from_writing_by_read_rules(tool: &str) -> bool {
    tool != "NotebookEdit"
}

/// Returns true when only a rule for the whole tool can grant its calls: nobody can tell them apart by what they do.
pub(super) fn is_granted_whole(tool: &str) -> bool {
    tool.starts_with("mcp__") || tool == "WebSearch"
}
