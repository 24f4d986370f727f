//! Following one background task to its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Shared, ShellTaskStatus};
use crate::bash::capture::Capture;
use crate::bash::run::{End, MAX_OUTPUT_BYTES, Running, Watch, exit_code};

/// Where the end of a task is told.
pub(super) struct TaskEnd {
    pub(super) id: String,
    pub(super) status: watch::Sender<ShellTaskStatus>,
    pub(super) shared: Arc<Shared>,
}

impl TaskEnd {
    fn tell(&self, status: ShellTaskStatus) {
        self.shared.state().finished.push(self.id.clone());
        self.status.send_replace(status);
        self.shared.n_finished.send_modify(|n_finished| *n_finished += 1);
    }
}

/// Writes a task's output to its file until it ends or is stopped. What the command leaves behind in the
/// background is followed on, after its end has been told.
pub(super) async fn follow(
    mut running: Running,
    mut capture: Capture,
    stop: CancellationToken,
    end: TaskEnd,
) {
    let nowhere = || Err::<PathBuf, _>(io::ErrorKind::Unsupported.into());
    let watch = Watch {
        deadline: None,
        cancel: &stop,
        max_bytes: MAX_OUTPUT_BYTES,
        spill: &nowhere,
        progress: &|_| {},
    };
    let why = match running.follow(&mut capture, &watch).await {
        End::Exited(status) => {
            end.tell(match exit_code(status) {
                0 => ShellTaskStatus::Completed,
                code => ShellTaskStatus::Failed(code),
            });
            return running.outlive(Some(&mut capture), &stop).await;
        }
        End::TimedOut | End::Cancelled => "stopped by request".to_owned(),
        End::TooMuch => format!("it wrote more than {MAX_OUTPUT_BYTES} bytes of output"),
        End::Lost(error) => format!("it was lost: {error}"),
    };
    running.kill(&mut capture, &watch).await;
    end.tell(ShellTaskStatus::Killed(why));
}
