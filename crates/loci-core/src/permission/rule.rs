//! Permission rules: `Tool` or `Tool(specifier)`, as text and as meaning.
//!
//! A rule that cannot be read is reported. One that would allow is then ignored; one that would restrict is held to
//! as broadly as it can be read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::glob::{self, CommandPattern};
use super::host::HostPattern;
use super::path_pattern::PathPattern;
use super::rule_tools::{self, Specifier};
use loci_settings::Scope;

/// What a rule does to the calls it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleList {
    /// They run.
    Allow,
    /// They are asked about.
    Ask,
    /// They do not run.
    Deny,
}

impl RuleList {
    /// All lists, in the order settings have them.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Returns the name used in settings and in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Where a rule came from, for explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSource {
    /// `--allowedTools` or `--disallowedTools`.
    CommandLine,
    /// Granted while the session ran.
    Session,
    /// Given while the session ran, and saved in a settings file.
    Saved(Scope),
    /// A settings file.
    Settings(Scope),
}

impl RuleSource {
    /// Tells whether somebody gave the rule while the session ran.
    pub fn is_given(self) -> bool {
        matches!(self, Self::Session | Self::Saved(_))
    }
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Session => f.write_str("session"),
            Self::Settings(scope) | Self::Saved(scope) => write!(f, "{scope} settings"),
        }
    }
}

/// Where a rule was written: its scope, and the directory its `/path` patterns start at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOrigin {
    /// The scope.
    pub source: RuleSource,
    /// The project's root for project settings, `~/.claude` for user settings, the directory of a `--settings`
    /// file, and else where the session started.
    pub dir: PathBuf,
    /// The file and the line, where there is one.
    pub place: Option<RulePlace>,
}

/// The file and the line a rule stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePlace {
    /// The file as people know it.
    pub file: Arc<str>,
    /// The line, counted from one.
    pub line: usize,
}

impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl RuleOrigin {
    /// Makes an origin.
    pub fn new(source: RuleSource, dir: impl Into<PathBuf>) -> Self {
        Self { source, dir: dir.into(), place: None }
    }

    /// Adds the file and the line.
    pub fn at(self, file: Arc<str>, line: usize) -> Self {
        Self { place: Some(RulePlace { file, line }), ..self }
    }
}

/// One rule. Copies are cheap. Two rules are the same when they say the same in the same scope, on whatever line.
#[derive(Debug, Clone)]
pub struct Rule(Arc<RuleBody>);

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        let said = |rule: &Self| (rule.0.list, rule.0.source);
        said(self) == said(other) && self.0.text == other.0.text && self.0.spec == other.0.spec
    }
}

impl Eq for Rule {}

#[derive(Debug)]
struct RuleBody {
    text: String,
    tool: String,
    /// Whether the name is a pattern, or that of an MCP server, which stands for all its tools.
    is_broad: bool,
    spec: Spec,
    parameter: Option<Parameter>,
    list: RuleList,
    source: RuleSource,
    place: Option<RulePlace>,
}

/// What a rule says about a call of its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spec {
    /// Every call.
    Any,
    /// Those that run a matching command.
    Command(CommandPattern),
    /// Those that read (`Read`) or write (`Edit`) a matching path, by whichever tool.
    Path(PathPattern),
    /// Those that contact a matching host.
    Host(HostPattern),
    /// Those of a matching agent or skill.
    Name(String),
    /// None: the rule only speaks of a parameter, or is accepted without effect.
    Nothing,
}

/// A parameter a restricting rule looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) value: String,
}

/// Why a text is not a rule as it stands, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// It does not follow the grammar.
    #[error("Not a permission rule: `{0}` (write `Tool` or `Tool(specifier)`); ignored")]
    Syntax(String),
    /// It does not follow the grammar, and restricts.
    #[error(
        "Not a permission rule: `{0}` (write `Tool` or `Tool(specifier)`); enforced for every call it may mean"
    )]
    Broad(String),
    /// It allows by a wildcard where that is not possible.
    #[error("An allow rule may have `*` in a tool's name only behind `mcp__server__`: `{0}`; ignored")]
    AllowsByGlob(String),
    /// It allows by what stands in parentheses behind the name of a server's tool.
    #[error(
        "Allow rules for tools of MCP servers take no parentheses, and this one grants nothing: `{rule}` (write `{instead}`)"
    )]
    ServerSpecifier {
        /// The rule.
        rule: String,
        /// What allows all calls.
        instead: String,
    },
    /// It is about a parameter that has rules of its own kind.
    #[error("`{parameter}` is matched by the tool's own specifier, not as a parameter: `{rule}`; ignored")]
    Primary {
        /// The rule.
        rule: String,
        /// The parameter.
        parameter: String,
    },
    /// It allows, and is never looked at.
    #[error(
        "Allow rules with a path for `{tool}` are never consulted: `{rule}` (write `{instead}(…)` instead)"
    )]
    NotConsulted {
        /// The rule.
        rule: String,
        /// Its tool.
        tool: String,
        /// The tool whose rules are.
        instead: &'static str,
    },
    /// It restricts a tool whose name is written in other letters.
    #[error(
        "`{rule}`: no tool is called `{tool}`; enforced for `{meant}` (names are told apart by capitals)"
    )]
    Respelled {
        /// The rule.
        rule: String,
        /// The name as written.
        tool: String,
        /// The tool of that name.
        meant: &'static str,
    },
    /// It restricts what nobody knows.
    #[error("`{rule}`: no tool is called `{tool}`, so nothing is restricted by it")]
    UnknownTool {
        /// The rule.
        rule: String,
        /// The name as written.
        tool: String,
    },
    /// It is several rules, and restricts.
    #[error("`{0}` is several rules; each is enforced (write a text for each)")]
    Several(String),
    /// It restricts by something its tool does not have.
    #[error("`{tool}` takes no specifier like this: `{rule}`")]
    NoSpecifier {
        /// The rule.
        rule: String,
        /// Its tool.
        tool: String,
    },
}

/// What the names of tools of MCP servers begin with.
const SERVER_PREFIX: &str = "mcp__";

/// Parameters that a tool's own specifier is about.
const PRIMARY: &[&str] = &["command", "file_path", "path", "notebook_path", "url"];

impl Rule {
    /// Reads a rule. There may be a rule and a complaint about it.
    pub fn parse(text: &str, list: RuleList, origin: &RuleOrigin) -> (Option<Self>, Option<BadRule>) {
        let text = text.trim();
        let body = |tool: &str, spec, parameter| {
            Some(Self(Arc::new(RuleBody {
                text: text.to_owned(),
                tool: tool.to_owned(),
                is_broad: tool.contains('*') || tool.starts_with(SERVER_PREFIX),
                spec,
                parameter,
                list,
                source: origin.source,
                place: origin.place.clone(),
            })))
        };
        let Some((tool, spec)) = split(text) else {
            return match (list, broad_name(text)) {
                (RuleList::Ask | RuleList::Deny, Some(tool)) => {
                    (body(&tool, Spec::Any, None), Some(BadRule::Broad(text.to_owned())))
                }
                _ => (None, Some(BadRule::Syntax(text.to_owned()))),
            };
        };
        let (tool, odd_name) = named(text, tool, list);
        if list == RuleList::Allow && tool.contains('*') && !is_server_glob(tool) {
            return (None, Some(BadRule::AllowsByGlob(text.to_owned())));
        }
        if list == RuleList::Allow && tool.starts_with(SERVER_PREFIX) && text.contains('(') {
            let bad = BadRule::ServerSpecifier { rule: text.to_owned(), instead: tool.to_owned() };
            return (None, Some(bad));
        }
        let Some(spec) = spec else {
            return (body(tool, Spec::Any, None), odd_name);
        };
        let parameter = (list != RuleList::Allow).then(|| parameter(spec)).flatten();
        if let Some(primary) = parameter.as_ref().filter(|it| PRIMARY.contains(&it.name.as_str())) {
            let bad = BadRule::Primary { rule: text.to_owned(), parameter: primary.name.clone() };
            return (None, Some(bad));
        }
        let (spec, complaint) = specifier(text, tool, spec, parameter.is_some(), list, &origin.dir);
        (body(tool, spec, parameter), odd_name.or(complaint))
    }

    /// Returns the rule as written.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Tells whether another rule says the same, wherever either comes from.
    pub fn says_same(&self, other: &Self) -> bool {
        self.0.list == other.0.list && self.0.text == other.0.text && self.0.spec == other.0.spec
    }

    /// Returns the file and the line it stands in.
    pub fn place(&self) -> Option<&RulePlace> {
        self.0.place.as_ref()
    }

    /// Returns where it came from.
    pub fn source(&self) -> RuleSource {
        self.0.source
    }

    /// Returns what it does to the calls it matches.
    pub fn list(&self) -> RuleList {
        self.0.list
    }

    /// Returns true when the rule speaks of the tool as a whole.
    pub fn is_bare(&self) -> bool {
        self.0.spec == Spec::Any
    }

    /// Returns true when the rule names this tool. An MCP server's name stands for all its tools, and `Task` is the
    /// older name of `Agent`.
    pub fn names(&self, tool: &str) -> bool {
        let own = rule_tools::canonical(&self.0.tool);
        let tool = rule_tools::canonical(tool);
        if !self.0.is_broad {
            return own == tool || own == rule_tools::governing(tool);
        }
        glob::matches(own, tool)
            || glob::matches(own, rule_tools::governing(tool))
            || tool.strip_prefix(own).is_some_and(|rest| rest.starts_with("__"))
    }

    /// Returns true when the rule names the tool of a call. Where it is known which MCP server answers, a rule that allows
    /// speaks of that server by its name: two names may read alike, and one may begin like another.
    pub(super) fn names_call(&self, tool: &str, server: Option<&str>) -> bool {
        let own = rule_tools::canonical(&self.0.tool);
        let behind = own.strip_prefix(SERVER_PREFIX).filter(|_| tool.starts_with(SERVER_PREFIX));
        let Some(own_name) = behind else { return self.names(tool) };
        let is_of = |server: &str| server_names(server).iter().any(|name| name == own_name);
        if self.0.list != RuleList::Allow {
            return self.names(tool) || server.is_some_and(is_of);
        }
        let is_tool = own == tool;
        match server {
            Some(server) if own.contains('*') => {
                let begins = |name: &String| {
                    own_name.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with("__"))
                };
                server_names(server).iter().any(begins) && glob::matches(own, tool)
            }
            Some(server) => is_tool || is_of(server),
            None if own.contains('*') => glob::matches(own, tool),
            // What stands behind the first separator is a tool, and not the rest of a server's name.
            None => is_tool || (!own_name.contains("__") && self.names(tool)),
        }
    }

    pub(super) fn tool(&self) -> &str {
        &self.0.tool
    }

    /// Returns `Read` or `Edit`, by which of them a rule with a path would govern: `Write` speaks of what is written.
    pub(super) fn governed_paths(&self) -> &str {
        match rule_tools::specifier(&self.0.tool) {
            Some(Specifier::Instead(other)) => other,
            _ => &self.0.tool,
        }
    }

    pub(super) fn path_pattern(&self) -> Option<&PathPattern> {
        match &self.0.spec {
            Spec::Path(pattern) => Some(pattern),
            Spec::Any | Spec::Command(_) | Spec::Host(_) | Spec::Name(_) | Spec::Nothing => None,
        }
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.0.spec
    }

    pub(super) fn parameter(&self) -> Option<&Parameter> {
        self.0.parameter.as_ref()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Some(place) => write!(f, "`{}` ({}, {place})", self.text(), self.source()),
            None => write!(f, "`{}` ({})", self.text(), self.source()),
        }
    }
}

/// Returns how rules may spell the name of an MCP server: as it is configured, as the model's provider takes it, and as it
/// stands in names of tools.
fn server_names(server: &str) -> [String; 3] {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fitting: String = server.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let mut joined = String::with_capacity(fitting.len());
    for c in fitting.chars() {
        if c != '_' || !joined.ends_with('_') {
            joined.push(c);
        }
    }
    [server.to_owned(), fitting, joined]
}

/// Takes a rule apart into its tool and its specifier; `Tool(*)` and `Tool()` have none.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    let (tool, spec) = match text.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?.trim())),
        None => (text, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '*' | '@' | '/');
    if tool.is_empty() || !tool.chars().all(is_name) {
        return None;
    }
    match spec {
        Some("") => None,
        None | Some("*") => Some((tool, None)),
        Some(spec) => Some((tool, Some(spec))),
    }
}

/// Returns the tool that a rule is about. To restrict, a name in other letters says clearly enough what is meant; tools of
/// servers, and patterns, have names that nobody knows before.
fn named<'t>(rule: &str, tool: &'t str, list: RuleList) -> (&'t str, Option<BadRule>) {
    let may_be_any = list == RuleList::Allow || tool.contains(['_', '*']);
    match rule_tools::spelled(tool).filter(|meant| *meant != tool) {
        _ if may_be_any || rule_tools::spelled(tool) == Some(tool) => (tool, None),
        Some(meant) => {
            (meant, Some(BadRule::Respelled { rule: rule.to_owned(), tool: tool.to_owned(), meant }))
        }
        None => (tool, Some(BadRule::UnknownTool { rule: rule.to_owned(), tool: tool.to_owned() })),
    }
}

/// Returns the broadest tool name a broken rule may mean.
fn broad_name(text: &str) -> Option<String> {
    let name = text.split('(').next().unwrap_or_default().trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
    let broad: String = name.chars().map(|c| if is_name(c) { c } else { '*' }).collect();
    broad.contains(|c: char| c.is_ascii_alphanumeric()).then_some(broad)
}

/// `mcp__server__…` with the wildcard behind the server's name.
fn is_server_glob(tool: &str) -> bool {
    let server = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    server.is_some_and(|(server, _)| !server.is_empty() && !server.contains('*'))
}

/// Reads `name:value` with an identifier for a name.
fn parameter(spec: &str) -> Option<Parameter> {
    let (name, value) = spec.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    let is_identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_identifier && !value.is_empty()).then(|| Parameter { name: name.to_owned(), value: value.to_owned() })
}

/// Reads a specifier by the tool it is for.
fn specifier(
    rule: &str,
    tool: &str,
    spec: &str,
    is_parameter: bool,
    list: RuleList,
    dir: &Path,
) -> (Spec, Option<BadRule>) {
    let not_consulted = |instead| {
        let bad = BadRule::NotConsulted { rule: rule.to_owned(), tool: tool.to_owned(), instead };
        (Spec::Nothing, (!is_parameter).then_some(bad))
    };
    let is_domain = spec.trim_start().starts_with("domain");
    match rule_tools::specifier(tool) {
        Some(Specifier::Command) => (Spec::Command(CommandPattern::new(command(spec, list))), None),
        Some(Specifier::Instead(other)) if list == RuleList::Allow || is_parameter => not_consulted(other),
        // To restrict, `Write(path)` says clearly enough what is meant.
        Some(Specifier::Path | Specifier::Instead(_)) => match PathPattern::parse(spec, list, dir) {
            Some(pattern) => (Spec::Path(pattern), None),
            None => broad(rule, list),
        },
        Some(Specifier::Host) if is_domain => match HostPattern::parse(spec) {
            Some(HostPattern::Any) => (Spec::Any, None),
            Some(pattern) => (Spec::Host(pattern), None),
            None => broad(rule, list),
        },
        Some(Specifier::Name) => (Spec::Name(spec.to_owned()), None),
        None | Some(Specifier::Host) if is_parameter => (Spec::Nothing, None),
        None | Some(Specifier::Host) => {
            let bad = BadRule::NoSpecifier { rule: rule.to_owned(), tool: tool.to_owned() };
            (if list == RuleList::Allow { Spec::Nothing } else { Spec::Any }, Some(bad))
        }
    }
}

/// Returns a pattern of commands as it is meant. To restrict, stars beside one another are one, and nothing before `:*` is
/// every command.
fn command(spec: &str, list: RuleList) -> &str {
    let mut spec = spec;
    if list == RuleList::Allow {
        return spec;
    }
    while spec.ends_with("**") {
        spec = &spec[..spec.len() - 1];
    }
    if spec == ":*" { "*" } else { spec }
}

fn broad(rule: &str, list: RuleList) -> (Spec, Option<BadRule>) {
    match list {
        RuleList::Allow => (Spec::Nothing, Some(BadRule::Syntax(rule.to_owned()))),
        RuleList::Ask | RuleList::Deny => (Spec::Any, Some(BadRule::Broad(rule.to_owned()))),
    }
}

/// Splits a list of rules, as flags take it, at commas and spaces outside parentheses.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    parts.filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: RuleList, text: &str) -> (Option<Rule>, Option<BadRule>) {
        Rule::parse(text, list, &RuleOrigin::new(RuleSource::Session, "/conf"))
    }

    #[test]
    fn names_of_tools_and_servers() {
        for (pattern, tool, expected) in [
            ("Read", "Read", true),
            ("Read", "ReadMore", false),
            ("mcp__srv", "mcp__srv__tool", true),
            ("mcp__srv", "mcp__srv2__tool", false),
            ("mcp__srv__tool", "mcp__srv__tool", true),
            ("mcp__srv__*", "mcp__srv__tool", true),
            ("mcp__srv__get_*", "mcp__srv__get_item", true),
            ("mcp__srv__get_*", "mcp__srv__delete_item", false),
            ("mcp__*", "mcp__any__thing", true),
            ("*", "Bash", true),
            ("Task(x)", "Agent", true),
            ("Agent", "Task", true),
            ("Bash", "Monitor", true),
            ("Bash(curl *)", "Monitor", true),
            ("Monitor", "Monitor", true),
            ("Monitor", "Bash", false),
        ] {
            assert_eq!(parse(RuleList::Deny, pattern).0.unwrap().names(tool), expected, "{pattern} ~ {tool}");
        }
    }

    #[test]
    fn broken_rules_allow_nothing_and_restrict_broadly() {
        use RuleList::{Allow, Ask, Deny};
        for (list, text, kept, complains) in [
            (Allow, "Bash(ls)", true, false),
            (Allow, "Bash(", false, true),
            (Allow, "Bash(ls", false, true),
            (Allow, "Bash()", false, true),
            (Allow, "", false, true),
            (Allow, "mcp__*", false, true),
            (Allow, "*", false, true),
            (Allow, "mcp__srv__*", true, false),
            (Allow, "mcp__s*__x", false, true),
            (Allow, "mcp__srv(*)", false, true),
            (Allow, "mcp__srv__run(q:x)", false, true),
            (Allow, "mcp__srv__*(x)", false, true),
            (Deny, "mcp__srv(*)", true, false),
            (Ask, "mcp__srv__run(q:x)", true, false),
            (Deny, "mcp__srv__run(x)", true, true),
            (Allow, "Write(x)", true, true),
            (Deny, "Bash(ls", true, true),
            (Deny, "Bash (ls)", true, true),
            (Deny, "(((", false, true),
            (Deny, "Write(x)", true, false),
            (Deny, "Grep(x)", true, false),
            (Deny, "Bash(command:ls)", false, true),
            (Deny, "Agent(model:opus)", true, false),
            (Deny, "WebFetch(domain:)", true, true),
            (Deny, "bash", true, true),
            (Deny, "BASH(rm:*)", true, true),
            (Deny, "Bsh", true, true),
            (Deny, "deploy_tool", true, false),
            (Deny, "TaskStop", true, false),
            (Allow, "bash", true, false),
        ] {
            let (rule, bad) = parse(list, text);
            assert_eq!((rule.is_some(), bad.is_some()), (kept, complains), "{list:?} {text}");
        }
        assert!(parse(Deny, "Bash(ls").0.unwrap().is_bare());
        assert!(parse(Deny, "Bash (ls)").0.unwrap().names("Bash"));
        assert!(parse(Deny, "WebFetch(domain:)").0.unwrap().is_bare());
        assert!(!parse(Allow, "Write(x)").0.unwrap().is_bare());
        assert!(parse(Deny, "bash").0.unwrap().names("Bash"));
        assert!(!parse(Allow, "bash").0.unwrap().names("Bash"));
        let said = parse(Deny, "webfetch(domain:x.y)").1.unwrap().to_string();
        assert!(said.contains("enforced for `WebFetch`"), "{said}");
        let said = parse(Deny, "Bsh(rm:*)").1.unwrap().to_string();
        assert!(said.contains("nothing is restricted"), "{said}");
    }

    #[test]
    fn lists_split_outside_parentheses() {
        assert_eq!(split_list("Read,Bash(git log, x) Edit"), ["Read", "Bash(git log, x)", "Edit"]);
        assert_eq!(split_list(" , "), [""; 0]);
    }
}
