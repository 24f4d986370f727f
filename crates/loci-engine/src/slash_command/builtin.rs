//! The commands that are part of loci: a table, one row each.
//!
//! Rows are never reordered: clients were shown the list. Those that the terminal carries out have their code in
//! `loci-tui`, `app/commands.rs`, by the same name.

use super::CommandAction::{Clear, Compact, FrontEnd, Local};
use super::CommandScope::{Everywhere, Terminal, UnlessTaken};
use super::CommandTiming::{AtOnce, BetweenTurns};
use super::{CommandAction, CommandScope, CommandSource, CommandTiming, SlashCommand};

/// Name, aliases, argument, what it does for people, what it does, who has it, when it may run.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
    CommandAction,
    CommandScope,
    CommandTiming,
);

const BUILTIN: &[Row] = &[
    (
        "clear",
        &["reset", "new"],
        "[name for what is left]",
        "Begin a new conversation; the one at hand is kept and can be resumed",
        Clear,
        Everywhere,
        BetweenTurns,
    ),
    (
        "compact",
        &[],
        "[what to keep above all]",
        "Put a summary in the place of the conversation so far",
        Compact,
        Everywhere,
        BetweenTurns,
    ),
    ("help", &[], "", "Show the commands and the keys", FrontEnd, Terminal, AtOnce),
    ("export", &[], "[file]", "Write the conversation to a file, as Markdown", FrontEnd, Terminal, AtOnce),
    (
        "copy",
        &[],
        "[N]",
        "Copy the last answer, or the Nth before it, as Markdown",
        FrontEnd,
        Terminal,
        AtOnce,
    ),
    ("rename", &[], "[name]", "Give this session a name to find it by", Local, Everywhere, AtOnce),
    (
        "branch",
        &[],
        "[name]",
        "Go on in a copy of this conversation; the original stays",
        FrontEnd,
        Terminal,
        BetweenTurns,
    ),
    ("plan", &[], "[task]", "Make a plan first: look, and change nothing", FrontEnd, Terminal, BetweenTurns),
    (
        "tasks",
        &["bashes"],
        "",
        "What runs in the background: its output, and a way to stop it",
        FrontEnd,
        Terminal,
        AtOnce,
    ),
    (
        "btw",
        &[],
        "[question]",
        "Ask something on the side; nothing of it is recorded",
        FrontEnd,
        Terminal,
        AtOnce,
    ),
    (
        "resume",
        &["continue"],
        "[session]",
        "Go on with an earlier session; without a name, choose one",
        FrontEnd,
        Terminal,
        BetweenTurns,
    ),
    (
        "search",
        &[],
        "[words]",
        "Search what was said in all sessions, and go on from there",
        FrontEnd,
        Terminal,
        AtOnce,
    ),
    (
        "rewind",
        &["checkpoint", "undo"],
        "",
        "Go back to before a prompt: conversation, code or both; can be undone",
        FrontEnd,
        Terminal,
        BetweenTurns,
    ),
    ("exit", &["quit"], "", "Leave loci; the conversation can be resumed", FrontEnd, Terminal, AtOnce),
    ("context", &[], "[all]", "Show what fills the model's window", Local, Everywhere, AtOnce),
    ("usage", &["cost", "stats"], "", "Show cost, time and tokens of the session", Local, Everywhere, AtOnce),
    ("model", &[], "[model]", "Ask another model", Local, Everywhere, AtOnce),
    ("effort", &[], "[level|auto]", "Change how hard the model thinks", Local, Everywhere, AtOnce),
    ("config", &["settings"], "[key=value]", "Look at settings and change them", Local, Everywhere, AtOnce),
    ("mcp", &[], "[reconnect|enable|disable server]", "Look after MCP servers", Local, Everywhere, AtOnce),
    ("status", &[], "", "Show version, session, model, settings and servers", Local, UnlessTaken, AtOnce),
    (
        "permissions",
        &["allowed-tools"],
        "[allow|ask|deny rule]",
        "Look at permission rules and change them",
        Local,
        UnlessTaken,
        AtOnce,
    ),
    ("add-dir", &[], "<path>", "Let the session work in another directory, too", Local, UnlessTaken, AtOnce),
    (
        "autocompact",
        &[],
        "[tokens|auto]",
        "Choose the size at which the conversation is compacted",
        Local,
        UnlessTaken,
        AtOnce,
    ),
    (
        "memory",
        &[],
        "[accept|reject|forget file]",
        "Instruction files and memories",
        Local,
        UnlessTaken,
        AtOnce,
    ),
    ("diff", &[], "", "Show what changed since the last commit", Local, UnlessTaken, AtOnce),
    (
        "doctor",
        &[],
        "",
        "Say what this installation is made of and what is wrong with it",
        Local,
        UnlessTaken,
        AtOnce,
    ),
    ("hooks", &[], "", "List the hooks", Local, UnlessTaken, AtOnce),
    ("skills", &[], "", "List the skills", Local, UnlessTaken, AtOnce),
    ("reload-skills", &[], "", "Read all skills and commands anew", Local, UnlessTaken, BetweenTurns),
    ("reload-plugins", &[], "", "Read all plugins anew", Local, UnlessTaken, BetweenTurns),
    (
        "cd",
        &[],
        "<path>",
        "Move the session to another directory, with all that was said",
        FrontEnd,
        Terminal,
        BetweenTurns,
    ),
    ("recap", &[], "", "Say in a line or two what this session is about", FrontEnd, Terminal, AtOnce),
    ("theme", &[], "[name]", "Choose the colours, and see them at once", FrontEnd, Terminal, AtOnce),
    ("keybindings", &[], "", "Open the file of your own keys in your editor", FrontEnd, Terminal, AtOnce),
];

/// Returns the commands, in the order of the table.
pub(super) fn commands() -> impl Iterator<Item = SlashCommand> {
    BUILTIN.iter().map(|(name, aliases, argument_hint, description, action, scope, timing)| SlashCommand {
        name: (*name).to_owned(),
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        description: (*description).to_owned(),
        argument_hint: (*argument_hint).to_owned(),
        source: CommandSource::Builtin,
        action: *action,
        scope: *scope,
        timing: *timing,
    })
}
