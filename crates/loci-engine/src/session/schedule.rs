//! Prompts that a session gives itself later, while it runs and after it was resumed.
//!
//! What is due and when is decided in `loci_core::schedule`; here is the clock, and the file beside the transcript that
//! keeps the tasks of a session (`scheduled-tasks.json`); `durable` has those that outlive it. A prompt is said between
//! turns, when nothing else waits. A session that is to end does not wait for its schedule.

mod durable;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use loci_core::schedule::{CivilMinute, Schedule, ScheduledTask, When, is_self_paced_loop};
use loci_core::session::SessionIdentity;
use loci_stdx::{Env, TimeZone, Timestamp, WriteOptions, counted, write_atomic};
use loci_storage::layout::ConfigHome;
use loci_tools::{ScheduleHost, ScheduleRequest};
use serde_json::{Value, json};
use tokio::sync::Notify;

use self::durable::{Claim, DurableTasks};
use crate::conversation::host::lock;

/// The file beside the transcript.
const FILE: &str = "scheduled-tasks.json";
/// How often the clock is looked at while something is scheduled: it may be set, or the machine may have slept.
const LOOK: Duration = Duration::from_secs(1);
/// The most characters of a prompt that hooks are told.
const MOST_TOLD: usize = 1000;
/// After how many seconds a loop goes on that neither said when to look again nor that it is over.
const FALLBACK_DELAY: u64 = 20 * 60;
/// After how many seconds a prompt that could not be claimed is tried again.
const TRY_AGAIN: i64 = 5;

/// The schedule of a session.
pub(crate) struct ScheduleService {
    env: Env,
    /// The tasks; held to look or to change them.
    schedule: Mutex<Schedule>,
    /// Where they are kept; nowhere for a session that leaves nothing.
    file: Option<PathBuf>,
    /// Those that outlive it; none for a session that leaves nothing.
    durable: Option<DurableTasks>,
    changed: Notify,
    /// How the round of a loop stands that is under way; held to look or to change it.
    round: Mutex<LoopRound>,
    /// What was wrong with what was kept; held to take it.
    problem: Mutex<Option<String>>,
}

/// A round of a loop that sets its own pace.
#[derive(Debug, Default)]
struct LoopRound {
    /// Whether the model has scheduled something, or ended the loop.
    has_decided: bool,
    /// Whether the round was begun because the one before had decided nothing.
    is_fallback: bool,
    /// The task that begins such a round.
    fallback: Option<String>,
}

/// What becomes of a loop whose round has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    /// It goes on as the model said, or is over because the model said so.
    Decided,
    /// Nothing was decided; it is looked at once more.
    LooksAgain,
    /// Nothing was decided twice: it is over.
    Over,
}

impl ScheduleService {
    /// Makes the schedule of a session; one that goes on has what it had, as far as that is still to come.
    pub(crate) fn new(env: Env, home: &ConfigHome, who: &SessionIdentity, is_resumed: bool) -> Self {
        let file = who.is_persistent().then(|| who.companion_dir().join(FILE));
        let durable = who.is_persistent().then(|| DurableTasks::new(home, who));
        let service = Self {
            env,
            schedule: Mutex::default(),
            file,
            durable,
            changed: Notify::new(),
            round: Mutex::default(),
            problem: Mutex::default(),
        };
        if is_resumed {
            service.restore();
        }
        service
    }

    fn restore(&self) {
        let Some(file) = &self.file else { return };
        let text = match loci_stdx::read_regular_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.note_unreadable(file, &error.to_string()),
        };
        let tasks = match serde_json::from_str::<Vec<ScheduledTask>>(&text) {
            Ok(tasks) => tasks,
            Err(error) => return self.note_unreadable(file, &error.to_string()),
        };
        let (now, zone) = (self.now(), self.env.clock.local_zone());
        *lock(&self.schedule) = Schedule::restored(tasks, now, &wall(&zone));
    }

    /// Puts a file that cannot be read aside, so that what is scheduled from now on does not take its place.
    fn note_unreadable(&self, file: &std::path::Path, why: &str) {
        let aside = file.with_extension("json.broken");
        let place = std::fs::rename(file, &aside).map_or_else(|_| file.to_owned(), |()| aside);
        *lock(&self.problem) =
            Some(format!("What was scheduled could not be restored: `{}`: {why}", place.display()));
    }

    /// Takes what was wrong with the schedule of a session that goes on.
    pub(crate) fn take_problem(&self) -> Option<String> {
        lock(&self.problem).take()
    }

    /// Takes over the tasks of the project that outlive sessions; returns what is wrong with them.
    pub(crate) fn sync_durable(&self) -> Option<String> {
        match self.durable.as_ref()?.read() {
            Ok((kept, n_left_out)) => {
                let (now, zone) = (self.now(), self.env.clock.local_zone());
                lock(&self.schedule).sync_durable(kept, now, &wall(&zone));
                (n_left_out > 0).then(|| {
                    format!(
                        "`.claude/scheduled_tasks.json`: {} no session of yours made; nothing of that is said",
                        counted(n_left_out as u64, "prompt that", "prompts that")
                    )
                })
            }
            Err(why) => Some(format!("Prompts that outlive sessions are left out: {why}")),
        }
    }

    fn now(&self) -> i64 {
        self.env.clock.now().as_second()
    }

    /// Changes the schedule and keeps it; what cannot be kept is not scheduled.
    fn edit<T>(&self, change: impl FnOnce(&mut Schedule) -> Result<T, String>) -> Result<T, String> {
        let mut held = lock(&self.schedule);
        let mut schedule = held.clone();
        let done = change(&mut schedule)?;
        self.keep(&schedule).map_err(|error| format!("The schedule cannot be kept: {error}"))?;
        *held = schedule;
        drop(held);
        self.changed.notify_waiters();
        Ok(done)
    }

    fn keep(&self, schedule: &Schedule) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if let Some(dir) = file.parent() {
            loci_stdx::create_private_dir_all(dir)?;
        }
        let own: Vec<&ScheduledTask> = schedule.tasks().iter().filter(|task| !task.is_durable).collect();
        let text = serde_json::to_string(&own).map_err(std::io::Error::other)?;
        write_atomic(file, text.as_bytes(), &WriteOptions::private()).map_err(std::io::Error::other)
    }

    /// Waits until something is due; for ever where nothing is scheduled.
    pub(crate) async fn due(&self) {
        loop {
            let changed = self.changed.notified();
            let deadline = lock(&self.schedule).deadline();
            match deadline {
                Some(deadline) if deadline <= self.now() => return,
                Some(_) => {
                    // Either way it is looked at again.
                    drop(tokio::time::timeout(LOOK, changed).await);
                }
                None => changed.await,
            }
        }
    }

    /// A turn begins; `is_scheduled` says whether a task that was taken began it.
    pub(crate) fn begin_round(&self, is_scheduled: bool) {
        let mut round = lock(&self.round);
        round.has_decided = false;
        round.is_fallback &= is_scheduled;
    }

    /// A round of a loop that sets its own pace has ended: where nothing was decided, it is looked at once more.
    pub(crate) fn end_round(&self, prompt: &str) -> LoopEnd {
        let (has_decided, is_fallback) = {
            let mut round = lock(&self.round);
            (round.has_decided, std::mem::take(&mut round.is_fallback))
        };
        if has_decided {
            return LoopEnd::Decided;
        }
        if is_fallback {
            return LoopEnd::Over;
        }
        let request = ScheduleRequest::Wakeup { delay: FALLBACK_DELAY, prompt: prompt.to_owned() };
        match ScheduleHost::add(self, request) {
            Ok(task) => {
                lock(&self.round).fallback = Some(task.id);
                LoopEnd::LooksAgain
            }
            Err(_) => LoopEnd::Over,
        }
    }

    /// Takes the wake-up out that a loop waits for; false where none does.
    pub(crate) fn stop_loop(&self) -> bool {
        let is_waiting =
            lock(&self.schedule).tasks().iter().any(|it| it.is_wakeup() && is_self_paced_loop(&it.prompt));
        is_waiting && self.cancel_wakeup().unwrap_or(false)
    }

    /// Takes the prompt that is due; none where another process says it.
    pub(crate) fn take_due(&self) -> Option<ScheduledTask> {
        let (now, zone) = (self.now(), self.env.clock.local_zone());
        let mut held = lock(&self.schedule);
        let task = held.due(now)?.clone();
        if let Some(durable) = self.durable.as_ref().filter(|_| task.is_durable) {
            let mut after = held.clone();
            after.fire(&task.id, now, &wall(&zone));
            match durable.claim(&task, after.find(&task.id).is_none(), now) {
                Ok(claim) => {
                    *held = after;
                    return (claim == Claim::Ours).then_some(task);
                }
                Err(why) => {
                    tracing::warn!(target: "loci::engine", why, "a scheduled prompt waits");
                    held.postpone(&task.id, now + TRY_AGAIN);
                    return None;
                }
            }
        }
        let due = held.fire(&task.id, now, &wall(&zone))?;
        {
            let mut round = lock(&self.round);
            round.is_fallback = round.fallback.take_if(|id| *id == due.id).is_some();
        }
        if let Err(error) = self.keep(&held) {
            // It fires all the same: at worst it is there again after a restart, in the future.
            tracing::warn!(target: "loci::engine", %error, "the schedule is not kept");
        }
        Some(due)
    }

    /// Returns what is scheduled, as hooks are told.
    pub(crate) fn hook_payload(&self) -> Vec<Value> {
        let row = |task: &ScheduledTask| {
            json!({
                "id": task.id,
                "schedule": task.schedule_text(),
                "recurring": task.is_recurring(),
                "prompt": task.prompt.chars().take(MOST_TOLD).collect::<String>(),
            })
        };
        lock(&self.schedule).tasks().iter().map(row).collect()
    }
}

impl ScheduleHost for ScheduleService {
    fn add(&self, request: ScheduleRequest) -> Result<ScheduledTask, String> {
        lock(&self.round).has_decided = true;
        let (now, zone) = (self.now(), self.env.clock.local_zone());
        let (when, prompt, is_durable) = match request {
            ScheduleRequest::Cron { cron, prompt, is_recurring, is_durable } => {
                (if is_recurring { When::Every(cron) } else { When::Once(cron) }, prompt, is_durable)
            }
            ScheduleRequest::Wakeup { delay, prompt } => {
                (When::At(now.saturating_add(i64::try_from(delay).unwrap_or(i64::MAX))), prompt, false)
            }
        };
        let random = self.env.random.uuid_v4().as_u64_pair().0;
        let mut task = ScheduledTask::new(when, prompt, now, random);
        task.is_durable = is_durable;
        // What others have scheduled since counts towards the most there may be.
        self.sync_durable();
        self.edit(|schedule| {
            let refused = |why: String| format!("It is not scheduled: {why}.");
            let task = schedule.add(task, now, &wall(&zone)).map_err(|error| refused(error.to_string()))?;
            if is_durable {
                let durable = self
                    .durable
                    .as_ref()
                    .ok_or("Nothing of this session is kept, so no task outlives it.")?;
                durable.add(task).map_err(refused)?;
            }
            Ok(task.clone())
        })
    }

    fn remove(&self, id: &str) -> Result<bool, String> {
        self.sync_durable();
        self.edit(|schedule| {
            let is_durable = schedule.find(id).is_some_and(|task| task.is_durable);
            if let Some(durable) = self.durable.as_ref().filter(|_| is_durable) {
                durable.remove(id).map_err(|why| format!("It is not deleted: {why}."))?;
            }
            Ok(schedule.remove(id))
        })
    }

    fn cancel_wakeup(&self) -> Result<bool, String> {
        lock(&self.round).has_decided = true;
        self.edit(|schedule| Ok(schedule.cancel_wakeup()))
    }

    fn tasks(&self) -> Vec<ScheduledTask> {
        self.sync_durable();
        lock(&self.schedule).tasks().to_vec()
    }

    fn local_text(&self, at: i64) -> String {
        let shown = wall(&self.env.clock.local_zone())(at);
        let CivilMinute { year, month, day, hour, minute } = shown;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
    }
}

/// Returns what clocks on the wall show in a zone.
fn wall(zone: &TimeZone) -> impl Fn(i64) -> CivilMinute + '_ {
    |at| {
        let shown = zone.to_datetime(Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH));
        let small = |number: i8| u8::try_from(number).unwrap_or_default();
        CivilMinute {
            year: shown.year(),
            month: small(shown.month()),
            day: small(shown.day()),
            hour: small(shown.hour()),
            minute: small(shown.minute()),
        }
    }
}
