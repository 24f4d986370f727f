//! The scripted model as a server on loopback.
//!
//! It runs on a thread and a runtime of its own, so that a test may block (waiting for a child process, say)
//! without starving it, and a test with a paused clock does not stop it. Dropping the [`ScriptedModel`]
//! stops it and closes every connection.
//!
//! Requests are recorded when they have been read whole, in the same moment as their step is chosen; so the
//! order of [`ScriptedModel::requests`] is the order in which steps were handed out.

mod answer;
mod http1;
mod perform;
mod tls;

use crate::recorded::Recorded;
use crate::script::Script;
use answer::ScriptState;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How long the `wait_for_*` functions wait before they fail the test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running scripted model.
#[derive(Debug)]
pub struct ScriptedModel {
    script_state: Arc<ScriptState>,
    base_url: String,
    ca_pem: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts a server that speaks plain HTTP/1.1 on a free port of 127.0.0.1.
    pub async fn start(script: impl Into<Script>) -> Self {
        Self::open(script.into(), Door::Plain, None)
    }

    /// Starts a server that speaks HTTP/2 or HTTP/1.1 over TLS, under an authority of its own.
    ///
    /// The base address names `127.0.0.1`; the certificate is good for `localhost` too. A cut closes the
    /// connection between frames; [`Step::reset`](crate::Step::reset) makes no difference here.
    pub async fn start_tls(script: impl Into<Script>) -> Self {
        let identity = tls::Identity::generate();
        Self::open(script.into(), Door::Tls(identity.acceptor), Some(identity.ca_pem))
    }

    fn open(script: Script, door: Door, ca_pem: Option<String>) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("bind loopback");
        let address = listener.local_addr().expect("a bound listener has an address");
        let scheme = match door {
            Door::Plain => "http",
            Door::Tls(_) => "https",
        };
        let script_state = Arc::new(ScriptState::new(script));
        let (stop, stopped) = oneshot::channel();
        let thread = spawn(listener, door, script_state.clone(), stopped);
        let base_url = format!("{scheme}://{address}");
        Self { script_state, base_url, ca_pem, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the base address for clients, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the certificate of the authority behind the server, in PEM.
    ///
    /// # Panics
    ///
    /// If the server does not speak TLS.
    pub fn ca_pem(&self) -> &str {
        self.ca_pem.as_deref().expect("started with `start_tls`")
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.script_state.requests()
    }

    /// Returns the requests to the Messages API that offer tools.
    pub fn main_requests(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(Recorded::is_main).collect()
    }

    /// Waits until at least `n` requests have arrived, and returns all so far.
    ///
    /// # Panics
    ///
    /// If they have not come after half a minute.
    pub async fn wait_for_requests(&self, n: usize) -> Vec<Recorded> {
        let mut arrived = self.script_state.arrived.subscribe();
        let waited = tokio::time::timeout(PATIENCE, arrived.wait_for(|seen| *seen >= n)).await;
        assert!(waited.is_ok(), "waited for {n} requests, saw {}", self.requests().len());
        self.requests()
    }

    /// Waits until clients have gone away in the middle of `n` answers.
    ///
    /// # Panics
    ///
    /// If they have not after half a minute.
    pub async fn wait_for_hang_ups(&self, n: usize) {
        let mut hung_up = self.script_state.hung_up.subscribe();
        let waited = tokio::time::timeout(PATIENCE, hung_up.wait_for(|seen| *seen >= n)).await;
        assert!(waited.is_ok(), "waited for {n} clients to hang up");
    }

    /// Tells whether the real API would have taken every request so far, and what not and why.
    pub fn requests_valid(&self) -> Result<(), String> {
        let mut complaints = Vec::new();
        for (n, request) in self.requests().iter().enumerate() {
            complaints.extend(request.violations.iter().map(|it| format!("request {n}: {it}")));
        }
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic on the server's thread (in a dynamic step) is the test's own; it has been printed there.
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the scripted model panicked");
        }
    }
}

/// How connections come in.
#[derive(Clone)]
enum Door {
    Plain,
    Tls(TlsAcceptor),
}

/// Runs the server on its own thread until `stopped` resolves.
fn spawn(
    listener: std::net::TcpListener,
    door: Door,
    script_state: Arc<ScriptState>,
    stopped: oneshot::Receiver<()>,
) -> thread::JoinHandle<()> {
    let serve = async move {
        listener.set_nonblocking(true).expect("set the listener non-blocking");
        let listener = TcpListener::from_std(listener).expect("register the listener");
        tokio::select! {
            () = accept(listener, door, script_state) => {}
            _ = stopped => {}
        }
    };
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("build a runtime").block_on(serve);
    };
    thread::Builder::new().name("scripted-model".into()).spawn(run).expect("spawn a thread")
}

/// Accepts connections for ever; the connections end with this future.
async fn accept(listener: TcpListener, door: Door, script_state: Arc<ScriptState>) {
    let mut connections = JoinSet::new();
    for number in 0.. {
        let stream = accept_one(&listener).await;
        let script_state = script_state.clone();
        match door.clone() {
            Door::Plain => connections.spawn(http1::serve(stream, number, script_state)),
            Door::Tls(acceptor) => connections.spawn(tls::serve(stream, acceptor, number, script_state)),
        };
        while connections.try_join_next().is_some() {}
    }
}

async fn accept_one(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().await.expect("accept on loopback");
    // Each event is a packet of its own, as it is from the real API.
    stream.set_nodelay(true).expect("set TCP_NODELAY");
    stream
}
