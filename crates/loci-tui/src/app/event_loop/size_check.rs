//! Whether the terminal has the size that frames are made for.
//!
//! The word of a change comes after the change, in tmux up to a quarter of a second: it tells of one at a time and waits with the
//! next. So a multiplexer that says its size when asked is asked behind every frame, and after each word of a change; others tell
//! at once, and an answer a frame would be work for nothing. Nothing is written from the first answer that does not fit until
//! the window is what the system says it is.
//!
//! Answers come in the order of the questions. One of a cursor that comes when another change has asked meanwhile is of a window
//! that is gone, and would have the live region looked for in the wrong rows: only the last one counts. One that never
//! comes costs the patience with it, nothing else.

use std::collections::VecDeque;
use std::time::Duration;

use crate::screen::Size;

/// How long the frame after a resize waits for the terminal to say where the cursor went.
const CURSOR_PATIENCE: Duration = Duration::from_millis(50);
/// The same where the terminal says its size: tmux tells of a change a quarter of a second late.
const SIZE_PATIENCE: Duration = Duration::from_millis(400);
/// So many answers that say another size than the system, with no word of a change: they mean something else.
const MOST_DOUBTS: u32 = 3;

/// What an answer about the size is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeAnswer {
    /// The terminal says its size: it can be asked.
    Offered,
    /// It is the size of the terminal behind a frame.
    Frame(Size),
    /// It is the size after the word of a change.
    Window,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Frame,
    Window,
}

/// The questions that are open, and what answers said.
#[derive(Debug, Default)]
pub(super) struct SizeCheck {
    /// Whether the terminal says its size when asked.
    answers: bool,
    /// Columns come before rows: tmux before 3.4.
    is_swapped: bool,
    open: VecDeque<Question>,
    n_cursor_questions: u32,
    /// The last answer is the size that the system says.
    is_settled: bool,
    n_doubts: u32,
}

impl SizeCheck {
    /// Returns what is written behind a frame.
    pub(super) fn ask_behind_frame(&mut self) -> &'static [u8] {
        if !self.answers {
            return b"";
        }
        self.open.push_back(Question::Frame);
        b"\x1b[18t"
    }

    /// Returns what is written after the word of a change.
    pub(super) fn ask_for_window(&mut self) -> &'static [u8] {
        self.n_cursor_questions += 1;
        self.is_settled = !self.answers;
        if !self.answers {
            return b"\x1b[6n";
        }
        self.open.push_back(Question::Window);
        b"\x1b[18t\x1b[6n"
    }

    /// Takes an answer about the size, when the system says that it is `size`.
    pub(super) fn take_size(&mut self, first: u16, second: u16, size: Size) -> SizeAnswer {
        let (standard, swapped) =
            (Size { width: second, height: first }, Size { width: first, height: second });
        if standard != size && swapped == size {
            self.is_swapped = true;
        } else if standard == size && swapped != size {
            self.is_swapped = false;
        }
        let said = if self.is_swapped { swapped } else { standard };
        match self.open.pop_front() {
            None => {
                self.answers = self.n_doubts < MOST_DOUBTS;
                SizeAnswer::Offered
            }
            Some(Question::Frame) => {
                self.is_settled &= said == size;
                SizeAnswer::Frame(said)
            }
            Some(Question::Window) => {
                self.is_settled = said == size;
                SizeAnswer::Window
            }
        }
    }

    /// Takes an answer about the cursor; tells whether it is of the window as it is now.
    pub(super) fn take_cursor(&mut self) -> bool {
        self.n_cursor_questions = self.n_cursor_questions.saturating_sub(1);
        let is_last = self.n_cursor_questions == 0;
        if is_last {
            self.open.clear();
        }
        let is_settled = is_last && self.is_settled;
        if is_settled {
            self.n_doubts = 0;
        }
        is_settled
    }

    /// Notes that the time was over before the terminal said what the system says; tells whether it is still asked.
    pub(super) fn give_up(&mut self) -> bool {
        if !self.is_settled {
            self.n_doubts += 1;
            self.answers &= self.n_doubts < MOST_DOUBTS;
        }
        self.answers
    }

    /// Forgets what is open: somebody else had the terminal.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.n_cursor_questions = 0;
    }

    /// Tells whether answers are under way.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty() || self.answers && self.n_cursor_questions > 0
    }

    /// Tells whether frames are answered for.
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// Returns how long the frame after a change waits.
    pub(super) fn patience(&self) -> Duration {
        if self.answers { SIZE_PATIENCE } else { CURSOR_PATIENCE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Size = Size { width: 90, height: 30 };
    const NEW: Size = Size { width: 60, height: 20 };

    fn answering() -> SizeCheck {
        let mut check = SizeCheck::default();
        assert_eq!(check.take_size(30, 90, OLD), SizeAnswer::Offered);
        check
    }

    #[test]
    fn terminal_that_does_not_say_its_size_is_asked_for_the_cursor_alone() {
        let mut check = SizeCheck::default();
        assert_eq!(check.ask_behind_frame(), b"");
        assert_eq!(check.ask_for_window(), b"\x1b[6n");
        assert_eq!(check.ask_for_window(), b"\x1b[6n");
        assert!(!check.take_cursor(), "it is of the window before the last change");
        assert!(check.take_cursor());
        assert_eq!(check.patience(), CURSOR_PATIENCE);
    }

    #[test]
    fn answers_belong_to_the_questions_in_their_order() {
        let mut check = answering();
        assert_eq!(check.ask_behind_frame(), b"\x1b[18t");
        assert_eq!(check.ask_behind_frame(), b"\x1b[18t");
        assert_eq!(check.ask_for_window(), b"\x1b[18t\x1b[6n");
        assert_eq!(check.take_size(30, 90, NEW), SizeAnswer::Frame(OLD));
        assert_eq!(check.take_size(20, 60, NEW), SizeAnswer::Frame(NEW));
        assert_eq!(check.take_size(20, 60, NEW), SizeAnswer::Window);
        assert!(check.has_open(), "a shell would be typed the answer about the cursor");
        assert!(check.take_cursor());
        assert!(!check.has_open());
    }

    #[test]
    fn nothing_is_settled_as_long_as_the_system_says_another_size() {
        let mut check = answering();
        check.ask_for_window();
        check.take_size(20, 60, OLD);
        assert!(!check.take_cursor(), "the next change is not told yet");
        check.ask_for_window();
        check.take_size(20, 60, NEW);
        assert!(check.take_cursor());
    }

    #[test]
    fn columns_before_rows_are_understood() {
        let mut check = SizeCheck::default();
        assert_eq!(check.take_size(90, 30, OLD), SizeAnswer::Offered);
        check.ask_behind_frame();
        assert_eq!(check.take_size(60, 20, OLD), SizeAnswer::Frame(NEW));
    }

    #[test]
    fn terminal_whose_size_is_never_that_of_the_system_is_not_asked_for_ever() {
        let mut check = answering();
        for n in 1..=MOST_DOUBTS {
            check.ask_for_window();
            check.take_size(7, 7, OLD);
            check.take_cursor();
            assert_eq!(check.give_up(), n < MOST_DOUBTS, "{n}");
        }
    }
}
