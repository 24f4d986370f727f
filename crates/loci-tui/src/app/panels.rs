//! What panels and dialogs ask for, done; and the answers that come back, for the panel that is open or for a command.

use loci_core::permission::Mode;
use loci_engine::{BackgroundStatus, Command, TaskNews};

use super::commands::lines_note;
use super::recap::{ASKED_RECAP, AUTOMATIC_RECAP, shortened};
use super::start::key_entry;
use super::suggestion::{SUGGESTION_REQUEST, suggested};
use super::{Action, App, Effect, Elsewhere, ExitReason, UiAction};
use crate::block::{Block, NoticeLevel};
use crate::dialog::EXPLANATION_REQUEST;
use crate::input::{Draft, InputMode};
use crate::interface_settings::InterfaceSettings;
use crate::panel::{AgentsPanel, Panel, PanelData, PanelRequest, SUMMARY_REQUEST};

impl App {
    /// Opens a panel in the place of whatever panel is open.
    pub(super) fn open_panel(&mut self, panel: impl Panel + 'static) {
        self.prompt.is_help_shown = false;
        self.panel.open(panel, self.now);
    }

    /// Opens the agent view.
    pub(super) fn open_agents(&mut self) -> Vec<Effect> {
        self.open_panel(AgentsPanel::new(self.background.logs()));
        vec![Effect::AskPanel(PanelRequest::PastAgents)]
    }

    /// Takes the answer to a request: for the panel that is open, or for a command without one.
    pub(super) fn panel_data(&mut self, data: PanelData) -> Vec<Effect> {
        if let PanelData::Settings { interface, note, .. } = &data {
            self.take_interface_settings(InterfaceSettings::clone(interface));
            // A command that changed a setting has no panel to tell it in.
            if let Some(note) = note.as_ref().filter(|_| !self.panel.is_open()) {
                self.transcript.notice(NoticeLevel::Info, note.clone());
            }
        }
        if let PanelData::TaskOutput { task, text } = &data {
            let over = self.background.front.take_output(task, text);
            over.into_iter().for_each(|block| self.transcript.push(block));
        }
        match data {
            PanelData::Exported(file) => {
                self.transcript
                    .notice(NoticeLevel::Info, format!("The conversation is in `{}`", file.display()));
                Vec::new()
            }
            PanelData::Written(file) => {
                self.transcript.notice(NoticeLevel::Info, format!("It is in `{}`", file.display()));
                Vec::new()
            }
            PanelData::ExportText(text) => self.copy(text, lines_note),
            PanelData::Done(lines) => {
                match lines.is_empty() {
                    true => self.transcript.notice(NoticeLevel::Info, "No file had to change"),
                    false => {
                        lines.into_iter().for_each(|text| self.transcript.notice(NoticeLevel::Info, text));
                    }
                }
                Vec::new()
            }
            PanelData::EditedText { name, text } if self.dialogs.has(&name) => {
                match text {
                    Ok(text) => drop(self.dialogs.edited(&name, text)),
                    Err(why) => self.transcript.notice(NoticeLevel::Warning, why),
                }
                Vec::new()
            }
            PanelData::MoveTarget(_) if self.session.is_working() => {
                self.flash("Wait for the end of the turn, or press Esc, before the session moves");
                Vec::new()
            }
            // It goes on there with all that was said.
            PanelData::MoveTarget(cwd) => {
                let session = self.session.kept_id().map(str::to_owned);
                self.exit(ExitReason::Asked);
                vec![Effect::GoElsewhere(Elsewhere { cwd, session, at: None, is_moved: true })]
            }
            PanelData::Transcript(blocks) => {
                self.transcript.show_whole(blocks);
                Vec::new()
            }
            PanelData::PluginsChanged { output } if !self.panel.is_open() => {
                match output {
                    Ok(text) => self.transcript.notice(NoticeLevel::Info, text.trim()),
                    Err(why) => self.transcript.notice(NoticeLevel::Warning, why.trim()),
                }
                Vec::new()
            }
            PanelData::Failed(problem) if !self.panel.is_open() => {
                // What cannot be read now cannot be read in a second either.
                self.background.front.clear();
                self.transcript.notice(NoticeLevel::Error, problem);
                Vec::new()
            }
            PanelData::AgentMessaged(outcome) if !self.panel.is_open() => {
                match outcome {
                    Ok(text) => self.transcript.notice(NoticeLevel::Info, text),
                    Err(why) => self.transcript.notice(NoticeLevel::Warning, why),
                }
                Vec::new()
            }
            PanelData::SideAnswer { request, outcome } if request.starts_with(EXPLANATION_REQUEST) => {
                // Nobody waits for it where the question was answered meanwhile.
                self.dialogs.explained(&request[EXPLANATION_REQUEST.len()..], outcome);
                Vec::new()
            }
            PanelData::SideAnswer { request, outcome } if !self.panel.is_awaiting(&request) => {
                self.side_answer(&request, outcome);
                Vec::new()
            }
            data => {
                let actions = self.panel.receive(data);
                self.carry_out(actions)
            }
        }
    }

    /// Takes the answer to a question on the side that no panel waits for.
    fn side_answer(&mut self, request: &str, outcome: Result<String, String>) {
        // Whoever is at work again wants none that nobody asked for.
        let is_quiet = !self.session.is_working() && self.prompt.input.is_empty();
        match (request, outcome) {
            (AUTOMATIC_RECAP, outcome) if !is_quiet || outcome.is_err() => {}
            (AUTOMATIC_RECAP | ASKED_RECAP, Ok(text)) => {
                self.transcript.notice(NoticeLevel::Info, format!("Recap: {}", shortened(&text)));
            }
            (AUTOMATIC_RECAP | ASKED_RECAP, Err(why)) => {
                self.transcript.notice(NoticeLevel::Warning, format!("There is no recap: {why}"));
            }
            (SUGGESTION_REQUEST, outcome) => {
                if let Some(text) = suggested(outcome).filter(|_| is_quiet) {
                    self.prompt.input.suggest(Some(text));
                }
            }
            // Whoever wanted the summary has gone back meanwhile.
            (SUMMARY_REQUEST, _) => {}
            (request, outcome) => {
                self.panel.side_thread().borrow_mut().take(request, &outcome);
                match outcome {
                    Ok(answer) => {
                        let text = "The answer to the question on the side (not recorded):";
                        self.transcript.notice(NoticeLevel::Info, text);
                        self.transcript.push(Block::Output { markdown: answer });
                    }
                    Err(why) => {
                        self.transcript
                            .notice(NoticeLevel::Warning, format!("The question on the side: {why}"));
                    }
                }
            }
        }
    }

    /// Notes a step of work beside the conversation.
    pub(super) fn task_news(&mut self, news: TaskNews) -> Vec<Effect> {
        let task = self.background.take(news);
        if task.agent_type().is_some() && task.status != BackgroundStatus::Running {
            self.status.agents.trigger(self.now);
        }
        self.transcript.tell_ended(&mut self.background);
        let mut effects: Vec<Effect> = self.background.front.take(&task, self.now).into_iter().collect();
        if self.panel.is_open() {
            let actions = self.panel.receive(PanelData::Tasks(self.background.tasks()));
            effects.extend(self.carry_out(actions));
        }
        // Has the question before leaving say what still runs. Once nothing does, nothing would end, so that whoever wanted to
        // leave does.
        if !self.dialogs.is_empty() && self.dialogs.work_changed(&self.background.running_lines()) {
            effects.extend(self.exit(ExitReason::Asked));
        }
        effects
    }

    /// Does what the interface does itself; returns what the world must do.
    pub(super) fn carry_out(&mut self, actions: Vec<Action>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for action in actions {
            match action {
                Action::Ui(action) => effects.extend(self.ui_action(action)),
                Action::Effect(effect) => {
                    if let Effect::Send(Command::Answer { question, .. }) = &effect {
                        self.background.close_question(question);
                        self.session.question_over(question, &mut self.transcript.conversation);
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
            UiAction::Compact { .. } if self.session.is_busy() => {
                let text = "Not while something is under way: try again when it is over";
                self.transcript.notice(NoticeLevel::Warning, text);
            }
            UiAction::Compact { keeps_from, focus } => {
                return vec![self.queue.compact_before(&keeps_from, focus)];
            }
            UiAction::BeginWithPlan(plan) => {
                let prompt = format!("Carry out this plan, which I have accepted:\n\n{plan}");
                let drafts = ["/clear", &prompt].map(|text| Draft::plain(InputMode::Prompt, text));
                drafts.into_iter().for_each(|draft| self.queue.hold(draft));
                return self.set_mode(Mode::Default);
            }
            UiAction::BringToFront(id) => match self.background.find(&id).cloned() {
                Some(task) if task.agent_type().is_none() => {
                    return vec![self.background.front.show(task, self.now)];
                }
                Some(_) => self.open_panel(AgentsPanel::looking_at(self.background.logs(), &id)),
                None => {}
            },
            UiAction::AskForKey => self.dialogs.follow_up(key_entry()),
            UiAction::ClosePanel => self.panel.close(),
            UiAction::SetPrompt(text) => self.prompt.input.set_text(&text),
            UiAction::CopyLines(text) => return self.copy(text, lines_note),
            UiAction::Notice(level, text) => self.transcript.notice(level, text),
            UiAction::Flash(text) => self.flash(text),
            UiAction::Titled(title) => self.session.title = Some(title),
            UiAction::PreviewTheme(preview) => {
                self.preferences.theming.set_preview(preview);
                self.apply_theme();
            }
            UiAction::ChooseTheme(name) => {
                let effect = self.preferences.choose_theme(name);
                self.apply_theme();
                return vec![effect];
            }
            UiAction::Resume(choice, at) => return self.resume(&choice, at),
            UiAction::Switch(target) => return self.switch(target),
            UiAction::PickerClosed if self.session.is_started => {}
            UiAction::PickerClosed => return self.exit(ExitReason::Asked),
            UiAction::Exit(reason) => return self.exit(reason),
        }
        Vec::new()
    }
}
