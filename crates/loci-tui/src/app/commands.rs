//! Slash commands that the interface itself carries out, by name.
//!
//! What there is stands in the engine's table of commands (`slash_command/builtin.rs`); here is what those of the terminal
//! do. A command of the table that has no arm here is told to be missing, and a test says so.

use std::sync::Arc;

use loci_app::commands::ReportTopic;
use loci_app::renewal::SwitchTarget;
use loci_core::permission::Mode;
use loci_engine::{
    Command, CommandAction, CommandCall, CommandTiming, SessionSnapshot, not_offered, split_command,
};

use super::recap::{ASKED_RECAP, ask as ask_recap};
use super::{Action, App, Effect, UiAction};
use crate::block::NoticeLevel;
use crate::dialog::KeyEntry;
use crate::input::{Draft, InputMode};
use crate::panel::{
    ConfigPanel, ContextPanel, ContextView, CopyPanel, DebugPanel, DiffPanel, EffortPanel, ExportPanel,
    FewerPromptsPanel, HelpPanel, HooksPanel, McpPanel, MemoryPanel, ModelPanel, Panel, PanelRequest,
    PermissionsPanel, PluginPanel, RenamePanel, ReportPanel, SandboxPanel, SearchPanel, SideQuestionPanel,
    SkillsPanel, TasksPanel, UsagePanel, ask_snapshot, rename_actions,
};

/// The request by which another model is to be asked.
pub(super) const MODEL_REQUEST: &str = "model";

impl App {
    /// Carries out a command of the interface, or has it wait; none where the text is for the session.
    pub(super) fn run_command(&mut self, text: &str) -> Option<Vec<Effect>> {
        let Some(call) = self.session.commands.parse_in_terminal(text) else {
            return self.unknown_command(text);
        };
        match call.command.action {
            CommandAction::FrontEnd => {}
            // What has no panel is answered by the session, in the conversation.
            CommandAction::Local => return self.front_end_command(&call),
            CommandAction::Clear
            | CommandAction::Compact
            | CommandAction::McpPrompt
            | CommandAction::Skill => return None,
        }
        if self.session.is_working() && call.command.timing == CommandTiming::BetweenTurns {
            self.queue.hold(Draft::plain(InputMode::Prompt, text));
            return Some(Vec::new());
        }
        Some(self.front_end_command(&call).unwrap_or_else(|| {
            self.notice(NoticeLevel::Error, format!("/{} is not there yet", call.command.name));
            Vec::new()
        }))
    }

    /// Carries out a command of the terminal; none where nobody has written it.
    fn front_end_command(&mut self, call: &CommandCall) -> Option<Vec<Effect>> {
        let typed = call.argument.as_deref().filter(|_| call.command.name == "plugin");
        if let Some((panel, actions)) = typed.and_then(PluginPanel::typed) {
            self.open_panel(panel);
            return Some(self.carry_out(actions));
        }
        match call.argument.as_deref() {
            None => self.open_command_panel(&call.command.name),
            Some(argument) => self.command_with_argument(&call.command.name, argument),
        }
        .or_else(|| self.plain_command(call))
    }

    /// Opens the panel of a command without an argument; none where it has none.
    fn open_command_panel(&mut self, name: &str) -> Option<Vec<Effect>> {
        Some(match name {
            "rename" => {
                self.open_panel(RenamePanel::new(self.session.title.as_deref()));
                Vec::new()
            }
            "context" => self.open_snapshot_panel(ContextPanel::new(ContextView::Now)),
            "usage" => self.open_snapshot_panel(UsagePanel::new()),
            "status" => self.open_snapshot_panel(ReportPanel::new(ReportTopic::Status)),
            "doctor" => self.open_snapshot_panel(ReportPanel::new(ReportTopic::Doctor)),
            "hooks" => self.open_snapshot_panel(HooksPanel::default()),
            "skills" => self.open_snapshot_panel(SkillsPanel::default()),
            "fewer-permission-prompts" => self.open_snapshot_panel(FewerPromptsPanel::default()),
            "model" => self.open_snapshot_panel(ModelPanel::default()),
            "effort" => self.open_snapshot_panel(EffortPanel::default()),
            "mcp" => self.open_snapshot_panel(McpPanel::default()),
            "permissions" => self.open_snapshot_panel(PermissionsPanel::new()),
            "memory" => self.open_snapshot_panel(MemoryPanel::new()),
            "sandbox" => {
                self.open_panel(SandboxPanel::new());
                self.carry_out(SandboxPanel::begin())
            }
            "plugin" => {
                self.open_panel(PluginPanel::new());
                self.carry_out(PluginPanel::begin())
            }
            "diff" => {
                self.open_panel(DiffPanel::default());
                self.carry_out(DiffPanel::begin())
            }
            "config" => {
                self.open_panel(ConfigPanel::new());
                self.carry_out(ConfigPanel::begin())
            }
            "theme" => {
                self.open_panel(self.preferences.theme_panel());
                // One may have been written since the window had the focus, which not every terminal tells.
                vec![Effect::ReadOwnFiles]
            }
            "resume" => self.choose_session(),
            "agents" => self.open_agents(),
            "tasks" => {
                self.open_panel(TasksPanel::new(self.background.tasks()));
                Vec::new()
            }
            "cd" => {
                let shown_cwd = &self.preferences.options.shown_cwd;
                let here = format!("This session works in {shown_cwd}; `/cd PATH` moves it");
                self.notice(NoticeLevel::Info, here);
                Vec::new()
            }
            "export" => {
                self.open_panel(ExportPanel::default());
                Vec::new()
            }
            _ => return None,
        })
    }

    /// Carries out a command with an argument; none where the session does, or the argument makes no difference.
    fn command_with_argument(&mut self, name: &str, argument: &str) -> Option<Vec<Effect>> {
        Some(match name {
            "rename" => self.carry_out(rename_actions(argument)),
            "context" => match argument {
                "all" => self.open_snapshot_panel(ContextPanel::new(ContextView::All)),
                "time" => self.open_snapshot_panel(ContextPanel::new(ContextView::OverTime)),
                _ => return None,
            },
            "model" if self.session.has_turns => {
                self.session.model_wanted = Some(argument.to_owned());
                vec![Effect::Send(Command::Snapshot { request: MODEL_REQUEST.to_owned() })]
            }
            "theme" => match self.preferences.theme_problem(argument) {
                None => self.carry_out(vec![Action::Ui(UiAction::ChooseTheme(Some(argument.to_owned())))]),
                Some(why) => {
                    self.notice(NoticeLevel::Warning, why);
                    Vec::new()
                }
            },
            "resume" => self.switch(SwitchTarget { session: argument.to_owned(), ..SwitchTarget::default() }),
            "cd" => vec![Effect::AskPanel(PanelRequest::MoveTarget { path: argument.to_owned() })],
            "export" => vec![Effect::AskPanel(PanelRequest::Export { file: Some(argument.to_owned()) })],
            _ => return None,
        })
    }

    /// Carries out a command that does the same with and without an argument.
    fn plain_command(&mut self, call: &CommandCall) -> Option<Vec<Effect>> {
        let argument = call.argument.as_deref();
        Some(match call.command.name.as_str() {
            "help" => {
                let version = &self.preferences.options.version;
                self.open_panel(HelpPanel::new(version, &self.session.commands, &self.keymap));
                Vec::new()
            }
            "exit" => self.leave(),
            "background" => self.go_background(call.argument.clone()),
            "copy" => self.copy_answer(argument),
            "debug" => self.open_snapshot_panel(DebugPanel::default()),
            "login" => {
                self.dialogs.follow_up(KeyEntry::of_session());
                Vec::new()
            }
            "logout" => vec![Effect::AskPanel(PanelRequest::ForgetKey)],
            "keybindings" => vec![Effect::EditKeyBindings],
            "branch" => match self.session.branch(call.argument.clone()) {
                Some(target) => self.switch(target),
                None => {
                    let text = "Nothing was said yet, so there is nothing to branch from";
                    self.notice(NoticeLevel::Info, text);
                    Vec::new()
                }
            },
            "rewind" => self.choose_rewind(),
            "search" => {
                let (panel, actions) = SearchPanel::new(argument);
                self.open_panel(panel);
                self.carry_out(actions)
            }
            "plan" => self.plan(call.argument.clone()),
            "recap" if !self.session.has_turns => {
                self.notice(NoticeLevel::Info, "Nothing was said yet");
                Vec::new()
            }
            "recap" => {
                self.flash("Asking what this session is about…");
                vec![ask_recap(ASKED_RECAP)]
            }
            "tui" => {
                let actions = self.preferences.choose_fullscreen(argument, self.transcript.is_fullscreen());
                self.choose_renderer();
                self.carry_out(actions)
            }
            "focus" => {
                let actions = self.preferences.toggle_focus();
                self.transcript.view_changed(self.preferences.is_focused());
                self.carry_out(actions)
            }
            "scroll-speed" => {
                let actions = self.preferences.set_scroll_speed(argument);
                self.carry_out(actions)
            }
            "btw" => {
                let mut panel = SideQuestionPanel::new(self.panel.side_thread());
                let actions = argument.map(|question| panel.ask(question)).unwrap_or_default();
                self.open_panel(panel);
                self.carry_out(actions)
            }
            _ => return None,
        })
    }

    /// Asks another model, once it is known how the session stands: while what was said is in the cache of the one at hand,
    /// the person is asked first.
    pub(super) fn switch_model(&mut self, snapshot: Arc<SessionSnapshot>) -> Vec<Effect> {
        let Some(name) = self.session.model_wanted.take() else { return Vec::new() };
        if !(snapshot.is_cache_warm && snapshot.has_messages) {
            return self.carry_out(vec![Action::Ui(UiAction::RunInSession(format!("/model {name}")))]);
        }
        self.open_panel(ModelPanel::switching_to(name, Arc::clone(&snapshot)));
        vec![Effect::AskPanel(PanelRequest::Models { snapshot })]
    }

    /// Opens a panel that is made of how the session stands.
    pub(super) fn open_snapshot_panel(&mut self, panel: impl Panel + 'static) -> Vec<Effect> {
        self.open_panel(panel);
        self.carry_out(vec![ask_snapshot()])
    }

    /// Copies the source of an answer: the last, or the Nth from the end.
    fn copy_answer(&mut self, which: Option<&str>) -> Vec<Effect> {
        let n = match which.map(str::parse::<usize>) {
            None => 1,
            Some(Ok(n)) if n > 0 => n,
            Some(_) => {
                self.notice(NoticeLevel::Warning, "Say which answer: `/copy 2` copies the last but one");
                return Vec::new();
            }
        };
        match self.transcript.log.answer(n - 1).map(str::to_owned) {
            Some(markdown) => match CopyPanel::new(&markdown) {
                Some(panel) => {
                    self.open_panel(panel);
                    Vec::new()
                }
                None => self.copy_text(markdown),
            },
            None => {
                self.notice(NoticeLevel::Info, "There is no such answer to copy");
                Vec::new()
            }
        }
    }

    /// Copies a text, and says so.
    pub(super) fn copy_text(&mut self, text: String) -> Vec<Effect> {
        let n_lines = text.lines().count();
        let lines = if n_lines == 1 { "line" } else { "lines" };
        self.flash(format!("Copied {n_lines} {lines} to the clipboard"));
        vec![Effect::Copy(text)]
    }

    /// Goes to plan mode, and begins with a task where there is one.
    fn plan(&mut self, task: Option<String>) -> Vec<Effect> {
        let mut actions = match self.session.mode {
            Mode::Plan => Vec::new(),
            _ => self.set_mode(Mode::Plan),
        };
        match task {
            Some(task) => actions.extend(self.submit(task)),
            None => self.flash("loci makes a plan first and changes nothing until you have agreed"),
        }
        actions
    }

    /// Reports a command that nobody knows; none where the text only looks like one, or the session may know it.
    fn unknown_command(&mut self, text: &str) -> Option<Vec<Effect>> {
        let (name, _) = split_command(text)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        if !self.session.is_started {
            // Skills are known once the session is there.
            self.queue.hold(Draft::plain(InputMode::Prompt, text));
            return Some(Vec::new());
        }
        let unknown = || format!("There is no command /{name}. `/help` lists those there are");
        let text = not_offered(name).unwrap_or_else(unknown);
        self.notice(NoticeLevel::Warning, text);
        Some(Vec::new())
    }
}
