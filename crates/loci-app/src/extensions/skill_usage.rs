//! How often skills are used, written to the global state file beside the conversation.
//!
//! The first use is written at once, by a thread that nobody waits for; what comes within the next minute is written
//! together, for each write of that file keeps the version before. The end of a session writes what is left. What cannot be
//! written is given up: a figure is missing then, and nothing else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::skill::{SkillUsage, SkillUsageTable};
use loci_engine::SkillUsageLog;
use loci_stdx::Clock;
use loci_storage::config::add_skill_usage;
use loci_storage::layout::ConfigHome;

/// The least time between two writes.
const PAUSE: Duration = Duration::from_secs(60);
/// How long other processes that change the file are waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The uses of a session.
pub(crate) struct StateFileUsage(Arc<Uses>);

struct Uses {
    home: ConfigHome,
    clock: Arc<dyn Clock>,
    /// Held for a look or a change.
    pending: Mutex<Pending>,
    /// Held while the file is written, so that whoever waits for that can.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Pending {
    uses: SkillUsageTable,
    last_write: Option<Duration>,
}

impl StateFileUsage {
    /// Keeps the uses of a session in the state file of a config home.
    pub(crate) fn new(home: ConfigHome, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Uses { home, clock, pending: Mutex::default(), writing: Mutex::default() }))
    }
}

impl SkillUsageLog for StateFileUsage {
    fn record(&self, name: &str) {
        let now = self.0.clock.monotonic();
        let mut pending = lock(&self.0.pending);
        let last_used_ms = self.0.clock.now().as_millisecond();
        pending.uses.add(name, SkillUsage { count: 1, last_used_ms });
        if pending.last_write.is_some_and(|last| now.saturating_sub(last) < PAUSE) {
            return;
        }
        pending.last_write = Some(now);
        let uses = Arc::clone(&self.0);
        // Without a thread they are written with the next ones, or at the end.
        drop(std::thread::Builder::new().spawn(move || uses.write()));
    }

    fn flush(&self) {
        self.0.write();
    }
}

impl Uses {
    fn write(&self) {
        let _writing = lock(&self.writing);
        let uses = std::mem::take(&mut lock(&self.pending).uses);
        if uses.is_empty() {
            return;
        }
        if let Err(error) = add_skill_usage(&self.home, &uses, PATIENCE) {
            tracing::debug!(target: "loci::skills", %error, "uses of skills are not kept");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;
    use serde_json::Value;

    use super::*;

    #[test]
    fn uses_are_kept_once_they_are_waited_for_however_many_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_test(dir.path(), dir.path());
        let home = ConfigHome::from_env(&env);
        let usage = StateFileUsage::new(home.clone(), Arc::clone(&env.clock));
        let began = env.clock.now().as_millisecond();
        for name in ["ship", "ship", "look", "ship"] {
            usage.record(name);
        }
        usage.flush();
        let state: Value =
            serde_json::from_str(&std::fs::read_to_string(home.state_file()).unwrap()).unwrap();
        let kept = &state["skillUsage"];
        assert_eq!((&kept["ship"]["usageCount"], &kept["look"]["usageCount"]), (&3.into(), &1.into()));
        let at = kept["ship"]["lastUsedAt"].as_i64().unwrap();
        assert!(at > began && at < env.clock.now().as_millisecond(), "{at}");
    }

    #[test]
    fn state_file_that_cannot_be_read_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_test(dir.path(), dir.path());
        let home = ConfigHome::from_env(&env);
        std::fs::write(home.state_file(), "{ half").unwrap();
        let usage = StateFileUsage::new(home.clone(), Arc::clone(&env.clock));
        usage.record("ship");
        usage.flush();
        assert_eq!(std::fs::read_to_string(home.state_file()).unwrap(), "{ half");
    }
}
