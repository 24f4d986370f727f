//! What a front end shows or offers by running something of the person's: the status line, files to mention, and how such
//! commands are run.

pub mod file_suggestions;
pub mod helper_command;
pub mod status_line;
