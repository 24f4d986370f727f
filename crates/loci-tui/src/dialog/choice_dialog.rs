//! A dialog that is a text and a list of answers: trust, warnings, errors at the start, confirmations.

use super::{Choices, Dialog, DialogScroll, DialogStep, DialogView, is_cancel, width_of};
use crate::app::Action;
use crate::key::InputEvent;
use crate::keymap::Action as KeyAction;
use crate::layout::{bold, faint, line, paragraph};
use crate::render::RenderContext;
use crate::text::{Row, Style};

/// A text and answers, each with what follows from it.
#[derive(Debug)]
pub(crate) struct ChoiceDialog {
    title: String,
    body: Vec<String>,
    choices: Choices,
    answers: Vec<Vec<Action>>,
    /// What Escape answers: the index of an answer.
    escape: usize,
    /// What the keys answer that leave the program; they cancel, where there is none.
    leave: Option<usize>,
    /// Whether the text is what works in the background, and the question is over with that.
    is_about_work: bool,
    scroll: DialogScroll,
}

impl ChoiceDialog {
    /// Asks; the first answer is marked, Escape gives the last.
    pub(crate) fn new(title: &str, body: Vec<String>, answers: Vec<(&str, Vec<Action>)>) -> Self {
        let (labels, answers): (Vec<String>, Vec<Vec<Action>>) =
            answers.into_iter().map(|(label, actions)| (label.to_owned(), actions)).unzip();
        Self {
            title: title.to_owned(),
            body,
            escape: labels.len().saturating_sub(1),
            choices: Choices::new(labels),
            leave: None,
            is_about_work: false,
            answers,
            scroll: DialogScroll::default(),
        }
    }

    /// Marks another answer than the first.
    pub(crate) fn marking(mut self, idx: usize) -> Self {
        self.choices.mark(idx);
        self
    }

    /// Has Escape give another answer than the last.
    pub(crate) fn escaping_by(mut self, idx: usize) -> Self {
        self.escape = idx;
        self
    }

    /// Has the keys that leave the program give an answer: whoever presses them once more means it.
    pub(crate) fn leaving_by(mut self, idx: usize) -> Self {
        self.leave = Some(idx);
        self
    }

    /// Has the text follow what works in the background.
    pub(crate) fn about_work(mut self) -> Self {
        self.is_about_work = true;
        self
    }

    fn answer(&mut self, idx: usize) -> DialogStep {
        match self.answers.get_mut(idx) {
            Some(actions) => DialogStep::Answered(std::mem::take(actions)),
            None => DialogStep::Open,
        }
    }
}

impl Dialog for ChoiceDialog {
    fn handle(&mut self, event: &InputEvent, action: Option<KeyAction>) -> DialogStep {
        if self.scroll.handle(event) {
            return DialogStep::Open;
        }
        let InputEvent::Key(key) = event else { return DialogStep::Open };
        if let (Some(KeyAction::AppInterrupt | KeyAction::AppExit), Some(idx)) = (action, self.leave) {
            return self.answer(idx);
        }
        match self.choices.choose(action, *key) {
            Some(idx) => self.answer(idx),
            None if is_cancel(action, *key) => self.answer(self.escape),
            None => DialogStep::Open,
        }
    }

    fn view(&self, ctx: &RenderContext) -> DialogView {
        let width = width_of(ctx);
        let mut head: Vec<Row> = paragraph("", &self.title, bold(), width);
        head.push(Row::default());
        let mut body: Vec<Row> =
            self.body.iter().flat_map(|text| paragraph("", text, Style::default(), width)).collect();
        if !body.is_empty() {
            body.push(Row::default());
        }
        let (foot, focus) = self.choices.rows(width);
        DialogView {
            head,
            body,
            scroll: self.scroll.clone(),
            foot,
            focus,
            hint: Some(line(&format!("Enter to choose · Esc: {}", self.choices.label(self.escape)), faint())),
            caret: None,
        }
    }

    fn work_changed(&mut self, running: &[String]) -> bool {
        if self.is_about_work {
            running.clone_into(&mut self.body);
        }
        self.is_about_work && running.is_empty()
    }
}
