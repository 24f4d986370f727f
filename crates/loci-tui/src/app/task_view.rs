//! The task list, and whether it is shown, which is kept: whoever leaves it open finds it open in the next session that has
//! tasks, and whoever hides it finds it hidden (`showExpandedTodos` of the global state file).

use loci_core::task_list::{Task, TaskStatus};

use super::Effect;
use crate::layout::{cut, faint, line, marked};
use crate::panel::PanelRequest;
use crate::text::{Row, Style};

/// The most tasks that are seen.
const MOST_TASKS: usize = 5;

/// The task list of the session.
#[derive(Debug, Default)]
pub(super) struct TaskView {
    tasks: Vec<Task>,
    visibility: Visibility,
}

/// Whether the task list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Visibility {
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
        self.visibility = match (was_shown, self.is_shown()) {
            (true, true) | (false, false) => Visibility::Shown,
            (false, true) => Visibility::LeftHidden,
            (true, false) => Visibility::Hidden,
        };
    }

    pub(super) fn is_shown(&self) -> bool {
        self.visibility == Visibility::Shown
    }

    /// Shows or hides it; returns what is said where there is nothing to see.
    pub(super) fn toggle(&mut self) -> Option<&'static str> {
        self.visibility = if self.is_shown() { Visibility::Hidden } else { Visibility::Shown };
        self.tasks.is_empty().then(|| match self.is_shown() {
            true => "There are no tasks yet; they will be shown",
            false => "There are no tasks yet; they will not be shown",
        })
    }

    /// Takes the list as it is now; tells whether it is shown from now on because the model has begun something. Between
    /// turns it is the list of a session that goes on.
    pub(super) fn take(&mut self, tasks: Vec<Task>, is_working: bool) -> bool {
        let is_begun = is_working && tasks.len() > self.tasks.len();
        self.tasks = tasks;
        let is_shown_now = is_begun && self.visibility == Visibility::LeftHidden;
        if is_shown_now {
            self.visibility = Visibility::Shown;
        }
        is_shown_now
    }

    /// Keeps whether it is shown; before there is a session there is nobody to keep it.
    pub(super) fn keep(&self, is_started: bool) -> Vec<Effect> {
        let keep = Effect::AskPanel(PanelRequest::KeepTaskView { is_shown: self.is_shown() });
        is_started.then_some(keep).into_iter().collect()
    }

    /// Returns its rows, as long as something is to be done: what is being done first, at most five.
    pub(super) fn rows(&self, width: u16) -> Vec<Row> {
        let is_open = self.tasks.iter().any(|task| task.status != TaskStatus::Completed);
        if !self.is_shown() || !is_open {
            return Vec::new();
        }
        let mut rows = vec![Row::default()];
        let rank = |task: &&Task| match task.status {
            TaskStatus::InProgress => 0,
            TaskStatus::Pending => 1,
            TaskStatus::Completed => 2,
        };
        let mut tasks: Vec<&Task> = self.tasks.iter().collect();
        tasks.sort_by_key(rank);
        for task in tasks.iter().take(MOST_TASKS) {
            let (mark, style) = match task.status {
                TaskStatus::InProgress => ("◼", marked()),
                TaskStatus::Pending => ("◻", Style::default()),
                TaskStatus::Completed => ("✔", faint()),
            };
            let doing = task.active_form.as_ref().filter(|_| task.status == TaskStatus::InProgress);
            rows.push(cut(&line(&format!("  {mark} {}", doing.unwrap_or(&task.subject)), style), width));
        }
        if let Some(n) = tasks.len().checked_sub(MOST_TASKS).filter(|n| *n > 0) {
            rows.push(line(&format!("    … {n} more"), faint()));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_that_was_left_hidden_is_shown_by_what_the_model_begins_and_stays_hidden_for_a_person() {
        let task: Task = serde_json::from_str(r#"{"id": "1", "subject": "a"}"#).unwrap();
        let mut view = TaskView::default();
        view.begin(false);
        assert!(!view.take(vec![task.clone()], false), "the list of a session that goes on");
        assert!(view.take(vec![task.clone(), task.clone()], true) && view.is_shown());
        view.toggle();
        assert!(!view.take(vec![task; 3], true) && !view.is_shown());
    }
}
