//! `/tasks`: what runs beside the conversation, what it printed, and a way to stop it or to bring it to the front.

use std::time::Duration;

use loci_app::commands::tasks::{kind, status};
use loci_engine::{BackgroundStatus, BackgroundTask, Command};

use super::{ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, mark_row};
use crate::app::{Action, Effect, UiAction};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{code, faint, line, paragraph};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, parse_output, sanitize_line};

/// How often what a running task prints is read.
const REFRESH: Duration = Duration::from_secs(1);

/// The tasks, or one of them.
#[derive(Debug)]
pub(crate) struct TasksPanel {
    tasks: Vec<BackgroundTask>,
    mark: ListMark,
    /// The task that is looked at, by id.
    open: Option<OpenTask>,
}

#[derive(Debug)]
struct OpenTask {
    id: String,
    /// What it printed, once that is known.
    output: Option<String>,
    scroll: Scroll,
}

impl TasksPanel {
    /// Shows these.
    pub(crate) fn new(tasks: Vec<BackgroundTask>) -> Self {
        Self { tasks: running_first(tasks), mark: ListMark::default(), open: None }
    }

    fn ask_output(&self) -> Vec<Action> {
        let open = self.open.as_ref().and_then(|open| self.tasks.iter().find(|task| task.id == open.id));
        open.map(|task| {
            Action::Effect(Effect::AskPanel(PanelRequest::TaskOutput {
                task: task.id.clone(),
                file: task.output.clone(),
            }))
        })
        .into_iter()
        .collect()
    }

    fn stop(&self, id: &str) -> Vec<Action> {
        self.running(id)
            .map(|task| {
                Action::Effect(Effect::Send(Command::StopTask {
                    request: "tasks".to_owned(),
                    task: task.id.clone(),
                }))
            })
            .into_iter()
            .collect()
    }

    /// Brings a task that runs to the front.
    fn bring_to_front(&self, id: &str) -> PanelStep {
        match self.running(id) {
            Some(task) => PanelStep::CloseWith(vec![Action::Ui(UiAction::BringToFront(task.id.clone()))]),
            None => PanelStep::Stay,
        }
    }

    fn running(&self, id: &str) -> Option<&BackgroundTask> {
        let is_running =
            |task: &&BackgroundTask| task.id == id && matches!(task.status, BackgroundStatus::Running);
        self.tasks.iter().find(is_running)
    }

    fn handle_list(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match ctx.action {
            _ if self.mark.handle_event(self.tasks.len(), event, ctx.action) => {}
            Some(KeyAction::SelectAccept) => {
                let Some(task) = self.tasks.get(self.mark.at) else { return PanelStep::Close };
                // What a command printed last is what is wanted of it.
                let scroll = if task.report.is_some() { Scroll::default() } else { Scroll::at_end() };
                let id = task.id.clone();
                self.open = Some(OpenTask { id, output: None, scroll });
                return PanelStep::Act(self.ask_output());
            }
            _ => {
                let Some(id) = self.tasks.get(self.mark.at).map(|task| task.id.clone()) else {
                    return PanelStep::Stay;
                };
                match event {
                    event if is_char(event, 'x') => return PanelStep::Act(self.stop(&id)),
                    event if is_char(event, 'f') => return self.bring_to_front(&id),
                    _ => {}
                }
            }
        }
        PanelStep::Stay
    }

    fn task_view(&self, open: &OpenTask, size: Size) -> PanelView {
        let Some(task) = self.tasks.iter().find(|task| task.id == open.id) else {
            return PanelView::new("This task is gone", "Esc back");
        };
        let mut view = PanelView::new(
            &format!("{} · {}", task.label(), status(task)),
            match self.running(&task.id) {
                Some(_) => "↑↓ scroll · r read again · f to the front · x stop · Esc back",
                None => "↑↓ scroll · r read again · Esc back",
            },
        );
        let mut rows = paragraph("", &task.command, code(), size.width);
        rows.push(Row::default());
        match (&task.report, &open.output) {
            (Some(report), _) => rows.extend(paragraph("", &report.text, Style::default(), size.width)),
            (None, Some(output)) if output.is_empty() => rows.push(line("It has printed nothing", faint())),
            (None, Some(output)) => rows.extend(parse_output(output).into_iter().map(Row::new)),
            (None, None) => rows.push(line("Reading what it printed…", faint())),
        }
        let room = view.room(size);
        view.body = open.scroll.rows(rows, room);
        view
    }
}

impl Panel for TasksPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let Some(open) = &mut self.open else {
            return if ctx.is_cancel() { PanelStep::Close } else { self.handle_list(event, ctx) };
        };
        if ctx.is_cancel() {
            self.open = None;
            return PanelStep::Stay;
        }
        if open.scroll.handle(event) {
            return PanelStep::Stay;
        }
        let id = open.id.clone();
        match event {
            event if is_char(event, 'x') => PanelStep::Act(self.stop(&id)),
            event if is_char(event, 'f') => self.bring_to_front(&id),
            event if is_char(event, 'r') => PanelStep::Act(self.ask_output()),
            _ => PanelStep::Stay,
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Tasks(tasks) => {
                let tasks = running_first(tasks);
                // One that was moved to the background may come to stand before the one that is marked.
                let marked = self.tasks.get(self.mark.at).map(|task| task.id.clone());
                let place = tasks.iter().position(|task| Some(&task.id) == marked.as_ref());
                self.mark.at = place.unwrap_or(self.mark.at.min(tasks.len().saturating_sub(1)));
                self.tasks = tasks;
                return self.ask_output();
            }
            PanelData::TaskOutput { task, text } => {
                if let Some(open) = self.open.as_mut().filter(|open| open.id == task) {
                    open.output = Some(text);
                }
            }
            PanelData::Failed(why) => {
                if let Some(open) = &mut self.open {
                    open.output = Some(why);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn refresh_every(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        let task = self.tasks.iter().find(|task| task.id == open.id)?;
        (task.status == BackgroundStatus::Running).then_some(REFRESH)
    }

    fn refresh(&self) -> Vec<Action> {
        self.ask_output()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(open) = &self.open {
            return self.task_view(open, size);
        }
        let marked = self.tasks.get(self.mark.at).and_then(|task| self.running(&task.id));
        let hint = match marked {
            Some(_) => "Enter look · f to the front · x stop · Esc close",
            None if self.tasks.is_empty() => "Esc close",
            None => "Enter look · Esc close",
        };
        let mut view = PanelView::new("Background tasks", hint);
        let room = view.room(size);
        view.body = self.mark.rows(self.tasks.len(), room, |idx, is_marked| {
            mark_row(self.tasks.get(idx).map_or_else(Row::default, task_row), is_marked)
        });
        if self.tasks.is_empty() {
            let text = "Nothing runs in the background. Ctrl+B moves what the conversation waits for there";
            view.body = paragraph("", text, faint(), size.width);
        }
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }
}

/// Puts what runs before what is over, each in its order.
fn running_first(mut tasks: Vec<BackgroundTask>) -> Vec<BackgroundTask> {
    tasks.sort_by_key(|task| task.status != BackgroundStatus::Running);
    tasks
}

fn is_char(event: &InputEvent, c: char) -> bool {
    matches!(event, InputEvent::Key(key) if key.code == KeyCode::Char(c) && !key.ctrl && !key.alt)
}

fn task_row(task: &BackgroundTask) -> Row {
    Row::new(vec![
        Span::plain(sanitize_line(&format!("{}  ", status(task)))),
        Span::styled(sanitize_line(&format!("{}: ", kind(task))), faint()),
        Span::plain(sanitize_line(task.label())),
    ])
}

#[cfg(test)]
mod tests {
    use loci_core::ids::ToolUseId;
    use loci_engine::{NewTask, TaskKind};

    use super::super::testing::Shown;
    use super::*;

    fn task(id: &str, status: BackgroundStatus) -> BackgroundTask {
        BackgroundTask {
            about: NewTask {
                id: id.to_owned(),
                kind: TaskKind::Shell,
                tool_use_id: ToolUseId::new("t"),
                command: format!("make {id}"),
                description: format!("build\u{1b}]0;x\u{7} {id} 日本"),
                output: format!("/tmp/{id}").into(),
            },
            owner: None,
            status,
            is_background: true,
            report: None,
        }
    }

    #[test]
    fn what_runs_stands_first_and_the_keys_are_for_it() {
        let over = || task("over", BackgroundStatus::Completed);
        let mut shown =
            Shown::new(TasksPanel::new(vec![over(), task("on", BackgroundStatus::Running)]), 60, 8);
        assert!(shown.text().find("running") < shown.text().find("done"), "{}", shown.text());
        let stop = Command::StopTask { request: "tasks".into(), task: "on".into() };
        let stop = PanelStep::Act(vec![Action::Effect(Effect::Send(stop))]);
        assert_eq!(shown.key(KeyCode::Char('x'), None), stop);
        shown.receive(PanelData::Tasks(vec![over(), task("on", BackgroundStatus::Running)]));
        assert_eq!(shown.key(KeyCode::Char('x'), None), stop, "news leave the order");
    }

    #[test]
    fn tasks_are_listed_looked_at_and_stopped() {
        for width in [20, 50, 100] {
            let tasks = vec![task("a", BackgroundStatus::Running), task("b", BackgroundStatus::Failed(2))];
            let mut shown = Shown::new(TasksPanel::new(tasks.clone()), width, 8);
            shown.assert_clean();
            assert!(
                shown.text().contains("running") && shown.text().contains("failed (2)"),
                "{}",
                shown.text()
            );
            let stop = Command::StopTask { request: "tasks".into(), task: "a".into() };
            assert_eq!(
                shown.key(KeyCode::Char('x'), None),
                PanelStep::Act(vec![Action::Effect(Effect::Send(stop))])
            );
            let ask = PanelRequest::TaskOutput { task: "a".into(), file: "/tmp/a".into() };
            assert_eq!(
                shown.action(KeyAction::SelectAccept),
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))])
            );
            let text = "one\n\u{1b}[31mred\u{1b}[0m\n".to_owned();
            shown.receive(PanelData::TaskOutput { task: "a".into(), text });
            shown.assert_clean();
            assert!(shown.text().contains("red"), "{}", shown.text());
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay, "back to the list");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }

    #[test]
    fn output_of_a_running_task_is_read_again_while_it_is_looked_at() {
        let tasks = vec![task("a", BackgroundStatus::Running), task("b", BackgroundStatus::Completed)];
        let mut shown = Shown::new(TasksPanel::new(tasks), 40, 8);
        assert_eq!(shown.panel.refresh_every(), None, "nothing is looked at");
        shown.action(KeyAction::SelectAccept);
        assert_eq!(shown.panel.refresh_every(), Some(REFRESH));
        let ask = PanelRequest::TaskOutput { task: "a".into(), file: "/tmp/a".into() };
        assert_eq!(shown.panel.refresh(), [Action::Effect(Effect::AskPanel(ask))]);
        shown.receive(PanelData::Tasks(vec![task("a", BackgroundStatus::Completed)]));
        assert_eq!(shown.panel.refresh_every(), None, "it is over");
    }

    #[test]
    fn mark_stays_with_its_task_and_the_end_of_what_it_prints_is_seen() {
        let running = |id: &str| task(id, BackgroundStatus::Running);
        let mut shown = Shown::new(TasksPanel::new(vec![running("a")]), 60, 8);
        shown.receive(PanelData::Tasks(vec![running("before"), running("a")]));
        let stop = Command::StopTask { request: "tasks".into(), task: "a".into() };
        assert_eq!(
            shown.key(KeyCode::Char('x'), None),
            PanelStep::Act(vec![Action::Effect(Effect::Send(stop))])
        );
        shown.action(KeyAction::SelectAccept);
        for n in [20, 30] {
            let text: String = (0..n).map(|idx| format!("line {idx}\n")).collect();
            shown.receive(PanelData::TaskOutput { task: "a".into(), text });
            assert!(shown.text().contains(&format!("line {}", n - 1)), "{}", shown.text());
        }
        shown.receive(PanelData::Tasks(vec![task("a", BackgroundStatus::Completed)]));
        assert!(!shown.text().contains("x stop"), "{}", shown.text());
    }

    #[test]
    fn running_task_is_brought_to_the_front_and_a_finished_one_is_not() {
        let tasks = vec![task("a", BackgroundStatus::Running), task("b", BackgroundStatus::Completed)];
        let mut shown = Shown::new(TasksPanel::new(tasks), 40, 8);
        let to_front = || PanelStep::CloseWith(vec![Action::Ui(UiAction::BringToFront("a".to_owned()))]);
        assert_eq!(shown.key(KeyCode::Char('f'), None), to_front());
        shown.action(KeyAction::SelectAccept);
        assert_eq!(shown.key(KeyCode::Char('f'), None), to_front(), "while it is looked at");
        shown.action(KeyAction::SelectCancel);
        shown.action(KeyAction::SelectNext);
        assert_eq!(shown.key(KeyCode::Char('f'), None), PanelStep::Stay);
    }

    #[test]
    fn finished_task_is_not_stopped_again() {
        let mut shown = Shown::new(TasksPanel::new(vec![task("b", BackgroundStatus::Completed)]), 40, 6);
        assert_eq!(shown.key(KeyCode::Char('x'), None), PanelStep::Act(Vec::new()));
    }
}
