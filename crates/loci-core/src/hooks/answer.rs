//! What one handler answered: its exit code and output, an HTTP response, a model's word or a client's reply, read
//! by the event it was given for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{BlockEffect, HookEvent};
use crate::permission::Update;

/// How a handler ended.
#[derive(Debug, Clone, PartialEq)]
pub enum HandlerEnd {
    /// A command ended.
    Exited {
        /// Its code.
        code: i32,
        /// What it printed.
        stdout: String,
        /// What it complained about.
        stderr: String,
    },
    /// An address answered.
    Responded {
        /// The status.
        status: u16,
        /// The body.
        body: String,
    },
    /// A client's function, or a tool, answered with an object.
    Replied(Value),
    /// A model was asked whether all is well.
    Judged {
        /// Whether it is.
        is_ok: bool,
        /// Why not.
        reason: String,
        /// Whether it can never be.
        is_impossible: bool,
        /// Whether the model is told and goes on.
        continues: bool,
    },
    /// It did not end in time.
    TimedOut {
        /// Whether that counts as a block.
        blocks: bool,
    },
    /// It could not be run.
    Failed(String),
    /// It was stopped.
    Cancelled,
}

/// What a handler says about a call before it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookPermission {
    /// It may run, as far as rules do not say otherwise.
    Allow,
    /// A person is asked.
    Ask,
    /// It waits for another run of the session.
    Defer,
    /// It does not run.
    Deny,
}

/// What a handler answers in the place of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "behavior", rename_all = "snake_case")]
pub enum PermissionReply {
    /// The call may run.
    Allow {
        /// Other arguments.
        #[serde(rename = "updatedInput", default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// What is allowed beyond it.
        #[serde(rename = "updatedPermissions", default, skip_serializing_if = "Vec::is_empty")]
        updates: Vec<Update>,
    },
    /// It may not.
    Deny {
        /// Why.
        #[serde(default)]
        message: String,
        /// Whether the turn stops.
        #[serde(rename = "interrupt", default)]
        stops: bool,
    },
}

/// What one handler said, in the words of the event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookAnswer {
    /// It blocks, and says why.
    pub block: Option<String>,
    /// Everything stops, and this is told to the user.
    pub stop: Option<String>,
    /// Whether a call may run, and why.
    pub permission: Option<(HookPermission, String)>,
    /// The answer in the place of a person.
    pub reply: Option<PermissionReply>,
    /// Other arguments for a call.
    pub input: Option<Value>,
    /// What the model is told.
    pub context: Option<String>,
    /// Plain text that the model is told.
    pub plain: Option<String>,
    /// What the user is told.
    pub message: Option<String>,
    /// What went wrong, for the user; nothing else of the answer counts then.
    pub error: Option<String>,
    /// What takes the place of a result.
    pub output: Option<Value>,
    /// What a classifier may read of a result.
    pub classifier_context: Option<String>,
    /// Whether a call that was denied is tried again.
    pub retries: bool,
    /// A title for the session.
    pub title: Option<String>,
    /// A prompt that is sent first.
    pub first_prompt: Option<String>,
    /// Files to watch from now on.
    pub watch_paths: Option<Vec<String>>,
    /// What is shown in the place of a text.
    pub display: Option<String>,
    /// Whether the words of a prompt that is blocked are left out of what the user is told; they always are.
    pub hides_prompt: bool,
    /// Where a worktree was made.
    pub worktree: Option<String>,
    /// `accept`, `decline` or `cancel`, and what was entered.
    pub elicitation: Option<(String, Option<Value>)>,
    /// What the terminal is sent: titles, notifications and bells alone.
    pub terminal: Option<String>,
    /// Whether there was more in it than that, and it is not sent.
    pub is_terminal_refused: bool,
    /// Whether skills are looked for again.
    pub reloads_skills: bool,
    /// Whether the rest of the answer comes later.
    pub is_async: bool,
}

impl HookAnswer {
    /// Reads what a handler said about an event; `hook` and `label` name both in what the model is told.
    pub fn read(event: HookEvent, hook: &str, label: &str, end: &HandlerEnd) -> Self {
        match end {
            HandlerEnd::Exited { code, stdout, stderr } => exited(event, hook, label, *code, stdout, stderr),
            HandlerEnd::Responded { status, body } => responded(event, *status, body),
            HandlerEnd::Replied(Value::Object(fields)) => from_object(event, fields).unwrap_or_else(wrong),
            HandlerEnd::Replied(Value::Null) => Self::default(),
            HandlerEnd::Replied(other) => wrong(format!("the answer is no object: {other}")),
            HandlerEnd::Judged { is_ok: true, .. } => Self::default(),
            HandlerEnd::Judged { reason, is_impossible, continues, .. } => {
                judged(event, reason, *is_impossible, *continues)
            }
            HandlerEnd::TimedOut { blocks: true } => {
                let why = format!(
                    "{hook} hook [{label}] did not answer in time, and what it guards is not let through"
                );
                blocked(event, why)
            }
            HandlerEnd::TimedOut { blocks: false } => {
                wrong("it did not end in time, and was stopped".to_owned())
            }
            HandlerEnd::Failed(why) => wrong(why.clone()),
            HandlerEnd::Cancelled => Self::default(),
        }
    }
}

fn exited(event: HookEvent, hook: &str, label: &str, code: i32, stdout: &str, stderr: &str) -> HookAnswer {
    // A worktree is made or it is not: every code but zero says that it is not. What was printed is not read then.
    if code == 2 || (event == HookEvent::WorktreeCreate && code != 0) {
        let stderr = if stderr.trim().is_empty() { "No stderr output" } else { stderr.trim_end() };
        return blocked(event, named(event, hook, label, stderr));
    }
    let object = stdout.trim_start().starts_with('{').then(|| serde_json::from_str::<Value>(stdout.trim()));
    let object = match object {
        Some(Ok(Value::Object(fields))) => Some(from_object(event, &fields)),
        _ => None,
    };
    match object {
        Some(Ok(answer)) => answer,
        Some(Err(why)) => wrong(why),
        None if code != 0 => wrong(match stderr.lines().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("exit code {code}: {}", line.trim()),
            None => format!("exit code {code}"),
        }),
        None => HookAnswer { error: unread(stdout), ..plain(event, stdout) },
    }
}

/// Says that a decision stands in what was printed, where nobody looks for it.
fn unread(stdout: &str) -> Option<String> {
    const KEYS: &[&str] =
        &["\"permissionDecision\"", "\"decision\"", "\"hookSpecificOutput\"", "\"continue\""];
    let decides = stdout.contains('{') && KEYS.iter().any(|key| stdout.contains(key));
    decides.then(|| {
        "what it printed holds a decision and is not read: print one whole JSON object and nothing else"
            .to_owned()
    })
}

/// Takes what was printed as plain text.
fn plain(event: HookEvent, stdout: &str) -> HookAnswer {
    let text = stdout.trim();
    if event == HookEvent::WorktreeCreate {
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        return HookAnswer { worktree: last.map(|line| line.trim().to_owned()), ..HookAnswer::default() };
    }
    let told = (event.facts().plain_is_context && !text.is_empty()).then(|| text.to_owned());
    HookAnswer { plain: told, ..HookAnswer::default() }
}

fn responded(event: HookEvent, status: u16, body: &str) -> HookAnswer {
    if !(200..300).contains(&status) {
        return wrong(format!("the address answered with status {status}"));
    }
    if body.trim().is_empty() {
        return HookAnswer::default();
    }
    match serde_json::from_str::<Value>(body) {
        Ok(Value::Object(fields)) => from_object(event, &fields).unwrap_or_else(wrong),
        _ => wrong("the address answered with something that is no JSON object".to_owned()),
    }
}

/// Takes a model's no.
fn judged(event: HookEvent, reason: &str, is_impossible: bool, continues: bool) -> HookAnswer {
    let reason = if reason.trim().is_empty() { "A check did not pass." } else { reason.trim() };
    let reason = reason.to_owned();
    let ends = HookAnswer { stop: Some(reason.clone()), ..HookAnswer::default() };
    match event {
        HookEvent::Stop | HookEvent::SubagentStop if is_impossible => HookAnswer::default(),
        HookEvent::PreToolUse if continues => blocked(event, reason),
        HookEvent::PreToolUse => HookAnswer { stop: Some(reason.clone()), ..blocked(event, reason) },
        HookEvent::PostToolUse | HookEvent::TeammateIdle if !continues => ends,
        HookEvent::PostToolBatch if !continues => ends,
        HookEvent::PermissionRequest | HookEvent::PermissionDenied => HookAnswer::default(),
        _ => blocked(event, reason),
    }
}

/// Tells whether handlers of an event say what may happen by a permission.
fn judges(event: HookEvent) -> bool {
    matches!(event, HookEvent::PreToolUse | HookEvent::PreModelSwitch)
}

/// Returns the answer that blocks; before a call, or another model, that is a denial.
fn blocked(event: HookEvent, why: String) -> HookAnswer {
    match event {
        _ if judges(event) => {
            HookAnswer { permission: Some((HookPermission::Deny, why)), ..HookAnswer::default() }
        }
        _ => HookAnswer { block: Some(why), ..HookAnswer::default() },
    }
}

fn wrong(why: String) -> HookAnswer {
    HookAnswer { error: Some(why), ..HookAnswer::default() }
}

/// Words a message of a command that blocked so that whoever reads it knows where it comes from.
fn named(event: HookEvent, hook: &str, label: &str, stderr: &str) -> String {
    match (event, event.facts().block) {
        (HookEvent::PreToolUse, _) => format!("{hook} hook error: [{label}]: {stderr}"),
        (_, BlockEffect::GoesOn) => format!("[{label}]: {stderr}"),
        _ => stderr.to_owned(),
    }
}

/// Reads an object; the error says what in it does not fit.
fn from_object(event: HookEvent, fields: &Map<String, Value>) -> Result<HookAnswer, String> {
    let facts = event.facts();
    let sequence = text(fields, "terminalSequence")?.filter(|it| !it.is_empty());
    let is_terminal_refused = sequence.as_deref().is_some_and(|it| !is_harmless_sequence(it));
    let mut answer = HookAnswer {
        message: text(fields, "systemMessage")?,
        terminal: sequence.filter(|_| !is_terminal_refused),
        is_terminal_refused,
        is_async: flag(fields, "async")?.unwrap_or(false),
        ..HookAnswer::default()
    };
    if answer.is_async {
        // The rest comes later, when nobody waits for it any more.
        return Ok(answer);
    }
    let reason = text(fields, "reason")?;
    if flag(fields, "continue")? == Some(false) {
        answer.stop = Some(text(fields, "stopReason")?.unwrap_or_default());
    }
    let said = || reason.clone().unwrap_or_default();
    match text(fields, "decision")?.as_deref() {
        None => {}
        Some("approve") if judges(event) => {
            answer.permission = Some((HookPermission::Allow, said()));
        }
        Some("block") if judges(event) => {
            answer.permission = Some((HookPermission::Deny, said()));
        }
        Some("approve") => {}
        Some("block") if facts.takes_decision => {
            let why = reason.clone().filter(|why| !why.trim().is_empty());
            answer.block = Some(why.unwrap_or_else(|| "Blocked by a hook, which did not say why".to_owned()));
        }
        Some("block") => {}
        Some(other) => return Err(format!("`decision` is \"approve\" or \"block\", found \"{other}\"")),
    }
    if fields.contains_key("permissionDecision") {
        answer.error = Some("`permissionDecision` counts inside `hookSpecificOutput` alone".to_owned());
    }
    match fields.get("hookSpecificOutput") {
        None | Some(Value::Null) => {}
        Some(Value::Object(specific)) => specific_output(event, specific, &mut answer)?,
        Some(other) => return Err(format!("`hookSpecificOutput` is an object, found {other}")),
    }
    Ok(answer)
}

fn specific_output(
    event: HookEvent,
    fields: &Map<String, Value>,
    answer: &mut HookAnswer,
) -> Result<(), String> {
    match text(fields, "hookEventName")? {
        Some(name) if name == event.name() => {}
        Some(name) => {
            return Err(format!("`hookSpecificOutput` is for \"{name}\", and this is \"{}\"", event.name()));
        }
        None => return Err("`hookSpecificOutput` has no `hookEventName`".to_owned()),
    }
    if event.facts().takes_context {
        answer.context = text(fields, "additionalContext")?.filter(|text| !text.trim().is_empty());
    }
    match event {
        HookEvent::SessionStart => {
            answer.title = text(fields, "sessionTitle")?;
            answer.first_prompt = text(fields, "initialUserMessage")?;
            answer.watch_paths = texts(fields, "watchPaths")?;
            answer.reloads_skills = flag(fields, "reloadSkills")?.unwrap_or(false);
        }
        HookEvent::UserPromptSubmit => {
            answer.title = text(fields, "sessionTitle")?;
            answer.hides_prompt = flag(fields, "suppressOriginalPrompt")?.unwrap_or(false);
        }
        HookEvent::PreToolUse | HookEvent::PreModelSwitch => before_call(fields, answer)?,
        HookEvent::PermissionRequest => answer.reply = permission_reply(fields)?,
        HookEvent::PermissionDenied => answer.retries = flag(fields, "retry")?.unwrap_or(false),
        HookEvent::PostToolUse => {
            let output = fields.get("updatedToolOutput").or_else(|| fields.get("updatedMCPToolOutput"));
            answer.output = output.filter(|output| !output.is_null()).cloned();
            answer.classifier_context = text(fields, "classifierContext")?;
        }
        HookEvent::MessageDisplay => answer.display = text(fields, "displayContent")?,
        HookEvent::CwdChanged | HookEvent::FileChanged => answer.watch_paths = texts(fields, "watchPaths")?,
        HookEvent::WorktreeCreate => answer.worktree = text(fields, "worktreePath")?,
        HookEvent::Elicitation | HookEvent::ElicitationResult => {
            answer.elicitation = match text(fields, "action")? {
                None => None,
                Some(action) if ["accept", "decline", "cancel"].contains(&action.as_str()) => {
                    Some((action, fields.get("content").cloned()))
                }
                Some(other) => return Err(format!("no such `action`: \"{other}\"")),
            };
        }
        _ => {}
    }
    Ok(())
}

fn before_call(fields: &Map<String, Value>, answer: &mut HookAnswer) -> Result<(), String> {
    let reason = text(fields, "permissionDecisionReason")?;
    let permission = match text(fields, "permissionDecision")?.as_deref() {
        None => None,
        Some("allow") => Some(HookPermission::Allow),
        Some("deny") => Some(HookPermission::Deny),
        Some("ask") => Some(HookPermission::Ask),
        Some("defer") => Some(HookPermission::Defer),
        Some(other) => return Err(format!("no such `permissionDecision`: \"{other}\"")),
    };
    if let Some(permission) = permission {
        answer.permission = Some((permission, reason.unwrap_or_default()));
    }
    answer.input = match fields.get("updatedInput") {
        None | Some(Value::Null) => None,
        Some(input @ Value::Object(_)) => Some(input.clone()),
        Some(other) => return Err(format!("`updatedInput` is an object, found {other}")),
    };
    Ok(())
}

fn permission_reply(fields: &Map<String, Value>) -> Result<Option<PermissionReply>, String> {
    let decision = match fields.get("decision") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(decision)) => decision,
        Some(other) => return Err(format!("`decision` is an object, found {other}")),
    };
    let updates = || -> Result<Vec<Update>, String> {
        let updates = decision.get("updatedPermissions").and_then(Value::as_array);
        updates.into_iter().flatten().map(|it| Update::parse(it).map_err(|bad| bad.to_string())).collect()
    };
    match text(decision, "behavior")?.as_deref() {
        Some("allow") => Ok(Some(PermissionReply::Allow {
            input: decision.get("updatedInput").filter(|input| input.is_object()).cloned(),
            updates: updates()?,
        })),
        Some("deny") => Ok(Some(PermissionReply::Deny {
            message: text(decision, "message")?.unwrap_or_default(),
            stops: flag(decision, "interrupt")?.unwrap_or(false),
        })),
        other => Err(format!("`behavior` is \"allow\" or \"deny\", found {other:?}")),
    }
}

/// Tells whether a text is nothing but titles, notifications and bells.
fn is_harmless_sequence(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('\u{7}') {
            rest = behind;
            continue;
        }
        let Some(body) = rest.strip_prefix("\u{1b}]") else { return false };
        let digits = body.bytes().take_while(u8::is_ascii_digit).count();
        if !["0", "1", "2", "9", "99", "777"].contains(&&body[..digits]) {
            return false;
        }
        let end = body.find(['\u{7}', '\u{1b}', '\u{9c}']).unwrap_or(body.len());
        let (inside, tail) = body.split_at(end);
        if inside.chars().any(char::is_control) {
            return false;
        }
        rest = match tail.strip_prefix('\u{7}').or_else(|| tail.strip_prefix("\u{1b}\\")) {
            Some(behind) => behind,
            None => return false,
        };
    }
    true
}

fn text(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{key}` is a text, found {other}")),
    }
}

fn texts(fields: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            let texts = texts.collect::<Option<Vec<_>>>();
            texts.map(Some).ok_or_else(|| format!("`{key}` is a list of texts"))
        }
        Some(_) => Err(format!("`{key}` is a list of texts")),
    }
}

fn flag(fields: &Map<String, Value>, key: &str) -> Result<Option<bool>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(format!("`{key}` is true or false, found {other}")),
    }
}

#[cfg(test)]
mod tests;
