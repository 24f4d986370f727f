//! Where the task list lies, as the task tools see it.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use loci_core::task_list::TaskList;
use loci_core::tool::ToolOutcome;

use crate::Host;

/// Keeps a task list. Calls may block.
pub trait TaskStore: Send + Sync {
    /// Returns the list as it is now.
    fn read(&self) -> io::Result<TaskList>;

    /// Changes the list while nobody else does.
    fn edit(&self, change: &mut dyn FnMut(&mut TaskList)) -> io::Result<()>;
}

/// A list that ends with the process.
#[derive(Debug, Default)]
pub struct MemoryTaskStore(Mutex<TaskList>);

impl TaskStore for MemoryTaskStore {
    fn read(&self) -> io::Result<TaskList> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn edit(&self, change: &mut dyn FnMut(&mut TaskList)) -> io::Result<()> {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

/// Reads the list of a session, away from the threads that must not wait.
pub(crate) async fn read(host: &dyn Host) -> Result<TaskList, ToolOutcome> {
    let store = host.task_store();
    away(move || store.read()).await
}

/// Changes the list of a session and returns what the change gives.
pub(crate) async fn edit<T: Send + 'static>(
    host: &dyn Host,
    change: impl FnOnce(&mut TaskList) -> T + Send + 'static,
) -> Result<T, ToolOutcome> {
    let store: Arc<dyn TaskStore> = host.task_store();
    let given = away(move || {
        let (mut change, mut given) = (Some(change), None);
        store.edit(&mut |list| given = change.take().map(|change| change(list)))?;
        Ok(given)
    });
    given.await?.ok_or_else(|| ToolOutcome::error("The task list was not changed: it could not be read."))
}

async fn away<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ToolOutcome> {
    let failed = |why: String| ToolOutcome::error(format!("The task list cannot be used: {why}"));
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}
