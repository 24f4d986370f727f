//! The task list of a conversation: what the model noted to be done, and the tools that write and read it.
//!
//! Not to be mixed up with the shell tasks of `background_tasks`, which are running commands.

pub(crate) mod task_create;
pub(crate) mod task_get;
pub(crate) mod task_list;
pub(crate) mod task_store;
pub(crate) mod task_update;
pub(crate) mod todo_write;
