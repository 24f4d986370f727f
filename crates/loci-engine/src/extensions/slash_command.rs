//! The registry of slash commands, which is part of the protocol.

pub use loci_protocol::slash_command::{
    CommandAction, CommandCall, CommandRegistry, CommandScope, CommandSource, CommandTiming, SlashCommand,
    not_offered, split_command,
};
