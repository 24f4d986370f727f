//! A summary in the place of what came after a prompt, or before it.

use loci_app::sessions::command::{RewindPoint, RewindRequest};
use loci_app::start::renewal::SwitchTarget;
use loci_engine::{Command, SideTask};

use super::super::{PanelStep, PanelView};
use super::{RewindPanel, RewindView};
use crate::app::{Action, Effect, UiAction};
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::layout::{faint, paragraph, warning};
use crate::screen::Size;

/// What of the conversation a summary takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummarisedPart {
    /// The prompt and all that came after it.
    After,
    /// All that came before it.
    Before,
}

/// The answers that put a summary in the place of something.
pub(super) const SUMMARIES: [(usize, SummarisedPart); 2] =
    [(3, SummarisedPart::After), (4, SummarisedPart::Before)];
/// What the summary is asked for by.
pub(crate) const SUMMARY_REQUEST: &str = "summary";
/// The most letters of the prompt that the model is told.
const MOST_QUOTED: usize = 2_000;

impl RewindPanel {
    pub(super) fn handle_focus(&mut self, event: &InputEvent) -> PanelStep {
        let RewindView::Focus { point, part, focus } = &mut self.stage else { return PanelStep::Stay };
        match event {
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let focus = Some(focus.text().trim().to_owned()).filter(|text| !text.is_empty());
                if *part == SummarisedPart::Before {
                    let keeps_from = point.prompt.clone();
                    return PanelStep::CloseWith(vec![Action::Ui(UiAction::Compact { keeps_from, focus })]);
                }
                let prompt = loci_stdx::truncate_chars(&point.text, MOST_QUOTED).to_owned();
                let task = SideTask::SummaryFrom { prompt, focus };
                self.stage = RewindView::Summarising { point: point.clone() };
                self.problem = None;
                let request = SUMMARY_REQUEST.to_owned();
                return PanelStep::Act(vec![Action::Effect(Effect::Send(Command::AskOnTheSide {
                    request,
                    task,
                }))]);
            }
            InputEvent::Key(key) => drop(focus.handle(*key)),
            InputEvent::Paste(text) => focus.insert(text),
            _ => {}
        }
        PanelStep::Stay
    }

    /// Takes the summary: the conversation goes back, and goes on with it.
    pub(super) fn take_summary(&mut self, outcome: Result<String, String>) -> Vec<Action> {
        let RewindView::Summarising { point } = &self.stage else { return Vec::new() };
        let text = match outcome {
            Ok(text) => text,
            Err(why) => {
                self.problem = Some(format!("There is no summary: {why}"));
                let (point, part) = (point.clone(), SummarisedPart::After);
                self.stage = RewindView::Focus { point, part, focus: TextField::default() };
                return Vec::new();
            }
        };
        let rewind = RewindRequest {
            prompt: Some(point.prompt.clone()),
            summary: Some(text),
            ..RewindRequest::default()
        };
        let session = self.session.clone();
        let target = SwitchTarget { session, rewind: Some(rewind), ..SwitchTarget::default() };
        vec![
            Action::Ui(UiAction::ClosePanel),
            Action::Ui(UiAction::SetPrompt(point.text.clone())),
            Action::Ui(UiAction::Switch(target)),
        ]
    }

    pub(super) fn summary_view(
        &self,
        point: &RewindPoint,
        part: SummarisedPart,
        focus: Option<&TextField>,
        size: Size,
    ) -> PanelView {
        let hint = match focus {
            Some(_) => "Enter summarise · Esc back",
            None => "Esc stop waiting",
        };
        let (title, about) = match part {
            SummarisedPart::After => (
                "Summarise from",
                "The messages from this prompt on give way to a summary; those before it and all files stay as they are",
            ),
            SummarisedPart::Before => (
                "Summarise up to",
                "The messages before this prompt give way to a summary; it, those after it and all files stay as they are",
            ),
        };
        let mut view = PanelView::new(&format!("{title}: {}", point.line), hint);
        if let Some(focus) = focus {
            view.push_field("Above all (optional): ", focus);
        }
        let text = match (&self.problem, focus) {
            (Some(problem), _) => problem,
            (None, Some(_)) => about,
            (None, None) => "The model writes the summary…",
        };
        let style = if self.problem.is_some() { warning() } else { faint() };
        view.body = paragraph("", text, style, size.width);
        view
    }
}
