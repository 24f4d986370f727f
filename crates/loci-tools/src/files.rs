//! What the tools that read, change and search files share, from a path the model wrote to the bytes on disk.
//!
//! A call goes down this list: `place` reads a path and keeps both spellings, `disk_file` opens what is a plain file,
//! `text_file` decodes it, `editor_file` asks the editor what it has of it, `change` holds the steps of Edit, Write and NotebookEdit, `safe_write` replaces the file and
//! `patch` shows the difference. `walk` goes through directories for Glob and Grep; `file_state` is what the model has
//! read, without which nothing is edited.

pub(crate) mod change;
pub(crate) mod disk_file;
pub(crate) mod editor_file;
pub(crate) mod file_state;
pub(crate) mod patch;
pub(crate) mod safe_write;
pub(crate) mod text_file;
pub(crate) mod walk;
pub(crate) mod workspace;
