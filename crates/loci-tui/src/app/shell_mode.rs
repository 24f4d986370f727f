//! Commands of the shell that the person runs (`!`): sent to the session, shown as a block while they run.

use loci_core::ids::ToolUseId;
use loci_engine::{Command, ShellCommand, ShellOutput};

use super::terminal_shell::{ASKED_FOR_TERMINAL, TerminalCommand, asks_for_terminal};
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
        let is_early = !self.session.is_started || self.switching.is_some();
        if self.work.is_some() || is_early {
            self.queue.hold_first(draft);
            return Vec::new();
        }
        if let Some(command) = TerminalCommand::parse(&command) {
            if let Some(refusal) = self.terminal_refusal(&command) {
                self.notice(NoticeLevel::Warning, refusal);
                return Vec::new();
            }
            self.queue.push_shell();
            return self.ask_for_place(command);
        }
        self.queue.push_shell();
        let is_answered = self.interface.responds_to_shell;
        vec![Effect::Send(Command::Shell(ShellCommand { command, is_answered, ran: None }))]
    }

    /// A command begins to run.
    pub(super) fn shell_started(&mut self, call: ToolUseId, command: String) {
        self.queue.shell_started();
        let activity = Activity::Running(loci_stdx::single_line(&command, 50));
        self.conversation.begin_shell(call, command);
        let work = self.work.get_or_insert_with(|| Work { since: self.now, ..Work::default() });
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
        self.conversation.end_shell(call, printed, exit_code);
        if wants_terminal {
            self.notice(NoticeLevel::Info, ASKED_FOR_TERMINAL);
        }
        if let Some(work) = &mut self.work {
            work.activity = Activity::Waiting;
        }
    }

    /// Has what runs go on in the background.
    pub(super) fn move_to_background(&mut self) -> Vec<Effect> {
        vec![Effect::Send(Command::MoveToBackground { call: None })]
    }
}
