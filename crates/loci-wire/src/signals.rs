//! The signals a headless run listens to.

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal that means something to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The process is asked to end.
    Terminate,
    /// The terminal is gone.
    HangUp,
}

/// The signals, as they come. Where one cannot be listened to, it keeps its usual effect; a hang-up that we were
/// started to ignore stays ignored.
pub(crate) struct Signals {
    interrupt: Option<Stream>,
    terminate: Option<Stream>,
    hang_up: Option<Stream>,
}

impl Signals {
    pub(crate) fn listen() -> Self {
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
            hang_up: if loci_stdx::ignores_hang_up() { None } else { signal(SignalKind::hangup()).ok() },
        }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            () = arrival(&mut self.interrupt) => Signal::Interrupt,
            () = arrival(&mut self.terminate) => Signal::Terminate,
            () = arrival(&mut self.hang_up) => Signal::HangUp,
        }
    }
}

async fn arrival(stream: &mut Option<Stream>) {
    match stream {
        Some(stream) => {
            stream.recv().await;
        }
        None => std::future::pending().await,
    }
}
