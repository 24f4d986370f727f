//! Task lists on disk: `<config home>/tasks/<list>/<n>.json`, a file a task, changed under `.lock`.
//!
//! The format is shared: fields that are none of ours stay. A change that was cut off in the middle is mended at the
//! next look, since each side of a link says it. A file that cannot be read is left out, and set aside before its
//! number could be given again.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::ids::SessionId;
use loci_core::task_list::{Task, TaskList};
use loci_stdx::{Env, FileLock, WriteOptions, create_private_dir_all, read_regular, write_atomic};

use crate::layout::ConfigHome;

/// How long to wait for other processes that change the list.
const PATIENCE: Duration = Duration::from_secs(10);
/// The variable that names a list several sessions share.
const LIST_ID: &str = "CLAUDE_CODE_TASK_LIST_ID";
const LONGEST_NAME: usize = 64;
/// Holds the highest number that was given, once the task that had it is gone.
const HIGH_WATERMARK: &str = ".highwatermark";

/// A task list in its directory, which exists from the first task on.
#[derive(Debug, Clone)]
pub struct TaskListDir {
    dir: PathBuf,
}

impl TaskListDir {
    /// Names the list of a session, or the one that the environment says it shares.
    pub fn for_session(home: &ConfigHome, id: &SessionId, env: &Env) -> Self {
        let shared = env.vars.non_empty(LIST_ID).filter(|name| is_task_list_name(name));
        Self { dir: home.tasks_dir(shared.unwrap_or(id.as_str())) }
    }

    /// Returns the tasks as they are now.
    pub fn read(&self) -> io::Result<TaskList> {
        let mut tasks = Vec::new();
        for file in self.files()? {
            tasks.extend(read_task(&file)?);
        }
        Ok(TaskList::new(tasks).with_last_number(self.high_watermark()))
    }

    /// Returns the highest number of a task that is gone, where one is.
    fn high_watermark(&self) -> u64 {
        let text = read_regular(self.dir.join(HIGH_WATERMARK)).unwrap_or_default();
        String::from_utf8_lossy(&text).trim().parse().unwrap_or(0)
    }

    /// Changes the list while nobody else does.
    pub fn edit(&self, change: impl FnOnce(&mut TaskList)) -> io::Result<()> {
        create_private_dir_all(&self.dir)?;
        let _lock = FileLock::acquire(&self.dir.join(".lock"), PATIENCE).map_err(io::Error::other)?;
        self.set_broken_aside()?;
        let before = self.read()?;
        let mut after = before.clone();
        change(&mut after);
        for task in after.tasks().iter().filter(|task| !before.tasks().contains(task)) {
            let text = serde_json::to_vec_pretty(task)?;
            let file = self.dir.join(format!("{}.json", task.id));
            write_atomic(&file, &text, &WriteOptions::private()).map_err(io::Error::other)?;
        }
        let is_held = |number: u64| after.tasks().iter().any(|task| task.id == number.to_string());
        if after.last_number() > self.high_watermark() && !is_held(after.last_number()) {
            // First: a number that is free for an instant could be given again.
            let text = after.last_number().to_string();
            let file = self.dir.join(HIGH_WATERMARK);
            write_atomic(&file, text.as_bytes(), &WriteOptions::private()).map_err(io::Error::other)?;
        }
        let is_gone = |task: &&Task| !after.tasks().iter().any(|other| other.id == task.id);
        for task in before.tasks().iter().filter(is_gone) {
            fs::remove_file(self.dir.join(format!("{}.json", task.id)))?;
        }
        Ok(())
    }

    /// Returns the files that hold tasks by their names.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if number(&path).is_some() {
                files.push(path);
            }
        }
        Ok(files)
    }

    fn set_broken_aside(&self) -> io::Result<()> {
        for file in self.files()? {
            if read_task(&file)?.is_none() && file.exists() {
                fs::rename(&file, file.with_extension("json.corrupted"))?;
            }
        }
        Ok(())
    }
}

/// What is known of a task list without changing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskListState {
    /// What it is called: a session's id, or a name that several share.
    pub name: String,
    /// How many tasks it has.
    pub n_tasks: usize,
    /// Files that hold no task, whatever their names say, and those that were set aside for that.
    pub broken: Vec<PathBuf>,
    /// Why it cannot be changed, where it cannot.
    pub lock_problem: Option<String>,
}

/// Looks at all task lists there are, by name.
pub fn survey_task_lists(home: &ConfigHome) -> Vec<TaskListState> {
    let dirs = fs::read_dir(home.root().join("tasks")).into_iter().flatten().flatten();
    let dirs = dirs.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
    let mut lists: Vec<TaskListState> = dirs.map(|entry| survey(entry.path())).collect();
    lists.sort_by(|a, b| a.name.cmp(&b.name));
    lists
}

fn survey(dir: PathBuf) -> TaskListState {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let lock = dir.join(".lock");
    let lock_problem = match lock.symlink_metadata() {
        // What is held is held by a process that lives: the system lets go of the others'.
        Ok(metadata) if metadata.is_file() => None,
        Ok(_) => Some(format!("`{}` is no file, so nobody can lock the list", lock.display())),
        Err(_) => None,
    };
    let list = TaskListDir { dir: dir.clone() };
    let files = list.files().unwrap_or_default();
    let (whole, mut broken): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| matches!(read_task(file), Ok(Some(_))));
    let aside = fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
    broken.extend(aside.filter(|path| path.extension().is_some_and(|it| it == "corrupted")));
    broken.sort();
    TaskListState { name, n_tasks: whole.len(), broken, lock_problem }
}

/// Gives a fork the tasks of the session it comes from; returns how many there are.
pub fn copy_tasks(home: &ConfigHome, from: &SessionId, to: &SessionId) -> io::Result<usize> {
    let source = TaskListDir { dir: home.tasks_dir(from.as_str()) };
    let tasks = source.read()?;
    if !tasks.tasks().is_empty() {
        TaskListDir { dir: home.tasks_dir(to.as_str()) }.edit(|list| *list = tasks.clone())?;
    }
    Ok(tasks.tasks().len())
}

/// Reads a task; one that is gone, or is none, is no task.
fn read_task(file: &Path) -> io::Result<Option<Task>> {
    let bytes = match read_regular(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let task: Option<Task> = serde_json::from_slice(&bytes).ok();
    // The name is what the file is found by again.
    Ok(task.filter(|task| number(file).is_some_and(|name| name == task.id)))
}

/// Returns the number in the name of a task's file.
fn number(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?.strip_suffix(".json")?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// Tells whether a list that several sessions share can have a name: it is that of a directory.
pub fn is_task_list_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
