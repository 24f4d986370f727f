//! Prompts that a session gives itself at a later time: by a cron expression, or once after a while.
//!
//! Pure: what time it is, and what a clock on the wall shows then, are arguments. A [`Schedule`] is asked what is due
//! whenever the session is idle; it never fires twice for what was missed meanwhile, and a recurring task ends after
//! [`LIFETIME`].

mod cron;
mod durable;
mod loop_prompt;

pub use cron::{CivilMinute, Cron, CronError};
pub use durable::{DurableTask, TaskMaker, durable_entry, entry_id, mark_fired, parse_durable};
pub use loop_prompt::is_self_paced_loop;

use serde::{Deserialize, Serialize};

/// The most tasks of a session.
pub const MOST_TASKS: usize = 50;
/// How long a recurring task lives, in seconds: it fires a last time at its end.
pub const LIFETIME: i64 = 7 * 24 * 60 * 60;
/// The most seconds that a recurring task is late on purpose, so that many do not fire at once.
const MOST_DELAY: i64 = 30 * 60;
/// The most seconds that a task on the hour or the half hour is early.
const MOST_HASTE: i64 = 90;
/// How long the id of a task is.
const ID_LETTERS: usize = 8;

/// Says what a clock on the wall shows at a time, in seconds since 1970.
pub type WallClock<'a> = &'a dyn Fn(i64) -> CivilMinute;

/// When a task fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// Whenever the expression says so.
    Every(Cron),
    /// The first time that the expression says so.
    Once(Cron),
    /// At this time, in seconds since 1970: the session wakes itself.
    At(i64),
}

/// A prompt for later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledTask {
    /// Eight letters and digits.
    pub id: String,
    /// When it fires.
    pub when: When,
    /// What is said then.
    pub prompt: String,
    /// When it was made, in seconds since 1970.
    pub created_at: i64,
    /// Whether it outlives the session.
    #[serde(default)]
    pub is_durable: bool,
    /// When it fires next.
    #[serde(default)]
    next: Option<i64>,
}

/// Why a task cannot be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There are enough.
    #[error("there are {MOST_TASKS} scheduled tasks already; delete one first")]
    TooMany,
    /// It would never fire.
    #[error("the expression matches no time within the next four years")]
    Never,
}

/// The tasks of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    tasks: Vec<ScheduledTask>,
}

impl ScheduledTask {
    /// Makes a task; `random` makes its id.
    pub fn new(when: When, prompt: String, created_at: i64, random: u64) -> Self {
        Self { id: task_id(random), when, prompt, created_at, is_durable: false, next: None }
    }

    /// Returns the expression, or when it wakes the session.
    pub fn schedule_text(&self) -> String {
        match &self.when {
            When::Every(cron) | When::Once(cron) => cron.to_string(),
            When::At(at) => format!("@{at}"),
        }
    }

    /// Tells whether it fires more than once.
    pub fn is_recurring(&self) -> bool {
        matches!(self.when, When::Every(_))
    }

    /// Tells whether it is a wake-up of the session.
    pub fn is_wakeup(&self) -> bool {
        matches!(self.when, When::At(_))
    }

    /// Returns when it fires next, in seconds since 1970.
    pub fn next(&self) -> Option<i64> {
        self.next
    }

    /// Returns the next time after `after`.
    fn next_after(&self, after: i64, wall: WallClock<'_>) -> Option<i64> {
        match &self.when {
            When::At(at) => Some(*at),
            When::Once(cron) => {
                let at = cron.next_after(after, wall)?;
                let is_usual = matches!(wall(at).minute, 0 | 30);
                let early = if is_usual { share(&self.id, MOST_HASTE) } else { 0 };
                // Never before it could have been scheduled.
                Some((at - early).max(after + 1))
            }
            When::Every(cron) => {
                // What is late on purpose may belong to a slot that has begun already.
                let mut slot = cron.next_after(after - MOST_DELAY - 60, wall)?;
                loop {
                    let following = cron.next_after(slot, wall)?;
                    let at = slot + share(&self.id, ((following - slot) / 2).min(MOST_DELAY));
                    if at > after && slot >= self.created_at {
                        return Some(at);
                    }
                    slot = following;
                }
            }
        }
    }

    /// Tells whether it has lived long enough.
    fn has_expired(&self, now: i64) -> bool {
        self.is_recurring() && now - self.created_at >= LIFETIME
    }
}

impl Schedule {
    /// Brings tasks back that were kept, as after a restart: what was missed stays missed, and what is over is gone.
    pub fn restored(tasks: Vec<ScheduledTask>, now: i64, wall: WallClock<'_>) -> Self {
        let mut schedule = Self::default();
        for mut task in tasks {
            let has_passed = !task.is_recurring() && task.next.is_none_or(|next| next <= now);
            if has_passed || task.has_expired(now) || schedule.find(&task.id).is_some() {
                continue;
            }
            if task.is_recurring() {
                task.next = task.next_after(now, wall);
            }
            if task.next.is_some() && schedule.tasks.len() < MOST_TASKS {
                schedule.tasks.push(task);
            }
        }
        schedule
    }

    /// Returns the tasks, oldest first.
    pub fn tasks(&self) -> &[ScheduledTask] {
        &self.tasks
    }

    /// Returns one task.
    pub fn find(&self, id: &str) -> Option<&ScheduledTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// Takes over what outlives sessions, as its file has it now: tasks that are gone there are gone here, and those that
    /// are new and still to come are taken in.
    pub fn sync_durable(&mut self, kept: Vec<DurableTask>, now: i64, wall: WallClock<'_>) {
        self.tasks.retain(|task| !task.is_durable || kept.iter().any(|it| it.task.id == task.id));
        for DurableTask { mut task, .. } in kept {
            if self.find(&task.id).is_some() || self.tasks.len() >= MOST_TASKS || task.has_expired(now) {
                continue;
            }
            let from = if task.is_recurring() { now } else { task.created_at };
            task.next = task.next_after(from, wall).filter(|next| *next > now);
            if task.next.is_some() {
                self.tasks.push(task);
            }
        }
    }

    /// Has a task fire later.
    pub fn postpone(&mut self, id: &str, at: i64) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) {
            task.next = Some(at);
        }
    }

    /// Takes a task in; there is one wake-up at most, the newest.
    pub fn add(
        &mut self,
        mut task: ScheduledTask,
        now: i64,
        wall: WallClock<'_>,
    ) -> Result<&ScheduledTask, ScheduleError> {
        task.next = Some(task.next_after(now, wall).ok_or(ScheduleError::Never)?);
        if task.is_wakeup() {
            self.cancel_wakeup();
        }
        if self.tasks.len() >= MOST_TASKS {
            return Err(ScheduleError::TooMany);
        }
        self.tasks.push(task);
        self.tasks.last().ok_or(ScheduleError::TooMany)
    }

    /// Takes a task out; false where there is none.
    pub fn remove(&mut self, id: &str) -> bool {
        let n_before = self.tasks.len();
        self.tasks.retain(|task| task.id != id);
        self.tasks.len() < n_before
    }

    /// Takes the wake-up out; false where there is none.
    pub fn cancel_wakeup(&mut self) -> bool {
        let n_before = self.tasks.len();
        self.tasks.retain(|task| !task.is_wakeup());
        self.tasks.len() < n_before
    }

    /// Returns when something is due next.
    pub fn deadline(&self) -> Option<i64> {
        self.tasks.iter().filter_map(|task| task.next).min()
    }

    /// Returns the task that is due, the one that has waited longest first.
    pub fn due(&self, now: i64) -> Option<&ScheduledTask> {
        let due = self.tasks.iter().enumerate().filter(|(_, task)| task.next.is_some_and(|next| next <= now));
        due.min_by_key(|(idx, task)| (task.next, *idx)).map(|(_, task)| task)
    }

    /// Takes the task that is due. One that recurs fires next in the future, however many times it was missed.
    pub fn take_due(&mut self, now: i64, wall: WallClock<'_>) -> Option<ScheduledTask> {
        let id = self.due(now)?.id.clone();
        self.fire(&id, now, wall)
    }

    /// Takes a task as one that fires now.
    pub fn fire(&mut self, id: &str, now: i64, wall: WallClock<'_>) -> Option<ScheduledTask> {
        let at = self.tasks.iter().position(|task| task.id == id)?;
        let fired = self.tasks[at].clone();
        let next =
            if fired.is_recurring() && !fired.has_expired(now) { fired.next_after(now, wall) } else { None };
        match next {
            Some(next) => self.tasks[at].next = Some(next),
            None => drop(self.tasks.remove(at)),
        }
        Some(fired)
    }
}

/// Makes an id of random bits.
fn task_id(random: u64) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let digit = |idx: u32| char::from(LETTERS[((random >> (idx * 6)) % 36) as usize]);
    (0..ID_LETTERS as u32).map(digit).collect()
}

/// Returns a number from 0 to `most` that is always the same for an id.
fn share(id: &str, most: i64) -> i64 {
    // FNV-1a: any spreading function would do, but it must never change.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    if most <= 0 { 0 } else { i64::try_from(hash % (most as u64 + 1)).unwrap_or(0) }
}

#[cfg(test)]
mod tests;
