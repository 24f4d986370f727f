//! The person's own status line: when its command is run, and the rows of what it printed.
//!
//! It runs when the session begins and whenever something happens that it may show; what happens within a moment counts
//! as one. First the session is asked how it stands, then the command runs beside the thread that draws
//! (`loci_app::interface::status_line`). What it printed stays until it prints something else.

use std::sync::Arc;
use std::time::Duration;

use loci_app::interface::status_line::StatusLineConfig;
use loci_engine::{Command, SessionSnapshot};

use crate::app::Effect;
use crate::layout::cut;
use crate::text::{Row, Span, parse_status};

/// What the question to the session is called by.
pub(crate) const STATUS_REQUEST: &str = "status-line";
/// How long things may follow each other before the command runs.
const DEBOUNCE: Duration = Duration::from_millis(300);
/// The most lines that are shown.
const MOST_ROWS: usize = 8;

/// The status line.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    config: Option<StatusLineConfig>,
    /// When the command is to run.
    due: Option<Duration>,
    /// When it runs again, if nothing happens.
    refresh_at: Option<Duration>,
    rows: Vec<Row>,
    /// Whether its failure was told.
    has_complained: bool,
    /// The size of the window, once it has changed.
    size: Option<(u16, u16)>,
}

impl StatusLine {
    /// Takes what settings say, and runs the command at once; without one nothing is shown any more.
    pub(crate) fn configure(&mut self, config: Option<StatusLineConfig>, now: Duration) {
        self.set_config(config);
        self.due = self.config.as_ref().map(|_| now);
    }

    /// What another command printed is not what this one says, and its failure is news.
    fn set_config(&mut self, config: Option<StatusLineConfig>) {
        let command = |config: &Option<StatusLineConfig>| config.as_ref().map(|it| it.command.clone());
        if command(&config) != command(&self.config) {
            self.rows.clear();
            self.has_complained = false;
        }
        if config.is_none() {
            (self.due, self.refresh_at) = (None, None);
        }
        self.config = config;
    }

    /// Something happened that it may show.
    pub(crate) fn trigger(&mut self, now: Duration) {
        self.due = self.config.as_ref().map(|_| now + DEBOUNCE);
    }

    /// The window has a size, which the command is told: what it printed was made for another.
    pub(crate) fn resized(&mut self, size: (u16, u16), now: Duration) {
        if self.size.replace(size) != Some(size) {
            self.trigger(now);
        }
    }

    /// Returns when it wants to hear of the time.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        [self.due, self.refresh_at].into_iter().flatten().min()
    }

    /// Asks the session how it stands, when it is time.
    pub(crate) fn tick(&mut self, now: Duration) -> Option<Effect> {
        let is_time = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if !is_time(self.due) && !is_time(self.refresh_at) {
            return None;
        }
        self.due = None;
        self.refresh_at = self.config.as_ref().and_then(|config| config.refresh).map(|time| now + time);
        Some(Effect::Send(Command::Snapshot { request: STATUS_REQUEST.to_owned() }))
    }

    /// Runs the command, as settings have it by now.
    pub(crate) fn run(&mut self, snapshot: Arc<SessionSnapshot>) -> Option<Effect> {
        self.set_config(StatusLineConfig::from_settings(&snapshot.settings));
        let command = self.config.as_ref()?.command.clone();
        Some(Effect::RunStatusLine { command, snapshot })
    }

    /// Takes what it printed; returns what is wrong, once.
    pub(crate) fn printed(&mut self, said: Result<String, String>) -> Option<String> {
        match said {
            Ok(text) => {
                let padding = self.config.as_ref().map_or(0, |config| usize::from(config.padding));
                let margin = Span::plain(" ".repeat(2 + padding));
                let lines = parse_status(&text).into_iter().take(MOST_ROWS);
                self.rows = lines.map(|line| Row::new([vec![margin.clone()], line].concat())).collect();
                None
            }
            Err(why) => (!std::mem::replace(&mut self.has_complained, true)).then_some(why),
        }
    }

    /// Tells whether it shows the mode of vim's keys itself.
    pub(crate) fn hides_vim_mode(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.hides_vim_mode)
    }

    /// Returns its rows.
    pub(crate) fn rows(&self, width: u16) -> impl Iterator<Item = Row> + '_ {
        self.rows.iter().map(move |row| cut(row, width))
    }
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use serde_json::json;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn config(refresh: Option<Duration>) -> Option<StatusLineConfig> {
        Some(StatusLineConfig { command: "x".into(), padding: 1, refresh, hides_vim_mode: false })
    }

    #[test]
    fn command_runs_at_once_and_then_after_things_have_settled() {
        let mut line = StatusLine::default();
        line.trigger(MS(0));
        assert_eq!(line.deadline(), None, "without a command nothing is waited for");
        line.configure(config(None), MS(10));
        assert!(line.tick(MS(10)).is_some() && line.tick(MS(11)).is_none());
        line.trigger(MS(100));
        line.trigger(MS(300));
        assert!(line.tick(MS(400)).is_none() && line.deadline() == Some(MS(600)));
        assert!(line.tick(MS(600)).is_some());
        assert_eq!(line.deadline(), None);
        line.configure(config(Some(MS(1_000))), MS(1_000));
        assert!(line.tick(MS(1_000)).is_some());
        assert!(line.tick(MS(1_999)).is_none() && line.tick(MS(2_000)).is_some());
    }

    #[test]
    fn command_runs_again_for_another_window_and_once_for_each() {
        let mut line = StatusLine::default();
        line.configure(config(None), MS(0));
        assert!(line.tick(MS(0)).is_some());
        for (size, at, expected) in [
            ((80, 24), 100, Some(MS(400))),
            ((80, 24), 500, None),
            ((100, 24), 1_000, Some(MS(1_300))),
            ((100, 30), 2_000, Some(MS(2_300))),
        ] {
            line.resized(size, MS(at));
            assert_eq!(line.deadline(), expected, "{size:?} at {at}");
            line.tick(MS(at + 300));
        }
    }

    #[test]
    fn status_line_output_stays_and_goes_with_the_setting() {
        let mut line = StatusLine::default();
        line.configure(config(None), MS(0));
        assert_eq!(line.printed(Ok("one\n\x1b[31mtwo\x1b[0m\n".to_owned())), None);
        let texts: Vec<String> = line.rows(40).map(|row| row.text()).collect();
        assert_eq!(texts, ["   one", "   two"]);
        assert!(
            line.printed(Err("slow".to_owned())).is_some() && line.printed(Err("slow".to_owned())).is_none()
        );
        assert_eq!(line.rows(40).count(), 2, "a failure takes nothing away");
        let mut snapshot = SessionSnapshot::empty(
            SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
            "claude-sonnet-4-5",
        );
        snapshot.settings = json!({"statusLine": {"type": "command", "command": "y"}});
        let action = line.run(Arc::new(snapshot.clone()));
        assert!(matches!(action, Some(Effect::RunStatusLine { command, .. }) if command.line == "y"));
        assert_eq!(line.rows(40).count(), 0, "another command printed it");
        assert!(line.printed(Err("gone".to_owned())).is_some(), "the failure of another command is news");
        line.printed(Ok("three".to_owned()));
        line.run(Arc::new(snapshot.clone()));
        assert_eq!(line.rows(40).count(), 1, "the same command");
        snapshot.settings = json!({});
        assert!(line.run(Arc::new(snapshot)).is_none() && line.rows(40).count() == 0);
    }
}
