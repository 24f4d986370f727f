//! Slash commands that the interface itself carries out.

use super::{Action, App, ExitReason};
use crate::block::Block;

impl App {
    /// Carries out a command of the interface; none where the text is for the session.
    pub(super) fn run_command(&mut self, text: &str) -> Option<Vec<Action>> {
        match text.trim() {
            "/exit" | "/quit" => Some(self.exit(ExitReason::Asked)),
            "/help" => {
                let commands = self.session.commands.iter();
                let lines: Vec<String> = commands
                    .map(|command| format!("- `/{}` {}", command.name, command.description))
                    .collect();
                let markdown = format!("**Commands**\n\n{}\n", lines.join("\n"));
                self.conversation.push(Block::Output { markdown });
                Some(Vec::new())
            }
            _ => None,
        }
    }
}
