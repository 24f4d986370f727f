//! Hooks as settings write them, and as they are held: one entry a handler, with the file and line it stands in.
//!
//! A bad entry costs itself and is reported. One that may have decided something, and cannot be understood, is
//! reported as such ([`HookProblem::is_deciding`]), so that nothing is let through in silence.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loci_settings::{MergedSettings, Part, Role, Scope};
use serde_json::Value;

use super::entry_reader::EntryReader;
use super::url_pattern::matches_url;
use super::{HookEvent, HookInput, Matcher};
use crate::permission::{Call, RuleCondition, Rulebook};
use crate::sandbox_profile::SandboxProfile;

/// Why a hook of an event that never happens does not count.
const NOT_BUILT: &str = "the event does not happen in this version";

/// All hooks of a session, in the order of their files.
#[derive(Debug, Clone, Default)]
pub struct HookConfig {
    entries: Vec<Arc<HookEntry>>,
    /// Addresses that `http` handlers may call; none where nobody says.
    pub allowed_urls: Option<Vec<String>>,
    /// Variables that `http` handlers may send; none where nobody says.
    pub allowed_env: Option<Vec<String>>,
}

/// One handler, and when it is run.
#[derive(Debug, Clone)]
pub struct HookEntry {
    /// The event.
    pub event: HookEvent,
    /// The matcher as written.
    pub matcher_text: String,
    /// What it is compared with.
    pub matcher: Matcher,
    /// What the call must be, beside that.
    pub condition: Condition,
    /// What is run.
    pub handler: Handler,
    /// How long it may take, where it says so.
    pub timeout: Option<Duration>,
    /// What people are shown meanwhile.
    pub status_message: Option<String>,
    /// Whether it runs once a session.
    pub is_once: bool,
    /// Where it stands.
    pub source: HookSource,
    /// What its environment has besides: the directories and options of a plugin.
    pub vars: Arc<[(String, String)]>,
}

/// The `if` of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There is none.
    Always,
    /// The call must fit this rule.
    Rule(RuleCondition),
    /// It stands at an event that is about no call, so it is never met.
    Never,
}

/// What is run.
#[derive(Debug, Clone, PartialEq)]
pub enum Handler {
    /// A command.
    Command {
        /// The command line, or the program where there are arguments.
        command: String,
        /// The arguments of a program that is run without a shell.
        args: Option<Vec<String>>,
        /// The shell of a command line.
        shell: Shell,
        /// Whether anybody waits for it.
        mode: RunMode,
        /// The sandbox that it runs in, where it asks for one.
        sandbox: Option<SandboxProfile>,
    },
    /// An address that the input is posted to.
    Http {
        /// The address.
        url: String,
        /// Headers by name; variables in them are filled in.
        headers: Vec<(String, String)>,
        /// The variables that may be.
        allowed_env: Vec<String>,
    },
    /// A tool of an MCP server.
    McpTool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// Its arguments; fields of the input are filled in.
        input: Value,
    },
    /// A question to a model.
    Prompt {
        /// The question; `$ARGUMENTS` is the input.
        prompt: String,
        /// The model, where it is not the fast one.
        model: Option<String>,
        /// Whether a no is told to the model instead of ending the turn.
        continues: bool,
    },
    /// A question to a model that may look around.
    Agent {
        /// The question; `$ARGUMENTS` is the input.
        prompt: String,
        /// The model, where it is not the fast one.
        model: Option<String>,
    },
    /// A function of the client that drives the session.
    Callback {
        /// The client's id of it.
        id: String,
        /// Whether what it guards is not let through when it fails.
        blocks_on_failure: bool,
    },
}

/// The shell that a command line is run by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shell {
    /// `sh`, which is there everywhere.
    #[default]
    Sh,
    /// `bash`, since the entry says so.
    Bash,
    /// PowerShell.
    PowerShell,
}

/// Whether a command is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunMode {
    /// It is.
    #[default]
    Waits,
    /// It is not; what it says is told with the next prompt.
    Background,
    /// It is not, but when it blocks the model hears of it at once.
    BackgroundWakes,
}

/// Whose hook it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookScope {
    /// A settings file's.
    Settings(Scope),
    /// A plugin's.
    Plugin(String),
    /// A skill's.
    Skill(String),
    /// An agent's.
    Agent(String),
    /// The client's that drives the session.
    Client,
}

impl fmt::Display for HookScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(scope) => write!(f, "{scope} settings"),
            Self::Plugin(name) => write!(f, "plugin {name}"),
            Self::Skill(name) => write!(f, "skill {name}"),
            Self::Agent(name) => write!(f, "agent {name}"),
            Self::Client => f.write_str("client"),
        }
    }
}

/// Where a hook stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSource {
    /// Whose it is.
    pub scope: HookScope,
    /// The file, as people know it.
    pub file: Arc<str>,
    /// The line, counted from one; zero where there is none.
    pub line: usize,
}

impl fmt::Display for HookSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Something wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProblem {
    /// Where.
    pub source: HookSource,
    /// What, one clause.
    pub message: String,
    /// Whether the entry could have kept something from happening, and is not run.
    pub is_deciding: bool,
}

impl fmt::Display for HookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.message)
    }
}

/// The switches that turn hooks off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HookSwitches {
    /// `disableAllHooks` is on: the administrator's stay, unless it was the administrator who said so.
    pub is_off: bool,
    /// The administrator turned all off.
    pub is_off_for_all: bool,
    /// Only the administrator's, and the client's, count.
    pub managed_only: bool,
}

impl HookSwitches {
    /// Reads the switches.
    pub fn new(merged: &MergedSettings) -> Self {
        let off = merged.get("disableAllHooks");
        let is_on = |path: &str| merged.value(path).and_then(Value::as_bool) == Some(true);
        let managed_says = off.is_some_and(|setting| {
            let mut parts = setting.parts.iter();
            parts.any(|part| part.role == Role::Wins && part.origin.scope == Scope::Managed)
        });
        Self {
            is_off: is_on("disableAllHooks"),
            is_off_for_all: is_on("disableAllHooks") && managed_says,
            managed_only: is_on("allowManagedHooksOnly"),
        }
    }

    /// Says why hooks of a scope do not count; none when they do.
    pub fn refusal(self, scope: &HookScope) -> Option<&'static str> {
        let is_managed = *scope == HookScope::Settings(Scope::Managed);
        if self.is_off_for_all {
            Some("the administrator turned all hooks off (`disableAllHooks`)")
        } else if self.is_off && !is_managed {
            Some("hooks are turned off (`disableAllHooks`)")
        } else if self.managed_only && !is_managed && *scope != HookScope::Client {
            Some("only the administrator's hooks count (`allowManagedHooksOnly`)")
        } else {
            None
        }
    }
}

/// What settings say of hooks: those that count, those that do not and why, and what is wrong.
#[derive(Debug, Clone, Default)]
pub struct SettingsHooks {
    /// Those that count.
    pub config: HookConfig,
    /// Those that do not, and why.
    pub refused: Vec<(Arc<HookEntry>, String)>,
    /// What is wrong.
    pub problems: Vec<HookProblem>,
}

impl SettingsHooks {
    /// Reads the hooks of all settings files. Patterns of paths in `if` start at `cwd`.
    pub fn parse(merged: &MergedSettings, cwd: &Path) -> Self {
        let texts = |path: &str| {
            let values = merged.value(path)?.as_array()?;
            Some(values.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        let mut hooks = Self {
            config: HookConfig {
                entries: Vec::new(),
                allowed_urls: texts("allowedHttpHookUrls"),
                allowed_env: texts("httpHookAllowedEnvVars"),
            },
            ..Self::default()
        };
        let switches = HookSwitches::new(merged);
        for part in merged.get("hooks").map(|setting| setting.parts.as_slice()).unwrap_or_default() {
            hooks.take_part(part, switches, cwd);
        }
        hooks
    }

    /// Leaves the administrator's hooks only: nothing else counts in a bare run.
    #[must_use]
    pub fn managed_only(self) -> Self {
        self.only_managed("the run is a bare one")
    }

    /// Leaves the administrator's hooks only: before a screen, those of every other file, the user's own included, wait
    /// until the folder is trusted.
    #[must_use]
    pub fn until_trusted(self) -> Self {
        self.only_managed("this folder is not trusted yet")
    }

    /// Adds the hooks of a plugin; `is_forced` says that the administrator turned it on.
    pub fn take_plugin(
        &mut self,
        value: &Value,
        source: HookSource,
        vars: &Arc<[(String, String)]>,
        (switches, is_forced): (HookSwitches, bool),
        cwd: &Path,
    ) {
        let switches = HookSwitches { managed_only: switches.managed_only && !is_forced, ..switches };
        let refusal = switches.refusal(&source.scope);
        let (entries, problems) = EntryReader::new(value, &[], source, cwd).read(value);
        for entry in entries {
            let entry = Arc::new(HookEntry { vars: Arc::clone(vars), ..HookEntry::clone(&entry) });
            match refusal {
                Some(why) => self.refused.push((entry, why.to_owned())),
                None if entry.event.is_built() => self.config.entries.push(entry),
                None => self.refused.push((entry, NOT_BUILT.to_owned())),
            }
        }
        if refusal.is_none() {
            self.problems.extend(problems);
        }
    }

    /// Leaves the administrator's hooks and those of plugins: no others may be added.
    #[must_use]
    pub fn plugins_only(self) -> Self {
        let why = "only plugins may bring hooks (`strictPluginOnlyCustomization`)";
        self.only(why, |scope| {
            matches!(scope, HookScope::Plugin(_)) || *scope == HookScope::Settings(Scope::Managed)
        })
    }

    fn only_managed(self, why: &str) -> Self {
        self.only(why, |scope| *scope == HookScope::Settings(Scope::Managed))
    }

    fn only(mut self, why: &str, counts: impl Fn(&HookScope) -> bool) -> Self {
        let entries = self.config.entries.into_iter();
        let (kept, others): (Vec<_>, Vec<_>) = entries.partition(|entry| counts(&entry.source.scope));
        self.config.entries = kept;
        self.refused.extend(others.into_iter().map(|entry| (entry, why.to_owned())));
        self
    }

    fn take_part(&mut self, part: &Part, switches: HookSwitches, cwd: &Path) {
        let source = HookSource {
            scope: HookScope::Settings(part.origin.scope),
            file: Arc::clone(&part.origin.name),
            line: part.line,
        };
        let reader = EntryReader::new(&part.value, &part.lines, source.clone(), cwd);
        let (entries, problems) = reader.read(&part.value);
        let refusal = match part.role {
            Role::Refused(refusal) => Some(refusal.to_string()),
            Role::Wins | Role::Joins | Role::Overridden => switches.refusal(&source.scope).map(str::to_owned),
        };
        match refusal {
            None => {
                let (built, others): (Vec<_>, Vec<_>) =
                    entries.into_iter().partition(|entry| entry.event.is_built());
                self.config.entries.extend(built);
                self.refused.extend(others.into_iter().map(|entry| (entry, NOT_BUILT.to_owned())));
                self.problems.extend(problems);
            }
            Some(why) => self.refused.extend(entries.into_iter().map(|entry| (entry, why.clone()))),
        }
    }
}

impl HookConfig {
    /// Reads hooks out of one object, such as a plugin's file.
    pub fn parse(value: &Value, source: HookSource, cwd: &Path) -> (Self, Vec<HookProblem>) {
        let (entries, problems) = EntryReader::new(value, &[], source, cwd).read(value);
        (Self { entries, ..Self::default() }, problems)
    }

    /// Makes them hooks of an agent: what an agent calls the end of its turn is the end of a subagent.
    #[must_use]
    pub fn into_agent_hooks(mut self) -> Self {
        for entry in &mut self.entries {
            if entry.event == HookEvent::Stop {
                *entry = Arc::new(HookEntry { event: HookEvent::SubagentStop, ..HookEntry::clone(entry) });
            }
        }
        self
    }

    /// Adds entries behind the others.
    pub fn extend_shared(&mut self, entries: impl IntoIterator<Item = Arc<HookEntry>>) {
        self.entries.extend(entries);
    }

    /// Returns all entries.
    pub fn entries(&self) -> &[Arc<HookEntry>] {
        &self.entries
    }

    /// Tells whether any handler is there for an event.
    pub fn has(&self, event: HookEvent) -> bool {
        self.entries.iter().any(|entry| entry.event == event)
    }

    /// Tells whether a hook is there for calls of this tool in particular, who may answer in a person's place.
    pub fn answers_for(&self, tool: &str) -> bool {
        let answers = |event| matches!(event, HookEvent::PreToolUse | HookEvent::PermissionRequest);
        let is_for = |entry: &&Arc<HookEntry>| {
            answers(entry.event) && !matches!(entry.matcher, Matcher::All) && entry.matcher.matches_tool(tool)
        };
        self.entries.iter().any(|entry| is_for(&entry))
    }

    /// Tells whether there are no hooks at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Tells whether an address may be called.
    pub fn allows_url(&self, url: &str) -> bool {
        let Some(allowed) = &self.allowed_urls else { return true };
        allowed.iter().any(|pattern| matches_url(pattern, url))
    }

    /// Returns the handlers that an event concerns: each once, in the order of their files. `judge` compares the `if`
    /// of one with the call at hand.
    pub fn matching(&self, input: &HookInput, judge: &dyn Fn(&RuleCondition) -> bool) -> Vec<Arc<HookEntry>> {
        let event = input.event.event();
        let subject = input.matcher_subject();
        let mut found: Vec<Arc<HookEntry>> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.event == event) {
            let is_for = match &subject {
                Some(tool) if event.is_about_a_tool() => entry.matcher.matches_tool(tool),
                other => entry.matcher.matches(other.as_deref()),
            };
            let is_met = is_for
                && match &entry.condition {
                    Condition::Always => true,
                    Condition::Never => false,
                    Condition::Rule(rule) => judge(rule),
                };
            // The same line of two plugins is two hooks: each runs in its own plugin.
            let is_same = |other: &Arc<HookEntry>| other.handler == entry.handler && other.vars == entry.vars;
            if is_met && !found.iter().any(is_same) {
                found.push(Arc::clone(entry));
            }
        }
        found
    }
}

impl HookEntry {
    /// Returns the handler's kind, in the word of settings.
    pub fn kind(&self) -> &'static str {
        match self.handler {
            Handler::Command { .. } => "command",
            Handler::Http { .. } => "http",
            Handler::McpTool { .. } => "mcp_tool",
            Handler::Prompt { .. } => "prompt",
            Handler::Agent { .. } => "agent",
            Handler::Callback { .. } => "callback",
        }
    }

    /// Returns what is run, as people and transcripts name it.
    pub fn label(&self) -> String {
        match &self.handler {
            Handler::Command { command, args: None, .. } => command.clone(),
            Handler::Command { command, args: Some(args), .. } => {
                std::iter::once(command).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Handler::Http { url, .. } => url.clone(),
            Handler::McpTool { server, tool, .. } => format!("{server}:{tool}"),
            Handler::Prompt { prompt, .. } | Handler::Agent { prompt, .. } => prompt.clone(),
            Handler::Callback { .. } => "callback".to_owned(),
        }
    }

    /// Returns how long it may take.
    pub fn time_limit(&self) -> Duration {
        self.timeout.unwrap_or(match self.handler {
            Handler::Prompt { .. } => Duration::from_secs(30),
            Handler::Agent { .. } => Duration::from_secs(60),
            Handler::Command { .. }
            | Handler::Http { .. }
            | Handler::McpTool { .. }
            | Handler::Callback { .. } => self.event.timeout(),
        })
    }
}

impl Condition {
    /// Compares a rule with a call.
    pub fn judge(rule: &RuleCondition, call: &Call<'_>, book: &Rulebook) -> bool {
        rule.matches(call, book)
    }
}

#[cfg(test)]
mod tests;
