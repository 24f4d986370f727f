//! Built-in tools, one file each with the text the model reads beside it.
//!
//! A tool sees its arguments and a [`Host`]; never the engine, never session storage. Before it runs, its
//! [`Tool::effects`] say what the call would do, and that is what the permission engine judges.

mod change;
mod disk_file;
mod file_state;
mod host;
mod input;
mod patch;
mod persisted;
mod place;
mod safe_write;
mod task_store;
mod tasks;
mod text_file;
mod tool;
mod toolbox;
mod walk;

mod bash;
mod edit;
mod glob;
mod grep;
mod notebook_edit;
mod read;
mod recall;
mod task_create;
mod task_get;
mod task_list;
mod task_output;
mod task_stop;
mod task_update;
mod write;

#[cfg(test)]
mod testing;

pub use file_state::{FileState, FileStates};
pub use host::{Host, HostFuture, ToolProgress};
pub use input::InputCheck;
pub use persisted::persisted_output;
pub use place::{Place, real_path};
pub use recall::RecordDirs;
pub use task_store::{MemoryTaskStore, TaskStore};
pub use tasks::{TaskStatus, TaskView, Tasks};
pub use tool::{Tool, ToolCall, ToolFuture};
pub use toolbox::Toolbox;
