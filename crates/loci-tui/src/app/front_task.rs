//! A command of the background that was brought to the front (`f` in `/tasks`): what it prints is seen above the prompt as it
//! comes, until it ends, or until Ctrl+B puts it back. The conversation goes on meanwhile. An agent is brought to the front as
//! the agent view, with its transcript.

use std::rc::Rc;
use std::time::Duration;

use loci_engine::{BackgroundStatus, BackgroundTask};

use super::view::last_lines;
use super::{App, Effect};
use crate::block::Block;
use crate::layout::{cut, faint, line};
use crate::panel::{AgentsPanel, PanelRequest};
use crate::render::render_block;
use crate::screen::Size;
use crate::text::Row;

/// How often what it prints is read.
const REFRESH: Duration = Duration::from_secs(1);

/// The command at the front.
#[derive(Debug)]
pub(super) struct FrontTask {
    task: BackgroundTask,
    /// The end of what it printed, as far as it was read.
    output: String,
    /// When that was last asked for.
    asked: Duration,
}

impl FrontTask {
    /// Tells whether it is this task.
    pub(super) fn is(&self, id: &str) -> bool {
        self.task.id == id
    }

    fn is_running(&self) -> bool {
        self.task.status == BackgroundStatus::Running
    }
}

impl App {
    /// Brings a task to the front.
    pub(super) fn bring_to_front(&mut self, id: &str) -> Vec<Effect> {
        let Some(task) = self.background.iter().find(|task| task.id == id).cloned() else {
            return Vec::new();
        };
        if task.agent_type().is_some() {
            let panel = AgentsPanel::looking_at(Rc::clone(&self.agent_logs), id);
            self.open_panel(panel);
            return Vec::new();
        }
        self.front = Some(FrontTask { task, output: String::new(), asked: self.now });
        self.ask_front()
    }

    /// Puts the command at the front back into the background; false where there is none.
    pub(super) fn put_back(&mut self) -> bool {
        let is_there = self.front.take().is_some();
        if is_there {
            self.flash("It goes on in the background · /tasks has it");
        }
        is_there
    }

    fn ask_front(&mut self) -> Vec<Effect> {
        let Some(front) = &mut self.front else { return Vec::new() };
        front.asked = self.now;
        let (task, file) = (front.task.id.clone(), front.task.output.clone());
        vec![Effect::AskPanel(PanelRequest::TaskOutput { task, file })]
    }

    /// Returns when the command at the front is looked at again.
    pub(super) fn front_deadline(&self) -> Option<Duration> {
        self.front.as_ref().filter(|front| front.is_running()).map(|front| front.asked + REFRESH)
    }

    /// Looks at the command at the front again, where it is time.
    pub(super) fn refresh_front(&mut self) -> Vec<Effect> {
        match self.front_deadline().is_some_and(|deadline| deadline <= self.now) {
            true => self.ask_front(),
            false => Vec::new(),
        }
    }

    /// Notes a step of the command at the front; of one that is over, all that it printed is read once more.
    pub(super) fn front_news(&mut self, task: &BackgroundTask) -> Vec<Effect> {
        let Some(front) = self.front.as_mut().filter(|front| front.task.id == task.id) else {
            return Vec::new();
        };
        front.task = task.clone();
        if front.is_running() { Vec::new() } else { self.ask_front() }
    }

    /// Takes what a command has printed; one that is over goes into the conversation with it.
    pub(super) fn front_output(&mut self, id: &str, text: &str) {
        let Some(front) = self.front.as_mut().filter(|front| front.task.id == id) else { return };
        text.clone_into(&mut front.output);
        if front.is_running() {
            return;
        }
        let (command, exit_code) = (front.task.command.clone(), front.task.status.exit_code());
        let output = std::mem::take(&mut front.output).trim_end().to_owned();
        self.front = None;
        self.conversation.push(Block::Shell { command, output, exit_code });
    }

    /// Puts the command at the front, with the last lines that it printed.
    pub(super) fn push_front(&self, live: &mut Vec<Row>, size: Size) {
        let Some(front) = &self.front else { return };
        let (command, output) = (front.task.command.clone(), last_lines(&front.output));
        let block = Block::Shell { command, output, exit_code: None };
        live.push(Row::default());
        let rows = render_block(&block, &self.render_context(size.width));
        live.extend(rows.iter().map(|row| cut(row, size.width)));
        live.push(cut(&line("  Ctrl+B puts it back into the background", faint()), size.width));
    }
}
