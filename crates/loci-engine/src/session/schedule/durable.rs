//! The tasks of a session that outlive it: kept in a file of the project, said by whichever session is open there.
//!
//! A file that comes with a repository must not put words into anybody's mouth: a task counts only where the session that made
//! it is one of this project in our own config home. Whoever says a prompt claims it in the file first, under a lock.

use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_core::schedule::{
    DurableTask, ScheduledTask, TaskMaker, durable_entry, entry_id, mark_fired, parse_durable,
};
use loci_core::session::SessionIdentity;
use loci_stdx::start_ticks;
use loci_storage::config::ScheduledTasksFile;
use loci_storage::layout::ConfigHome;
use serde_json::Value;

/// The tasks of a project.
pub(super) struct DurableTasks {
    file: ScheduledTasksFile,
    /// Where the transcripts of the project's sessions lie.
    sessions: PathBuf,
    maker: TaskMaker,
}

/// What became of the wish to say a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is ours to say.
    Ours,
    /// Another process said it, or the task is gone.
    Gone,
}

impl DurableTasks {
    pub(super) fn new(home: &ConfigHome, who: &SessionIdentity) -> Self {
        let pid = std::process::id();
        Self {
            file: ScheduledTasksFile::new(home, who.original_cwd()),
            sessions: who.transcript_path().parent().map(Path::to_path_buf).unwrap_or_default(),
            maker: TaskMaker { session: who.id().to_string(), pid, proc_start: start_ticks(pid) },
        }
    }

    /// Returns the tasks that count, and how many do not.
    pub(super) fn read(&self) -> Result<(Vec<DurableTask>, usize), String> {
        let entries = self.file.read().map_err(|error| error.to_string())?;
        let all: Vec<DurableTask> = entries.iter().filter_map(parse_durable).collect();
        let n_read = all.len();
        let own: Vec<DurableTask> = all.into_iter().filter(|task| self.is_own(&task.made_by)).collect();
        let n_left_out = n_read - own.len();
        Ok((own, n_left_out))
    }

    fn is_own(&self, session: &str) -> bool {
        session == self.maker.session
            || SessionId::parse(session)
                .is_ok_and(|id| self.sessions.join(format!("{id}.jsonl")).symlink_metadata().is_ok())
    }

    pub(super) fn add(&self, task: &ScheduledTask) -> Result<(), String> {
        let Some(entry) = durable_entry(task, &self.maker) else {
            return Err("A wake-up ends with its session".to_owned());
        };
        self.edit(|entries| entries.push(entry))
    }

    /// Takes a task out; false where there is none.
    pub(super) fn remove(&self, id: &str) -> Result<bool, String> {
        self.edit(|entries| {
            let n_before = entries.len();
            entries.retain(|entry| entry_id(entry) != Some(id));
            entries.len() < n_before
        })
    }

    /// Claims the prompt of a task that is due; one that does not come again is gone with it.
    pub(super) fn claim(&self, task: &ScheduledTask, is_last: bool, now: i64) -> Result<Claim, String> {
        self.edit(|entries| {
            let Some(at) = entries.iter().position(|entry| entry_id(entry) == Some(&task.id)) else {
                return Claim::Gone;
            };
            let last_fired = parse_durable(&entries[at]).and_then(|it| it.last_fired);
            if last_fired.is_some_and(|fired| task.next().is_none_or(|next| fired >= next)) {
                return Claim::Gone;
            }
            match is_last {
                true => drop(entries.remove(at)),
                false => mark_fired(&mut entries[at], now),
            }
            Claim::Ours
        })
    }

    fn edit<T>(&self, change: impl FnOnce(&mut Vec<Value>) -> T) -> Result<T, String> {
        self.file.edit(change).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use loci_core::schedule::{CivilMinute, Cron, Schedule, When};
    use loci_core::session::NewSession;
    use loci_stdx::Env;

    use super::*;

    const ID: &str = "0a0a0a0a-0001-4000-8000-000000000001";
    const OTHER: &str = "0b0b0b0b-0001-4000-8000-000000000001";

    fn tasks(root: &Path, id: &str) -> DurableTasks {
        let env = Env::for_test(root.join("home"), root.join("p"));
        let who = SessionIdentity::new(NewSession {
            id: SessionId::parse(id).unwrap(),
            project_dir: root.join("sessions"),
            cwd: root.join("p"),
            is_interactive: false,
            is_persistent: true,
        });
        DurableTasks::new(&ConfigHome::from_env(&env), &who)
    }

    fn wall(seconds: i64) -> CivilMinute {
        let (days, hours, minutes) =
            (seconds.div_euclid(86_400), seconds.div_euclid(3600), seconds.div_euclid(60));
        let (day, hour, minute) = (days.rem_euclid(28) + 1, hours.rem_euclid(24), minutes.rem_euclid(60));
        let small = |n: i64| u8::try_from(n).unwrap();
        CivilMinute { year: 1970, month: 1, day: small(day), hour: small(hour), minute: small(minute) }
    }

    /// Adds a task to a schedule and to the file; returns it as the schedule has it.
    fn scheduled(durable: &DurableTasks, when: When) -> (Schedule, ScheduledTask) {
        let mut schedule = Schedule::default();
        let mut task = ScheduledTask::new(when, "look".to_owned(), 0, 7);
        task.is_durable = true;
        let task = schedule.add(task, 0, &wall).unwrap().clone();
        durable.add(&task).unwrap();
        (schedule, task)
    }

    #[test]
    fn of_many_processes_one_says_a_prompt_and_the_next_time_one_again() {
        let root = tempfile::tempdir().unwrap();
        let every = When::Every(Cron::parse("*/10 * * * *").unwrap());
        let (mut schedule, mut task) = scheduled(&tasks(root.path(), ID), every);
        for _ in 0..3 {
            let now = task.next().unwrap() + 1;
            let claims = std::thread::scope(|scope| {
                let claim = || {
                    let durable = tasks(root.path(), OTHER);
                    // Whoever waits too long for the others tries again later.
                    (0..20).find_map(|_| durable.claim(&task, false, now).ok())
                };
                let all: Vec<_> = (0..16).map(|_| scope.spawn(claim)).collect();
                all.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
            });
            assert_eq!(claims.iter().filter(|it| **it == Some(Claim::Ours)).count(), 1, "{claims:?}");
            schedule.fire(&task.id, now, &wall);
            task = schedule.find(&task.id).unwrap().clone();
        }
    }

    #[test]
    fn prompt_that_is_said_once_is_gone_from_the_file() {
        let root = tempfile::tempdir().unwrap();
        let durable = tasks(root.path(), ID);
        let (_, task) = scheduled(&durable, When::Once(Cron::parse("7 * * * *").unwrap()));
        let entry = durable.file.read().unwrap()[0].clone();
        let keys: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        for key in ["id", "cron", "prompt", "createdAt", "recurring", "createdBySessionId", "createdByPid"] {
            assert!(keys.contains(&key), "{key}: {entry}");
        }
        assert_eq!(durable.claim(&task, true, 421), Ok(Claim::Ours));
        assert_eq!(durable.claim(&task, true, 422), Ok(Claim::Gone));
        assert!(durable.file.read().unwrap().is_empty());
    }

    #[test]
    fn task_counts_where_one_of_our_sessions_made_it() {
        let root = tempfile::tempdir().unwrap();
        scheduled(&tasks(root.path(), ID), When::Once(Cron::parse("7 * * * *").unwrap()));
        let count = |id: &str| tasks(root.path(), id).read().map(|(own, n)| (own.len(), n));
        assert_eq!(count(ID), Ok((1, 0)));
        assert_eq!(count(OTHER), Ok((0, 1)), "whose session is unknown");
        std::fs::create_dir(root.path().join("sessions")).unwrap();
        std::fs::write(root.path().join(format!("sessions/{ID}.jsonl")), "").unwrap();
        assert_eq!(count(OTHER), Ok((1, 0)));
        // A name that leads elsewhere is no session.
        let durable = tasks(root.path(), OTHER);
        durable.edit(|entries| entries[0]["createdBySessionId"] = "../sessions/x".into()).unwrap();
        assert_eq!(count(OTHER), Ok((0, 1)));
    }
}
