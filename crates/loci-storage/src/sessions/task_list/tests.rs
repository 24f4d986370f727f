use super::*;
use loci_core::task_list::NewTask;
use std::thread;

fn id(n: u32) -> SessionId {
    SessionId::parse(&format!("0a0a0a0a-0001-4000-8000-{n:012}")).unwrap()
}

fn new(subject: &str) -> NewTask {
    NewTask { subject: subject.to_owned(), ..NewTask::default() }
}

struct World {
    _root: tempfile::TempDir,
    env: Env,
    home: ConfigHome,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let env = Env::for_test(root.path(), root.path());
        Self { _root: root, home: ConfigHome::from_env(&env), env }
    }

    fn list(&self, n: u32) -> TaskListDir {
        TaskListDir::for_session(&self.home, &id(n), &self.env)
    }
}

fn subjects(list: &TaskListDir) -> Vec<String> {
    list.read().unwrap().tasks().iter().map(|task| format!("{} {}", task.id, task.subject)).collect()
}

#[test]
fn tasks_are_files_in_the_shared_format() {
    let world = World::new();
    let list = world.list(1);
    assert_eq!(subjects(&list), [""; 0]);
    assert!(!world.home.tasks_dir(id(1).as_str()).exists(), "reading makes nothing");
    list.edit(|list| drop(list.add(new("one")).clone())).unwrap();
    let file = world.home.tasks_dir(id(1).as_str()).join("1.json");
    let text = fs::read_to_string(&file).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "subject", "description", "status", "blocks", "blockedBy"]);
    fs::write(&file, text.replace("{\n", "{\n  \"theirs\": 1,\n")).unwrap();
    list.edit(|list| drop(list.change("1", serde_json::from_str(r#"{"status": "completed"}"#).unwrap())))
        .unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"theirs\": 1") && text.contains("\"completed\""), "{text}");
    list.edit(|list| drop(list.change("1", serde_json::from_str(r#"{"status": "deleted"}"#).unwrap())))
        .unwrap();
    assert!(!file.exists());
}

#[test]
fn a_broken_file_is_set_aside_and_costs_only_itself() {
    let world = World::new();
    let list = world.list(1);
    list.edit(|list| {
        list.add(new("one"));
        list.add(new("two"));
    })
    .unwrap();
    let dir = world.home.tasks_dir(id(1).as_str());
    fs::write(dir.join("2.json"), "{\"id\": \"2\", \"subj").unwrap();
    fs::write(dir.join("3.json"), "{\"id\": \"../../evil\", \"subject\": \"x\"}").unwrap();
    assert_eq!(subjects(&list), ["1 one"]);
    list.edit(|list| drop(list.add(new("new")).clone())).unwrap();
    assert_eq!(subjects(&list), ["1 one", "2 new"]);
    assert!(fs::read_to_string(dir.join("2.json.corrupted")).unwrap().ends_with("subj"));
    assert!(dir.join("3.json.corrupted").exists());
}

#[test]
fn one_sided_task_dependency_is_repaired() {
    let world = World::new();
    let list = world.list(1);
    list.edit(|list| {
        list.add(new("one"));
        list.add(new("two"));
        drop(list.change("1", serde_json::from_str(r#"{"addBlocks": ["2"]}"#).unwrap()));
    })
    .unwrap();
    let file = world.home.tasks_dir(id(1).as_str()).join("2.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"1\"", "\"7\"")).unwrap();
    let tasks = list.read().unwrap();
    assert_eq!(
        (tasks.tasks()[1].blocked_by.clone(), tasks.tasks()[0].blocks.clone()),
        (vec!["1".to_owned()], vec!["2".to_owned()])
    );
}

#[test]
fn concurrent_task_list_writers_lose_nothing() {
    let world = World::new();
    thread::scope(|scope| {
        for n in 0..8 {
            let list = world.list(1);
            scope.spawn(move || {
                for m in 0..10 {
                    list.edit(|list| drop(list.add(new(&format!("{n}-{m}"))).clone())).unwrap();
                }
            });
        }
    });
    let tasks = world.list(1).read().unwrap();
    let ids: Vec<usize> = tasks.tasks().iter().map(|task| task.id.parse().unwrap()).collect();
    assert_eq!(ids, (1..=80).collect::<Vec<_>>());
}

#[test]
fn a_fork_has_a_list_of_its_own() {
    let world = World::new();
    assert_eq!(copy_tasks(&world.home, &id(1), &id(2)).unwrap(), 0);
    assert!(!world.home.tasks_dir(id(2).as_str()).exists());
    world.list(1).edit(|list| drop(list.add(new("one")).clone())).unwrap();
    assert_eq!(copy_tasks(&world.home, &id(1), &id(2)).unwrap(), 1);
    world.list(2).edit(|list| drop(list.add(new("two")).clone())).unwrap();
    assert_eq!((subjects(&world.list(1)).len(), subjects(&world.list(2)).len()), (1, 2));
}

#[test]
fn sessions_may_share_a_list_by_a_plain_name() {
    let mut world = World::new();
    for (name, expected) in [("team-1", "team-1"), ("../x", id(1).as_str()), ("", id(1).as_str())] {
        world.env.vars = [(LIST_ID, name)].into_iter().collect();
        assert_eq!(world.list(1).dir, world.home.tasks_dir(expected), "{name}");
    }
}

#[test]
fn survey_names_what_is_broken_and_changes_nothing() {
    let world = World::new();
    assert_eq!(survey_task_lists(&world.home), []);
    world.list(1).edit(|list| drop(list.add(new("a")).clone())).unwrap();
    let dir = world.home.tasks_dir(id(1).as_str());
    fs::write(dir.join("7.json"), "{").unwrap();
    fs::write(dir.join("3.json.corrupted"), "{").unwrap();
    let other = world.home.tasks_dir("shared");
    fs::create_dir_all(other.join(".lock")).unwrap();
    let found = survey_task_lists(&world.home);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].n_tasks, found[0].lock_problem.clone()), (1, None));
    assert_eq!(found[0].broken, [dir.join("3.json.corrupted"), dir.join("7.json")]);
    assert!(found[1].lock_problem.as_ref().unwrap().contains("is no file"), "{found:?}");
    assert!(dir.join("7.json").exists());
}
