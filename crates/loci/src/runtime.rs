//! The runtime that a session's tasks share.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loci_app::UserError;
use tokio::runtime::{Builder, Runtime};

/// Starts a runtime whose tasks take turns on one thread, while the caller's own thread waits for signals and prints.
///
/// The tasks of a session mostly wait for each other, and a task that wakes another on its own thread costs next to
/// nothing, while waking a thread takes about as long as all that a turn computes. What blocks or computes for long runs on
/// the threads of `spawn_blocking`.
pub(crate) fn of_session() -> Result<Runtime, UserError> {
    with_threads(1)
}

/// Starts a runtime for many clients at once.
#[cfg(feature = "team-server")]
pub(crate) fn of_server() -> Result<Runtime, UserError> {
    with_threads(2)
}

fn with_threads(n: usize) -> Result<Runtime, UserError> {
    // The library panics where the system gives it no thread or no socket for signals, and returns what else goes wrong.
    // `panics` keeps those panics to itself.
    let built =
        catch_unwind(AssertUnwindSafe(|| Builder::new_multi_thread().worker_threads(n).enable_all().build()));
    match built {
        Ok(built) => built.map_err(|error| UserError::new(format!("The runtime cannot start: {error}"))),
        Err(_) => Err(crate::panics::scarcity("The runtime cannot start")),
    }
}
