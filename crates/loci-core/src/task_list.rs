//! The task list of a conversation: what is to be done, in which order, and how far it is.
//!
//! Tasks are numbered from one and keep their numbers. "A blocks B" is held on both sides, so that either file says
//! it; a task that goes leaves no trace in the others.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One task, as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its number, as text.
    pub id: String,
    /// What is to be done, in a few words.
    pub subject: String,
    /// All there is to know about it.
    #[serde(default)]
    pub description: String,
    /// What is shown while it is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// Who does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How far it is.
    #[serde(default)]
    pub status: TaskStatus,
    /// Tasks that wait for this one.
    #[serde(default)]
    pub blocks: Vec<String>,
    /// Tasks that this one waits for.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    /// Whatever else was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Fields that are none of ours.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

impl TaskStatus {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// A task to be made.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTask {
    /// What is to be done, in a few words.
    pub subject: String,
    /// All there is to know about it.
    pub description: String,
    /// What is shown while it is being done.
    pub active_form: Option<String>,
    /// Whatever else is to be noted.
    pub metadata: Option<Map<String, Value>>,
}

/// One line of a list that is written whole, by TodoWrite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What is shown while it is being done.
    #[serde(default)]
    pub active_form: String,
}

impl Todo {
    /// Returns it as a task of this number.
    pub fn to_task(&self, number: usize) -> Task {
        Task {
            id: number.to_string(),
            subject: self.content.clone(),
            description: String::new(),
            active_form: Some(self.active_form.clone()).filter(|text| !text.is_empty()),
            owner: None,
            status: self.status,
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata: None,
            rest: Map::new(),
        }
    }
}

/// What is to become of a task; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskChange {
    /// A new subject.
    pub subject: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// Another text to show while it is being done.
    pub active_form: Option<String>,
    /// Another state, or the end of it.
    pub status: Option<NextStatus>,
    /// Another owner.
    pub owner: Option<String>,
    /// Tasks that shall wait for it.
    pub add_blocks: Vec<String>,
    /// Tasks it shall wait for.
    pub add_blocked_by: Vec<String>,
    /// Notes to add; `null` takes one away.
    pub metadata: Option<Map<String, Value>>,
}

/// The state a change asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextStatus {
    /// Not begun after all.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
    /// Not wanted any more.
    Deleted,
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The fields that are different now, by the names that files have for them.
    pub fields: Vec<&'static str>,
    /// The states before and after, where they differ.
    pub status: Option<(&'static str, &'static str)>,
}

/// Why a list was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskListError {
    /// There is no such task.
    #[error("There is no task {id}; {known}")]
    Unknown {
        /// The id that was asked for.
        id: String,
        /// Which there are.
        known: String,
    },
    /// Somebody else does it.
    #[error("Task {id} is taken by {owner}; only when it is released (an empty owner) can another take it")]
    Taken {
        /// The task.
        id: String,
        /// Who does it.
        owner: String,
    },
    /// Tasks would wait for each other.
    #[error("Task {id} cannot wait for task {other}, which waits for it")]
    Circle {
        /// The task.
        id: String,
        /// The one it would wait for.
        other: String,
    },
}

/// A list of tasks, in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskList {
    tasks: Vec<Task>,
    /// The highest number that was ever given; none is given twice.
    last_number: u64,
}

impl TaskList {
    /// Makes a list of tasks in any order. Links that one side alone knows of are mended, those to tasks that are not
    /// there are dropped.
    pub fn new(mut tasks: Vec<Task>) -> Self {
        tasks.sort_by_key(number);
        let ids: Vec<String> = tasks.iter().map(|task| task.id.clone()).collect();
        let mut links = Vec::new();
        for task in &mut tasks {
            task.blocks.retain(|other| ids.contains(other));
            task.blocked_by.retain(|other| ids.contains(other));
            links.extend(task.blocks.iter().map(|other| (task.id.clone(), other.clone())));
            links.extend(task.blocked_by.iter().map(|other| (other.clone(), task.id.clone())));
        }
        let last_number = tasks.last().map_or(0, number);
        let mut list = Self { tasks, last_number };
        for (first, then) in links {
            list.add_link(&first, &then);
        }
        list
    }

    /// Takes note of a number that was given to a task which is gone.
    pub fn with_last_number(self, number: u64) -> Self {
        Self { last_number: self.last_number.max(number), ..self }
    }

    /// Returns the highest number that was ever given.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Returns the tasks in order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Finds a task. The `#` that people write before the number does no harm.
    pub fn find(&self, id: &str) -> Result<&Task, TaskListError> {
        let wanted = id.trim().trim_start_matches('#');
        self.tasks.iter().find(|task| task.id == wanted).ok_or_else(|| {
            let ids: Vec<&str> = self.tasks.iter().map(|task| task.id.as_str()).collect();
            let known = match ids.is_empty() {
                true => "the list is empty".to_owned(),
                false => format!("there are: {}", ids.join(", ")),
            };
            TaskListError::Unknown { id: id.to_owned(), known }
        })
    }

    /// Returns the tasks this one still waits for.
    pub fn open_blockers<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a str> {
        let is_open = |id: &&String| {
            self.tasks.iter().any(|other| other.id == **id && other.status != TaskStatus::Completed)
        };
        task.blocked_by.iter().filter(is_open).map(String::as_str)
    }

    /// Tells a task in a line.
    pub fn line(&self, task: &Task) -> String {
        let owner = task.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
        let blockers: Vec<&str> = self.open_blockers(task).collect();
        let waits = match blockers.is_empty() {
            true => String::new(),
            false => format!(", waits for {}", blockers.join(", ")),
        };
        format!("{}. [{}{waits}] {}{owner}", task.id, task.status.as_str(), task.subject)
    }

    /// Adds a task and returns it.
    pub fn add(&mut self, new: NewTask) -> &Task {
        self.last_number += 1;
        let id = self.last_number;
        let task = Task {
            id: id.to_string(),
            subject: new.subject,
            description: new.description,
            active_form: new.active_form,
            owner: None,
            status: TaskStatus::Pending,
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata: new.metadata,
            rest: Map::new(),
        };
        let at = self.tasks.len();
        self.tasks.push(task);
        &self.tasks[at]
    }

    /// Changes a task; nothing is changed when something cannot be.
    pub fn change(&mut self, id: &str, change: TaskChange) -> Result<Changed, TaskListError> {
        let id = self.find(id)?.id.clone();
        if change.status == Some(NextStatus::Deleted) {
            return Ok(self.delete(&id));
        }
        self.check_claim(&id, &change)?;
        let mut next = self.clone();
        let mut fields = next.link(&id, &change)?;
        let Some(task) = next.tasks.iter_mut().find(|task| task.id == id) else {
            return Ok(Changed { fields, status: None });
        };
        let before = task.status;
        fields.extend(apply(task, change));
        let after = task.status;
        let status = (before != after).then(|| (before.as_str(), after.as_str()));
        *self = next;
        Ok(Changed { fields, status })
    }

    /// Refuses to give a task to another owner while one has it: of several who claim it at once, one does.
    fn check_claim(&self, id: &str, change: &TaskChange) -> Result<(), TaskListError> {
        let task = self.find(id)?;
        let wanted = change.owner.as_deref().map(str::trim).filter(|owner| !owner.is_empty());
        match (&task.owner, wanted) {
            (Some(owner), Some(wanted)) if owner != wanted && task.status != TaskStatus::Completed => {
                Err(TaskListError::Taken { id: id.to_owned(), owner: owner.clone() })
            }
            _ => Ok(()),
        }
    }

    fn delete(&mut self, id: &str) -> Changed {
        let before = self.find(id).map_or("pending", |task| task.status.as_str());
        self.tasks.retain(|task| task.id != id);
        for task in &mut self.tasks {
            task.blocks.retain(|other| other != id);
            task.blocked_by.retain(|other| other != id);
        }
        Changed { fields: vec!["deleted"], status: Some((before, "deleted")) }
    }

    /// Records who waits for whom, on both sides.
    fn link(&mut self, id: &str, change: &TaskChange) -> Result<Vec<&'static str>, TaskListError> {
        let mut fields = Vec::new();
        for (others, is_blocker, name) in
            [(&change.add_blocks, true, "blocks"), (&change.add_blocked_by, false, "blockedBy")]
        {
            let mut is_new = false;
            for other in others {
                let other = self.find(other)?.id.clone();
                let (first, then) = if is_blocker { (id, other.as_str()) } else { (other.as_str(), id) };
                if self.waits_for(first, then) {
                    return Err(TaskListError::Circle { id: then.to_owned(), other: first.to_owned() });
                }
                is_new |= self.add_link(first, then);
            }
            if is_new {
                fields.push(name);
            }
        }
        Ok(fields)
    }

    fn add_link(&mut self, first: &str, then: &str) -> bool {
        let mut is_new = false;
        for task in &mut self.tasks {
            let (side, other) = match task.id.as_str() {
                id if id == first => (&mut task.blocks, then),
                id if id == then => (&mut task.blocked_by, first),
                _ => continue,
            };
            if !side.iter().any(|known| known == other) {
                side.push(other.to_owned());
                is_new = true;
            }
        }
        is_new
    }

    /// Returns true when `task` is `other`, or waits for it over whatever others.
    fn waits_for(&self, task: &str, other: &str) -> bool {
        let (mut seen, mut open) = (Vec::new(), vec![task]);
        while let Some(id) = open.pop() {
            if id == other {
                return true;
            }
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let blockers = self.tasks.iter().filter(|task| task.id == id).flat_map(|task| &task.blocked_by);
            open.extend(blockers.map(String::as_str));
        }
        false
    }
}

/// Sets the plain fields and names those that changed.
fn apply(task: &mut Task, change: TaskChange) -> Vec<&'static str> {
    let mut fields = Vec::new();
    let mut set = |is_new: bool, name| {
        if is_new {
            fields.push(name);
        }
    };
    set(replace(&mut task.subject, change.subject), "subject");
    set(replace(&mut task.description, change.description), "description");
    set(replace(&mut task.active_form, change.active_form.map(Some)), "activeForm");
    let owner = change.owner.map(|owner| Some(owner.trim().to_owned()).filter(|owner| !owner.is_empty()));
    set(replace(&mut task.owner, owner), "owner");
    set(replace(&mut task.status, change.status.and_then(NextStatus::to_status)), "status");
    if let Some(notes) = change.metadata {
        let mut metadata = task.metadata.clone().unwrap_or_default();
        for (key, value) in notes {
            if value.is_null() {
                metadata.shift_remove(&key);
            } else {
                metadata.insert(key, value);
            }
        }
        let metadata = (!metadata.is_empty()).then_some(metadata);
        set(replace(&mut task.metadata, Some(metadata)), "metadata");
    }
    fields
}

fn replace<T: PartialEq>(field: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) if *field != value => {
            *field = value;
            true
        }
        _ => false,
    }
}

impl NextStatus {
    fn to_status(self) -> Option<TaskStatus> {
        match self {
            Self::Pending => Some(TaskStatus::Pending),
            Self::InProgress => Some(TaskStatus::InProgress),
            Self::Completed => Some(TaskStatus::Completed),
            Self::Deleted => None,
        }
    }
}

/// Numbers sort as numbers; what is none comes first.
fn number(task: &Task) -> u64 {
    task.id.parse().unwrap_or(0)
}
