//! The task list of a session, where its tools find it. Whoever changes it tells front ends.

use std::io;
use std::sync::Arc;

use loci_core::session::SessionIdentity;
use loci_core::task_list::TaskList;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::TaskListDir;
use loci_tools::{MemoryTaskStore, TaskStore};

use crate::event::{EngineEvent, EventSink};

struct Stored(TaskListDir);

impl TaskStore for Stored {
    fn read(&self) -> io::Result<TaskList> {
        self.0.read()
    }

    fn edit(&self, change: &mut dyn FnMut(&mut TaskList)) -> io::Result<()> {
        self.0.edit(|list| change(list))
    }
}

/// A list whose changes are told.
struct ObservedTaskStore {
    store: Box<dyn TaskStore>,
    events: EventSink,
}

impl TaskStore for ObservedTaskStore {
    fn read(&self) -> io::Result<TaskList> {
        self.store.read()
    }

    fn edit(&self, change: &mut dyn FnMut(&mut TaskList)) -> io::Result<()> {
        let mut after = None;
        self.store.edit(&mut |list| {
            change(list);
            after = Some(list.tasks().to_vec());
        })?;
        after.into_iter().for_each(|tasks| self.events.send(EngineEvent::TasksChanged(tasks)));
        Ok(())
    }
}

/// Returns the list of a session; one that leaves nothing keeps it in memory.
pub(crate) fn task_store(
    home: &ConfigHome,
    who: &SessionIdentity,
    env: &Env,
    events: EventSink,
) -> Arc<dyn TaskStore> {
    let store: Box<dyn TaskStore> = match who.is_persistent() {
        true => Box::new(Stored(TaskListDir::for_session(home, who.id(), env))),
        false => Box::new(MemoryTaskStore::default()),
    };
    Arc::new(ObservedTaskStore { store, events })
}
