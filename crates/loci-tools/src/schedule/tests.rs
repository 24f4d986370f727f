//! The tools against a schedule in memory.

use std::sync::Mutex;

use loci_core::schedule::{CivilMinute, Schedule, When};

use super::*;
use crate::Tool;
use crate::testing::TestHost;

/// A schedule at second zero of a Thursday that lasts.
#[derive(Default)]
pub(crate) struct TestSchedule(Mutex<Schedule>);

fn wall(seconds: i64) -> CivilMinute {
    let part = |of: i64, most: i64| u8::try_from(seconds.div_euclid(of).rem_euclid(most)).unwrap();
    let (day, hour, minute) = (part(86_400, 28) + 1, part(3600, 24), part(60, 60));
    CivilMinute { year: 1970, month: 1, day, hour, minute }
}

impl ScheduleHost for TestSchedule {
    fn add(&self, request: ScheduleRequest) -> Result<ScheduledTask, String> {
        let (when, prompt, is_durable) = match request {
            ScheduleRequest::Cron { cron, prompt, is_recurring: true, is_durable } => {
                (When::Every(cron), prompt, is_durable)
            }
            ScheduleRequest::Cron { cron, prompt, is_recurring: false, is_durable } => {
                (When::Once(cron), prompt, is_durable)
            }
            ScheduleRequest::Wakeup { delay, prompt } => (When::At(delay as i64), prompt, false),
        };
        let mut schedule = self.0.lock().unwrap();
        let mut task = ScheduledTask::new(when, prompt, 0, schedule.tasks().len() as u64);
        task.is_durable = is_durable;
        schedule.add(task, 0, &wall).cloned().map_err(|error| error.to_string())
    }

    fn remove(&self, id: &str) -> Result<bool, String> {
        Ok(self.0.lock().unwrap().remove(id))
    }

    fn cancel_wakeup(&self) -> Result<bool, String> {
        Ok(self.0.lock().unwrap().cancel_wakeup())
    }

    fn tasks(&self) -> Vec<ScheduledTask> {
        self.0.lock().unwrap().tasks().to_vec()
    }

    fn local_text(&self, at: i64) -> String {
        format!("second {at}")
    }
}

async fn call(host: &TestHost, tool: &dyn Tool, input: serde_json::Value) -> (bool, String) {
    let outcome = host.call(tool, input).await;
    let text = match &outcome.content {
        loci_core::tool::ToolContent::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    (!outcome.is_failure(), text)
}

#[tokio::test]
async fn prompts_are_scheduled_listed_and_deleted() {
    let host = TestHost::new();
    let (create, delete, list) = (
        cron_create::CronCreate::default(),
        cron_delete::CronDelete::default(),
        cron_list::CronList::default(),
    );
    let (is_fine, told) =
        call(&host, &create, json!({"cron": "7 * * * *", "prompt": "look", "recurring": false})).await;
    assert!(is_fine && told.contains("next at second 420") && told.contains("said once"), "{told}");
    let (_, listed) = call(&host, &list, json!({})).await;
    assert_eq!(listed, "00000000 · 7 * * * * · once · next at second 420 · look");
    let (is_fine, told) = call(&host, &delete, json!({"id": "nope"})).await;
    assert!(!is_fine && told.contains("There are: 00000000"), "{told}");
    assert!(call(&host, &delete, json!({"id": "00000000"})).await.0);
    assert_eq!(call(&host, &list, json!({})).await.1, "Nothing is scheduled.");
    let (is_fine, told) =
        call(&host, &create, json!({"cron": "7 * * * *", "prompt": "look", "durable": true})).await;
    assert!(is_fine && told.contains("outlives the session"), "{told}");
    let (_, listed) = call(&host, &list, json!({})).await;
    assert!(listed.contains("· recurring · outlives the session ·"), "{listed}");
}

#[tokio::test]
async fn what_cannot_be_scheduled_is_refused_with_a_reason() {
    let (host, create) = (TestHost::new(), cron_create::CronCreate::default());
    for (input, expected) in [
        (json!({"cron": "* * *", "prompt": "x"}), "five fields"),
        (json!({"cron": "0 9 * * mon", "prompt": "x"}), "`mon`"),
        (json!({"cron": "0 9 * * 1", "prompt": " "}), "`prompt` is empty"),
    ] {
        let (is_fine, told) = call(&host, &create, input).await;
        assert!(!is_fine && told.contains(expected), "{told}");
    }
}

#[tokio::test]
async fn wake_up_is_kept_within_its_bounds_and_can_be_called_off() {
    let (host, wakeup) = (TestHost::new(), schedule_wakeup::ScheduleWakeup::default());
    for (asked, expected) in [(5, "in 60 seconds"), (300, "in 300 seconds"), (9999, "in 3600 seconds")] {
        let (is_fine, told) =
            call(&host, &wakeup, json!({"delaySeconds": asked, "reason": "r", "prompt": "go on"})).await;
        assert!(is_fine && told.contains(expected), "{told}");
    }
    assert_eq!(host.schedule().unwrap().tasks().len(), 1);
    let stop = json!({"delaySeconds": 60, "reason": "done", "prompt": "", "stop": true});
    assert!(call(&host, &wakeup, stop.clone()).await.1.contains("does not wake up"));
    assert!(call(&host, &wakeup, stop).await.1.contains("No wake-up"));
    for (input, expected) in [
        (json!({"prompt": "go on"}), "`delaySeconds` is missing"),
        (json!({"delaySeconds": 60}), "`prompt` is empty"),
    ] {
        let (is_fine, told) = call(&host, &wakeup, input).await;
        assert!(!is_fine && told.contains(expected), "{told}");
    }
}
