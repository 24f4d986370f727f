//! Slash commands: prompts that ask something of the session itself, or stand for a longer prompt.
//!
//! There is one registry of them. The engine reads prompts by it, front ends list it (`init`, `initialize`, help),
//! and whoever brings more commands appends to it between turns. An entry never changes its place and is never
//! taken away, so that a list that somebody was shown stays true.

use std::sync::Arc;

use crate::command::Prompt;

/// A command that is written as `/name arguments`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: String,
    /// Other names for it, which lists leave out.
    pub aliases: Vec<String>,
    /// What it does, for people.
    pub description: String,
    /// What may follow the name, for people; empty when nothing may.
    pub argument_hint: String,
    /// Where it comes from.
    pub source: CommandSource,
    /// What it does.
    pub action: CommandAction,
}

impl SlashCommand {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandSource {
    /// It is part of loci.
    Builtin,
    /// The administrator's.
    Managed,
    /// The user's.
    User,
    /// The project's.
    Project,
    /// A plugin's.
    Plugin,
    /// It is a prompt of an MCP server.
    Mcp,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAction {
    /// Begins a new conversation; the argument is a name for the one that is left.
    Clear,
    /// Has an MCP server fill a prompt in; the arguments are what is filled in.
    McpPrompt,
    /// Makes the conversation shorter; the argument is what should be kept above all.
    Compact,
    /// Becomes the prompt that the skill of its name makes of the arguments.
    Skill,
}

/// A prompt that is a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandCall {
    /// Which.
    pub command: Arc<SlashCommand>,
    /// What follows its name.
    pub argument: Option<String>,
}

/// The commands of a session, in the order they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandRegistry {
    commands: Vec<Arc<SlashCommand>>,
}

impl CommandRegistry {
    /// Returns the commands that are part of loci.
    pub fn builtin() -> Self {
        let builtin = |name: &str, aliases: &[&str], description: &str, argument_hint: &str, action| {
            Arc::new(SlashCommand {
                name: name.to_owned(),
                aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
                description: description.to_owned(),
                argument_hint: argument_hint.to_owned(),
                source: CommandSource::Builtin,
                action,
            })
        };
        let clear = "Begin a new conversation; the one at hand is kept and can be resumed";
        let compact = "Put a summary in the place of the conversation so far";
        Self {
            commands: vec![
                builtin("clear", &["reset", "new"], clear, "[name for what is left]", CommandAction::Clear),
                builtin("compact", &[], compact, "[what to keep above all]", CommandAction::Compact),
            ],
        }
    }

    /// Adds a command at the end; false when its name is taken, and then nothing is added. An alias that is taken is
    /// left out.
    pub fn append(&mut self, mut command: SlashCommand) -> bool {
        if self.find(&command.name).is_some() {
            return false;
        }
        command.aliases.retain(|alias| self.find(alias).is_none());
        self.commands.push(Arc::new(command));
        true
    }

    /// Finds a command by its name or an alias, without the slash.
    pub fn find(&self, name: &str) -> Option<&Arc<SlashCommand>> {
        self.commands.iter().find(|command| command.is_called(name))
    }

    /// Iterates over the commands in order.
    pub fn iter(&self) -> impl Iterator<Item = &SlashCommand> {
        self.commands.iter().map(Arc::as_ref)
    }

    /// Reads a prompt as a command; none when it is for the model.
    pub fn parse(&self, prompt: &Prompt) -> Option<CommandCall> {
        let text = prompt.content.text();
        let text = text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let command = self.find(word.strip_prefix('/')?)?;
        let argument = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        Some(CommandCall { command: Arc::clone(command), argument })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders what a prompt is read as.
    fn parsed(registry: &CommandRegistry, text: &str) -> String {
        match registry.parse(&Prompt::text(text)) {
            Some(CommandCall { command, argument: None }) => command.name.clone(),
            Some(CommandCall { command, argument: Some(argument) }) => {
                format!("{} <{argument}>", command.name)
            }
            None => "-".to_owned(),
        }
    }

    #[test]
    fn commands_are_whole_words_at_the_beginning() {
        for (text, expected) in [
            ("/compact", "compact"),
            (" /compact  the port ", "compact <the port>"),
            ("/compact\nthe port", "compact <the port>"),
            ("/compactly", "-"),
            ("/clear", "clear"),
            ("/clear old work", "clear <old work>"),
            ("/reset", "clear"),
            ("/new", "clear"),
            ("/newest", "-"),
            ("clear", "-"),
            ("//clear", "-"),
            ("please /clear", "-"),
            ("/", "-"),
            ("", "-"),
        ] {
            assert_eq!(parsed(&CommandRegistry::builtin(), text), expected, "{text:?}");
        }
    }

    #[test]
    fn appended_command_never_takes_a_name_that_is_in_use() {
        let mut registry = CommandRegistry::builtin();
        let before = registry.clone();
        let command = |name: &str, aliases: &[&str]| SlashCommand {
            name: name.to_owned(),
            aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
            ..SlashCommand::clone(before.find("compact").unwrap())
        };
        for taken in ["clear", "new"] {
            assert!(!registry.append(command(taken, &[])), "{taken}");
        }
        assert_eq!(registry, before);
        assert!(registry.append(command("review", &["reset", "r"])));
        let names: Vec<_> = registry.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["clear", "compact", "review"], "the tail grows and what was there stays");
        assert_eq!(
            (parsed(&registry, "/r x"), parsed(&registry, "/reset")),
            ("review <x>".into(), "clear".into())
        );
    }
}
