//! The seam for whoever ends programs should we be killed outright, and so cannot end them ourselves.

/// Who ends programs should we be killed.
pub trait ProgramWatch: Send + Sync {
    /// Is told that a program is about to start. What is returned is dropped when it has ended.
    fn watch(&self) -> Box<dyn WatchedProgram>;
}

/// A program that is ended should we be killed.
pub trait WatchedProgram: Send {
    /// Returns a variable for its environment, which marks it and everything it starts.
    fn mark(&self) -> (String, String);

    /// Is told the process that it has become.
    fn started(&mut self, pid: u32);
}
