//! What the session is about, for somebody who comes back to it: asked for by itself once nobody has typed for a while after
//! a turn, or by `/recap`.
//!
//! It is asked for once after a turn, in sessions of three turns or more, and not while the window is looked at, something is
//! typed, or anything else waits for the person. What it says is shown and not recorded.

use std::time::Duration;

use loci_engine::{Command, SideTask};

use super::Effect;

/// How long nobody may have typed after a turn.
const AWAY: Duration = Duration::from_secs(180);
/// How many turns a session has at least that somebody may have lost the thread of.
const LEAST_TURNS: usize = 3;
/// The most letters of it.
const MOST_LETTERS: usize = 400;
/// What it is asked for by when nobody asked.
pub(super) const AUTOMATIC_RECAP: &str = "recap-away";
/// What it is asked for by when somebody did.
pub(super) const ASKED_RECAP: &str = "recap";

/// When it is time to say what the session is about.
#[derive(Debug, Default)]
pub(super) struct RecapClock {
    n_turns: usize,
    /// When nobody had to wait or typed since, and nothing was said about it.
    since: Option<Duration>,
}

impl RecapClock {
    /// Notes the end of a turn.
    pub(super) fn turn_ended(&mut self, now: Duration) {
        self.n_turns += 1;
        self.since = Some(now);
    }

    /// Notes that somebody typed.
    pub(super) fn typed(&mut self, now: Duration) {
        self.since = self.since.map(|_| now);
    }

    /// Notes that it was asked for: once after a turn is enough.
    fn asked(&mut self) {
        self.since = None;
    }

    /// Asks for it where its time has come; `deadline` is that.
    pub(super) fn ask_when_due(&mut self, deadline: Option<Duration>, now: Duration) -> Option<Effect> {
        deadline.filter(|deadline| *deadline <= now)?;
        self.asked();
        Some(ask(AUTOMATIC_RECAP))
    }

    /// Returns when it is time.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.since.filter(|_| self.n_turns >= LEAST_TURNS).map(|since| since + AWAY)
    }
}

/// Asks what the session is about.
pub(super) fn ask(request: &str) -> Effect {
    Effect::Send(Command::AskOnTheSide { request: request.to_owned(), task: SideTask::Recap })
}

/// Makes one line of a text, no longer than a recap may be; it ends with a word.
pub(super) fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = String::new();
    let mut n_letters = 0;
    for word in words {
        let n = word.chars().count() + usize::from(!line.is_empty());
        if n_letters + n + 1 > MOST_LETTERS {
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        n_letters += n;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recap_is_a_line_of_whole_words() {
        assert_eq!(shortened(" one\n two "), "one two");
        assert_eq!(shortened(""), "");
        let long = shortened(&"wörter ".repeat(100));
        assert!(long.chars().count() <= MOST_LETTERS && long.ends_with("wörter…"), "{long}");
    }

    #[test]
    fn recap_is_due_once_after_the_third_turn_when_nobody_types() {
        let s = Duration::from_secs;
        let mut clock = RecapClock::default();
        clock.typed(s(1));
        assert_eq!(clock.deadline(), None, "nothing was said");
        clock.turn_ended(s(10));
        clock.turn_ended(s(20));
        assert_eq!(clock.deadline(), None, "too little was said");
        clock.turn_ended(s(30));
        assert_eq!(clock.deadline(), Some(s(210)));
        clock.typed(s(100));
        assert_eq!(clock.deadline(), Some(s(280)));
        clock.since = None;
        clock.typed(s(400));
        assert_eq!(clock.deadline(), None, "once");
        clock.turn_ended(s(500));
        assert_eq!(clock.deadline(), Some(s(680)), "and again after a turn");
    }
}
