//! Following one background command to its end.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{BackgroundStatus, TaskHandle};
use crate::bash::capture::{Capture, Stream};
use crate::bash::run::{End, MAX_OUTPUT_BYTES, Running, Watch, exit_code};
use crate::bash::sandbox_note::of_background;

/// Writes a command's output to its file until it ends or is stopped. What it leaves behind in the background is
/// followed on, after its end has been told.
pub(super) async fn follow(
    mut running: Running,
    mut capture: Capture,
    stop: CancellationToken,
    task: TaskHandle,
    limit: Option<Duration>,
) {
    let nowhere = || Err::<PathBuf, _>(io::ErrorKind::Unsupported.into());
    let watch = Watch {
        deadline: limit.map(|limit| Instant::now() + limit),
        cancel: &stop,
        to_background: None,
        max_bytes: MAX_OUTPUT_BYTES,
        spill: &nowhere,
        progress: &|_| {},
    };
    let why = match running.follow(&mut capture, &watch).await {
        End::Exited(status) => {
            if let Some(note) = of_background(running.sandbox_report().await) {
                capture.push(Stream::Stderr, format!("{note}\n").as_bytes(), &nowhere).await;
            }
            let ended = match exit_code(status) {
                0 => BackgroundStatus::Completed,
                code => BackgroundStatus::Failed(code),
            };
            task.end(ended, None);
            return running.outlive(Some(&mut capture), &stop).await;
        }
        End::TimedOut => format!(
            "it ran longer than a command of an agent may: {} s (CLAUDE_SUBAGENT_BG_SHELL_MAX_MS)",
            limit.unwrap_or_default().as_secs_f64()
        ),
        End::Cancelled | End::Backgrounded => task.stop_reason(),
        End::TooMuch => format!("it wrote more than {MAX_OUTPUT_BYTES} bytes of output"),
        End::Lost(error) => format!("it was lost: {error}"),
    };
    running.kill(&mut capture, &watch).await;
    task.end(BackgroundStatus::Killed(why), None);
}
