//! `/btw`: a question beside the conversation, and its answer. Nothing of it is recorded; the thread of such questions is
//! kept in memory ([`SideThread`]), so that a later one sees the earlier ones and their answers can be looked at again.

use std::cell::RefCell;
use std::rc::Rc;

use loci_engine::{Command, SideExchange, SideTask};

use super::{Panel, PanelContext, PanelData, PanelStep, PanelView, Scroll};
use crate::app::{Action, Effect, UiAction};
use crate::dialog::TextField;
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cut, faint, line, paragraph, warning};
use crate::render::{RenderContext, render_markdown};
use crate::screen::Size;
use crate::text::{Row, sanitize, sanitize_line};

/// How many earlier questions are listed above an answer.
const MOST_LISTED: usize = 5;

/// What was asked beside the conversation in this run.
#[derive(Debug, Default)]
pub(crate) struct SideThread {
    /// What was answered, the oldest first.
    exchanges: Vec<SideExchange>,
    /// Requests that wait for their answers, each with its question.
    open: Vec<(String, String)>,
    n_requests: usize,
}

impl SideThread {
    /// Makes the request that asks something.
    fn ask(&mut self, question: &str) -> (String, SideTask) {
        self.n_requests += 1;
        let request = format!("side-{}", self.n_requests);
        self.open.push((request.clone(), question.to_owned()));
        let (earlier, question) = (self.exchanges.clone(), question.to_owned());
        let task = match earlier.is_empty() {
            true => SideTask::Question(question),
            false => SideTask::FollowUp { earlier, question },
        };
        (request, task)
    }

    /// Takes what came of a request, whether somebody still looks or not.
    pub(crate) fn take(&mut self, request: &str, outcome: &Result<String, String>) {
        let Some(place) = self.open.iter().position(|(open, _)| open == request) else { return };
        let (_, question) = self.open.remove(place);
        if let Ok(answer) = outcome {
            self.exchanges.push(SideExchange { question, answer: answer.clone() });
        }
    }
}

/// A question, and what the model says to it.
#[derive(Debug)]
pub(crate) struct SideQuestionPanel {
    thread: Rc<RefCell<SideThread>>,
    stage: AnswerState,
    scroll: Scroll,
}

#[derive(Debug)]
enum AnswerState {
    /// The question is being typed.
    Typing(TextField),
    /// The model was asked.
    Waiting { request: String, question: String },
    /// One of the answers of the thread is shown.
    Answered(usize),
    /// It did not answer, and why.
    Failed { question: String, why: String },
}

impl SideQuestionPanel {
    /// Shows the last answer of the thread, or lets the first question be typed.
    pub(crate) fn new(thread: Rc<RefCell<SideThread>>) -> Self {
        let last = thread.borrow().exchanges.len().checked_sub(1);
        let stage = last.map_or_else(|| AnswerState::Typing(TextField::default()), AnswerState::Answered);
        Self { thread, stage, scroll: Scroll::default() }
    }

    /// Asks; returns what is to be done.
    pub(crate) fn ask(&mut self, question: &str) -> Vec<Action> {
        let (request, task) = self.thread.borrow_mut().ask(question);
        self.stage = AnswerState::Waiting { request: request.clone(), question: question.to_owned() };
        vec![Action::Effect(Effect::Send(Command::AskOnTheSide { request, task }))]
    }

    fn handle_typing(&mut self, event: &InputEvent) -> PanelStep {
        let AnswerState::Typing(field) = &mut self.stage else { return PanelStep::Stay };
        match event {
            InputEvent::Paste(text) => field.insert(text),
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let question = field.text().trim().to_owned();
                return match question.is_empty() {
                    true => PanelStep::Close,
                    false => PanelStep::Act(self.ask(&question)),
                };
            }
            InputEvent::Key(key) => drop(field.handle(*key)),
            _ => {}
        }
        PanelStep::Stay
    }

    /// Takes a key while an answer is shown.
    fn handle_answered(&mut self, shown: usize, key: Key) -> PanelStep {
        let exchange = self.thread.borrow().exchanges.get(shown).cloned();
        let Some(SideExchange { question, answer }) = exchange else { return PanelStep::Close };
        match key.code {
            KeyCode::Char(' ') => return PanelStep::Close,
            KeyCode::Char('c') => return PanelStep::Act(vec![Action::Effect(Effect::Copy(answer))]),
            KeyCode::Char('f') => {
                let text = format!(
                    "/fork Go on from this question on the side.\nQuestion: {question}\nAnswer: {answer}"
                );
                return PanelStep::CloseWith(vec![Action::Ui(UiAction::RunInSession(text))]);
            }
            KeyCode::Char('x') => {
                let mut thread = self.thread.borrow_mut();
                thread.exchanges = vec![SideExchange { question, answer }];
                self.stage = AnswerState::Answered(0);
            }
            KeyCode::Left => self.show(shown.saturating_sub(1)),
            KeyCode::Right => self.show(shown + 1),
            _ => {}
        }
        PanelStep::Stay
    }

    fn show(&mut self, wanted: usize) {
        let last = self.thread.borrow().exchanges.len().saturating_sub(1);
        self.stage = AnswerState::Answered(wanted.min(last));
        self.scroll = Scroll::default();
    }

    /// Lists the questions before the one that is shown, the newest last.
    fn push_earlier(&self, view: &mut PanelView, shown: usize, width: u16) {
        let thread = self.thread.borrow();
        let first = shown.saturating_sub(MOST_LISTED);
        if first > 0 {
            view.head.push(line(&format!("  … {first} older"), faint()));
        }
        let earlier = thread.exchanges.get(first..shown).unwrap_or_default();
        let row = |exchange: &SideExchange| {
            cut(&line(&format!("  {}", sanitize_line(&exchange.question)), faint()), width)
        };
        view.head.extend(earlier.iter().map(row));
    }

    fn body(&self, ctx: &RenderContext, width: u16) -> Vec<Row> {
        match &self.stage {
            AnswerState::Typing(_) => {
                vec![line("The model sees what was said so far, and has no tools here.", faint())]
            }
            AnswerState::Waiting { .. } => vec![line("Asking… the answer comes here.", faint())],
            AnswerState::Answered(shown) => {
                let thread = self.thread.borrow();
                let answer = thread.exchanges.get(*shown).map_or("", |exchange| &exchange.answer);
                render_markdown(&sanitize(answer), ctx)
            }
            AnswerState::Failed { why, .. } => paragraph("", why, warning(), width),
        }
    }
}

impl Panel for SideQuestionPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if matches!(self.stage, AnswerState::Typing(_)) {
            return self.handle_typing(event);
        }
        if self.scroll.handle(event) {
            return PanelStep::Stay;
        }
        match (&self.stage, event) {
            (AnswerState::Answered(_) | AnswerState::Failed { .. }, _)
                if ctx.action == Some(KeyAction::SelectAccept) =>
            {
                PanelStep::Close
            }
            (AnswerState::Answered(shown), InputEvent::Key(key)) => self.handle_answered(*shown, *key),
            _ => PanelStep::Stay,
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        if let PanelData::SideAnswer { request, outcome } = data
            && let AnswerState::Waiting { request: own, question } = &self.stage
            && request == *own
        {
            let question = question.clone();
            self.thread.borrow_mut().take(&request, &outcome);
            match outcome {
                Ok(_) => self.show(usize::MAX),
                Err(why) => self.stage = AnswerState::Failed { question, why },
            }
        }
        Vec::new()
    }

    fn is_awaiting(&self, request: &str) -> bool {
        matches!(&self.stage, AnswerState::Waiting { request: own, .. } if own == request)
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match self.stage {
            AnswerState::Typing(_) => "Enter ask · Esc close",
            AnswerState::Waiting { .. } => "Esc close; the answer is shown when it comes",
            AnswerState::Answered(_) => {
                "↑↓ scroll · ←→ earlier ones · c copy · f go on in a fork · x forget earlier ones · Esc close"
            }
            AnswerState::Failed { .. } => "Esc close",
        };
        let mut view = PanelView::new("A question on the side · nothing of it is recorded", hint);
        let asked = |question: &str| line(&format!("? {}", sanitize_line(question)), faint());
        match &self.stage {
            AnswerState::Typing(field) => view.push_field("? ", field),
            AnswerState::Waiting { question, .. } | AnswerState::Failed { question, .. } => {
                let n_earlier = self.thread.borrow().exchanges.len();
                self.push_earlier(&mut view, n_earlier, size.width);
                view.head.push(asked(question));
            }
            AnswerState::Answered(shown) => {
                self.push_earlier(&mut view, *shown, size.width);
                let thread = self.thread.borrow();
                view.head.extend(thread.exchanges.get(*shown).map(|exchange| asked(&exchange.question)));
            }
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

    fn answer(request: &str, text: &str) -> PanelData {
        PanelData::SideAnswer { request: request.to_owned(), outcome: Ok(text.to_owned()) }
    }

    fn sent(actions: &[Action]) -> (String, SideTask) {
        match actions {
            [Action::Effect(Effect::Send(Command::AskOnTheSide { request, task }))] => {
                (request.clone(), task.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn question_is_asked_and_its_answer_shown_at_every_width() {
        for width in [20, 50, 80] {
            let mut shown = Shown::new(SideQuestionPanel::new(Rc::default()), width, 8);
            shown.type_text("why?");
            let step = shown.key(KeyCode::Enter, Some(KeyAction::SelectAccept));
            let PanelStep::Act(actions) = step else { panic!("{step:?}") };
            let (request, task) = sent(&actions);
            assert_eq!(task, SideTask::Question("why?".into()));
            assert!(shown.text().contains("Asking"), "{}", shown.text());
            shown.receive(answer("other", "no"));
            assert!(shown.text().contains("Asking"), "an answer to another question: {}", shown.text());
            shown.receive(answer(&request, "Since **it** is\u{1b}[31m so 日本."));
            shown.assert_clean();
            let joined = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains("Since it is") && joined.contains("? why?"), "{joined}");
            for (key, action) in [(KeyCode::Char(' '), None), (KeyCode::Enter, Some(KeyAction::SelectAccept))]
            {
                assert_eq!(shown.key(key, action), PanelStep::Close);
            }
        }
    }

    #[test]
    fn empty_question_asks_nothing() {
        let mut shown = Shown::new(SideQuestionPanel::new(Rc::default()), 40, 8);
        assert_eq!(shown.key(KeyCode::Enter, None), PanelStep::Close);
    }

    #[test]
    fn later_question_tells_the_earlier_ones_and_their_answers_can_be_seen_again() {
        let thread = Rc::<RefCell<SideThread>>::default();
        for n in 0..8 {
            let mut panel = SideQuestionPanel::new(Rc::clone(&thread));
            let (request, task) = sent(&panel.ask(&format!("question {n}")));
            match task {
                SideTask::FollowUp { earlier, .. } => assert_eq!(earlier.len(), n),
                task => assert_eq!((n, task), (0, SideTask::Question("question 0".into()))),
            }
            // Whoever has closed the panel has the answer in the thread all the same.
            thread.borrow_mut().take(&request, &Ok(format!("answer {n}")));
        }
        let mut shown = Shown::new(SideQuestionPanel::new(Rc::clone(&thread)), 100, 14);
        assert!(
            shown.text().contains("? question 7") && shown.text().contains("answer 7"),
            "{}",
            shown.text()
        );
        assert!(
            shown.text().contains("… 2 older") && shown.text().contains("  question 2"),
            "{}",
            shown.text()
        );
        shown.key(KeyCode::Left, None);
        assert!(shown.text().contains("answer 6") && !shown.text().contains("answer 7"), "{}", shown.text());
        shown.key(KeyCode::Right, None);
        shown.key(KeyCode::Right, None);
        assert!(shown.text().contains("answer 7"), "{}", shown.text());
        let copy = Action::Effect(Effect::Copy("answer 7".to_owned()));
        assert_eq!(shown.key(KeyCode::Char('c'), None), PanelStep::Act(vec![copy]));
        let step = shown.key(KeyCode::Char('f'), None);
        let PanelStep::CloseWith(actions) = step else { panic!("{step:?}") };
        assert!(
            matches!(&actions[..], [Action::Ui(UiAction::RunInSession(text))]
                if text.starts_with("/fork ") && text.contains("question 7") && text.contains("answer 7")),
            "{actions:?}"
        );
        assert_eq!(shown.key(KeyCode::Char('x'), None), PanelStep::Stay);
        assert!(shown.text().contains("answer 7") && !shown.text().contains("older"), "{}", shown.text());
        assert_eq!(thread.borrow().exchanges.len(), 1);
    }
}
