//! The panel that is open: what is typed goes to it, and what it asks for is done.

use std::rc::Rc;
use std::time::Duration;

use loci_core::permission::Mode;
use loci_engine::{BackgroundStatus, BackgroundTask, Command, TaskNews, task_summary};

use super::recap::{ASKED_RECAP, AUTOMATIC_RECAP};
use super::suggestion::SUGGESTION_REQUEST;
use super::{Action, App, Effect, ExitReason, UiAction};
use crate::block::{Block, NoticeLevel};
use crate::dialog::EXPLANATION_REQUEST;
use crate::input::{Draft, InputMode};
use crate::interface_settings::InterfaceSettings;
use crate::key::InputEvent;
use crate::keymap::Action as KeyAction;
use crate::layout::marked_row;
use crate::panel::{
    AgentsPanel, Panel, PanelContext, PanelData, PanelRequest, PanelStep, SUMMARY_REQUEST, SideQuestionPanel,
};
use crate::screen::{Frame, Size};
use crate::text::Row;

/// A panel takes at most this part of the screen, so that the conversation is seen above it.
const MOST_OF_SCREEN: (u16, u16) = (3, 4);
/// It may take so many rows in any case.
const LEAST_ROWS: u16 = 12;

impl App {
    /// Opens a panel in the place of whatever panel is open.
    pub(super) fn open_panel(&mut self, panel: impl Panel + 'static) {
        self.is_help_shown = false;
        self.panel = Some(Box::new(panel));
        self.panel_asked = self.now;
    }

    /// Returns when the panel that is open asks anew for what it shows.
    pub(super) fn panel_deadline(&self) -> Option<Duration> {
        let every = self.panel.as_ref()?.refresh_every()?;
        Some(self.panel_asked + every)
    }

    /// Has the panel ask anew, where it is time.
    pub(super) fn refresh_panel(&mut self) -> Vec<Effect> {
        if self.panel_deadline().is_none_or(|deadline| self.now < deadline) {
            return Vec::new();
        }
        self.panel_asked = self.now;
        let actions = self.panel.as_ref().map(|panel| panel.refresh()).unwrap_or_default();
        self.carry_out(actions)
    }

    /// Hands over what was typed; none where no panel is open.
    pub(super) fn panel_typed(&mut self, event: &InputEvent) -> Option<Vec<Effect>> {
        let panel = self.panel.as_mut()?;
        let Some(action) = self.keymap.action_of(panel.contexts(), event, panel.is_typing()) else {
            return Some(Vec::new());
        };
        if action == Some(KeyAction::AppSuspend) {
            return Some(vec![Effect::Suspend]);
        }
        let step = panel.handle(event, &PanelContext { action });
        Some(self.panel_step(step))
    }

    fn panel_step(&mut self, step: PanelStep) -> Vec<Effect> {
        match step {
            PanelStep::Stay => Vec::new(),
            PanelStep::Act(actions) => self.carry_out(actions),
            PanelStep::Close => {
                self.panel = None;
                Vec::new()
            }
            PanelStep::CloseWith(actions) => {
                self.panel = None;
                self.carry_out(actions)
            }
        }
    }

    /// Takes the answer to a request: for the panel that is open, or for a command without one.
    pub(super) fn panel_data(&mut self, data: PanelData) -> Vec<Effect> {
        if let PanelData::Settings { interface, note, .. } = &data {
            self.take_interface_settings(InterfaceSettings::clone(interface));
            // A command that changed a setting has no panel to tell it in.
            if let Some(note) = note.as_ref().filter(|_| self.panel.is_none()) {
                self.notice(NoticeLevel::Info, note.clone());
            }
        }
        if let PanelData::TaskOutput { task, text } = &data {
            self.front_output(task, text);
        }
        match data {
            PanelData::Exported(file) => {
                self.notice(NoticeLevel::Info, format!("The conversation is in `{}`", file.display()));
                Vec::new()
            }
            PanelData::Written(file) => {
                self.notice(NoticeLevel::Info, format!("It is in `{}`", file.display()));
                Vec::new()
            }
            PanelData::ExportText(text) => self.copy_text(text),
            PanelData::Done(lines) => {
                match lines.is_empty() {
                    true => self.notice(NoticeLevel::Info, "No file had to change"),
                    false => lines.into_iter().for_each(|text| self.notice(NoticeLevel::Info, text)),
                }
                Vec::new()
            }
            PanelData::EditedText { name, text } if self.dialogs.has(&name) => {
                match text {
                    Ok(text) => drop(self.dialogs.edited(&name, text)),
                    Err(why) => self.notice(NoticeLevel::Warning, why),
                }
                Vec::new()
            }
            PanelData::MoveTarget(cwd) => self.move_to(cwd),
            PanelData::Transcript(blocks) => {
                self.show_whole_transcript(blocks);
                Vec::new()
            }
            PanelData::VerbEnded { output } if self.panel.is_none() => {
                match output {
                    Ok(text) => self.notice(NoticeLevel::Info, text.trim()),
                    Err(why) => self.notice(NoticeLevel::Warning, why.trim()),
                }
                Vec::new()
            }
            PanelData::Failed(problem) if self.panel.is_none() => {
                // What cannot be read now cannot be read in a second either.
                self.front = None;
                self.notice(NoticeLevel::Error, problem);
                Vec::new()
            }
            PanelData::AgentMessaged(outcome) if self.panel.is_none() => {
                match outcome {
                    Ok(text) => self.notice(NoticeLevel::Info, text),
                    Err(why) => self.notice(NoticeLevel::Warning, why),
                }
                Vec::new()
            }
            PanelData::SideAnswer { request, outcome } if request.starts_with(EXPLANATION_REQUEST) => {
                // Nobody waits for it where the question was answered meanwhile.
                self.dialogs.explained(&request[EXPLANATION_REQUEST.len()..], outcome);
                Vec::new()
            }
            PanelData::SideAnswer { request, outcome } if !self.is_awaited(&request) => {
                match request.as_str() {
                    AUTOMATIC_RECAP => self.show_automatic_recap(outcome),
                    ASKED_RECAP => self.show_recap(outcome),
                    SUGGESTION_REQUEST => self.show_suggestion(outcome),
                    // Whoever wanted the summary has gone back meanwhile.
                    SUMMARY_REQUEST => {}
                    _ => {
                        self.side_thread.borrow_mut().take(&request, &outcome);
                        self.late_side_answer(outcome);
                    }
                }
                Vec::new()
            }
            data => {
                let actions = self.panel.as_mut().map(|panel| panel.receive(data)).unwrap_or_default();
                self.carry_out(actions)
            }
        }
    }

    /// A server may have been connected, or be gone: a panel that shows them asks anew.
    pub(super) fn servers_changed(&mut self) -> Vec<Effect> {
        let panel = self.panel.as_ref().filter(|panel| panel.follows_servers());
        let actions = panel.map(|panel| panel.refresh()).unwrap_or_default();
        self.carry_out(actions)
    }

    fn is_awaited(&self, request: &str) -> bool {
        self.panel.as_ref().is_some_and(|panel| panel.is_awaiting(request))
    }

    /// Shows the answer to a question on the side whose panel was closed.
    fn late_side_answer(&mut self, outcome: Result<String, String>) {
        match outcome {
            Ok(answer) => {
                self.notice(NoticeLevel::Info, "The answer to the question on the side (not recorded):");
                self.conversation.push(Block::Output { markdown: answer });
            }
            Err(why) => self.notice(NoticeLevel::Warning, format!("The question on the side: {why}")),
        }
    }

    /// Opens a panel for a question on the side, and asks it where it is known; else the last answer is shown.
    pub(super) fn side_question(&mut self, question: Option<&str>) -> Vec<Effect> {
        let mut panel = SideQuestionPanel::new(Rc::clone(&self.side_thread));
        let actions = question.map(|question| panel.ask(question)).unwrap_or_default();
        self.open_panel(panel);
        self.carry_out(actions)
    }

    /// Notes a step of work beside the conversation.
    pub(super) fn task_news(&mut self, news: TaskNews) -> Vec<Effect> {
        self.agent_logs.borrow_mut().take_task(&news);
        let task = match news {
            TaskNews::Started(task)
            | TaskNews::Backgrounded(task)
            | TaskNews::Ended(task)
            | TaskNews::Progress { task, .. } => task,
        };
        if task.agent_type().is_some() && task.status != BackgroundStatus::Running {
            self.agent_rows.trigger(self.now);
        }
        let is_over = !matches!(task.status, BackgroundStatus::Running | BackgroundStatus::Killed(_));
        let is_in_front = self.front.as_ref().is_some_and(|front| front.is(&task.id));
        if is_over && task.is_background && task.owner.is_none() && !is_in_front {
            self.ended_tasks.push(task_summary(&task));
            self.tell_ended_tasks();
        }
        let mut actions = self.front_news(&task);
        match self.background.iter_mut().find(|known| known.id == task.id) {
            Some(known) => *known = task,
            None => self.background.push(task),
        }
        let tasks = self.background_tasks();
        if let Some(panel) = &mut self.panel {
            let received = panel.receive(PanelData::Tasks(tasks));
            actions.extend(self.carry_out(received));
        }
        actions.extend(self.work_changed());
        actions
    }

    /// Tells what has ended in the background; not in the middle of an answer. The model hears of it by itself, and what it
    /// says then would come from nowhere.
    pub(super) fn tell_ended_tasks(&mut self) {
        if !self.conversation.is_answer_open() {
            let ended = std::mem::take(&mut self.ended_tasks);
            ended.into_iter().for_each(|text| self.notice(NoticeLevel::Info, text));
        }
    }

    /// Opens the agent view.
    pub(super) fn open_agents(&mut self) -> Vec<Effect> {
        let panel = AgentsPanel::new(Rc::clone(&self.agent_logs));
        self.open_panel(panel);
        vec![Effect::AskPanel(PanelRequest::PastAgents)]
    }

    /// Returns the work that its conversation does not wait for.
    pub(super) fn background_tasks(&self) -> Vec<BackgroundTask> {
        self.background.iter().filter(|task| task.is_background).cloned().collect()
    }

    /// Counts the agents and commands at work that the conversation does not wait for.
    pub(super) fn n_working_beside(&self) -> usize {
        let is_agents = |task: &BackgroundTask| self.session.agents.contains(&task.about.id);
        let running = self.background.iter().filter(|task| task.status == BackgroundStatus::Running);
        let (beside, waited_for): (Vec<_>, Vec<_>) = running.partition(|task| task.is_background);
        let n_others = beside.iter().filter(|task| !is_agents(task)).count();
        let n_waited_for = waited_for.iter().filter(|task| is_agents(task)).count();
        (self.session.agents.len() + n_others).saturating_sub(n_waited_for)
    }

    /// Does what the interface does itself; returns what the world must do.
    pub(super) fn carry_out(&mut self, actions: Vec<Action>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for action in actions {
            match action {
                Action::Ui(action) => effects.extend(self.ui_action(action)),
                Action::Effect(effect) => {
                    if let Effect::Send(Command::Answer { question, .. }) = &effect {
                        self.agent_logs.borrow_mut().close_question(question);
                        self.question_over(question);
                    }
                    effects.push(effect);
                }
            }
        }
        effects
    }

    fn ui_action(&mut self, action: UiAction) -> Vec<Effect> {
        match action {
            UiAction::Queue(prompt) => {
                let draft = Draft::plain(InputMode::Prompt, &prompt.content.text());
                return vec![Effect::Send(Command::Queue(self.queue.queue(draft)))];
            }
            UiAction::Submit(text) => return self.submit(text),
            UiAction::RunInSession(text) => {
                return self.dispatch_to_session(Draft::plain(InputMode::Prompt, &text));
            }
            UiAction::Compact { keeps_from, focus } => return self.compact_before(&keeps_from, focus),
            UiAction::BeginWithPlan(plan) => {
                let prompt = format!("Carry out this plan, which I have accepted:\n\n{plan}");
                let drafts = ["/clear", &prompt].map(|text| Draft::plain(InputMode::Prompt, text));
                drafts.into_iter().for_each(|draft| self.queue.hold(draft));
                return self.set_mode(Mode::Default);
            }
            UiAction::BringToFront(task) => return self.bring_to_front(&task),
            UiAction::AskForKey => self.ask_for_key(),
            UiAction::ClosePanel => self.panel = None,
            UiAction::SetPrompt(text) => self.prompt.set_text(&text),
            UiAction::CopyLines(text) => return self.copy_text(text),
            UiAction::Notice(level, text) => self.notice(level, text),
            UiAction::Titled(title) => self.session.title = Some(title),
            UiAction::PreviewTheme(preview) => self.preview_theme(preview),
            UiAction::ChooseTheme(name) => return vec![self.choose_theme(name)],
            UiAction::Resume(choice, at) => return self.resume(&choice, at),
            UiAction::Switch(target) => return self.switch(target),
            UiAction::PickerClosed if self.session.is_started => {}
            UiAction::PickerClosed => return self.exit(ExitReason::Asked),
            UiAction::Exit(reason) => return self.exit(reason),
        }
        Vec::new()
    }

    /// Returns the frame with the panel that is open in the place of the prompt.
    pub(super) fn panel_frame(&self, committed: Vec<Row>, mut live: Vec<Row>, size: Size) -> Option<Frame> {
        let panel = self.panel.as_ref()?;
        let (part, whole) = MOST_OF_SCREEN;
        let most = (size.height / whole * part).max(LEAST_ROWS).min(size.height.saturating_sub(1)).max(1);
        let space = Size { width: size.width, height: most };
        self.panel_space.set(space);
        let view = panel.view(&self.render_context(size.width), space);
        let is_typed = view.is_typed;
        let (mut rows, mut caret) = view.fit(space);
        if self.options.follows_mark && !is_typed {
            caret = marked_row(&rows).map(|row| (row, 0)).or(caret);
        }
        if self.is_spoken() {
            self.number_list(&mut rows, &mut caret);
        }
        let height = usize::from(size.height).max(1);
        let room = height.saturating_sub(rows.len() + 2).min(height / 3);
        live.drain(..live.len().saturating_sub(room));
        if rows.len() + live.len() < height {
            live.push(Row::default());
        }
        let top = live.len();
        live.extend(rows);
        Some(Frame {
            committed,
            live,
            caret: caret.map(|(row, column)| (top + row, column)),
            is_caret_visible: caret.is_some(),
            is_tall: true,
            ..Frame::default()
        })
    }
}
