//! Slash commands: prompts that ask something of the session itself, or stand for a longer prompt.
//!
//! There is one registry of them. The engine reads prompts by it, front ends list it (`init`, `initialize`, help),
//! and whoever brings more commands appends to it between turns. An entry never changes its place and is never
//! taken away, so that a list that somebody was shown stays true.
//!
//! A command that only the terminal has ([`CommandScope::Terminal`]) does not exist for the engine: a prompt of that name
//! that reaches it is told as not available, or is for a skill of the user's. The terminal asks [`CommandRegistry::find_in_terminal`],
//! where its own commands win.

mod builtin;
mod not_offered;

pub use not_offered::not_offered;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use serde::{Deserialize, Serialize};

use crate::prompt::Prompt;

/// A command that is written as `/name arguments`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Who has it.
    pub scope: CommandScope,
    /// When it may run.
    pub timing: CommandTiming,
}

/// Which front ends have a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandScope {
    /// All of them; `init` and `initialize` list it.
    Everywhere,
    /// All of them, unless the user has a skill of that name: then without a terminal that is meant.
    UnlessTaken,
    /// The terminal alone.
    Terminal,
}

/// When a command may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandTiming {
    /// At once, also while a turn is under way: it shows something, and what it changes does not disturb the turn.
    AtOnce,
    /// Between turns: said during one, it waits for the end.
    BetweenTurns,
}

impl SlashCommand {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandAction {
    /// Begins a new conversation; the argument is a name for the one that is left.
    Clear,
    /// Has an MCP server fill a prompt in; the arguments are what is filled in.
    McpPrompt,
    /// Makes the conversation shorter; the argument is what should be kept above all.
    Compact,
    /// Becomes the prompt that the skill of its name makes of the arguments.
    Skill,
    /// Is carried out by the front end itself, by its name.
    FrontEnd,
    /// Is answered without the model, by the session itself.
    Local,
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandRegistry {
    commands: Vec<Arc<SlashCommand>>,
}

impl CommandRegistry {
    /// Returns the commands that are part of loci.
    pub fn builtin() -> Self {
        Self { commands: builtin::commands().map(Arc::new).collect() }
    }

    /// Adds commands at the end, each unless its name is taken; an alias that is taken is left out.
    pub fn append_all(&mut self, commands: impl IntoIterator<Item = SlashCommand>) {
        let commands: Vec<SlashCommand> = commands.into_iter().collect();
        let known = self.commands.iter().filter(|command| command.scope == CommandScope::Everywhere);
        let mut taken: FxHashSet<&str> = FxHashSet::default();
        taken.reserve(self.commands.len() + commands.len());
        taken.extend(
            known
                .flat_map(|command| std::iter::once(&command.name).chain(&command.aliases))
                .map(String::as_str),
        );
        // Decided before they are moved: there may be hundreds, whose names need not be copied for that.
        let mut decided: Vec<Option<Vec<bool>>> = Vec::with_capacity(commands.len());
        for SlashCommand { name, aliases, .. } in &commands {
            let is_new = taken.insert(name);
            decided.push(is_new.then(|| aliases.iter().map(|alias| taken.insert(alias)).collect()));
        }
        for (mut command, kept_aliases) in commands.into_iter().zip(decided) {
            let Some(kept_aliases) = kept_aliases else { continue };
            let mut is_kept = kept_aliases.into_iter();
            command.aliases.retain(|_| is_kept.next() == Some(true));
            self.commands.push(Arc::new(command));
        }
    }

    /// Puts these commands in the place of all that come from where they do; those stand at the end.
    pub fn replace_all(&mut self, source: CommandSource, commands: Vec<SlashCommand>) {
        self.commands.retain(|command| command.source != source);
        self.append_all(commands);
    }

    /// Adds a command at the end; false when its name is taken, and then nothing is added. An alias that is taken is
    /// left out.
    pub fn append(&mut self, mut command: SlashCommand) -> bool {
        let of = CommandScope::Everywhere;
        if self.find_of(of, &command.name).is_some() {
            return false;
        }
        command.aliases.retain(|alias| self.find_of(of, alias).is_none());
        self.commands.push(Arc::new(command));
        true
    }

    /// Finds a command that every front end has, by its name or an alias, without the slash.
    pub fn find(&self, name: &str) -> Option<&Arc<SlashCommand>> {
        let shared = self.find_of(CommandScope::Everywhere, name);
        shared.or_else(|| self.find_of(CommandScope::UnlessTaken, name))
    }

    fn find_of(&self, scope: CommandScope, name: &str) -> Option<&Arc<SlashCommand>> {
        self.commands.iter().find(|command| command.scope == scope && command.is_called(name))
    }

    /// Finds a command as the terminal has it: those of its own win.
    pub fn find_in_terminal(&self, name: &str) -> Option<&Arc<SlashCommand>> {
        let own = self.find_of(CommandScope::Terminal, name);
        own.or_else(|| self.find_of(CommandScope::UnlessTaken, name)).or_else(|| self.find(name))
    }

    /// Iterates over the commands that every front end has, in order.
    pub fn iter(&self) -> impl Iterator<Item = &SlashCommand> {
        let is_reached = |command: &&Arc<SlashCommand>| match command.scope {
            CommandScope::Everywhere => true,
            CommandScope::UnlessTaken => self.find_of(CommandScope::Everywhere, &command.name).is_none(),
            CommandScope::Terminal => false,
        };
        self.commands.iter().filter(is_reached).map(Arc::as_ref)
    }

    /// Iterates over the commands that can be called at a terminal, in order.
    pub fn iter_in_terminal(&self) -> impl Iterator<Item = &Arc<SlashCommand>> {
        let is_reached = |command: &&Arc<SlashCommand>| {
            self.find_in_terminal(&command.name).is_some_and(|found| Arc::ptr_eq(found, command))
        };
        self.commands.iter().filter(is_reached)
    }

    /// Reads a prompt as a command that every front end has; none when it is for the model.
    pub fn parse(&self, prompt: &Prompt) -> Option<CommandCall> {
        if prompt.is_verbatim {
            return None;
        }
        let text = prompt.content.text();
        let (name, argument) = split_command(&text)?;
        let command = self.find(name)?;
        // The model may have scheduled it: it could not have typed a command either, but for a skill.
        if prompt.is_scheduled && command.action != CommandAction::Skill {
            return None;
        }
        Some(CommandCall { command: Arc::clone(command), argument })
    }

    /// Says what to do in the place of a command that people know and that this front end does not have; none where there
    /// is one, or nobody knows it.
    pub fn unavailable(&self, name: &str) -> Option<String> {
        if self.find(name).is_some() {
            return None;
        }
        let only_there = || {
            let command = self.find_of(CommandScope::Terminal, name)?;
            let name = &command.name;
            let instead = match name.as_str() {
                "login" | "logout" => format!("; `loci {name}` in a shell does the same"),
                _ => String::new(),
            };
            Some(format!("/{name} is a command of the terminal and is not available here{instead}"))
        };
        only_there().or_else(|| not_offered(name))
    }

    /// Returns the name in a text that is written like a command and is none; paths are no commands.
    pub fn unknown_name<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (name, _) = split_command(text)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
        let is_word = !name.is_empty() && name.chars().all(is_name);
        (is_word && self.find(name).is_none()).then_some(name)
    }

    /// Reads a text as a command, as the terminal does.
    pub fn parse_in_terminal(&self, text: &str) -> Option<CommandCall> {
        let (name, argument) = split_command(text)?;
        Some(CommandCall { command: Arc::clone(self.find_in_terminal(name)?), argument })
    }
}

/// Splits `/name arguments`; none where the text does not begin so.
pub fn split_command(text: &str) -> Option<(&str, Option<String>)> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let argument = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    Some((word.strip_prefix('/')?, argument))
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
    fn commands_of_the_terminal_are_not_the_engines_and_leave_their_names_to_skills() {
        let mut registry = CommandRegistry::builtin();
        assert_eq!(parsed(&registry, "/help"), "-");
        assert!(registry.iter().all(|command| command.name != "help"));
        let terminal = |registry: &CommandRegistry, text: &str| {
            registry.parse_in_terminal(text).map(|call| call.command.action)
        };
        assert_eq!(terminal(&registry, "/help"), Some(CommandAction::FrontEnd));
        assert_eq!(terminal(&registry, "/quit"), Some(CommandAction::FrontEnd), "by an alias");
        assert_eq!(terminal(&registry, "/compact x"), Some(CommandAction::Compact));
        assert_eq!(terminal(&registry, "/nothing"), None);
        let skill = SlashCommand {
            name: "help".into(),
            action: CommandAction::Skill,
            ..SlashCommand::clone(registry.find("compact").unwrap())
        };
        assert!(registry.append(skill));
        assert_eq!(parsed(&registry, "/help"), "help", "the skill, for the engine");
        assert_eq!(terminal(&registry, "/help"), Some(CommandAction::FrontEnd));
        let n_listed = registry.iter_in_terminal().filter(|command| command.name == "help").count();
        assert_eq!(n_listed, 1, "what cannot be called is not listed");
    }

    #[test]
    fn skill_takes_the_name_of_a_command_that_yields_without_a_terminal_only() {
        let mut registry = CommandRegistry::builtin();
        assert_eq!(registry.find("status").map(|it| it.action), Some(CommandAction::Local));
        let skill = SlashCommand {
            name: "status".into(),
            action: CommandAction::Skill,
            ..SlashCommand::clone(registry.find("compact").unwrap())
        };
        assert!(registry.append(skill));
        assert_eq!(registry.find("status").map(|it| it.action), Some(CommandAction::Skill));
        assert_eq!(registry.find_in_terminal("status").map(|it| it.action), Some(CommandAction::Local));
        assert_eq!(registry.iter().filter(|it| it.name == "status").count(), 1);
    }

    #[test]
    fn builtin_names_and_aliases_are_unique() {
        let registry = CommandRegistry::builtin();
        let mut names: Vec<&str> = Vec::new();
        for command in &registry.commands {
            names.push(&command.name);
            names.extend(command.aliases.iter().map(String::as_str));
        }
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
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
        assert_eq!(names.last(), Some(&"review"), "the tail grows and what was there stays");
        assert_eq!(
            (parsed(&registry, "/r x"), parsed(&registry, "/reset")),
            ("review <x>".into(), "clear".into())
        );
    }
}
