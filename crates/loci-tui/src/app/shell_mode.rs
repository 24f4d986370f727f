//! Commands of the shell that the person runs (`!`): sent to the session, shown as a block while they run.

use loci_engine::{Command, ShellCommand};

use super::terminal_shell::{SHELL_REQUEST, TerminalCommand};
use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::input::Draft;

impl App {
    /// Runs a command of the shell; during a turn it waits for its time.
    pub(super) fn run_shell(&mut self, draft: Draft) -> Vec<Effect> {
        let command = draft.expanded().trim().to_owned();
        if command.is_empty() {
            return Vec::new();
        }
        // Whether the model answers to it is known once the session is there.
        let is_early = !self.session.is_started || self.session.switching.is_some();
        if self.session.is_working() || is_early {
            self.queue.hold_first(draft);
            return Vec::new();
        }
        if let Some(command) = TerminalCommand::parse(&command) {
            if let Some(refusal) = command.refusal(&self.session) {
                self.transcript.notice(NoticeLevel::Warning, refusal);
                return Vec::new();
            }
            self.queue.push_shell();
            self.session.terminal_command = Some(command);
            // A command is run where the shell of the session stands.
            return vec![Effect::Send(Command::Snapshot { request: SHELL_REQUEST.to_owned() })];
        }
        self.queue.push_shell();
        let is_answered = self.preferences.interface.responds_to_shell;
        vec![Effect::Send(Command::Shell(ShellCommand { command, is_answered, ran: None }))]
    }
}
