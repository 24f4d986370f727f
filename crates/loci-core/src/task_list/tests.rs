use super::*;
use serde_json::json;

fn list(n: usize) -> TaskList {
    let mut list = TaskList::default();
    for n in 1..=n {
        list.add(NewTask { subject: format!("task {n}"), ..NewTask::default() });
    }
    list
}

fn change(list: &mut TaskList, id: &str, change: Value) -> Result<Changed, TaskListError> {
    list.change(id, serde_json::from_value(change).unwrap())
}

/// Every task in short: number, state, who it blocks, who it waits for.
fn show(list: &TaskList) -> Vec<String> {
    let line = |task: &Task| {
        format!(
            "{} {} >{} <{}",
            task.id,
            task.status.as_str(),
            task.blocks.join(","),
            task.blocked_by.join(",")
        )
    };
    list.tasks().iter().map(line).collect()
}

#[test]
fn links_are_held_on_both_sides_and_go_with_the_task() {
    let mut list = list(3);
    let changed = change(&mut list, "2", json!({"addBlocks": ["3"], "addBlockedBy": ["#1"]})).unwrap();
    assert_eq!(changed.fields, ["blocks", "blockedBy"]);
    assert_eq!(show(&list), ["1 pending >2 <", "2 pending >3 <1", "3 pending > <2"]);
    assert_eq!(change(&mut list, "2", json!({"addBlocks": ["3"]})).unwrap().fields, [""; 0]);

    let changed = change(&mut list, "2", json!({"status": "deleted"})).unwrap();
    assert_eq!(changed, Changed { fields: vec!["deleted"], status: Some(("pending", "deleted")) });
    assert_eq!(show(&list), ["1 pending > <", "3 pending > <"]);
}

#[test]
fn no_task_waits_for_itself() {
    let mut list = list(3);
    change(&mut list, "1", json!({"addBlocks": ["2"]})).unwrap();
    change(&mut list, "2", json!({"addBlocks": ["3"]})).unwrap();
    let before = list.clone();
    for (id, asked) in [
        ("1", json!({"addBlocks": ["1"]})),
        ("3", json!({"addBlocks": ["1"]})),
        ("1", json!({"addBlockedBy": ["3"], "subject": "not this either"})),
        ("1", json!({"addBlocks": ["9"], "status": "completed"})),
        ("9", json!({"status": "completed"})),
    ] {
        assert!(change(&mut list, id, asked.clone()).is_err(), "{id} {asked}");
        assert_eq!(list, before, "nothing is changed in part");
    }
}

#[test]
fn task_change_names_only_changed_fields() {
    let mut list = list(1);
    for (asked, fields, status) in [
        (json!({"subject": "task 1"}), vec![], None),
        (
            json!({"status": "in_progress", "owner": "me"}),
            vec!["owner", "status"],
            Some(("pending", "in_progress")),
        ),
        (json!({"status": "in_progress"}), vec![], None),
        (json!({"metadata": {"a": 1}}), vec!["metadata"], None),
        (json!({"metadata": {"a": null}}), vec!["metadata"], None),
        (json!({"activeForm": "Doing"}), vec!["activeForm"], None),
    ] {
        let changed = change(&mut list, "1", asked.clone()).unwrap();
        assert_eq!(changed, Changed { fields, status }, "{asked}");
    }
    assert_eq!(list.tasks()[0].metadata, None);
}

#[test]
fn blockers_are_open_until_they_are_done() {
    let mut list = list(2);
    change(&mut list, "2", json!({"addBlockedBy": ["1"]})).unwrap();
    assert_eq!(list.open_blockers(&list.tasks()[1]).collect::<Vec<_>>(), ["1"]);
    change(&mut list, "1", json!({"status": "completed"})).unwrap();
    assert_eq!(list.open_blockers(&list.tasks()[1]).count(), 0);
}

#[test]
fn numbers_sort_as_numbers_and_are_not_given_again_while_they_last() {
    let mut list = list(11);
    assert_eq!(list.tasks().last().unwrap().id, "11");
    let shuffled = list.tasks().iter().rev().cloned().collect();
    assert_eq!(TaskList::new(shuffled), list);
    change(&mut list, "3", json!({"status": "deleted"})).unwrap();
    assert_eq!(list.add(NewTask::default()).id, "12");
}

#[test]
fn unknown_task_fields_are_kept() {
    let text = json!({"id": "1", "subject": "s", "status": "completed", "blocks": [], "blockedBy": [], "theirs": {"x": 1}});
    let task: Task = serde_json::from_value(text).unwrap();
    assert_eq!(serde_json::to_value(&task).unwrap()["theirs"]["x"], 1);
}

#[test]
fn claimed_task_is_given_to_nobody_else_until_it_is_released() {
    let mut list = list(1);
    assert_eq!(
        change(&mut list, "1", json!({"owner": "a", "status": "in_progress"})).unwrap().fields,
        ["owner", "status"]
    );
    assert_eq!(
        change(&mut list, "1", json!({"owner": "a"})).unwrap().fields,
        [""; 0],
        "one's own claim is no news"
    );
    let taken = TaskListError::Taken { id: "1".to_owned(), owner: "a".to_owned() };
    for status in ["in_progress", "pending", "completed"] {
        assert_eq!(change(&mut list, "1", json!({"owner": "b", "status": status})), Err(taken.clone()));
    }
    change(&mut list, "1", json!({"owner": ""})).unwrap();
    assert_eq!(list.tasks()[0].owner, None);
    change(&mut list, "1", json!({"owner": "b", "status": "completed"})).unwrap();
    change(&mut list, "1", json!({"owner": "c"})).unwrap();
}

#[test]
fn number_of_a_deleted_task_is_not_given_again() {
    let mut list = list(2);
    change(&mut list, "2", json!({"status": "deleted"})).unwrap();
    assert_eq!(list.add(NewTask::default()).id, "3");
    assert_eq!(TaskList::new(Vec::new()).with_last_number(7).add(NewTask::default()).id, "8");
}
