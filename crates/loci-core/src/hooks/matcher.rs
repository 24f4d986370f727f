//! What a group of handlers is compared with: nothing, exact names, or a pattern.

use regex::Regex;

use super::HookEvent;
use crate::permission::spelled_tool;

/// Which calls, sources or reasons a group of handlers is for.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// All.
    All,
    /// Those of these names.
    Names(Vec<String>),
    /// Those in which the pattern is found.
    Pattern(Box<Regex>),
    /// The same, for patterns that look around or refer back, as those of JavaScript may.
    LookAround {
        /// The pattern.
        pattern: Box<fancy_regex::Regex>,
        /// Whether a search that takes too long counts as found.
        when_too_long: bool,
    },
    /// It cannot be read; whether it matches depends on what passing over it would let through.
    Unreadable {
        /// Whether it is taken to match everything.
        matches: bool,
    },
}

/// A pattern that is larger than this, compiled, is refused.
const SIZE_LIMIT: usize = 1 << 20;
/// How many steps a search may take back.
const BACKTRACK_LIMIT: usize = 100_000;

impl Matcher {
    /// Reads a matcher for an event; the error says what is wrong with it, and comes with what it is taken for.
    pub fn parse(event: HookEvent, text: &str) -> (Self, Option<String>) {
        if !event.facts().has_matcher || matches!(text, "" | "*") {
            return (Self::All, None);
        }
        if is_list(event, text) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return (Self::Names(names.map(str::to_owned).collect()), None);
        }
        match regex::RegexBuilder::new(text).size_limit(SIZE_LIMIT).build() {
            Ok(pattern) => (Self::Pattern(Box::new(pattern)), None),
            Err(error) => {
                let matches = event.can_refuse();
                if let Ok(pattern) = fancy_regex::RegexBuilder::new(text)
                    .delegate_size_limit(SIZE_LIMIT)
                    .backtrack_limit(BACKTRACK_LIMIT)
                    .build()
                {
                    let pattern = Box::new(pattern);
                    return (Self::LookAround { pattern, when_too_long: matches }, None);
                }
                let taken = if matches { "it is taken to match everything" } else { "it matches nothing" };
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").trim();
                (Self::Unreadable { matches }, Some(format!("not a pattern: `{text}` ({why}); {taken}")))
            }
        }
    }

    /// Tells whether it matches; an event that has nothing to compare matches everything.
    pub fn matches(&self, subject: Option<&str>) -> bool {
        let Some(subject) = subject else { return true };
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern(pattern) => pattern.is_match(subject),
            Self::LookAround { pattern, when_too_long } => {
                pattern.is_match(subject).unwrap_or(*when_too_long)
            }
            Self::Unreadable { matches } => *matches,
        }
    }

    /// Tells whether it matches a call of a tool, by either of its names where it has two.
    pub fn matches_tool(&self, tool: &str) -> bool {
        // One that leaves a name out (`^(?!Agent$)`) would be met by the other name.
        let may_exclude = |text: &str| text.contains("(?!") || text.contains("(?<!");
        self.matches(Some(tool))
            || match (self, earlier_name(tool)) {
                (Self::LookAround { pattern, .. }, Some(_)) if may_exclude(pattern.as_str()) => false,
                (_, Some(other)) => self.matches(Some(other)),
                (_, None) => false,
            }
    }
}

/// Returns the name that a tool had before, which most matchers still say.
fn earlier_name(tool: &str) -> Option<&'static str> {
    match tool {
        "Agent" => Some("Task"),
        "Task" => Some("Agent"),
        _ => None,
    }
}

/// Returns what is odd about a matcher that is compared with tools' names, and would match none of them for all its life.
pub(super) fn odd_tool_names(text: &str) -> Option<String> {
    let is_of_server = |name: &str| name.contains(['_', '-']);
    let names = || text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
    if is_list(HookEvent::PreToolUse, text) {
        let unknown = names().find(|name| !is_of_server(name) && spelled_tool(name) != Some(*name))?;
        return Some(match spelled_tool(unknown) {
            Some(meant) => format!(
                "no tool is called `{unknown}`; `{meant}` is (names are told apart by capitals), and is not matched"
            ),
            None => format!("no tool is called `{unknown}`, so it matches none"),
        });
    }
    let (name, rest) = text.split_once('(')?;
    let is_rule =
        spelled_tool(name.trim()).is_some() && rest.contains([' ', ':', '/']) && rest.ends_with(')');
    is_rule
        .then(|| format!("a matcher names tools, and `{text}` is a permission rule, which belongs into `if`"))
}

/// Returns true for a text that can be nothing but names.
fn is_list(event: HookEvent, text: &str) -> bool {
    let is_narrow = matches!(event, HookEvent::FileChanged | HookEvent::StopFailure);
    text.chars().all(|c| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '|') || (!is_narrow && matches!(c, ' ' | ',' | '-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: HookEvent, matcher: &str, subject: &str, expected: bool) {
        let (parsed, problem) = Matcher::parse(event, matcher);
        assert!(problem.is_none(), "{matcher}: {problem:?}");
        assert_eq!(parsed.matches(Some(subject)), expected, "{matcher} ~ {subject}");
    }

    #[test]
    fn matchers_that_match_no_tool_are_odd_and_others_are_not() {
        for (matcher, expected) in [
            ("bash", true),
            ("Edit|write", true),
            ("Bsh", true),
            ("Bash(rm:*)", true),
            ("Bash(git push *)", true),
            ("Edit(src/**)", true),
            ("Bash", false),
            ("Edit|Write, MultiEdit", false),
            ("Task", false),
            ("mcp__memory__get", false),
            ("my_tool", false),
            ("Task(Create|Update)", false),
            ("Notebook.*", false),
            ("^(?!Read$).*", false),
        ] {
            assert_eq!(odd_tool_names(matcher).is_some(), expected, "{matcher}");
        }
    }

    #[test]
    fn names_are_exact_and_anything_else_is_searched_for() {
        use HookEvent::{FileChanged, Notification, PreToolUse, Stop, StopFailure, UserPromptSubmit};
        for (event, matcher, subject, expected) in [
            (PreToolUse, "", "Bash", true),
            (PreToolUse, "*", "Bash", true),
            (PreToolUse, "Bash", "Bash", true),
            (PreToolUse, "Ba", "Bash", false),
            (PreToolUse, "bash", "Bash", false),
            (PreToolUse, "Ba.", "Bash", true),
            (PreToolUse, "^Ba.$", "Bash", false),
            (PreToolUse, "Edit|Write", "Write", true),
            (PreToolUse, "Edit, Write", "Write", true),
            (PreToolUse, "Edit , Write|", "Write", true),
            (PreToolUse, "Edit|Write", "MultiEdit", false),
            (PreToolUse, "mcp__memory", "mcp__memory__get", false),
            (PreToolUse, "mcp__memory__.*", "mcp__memory__get", true),
            (PreToolUse, "mcp__my-server__get", "mcp__my-server__get", true),
            (PreToolUse, "Notebook.*", "NotebookEdit", true),
            (PreToolUse, ".*", "Anything", true),
            (PreToolUse, "^(?!Read$).*", "Read", false),
            (PreToolUse, "^(?!Read$).*", "Bash", true),
            (PreToolUse, r"^(a+)\1$", "aaaa", true),
            (Notification, "idle_prompt", "idle_prompt", true),
            (FileChanged, "a.env", "a.env", true),
            (FileChanged, "a.env", "xaxenvx", true),
            (FileChanged, "env|lock", "lock", true),
            (StopFailure, "rate_limit|overloaded", "overloaded", true),
            (StopFailure, "rate_limit, overloaded", "rate_limit", false),
            // No matcher is looked at where there is nothing to compare it with.
            (Stop, "Bash", "x", true),
            (UserPromptSubmit, "(", "x", true),
        ] {
            check(event, matcher, subject, expected);
        }
    }

    #[test]
    fn task_and_agent_are_one_tool_for_matchers() {
        for (matcher, tool, expected) in [
            ("Task", "Agent", true),
            ("Agent", "Agent", true),
            ("Agent", "Task", true),
            ("Bash|Task", "Agent", true),
            ("^Task$", "Agent", true),
            ("Task.*", "Agent", true),
            ("TaskCreate", "Agent", false),
            ("Task", "TaskCreate", false),
            ("Task", "Bash", false),
            ("^(?!Agent$).*", "Agent", false),
            ("^(?!Bash$).*", "Agent", true),
            ("^(?=Task)", "Agent", true),
        ] {
            let (parsed, _) = Matcher::parse(HookEvent::PreToolUse, matcher);
            assert_eq!(parsed.matches_tool(tool), expected, "{matcher} ~ {tool}");
        }
    }

    #[test]
    fn unreadable_matcher_is_reported_and_fails_closed_where_a_handler_could_refuse() {
        for (event, matches) in [(HookEvent::PreToolUse, true), (HookEvent::PostToolUse, false)] {
            for text in ["(", "^(?!Read", "[z-a]"] {
                let (matcher, problem) = Matcher::parse(event, text);
                assert!(problem.is_some_and(|problem| problem.contains(text)), "{text}");
                assert_eq!(matcher.matches(Some("Bash")), matches, "{text}");
            }
        }
    }
}
