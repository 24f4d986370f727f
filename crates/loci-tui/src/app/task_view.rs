//! Whether the task list is shown, and how that is kept: whoever leaves it open finds it open in the next session that has
//! tasks, and whoever hides it finds it hidden (`showExpandedTodos` of the global state file).

use loci_core::task_list::Task;

use super::{App, Effect};
use crate::panel::PanelRequest;

/// Whether the task list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TaskView {
    /// It is.
    #[default]
    Shown,
    /// It was left hidden by an earlier session; what the model begins in this one shows it.
    LeftHidden,
    /// It was hidden in this session, and stays so.
    Hidden,
}

impl TaskView {
    /// Takes how an earlier session left it; a key that was pressed before that was known changes it.
    pub(super) fn begin(&mut self, was_shown: bool) {
        *self = match (was_shown, self.is_shown()) {
            (true, true) | (false, false) => Self::Shown,
            (false, true) => Self::LeftHidden,
            (true, false) => Self::Hidden,
        };
    }

    pub(super) fn is_shown(self) -> bool {
        self == Self::Shown
    }
}

impl App {
    /// Shows or hides the task list, in later sessions as well.
    pub(super) fn toggle_tasks(&mut self) -> Vec<Effect> {
        self.task_view = if self.task_view.is_shown() { TaskView::Hidden } else { TaskView::Shown };
        if self.tasks.is_empty() {
            self.flash(match self.task_view.is_shown() {
                true => "There are no tasks yet; they will be shown",
                false => "There are no tasks yet; they will not be shown",
            });
        }
        self.keep_task_view()
    }

    /// Takes the task list as it is now.
    pub(super) fn take_tasks(&mut self, tasks: Vec<Task>) -> Vec<Effect> {
        // Between turns it is the list of a session that goes on.
        let is_begun = self.work.is_some() && tasks.len() > self.tasks.len();
        self.tasks = tasks;
        if !is_begun || self.task_view != TaskView::LeftHidden {
            return Vec::new();
        }
        self.task_view = TaskView::Shown;
        self.keep_task_view()
    }

    /// Before there is a session there is nobody to keep it.
    fn keep_task_view(&self) -> Vec<Effect> {
        let is_shown = self.task_view.is_shown();
        let keep = Effect::AskPanel(PanelRequest::KeepTaskView { is_shown });
        self.session.is_started.then_some(keep).into_iter().collect()
    }
}
