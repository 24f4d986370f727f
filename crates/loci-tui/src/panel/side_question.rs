//! `/btw`: a question beside the conversation, and its answer. Nothing of it is recorded.

use loci_engine::{Command, SideTask};

use super::{Panel, PanelContext, PanelData, PanelStep, PanelView, Scroll};
use crate::app::Action;
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line, paragraph, warning};
use crate::render::{RenderContext, render_markdown};
use crate::screen::Size;
use crate::text::{Row, sanitize};

/// A question, and what the model says to it.
#[derive(Debug)]
pub(crate) struct SideQuestionPanel {
    request: String,
    question: TextField,
    stage: AnswerState,
    scroll: Scroll,
}

#[derive(Debug)]
enum AnswerState {
    /// The question is being typed.
    Typing,
    /// The model was asked.
    Waiting,
    /// It answered, as Markdown.
    Answered(String),
    /// It did not, and why.
    Failed(String),
}

impl SideQuestionPanel {
    /// Lets a question be typed; `request` is what its answer will be known by.
    pub(crate) fn new(request: String) -> Self {
        Self {
            request,
            question: TextField::default(),
            stage: AnswerState::Typing,
            scroll: Scroll::default(),
        }
    }

    /// Asks; returns what is to be done.
    pub(crate) fn ask(&mut self, question: &str) -> Vec<Action> {
        self.question = TextField::default();
        self.question.insert(question);
        self.stage = AnswerState::Waiting;
        vec![Action::Send(Command::AskOnTheSide {
            request: self.request.clone(),
            task: SideTask::Question(question.to_owned()),
        })]
    }

    fn body(&self, ctx: &RenderContext, width: u16) -> Vec<Row> {
        match &self.stage {
            AnswerState::Typing => {
                vec![line("The model sees what was said so far, and has no tools here.", faint())]
            }
            AnswerState::Waiting => vec![line("Asking… the answer comes here.", faint())],
            AnswerState::Answered(markdown) => render_markdown(&sanitize(markdown), ctx),
            AnswerState::Failed(why) => paragraph("", why, warning(), width),
        }
    }
}

impl Panel for SideQuestionPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if matches!(self.stage, AnswerState::Typing) {
            match event {
                InputEvent::Paste(text) => self.question.insert(text),
                InputEvent::Key(key) if key.code == KeyCode::Enter => {
                    let question = self.question.text().trim().to_owned();
                    return match question.is_empty() {
                        true => PanelStep::Close,
                        false => PanelStep::Act(self.ask(&question)),
                    };
                }
                InputEvent::Key(key) => drop(self.question.handle(*key)),
                _ => {}
            }
            return PanelStep::Stay;
        }
        if self.scroll.handle(event) {
            return PanelStep::Stay;
        }
        match (&self.stage, event) {
            (AnswerState::Answered(markdown), InputEvent::Key(key)) if key.code == KeyCode::Char('c') => {
                PanelStep::Act(vec![Action::Copy(markdown.clone())])
            }
            (AnswerState::Answered(_) | AnswerState::Failed(_), _)
                if ctx.action == Some(KeyAction::SelectAccept) =>
            {
                PanelStep::Close
            }
            _ => PanelStep::Stay,
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        if let PanelData::SideAnswer { request, outcome } = data
            && request == self.request
        {
            self.stage = match outcome {
                Ok(markdown) => AnswerState::Answered(markdown),
                Err(why) => AnswerState::Failed(why),
            };
        }
        Vec::new()
    }

    fn is_awaiting(&self, request: &str) -> bool {
        request == self.request
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match self.stage {
            AnswerState::Typing => "Enter ask · Esc close",
            AnswerState::Waiting => "Esc close; the answer is shown when it comes",
            AnswerState::Answered(_) => "↑↓ scroll · c copy · Esc close · nothing of this is recorded",
            AnswerState::Failed(_) => "Esc close",
        };
        let mut view = PanelView::new("A question on the side", hint);
        match self.stage {
            AnswerState::Typing => view.push_field("? ", &self.question),
            _ => view.head.push(line(&format!("? {}", self.question.text()), faint())),
        }
        let room = view.room(size);
        view.body = self.scroll.rows(self.body(ctx, size.width), room);
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    #[test]
    fn question_is_asked_and_its_answer_shown_at_every_width() {
        for width in [20, 50, 80] {
            let mut shown = Shown::new(SideQuestionPanel::new("1".into()), width, 8);
            shown.type_text("why?");
            let step = shown.key(KeyCode::Enter, Some(KeyAction::SelectAccept));
            let command =
                Command::AskOnTheSide { request: "1".into(), task: SideTask::Question("why?".into()) };
            assert_eq!(step, PanelStep::Act(vec![Action::Send(command)]));
            assert!(shown.text().contains("Asking"), "{}", shown.text());
            let other = PanelData::SideAnswer { request: "0".into(), outcome: Ok("no".into()) };
            shown.receive(other);
            assert!(shown.text().contains("Asking"), "an answer to another question: {}", shown.text());
            let outcome = Ok("Since **it** is\u{1b}[31m so 日本.".to_owned());
            shown.receive(PanelData::SideAnswer { request: "1".into(), outcome });
            shown.assert_clean();
            let joined = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains("Since it is") && joined.contains("? why?"), "{joined}");
        }
    }

    #[test]
    fn empty_question_asks_nothing() {
        let mut shown = Shown::new(SideQuestionPanel::new("1".into()), 40, 8);
        assert_eq!(shown.key(KeyCode::Enter, None), PanelStep::Close);
    }
}
