//! The queue of dialogs, and when the first of them may be answered.
//!
//! Keys reach a dialog only once it has been drawn, and once a pause has shown that whoever types is not in the middle of
//! a sentence. Until then they go where they were meant for: to the prompt. A letter that answers nothing begins a sentence, too.

use std::collections::VecDeque;
use std::time::Duration;

use crate::app::Action;
use crate::app::away::Waiting;
use crate::app::session_mirror::SessionMirror;
use crate::block::FileDiff;
use crate::dialog::{Dialog, DialogStep, DialogView};
use crate::key::{InputEvent, Key, KeyCode, Mouse};
use crate::keymap::Keymap;
use crate::layout::{faint, line, warning};
use crate::render::RenderContext;
use crate::text::{Row, Span};

/// How long nothing may have been typed before a dialog takes keys.
pub(super) const TYPING_PAUSE: Duration = Duration::from_millis(400);

/// How long before a question goes on by itself that is counted down.
const COUNTDOWN: Duration = Duration::from_secs(20);

/// Dialogs that wait, the first of them shown.
#[derive(Debug, Default)]
pub(super) struct Dialogs {
    waiting: VecDeque<Box<dyn Dialog>>,
    /// When the first of them was drawn.
    drawn_at: Option<Duration>,
    /// When a key last went elsewhere than to a dialog.
    last_key: Option<Duration>,
    /// After how long without a key a question of the model goes on by itself.
    pub(super) patience: Option<Duration>,
    /// How long before that it is counted down.
    pub(super) countdown: Option<Duration>,
    /// When the first of them last got a key.
    last_answer: Option<Duration>,
}

impl Dialogs {
    /// Adds one at the end.
    pub(super) fn push(&mut self, dialog: impl Dialog + 'static) {
        self.waiting.push_back(Box::new(dialog));
    }

    /// Puts one before all others; keys reach it at once, since the one before it asked for it.
    pub(super) fn follow_up(&mut self, dialog: impl Dialog + 'static) {
        self.waiting.push_front(Box::new(dialog));
        (self.drawn_at, self.last_key) = (None, None);
    }

    /// Tells whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns what waits for the person: the session's question that is shown, as somebody who is away is told of it, or the
    /// prompt.
    pub(super) fn waiting(&self, session: &SessionMirror) -> Waiting {
        let question = self.waiting.front().and_then(|dialog| {
            let id = dialog.question()?.to_owned();
            Some(Waiting::Question { id, kind: dialog.notice_kind(), message: dialog.notice() })
        });
        match question {
            Some(question) => question,
            None if self.is_empty() && !session.is_working() && session.has_turns => Waiting::Prompt,
            None => Waiting::Nothing,
        }
    }

    /// Returns what is said of the first beside the keys, or in their place: what waits behind it, when it goes on by itself,
    /// and that it takes no keys yet.
    pub(super) fn hint(&self, keys: Option<Row>, now: Duration) -> Option<Row> {
        if self.is_waiting(now) {
            return Some(line("(it takes keys as soon as the typing pauses)", faint()));
        }
        if let Some(left) = self.seconds_left(now) {
            let text = format!("It goes on by itself in {left} s · a key begins the wait anew");
            return Some(line(&text, warning()));
        }
        let n_behind = self.waiting.len().saturating_sub(1);
        keys.map(|mut keys| {
            if n_behind > 0 {
                keys.push(Span::styled(format!(" · {n_behind} more to answer after this one"), faint()));
            }
            keys
        })
    }

    /// Notes that what is shown has been drawn.
    pub(super) fn drawn(&mut self, now: Duration) {
        if !self.waiting.is_empty() && self.drawn_at.is_none() {
            self.drawn_at = Some(now);
        }
    }

    /// Tells whether keys reach the first of them.
    pub(super) fn is_armed(&self, now: Duration) -> bool {
        let is_quiet = self.last_key.is_none_or(|last| now.saturating_sub(last) >= TYPING_PAUSE);
        self.drawn_at.is_some() && is_quiet
    }

    /// Tells whether the first of them waits for a pause in the typing.
    fn is_waiting(&self, now: Duration) -> bool {
        self.last_key.is_some_and(|last| now.saturating_sub(last) < TYPING_PAUSE)
    }

    /// Returns when the first of them takes keys, or goes on by itself, if it waits for that; while that is counted down,
    /// every second.
    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        let armed = self.last_key.filter(|_| self.drawn_at.is_some()).map(|last| last + TYPING_PAUSE);
        let armed = armed.filter(|armed| *armed > now);
        let expiry = self.expiry().map(|expiry| match self.seconds_left(now) {
            Some(left) => expiry.saturating_sub(Duration::from_secs(left.saturating_sub(1))),
            None => expiry.saturating_sub(self.countdown.unwrap_or(COUNTDOWN)),
        });
        [armed, expiry].into_iter().flatten().min()
    }

    /// Returns in how many seconds the first of them goes on by itself, once that is counted down.
    pub(super) fn seconds_left(&self, now: Duration) -> Option<u64> {
        let left = self.expiry()?.saturating_sub(now);
        let is_shown = left <= self.countdown.unwrap_or(COUNTDOWN);
        is_shown.then(|| u64::try_from(left.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX))
    }

    /// Returns when the first of them goes on by itself.
    fn expiry(&self) -> Option<Duration> {
        let (patience, drawn) = (self.patience?, self.drawn_at?);
        self.waiting.front()?.expire(patience)?;
        let last = [Some(drawn), self.last_key, self.last_answer].into_iter().flatten().max()?;
        Some(last + patience)
    }

    /// Takes the first of them away when nobody has answered it for too long; returns what comes of it.
    pub(super) fn take_expired(&mut self, now: Duration) -> Option<Vec<Action>> {
        self.expiry().filter(|expiry| *expiry <= now)?;
        let step = self.waiting.pop_front()?.expire(self.patience?);
        (self.drawn_at, self.last_answer) = (None, None);
        match step? {
            DialogStep::Answered(actions) => Some(actions),
            DialogStep::Open | DialogStep::Act(_) => None,
        }
    }

    /// Hands over what was typed; none where it is not for a dialog.
    pub(super) fn handle(
        &mut self,
        event: &InputEvent,
        keymap: &mut Keymap,
        now: Duration,
    ) -> Option<DialogStep> {
        if self.waiting.is_empty() || !self.is_armed(now) {
            self.last_key = Some(now);
            return None;
        }
        let dialog = self.waiting.front_mut()?;
        let is_typing = dialog.is_typing();
        let Some(action) = keymap.action_of(dialog.contexts(), event, is_typing) else {
            return Some(DialogStep::Open);
        };
        if action.is_none() && !is_typing && is_letter(event) {
            // A letter that answers nothing begins a word: what follows is text, and a `y` in it no answer.
            self.last_key = Some(now);
            return None;
        }
        // From here on whoever types has seen it.
        (self.last_key, self.last_answer) = (None, Some(now));
        let step = dialog.handle(event, action);
        if matches!(step, DialogStep::Answered(_)) {
            self.waiting.pop_front();
            (self.drawn_at, self.last_answer) = (None, None);
            // The next one is a new question, also where it is put only now: nobody has read it yet.
            self.last_key = Some(now);
        }
        Some(step)
    }

    /// Drops the question with this id.
    pub(super) fn withdraw(&mut self, question: &str) {
        let is_first = self.waiting.front().is_some_and(|dialog| dialog.question() == Some(question));
        self.waiting.retain(|dialog| dialog.question() != Some(question));
        if is_first {
            self.drawn_at = None;
        }
    }

    /// Tells the dialog of a question what its call would change.
    pub(super) fn set_diff(&mut self, question: &str, diff: FileDiff) {
        if let Some(dialog) = self.waiting.iter_mut().find(|dialog| dialog.question() == Some(question)) {
            dialog.set_diff(diff);
        }
    }

    /// Tells the dialog of a question what the model says of its call.
    pub(super) fn explained(&mut self, question: &str, outcome: Result<String, String>) {
        if let Some(dialog) = self.waiting.iter_mut().find(|dialog| dialog.question() == Some(question)) {
            dialog.explained(outcome);
        }
    }

    /// Tells all of them what still works in the background; true where a question is over by that.
    pub(super) fn work_changed(&mut self, running: &[String]) -> bool {
        let n_before = self.waiting.len();
        let mut is_first = true;
        self.waiting.retain_mut(|dialog| {
            let is_over = dialog.work_changed(running);
            if is_over && is_first {
                self.drawn_at = None;
            }
            is_first = false;
            !is_over
        });
        self.waiting.len() < n_before
    }

    /// Hands a text that was edited to the dialog of a question; tells whether there is one.
    pub(super) fn edited(&mut self, question: &str, text: String) -> bool {
        let dialog = self.waiting.iter_mut().find(|dialog| dialog.question() == Some(question));
        dialog.map(|dialog| dialog.edited(text)).is_some()
    }

    /// Scrolls what the first of them shows.
    pub(super) fn wheel(&mut self, mouse: Mouse) {
        if let Some(dialog) = self.waiting.front_mut() {
            // The wheel answers nothing.
            drop(dialog.handle(&InputEvent::Mouse(mouse), None));
        }
    }

    /// Tells whether characters are typed into a field of the first of them.
    pub(super) fn is_typing(&self) -> bool {
        self.waiting.front().is_some_and(|dialog| dialog.is_typing())
    }

    /// Returns what whoever listens is told first of the one that is shown.
    pub(super) fn label(&self) -> &'static str {
        self.waiting.front().map_or("", |dialog| dialog.label())
    }

    /// Tells whether a question waits.
    pub(super) fn has(&self, question: &str) -> bool {
        self.waiting.iter().any(|dialog| dialog.question() == Some(question))
    }

    /// Returns what is seen of the first.
    pub(super) fn view(&self, ctx: &RenderContext) -> Option<DialogView> {
        self.waiting.front().map(|dialog| dialog.view(ctx))
    }
}

/// Tells whether a letter was typed.
fn is_letter(event: &InputEvent) -> bool {
    matches!(event, InputEvent::Key(Key { code: KeyCode::Char(c), ctrl: false, alt: false, sup: false, .. })
        if c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Effect;
    use crate::dialog::ChoiceDialog;

    fn dialogs() -> Dialogs {
        let mut dialogs = Dialogs::default();
        dialogs.push(ChoiceDialog::new(
            "?",
            Vec::new(),
            vec![("yes", vec![Action::Effect(Effect::Repaint)]), ("no", vec![])],
        ));
        dialogs
    }

    fn enter() -> InputEvent {
        InputEvent::Key(Key::plain(KeyCode::Enter))
    }

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn key_before_the_dialog_was_drawn_never_answers() {
        let mut dialogs = dialogs();
        assert_eq!(dialogs.handle(&enter(), &mut Keymap::default(), ms(1_000)), None);
        dialogs.drawn(ms(1_001));
        assert_eq!(dialogs.handle(&enter(), &mut Keymap::default(), ms(1_100)), None, "the typing goes on");
        assert_eq!(dialogs.handle(&enter(), &mut Keymap::default(), ms(1_400)), None, "and on");
        let answered = Some(DialogStep::Answered(vec![Action::Effect(Effect::Repaint)]));
        assert_eq!(dialogs.handle(&enter(), &mut Keymap::default(), ms(1_800)), answered, "after a pause");
    }

    #[test]
    fn key_after_a_drawn_dialog_answers_at_once() {
        let mut dialogs = dialogs();
        dialogs.drawn(ms(10));
        assert!(matches!(
            dialogs.handle(&enter(), &mut Keymap::default(), ms(11)),
            Some(DialogStep::Answered(_))
        ));
    }

    #[test]
    fn keys_that_move_the_mark_do_not_have_to_wait_for_each_other() {
        let mut dialogs = dialogs();
        dialogs.drawn(ms(10));
        let down = InputEvent::Key(Key::plain(KeyCode::Down));
        assert_eq!(dialogs.handle(&down, &mut Keymap::default(), ms(11)), Some(DialogStep::Open));
        assert_eq!(
            dialogs.handle(&enter(), &mut Keymap::default(), ms(12)),
            Some(DialogStep::Answered(vec![]))
        );
    }

    #[test]
    fn word_that_is_typed_while_a_question_stands_there_is_text_and_answers_nothing() {
        let mut dialogs = dialogs();
        dialogs.drawn(ms(10));
        let mut type_key =
            |code, at| dialogs.handle(&InputEvent::Key(Key::plain(code)), &mut Keymap::default(), ms(at));
        for (n, c) in "play it".chars().enumerate() {
            let at = 5_000 + 100 * u64::try_from(n).unwrap();
            assert_eq!(type_key(KeyCode::Char(c), at), None, "{c:?} is for the prompt");
        }
        assert_eq!(type_key(KeyCode::Enter, 5_700), None, "and so is what ends it");
        let answered = Some(DialogStep::Answered(vec![Action::Effect(Effect::Repaint)]));
        assert_eq!(type_key(KeyCode::Enter, 6_200), answered, "after a pause it is an answer");
    }

    #[test]
    fn question_that_waits_for_an_answer_waits_for_no_time() {
        let mut dialogs = Dialogs::default();
        assert_eq!(dialogs.handle(&enter(), &mut Keymap::default(), ms(1_000)), None);
        dialogs.push(ChoiceDialog::new("?", Vec::new(), vec![("yes", vec![]), ("no", vec![])]));
        dialogs.drawn(ms(1_100));
        assert_eq!(dialogs.deadline(ms(1_100)), Some(ms(1_400)), "until then keys are the prompt's");
        for now in [1_400, 1_401, 60_000] {
            assert_eq!(dialogs.deadline(ms(now)), None, "{now}");
        }
    }

    #[test]
    fn next_question_is_not_answered_by_the_key_of_the_last() {
        let mut dialogs = dialogs();
        dialogs.push(ChoiceDialog::new("?", Vec::new(), vec![("yes", vec![]), ("no", vec![])]));
        dialogs.drawn(ms(10));
        assert!(dialogs.handle(&enter(), &mut Keymap::default(), ms(20)).is_some());
        dialogs.drawn(ms(21));
        assert_eq!(dialogs.handle(&enter(), &mut Keymap::default(), ms(22)), None);
        assert!(dialogs.handle(&enter(), &mut Keymap::default(), ms(500)).is_some());
        // The next call is asked about once this one has run.
        dialogs.push(ChoiceDialog::new("?", Vec::new(), vec![("yes", vec![]), ("no", vec![])]));
        dialogs.drawn(ms(600));
        assert_eq!(dialogs.handle(&enter(), &mut Keymap::default(), ms(650)), None);
        assert!(dialogs.handle(&enter(), &mut Keymap::default(), ms(1_100)).is_some());
    }
}
