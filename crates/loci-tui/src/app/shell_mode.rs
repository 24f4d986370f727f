//! Commands of the shell that the person runs (`!`): sent to the session, shown as a block while they run.

use loci_core::ids::ToolUseId;
use loci_engine::{Command, ShellCommand, ShellOutput};

use super::terminal_shell::{ASKED_FOR_TERMINAL, SHELL_REQUEST, TerminalCommand, asks_for_terminal};
use super::{App, Effect};
use crate::block::NoticeLevel;
use crate::input::Draft;
use crate::status::{Activity, Work};

impl App {
    /// Runs a command of the shell; during a turn, and behind others that wait, it waits for its time.
    pub(super) fn run_shell(&mut self, draft: Draft) -> Vec<Effect> {
        if self.queue.has_held() {
            self.queue.hold(draft);
            return Vec::new();
        }
        self.run_held_shell(draft)
    }

    /// The same for one whose turn it is among those that wait.
    pub(super) fn run_held_shell(&mut self, draft: Draft) -> Vec<Effect> {
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
                self.notice(NoticeLevel::Warning, refusal);
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

    /// A command begins to run.
    pub(super) fn shell_started(&mut self, call: ToolUseId, command: String) {
        self.queue.shell_started();
        let activity = Activity::Running(loci_stdx::single_line(&command, 50));
        self.transcript.conversation.begin_shell(call, command);
        let now = self.now;
        let work = self.session.work.get_or_insert_with(|| Work { since: now, ..Work::default() });
        work.activity = activity;
    }

    /// A command has ended, or goes on in the background.
    pub(super) fn shell_ended(&mut self, call: &ToolUseId, output: &ShellOutput) {
        let printed: Vec<&str> = [&output.stdout, &output.stderr]
            .into_iter()
            .map(|text| text.trim_end())
            .filter(|it| !it.is_empty())
            .collect();
        let exit_code = match output.is_interrupted {
            true => None,
            false => output.exit_code,
        };
        let printed = printed.join("\n");
        let wants_terminal = asks_for_terminal(&printed);
        self.transcript.conversation.end_shell(call, printed, exit_code);
        if wants_terminal {
            self.notice(NoticeLevel::Info, ASKED_FOR_TERMINAL);
        }
        self.session.set_activity(Activity::Waiting);
    }
}
