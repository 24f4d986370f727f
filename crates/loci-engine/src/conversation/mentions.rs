//! What a prompt names with `@`: files, directories and earlier sessions are read and recorded behind the prompt, agents are
//! pointed out.
//!
//! A mention is `@path`, `@"path with blanks"`, either with `#L10` or `#L10-20` behind it, `@agent-name` (`@"name (agent)"`), or
//! `@session:ID` (`@"session:a title"`), at the beginning of a word. Reading goes through the Read tool, as a call would, but
//! nobody is asked and no hook is told: whoever types the name wants it read. Deny rules of Read hold. A word that names
//! nothing is a word, unless it can only be a path.
//!
//! What a command puts in the place of what was typed (the text of a skill, what its commands print, a server's prompt) and
//! what a schedule says are not a person's words: with those, only files of the working directories are read.

use std::path::Path;
use std::sync::Arc;

use loci_core::entry::{Attachment, AttachmentKind};
use loci_core::ids::ToolUseId;
use loci_core::permission::Rulebook;
use loci_core::tool::{CallEffects, PathEffect, ToolOutcome};
use loci_tools::{Host, Tool, ToolCall, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::permits::Permits;
use super::prompt_queue::PromptQueue;
use super::running_turn::{PromptOpening, TurnTasks};
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use super::{Conversation, InboxMessage};
use crate::command::{Prompt, QueuedPrompt};
use crate::event::EngineEvent;
use crate::extensions::local_command::LocalCommands;
use crate::tools::result_tags::escape_value_tags;

/// How many mentions of one prompt are read.
const MOST_MENTIONS: usize = 50;
/// How many names of a directory are listed.
const MOST_NAMES: usize = 1_000;

/// What the mentions of a prompt brought.
pub(crate) struct Mentioned {
    attachments: Vec<Attachment>,
    /// What could not be attached, a sentence each.
    problems: Vec<String>,
}

impl Conversation {
    /// Goes on with a prompt whose mentions were read.
    pub(super) fn mentioned(&mut self, mentioned: Mentioned) {
        let attachments = self.scope.tell_problems(mentioned);
        // One that came after an interrupt is not sent.
        let Some(prompt) = &mut self.run.opening.prompt else { return };
        prompt.attachments.extend(attachments);
        self.offer_prompt();
    }

    /// Has a prompt wait while a turn is under way. The model hears it once what it mentions is read.
    pub(crate) fn queue_prompt(&mut self, queued: QueuedPrompt) {
        if let Some(reading) =
            self.tools.mentions_in(&self.scope, &self.permits, &self.run.tasks, &queued.prompt)
        {
            let (id, inbox) = (queued.id.clone(), self.run.tasks.inbox.clone());
            self.queue.read_ahead.insert(id.clone());
            tokio::spawn(async move {
                // A turn that is over leaves the reading to the next one.
                drop(inbox.send(InboxMessage::QueueMentioned(id, reading.await)));
            });
        }
        self.queue.prompts.push_back(queued);
    }
}

impl PromptOpening {
    /// Begins to read what the prompt mentions; false where it mentions nothing. The answer comes to the inbox.
    pub(super) fn read_mentions(
        &self,
        scope: &ConversationScope,
        tool_set: &ToolSet,
        permits: &Permits,
        tasks: &mut TurnTasks,
    ) -> bool {
        let Some(prompt) =
            self.prompt.as_ref().filter(|prompt| !prompt.is_verbatim && !has_mentions(&prompt.attachments))
        else {
            return false;
        };
        match tool_set.mentions_in(scope, permits, tasks, prompt) {
            Some(reading) => {
                tasks.wait_for(async move { InboxMessage::Mentioned(reading.await) });
                true
            }
            None => false,
        }
    }
}

impl PromptQueue {
    /// Takes what a prompt mentions that waits.
    pub(super) fn queue_mentioned(&mut self, scope: &ConversationScope, id: &str, mentioned: Mentioned) {
        self.read_ahead.remove(id);
        let attachments = scope.tell_problems(mentioned);
        if let Some(queued) = self.prompts.iter_mut().find(|queued| queued.id == id) {
            queued.prompt.attachments.extend(attachments);
        }
    }
}

impl ConversationScope {
    fn tell_problems(&self, mentioned: Mentioned) -> Vec<Attachment> {
        for problem in mentioned.problems {
            self.tell(EngineEvent::Warning(problem));
        }
        mentioned.attachments
    }
}

impl ToolSet {
    /// Returns the work of reading what a prompt mentions; none where it mentions nothing.
    fn mentions_in(
        &self,
        scope: &ConversationScope,
        permits: &Permits,
        tasks: &TurnTasks,
        prompt: &Prompt,
    ) -> Option<impl Future<Output = Mentioned> + Send + 'static + use<>> {
        let found = all_mentions(prompt);
        if found.is_empty() || scope.agent.is_some() {
            return None;
        }
        let host = Arc::clone(&scope.host);
        let (agents, book) = (host.agent_names(), permits.rules_now(scope));
        let read = self.toolbox.find_shared("Read").filter(|_| !book.is_tool_denied("Read"));
        let cancel = tasks.calls.child_token();
        let has_files = !host.env().vars.is_truthy("CLAUDE_CODE_DISABLE_ATTACHMENTS");
        let sessions = scope.ctx.local_commands.clone();
        Some(async move {
            let place = host.workspace();
            let mut mentioned = Mentioned { attachments: Vec::new(), problems: Vec::new() };
            for (mention, is_own) in found {
                if let Some(name) = mention.agent(&agents) {
                    mentioned.attachments.push(Attachment::AgentMention { agent_type: name.to_owned() });
                    continue;
                }
                if !has_files {
                    continue;
                }
                if let (Some(name), Some(sessions), true) = (mention.session(&place), &sessions, is_own) {
                    match attach_session(name, sessions, &book).await {
                        Ok(attachment) => mentioned.attachments.push(attachment),
                        Err(why) => {
                            mentioned.problems.push(format!("`@session:{name}` was not attached: {why}"));
                        }
                    }
                    continue;
                }
                let Some(path) = mention.find(&place) else {
                    mentioned.problems.extend(mention.missing());
                    continue;
                };
                let spellings = [&path.requested, &path.real];
                if !is_own && !spellings.iter().all(|path| place.contains_path(path)) {
                    let why = "it is outside the working directories, and a command's text names it";
                    mentioned.problems.push(format!("`@{}` was not attached: {why}", mention.path));
                    continue;
                }
                if spellings.into_iter().any(|path| book.is_read_denied(path)) {
                    let why = format!("`@{}` was not attached: a rule denies reading it", mention.path);
                    mentioned.problems.push(why);
                    continue;
                }
                match attach(&mention, path, read.as_ref(), host.as_ref(), &place, cancel.clone()).await {
                    Ok(attachment) => mentioned.attachments.extend(attachment),
                    Err(why) => {
                        mentioned.problems.push(format!("`@{}` was not attached: {why}", mention.path));
                    }
                }
            }
            mentioned
        })
    }
}

/// Tells whether a prompt has the word that asks the model to think hard for this turn.
pub(super) fn asks_for_deep_thought(text: &str) -> bool {
    let is_letter = |char: char| char.is_alphanumeric() || char == '_';
    text.split(|char: char| !is_letter(char)).any(|word| word.eq_ignore_ascii_case("ultrathink"))
}

/// Tells whether what a prompt mentions is among its attachments already.
fn has_mentions(attachments: &[Attachment]) -> bool {
    use AttachmentKind::{AgentMention, Directory, File, SessionMention};
    let is_mention = |kind| matches!(kind, File | Directory | AgentMention | SessionMention);
    attachments.iter().any(|attachment| attachment.typed().kind().is_some_and(is_mention))
}

/// Says what goes with a prompt, for people: what they mistyped is not among it.
pub(super) fn attached_names(attachments: &[Attachment]) -> Vec<String> {
    attachments.iter().filter_map(|attachment| attached_name(&attachment.typed())).collect()
}

fn attached_name(attachment: &Attachment) -> Option<String> {
    match attachment {
        Attachment::File { filename, content, display_path } => {
            let name = display_path.as_ref().unwrap_or(filename);
            Some(match content["file"]["numLines"].as_u64() {
                Some(1) => format!("{name}, 1 line"),
                Some(n) => format!("{name}, {n} lines"),
                None => name.clone(),
            })
        }
        Attachment::Directory { path, display_path, .. } => {
            Some(format!("{}/, its names", display_path.as_ref().unwrap_or(path).trim_end_matches('/')))
        }
        Attachment::AgentMention { agent_type } => Some(format!("agent {agent_type}")),
        Attachment::SessionMention { session_id, .. } => Some(format!("session {session_id}")),
        Attachment::McpResource { server, uri, .. } => Some(format!("{server}:{uri}")),
        // The others are no mentions.
        _ => None,
    }
}

/// Reads a session that is mentioned, unless a rule denies reading its transcript.
async fn attach_session(
    name: &str,
    sessions: &Arc<dyn LocalCommands>,
    book: &Rulebook,
) -> Result<Attachment, String> {
    let (sessions, name) = (Arc::clone(sessions), name.to_owned());
    let reading = tokio::task::spawn_blocking(move || sessions.read_session(&name));
    let session = reading.await.map_err(|_| "reading it was given up".to_owned())??;
    if book.is_read_denied(&session.file) {
        return Err("a rule denies reading it".to_owned());
    }
    Ok(Attachment::SessionMention { session_id: session.id, text: session.text })
}

/// Reads what is mentioned; none where the conversation holds it already.
async fn attach(
    mention: &Mention,
    path: PathEffect,
    read: Option<&Arc<dyn Tool>>,
    host: &dyn Host,
    place: &Workspace,
    cancel: CancellationToken,
) -> Result<Option<Attachment>, String> {
    let shown = display_path(&path.requested, &place.cwd);
    let filename = path.requested.display().to_string();
    if path.real.is_dir() {
        let listing = list_directory(&path.real, host).map_err(|error| error.to_string())?;
        let directory = Attachment::Directory { path: filename, content: listing, display_path: Some(shown) };
        return Ok(Some(directory));
    }
    let Some(read) = read else { return Err("the Read tool is not there".to_owned()) };
    let mut input = json!({"file_path": filename});
    if let Some((first, last)) = mention.lines {
        input["offset"] = json!(first);
        input["limit"] = json!(last.saturating_sub(first) + 1);
    }
    let call = ToolCall {
        id: ToolUseId::new("mention"),
        input,
        effects: CallEffects::read(path),
        cancel,
        to_background: CancellationToken::new(),
    };
    let outcome = read.run(call, host).await;
    if outcome.is_failure() {
        return Err(outcome_text(&outcome));
    }
    match outcome.structured["type"].as_str() {
        Some("text" | "image" | "notebook") => {
            let content = escape_value_tags(outcome.structured);
            Ok(Some(Attachment::File { filename, content, display_path: Some(shown) }))
        }
        Some("file_unchanged") => Ok(None),
        _ => Err("files of its kind are read by a call; ask for that".to_owned()),
    }
}

fn outcome_text(outcome: &ToolOutcome) -> String {
    match outcome.content.to_value() {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Lists a directory, directories first, without what may not be read.
fn list_directory(path: &Path, host: &dyn Host) -> std::io::Result<String> {
    let mut names: Vec<String> = std::fs::read_dir(path)?
        .flatten()
        .filter(|entry| !host.is_read_denied(&entry.path()))
        .map(|entry| {
            let slash = if entry.path().is_dir() { "/" } else { "" };
            format!("{}{slash}", entry.file_name().to_string_lossy())
        })
        .collect();
    names.sort_by_key(|name| (!name.ends_with('/'), name.to_lowercase()));
    let n_left = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    if n_left > 0 {
        names.push(format!("({n_left} more)"));
    }
    Ok(names.join("\n"))
}

fn display_path(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}

/// Something behind an `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention {
    /// As it was written, without range and quotes.
    path: String,
    /// The first and last line that are wanted.
    lines: Option<(u64, u64)>,
    /// Whether it stood in quotes.
    is_quoted: bool,
}

impl Mention {
    /// Returns the agent that it names.
    fn agent<'a>(&self, agents: &'a [String]) -> Option<&'a String> {
        // As a menu of the reference writes it: `@"reviewer (agent)"`.
        let quoted = self.path.strip_suffix(" (agent)").filter(|_| self.is_quoted);
        let name = quoted.or_else(|| self.path.strip_prefix("agent-"))?;
        let plain = name.trim_end_matches(PUNCTUATION);
        agents.iter().find(|agent| *agent == name || *agent == plain)
    }

    /// Returns the name of the session that it names; a file that is called so comes first.
    fn session(&self, place: &Workspace) -> Option<&str> {
        let name = self.path.strip_prefix("session:")?;
        let name = if self.is_quoted { name } else { name.trim_end_matches(PUNCTUATION) };
        Some(name.trim()).filter(|name| !name.is_empty() && self.find(place).is_none())
    }

    /// Returns the file or directory that it names, without the sentence's punctuation where that is none of its.
    fn find(&self, place: &Workspace) -> Option<PathEffect> {
        let plain = self.path.trim_end_matches(PUNCTUATION);
        let spellings =
            [Some(self.path.as_str()), Some(plain).filter(|it| !self.is_quoted && *it != self.path)];
        let resolved = spellings.into_iter().flatten().map(|path| place.resolve(path));
        resolved.into_iter().find(|path| path.real.exists())
    }

    /// Says that it names nothing, where it can only be a path.
    fn missing(&self) -> Option<String> {
        let starts = ["/", "./", "../", "~/"];
        let is_path =
            self.is_quoted || self.lines.is_some() || starts.iter().any(|it| self.path.starts_with(it));
        is_path.then(|| format!("`@{}` was not attached: there is no such file", self.path))
    }
}

/// What may follow a path in a sentence.
const PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', '"', '\''];

/// Finds what a prompt mentions, each once, and whether a person's words do.
fn all_mentions(prompt: &Prompt) -> Vec<(Mention, bool)> {
    let own = find_mentions(&prompt.mention_text());
    let mut foreign = find_mentions(&prompt.foreign_text());
    foreign.retain(|mention| !own.contains(mention));
    let own = own.into_iter().map(|mention| (mention, true));
    own.chain(foreign.into_iter().map(|mention| (mention, false))).take(MOST_MENTIONS).collect()
}

/// Finds what a text mentions, each once.
fn find_mentions(text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let begins_a_word = text[..at].chars().next_back().is_none_or(|before| {
            before.is_whitespace() || matches!(before, '(' | '[' | '{' | '"' | '\'' | '`' | ',' | ':' | '=')
        });
        let Some(mention) = begins_a_word.then(|| parse_mention(&text[at + 1..])).flatten() else { continue };
        if !found.contains(&mention) && found.len() < MOST_MENTIONS {
            found.push(mention);
        }
    }
    found
}

fn parse_mention(rest: &str) -> Option<Mention> {
    let (path, behind, is_quoted) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let (path, behind) = quoted.split_once('"').filter(|(path, _)| !path.contains('\n'))?;
            (path, behind, true)
        }
        None => {
            let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
            let end = word.rfind("#L").unwrap_or(word.len());
            (&word[..end], &word[end..], false)
        }
    };
    if path.is_empty() {
        return None;
    }
    let lines = behind.strip_prefix("#L").and_then(parse_lines);
    // A `#` that begins no range belongs to the name.
    let path = match (lines, is_quoted) {
        (None, false) => &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())],
        _ => path,
    };
    Some(Mention { path: path.to_owned(), lines, is_quoted })
}

/// Reads `10`, `10-20` or `10-L20`, whatever follows.
fn parse_lines(text: &str) -> Option<(u64, u64)> {
    let digits = |text: &str| text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (first, rest) = text.split_at(digits(text));
    let first: u64 = first.parse().ok().filter(|line| *line > 0)?;
    let last = rest.strip_prefix('-').map(|rest| rest.strip_prefix('L').unwrap_or(rest));
    let last = last.and_then(|rest| rest[..digits(rest)].parse().ok());
    Some((first, last.unwrap_or(first).max(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = find_mentions(text)
            .iter()
            .map(|mention| match mention.lines {
                Some((first, last)) => format!("{} {first}..{last}", mention.path),
                None => mention.path.clone(),
            })
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn mentions_begin_words_and_may_have_ranges() {
        check("see @src/main.rs and @README.md.", &["src/main.rs", "README.md."]);
        check("(@a) \"@b\" @a @a", &["a)", "b\"", "a"]);
        check("@a#L10 @a#L10-20 @a#L5-L7, @a#L0 @a#x", &["a 10..10", "a 10..20", "a 5..7", "a#L0", "a#x"]);
        check("@\"a b.txt\" @\"c d\"#L2-3 @\"open", &["a b.txt", "c d 2..3"]);
        check("me@example.com a@b @ @", &[]);
        check("no mention", &[]);
    }

    #[test]
    fn words_of_a_command_or_a_schedule_are_not_a_persons() {
        let shown = |prompt: &Prompt| -> Vec<(String, bool)> {
            all_mentions(prompt).into_iter().map(|(mention, is_own)| (mention.path, is_own)).collect()
        };
        let named = |path: &str, is_own| (path.to_owned(), is_own);
        let typed = Prompt::text("/s @a @b");
        assert_eq!(shown(&typed), [named("a", true), named("b", true)]);
        let mut expanded = typed;
        expanded.expand(loci_core::message::Content::Text("see @b and @c".to_owned()));
        assert_eq!(shown(&expanded), [named("a", true), named("b", true), named("c", false)]);
        let attached = Prompt { mentions_from: Some("@a".to_owned()), ..Prompt::text("@a @b") };
        assert_eq!(shown(&attached), [named("a", true)]);
        let scheduled = Prompt { is_scheduled: true, ..Prompt::text("see @a") };
        assert_eq!(shown(&scheduled), [named("a", false)]);
    }

    #[test]
    fn attachments_have_names_for_people() {
        let lines = [
            r#"{"type":"file","filename":"/p/a.rs","displayPath":"a.rs","content":{"file":{"numLines":1}}}"#,
            r#"{"type":"file","filename":"/p/a.gif","content":{"type":"image"}}"#,
            r#"{"type":"directory","path":"/p/src","displayPath":"src/"}"#,
            r#"{"type":"agent_mention","agentType":"scout"}"#,
            r#"{"type":"session_mention","sessionId":"s1"}"#,
            r#"{"type":"mcp_resource","server":"calc","uri":"calc://pi"}"#,
            r#"{"type":"ultrathink"}"#,
        ];
        let named = attached_names(&lines.map(Attachment::parse));
        assert_eq!(attached_names(&lines.map(Attachment::recorded)), named, "whoever recorded them");
        let expected =
            ["a.rs, 1 line", "/p/a.gif", "src/, its names", "agent scout", "session s1", "calc:calc://pi"];
        assert_eq!(named, expected);
    }

    #[test]
    fn punctuation_of_the_sentence_is_left_off_where_the_file_has_none() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.rs"), "x").unwrap();
        let place = Workspace {
            cwd: directory.path().to_owned(),
            project: directory.path().to_owned(),
            extra_dirs: Vec::new(),
            home: directory.path().to_owned(),
        };
        for (text, is_found) in [("@a.rs", true), ("@a.rs?", true), ("@a.rs),", true), ("@b.rs", false)] {
            let mention = find_mentions(text).remove(0);
            assert_eq!(mention.find(&place).is_some(), is_found, "{text}");
        }
    }

    #[test]
    fn sessions_are_named_by_id_or_title_and_files_come_first() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("session:file"), "x").unwrap();
        let place = Workspace {
            cwd: directory.path().to_owned(),
            project: directory.path().to_owned(),
            extra_dirs: Vec::new(),
            home: directory.path().to_owned(),
        };
        for (text, expected) in [
            ("as in @session:0b5e-1, please", Some("0b5e-1")),
            ("@\"session:mend the port\"", Some("mend the port")),
            ("@session:", None),
            ("@session", None),
            ("@session:file", None),
        ] {
            let mention = find_mentions(text).remove(0);
            assert_eq!(mention.session(&place), expected, "{text}");
        }
    }

    #[test]
    fn word_that_names_nothing_is_told_only_where_it_can_only_be_a_path() {
        for (text, is_told) in [
            ("@property", false),
            ("@types/node", false),
            ("@./gone.rs", true),
            ("@/etc/gone", true),
            ("@\"no such\"", true),
            ("@gone.rs#L3", true),
        ] {
            assert_eq!(find_mentions(text).remove(0).missing().is_some(), is_told, "{text}");
        }
    }

    #[test]
    fn one_word_asks_for_deep_thought() {
        for (text, expected) in [
            ("ultrathink about it", true),
            ("Please, Ultrathink!", true),
            ("ultrathinking", false),
            ("think hard", false),
            ("my_ultrathink", false),
            ("", false),
        ] {
            assert_eq!(asks_for_deep_thought(text), expected, "{text}");
        }
    }
}
