//! Pastes into terminals that do not mark them.
//!
//! Text that is typed has a pause between any two keys; more than [`BURST_LENGTH`] of them within [`BURST_TIME`], with a
//! line end among them, were pasted, and must not submit. A line end that is followed by nothing within that time is
//! Enter: so is a line that was typed ahead while the machine was busy. Only an Enter that comes within the time of a
//! key before it is held back, until it is clear which; nothing else ever waits.
//!
//! A terminal that knows bracketed paste (it says so, or has sent one) is believed, and nothing is guessed.

use std::time::{Duration, Instant};

use crate::key::{InputEvent, Key, KeyCode, Reply};

/// Within this time keys belong together.
const BURST_TIME: Duration = Duration::from_millis(10);

/// More keys than this at a time are no typing.
const BURST_LENGTH: usize = 8;

/// Finds unmarked pastes among keys.
#[derive(Debug, Default)]
pub(super) struct BurstDetector {
    /// The terminal marks its pastes.
    has_marks: bool,
    /// Whether what runs on now is a paste.
    is_paste: bool,
    /// How many keys came, each within the time of the one before.
    n_keys: usize,
    last_key: Option<Instant>,
    /// Enter, held back, and what came with it since.
    held: Vec<InputEvent>,
}

impl BurstDetector {
    /// Takes events that came at once and returns them, with pastes for the keys that were pasted.
    pub(super) fn take(&mut self, events: Vec<InputEvent>, now: Instant) -> Vec<InputEvent> {
        if self.has_marks {
            return events;
        }
        let mut out = Vec::with_capacity(events.len());
        for event in events {
            self.take_one(event, now, &mut out);
        }
        if self.is_paste {
            self.release_paste(&mut out);
        }
        out
    }

    /// Returns when something that is held back should be released, if nothing more comes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.last_key.filter(|_| !self.held.is_empty()).map(|last| last + BURST_TIME)
    }

    /// Releases what was held back, since nothing more came.
    pub(super) fn time_out(&mut self) -> Vec<InputEvent> {
        let mut out = Vec::new();
        self.end(&mut out);
        out
    }

    fn take_one(&mut self, event: InputEvent, now: Instant, out: &mut Vec<InputEvent>) {
        let runs_on = self.last_key.is_some_and(|last| now.saturating_duration_since(last) <= BURST_TIME);
        if !runs_on {
            self.end(out);
        }
        let Some(char) = pasted_char(&event) else {
            self.end(out);
            self.has_marks |= marks_pastes(&event);
            out.push(event);
            return;
        };
        self.n_keys += 1;
        self.last_key = Some(now);
        let is_first_line_end = char == '\n' && self.n_keys > 1;
        if self.held.is_empty() && !self.is_paste && !is_first_line_end {
            out.push(event);
            return;
        }
        self.is_paste |= !self.held.is_empty() && self.n_keys > BURST_LENGTH;
        self.held.push(event);
    }

    /// A run is over: what is held back is keys, or the end of a paste.
    fn end(&mut self, out: &mut Vec<InputEvent>) {
        if self.is_paste {
            self.release_paste(out);
        }
        out.append(&mut self.held);
        self.is_paste = false;
        self.n_keys = 0;
    }

    fn release_paste(&mut self, out: &mut Vec<InputEvent>) {
        if !self.held.is_empty() {
            out.push(InputEvent::Paste(
                self.held.drain(..).filter_map(|event| pasted_char(&event)).collect(),
            ));
        }
    }
}

/// The character that a pasted key stands for; none for keys that no paste contains.
fn pasted_char(event: &InputEvent) -> Option<char> {
    let InputEvent::Key(key) = event else { return None };
    match *key {
        Key { code: KeyCode::Char('j'), ctrl: true, alt: false, shift: false, sup: false } => Some('\n'),
        Key { ctrl: true, .. } | Key { alt: true, .. } | Key { sup: true, .. } | Key { shift: true, .. } => {
            None
        }
        Key { code: KeyCode::Enter, .. } => Some('\n'),
        Key { code: KeyCode::Tab, .. } => Some('\t'),
        Key { code: KeyCode::Char(char), .. } => Some(char),
        _ => None,
    }
}

fn marks_pastes(event: &InputEvent) -> bool {
    match event {
        InputEvent::Paste(_) => true,
        InputEvent::Reply(Reply::Mode { mode: 2004, state }) => *state != 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Parser;

    /// Feeds pieces of text with pauses in milliseconds before each, and says what comes out, when all time is over.
    fn check(pieces: &[(u64, &str)], expected: &str) {
        let mut parser = Parser::new(Duration::from_millis(25));
        let mut burst = BurstDetector::default();
        let mut now = Instant::now();
        let mut told = Vec::new();
        for (pause, text) in pieces {
            now += Duration::from_millis(*pause);
            if burst.deadline().is_some_and(|deadline| deadline < now) {
                told.extend(burst.time_out());
            }
            told.extend(burst.take(parser.feed(text.as_bytes()), now));
        }
        told.extend(burst.time_out());
        let told: String = told.iter().map(show).collect();
        assert_eq!(told, expected, "{pieces:?}");
    }

    fn show(event: &InputEvent) -> String {
        match event {
            InputEvent::Key(Key { code: KeyCode::Char('j'), ctrl: true, .. }) => "<C-j>".to_owned(),
            InputEvent::Key(Key { code: KeyCode::Char(char), .. }) => char.to_string(),
            InputEvent::Key(Key { code: KeyCode::Enter, .. }) => "<enter>".to_owned(),
            InputEvent::Paste(text) => format!("<paste {text:?}>"),
            _ => "<other>".to_owned(),
        }
    }

    #[test]
    fn line_ends_in_a_burst_do_not_submit() {
        check(&[(0, "first line\rsecond\r")], "first line<paste \"\\nsecond\\n\">");
        check(&[(0, "a\rb\rc\rd\re\r")], "a<paste \"\\nb\\nc\\nd\\ne\\n\">");
    }

    #[test]
    fn burst_may_lie_across_reads() {
        check(
            &[(0, "first line\r"), (3, "second"), (3, " half\r"), (2, "x")],
            "first line<paste \"\\nsecond\"><paste \" half\\n\"><paste \"x\">",
        );
    }

    #[test]
    fn typed_lines_submit() {
        check(&[(0, "l"), (60, "s"), (60, "\r")], "ls<enter>");
        // Typed ahead while the machine was busy: one read, one line.
        check(&[(0, "fix the bug please\r"), (50, "y")], "fix the bug please<enter>y");
        check(&[(0, "ls\r"), (1, "x")], "ls<enter>x");
    }

    #[test]
    fn held_newline_key_stays_what_it_was() {
        check(&[(0, "a\n")], "a<C-j>");
    }

    #[test]
    fn terminal_that_marks_pastes_is_believed() {
        check(
            &[(0, "\x1b[?2004;1$y"), (5, "one line\rand another\r")],
            "<other>one line<enter>and another<enter>",
        );
        check(
            &[(0, "\x1b[200~x\x1b[201~"), (5, "one line\rmore text\r")],
            "<paste \"x\">one line<enter>more text<enter>",
        );
    }

    #[test]
    fn other_keys_end_a_burst() {
        check(&[(0, "abcdefghij\r\x1b[A")], "abcdefghij<enter><other>");
    }
}
