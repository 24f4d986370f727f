//! A command of the background that was brought to the front (`f` in `/tasks`): what it prints is seen above the prompt as it
//! comes, until it ends, or until Ctrl+B puts it back. The conversation goes on meanwhile. An agent is brought to the front as
//! the agent view, with its transcript.

use std::time::Duration;

use loci_engine::{BackgroundStatus, BackgroundTask};

use super::Effect;
use super::transcript_view::last_lines;
use crate::block::Block;
use crate::layout::{cut, faint, line};
use crate::panel::PanelRequest;
use crate::render::{RenderContext, render_block};
use crate::text::Row;

/// How often what it prints is read.
const REFRESH: Duration = Duration::from_secs(1);

/// The command at the front, where there is one.
#[derive(Debug, Default)]
pub(super) struct FrontTask {
    shown: Option<Shown>,
}

#[derive(Debug)]
struct Shown {
    task: BackgroundTask,
    /// The end of what it printed, as far as it was read.
    output: String,
    /// When that was last asked for.
    asked: Duration,
}

impl Shown {
    fn is_running(&self) -> bool {
        self.task.status == BackgroundStatus::Running
    }

    fn ask(&mut self, now: Duration) -> Effect {
        self.asked = now;
        let (task, file) = (self.task.id.clone(), self.task.output.clone());
        Effect::AskPanel(PanelRequest::TaskOutput { task, file })
    }
}

impl FrontTask {
    /// Tells whether there is none.
    pub(super) fn is_none(&self) -> bool {
        self.shown.is_none()
    }

    /// Tells whether it is this task.
    pub(super) fn is(&self, id: &str) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.task.id == id)
    }

    /// Brings a task to the front, and asks for what it printed.
    pub(super) fn show(&mut self, task: BackgroundTask, now: Duration) -> Effect {
        self.shown.insert(Shown { task, output: String::new(), asked: now }).ask(now)
    }

    /// Puts it back into the background; false where there is none.
    pub(super) fn clear(&mut self) -> bool {
        self.shown.take().is_some()
    }

    /// Returns when it is looked at again.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.shown.as_ref().filter(|shown| shown.is_running()).map(|shown| shown.asked + REFRESH)
    }

    /// Looks at it again, where it is time.
    pub(super) fn refresh(&mut self, now: Duration) -> Option<Effect> {
        self.deadline().filter(|deadline| *deadline <= now)?;
        self.shown.as_mut().map(|shown| shown.ask(now))
    }

    /// Notes a step of it; of one that is over, all that it printed is read once more.
    pub(super) fn take(&mut self, task: &BackgroundTask, now: Duration) -> Option<Effect> {
        let shown = self.shown.as_mut().filter(|shown| shown.task.id == task.id)?;
        shown.task.clone_from(task);
        (!shown.is_running()).then(|| shown.ask(now))
    }

    /// Takes what it has printed; one that is over leaves, as a block of the conversation.
    pub(super) fn take_output(&mut self, id: &str, text: &str) -> Option<Block> {
        let shown = self.shown.as_mut().filter(|shown| shown.task.id == id)?;
        text.clone_into(&mut shown.output);
        let over = self.shown.take_if(|shown| !shown.is_running())?;
        let exit_code = over.task.status.exit_code();
        let output = over.output.trim_end().to_owned();
        Some(Block::Shell { command: over.task.about.command, output, exit_code })
    }

    /// Returns its rows, with the last lines that it printed.
    pub(super) fn rows(&self, ctx: &RenderContext, width: u16) -> Vec<Row> {
        let Some(shown) = &self.shown else { return Vec::new() };
        let (command, output) = (shown.task.command.clone(), last_lines(&shown.output));
        let block = Block::Shell { command, output, exit_code: None };
        let mut rows = vec![Row::default()];
        rows.extend(render_block(&block, ctx).iter().map(|row| cut(row, width)));
        rows.push(cut(&line("  Ctrl+B puts it back into the background", faint()), width));
        rows
    }
}
