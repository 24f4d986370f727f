//! The bounds of a call, as the environment sets them.

use std::time::Duration;

use loci_stdx::Vars;

use super::capture::CaptureLimits;
use super::run::MAX_OUTPUT_BYTES;

/// Characters of a failed command's output that go back to the model.
pub(crate) const FAILURE_CHARS: usize = 10_000;

/// Bytes of a long output that are saved.
const SAVED_BYTES: u64 = 64 * 1024 * 1024;

const DEFAULT_OUTPUT_CHARS: usize = 30_000;
const MAX_OUTPUT_CHARS: usize = 150_000;
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// How long a command of an agent may run in the background, where nothing else is said.
const AGENT_BACKGROUND_MS: u64 = 3_600_000;

/// How long a call may take and how much it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) output_chars: usize,
    /// A command that writes more bytes is stopped.
    pub(crate) max_bytes: u64,
}

impl Limits {
    /// Reads the variables and bounds the timeout that was asked for, in milliseconds.
    pub(crate) fn new(vars: &Vars, asked_ms: Option<f64>) -> Self {
        let default_ms = number(vars, "BASH_DEFAULT_TIMEOUT_MS").unwrap_or(DEFAULT_TIMEOUT_MS);
        let ceiling_ms = number(vars, "BASH_MAX_TIMEOUT_MS").unwrap_or(MAX_TIMEOUT_MS).max(default_ms);
        // The cast saturates, and NaN and what is below one millisecond fall back to the default.
        let asked_ms = asked_ms.map(|ms| ms as u64).filter(|ms| *ms > 0);
        let chars = number(vars, "BASH_MAX_OUTPUT_LENGTH").and_then(|chars| usize::try_from(chars).ok());
        Self {
            timeout: Duration::from_millis(asked_ms.unwrap_or(default_ms).min(ceiling_ms)),
            output_chars: chars.unwrap_or(DEFAULT_OUTPUT_CHARS).min(MAX_OUTPUT_CHARS),
            max_bytes: MAX_OUTPUT_BYTES,
        }
    }

    pub(crate) fn capture(&self) -> CaptureLimits {
        CaptureLimits {
            head_chars: self.output_chars.max(FAILURE_CHARS),
            tail_chars: FAILURE_CHARS / 2,
            log_bytes: self.output_chars,
            file_bytes: SAVED_BYTES,
        }
    }
}

/// Returns how long a command of an agent may run in the background (`CLAUDE_SUBAGENT_BG_SHELL_MAX_MS`).
pub(crate) fn agent_background_time(vars: &Vars) -> Duration {
    Duration::from_millis(number(vars, "CLAUDE_SUBAGENT_BG_SHELL_MAX_MS").unwrap_or(AGENT_BACKGROUND_MS))
}

/// Reads a positive whole number; anything else counts as not set.
fn number(vars: &Vars, name: &str) -> Option<u64> {
    vars.get(name)?.trim().parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_bounded() {
        for (default, max, asked, expected) in [
            ("", "", None, 120_000),
            ("", "", Some(5_000.0), 5_000),
            ("", "", Some(1e30), 600_000),
            ("", "", Some(0.0), 120_000),
            ("", "", Some(-5.0), 120_000),
            ("900000", "", None, 900_000),
            ("900000", "", Some(1e9), 900_000),
            ("1000", "2000", Some(1e9), 2_000),
            ("nonsense", "0", Some(1e9), 600_000),
        ] {
            let vars =
                Vars::default().with("BASH_DEFAULT_TIMEOUT_MS", default).with("BASH_MAX_TIMEOUT_MS", max);
            let limits = Limits::new(&vars, asked);
            assert_eq!(limits.timeout, Duration::from_millis(expected), "{default} {max} {asked:?}");
        }
    }

    #[test]
    fn output_is_bounded() {
        for (value, expected) in [("", 30_000), ("500", 500), ("999999999", 150_000), ("-1", 30_000)] {
            let vars = Vars::default().with("BASH_MAX_OUTPUT_LENGTH", value);
            assert_eq!(Limits::new(&vars, None).output_chars, expected, "{value}");
        }
    }
}
