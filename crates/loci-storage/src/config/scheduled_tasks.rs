//! The prompts for later that a project keeps: `.claude/scheduled_tasks.json`. What its entries mean is in
//! `loci_core::schedule`; here they are JSON, and entries and keys that we do not know are kept.
//!
//! Neither the file nor its directory may be a symlink: it is read and written by itself, without a question. Every change is
//! made under a lock in the config home.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_stdx::{FileLock, WriteOptions, write_atomic};
use serde_json::{Map, Value};

use super::definition_files::read_limited;
use crate::layout::ConfigHome;

/// How long another process is waited for that changes the file.
const PATIENCE: Duration = Duration::from_millis(500);

/// The file of a project.
#[derive(Debug, Clone)]
pub struct ScheduledTasksFile {
    path: PathBuf,
    lock: PathBuf,
}

impl ScheduledTasksFile {
    /// Names the file of a project.
    pub fn new(home: &ConfigHome, project: &Path) -> Self {
        let slug = home.project_dir(project);
        let slug = slug.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self {
            path: project.join(".claude").join("scheduled_tasks.json"),
            lock: home.loci_dir().join("schedules").join(format!("{slug}.lock")),
        }
    }

    /// Returns its entries; none where there is no file.
    pub fn read(&self) -> io::Result<Vec<Value>> {
        tasks_of(&self.fields()?)
    }

    /// Changes its entries, alone.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Vec<Value>) -> T) -> io::Result<T> {
        let _lock = FileLock::acquire(&self.lock, PATIENCE).map_err(io::Error::other)?;
        let mut fields = self.fields()?;
        let before = tasks_of(&fields)?;
        let mut tasks = before.clone();
        let done = change(&mut tasks);
        if tasks != before {
            fields.insert("tasks".to_owned(), Value::Array(tasks));
            self.write(&Value::Object(fields))?;
        }
        Ok(done)
    }

    fn fields(&self) -> io::Result<Map<String, Value>> {
        if !self.is_there()? {
            return Ok(Map::new());
        }
        let broken = |why: String| io::Error::other(format!("`{}` {why}", self.path.display()));
        let text = read_limited(&self.path).map_err(&broken)?;
        match serde_json::from_str(&text) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Err(broken("is no JSON object".to_owned())),
            Err(error) => Err(broken(format!("is no JSON: {error}"))),
        }
    }

    /// Tells whether the file is there, and itself no link, nor its directory.
    fn is_there(&self) -> io::Result<bool> {
        let dir = self.path.parent().unwrap_or(&self.path);
        for path in [dir, &self.path] {
            match path.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    let why = format!("`{}` is a symlink, which is not followed here", path.display());
                    return Err(io::Error::other(why));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write(&self, value: &Value) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
        text.push('\n');
        write_atomic(&self.path, text.as_bytes(), &WriteOptions::private()).map_err(io::Error::other)
    }
}

fn tasks_of(fields: &Map<String, Value>) -> io::Result<Vec<Value>> {
    match fields.get("tasks") {
        None => Ok(Vec::new()),
        Some(Value::Array(tasks)) => Ok(tasks.clone()),
        Some(_) => Err(io::Error::other("`tasks` of `.claude/scheduled_tasks.json` is no list")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use loci_stdx::Env;
    use serde_json::json;

    use super::*;

    fn file(root: &Path) -> ScheduledTasksFile {
        let env = Env::for_test(root.join("home"), root);
        ScheduledTasksFile::new(&ConfigHome::from_env(&env), &root.join("p"))
    }

    #[test]
    fn unknown_entries_and_keys_survive_a_change() {
        let root = tempfile::tempdir().unwrap();
        let file = file(root.path());
        assert!(file.read().unwrap().is_empty());
        fs::create_dir_all(root.path().join("p/.claude")).unwrap();
        let path = root.path().join("p/.claude/scheduled_tasks.json");
        fs::write(&path, r#"{"version": 3, "tasks": [{"odd": true}]}"#).unwrap();
        file.edit(|tasks| tasks.push(json!({"id": "a"}))).unwrap();
        let kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(kept, json!({"version": 3, "tasks": [{"odd": true}, {"id": "a"}]}));
    }

    #[test]
    fn broken_file_is_neither_read_nor_replaced() {
        let root = tempfile::tempdir().unwrap();
        let file = file(root.path());
        fs::create_dir_all(root.path().join("p/.claude")).unwrap();
        let path = root.path().join("p/.claude/scheduled_tasks.json");
        for text in ["{\"tasks\": [", "[]", "{\"tasks\": {}}"] {
            fs::write(&path, text).unwrap();
            assert!(file.read().is_err() && file.edit(Vec::clear).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn link_is_refused_in_both_places() {
        let root = tempfile::tempdir().unwrap();
        let file = file(root.path());
        fs::create_dir_all(root.path().join("p/.claude")).unwrap();
        fs::write(root.path().join("elsewhere"), r#"{"tasks": []}"#).unwrap();
        symlink(root.path().join("elsewhere"), root.path().join("p/.claude/scheduled_tasks.json")).unwrap();
        let refused = |file: &ScheduledTasksFile| {
            let edited = file.edit(|tasks| tasks.push(json!({}))).unwrap_err().to_string();
            file.read().unwrap_err().to_string().contains("symlink") && edited.contains("symlink")
        };
        assert!(refused(&file));
        fs::remove_dir_all(root.path().join("p/.claude")).unwrap();
        fs::create_dir(root.path().join("other")).unwrap();
        symlink(root.path().join("other"), root.path().join("p/.claude")).unwrap();
        assert!(refused(&file));
        assert_eq!(fs::read_dir(root.path().join("other")).unwrap().count(), 0);
    }
}
