//! What stands below the prompt: what is said for a moment, the person's own status line, the agents at work, and how things
//! stand.

use std::time::Duration;

use serde_json::Value;

use super::{Effect, PullRequest};
use crate::status::{AgentRows, StatusLine};
use crate::text::{Row, Span};

/// How long something is said.
const FLASH_TIME: Duration = Duration::from_secs(3);

/// What stands below the prompt.
#[derive(Debug, Default)]
pub(super) struct StatusArea {
    /// The person's own status line.
    pub(super) line: StatusLine,
    /// The agents at work.
    pub(super) agents: AgentRows,
    /// The open pull request of the branch at hand.
    pull_request: Option<PullRequest>,
    /// Something that is said for a while.
    flash: Option<(String, Duration)>,
}

impl StatusArea {
    /// Says something for a while.
    pub(super) fn flash(&mut self, text: String, now: Duration) {
        self.flash = Some((text, now + FLASH_TIME));
    }

    /// Says nothing any more.
    pub(super) fn clear_flash(&mut self) {
        self.flash = None;
    }

    /// Returns what is said.
    pub(super) fn flashed(&self) -> Option<&str> {
        self.flash.as_ref().map(|(text, _)| text.as_str())
    }

    /// Forgets what was only for a while.
    pub(super) fn forget_old(&mut self, now: Duration) {
        if self.flash.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.flash = None;
        }
    }

    /// Returns when it wants to hear of the time.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let flash = self.flash.as_ref().map(|(_, until)| *until);
        [flash, self.line.deadline(), self.agents.deadline()].into_iter().flatten().min()
    }

    /// Asks for what it shows, where it is time.
    pub(super) fn tick(&mut self, now: Duration) -> impl Iterator<Item = Effect> {
        [self.line.tick(now), self.agents.tick(now)].into_iter().flatten()
    }

    /// Takes the pull request that was found.
    pub(super) fn take_pull_request(&mut self, found: Option<&Value>, now: Duration) {
        let found = found.and_then(PullRequest::from_value);
        if found != self.pull_request {
            self.pull_request = found;
            self.line.trigger(now);
        }
    }

    /// Returns its badge, where there is one.
    pub(super) fn badge(&self, template: Option<&str>, has_links: bool) -> Option<Span> {
        self.pull_request.as_ref().map(|it| it.badge(template, has_links))
    }

    /// Returns the rows of the agents at work, and the person's own.
    pub(super) fn rows(&self, width: u16) -> impl Iterator<Item = Row> + '_ {
        self.agents.rows(width).into_iter().chain(self.line.rows(width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn what_is_for_a_while_goes_by_itself() {
        let mut area = StatusArea::default();
        assert_eq!(area.deadline(), None, "nothing ticks");
        area.flash("said".to_owned(), MS(0));
        assert_eq!(area.deadline(), Some(FLASH_TIME));
        area.forget_old(MS(1));
        assert_eq!(area.flashed(), Some("said"));
        area.forget_old(FLASH_TIME);
        assert_eq!((area.flashed(), area.deadline()), (None, None));
    }

    #[test]
    fn another_pull_request_has_the_status_line_run_again() {
        let mut area = StatusArea::default();
        let found = serde_json::json!({"number": 1, "url": "https://example.com/1"});
        area.take_pull_request(Some(&found), MS(1));
        assert_eq!(area.badge(None, false).map(|badge| badge.text), Some("PR #1".to_owned()));
        area.take_pull_request(None, MS(2));
        assert_eq!(area.badge(None, false), None);
    }
}
