//! Dialogs: questions that stand in the place of the prompt until they are answered.
//!
//! A dialog is a small state machine: [`Dialog::handle`] takes what was typed and says whether it is answered,
//! [`Dialog::view`] says what is seen, as rows. Several that wait are a queue; the first is shown. What was typed before a
//! dialog was seen never answers it: the application hands keys to it only once it has been drawn and the typing has
//! paused.

mod choice_dialog;
mod choices;
mod elicitation;
mod key_entry;
mod permission;
mod scroll;
mod server_approval;
mod text_field;
mod user_questions;

pub(crate) use choice_dialog::ChoiceDialog;
pub(crate) use choices::Choices;
pub(crate) use elicitation::ElicitationDialog;
pub(crate) use key_entry::KeyEntry;
pub(crate) use permission::{COMMENTED_REFUSAL, EXPLANATION_REQUEST, PermissionDialog, REFUSAL};
pub(crate) use scroll::DialogScroll;
pub(crate) use server_approval::ServerApprovalDialog;
pub(crate) use text_field::TextField;
pub(crate) use user_questions::UserQuestionsDialog;

use std::time::Duration;

use crate::app::{Action, Effect};
use crate::block::FileDiff;
use crate::key::{InputEvent, Key};
use crate::keymap::{Action as KeyAction, Context, is_letter};
use crate::render::RenderContext;
use crate::text::Row;

/// So much of what a dialog is about is seen before its question and its answers make room: a row, and how many there are.
const LEAST_BODY_ROWS: usize = 2;

/// A question that waits for an answer.
pub(crate) trait Dialog: std::fmt::Debug + Send {
    /// Takes what was typed, and what the keymap binds it to in the contexts of the dialog.
    fn handle(&mut self, event: &InputEvent, action: Option<KeyAction>) -> DialogStep;

    /// Returns where keys are looked up, the first first.
    fn contexts(&self) -> &'static [Context] {
        &[Context::Confirmation, Context::Select, Context::Global]
    }

    /// Tells whether characters are typed into a field, so that they are no keys.
    fn is_typing(&self) -> bool {
        false
    }

    /// Returns what is seen; `ctx` has the width and the looks.
    fn view(&self, ctx: &RenderContext) -> DialogView;

    /// The engine's id of the question, where it has one: it may be withdrawn.
    fn question(&self) -> Option<&str> {
        None
    }

    /// What is said of it to somebody who is away.
    fn notice(&self) -> String {
        "loci has a question for you".to_owned()
    }

    /// The kind of notification that hooks hear of when nobody answers.
    fn notice_kind(&self) -> &'static str {
        "permission_prompt"
    }

    /// Returns what comes of it when whoever is asked has been away for so long; nothing where it waits for ever.
    fn expire(&self, _waited: Duration) -> Option<DialogStep> {
        None
    }

    /// Returns what whoever listens is told first.
    fn label(&self) -> &'static str {
        "question: "
    }

    /// Takes a text back that the person's editor was open for.
    fn edited(&mut self, _text: String) {}

    /// Takes up what a call would change, once that is known.
    fn set_diff(&mut self, _diff: FileDiff) {}

    /// Takes up what the model says of a call, or why it says nothing.
    fn explained(&mut self, _outcome: Result<String, String>) {}

    /// Takes up what still works in the background; true where nothing is left to ask about.
    fn work_changed(&mut self, _running: &[String]) -> bool {
        false
    }
}

/// What came of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum DialogStep {
    /// It is still open.
    Open,
    /// It is still open, and something is to be done.
    Act(Vec<Action>),
    /// It is answered.
    Answered(Vec<Action>),
}

/// What is seen of a dialog: the middle scrolls where the window is small, the rest stays.
#[derive(Debug, Default)]
pub(crate) struct DialogView {
    /// What is asked.
    pub(crate) head: Vec<Row>,
    /// What it is about.
    pub(crate) body: Vec<Row>,
    /// How far the middle is scrolled.
    pub(crate) scroll: DialogScroll,
    /// The answers.
    pub(crate) foot: Vec<Row>,
    /// The row of `foot` that must be seen.
    pub(crate) focus: usize,
    /// Keys, where there is room.
    pub(crate) hint: Option<Row>,
    /// Where the caret stands: row of `foot`, column.
    pub(crate) caret: Option<(usize, u16)>,
}

impl DialogView {
    /// Lays it out within a height; returns the rows and where the caret stands.
    ///
    /// Of what it is about something is always seen, however small the window: nobody says yes to what they cannot read.
    pub(crate) fn fit(mut self, height: usize) -> (Vec<Row>, Option<(usize, u16)>) {
        let height = height.max(1);
        let n_fixed = self.head.len() + self.foot.len();
        let least_body = self.body.len().min(LEAST_BODY_ROWS);
        if n_fixed + least_body > height {
            return self.fit_small(height);
        }
        if n_fixed + least_body + 1 > height {
            self.hint = None;
        }
        let room = height - n_fixed - usize::from(self.hint.is_some());
        let mut rows = self.head;
        rows.extend(self.scroll.rows(self.body, room));
        let top = rows.len();
        rows.extend(self.foot);
        rows.extend(self.hint);
        (rows, self.caret.map(|(row, column)| (top + row, column)))
    }

    /// Lays it out in a small window: the first row of the question, what it is about as far as it goes, and the answers
    /// around the marked one.
    fn fit_small(self, height: usize) -> (Vec<Row>, Option<(usize, u16)>) {
        let mut head = self.head.into_iter();
        let mut rows: Vec<Row> = head.by_ref().take(usize::from(height > 1)).collect();
        let middle: Vec<Row> = head.chain(self.body).filter(|row| !row.text().trim().is_empty()).collect();
        let room = height - rows.len();
        let left_over = room.saturating_sub(self.foot.len());
        let n_middle = if room > LEAST_BODY_ROWS { left_over.max(room / 2).max(LEAST_BODY_ROWS) } else { 0 };
        let n_middle = n_middle.min(middle.len());
        rows.extend(self.scroll.rows(middle, n_middle));
        let (top, room) = (rows.len(), height - rows.len());
        let first = self.focus.saturating_sub(room / 2).min(self.foot.len().saturating_sub(room));
        rows.extend(self.foot.into_iter().skip(first).take(room));
        let caret = self.caret.filter(|(row, _)| (first..first + room).contains(row));
        (rows, caret.map(|(row, column)| (top + row - first, column)))
    }
}

/// Tells whether a key says no to the whole question, or leaves it.
fn is_cancel(action: Option<KeyAction>, key: Key) -> bool {
    match action {
        // A letter that says no is for questions of yes and no alone.
        Some(KeyAction::ConfirmNo) => !is_letter(key),
        Some(KeyAction::SelectCancel | KeyAction::AppInterrupt) => true,
        _ => false,
    }
}

/// Returns the width of a context, as dialogs count it.
fn width_of(ctx: &RenderContext) -> u16 {
    u16::try_from(ctx.width).unwrap_or(u16::MAX)
}

/// Has a text edited in the person's editor; it comes back to the dialog of the question.
fn edit_elsewhere(question: &str, text: &str) -> DialogStep {
    DialogStep::Act(vec![Action::Effect(Effect::EditText {
        name: question.to_owned(),
        text: text.to_owned(),
    })])
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Dialog, DialogStep};
    use crate::key::{InputEvent, Key};
    use crate::keymap::Keymap;

    /// Presses a key with the default keymap.
    pub(crate) fn press(dialog: &mut impl Dialog, key: Key) -> DialogStep {
        let event = InputEvent::Key(key);
        let action = Keymap::default().action_of(dialog.contexts(), &event, dialog.is_typing());
        action.map_or(DialogStep::Open, |action| dialog.handle(&event, action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(prefix: &str, n: usize) -> Vec<Row> {
        (0..n).map(|idx| Row::plain(format!("{prefix}{idx}"))).collect()
    }

    fn texts(rows: &[Row]) -> Vec<String> {
        rows.iter().map(Row::text).collect()
    }

    fn view() -> DialogView {
        DialogView {
            head: rows("h", 2),
            body: rows("b", 10),
            foot: rows("f", 3),
            focus: 2,
            hint: Some(Row::plain("hint")),
            caret: Some((2, 4)),
            ..DialogView::default()
        }
    }

    #[test]
    fn middle_scrolls_and_the_answers_stay() {
        let (rows, caret) = view().fit(10);
        assert_eq!(
            texts(&rows),
            ["h0", "h1", "b0", "b1", "b2", "… 7 more rows (PgDn)", "f0", "f1", "f2", "hint"]
        );
        assert_eq!(caret, Some((8, 4)));
        let (rows, _) = DialogView { scroll: DialogScroll::at(99), ..view() }.fit(10);
        assert_eq!(texts(&rows)[2..6], ["b7", "b8", "b9", "… 7 rows above (PgUp)"]);
    }

    #[test]
    fn small_window_keeps_the_question_and_the_marked_answer() {
        for height in 1..8 {
            let (rows, caret) = view().fit(height);
            let texts = texts(&rows);
            assert!(rows.len() <= height && texts.contains(&"f2".to_owned()), "{height}: {texts:?}");
            assert!(height == 1 || texts[0] == "h0", "{height}: {texts:?}");
            let (row, _) = caret.unwrap();
            assert_eq!(texts[row], "f2");
        }
    }

    #[test]
    fn all_of_what_is_asked_about_can_be_read_in_a_small_window() {
        for height in 4..16 {
            let pages =
                (0..20).map(|n| DialogView { scroll: DialogScroll::at(n * 8), ..view() }.fit(height).0);
            let seen: Vec<String> = pages.flat_map(|rows| texts(&rows)).collect();
            for row in rows("b", 10) {
                assert!(seen.contains(&row.text()), "{height}: {} is never seen", row.text());
            }
        }
        let (rows, _) = view().fit(5);
        assert_eq!(texts(&rows), ["h0", "h1", "… 10 more rows (PgDn)", "f1", "f2"]);
    }
}
