//! Hooks are told when something waits for a person who seems to be away: a question, or the prompt after an answer.
//!
//! Whoever types is there, so the time counts from the last key. What waits is told of once.

use std::time::Duration;

use loci_engine::Command;

/// How long nobody may have typed before hooks hear of a question that waits.
const QUESTION_PATIENCE: Duration = Duration::from_secs(6);
/// The same for a prompt that waits after an answer.
const PROMPT_PATIENCE: Duration = Duration::from_secs(60);

/// What waits for the person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nothing, or nothing that was ever spoken of.
    #[default]
    Nothing,
    /// A question of the session.
    Question {
        /// Which.
        id: String,
        /// The kind of notification that it is.
        kind: &'static str,
        /// What is said of it.
        message: String,
    },
    /// The prompt, since a turn is over.
    Prompt,
}

/// What waits, and since when nobody has typed.
#[derive(Debug)]
pub(super) struct AwayClock {
    waiting: Waiting,
    since: Duration,
    is_told: bool,
    prompt_patience: Duration,
}

impl Default for AwayClock {
    fn default() -> Self {
        Self {
            waiting: Waiting::Nothing,
            since: Duration::ZERO,
            is_told: false,
            prompt_patience: PROMPT_PATIENCE,
        }
    }
}

impl AwayClock {
    /// Takes another time that the prompt may wait.
    pub(super) fn set_prompt_patience(&mut self, patience: Duration) {
        self.prompt_patience = patience;
    }

    /// Notes that somebody typed.
    pub(super) fn typed(&mut self, now: Duration) {
        self.since = now;
    }

    /// Returns when hooks are to be told.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let patience = match self.waiting {
            _ if self.is_told => return None,
            Waiting::Nothing => return None,
            Waiting::Question { .. } => QUESTION_PATIENCE,
            Waiting::Prompt => self.prompt_patience,
        };
        self.since.checked_add(patience)
    }

    /// Notes what waits now; returns what hooks are to be told, once it is time.
    pub(super) fn step(&mut self, waiting: Waiting, now: Duration) -> Option<Command> {
        if waiting != self.waiting {
            (self.waiting, self.since, self.is_told) = (waiting, now, false);
        }
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        self.is_told = true;
        let (kind, message) = match &self.waiting {
            Waiting::Nothing => return None,
            Waiting::Question { kind, message, .. } => (*kind, message.clone()),
            Waiting::Prompt => ("idle_prompt", "loci is waiting for your input".to_owned()),
        };
        Some(Command::Notify { kind: kind.to_owned(), message, title: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn question(id: &str) -> Waiting {
        Waiting::Question { id: id.to_owned(), kind: "permission_prompt", message: id.to_owned() }
    }

    fn kind(command: Option<Command>) -> Option<String> {
        match command? {
            Command::Notify { kind, message, .. } => Some(format!("{kind}: {message}")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn question_is_told_once_when_nobody_typed_for_a_while() {
        let mut away = AwayClock::default();
        assert_eq!(kind(away.step(question("a"), s(10))), None);
        assert_eq!(away.deadline(), Some(s(16)));
        away.typed(s(14));
        assert_eq!(kind(away.step(question("a"), s(16))), None, "somebody is there");
        assert_eq!(kind(away.step(question("a"), s(20))), Some("permission_prompt: a".to_owned()));
        assert_eq!((kind(away.step(question("a"), s(99))), away.deadline()), (None, None), "once");
        assert_eq!(kind(away.step(question("b"), s(99))), None, "another begins anew");
        assert_eq!(kind(away.step(question("b"), s(105))), Some("permission_prompt: b".to_owned()));
    }

    #[test]
    fn prompt_is_told_after_a_minute_and_nothing_is_never_told() {
        let mut away = AwayClock::default();
        assert_eq!((kind(away.step(Waiting::Nothing, s(500))), away.deadline()), (None, None));
        assert_eq!(kind(away.step(Waiting::Prompt, s(500))), None);
        assert_eq!(kind(away.step(Waiting::Prompt, s(559))), None);
        let told = Some("idle_prompt: loci is waiting for your input".to_owned());
        assert_eq!(kind(away.step(Waiting::Prompt, s(560))), told);
        assert_eq!(kind(away.step(Waiting::Nothing, s(561))), None, "a turn");
        assert_eq!(kind(away.step(Waiting::Prompt, s(570))), None);
        assert_eq!(kind(away.step(Waiting::Prompt, s(630))), told, "after each turn");
    }
}
