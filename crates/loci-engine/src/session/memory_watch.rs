//! Commands in the background that nobody has looked at for long make room when the machine runs out of memory.
//!
//! A session that has been idle for half an hour, with no agent at work, asks the system once a minute whether processes
//! wait for memory; only where commands of its own run in the background. They are stopped then, and told to have ended for
//! that.

use std::path::PathBuf;
use std::time::Duration;

use loci_stdx::{Env, read_regular_to_string};
use loci_tools::{BackgroundStatus, BackgroundTask, Host};
use tokio::time::Instant;

use super::Session;
use crate::event::EngineEvent;

/// The variable that turns it off.
const OFF: &str = "CLAUDE_CODE_DISABLE_BG_SHELL_PRESSURE_REAP";
/// Where Linux says how much processes wait for memory.
const PRESSURE: &str = "/proc/pressure/memory";
/// The share of ten seconds, in percent, in which everything waited for memory: the machine does little else.
const SHORTAGE: f64 = 10.0;
const REASON: &str = "the machine is short of memory, and the session was idle \
                      (CLAUDE_CODE_DISABLE_BG_SHELL_PRESSURE_REAP=1 keeps such commands)";

/// When commands in the background make room for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryWatch {
    /// How long the session is idle before.
    pub patience: Duration,
    /// How often the system is asked.
    pub interval: Duration,
    /// The file in which it says how much processes wait for memory.
    pub file: PathBuf,
}

impl MemoryWatch {
    /// Returns the usual one; none where the user turned it off. Systems without the file never run short.
    pub fn from_env(env: &Env) -> Option<Self> {
        let is_off = env.vars.is_truthy(OFF);
        (!is_off).then(|| Self {
            patience: Duration::from_secs(30 * 60),
            interval: Duration::from_secs(60),
            file: PathBuf::from(PRESSURE),
        })
    }

    fn is_short(&self) -> bool {
        // The file is the kernel's, and has a line or two.
        read_regular_to_string(&self.file).is_ok_and(|text| is_short(&text))
    }
}

/// Waits until a session has been idle for long and memory is short; for ever, where nobody watches.
pub(super) async fn memory_short(watch: Option<&MemoryWatch>, idle_since: Instant) {
    let Some(watch) = watch else { return std::future::pending().await };
    tokio::time::sleep_until(idle_since + watch.patience).await;
    while !watch.is_short() {
        tokio::time::sleep(watch.interval).await;
    }
}

impl Session {
    /// Returns the watch on memory while there is something to make room with: commands in the background, and no agent that
    /// is at work.
    pub(super) fn watch_on_memory(&self) -> Option<MemoryWatch> {
        let tasks = self.conversation.scope.host.tasks();
        let is_at_work =
            |task: &BackgroundTask| task.agent_type().is_some() && task.status == BackgroundStatus::Running;
        let has_agents = || tasks.list().iter().any(is_at_work);
        self.memory_watch.clone().filter(|_| tasks.has_own_commands() && !has_agents())
    }

    /// Stops the commands that go on beside the conversation.
    pub(super) fn make_room(&self) {
        let stopped = self.conversation.scope.host.tasks().stop_commands(REASON);
        let names: Vec<&str> = stopped.iter().map(|task| task.label()).collect();
        if !names.is_empty() {
            let text = format!("Stopped in the background: {}; {REASON}", names.join(", "));
            self.conversation.scope.tell(EngineEvent::Warning(text));
        }
    }
}

/// Reads the share of time in which everything waited: `full avg10=12.34 avg60=… total=…`.
fn is_short(pressure: &str) -> bool {
    let full = pressure.lines().find_map(|line| line.strip_prefix("full "));
    let share = full.and_then(|full| full.split(' ').find_map(|field| field.strip_prefix("avg10=")));
    share.and_then(|share| share.parse::<f64>().ok()).is_some_and(|share| share >= SHORTAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_when_everything_waits_for_it() {
        for (pressure, expected) in [
            (
                "some avg10=90.00 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=80.00 avg300=0.00 total=1\n",
                false,
            ),
            (
                "some avg10=90.00 avg60=1.00 avg300=0.00 total=1\nfull avg10=10.00 avg60=0.00 avg300=0.00 total=1\n",
                true,
            ),
            ("some avg10=90.00 avg60=1.00 avg300=0.00 total=1\n", false),
            ("full avg10=much\n", false),
            ("", false),
        ] {
            assert_eq!(is_short(pressure), expected, "{pressure}");
        }
    }

    #[test]
    fn variable_turns_the_watch_off() {
        for (value, expected) in [("", true), ("0", true), ("1", false)] {
            let mut env = Env::for_test("/home", "/work");
            env.vars = env.vars.with(OFF, value);
            assert_eq!(MemoryWatch::from_env(&env).is_some(), expected, "{value}");
        }
    }
}
