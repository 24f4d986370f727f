//! The pace of a screen reader: silence after the first line, and a moment with the cursor at the beginning of the line
//! before something new is written, so that it is read from its first letter.

use std::time::{Duration, Instant};

use loci_stdx::Vars;

/// How long the prompt waits after the first line, unless a variable says otherwise.
const STARTUP_QUIET: Duration = Duration::from_secs(3);
/// How long the cursor stands at the beginning of the line.
const PREPARK: Duration = Duration::from_millis(50);
/// No wait is longer.
const MOST: u64 = 60_000;

/// When something may be written for a screen reader.
#[derive(Debug, Default)]
pub(super) struct ReaderPace {
    quiet_until: Option<Instant>,
    prepark: Duration,
}

impl ReaderPace {
    /// Begins at a time, as the variables say.
    pub(super) fn new(vars: &Vars, now: Instant) -> Self {
        let wait = |name: &str, otherwise: Duration| {
            let said = vars.non_empty(name).and_then(|text| text.trim().parse::<u64>().ok());
            said.map_or(otherwise, |millis| Duration::from_millis(millis.min(MOST)))
        };
        let quiet = wait("CLAUDE_AX_STARTUP_QUIET_MS", STARTUP_QUIET);
        Self {
            quiet_until: Some(now + quiet).filter(|_| !quiet.is_zero()),
            prepark: wait("CLAUDE_AX_PREPARK_MS", PREPARK),
        }
    }

    /// Tells whether the prompt is not shown yet.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet_until.is_some()
    }

    /// Returns how long it is still quiet.
    pub(super) fn patience(&self, now: Instant) -> Option<Duration> {
        self.quiet_until.map(|until| until.saturating_duration_since(now))
    }

    /// Ends the silence once its time is over; tells whether it was.
    pub(super) fn end_when_due(&mut self, now: Instant) -> bool {
        self.quiet_until.take_if(|until| *until <= now).is_some()
    }

    /// Ends the silence, since a key was pressed.
    pub(super) fn end_quiet(&mut self) {
        self.quiet_until = None;
    }

    /// Returns how long the cursor stands at the beginning of the line before this is written: lines that are new take it
    /// from there; letters that are typed go where the cursor is, which must not move.
    pub(super) fn prepark_before(&self, bytes: &[u8]) -> Option<Duration> {
        let has_line = bytes.contains(&b'\n');
        Some(self.prepark).filter(|prepark| has_line && !prepark.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_ends_with_its_time_or_a_key() {
        let now = Instant::now();
        let mut pace = ReaderPace::new(&Vars::default(), now);
        assert_eq!((pace.patience(now), pace.prepark), (Some(STARTUP_QUIET), PREPARK));
        assert!(!pace.end_when_due(now + Duration::from_secs(2)) && pace.is_quiet());
        assert!(pace.end_when_due(now + Duration::from_secs(3)) && !pace.is_quiet());
        let mut pace = ReaderPace::new(&Vars::default(), now);
        pace.end_quiet();
        assert!(!pace.is_quiet() && pace.patience(now).is_none());
    }

    #[test]
    fn variables_say_how_long() {
        let now = Instant::now();
        let vars = Vars::default().with("CLAUDE_AX_STARTUP_QUIET_MS", "0").with("CLAUDE_AX_PREPARK_MS", "7");
        let pace = ReaderPace::new(&vars, now);
        assert!(!pace.is_quiet());
        assert_eq!(pace.prepark, Duration::from_millis(7));
        let odd = Vars::default().with("CLAUDE_AX_PREPARK_MS", "soon");
        assert_eq!(ReaderPace::new(&odd, now).prepark, PREPARK);
    }

    #[test]
    fn cursor_stays_where_letters_are_typed() {
        let pace = ReaderPace::new(&Vars::default(), Instant::now());
        for (bytes, expected) in [
            (&b"claude: hello\r\n> dra"[..], Some(PREPARK)),
            (b"\r     \rone\r\n", Some(PREPARK)),
            (b"xyz", None),
            (b"\x08\x08  \x08\x08", None),
            (b"", None),
        ] {
            assert_eq!(pace.prepark_before(bytes), expected, "{bytes:?}");
        }
        assert_eq!(ReaderPace::default().prepark_before(b"a\r\n"), None, "nobody listens");
    }
}
