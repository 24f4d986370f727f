//! Ctrl-C while the index is built: what was read so far is written before the program ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, mpsc};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use super::INTERRUPTED;

/// Whether Ctrl-C was pressed. Once it is listened for, it no longer ends the program by itself.
#[derive(Debug)]
pub(super) struct Interrupt {
    heard: Arc<AtomicBool>,
    listens: Once,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self { heard: Arc::default(), listens: Once::new() }
    }
}

impl Interrupt {
    /// Begins to listen, and returns when nothing can be missed any more. Where that cannot be had, Ctrl-C ends the
    /// program as ever.
    pub(super) fn listen(&self) {
        self.listens.call_once(|| {
            let heard = Arc::clone(&self.heard);
            let (listens, begun) = mpsc::channel();
            if thread::Builder::new().spawn(move || wait(&heard, &listens)).is_ok() {
                // A listener that gave up has dropped its end, which is an answer, too.
                begun.recv().unwrap_or_default();
            }
        });
    }

    pub(super) fn is_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }
}

fn wait(heard: &AtomicBool, listens: &mpsc::Sender<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    runtime.block_on(async {
        let Ok(mut interrupts) = signal(SignalKind::interrupt()) else { return };
        listens.send(()).unwrap_or_default();
        while interrupts.recv().await.is_some() {
            // Whoever presses it twice does not want to wait.
            if heard.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
    });
}
