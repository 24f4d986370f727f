//! Background tasks of a session: commands that run on while the conversation goes on.

/// The tasks of one session.
#[derive(Debug, Default)]
pub struct Tasks {}
