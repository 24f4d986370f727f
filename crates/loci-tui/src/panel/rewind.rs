//! `/rewind`: back to a prompt, with the conversation, the code, or both; or a summary in the place of all that came after it,
//! or before it.
//! What would change is shown first, and it can be undone.

mod rows;
mod summary;
#[cfg(test)]
mod tests;

use loci_app::sessions::command::{RewindPoint, RewindPoints, RewindPreview, RewindRequest};
use loci_app::start::renewal::SwitchTarget;

pub(crate) use summary::SUMMARY_REQUEST;
use summary::{SUMMARIES, SummarisedPart};

use super::{ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll};
use crate::app::{Action, Effect, UiAction};
use crate::dialog::{Choices, TextField};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::Row;

/// Prompts to go back to, and what that would do.
#[derive(Debug)]
pub(crate) struct RewindPanel {
    session: String,
    points: Option<RewindPoints>,
    mark: ListMark,
    /// What is known of files, by prompt; the empty one is the undo.
    previews: Vec<(Option<String>, RewindPreview)>,
    /// The prompt whose files are being looked at.
    asked: Option<Option<String>>,
    stage: RewindView,
    problem: Option<String>,
}

#[derive(Debug)]
enum RewindView {
    List,
    /// What is to go back; the prompt is none for the undo.
    Choose {
        point: Option<RewindPoint>,
        choices: Choices,
        overwrites: bool,
        scroll: Scroll,
    },
    /// A summary is to take the place of what came after, or before; what it is to be about is typed.
    Focus {
        point: RewindPoint,
        part: SummarisedPart,
        focus: TextField,
    },
    /// The model writes it.
    Summarising {
        point: RewindPoint,
    },
}

/// What can go back, in the order of the answers.
const WHAT: [&str; 5] = [
    "Conversation and code",
    "Conversation only",
    "Code only",
    "Summarise from here",
    "Summarise up to here",
];

impl RewindPanel {
    /// Opens the list for the session at hand; returns what is to be found out.
    pub(crate) fn new(session: String) -> (Self, Vec<Action>) {
        let panel = Self {
            session,
            points: None,
            mark: ListMark::default(),
            previews: Vec::new(),
            asked: None,
            stage: RewindView::List,
            problem: None,
        };
        (panel, vec![Action::Effect(Effect::AskPanel(PanelRequest::RewindPoints))])
    }

    /// Returns how many rows the list has: the undo comes first, where there is one.
    fn n_rows(&self) -> usize {
        self.points.as_ref().map_or(0, |points| points.points.len() + usize::from(points.can_undo))
    }

    /// Returns the prompt of a row; none for the undo.
    fn point(&self, idx: usize) -> Option<&RewindPoint> {
        let points = self.points.as_ref()?;
        points.points.get(idx.checked_sub(usize::from(points.can_undo))?)
    }

    fn key_of(&self, idx: usize) -> Option<String> {
        self.point(idx).map(|point| point.prompt.clone())
    }

    fn preview(&self, key: Option<&str>) -> Option<&RewindPreview> {
        self.previews.iter().find(|(known, _)| known.as_deref() == key).map(|(_, preview)| preview)
    }

    /// Asks what the marked rewind would do, one at a time.
    fn ask_preview(&mut self) -> Vec<Action> {
        let key = self.key_of(self.mark.at);
        // A branch that was left is gone on with; no file goes back for it.
        if self.point(self.mark.at).is_some_and(|point| point.leaf.is_some()) {
            return Vec::new();
        }
        if self.asked.is_some() || self.n_rows() == 0 || self.preview(key.as_deref()).is_some() {
            return Vec::new();
        }
        self.asked = Some(key.clone());
        vec![Action::Effect(Effect::AskPanel(PanelRequest::RewindPreview { prompt: key }))]
    }

    fn handle_list(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let last = self.n_rows().saturating_sub(1);
        let action = match ctx.action {
            Some(KeyAction::MessageSelectorDown) => Some(KeyAction::SelectNext),
            Some(KeyAction::MessageSelectorUp) => Some(KeyAction::SelectPrevious),
            action => action,
        };
        match ctx.action {
            _ if self.mark.handle_event(self.n_rows(), event, action) => {}
            Some(KeyAction::MessageSelectorTop) => self.mark.at = 0,
            Some(KeyAction::MessageSelectorBottom) => self.mark.at = last,
            Some(KeyAction::SelectAccept | KeyAction::MessageSelectorSelect) if self.n_rows() > 0 => {
                let point = self.point(self.mark.at).cloned();
                if let Some(leaf) = point.as_ref().and_then(|point| point.leaf.clone()) {
                    let target = SwitchTarget {
                        session: self.session.clone(),
                        at: Some(leaf),
                        ..SwitchTarget::default()
                    };
                    return PanelStep::CloseWith(vec![Action::Ui(UiAction::Switch(target))]);
                }
                let labels: Vec<String> = match point {
                    Some(_) => WHAT.iter().map(|what| (*what).to_owned()).collect(),
                    None => vec!["Undo the rewind".to_owned()],
                };
                let (choices, scroll) = (Choices::new(labels), Scroll::default());
                self.stage = RewindView::Choose { point, choices, overwrites: false, scroll };
            }
            _ => {}
        }
        PanelStep::Act(self.ask_preview())
    }

    fn handle_choose(&mut self, event: &InputEvent) -> PanelStep {
        let session = self.session.clone();
        let RewindView::Choose { point, choices, overwrites, scroll } = &mut self.stage else {
            return PanelStep::Stay;
        };
        let InputEvent::Key(key) = event else { return PanelStep::Stay };
        match key.code {
            KeyCode::Tab => *overwrites = !*overwrites,
            KeyCode::PageDown | KeyCode::PageUp => drop(scroll.handle(event)),
            _ => {
                let Some(idx) = choices.handle(*key) else { return PanelStep::Stay };
                if let Some((_, part)) = SUMMARIES.into_iter().find(|(at, _)| *at == idx)
                    && let Some(point) = point.take()
                {
                    self.stage = RewindView::Focus { point, part, focus: TextField::default() };
                    return PanelStep::Stay;
                }
                return PanelStep::CloseWith(rewind_actions(session, point.as_ref(), idx, *overwrites));
            }
        }
        PanelStep::Stay
    }
}

/// Returns what carries out an answer.
fn rewind_actions(session: String, point: Option<&RewindPoint>, idx: usize, overwrites: bool) -> Vec<Action> {
    let prompt = point.map(|point| point.prompt.clone());
    let request = |takes_files| RewindRequest {
        prompt: prompt.clone(),
        takes_files,
        overwrites,
        ..RewindRequest::default()
    };
    let switch = |takes_files| {
        let rewind = Some(request(takes_files));
        Action::Ui(UiAction::Switch(SwitchTarget {
            session: session.clone(),
            rewind,
            ..SwitchTarget::default()
        }))
    };
    let text = point.map(|point| Action::Ui(UiAction::SetPrompt(point.text.clone())));
    match (idx, point) {
        (_, None) => vec![switch(true)],
        (0, Some(_)) => text.into_iter().chain([switch(true)]).collect(),
        (1, Some(_)) => text.into_iter().chain([switch(false)]).collect(),
        (_, Some(_)) => vec![Action::Effect(Effect::AskPanel(PanelRequest::RewindFiles(request(true))))],
    }
}

impl Panel for RewindPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match self.stage {
            RewindView::List if ctx.is_cancel() => PanelStep::Close,
            RewindView::List => self.handle_list(event, ctx),
            RewindView::Choose { .. } | RewindView::Focus { .. } | RewindView::Summarising { .. }
                if ctx.is_cancel() =>
            {
                (self.stage, self.problem) = (RewindView::List, None);
                PanelStep::Stay
            }
            RewindView::Choose { .. } => self.handle_choose(event),
            RewindView::Focus { .. } => self.handle_focus(event),
            RewindView::Summarising { .. } => PanelStep::Stay,
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::RewindPoints(points) => {
                // The newest prompt is marked, not the undo above it.
                self.mark.at = usize::from(points.can_undo && !points.points.is_empty());
                self.points = Some(points);
                self.ask_preview()
            }
            PanelData::RewindPreview { prompt, preview } => {
                self.asked = None;
                self.previews.push((prompt, preview));
                self.ask_preview()
            }
            PanelData::SideAnswer { request, outcome } if request == SUMMARY_REQUEST => {
                self.take_summary(outcome)
            }
            PanelData::Failed(why) => {
                self.problem = Some(why);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn is_awaiting(&self, request: &str) -> bool {
        request == SUMMARY_REQUEST
    }

    fn is_typing(&self) -> bool {
        matches!(self.stage, RewindView::Focus { .. })
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let (point, choices, overwrites, scroll) = match &self.stage {
            RewindView::List => return self.list_view(size),
            RewindView::Focus { point, part, focus } => {
                return self.summary_view(point, *part, Some(focus), size);
            }
            RewindView::Summarising { point } => {
                return self.summary_view(point, SummarisedPart::After, None, size);
            }
            RewindView::Choose { point, choices, overwrites, scroll } => (point, choices, overwrites, scroll),
        };
        let title = match point {
            Some(point) => format!("Back to before: {}", point.line),
            None => "Undo the last rewind".to_owned(),
        };
        let key = point.as_ref().map(|point| point.prompt.as_str());
        let has_conflicts = self.preview(key).is_some_and(|preview| !preview.conflicts.is_empty());
        let hint = match has_conflicts {
            true => "Enter go · Tab files that someone else changed, too · Esc back",
            false => "Enter go · Esc back",
        };
        let mut view = PanelView::new(&title, hint);
        let (foot, focus) = choices.rows(size.width);
        let room = view.room(size);
        let n_foot = foot.len();
        if room <= n_foot {
            let first = focus.min(n_foot.saturating_sub(room));
            view.body = foot.into_iter().skip(first).take(room).collect();
            return view;
        }
        view.body = foot;
        view.body.push(Row::default());
        let rows = self.preview_rows(key, *overwrites, size.width);
        view.body.extend(scroll.rows(rows, (room - n_foot).saturating_sub(1)));
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::MessageSelector, Context::Select, Context::Global]
    }
}
