//! Tasks over time: tables for what each rule says, and random histories for what always holds.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A wall in UTC: the days are counted by hand, so that the tests need no library of time.
fn utc(seconds: i64) -> CivilMinute {
    let days = seconds.div_euclid(86_400);
    let (hour, minute) = (seconds.rem_euclid(86_400) / 3600, seconds.rem_euclid(3600) / 60);
    // Days since 0000-03-01, in eras of 400 years.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    CivilMinute {
        year: i16::try_from(yoe + era * 400 + i64::from(month <= 2)).unwrap(),
        month: u8::try_from(month).unwrap(),
        day: u8::try_from(doy - (153 * mp + 2) / 5 + 1).unwrap(),
        hour: u8::try_from(hour).unwrap(),
        minute: u8::try_from(minute).unwrap(),
    }
}

/// A wall where the clocks go an hour forward at the given second.
fn spring_forward(at: i64) -> impl Fn(i64) -> CivilMinute {
    move |seconds| utc(if seconds >= at { seconds + 3600 } else { seconds })
}

/// 2026-11-17 07:46:00 UTC, a Tuesday.
const NOW: i64 = 1_794_901_560;

fn cron(text: &str) -> Cron {
    Cron::parse(text).unwrap()
}

fn task(when: When, random: u64) -> ScheduledTask {
    ScheduledTask::new(when, "p".to_owned(), NOW, random)
}

#[test]
fn wall_of_the_tests_is_right() {
    let shown = utc(NOW);
    assert_eq!((shown.year, shown.month, shown.day, shown.hour, shown.minute), (2026, 11, 17, 7, 46));
}

#[test]
fn next_match_is_found_from_minutes_to_years_ahead() {
    for (text, minutes) in [
        ("* * * * *", 1),
        ("46 7 * * *", 24 * 60),
        ("47 7 * * *", 1),
        ("0 8 * * *", 14),
        ("0 0 1 1 *", 45 * 24 * 60 - 7 * 60 - 46),
        ("0 0 * * 0", 5 * 24 * 60 - 7 * 60 - 46),
        ("0 0 29 2 *", 469 * 24 * 60 - 7 * 60 - 46),
    ] {
        assert_eq!(cron(text).next_after(NOW, &utc), Some(NOW + minutes * 60), "{text}");
    }
    assert_eq!(cron("0 0 31 2 *").next_after(NOW, &utc), None);
    assert_eq!(
        Schedule::default().add(task(When::Once(cron("0 0 30 2 *")), 1), NOW, &utc),
        Err(ScheduleError::Never)
    );
}

#[test]
fn hour_that_the_clocks_leave_out_is_left_out() {
    let midnight = NOW - NOW.rem_euclid(86_400);
    let wall = spring_forward(midnight + 86_400 + 2 * 3600);
    // 02:30 does not happen on the next day; the day after it does.
    assert_eq!(cron("30 2 * * *").next_after(NOW, &wall), Some(midnight + 2 * 86_400 + 3600 + 1800));
    assert_eq!(cron("30 3 * * *").next_after(NOW, &wall), Some(midnight + 86_400 + 2 * 3600 + 1800));
}

#[test]
fn lateness_and_haste_are_bounded_and_belong_to_the_id() {
    for random in 0..500_u64 {
        let random = random.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let every = task(When::Every(cron("*/10 * * * *")), random);
        let slot = cron("*/10 * * * *").next_after(NOW, &utc).unwrap();
        let next = every.next_after(NOW, &utc).unwrap();
        assert!((slot..=slot + 300).contains(&next), "half the interval at most: {}", next - slot);
        assert_eq!(every.next_after(next, &utc).unwrap() - next, 600, "always as late");
        let daily = task(When::Every(cron("0 9 * * *")), random).next_after(NOW, &utc).unwrap();
        let nine = cron("0 9 * * *").next_after(NOW, &utc).unwrap();
        assert!((nine..=nine + MOST_DELAY).contains(&daily));
        let once = task(When::Once(cron("0 9 * * *")), random).next_after(NOW, &utc).unwrap();
        assert!((nine - MOST_HASTE..=nine).contains(&once));
        let exact = task(When::Once(cron("7 9 * * *")), random).next_after(NOW, &utc).unwrap();
        assert_eq!(exact, nine + 420, "nothing is moved where nobody else is");
    }
}

#[test]
fn what_was_missed_fires_once_and_what_is_over_is_gone() {
    let mut schedule = Schedule::default();
    schedule.add(task(When::Every(cron("*/5 * * * *")), 1), NOW, &utc).unwrap();
    let later = NOW + 3600;
    assert!(schedule.take_due(later, &utc).is_some());
    assert_eq!(schedule.take_due(later, &utc), None, "twelve were missed, one is made up for");
    assert!(schedule.deadline().unwrap() > later);
    let last = NOW + LIFETIME;
    assert!(schedule.take_due(last, &utc).is_some(), "a last time");
    assert_eq!(schedule.tasks(), []);
}

#[test]
fn restart_keeps_what_is_to_come_and_makes_up_for_nothing() {
    let mut schedule = Schedule::default();
    schedule.add(task(When::Every(cron("*/5 * * * *")), 1), NOW, &utc).unwrap();
    schedule.add(task(When::Once(cron("0 9 * * *")), 2), NOW, &utc).unwrap();
    schedule.add(task(When::Once(cron("50 7 * * *")), 3), NOW, &utc).unwrap();
    schedule.add(task(When::At(NOW + 120), 4), NOW, &utc).unwrap();
    let kept = serde_json::to_string(schedule.tasks()).unwrap();
    let kept: Vec<ScheduledTask> = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept, schedule.tasks());
    let later = NOW + 600;
    let mut restored = Schedule::restored(kept.clone(), later, &utc);
    assert_eq!(
        restored.tasks().iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
        [&kept[0].id, &kept[1].id]
    );
    assert_eq!(restored.take_due(later, &utc), None);
    assert_eq!(Schedule::restored(kept, NOW + LIFETIME, &utc).tasks(), []);
}

#[test]
fn there_is_one_wake_up_and_fifty_tasks_at_most() {
    let mut schedule = Schedule::default();
    for n in 0..3 {
        schedule.add(task(When::At(NOW + 60 + n), n as u64), NOW, &utc).unwrap();
    }
    assert_eq!((schedule.tasks().len(), schedule.deadline()), (1, Some(NOW + 62)));
    assert!(schedule.cancel_wakeup() && !schedule.cancel_wakeup());
    for n in 0..MOST_TASKS {
        schedule.add(task(When::Once(cron("0 9 * * *")), n as u64 * 77_777), NOW, &utc).unwrap();
    }
    assert_eq!(schedule.add(task(When::At(NOW + 60), 9), NOW, &utc), Err(ScheduleError::TooMany));
}

/// Something that happens to a schedule.
#[derive(Debug, Clone)]
enum Step {
    Every(u8),
    Once(u8),
    Wake(u16),
    Remove(u8),
    /// So many seconds pass while nobody looks.
    Busy(u32),
    /// So many seconds pass, each looked at.
    Idle(u16),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_u8..60).prop_map(Step::Every),
        any::<u8>().prop_map(Step::Once),
        (60_u16..3600).prop_map(Step::Wake),
        any::<u8>().prop_map(Step::Remove),
        (0_u32..200_000).prop_map(Step::Busy),
        (0_u16..900).prop_map(Step::Idle),
        Just(Step::Restart),
    ]
}

/// A history: every firing is noted with its time.
#[derive(Debug, Default, PartialEq)]
struct History {
    fired: Vec<(i64, ScheduledTask)>,
    removed: BTreeMap<String, i64>,
}

fn play(steps: &[Step]) -> (History, Schedule) {
    let (mut schedule, mut history, mut now, mut n_made) =
        (Schedule::default(), History::default(), NOW, 0_u64);
    let mut make = |when, now| {
        n_made += 1;
        ScheduledTask::new(when, String::new(), now, n_made.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    };
    for step in steps {
        let when = match step {
            Step::Every(minutes) => Some(When::Every(cron(&format!("*/{minutes} * * * *")))),
            Step::Once(minute) => Some(When::Once(cron(&format!("{} * * * *", minute % 60)))),
            Step::Wake(seconds) => Some(When::At(now + i64::from(*seconds))),
            _ => None,
        };
        if let Some(when) = when {
            // Fifty is enough.
            schedule.add(make(when, now), now, &utc).map(drop).unwrap_or_default();
        }
        match step {
            Step::Remove(nth) if !schedule.tasks().is_empty() => {
                let id = schedule.tasks()[usize::from(*nth) % schedule.tasks().len()].id.clone();
                assert!(schedule.remove(&id));
                history.removed.insert(id, now);
            }
            Step::Busy(seconds) => now += i64::from(*seconds),
            Step::Idle(seconds) => {
                for _ in 0..*seconds {
                    now += 1;
                    while let Some(task) = schedule.take_due(now, &utc) {
                        history.fired.push((now, task));
                    }
                }
            }
            Step::Restart => schedule = Schedule::restored(schedule.tasks().to_vec(), now, &utc),
            _ => {}
        }
    }
    (history, schedule)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_history_keeps_the_rules(steps in prop::collection::vec(step(), 0..40)) {
        let (history, schedule) = play(&steps);
        prop_assert!(schedule.tasks().len() <= MOST_TASKS);
        prop_assert!(schedule.tasks().iter().filter(|task| task.is_wakeup()).count() <= 1);
        let mut times: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (now, task) in &history.fired {
            prop_assert!(task.next().is_some_and(|next| next <= *now), "never before its time");
            prop_assert!(task.next() > Some(task.created_at), "never for a time before it was made");
            prop_assert!(history.removed.get(&task.id).is_none_or(|removed| now <= removed), "never after it was removed");
            times.entry(&task.id).or_default().push(*now);
        }
        for (_, task) in &history.fired {
            let of = &times[task.id.as_str()];
            prop_assert!(task.is_recurring() || of.len() == 1, "once is once");
            let slots: std::collections::BTreeSet<_> =
                history.fired.iter().filter(|(_, other)| other.id == task.id).map(|(_, it)| it.next()).collect();
            prop_assert_eq!(slots.len(), of.len(), "no slot fires twice");
            prop_assert!(of.iter().filter(|at| **at - task.created_at >= LIFETIME).count() <= 1, "one last time");
        }
        prop_assert_eq!(play(&steps), (history, schedule), "the same history, the same end");
    }
}
