//! Slash commands that the interface itself carries out, by name.
//!
//! What there is stands in the engine's table of commands (`slash_command/builtin.rs`); here is what those of the terminal
//! do. A command of the table that has no arm here is told to be missing, and a test says so.

use loci_app::commands::ReportTopic;
use loci_app::start::renewal::SwitchTarget;
use loci_core::permission::Mode;
use loci_engine::{Command, CommandAction, CommandCall, CommandTiming, not_offered, split_command};

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
            let unknown = unknown_command(text)?;
            match self.session.is_started {
                true => self.transcript.notice(NoticeLevel::Warning, unknown),
                // Skills are known once the session is there.
                false => self.queue.hold(Draft::plain(InputMode::Prompt, text)),
            }
            return Some(Vec::new());
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
            self.transcript.notice(NoticeLevel::Error, format!("/{} is not there yet", call.command.name));
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
        self.panel_command(&call.command.name, call.argument.as_deref()).or_else(|| self.plain_command(call))
    }

    /// Opens the panel of a command, or does without one what its argument says; none where it has no panel, and where the session
    /// carries it out.
    fn panel_command(&mut self, name: &str, argument: Option<&str>) -> Option<Vec<Effect>> {
        Some(match (name, argument) {
            ("rename", None) => {
                self.open_panel(RenamePanel::new(self.session.title.as_deref()));
                Vec::new()
            }
            ("context", None) => self.open_snapshot_panel(ContextPanel::new(ContextView::Now)),
            ("usage", None) => self.open_snapshot_panel(UsagePanel::new()),
            ("status", None) => self.open_snapshot_panel(ReportPanel::new(ReportTopic::Status)),
            ("doctor", None) => self.open_snapshot_panel(ReportPanel::new(ReportTopic::Doctor)),
            ("hooks", None) => self.open_snapshot_panel(HooksPanel::default()),
            ("skills", None) => self.open_snapshot_panel(SkillsPanel::default()),
            ("fewer-permission-prompts", None) => self.open_snapshot_panel(FewerPromptsPanel::default()),
            ("model", None) => self.open_snapshot_panel(ModelPanel::default()),
            ("effort", None) => self.open_snapshot_panel(EffortPanel::default()),
            ("mcp", None) => self.open_snapshot_panel(McpPanel::default()),
            ("permissions", None) => self.open_snapshot_panel(PermissionsPanel::new()),
            ("memory", None) => self.open_snapshot_panel(MemoryPanel::new()),
            ("sandbox", None) => {
                self.open_panel(SandboxPanel::new());
                self.carry_out(SandboxPanel::begin())
            }
            ("plugin", None) => {
                self.open_panel(PluginPanel::new());
                self.carry_out(PluginPanel::begin())
            }
            ("diff", None) => {
                self.open_panel(DiffPanel::default());
                self.carry_out(DiffPanel::begin())
            }
            ("config", None) => {
                self.open_panel(ConfigPanel::new());
                self.carry_out(ConfigPanel::begin())
            }
            ("theme", None) => {
                self.open_panel(self.preferences.theme_panel());
                // One may have been written since the window had the focus, which not every terminal tells.
                vec![Effect::ReadOwnFiles]
            }
            ("resume", None) => self.choose_session(),
            ("agents", None) => self.open_agents(),
            ("tasks", None) => {
                self.open_panel(TasksPanel::new(self.background.tasks()));
                Vec::new()
            }
            ("cd", None) => {
                let shown_cwd = &self.preferences.options.shown_cwd;
                let here = format!("This session works in {shown_cwd}; `/cd PATH` moves it");
                self.transcript.notice(NoticeLevel::Info, here);
                Vec::new()
            }
            ("export", None) => {
                self.open_panel(ExportPanel::default());
                Vec::new()
            }
            ("rename", Some(argument)) => self.carry_out(rename_actions(argument)),
            ("context", Some(argument)) => match argument {
                "all" => self.open_snapshot_panel(ContextPanel::new(ContextView::All)),
                "time" => self.open_snapshot_panel(ContextPanel::new(ContextView::OverTime)),
                _ => return None,
            },
            ("model", Some(argument)) if self.session.has_turns => {
                self.session.model_wanted = Some(argument.to_owned());
                vec![Effect::Send(Command::Snapshot { request: MODEL_REQUEST.to_owned() })]
            }
            ("theme", Some(argument)) => match self.preferences.theme_problem(argument) {
                None => self.carry_out(vec![Action::Ui(UiAction::ChooseTheme(Some(argument.to_owned())))]),
                Some(why) => {
                    self.transcript.notice(NoticeLevel::Warning, why);
                    Vec::new()
                }
            },
            ("resume", Some(argument)) => {
                self.switch(SwitchTarget { session: argument.to_owned(), ..SwitchTarget::default() })
            }
            ("cd", Some(argument)) => {
                vec![Effect::AskPanel(PanelRequest::MoveTarget { path: argument.to_owned() })]
            }
            ("export", Some(argument)) => {
                vec![Effect::AskPanel(PanelRequest::Export { file: Some(argument.to_owned()) })]
            }
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
            "copy" => match self.transcript.answer_to_copy(argument) {
                Ok(markdown) => match CopyPanel::new(&markdown) {
                    Some(panel) => {
                        self.open_panel(panel);
                        Vec::new()
                    }
                    None => self.copy(markdown, lines_note),
                },
                Err((level, text)) => {
                    self.transcript.notice(level, text);
                    Vec::new()
                }
            },
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
                    self.transcript.notice(NoticeLevel::Info, text);
                    Vec::new()
                }
            },
            "rewind" => self.choose_rewind(),
            "search" => {
                let (panel, actions) = SearchPanel::new(argument);
                self.open_panel(panel);
                self.carry_out(actions)
            }
            "plan" => {
                // A plan is made first, and nothing is changed until the person has agreed.
                let mut effects = match self.session.mode {
                    Mode::Plan => Vec::new(),
                    _ => self.set_mode(Mode::Plan),
                };
                match call.argument.clone() {
                    Some(task) => effects.extend(self.submit(task)),
                    None => self.flash("loci makes a plan first and changes nothing until you have agreed"),
                }
                effects
            }
            "recap" if !self.session.has_turns => {
                self.transcript.notice(NoticeLevel::Info, "Nothing was said yet");
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

    /// Opens a panel that is made of how the session stands.
    pub(super) fn open_snapshot_panel(&mut self, panel: impl Panel + 'static) -> Vec<Effect> {
        self.open_panel(panel);
        self.carry_out(vec![ask_snapshot()])
    }

    /// Copies a text, and says so.
    pub(super) fn copy(&mut self, text: String, note: fn(&str) -> String) -> Vec<Effect> {
        self.flash(note(&text));
        vec![Effect::Copy(text)]
    }
}

/// Says how much was copied.
pub(super) fn lines_note(text: &str) -> String {
    let n_lines = text.lines().count();
    let lines = if n_lines == 1 { "line" } else { "lines" };
    format!("Copied {n_lines} {lines} to the clipboard")
}

/// Says of a command that nobody knows what there is; none where the text only looks like one.
fn unknown_command(text: &str) -> Option<String> {
    let (name, _) = split_command(text)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let unknown = || format!("There is no command /{name}. `/help` lists those there are");
    Some(not_offered(name).unwrap_or_else(unknown))
}
