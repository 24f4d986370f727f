//! Permission rules: `Tool` or `Tool(specifier)`.

use std::fmt;

use crate::settings::Scope;

/// Where a rule came from, for explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSource {
    /// `--allowedTools` or `--disallowedTools`.
    CommandLine,
    /// Granted while the session ran.
    Session,
    /// A settings file.
    Settings(Scope),
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Session => f.write_str("session"),
            Self::Settings(scope) => write!(f, "{scope} settings"),
        }
    }
}

/// One rule, as text and as meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    tool: String,
    command: Option<String>,
    /// Where it came from.
    pub source: RuleSource,
}

/// Why a text is not a rule we can hold to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// It does not follow the grammar.
    #[error("Not a permission rule: `{0}` (write `Tool` or `Tool(specifier)`)")]
    Syntax(String),
    /// It asks for something this version cannot check.
    #[error("This version cannot check specifiers of `{tool}` yet: `{rule}` (use the tool's bare name)")]
    Unsupported {
        /// The rule.
        rule: String,
        /// Its tool.
        tool: String,
    },
}

impl Rule {
    /// Reads a rule.
    pub fn parse(text: &str, source: RuleSource) -> Result<Self, BadRule> {
        let text = text.trim();
        let syntax = || BadRule::Syntax(text.to_owned());
        let (tool, spec) = match text.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(syntax)?)),
            None => (text, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(syntax());
        }
        let command = match spec {
            None | Some("*") => None,
            Some(spec) if tool == "Bash" && !spec.trim().is_empty() => Some(spec.trim().to_owned()),
            Some(_) => {
                return Err(BadRule::Unsupported { rule: text.to_owned(), tool: tool.to_owned() });
            }
        };
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), command, source })
    }

    /// Returns the rule as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true when the rule speaks of the tool as a whole.
    pub fn is_bare(&self) -> bool {
        self.command.is_none()
    }

    /// Returns true when the rule names this tool (an MCP server's name stands for all its tools).
    pub fn names(&self, tool: &str) -> bool {
        self.tool == tool
            || (self.tool.starts_with("mcp__")
                && tool.strip_prefix(self.tool.as_str()).is_some_and(|rest| rest.starts_with("__")))
    }

    /// Returns true when the rule's command pattern matches a command; a bare rule matches every command.
    pub fn matches_command(&self, command: &str) -> bool {
        self.command.as_deref().is_none_or(|pattern| matches_pattern(pattern, command.trim()))
    }

    /// Returns true when the pattern names one command and nothing else.
    pub fn is_exact(&self) -> bool {
        self.command.as_deref().is_some_and(|pattern| !pattern.contains('*'))
    }
}

/// Matches a command pattern: `prefix:*` and `prefix *` mean the prefix alone or followed by a space; any
/// other `*` stands for any run of characters.
fn matches_pattern(pattern: &str, command: &str) -> bool {
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match prefix {
        Some(prefix) if !prefix.contains('*') => {
            command.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        }
        Some(prefix) => glob(prefix, command) || glob(&format!("{prefix} *"), command),
        None => glob(pattern, command),
    }
}

/// Matches `*` against any run of characters, in linear space and without backtracking beyond the last star.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Splits a list of rules at commas and spaces outside parentheses.
pub fn parse_list(text: &str, source: RuleSource) -> Vec<Result<Rule, BadRule>> {
    let mut depth = 0usize;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    })
    .filter(|part| !part.trim().is_empty())
    .map(|part| Rule::parse(part, source))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::parse(text, RuleSource::CommandLine).unwrap()
    }

    #[test]
    fn command_patterns() {
        for (pattern, command, expected) in [
            ("Bash(ls)", "ls", true),
            ("Bash(ls)", "ls -la", false),
            ("Bash(ls *)", "ls", true),
            ("Bash(ls *)", "ls -la", true),
            ("Bash(ls *)", "lsof", false),
            ("Bash(ls:*)", "ls -la", true),
            ("Bash(ls:*)", "lsof", false),
            ("Bash(ls*)", "lsof", true),
            ("Bash(npm run *:prod)", "npm run build:prod", true),
            ("Bash(npm run *:prod)", "npm run build:dev", false),
            ("Bash(git * main)", "git push origin main", true),
            ("Bash(* --version)", "node --version", true),
            ("Bash(a*b*c)", "a1b2c", true),
            ("Bash(a*b*c)", "a1c", false),
            ("Bash(*)", "anything at all", true),
            ("Bash", "anything at all", true),
        ] {
            assert_eq!(rule(pattern).matches_command(command), expected, "{pattern} ~ {command}");
        }
    }

    #[test]
    fn names_of_tools_and_servers() {
        for (pattern, tool, expected) in [
            ("Read", "Read", true),
            ("Read", "ReadMore", false),
            ("mcp__srv", "mcp__srv__tool", true),
            ("mcp__srv", "mcp__srv2__tool", false),
            ("mcp__srv__tool", "mcp__srv__tool", true),
        ] {
            assert_eq!(rule(pattern).names(tool), expected, "{pattern} ~ {tool}");
        }
    }

    #[test]
    fn lists_split_outside_parentheses() {
        let texts = |list: &str| {
            parse_list(list, RuleSource::CommandLine)
                .into_iter()
                .map(|rule| rule.map(|rule| rule.text().to_owned()).unwrap_or_else(|bad| bad.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(texts("Read,Bash(git log, x) Edit"), ["Read", "Bash(git log, x)", "Edit"]);
        assert_eq!(texts(""), [""; 0]);
        assert!(texts("Read(./x)")[0].contains("cannot check"));
        assert!(texts("Bash(ls")[0].contains("Not a permission rule"));
    }
}
