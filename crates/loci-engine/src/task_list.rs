//! The task list of a session, where its tools find it.

use std::io;
use std::sync::Arc;

use loci_core::session::SessionIdentity;
use loci_core::task_list::TaskList;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::TaskListDir;
use loci_tools::{MemoryTaskStore, TaskStore};

struct Stored(TaskListDir);

impl TaskStore for Stored {
    fn read(&self) -> io::Result<TaskList> {
        self.0.read()
    }

    fn edit(&self, change: &mut dyn FnMut(&mut TaskList)) -> io::Result<()> {
        self.0.edit(|list| change(list))
    }
}

/// Returns the list of a session; one that leaves nothing keeps it in memory.
pub(crate) fn task_store(home: &ConfigHome, who: &SessionIdentity, env: &Env) -> Arc<dyn TaskStore> {
    match who.is_persistent() {
        true => Arc::new(Stored(TaskListDir::for_session(home, who.id(), env))),
        false => Arc::new(MemoryTaskStore::default()),
    }
}
