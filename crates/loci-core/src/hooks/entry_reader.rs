//! Reading the entries of one file: events, groups, handlers, each at the cost of itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::matcher;
use super::{
    Condition, Handler, HandlerKinds, HookEntry, HookEvent, HookProblem, HookScope, HookSource, Matcher,
    RunMode, Shell,
};
use crate::permission::RuleCondition;
use crate::sandbox_profile::SandboxProfile;

/// What a group of handlers may have.
const GROUP_FIELDS: &[&str] = &["matcher", "hooks"];
/// What handlers may have, whatever their type.
const HANDLER_FIELDS: &[&str] = &[
    "type",
    "if",
    "timeout",
    "statusMessage",
    "once",
    "command",
    "args",
    "shell",
    "async",
    "asyncRewake",
    "sandbox",
    "url",
    "headers",
    "allowedEnvVars",
    "server",
    "tool",
    "input",
    "prompt",
    "model",
    "continueOnBlock",
];

/// Reads the entries of one file.
pub(super) struct EntryReader<'a> {
    source: HookSource,
    cwd: &'a Path,
    /// The lines of the objects inside the value, in the order of the text; empty where they are not known.
    lines: &'a [usize],
    next_line: usize,
    entries: Vec<Arc<HookEntry>>,
    problems: Vec<HookProblem>,
}

impl<'a> EntryReader<'a> {
    pub(super) fn new(value: &Value, lines: &'a [usize], source: HookSource, cwd: &'a Path) -> Self {
        // A key that comes twice leaves lines that belong to nothing: then none can be told from another.
        let lines = if lines.len() + 1 == n_objects(value) { lines } else { &[] };
        Self { source, cwd, lines, next_line: 0, entries: Vec::new(), problems: Vec::new() }
    }

    pub(super) fn read(mut self, value: &Value) -> (Vec<Arc<HookEntry>>, Vec<HookProblem>) {
        let Some(events) = value.as_object() else {
            self.report(None, "hooks are an object of events".to_owned());
            return (self.entries, self.problems);
        };
        let first_line = self.source.line;
        for (name, groups) in events {
            self.source.line = first_line;
            let Some(event) = HookEvent::parse(name) else {
                self.report(None, format!("no such event: `{name}`; its hooks are never run"));
                self.skip(groups);
                continue;
            };
            let Some(groups) = groups.as_array() else {
                self.report(Some(event), format!("`{name}` is no list of groups; ignored"));
                self.skip(groups);
                continue;
            };
            for group in groups {
                self.group(event, group);
            }
        }
        (self.entries, self.problems)
    }

    fn group(&mut self, event: HookEvent, group: &Value) {
        let Some(fields) = group.as_object() else {
            return self.report(Some(event), "a group of handlers is an object; ignored".to_owned());
        };
        self.take_line();
        let text = match fields.get("matcher") {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text,
            Some(other) => {
                self.report(Some(event), format!("a matcher is a text, found {other}; the group is ignored"));
                return self.skip_inside(fields);
            }
        };
        let (matcher, problem) = Matcher::parse(event, text);
        let odd = event.is_about_a_tool().then(|| matcher::odd_tool_names(text)).flatten();
        if let Some(problem) = problem.or(odd) {
            self.report_about(problem, false);
        }
        self.report_unknown(fields, GROUP_FIELDS);
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("hooks", Value::Array(handlers)) => {
                    for handler in handlers {
                        self.handler(event, text, &matcher, handler);
                    }
                }
                _ => self.skip(value),
            }
        }
        if !matches!(fields.get("hooks"), Some(Value::Array(_))) {
            self.report(Some(event), "a group without a list of `hooks` runs nothing".to_owned());
        }
    }

    fn handler(&mut self, event: HookEvent, matcher_text: &str, matcher: &Matcher, value: &Value) {
        let Some(fields) = value.as_object() else {
            return self.report(Some(event), "a handler is an object; ignored".to_owned());
        };
        self.take_line();
        match self.entry(event, matcher_text, matcher, fields) {
            Ok(entry) => {
                self.report_unknown(fields, HANDLER_FIELDS);
                if let Some(why) = not_built(&entry) {
                    self.report_about(why, event.can_refuse());
                }
                if entry.is_once && !matches!(self.source.scope, HookScope::Skill(_)) {
                    let why = "`once` counts for hooks of skills: this handler runs every time";
                    self.report_about(why.to_owned(), false);
                }
                self.entries.push(Arc::new(entry));
            }
            Err(problem) => self.report(Some(event), format!("{problem}; the handler is not run")),
        }
        self.skip_inside(fields);
    }

    fn entry(
        &mut self,
        event: HookEvent,
        matcher_text: &str,
        matcher: &Matcher,
        fields: &Map<String, Value>,
    ) -> Result<HookEntry, String> {
        let handler = parse_handler(fields)?;
        let is_taken = match event.facts().kinds {
            HandlerKinds::All => true,
            HandlerKinds::NoModel => !matches!(handler, Handler::Prompt { .. } | Handler::Agent { .. }),
            HandlerKinds::Local => matches!(handler, Handler::Command { .. } | Handler::McpTool { .. }),
        };
        if !is_taken {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            return Err(format!("`{}` takes no handlers of type `{kind}`", event.name()));
        }
        let condition = match text(fields, "if")? {
            None => Condition::Always,
            Some(_) if !event.is_about_a_tool() => {
                let why =
                    format!("`if` needs a call, and `{}` has none: the handler never runs", event.name());
                self.report_about(why, false);
                Condition::Never
            }
            Some(rule) => match RuleCondition::parse(rule, self.cwd) {
                Ok(rule) => Condition::Rule(rule),
                Err(bad) => {
                    // Held to as broadly as it can be read: it runs for every call of the matcher.
                    self.report_about(format!("`if`: {bad}; the handler runs without it"), false);
                    Condition::Always
                }
            },
        };
        let timeout = match fields.get("timeout") {
            None | Some(Value::Null) => None,
            Some(value) => {
                let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
                let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                if limit.is_none() {
                    let why = format!("`timeout` is a number of seconds, found {value}; the usual one holds");
                    self.report_about(why, false);
                }
                limit
            }
        };
        Ok(HookEntry {
            event,
            matcher_text: matcher_text.to_owned(),
            matcher: matcher.clone(),
            condition,
            handler,
            timeout,
            status_message: text(fields, "statusMessage")?.map(str::to_owned),
            is_once: fields.get("once").and_then(Value::as_bool).unwrap_or(false),
            source: self.source.clone(),
            vars: Arc::from([]),
        })
    }

    /// Reports fields that nobody knows: a slip as likely as not. What is marked as a comment is left alone.
    fn report_unknown(&mut self, fields: &Map<String, Value>, known: &[&str]) {
        let is_comment = |key: &str| key.starts_with(['_', '$', '/', '#']) || key == "description";
        for key in fields.keys().filter(|key| !known.contains(&key.as_str()) && !is_comment(key)) {
            self.report_about(format!("no such field: `{key}`; it has no effect"), false);
        }
    }

    fn take_line(&mut self) {
        if let Some(line) = self.lines.get(self.next_line) {
            self.source.line = *line;
        }
        self.next_line += 1;
    }

    /// Passes over the objects of a value.
    fn skip(&mut self, value: &Value) {
        self.next_line += n_objects(value);
    }

    /// Passes over the objects inside an object whose own line was taken.
    fn skip_inside(&mut self, fields: &Map<String, Value>) {
        self.next_line += fields.values().map(n_objects).sum::<usize>();
    }

    /// Reports something that is not run.
    fn report(&mut self, event: Option<HookEvent>, message: String) {
        let is_deciding = event.is_some_and(HookEvent::can_refuse);
        self.report_about(message, is_deciding);
    }

    fn report_about(&mut self, message: String, is_deciding: bool) {
        self.problems.push(HookProblem { source: self.source.clone(), message, is_deciding });
    }
}

/// Says what of an entry this version cannot honour yet.
fn not_built(entry: &HookEntry) -> Option<String> {
    match &entry.handler {
        _ if !entry.event.is_built() => Some(format!(
            "`{}` does not happen in this version yet: the handler is never run",
            entry.event.name()
        )),
        Handler::Command { shell: Shell::PowerShell, .. } => {
            Some("PowerShell is looked for as `pwsh`".to_owned())
        }
        _ => None,
    }
}

fn parse_handler(fields: &Map<String, Value>) -> Result<Handler, String> {
    let flag = |key: &str| fields.get(key).and_then(Value::as_bool).unwrap_or(false);
    let needed = |key: &str| match text(fields, key)? {
        Some(value) if !value.trim().is_empty() => Ok(value.to_owned()),
        _ => Err(format!("there is no `{key}`")),
    };
    let kind = text(fields, "type")?.ok_or("there is no `type`")?;
    Ok(match kind {
        "command" => Handler::Command {
            command: needed("command")?,
            args: texts(fields, "args")?,
            shell: match text(fields, "shell")? {
                None => Shell::Sh,
                Some("bash") => Shell::Bash,
                Some("powershell") => Shell::PowerShell,
                Some(other) => return Err(format!("no such shell: `{other}`")),
            },
            mode: match (flag("async"), flag("asyncRewake")) {
                (_, true) => RunMode::BackgroundWakes,
                (true, false) => RunMode::Background,
                (false, false) => RunMode::Waits,
            },
            sandbox: SandboxProfile::parse(fields.get("sandbox"))?,
        },
        "http" => Handler::Http {
            url: needed("url")?,
            headers: pairs(fields, "headers")?,
            allowed_env: texts(fields, "allowedEnvVars")?.unwrap_or_default(),
        },
        "mcp_tool" => Handler::McpTool {
            server: needed("server")?,
            tool: needed("tool")?,
            // A server takes an object, also where nothing is said.
            input: fields.get("input").filter(|input| !input.is_null()).cloned().unwrap_or_else(|| json!({})),
        },
        "prompt" => Handler::Prompt {
            prompt: needed("prompt")?,
            model: text(fields, "model")?.map(str::to_owned),
            continues: flag("continueOnBlock"),
        },
        "agent" => {
            Handler::Agent { prompt: needed("prompt")?, model: text(fields, "model")?.map(str::to_owned) }
        }
        other => return Err(format!("no such type of handler: `{other}`")),
    })
}

fn text<'v>(fields: &'v Map<String, Value>, key: &str) -> Result<Option<&'v str>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{key}` is a text, found {other}")),
    }
}

fn texts(fields: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, String> {
    let wrong = || format!("`{key}` is a list of texts");
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().map(Some).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

fn pairs(fields: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("`{key}` is an object of texts");
    match fields.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(map)) => {
            let pairs = map.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
            pairs.collect::<Option<Vec<_>>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

/// Counts the objects inside a value, itself included.
fn n_objects(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(n_objects).sum::<usize>(),
        Value::Array(items) => items.iter().map(n_objects).sum(),
        _ => 0,
    }
}
