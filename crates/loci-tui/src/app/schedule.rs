//! What comes by itself: hooks are told of what waits for somebody who is away, people are called, and somebody who comes back
//! is told what the session is about.

use std::time::Duration;

use loci_engine::Command;

use super::Effect;
use super::away::{AwayClock, Waiting};
use super::recap::RecapClock;

/// The clocks of what comes by itself.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Whether somebody is there to answer.
    away: AwayClock,
    /// Whether it is time to say what the session is about.
    recap: RecapClock,
    /// Whether the window has the focus, once the terminal has told.
    focus: Option<bool>,
}

impl Schedule {
    /// Takes how long the prompt may wait before hooks hear of it.
    pub(super) fn set_prompt_patience(&mut self, patience: Duration) {
        self.away.set_prompt_patience(patience);
    }

    /// Notes that somebody typed.
    pub(super) fn typed(&mut self, now: Duration) {
        self.away.typed(now);
        self.recap.typed(now);
    }

    /// Notes whether the window has the focus.
    pub(super) fn focused(&mut self, is_focused: bool) {
        self.focus = Some(is_focused);
    }

    /// Notes the end of a turn in which something was said.
    pub(super) fn turn_ended(&mut self, now: Duration) {
        self.recap.turn_ended(now);
    }

    /// Another session runs now, of which nothing is to be told yet.
    pub(super) fn renewed(&mut self) {
        self.recap = RecapClock::default();
    }

    /// Notes what waits for the person now; returns what hooks are to be told, and who calls the person unless the window is
    /// looked at.
    pub(super) fn step(&mut self, waiting: Waiting, now: Duration) -> Vec<Effect> {
        let Some(notice) = self.away.step(waiting, now) else { return Vec::new() };
        let call = match &notice {
            Command::Notify { message, .. } if self.focus != Some(true) => {
                Some(Effect::CallPerson(message.clone()))
            }
            _ => None,
        };
        call.into_iter().chain([Effect::Send(notice)]).collect()
    }

    /// Asks what the session is about, once it is time; `is_quiet` says that nothing else concerns the person.
    pub(super) fn ask_recap(&mut self, is_quiet: bool, now: Duration) -> Option<Effect> {
        let deadline = self.recap_deadline(is_quiet);
        self.recap.ask_when_due(deadline, now)
    }

    /// Returns when it wants to hear of the time.
    pub(super) fn deadline(&self, is_quiet: bool) -> Option<Duration> {
        [self.away.deadline(), self.recap_deadline(is_quiet)].into_iter().flatten().min()
    }

    fn recap_deadline(&self, is_quiet: bool) -> Option<Duration> {
        self.recap.deadline().filter(|_| is_quiet && self.focus != Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn person_is_called_once_and_not_while_the_window_is_looked_at() {
        for (focus, n_effects) in [(None, 2), (Some(false), 2), (Some(true), 1)] {
            let mut schedule = Schedule::default();
            focus.into_iter().for_each(|focus| schedule.focused(focus));
            schedule.typed(S(1));
            assert!(schedule.step(Waiting::Prompt, S(1)).is_empty());
            assert_eq!(schedule.deadline(true), Some(S(61)));
            assert_eq!(schedule.step(Waiting::Prompt, S(61)).len(), n_effects, "{focus:?}");
            assert!(schedule.step(Waiting::Prompt, S(90)).is_empty(), "once");
        }
    }

    #[test]
    fn recap_waits_for_quiet_and_belongs_to_one_session() {
        let mut schedule = Schedule::default();
        (0..3).for_each(|_| schedule.turn_ended(S(1)));
        assert_eq!(schedule.ask_recap(false, S(300)), None);
        assert!(schedule.ask_recap(true, S(300)).is_some() && schedule.ask_recap(true, S(900)).is_none());
        (0..3).for_each(|_| schedule.turn_ended(S(1_000)));
        schedule.renewed();
        assert_eq!(schedule.ask_recap(true, S(5_000)), None);
    }
}
