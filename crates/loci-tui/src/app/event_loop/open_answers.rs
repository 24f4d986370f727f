//! Answers of the terminal that are under way when somebody else gets it.
//!
//! Frames ask for the size. An answer that comes once the terminal is a shell's or an editor's would be typed there.

use std::io;
use std::time::{Duration, Instant};

use super::EventLoop;
use crate::key::InputEvent;
use crate::mailbox::Letter;

/// So long an answer is waited for: a terminal that draws before it reads on takes a frame or two.
const ANSWER_PATIENCE: Duration = Duration::from_millis(250);

impl EventLoop {
    /// Waits for the answers that are under way. Whatever else comes stays in the mailbox, in its order.
    pub(super) fn take_open_answers(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let (mut input, mut news) = (Vec::new(), Vec::new());
        let mut is_closed = false;
        while self.size_check.has_open() && !is_closed {
            match self.mailbox.take(Some(deadline.saturating_duration_since(Instant::now()))) {
                Letter::Input(InputEvent::Reply(reply)) => {
                    self.apply_terminal_reply(&reply);
                    self.terminal.accept_reply(&reply)?;
                }
                Letter::Input(event) => {
                    is_closed = event == InputEvent::Closed;
                    input.push(event);
                }
                Letter::News(it) => news.push(it),
                Letter::Nothing => break,
            }
        }
        self.size_check.clear();
        self.mailbox.put_back(input, news);
        Ok(())
    }
}
