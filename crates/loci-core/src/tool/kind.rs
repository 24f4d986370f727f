//! What kind of thing a call does, by the tool's name: the one list for all who show or count calls.
//!
//! Front ends and accounts meet tools by name alone, in transcripts of other programs and other versions too, so this is
//! a table of names and no field of a descriptor. Nothing is permitted by it: permissions look at what a call would do.

use serde_json::Value;

/// What kind of thing a tool's calls do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    /// Looks at something that it names.
    Read,
    /// Looks for something.
    Search,
    /// Fetches something of the web.
    Fetch,
    /// Changes a file.
    Edit,
    /// Runs a command.
    Execute,
    /// Sends out an agent.
    Delegate,
    /// Changes what the session may do.
    Mode,
    /// Anything else, such as a tool of an MCP server.
    #[default]
    Other,
}

/// A tool that people see often enough for words of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTool {
    /// Its name.
    pub name: &'static str,
    /// What its calls do.
    pub kind: ToolKind,
    /// What is said before the subject of a call, in an order: `Read`, `Find`.
    pub verb: &'static str,
    /// The argument that a call is about; none if its name says it all.
    pub subject: Option<&'static str>,
}

const KNOWN: [KnownTool; 24] = [
    known("Read", ToolKind::Read, "Read", Some("file_path")),
    known("NotebookRead", ToolKind::Read, "Read", Some("notebook_path")),
    known("LS", ToolKind::Read, "List", Some("path")),
    known("ReadMcpResourceTool", ToolKind::Read, "Read", Some("uri")),
    known("TaskOutput", ToolKind::Read, "Read the output of", Some("task_id")),
    known("TaskGet", ToolKind::Read, "Look at the task", Some("taskId")),
    known("TaskList", ToolKind::Read, "Look at the tasks", None),
    known("Glob", ToolKind::Search, "Find", Some("pattern")),
    known("Grep", ToolKind::Search, "Search", Some("pattern")),
    known("Recall", ToolKind::Search, "Recall", Some("query")),
    known("ToolSearch", ToolKind::Search, "Look for tools:", Some("query")),
    known("WebFetch", ToolKind::Fetch, "Fetch", Some("url")),
    known("WebSearch", ToolKind::Fetch, "Search the web:", Some("query")),
    known("Edit", ToolKind::Edit, "Edit", Some("file_path")),
    known("MultiEdit", ToolKind::Edit, "Edit", Some("file_path")),
    known("Write", ToolKind::Edit, "Write", Some("file_path")),
    known("NotebookEdit", ToolKind::Edit, "Edit", Some("notebook_path")),
    known("Bash", ToolKind::Execute, "Run", Some("command")),
    known("PowerShell", ToolKind::Execute, "Run", Some("command")),
    known("Monitor", ToolKind::Execute, "Watch", Some("command")),
    known("Agent", ToolKind::Delegate, "Send out:", Some("description")),
    known("Task", ToolKind::Delegate, "Send out:", Some("description")),
    known("EnterPlanMode", ToolKind::Mode, "Make a plan", None),
    known("ExitPlanMode", ToolKind::Mode, "Approve the plan", None),
];

const fn known(
    name: &'static str,
    kind: ToolKind,
    verb: &'static str,
    subject: Option<&'static str>,
) -> KnownTool {
    KnownTool { name, kind, verb, subject }
}

impl KnownTool {
    /// Finds a tool by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|tool| tool.name == name)
    }

    /// Returns what a call is about: the argument that says it, if the call has it.
    pub fn subject_of<'a>(&self, input: &'a Value) -> Option<&'a str> {
        input.get(self.subject?)?.as_str().filter(|text| !text.trim().is_empty())
    }
}

impl ToolKind {
    /// Returns the kind of a tool's calls by its name.
    pub fn of_tool(name: &str) -> Self {
        KnownTool::find(name).map_or(Self::Other, |tool| tool.kind)
    }

    /// Tells whether calls of this kind only look, so that several may be shown as one.
    pub fn only_looks(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Fetch)
    }

    /// Tells whether the subject of a call is a path.
    pub fn is_about_file(self) -> bool {
        matches!(self, Self::Read | Self::Edit)
    }

    /// Returns what somebody is doing who makes such a call, if there is a word for it.
    pub fn doing(self) -> Option<&'static str> {
        match self {
            Self::Read => Some("Reading"),
            Self::Search => Some("Searching"),
            Self::Edit => Some("Changing"),
            Self::Execute => Some("Running"),
            Self::Fetch | Self::Delegate | Self::Mode | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_have_a_kind_and_a_subject_by_the_name_of_their_tool() {
        for (tool, input, kind, subject) in [
            ("Read", json!({"file_path": "/a"}), ToolKind::Read, Some("/a")),
            ("MultiEdit", json!({"file_path": "/a"}), ToolKind::Edit, Some("/a")),
            ("Bash", json!({"command": " "}), ToolKind::Execute, None),
            ("Bash", json!({"command": "ls"}), ToolKind::Execute, Some("ls")),
            ("TaskList", json!({}), ToolKind::Read, None),
            ("mcp__server__tool", json!({"path": "/a"}), ToolKind::Other, None),
        ] {
            assert_eq!(ToolKind::of_tool(tool), kind, "{tool}");
            assert_eq!(KnownTool::find(tool).and_then(|it| it.subject_of(&input)), subject, "{tool}");
        }
    }

    #[test]
    fn no_tool_is_known_twice() {
        for (n, tool) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..n].iter().all(|it| it.name != tool.name), "{}", tool.name);
        }
    }
}
