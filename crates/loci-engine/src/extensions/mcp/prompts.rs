//! Prompts of servers as slash commands, and resources that a prompt mentions.

use loci_mcp::{PromptSpec, ServerStatus, ServerView, Servers, prompt_name};
use serde_json::{Map, Value};

use super::McpConfig;
use crate::extensions::slash_command::{
    CommandAction, CommandScope, CommandSource, CommandTiming, SlashCommand,
};

/// Returns the command that stands for a prompt.
pub(super) fn command(view: &ServerView, prompt: &PromptSpec) -> SlashCommand {
    let hint = prompt.arguments.iter().map(|argument| match argument.is_required {
        true => format!("<{}>", argument.name),
        false => format!("[{}]", argument.name),
    });
    SlashCommand {
        name: prompt_name(&view.name, &prompt.name),
        aliases: Vec::new(),
        description: loci_stdx::single_line(&prompt.description, 200),
        argument_hint: hint.collect::<Vec<_>>().join(" "),
        source: CommandSource::Mcp,
        action: CommandAction::McpPrompt,
        scope: CommandScope::Everywhere,
        timing: CommandTiming::BetweenTurns,
    }
}

/// A prompt of a server that is to be filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PromptCall {
    pub(crate) server: String,
    pub(crate) prompt: String,
    pub(crate) arguments: Map<String, Value>,
}

impl PromptCall {
    /// Finds the prompt behind a command, and gives it its arguments in order; the last takes all that is left.
    pub(crate) fn find(servers: &Servers, command: &str, written: &str) -> Result<Self, String> {
        let views = servers.views();
        let found = views.iter().find_map(|view| {
            let prompt = view.offer.prompts.iter().find(|it| prompt_name(&view.name, &it.name) == command)?;
            Some((view, prompt))
        });
        let (view, spec) =
            found.ok_or_else(|| format!("/{command} is gone: its MCP server is not connected"))?;
        let mut words = split_arguments(written);
        if words.len() > spec.arguments.len() && !spec.arguments.is_empty() {
            let rest = words.split_off(spec.arguments.len() - 1).join(" ");
            words.push(rest);
        }
        let missing: Vec<&str> = spec
            .arguments
            .iter()
            .skip(words.len())
            .filter(|it| it.is_required)
            .map(|it| it.name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(format!("/{command} needs more arguments: {}", missing.join(", ")));
        }
        let names = spec.arguments.iter().map(|argument| argument.name.clone());
        let arguments = names.zip(words.into_iter().map(Value::from)).collect();
        Ok(Self { server: view.name.clone(), prompt: spec.name.clone(), arguments })
    }
}

/// Returns what the argument could be that is being typed behind a command which is a prompt of a server; nothing where
/// the server does not say.
pub async fn complete_prompt(mcp: &McpConfig, command: &str, written: &str) -> Vec<String> {
    let servers = &mcp.servers;
    let views = servers.views();
    let found = views.iter().find_map(|view| {
        let prompt = view.offer.prompts.iter().find(|it| prompt_name(&view.name, &it.name) == command)?;
        Some((view, prompt))
    });
    let Some((view, prompt)) = found else { return Vec::new() };
    let mut words = split_arguments(written);
    let begins_anew = words.is_empty() || written.ends_with(char::is_whitespace);
    let typed = if begins_anew { String::new() } else { words.pop().unwrap_or_default() };
    let Some(argument) = prompt.arguments.get(words.len()) else { return Vec::new() };
    let names = prompt.arguments.iter().map(|argument| argument.name.clone());
    let others = names.zip(words.into_iter().map(Value::from)).collect();
    let completed = servers.complete(&view.name, &prompt.name, (&argument.name, &typed), others).await;
    completed.unwrap_or_else(|error| {
        tracing::debug!(target: "loci::mcp", %error, "an argument was not completed");
        Vec::new()
    })
}

/// Splits arguments at white space; quotes hold a word together.
fn split_arguments(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') if word.as_deref().unwrap_or_default().is_empty() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A resource that a prompt mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) server: String,
    pub(crate) uri: String,
}

/// The most resources that one prompt brings along.
const MOST_MENTIONS: usize = 20;

/// Finds `@server:address` of connected servers that have resources.
pub(crate) fn mentions(servers: &Servers, text: &str) -> Vec<Mention> {
    if !text.contains('@') {
        return Vec::new();
    }
    let views = servers.views();
    let known: Vec<&str> = views
        .iter()
        .filter(|view| view.status == ServerStatus::Connected && view.offer.has_resources)
        .map(|view| view.name.as_str())
        .collect();
    find_mentions(&known, text)
}

fn find_mentions(known: &[&str], text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for word in text.split_whitespace() {
        let Some((_, mention)) = word.split_once('@') else { continue };
        let Some((server, uri)) = mention.split_once(':').filter(|(_, uri)| uri.contains("://")) else {
            continue;
        };
        let uri = uri.trim_end_matches([',', '.', ';', '!', '?', ')', '"', '\'']);
        let mention = Mention { server: server.to_owned(), uri: uri.to_owned() };
        if known.contains(&server) && !found.contains(&mention) && found.len() < MOST_MENTIONS {
            found.push(mention);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_arguments_together() {
        for (text, expected) in [
            ("", &[][..]),
            ("a  b", &["a", "b"]),
            (r#"one "two words" three"#, &["one", "two words", "three"]),
            (r#""" x"#, &["", "x"]),
            ("it's fine", &["it's", "fine"]),
            (r#"'a "b" c'"#, &[r#"a "b" c"#]),
            (r#""open end"#, &["open end"]),
        ] {
            assert_eq!(split_arguments(text), expected, "{text}");
        }
    }

    #[test]
    fn only_resources_of_known_servers_are_mentions() {
        let found = find_mentions(
            &["docs"],
            "see @docs:file:///a, (@docs:file:///a) and @docs:note://x. @other:file:///b @docs:plain me@docs:x @docs",
        );
        let uris: Vec<&str> = found.iter().map(|it| it.uri.as_str()).collect();
        assert_eq!(uris, ["file:///a", "note://x"]);
    }
}
